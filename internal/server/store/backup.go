package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"
)

// A backup is gzip'd lines of JSON: a header, the rows of every table as arrays in the order of the header's columns, and a trailer with
// the number of lines before it and their SHA-256. It says nothing of the database that it came from.

const (
	backupFormat  = "cove-backup"
	backupVersion = 1
)

// backupHeader is the first line.
type backupHeader struct {
	Format  string        `json:"format"`
	Version int           `json:"version"`
	Schema  int64         `json:"schema"`
	Created time.Time     `json:"created"`
	Tables  []backupTable `json:"tables"`
}

// backupTable says what rows follow, in the order of the tables.
type backupTable struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"` // name and kind: "id text"
	Rows    int64    `json:"rows"`
}

// backupTrailer is the last line.
type backupTrailer struct {
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"`
}

// The kinds of columns in a backup.
const (
	kindText  = "text"
	kindInt   = "int"
	kindFloat = "float"
	kindBytes = "bytes" // base64
)

// tables lists all tables with their columns, those first that others refer to. It has no promises, since an idempotency key is for a request that is
// repeated within a day and not for another database, no browsers, codes and invitations, which are made anew, no connections, whose keys do not belong in
// a backup, no uploads, whose bytes are not in it, no questions that wait, which a copy of a server would ask a second time, and neither owners nor homes: what was restored is nobody's, and what had not ended when it was backed up is ended by the first server that
// starts. A test compares it with the schema.
func tables() []backupTable {
	table := func(name, columns string) backupTable {
		return backupTable{Name: name, Columns: strings.Split(columns, ", ")}
	}
	return []backupTable{
		table("encryption", "id int, ring text"),
		table("users", "id text, name text, admin int, created int"),
		table("projects", "id text, name text, created int, quota text, instructions text"),
		table("members", "project text, user_id text, role text"),
		table("access_keys", "id text, project text, user_id text, name text, hash bytes, last4 text, scopes text, created int, expires int, used int, revoked int, quota text, subject text"),
		table("passwords", "user_id text, login text, hash text, changed int"),
		table("sessions", "id text, project text, user_id text, key_id text, name text, name_key bytes, metadata text, state text, gone int, reason text, "+
			"created int, used int, expires int, idle int, packages text, memory int, cpus float, executions int, disk int, saved int, rollback text, network text, system int, volumes text, image text, origin text"),
		table("session_pairs", "session_id text, project text, pair bytes"),
		table("executions", "id text, project text, user_id text, key_id text, session_id text, kernel text, turn_id text, step int, code text, state text, "+
			"unfinished int, exit_code int, message text, lost text, created int, started int, finished int, wall int, cpu int, events int, dropped int, edited int, detached int, cautions text, redacted text"),
		table("events", "stream text, seq int, execution text, step int, at int, body bytes"),
		table("conversations", "id text, project text, user_id text, session_id text, title text, model text, metadata text, created int, used int, turns int, source text, approval text, origin text"),
		table("turns", "id text, project text, user_id text, key_id text, conversation text, parent text, session_id text, state text, unfinished int, model text, "+
			"prompt text, answer text, reason text, problem text, messages text, calls text, input_tokens int, output_tokens int, cached_tokens int, reasoning_tokens int, "+
			"tokens_estimated int, steps int, created int, finished int, events int, surface text, hidden int, waiting text, "+
			"cost int, currency text, context_used int, context_size int, files text, origin text, tries text, rating text, rated int, marks text"),
		table("files", "id text, project text, user_id text, name text, size int, sha256 text, purpose text, created int, expires int"),
		table("shares", "id text, hash text, project text, user_id text, conversation text, turn_id text, title text, turns int, code int, size int, created int, "+
			"expires int, document bytes"),
		table("session_links", "id text, hash text, project text, user_id text, key_id text, session_id text, purpose text, path text, port int, open int, wakes int, created int, expires int"),
		table("volumes", "id text, project text, user_id text, key_id text, name text, created int, size int"),
		table("usage_days", "project text, key_id text, day text, executions int, wall_seconds float, cpu_seconds float, turns int, input_tokens int, "+
			"output_tokens int, upload_bytes int, cost int, currency text"),
		table("answer_days", "project text, day text, model text, turns int, completed int, failed int, canceled int, steps int, failed_steps int, repaired int, installs int, "+
			"failed_installs int, input_tokens int, output_tokens int, seconds float, run_seconds float, install_seconds float, within_1 int, within_2 int, within_4 int, "+
			"within_8 int, within_16 int, within_32 int, within_64 int, within_128 int, within_256 int, within_512 int, longer int"),
		table("audit_rows", "id text, at int, project text, user_id text, key_id text, action text, target text, outcome text, detail text, request text, ip text, agent text"),
		table("documents", "id int, project text, at int, conversation text, turn_id text, execution text, session_id text, field text, content text"),
		table("words", "document int, word bytes, project text"),
	}
}

// columns splits a table's columns into names and kinds.
func (t backupTable) columns() (names, kinds []string) {
	for _, column := range t.Columns {
		name, kind, _ := strings.Cut(column, " ")
		names, kinds = append(names, name), append(kinds, kind)
	}
	return names, kinds
}

// Backup writes everything that the database holds at one moment, while others write. The contents of files are not in it; see Contents.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	schema, err := schemaVersion()
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(w)
	out := &lineWriter{to: packed, sum: sha256.New()}
	err = s.base.snapshot(ctx, func(ctx context.Context, q queryer) error {
		header := backupHeader{Format: backupFormat, Version: backupVersion, Schema: schema, Created: time.Now().UTC(), Tables: tables()}
		for i := range header.Tables {
			t := &header.Tables[i]
			if err := q.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+t.Name).Scan(&t.Rows); err != nil {
				return err
			}
		}
		if err := out.line(header); err != nil {
			return err
		}
		for _, t := range header.Tables {
			if err := backupRows(ctx, q, t, out); err != nil {
				return fmt.Errorf("back up %s: %w", t.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := out.line(backupTrailer{Lines: out.lines, SHA256: hex.EncodeToString(out.sum.Sum(nil))}); err != nil {
		return err
	}
	return packed.Close()
}

func backupRows(ctx context.Context, q queryer, t backupTable, out *lineWriter) error {
	names, kinds := t.columns()
	rows, err := q.QueryContext(ctx, "SELECT "+strings.Join(names, ", ")+" FROM "+t.Name)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		cells := make([]any, len(kinds))
		for i, kind := range kinds {
			cells[i] = newCell(kind)
		}
		if err := rows.Scan(cells...); err != nil {
			return err
		}
		for _, cell := range cells {
			if b, ok := cell.(*[]byte); ok && *b == nil {
				*b = []byte{} // which JSON does not call null
			}
		}
		if err := out.line(cells); err != nil {
			return err
		}
	}
	return rows.Err()
}

// newCell is a variable for a column of a kind.
func newCell(kind string) any {
	switch kind {
	case kindInt:
		return new(int64)
	case kindFloat:
		return new(float64)
	case kindBytes:
		return new([]byte)
	}
	return new(string)
}

// lineWriter writes lines of JSON and their sum.
type lineWriter struct {
	to    io.Writer
	sum   hash.Hash
	lines int64
}

func (l *lineWriter) line(v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	l.lines++
	_, _ = l.sum.Write(text.Bytes())
	_, err := l.to.Write(text.Bytes())
	return err
}
