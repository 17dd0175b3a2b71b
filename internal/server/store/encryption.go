package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

// ringPlace is what the database is called in problems of keys.
const ringPlace = "the database"

// unlock has content be sealed where the database is to be encrypted. A new database is when the caller has a key.
func (s *Store) unlock(ctx context.Context, keys seal.Keys) error {
	text, err := s.ring(ctx)
	if err != nil {
		return err
	}
	if text == "" {
		if len(keys) == 0 {
			return nil
		}
		if text, err = s.foundRing(ctx, seal.NewRing(keys)); err != nil {
			return err
		}
	}
	ring, err := seal.ParseRing([]byte(text), ringPlace)
	if err != nil {
		return err
	}
	sealer, err := ring.Open(keys, ringPlace)
	if err != nil {
		return err
	}
	if ring.Unfinished {
		return Unencrypted(ringPlace)
	}
	s.seal(sealer)
	return nil
}

func (s *Store) seal(sealer *seal.Sealer) { s.base, s.sealer = sealedBase{s.base, sealer}, sealer }

// Unencrypted is the problem that a place has data from before a key was set.
func Unencrypted(place string) error {
	return problem.New(problem.EncryptionUnfinished, "an encryption key is set, and "+place+" has data that is not encrypted").
		WithHint("run `cove encryption on` while no server and no other command runs, which encrypts it; or take the key out of the settings")
}

func (s *Store) ring(ctx context.Context) (text string, err error) {
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		text, err = readRing(ctx, q, "")
		return err
	})
	return text, err
}

func readRing(ctx context.Context, q queryer, tail string) (text string, err error) {
	err = q.QueryRowContext(ctx, "SELECT ring FROM encryption WHERE id = 1"+tail).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return text, err
}

// foundRing writes the ring of an empty database, unless another process has been faster, and returns the one that holds. A ring that is unfinished may be
// founded in any database.
func (s *Store) foundRing(ctx context.Context, r seal.Ring) (text string, err error) {
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := q.ExecContext(ctx, "INSERT INTO encryption (id, ring) VALUES (1, $1) ON CONFLICT (id) DO NOTHING", string(r.Text())); err != nil {
			return err
		}
		if text, err = readRing(ctx, q, ""); err != nil || text != string(r.Text()) || r.Unfinished {
			return err
		}
		for _, t := range sealedTables() {
			var have bool
			if err := q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+t.name+")").Scan(&have); err != nil {
				return err
			}
			if have {
				return Unencrypted(ringPlace)
			}
		}
		return nil
	})
	return text, err
}

// Encryption says of a database whether it is encrypted, and with which of the operator's keys its data keys are wrapped.
func Encryption(ctx context.Context, o Options) (ring seal.Ring, on bool, err error) {
	s, err := openLocked(ctx, o)
	if err != nil {
		return ring, false, err
	}
	defer func() { _ = s.Close() }()
	text, err := s.ring(ctx)
	if err != nil || text == "" {
		return ring, false, err
	}
	ring, err = seal.ParseRing([]byte(text), ringPlace)
	return ring, true, err
}

// Rewrap wraps the data keys of a database with the first of the operator's keys. Who has the database open goes on meanwhile. With fresh it adds one that seals from now on, which
// nobody may have missed: then the database must be in use by nobody. Problems: database_in_use.
func Rewrap(ctx context.Context, o Options, fresh bool) (changed bool, err error) {
	s, err := openLocked(ctx, o)
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close() }()
	if fresh {
		if err := s.unused(ctx); err != nil {
			return false, err
		}
	}
	err = s.base.write(ctx, func(ctx context.Context, q queryer) error {
		text, err := readRing(ctx, q, s.dialect.forUpdate)
		if err != nil || text == "" {
			return err
		}
		ring, err := seal.ParseRing([]byte(text), ringPlace)
		if err != nil {
			return err
		}
		if ring, changed, err = ring.Rewrap(o.Keys, ringPlace); err != nil {
			return err
		}
		if fresh {
			ring.Add(o.Keys)
			changed = true
		}
		_, err = q.ExecContext(ctx, "UPDATE encryption SET ring = $1 WHERE id = 1", string(ring.Text()))
		return err
	})
	return changed, err
}

// sealedTable is a table with content.
type sealedTable struct {
	name   string
	key    []string // the columns of its primary key
	fields []field
}

func sealedTables() []sealedTable {
	id := []string{"id"}
	return []sealedTable{
		{"projects", id, projectFields(new(auth.Project))},
		{"sessions", id, sessionFields(new(hub.Session))},
		{"executions", id, executionFields(new(hub.Execution))},
		{"events", []string{"stream", "seq"}, eventFields(new(stream.Event))},
		{"conversations", id, conversationFields(new(hub.Conversation))},
		{"turns", id, turnFields(new(hub.Turn))},
		{"files", id, fileFields(new(hub.File))},
		{"uploads", id, uploadFields(new(hub.Upload))},
		{"shares", id, shownFields(new(shown))},
		{"questions", id, questionFields(new(hub.Question))},
		{"session_links", id, linkFields(new(hub.SessionLink))},
		{"volumes", id, volumeFields(new(hub.Volume))},
		{"connections", []string{"provider"}, connectionFields(new(hub.Connection))},
		{"audit_rows", id, auditFields(new(audit.Row))},
		{"documents", id, placeFields(new(place))},
	}
}

// Progress is told how far the encryption of a table is.
type Progress func(what string, done, all int64)

// encryptAtOnce is how many rows a transaction encrypts.
const encryptAtOnce = 200

// Encrypt encrypts what a database has, while nobody uses it. It goes on where it was interrupted, and afterwards has the database forget what it had. Problems: database_in_use.
func Encrypt(ctx context.Context, o Options, told Progress) error {
	s, err := openLocked(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.unused(ctx); err != nil {
		return err
	}
	begun := seal.NewRing(o.Keys)
	begun.Unfinished = true
	text, err := s.foundRing(ctx, begun)
	if err != nil {
		return err
	}
	ring, err := seal.ParseRing([]byte(text), ringPlace)
	if err != nil {
		return err
	}
	sealer, err := ring.Open(o.Keys, ringPlace)
	if err != nil || !ring.Unfinished {
		return err
	}
	plain := *s
	s.seal(sealer)
	for _, t := range sealedTables() {
		if err := plain.encryptTable(ctx, t, sealer, told); err != nil {
			return fmt.Errorf("encrypt %s: %w", t.name, err)
		}
	}
	if err := s.hideClues(ctx); err != nil {
		return err
	}
	compact := compactFile
	if strings.Contains(o.Database, "://") {
		compact = compactServer
	}
	if err := compact(ctx, o.Database); err != nil {
		return err
	}
	// Last: who is killed before comes here again, and nothing that was there in plain is left behind.
	ring.Unfinished = false
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		_, err := q.ExecContext(ctx, "UPDATE encryption SET ring = $1 WHERE id = 1", string(ring.Text()))
		return err
	})
}

// unused is a problem with code "database_in_use" when a server or a command works on the database.
func (s *Store) unused(ctx context.Context) error {
	living, err := s.Owners(ctx)
	if err != nil || len(living) == 0 {
		return err
	}
	return problem.New(problem.DatabaseInUse, fmt.Sprintf("%s (process %d on %s) uses the database", living[0].Command, living[0].PID, living[0].Host)).
		WithHint("end it first; what was killed counts as gone after a minute")
}

// encryptTable encrypts the rows of a table that are not.
func (s *Store) encryptTable(ctx context.Context, t sealedTable, sealer *seal.Sealer, told Progress) error {
	var all, done int64
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+t.name).Scan(&all)
	})
	var columns []*hidden
	for _, f := range t.fields {
		if h, ok := f.value.(*hidden); ok {
			h.sealer = sealer
			columns = append(columns, h)
		}
	}
	var after []any
	for err == nil {
		var n int
		err = s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
			n, after, err = encryptRows(ctx, q, t, columns, after)
			return err
		})
		if n == 0 {
			break
		}
		done += int64(n)
		told(t.name, done, max(all, done))
	}
	return err
}

// encryptRows encrypts the next rows, and returns how many it looked at, and the key of the last one.
func encryptRows(ctx context.Context, q queryer, t sealedTable, columns []*hidden, after []any) (n int, last []any, err error) {
	var names []string
	for _, h := range columns {
		names = append(names, h.column)
	}
	var f filter
	if after != nil {
		f.add("("+strings.Join(t.key, ", ")+") > (?"+strings.Repeat(", ?", len(t.key)-1)+")", after...)
	}
	rows, err := q.QueryContext(ctx, "SELECT "+strings.Join(append(slices.Clone(t.key), names...), ", ")+" FROM "+t.name+f.where()+
		" ORDER BY "+strings.Join(t.key, ", ")+" LIMIT "+strconv.Itoa(encryptAtOnce), f.args...)
	if err != nil {
		return 0, after, err
	}
	var found [][]any
	for rows.Next() {
		cells := make([]any, len(t.key)+len(columns))
		into := make([]any, len(cells))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return 0, after, errors.Join(err, rows.Close())
		}
		found = append(found, cells)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, after, err
	}
	for _, cells := range found {
		if err := encryptRow(ctx, q, t, columns, cells); err != nil {
			return 0, after, err
		}
		after = cells[:len(t.key)]
	}
	return len(found), after, nil
}

func encryptRow(ctx context.Context, q queryer, t sealedTable, columns []*hidden, cells []any) error {
	key, kept := cells[:len(t.key)], cells[len(t.key):]
	var set filter
	for i, h := range columns {
		text, err := characters(kept[i])
		if err != nil {
			return err
		}
		if _, err := h.open(text); err == nil && h.how != never || text == "" {
			continue // it was sealed before an interruption: nobody can make up what opens
		}
		if h.bytes() {
			set.add(h.column+" = ?", h.seal([]byte(text)))
		} else {
			set.add(h.column+" = ?", h.seal(text))
		}
	}
	if len(set.terms) == 0 {
		return nil
	}
	text := "UPDATE " + t.name + " SET " + strings.Join(set.terms, ", ")
	set.terms = nil
	for i, name := range t.key {
		set.add(name+" = ?", key[i])
	}
	_, err := q.ExecContext(ctx, text+set.where(), set.args...)
	return err
}

// hideClues removes the words of the index, and replaces what metadata is found by.
func (s *Store) hideClues(ctx context.Context) error {
	_, err := s.removeAll(ctx, func(ctx context.Context, q queryer) (int, error) {
		done, err := q.ExecContext(ctx, "DELETE FROM words WHERE document IN (SELECT document FROM words LIMIT 100)")
		if err != nil {
			return 0, err
		}
		n, err := done.RowsAffected()
		return int(n), err
	})
	for after := ""; err == nil; {
		var some []hub.Session
		err = s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
			some, err = many(ctx, q, sessionFields, "FROM sessions WHERE id > $1 ORDER BY id LIMIT "+strconv.Itoa(encryptAtOnce), after)
			for i := range some {
				if err == nil {
					_, err = q.ExecContext(ctx, "DELETE FROM session_pairs WHERE session_id = $1", some[i].ID)
				}
				if err == nil {
					err = addPairs(ctx, q, &some[i])
				}
			}
			return err
		})
		if len(some) == 0 {
			break
		}
		after = some[len(some)-1].ID
	}
	return err
}
