package store

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

// longestLine bounds a row of a backup.
const longestLine = 256 << 20

// Restore reads what Backup wrote into an empty database, all of it or nothing. Problems: database_not_empty, backup_damaged, backup_newer.
func (s *Store) Restore(ctx context.Context, r io.Reader) error {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return damaged("it is not an archive", err)
	}
	in := &lineReader{from: bufio.NewReaderSize(packed, 1<<20), sum: sha256.New()}
	header, err := readHeader(in)
	if err != nil {
		return err
	}
	return s.base.restore(ctx, func(ctx context.Context, q queryer) error {
		if err := wantEmpty(ctx, q); err != nil {
			return err
		}
		for _, t := range header.Tables {
			if err := restoreRows(ctx, q, t, in); err != nil {
				return fmt.Errorf("restore %s: %w", t.Name, err)
			}
		}
		return in.end()
	})
}

func damaged(what string, cause error) error {
	return problem.New(problem.BackupDamaged, "the backup cannot be used: "+what).WithHint("use another backup; nothing was restored").WithCause(cause)
}

func readHeader(in *lineReader) (backupHeader, error) {
	var h backupHeader
	if err := in.line(&h); err != nil {
		return h, err
	}
	schema, err := schemaVersion()
	switch {
	case err != nil:
		return h, err
	case h.Format != backupFormat:
		return h, damaged("it is not a backup of cove", nil)
	case h.Version > backupVersion, h.Schema > schema:
		return h, problem.New(problem.BackupNewer, "a newer cove made the backup").WithHint("restore it with that one; nothing was restored")
	}
	known := map[string]backupTable{}
	for _, t := range tables() {
		known[t.Name] = t
	}
	// The names become SQL: only those that are known do.
	for _, t := range h.Tables {
		for _, column := range t.Columns {
			if !slices.Contains(known[t.Name].Columns, column) {
				return h, damaged("it has a column that is not known", nil)
			}
		}
		if len(t.Columns) == 0 || t.Rows < 0 {
			return h, damaged("it has a table without columns", nil)
		}
	}
	return h, nil
}

func wantEmpty(ctx context.Context, q queryer) error {
	// An empty database may have been given data keys: those of the backup, or none, take their place.
	if _, err := q.ExecContext(ctx, "DELETE FROM encryption"); err != nil {
		return err
	}
	for _, t := range tables() {
		var have bool
		if err := q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+t.Name+")").Scan(&have); err != nil {
			return err
		}
		if have {
			return problem.New(problem.DatabaseNotEmpty, "the database has "+t.Name+" already; a backup is restored into an empty one").
				WithHint("name a new database")
		}
	}
	return nil
}

func restoreRows(ctx context.Context, q queryer, t backupTable, in *lineReader) error {
	names, kinds := t.columns()
	into := t.Name + " (" + strings.Join(names, ", ") + ")"
	var rows [][]any
	size := 0
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := insertRows(ctx, q, into, rows, "")
		if contradicts(err) {
			err = damaged("its rows contradict each other", err)
		}
		rows, size = nil, 0
		return err
	}
	for range t.Rows {
		cells := make([]any, len(kinds))
		for i, kind := range kinds {
			cells[i] = newCell(kind)
		}
		before := in.read
		if err := in.line(&cells); err != nil {
			return err
		}
		if len(cells) != len(kinds) || slices.Contains(cells, nil) {
			return damaged("a row has other columns than its table", nil)
		}
		for _, cell := range cells {
			if text, ok := cell.(*string); ok {
				*text = clean(*text)
			}
		}
		rows, size = append(rows, cells), size+int(in.read-before)
		if len(rows) >= rowsAtOnce || size > 4<<20 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// lineReader reads lines of JSON and sums them up.
type lineReader struct {
	from  *bufio.Reader
	sum   hash.Hash
	lines int64
	read  int64
}

func (l *lineReader) line(into any) error {
	text, err := l.next()
	if err != nil {
		return err
	}
	l.lines++
	_, _ = l.sum.Write(text)
	if err := json.Unmarshal(text, into); err != nil {
		return damaged("a line makes no sense", err)
	}
	return nil
}

func (l *lineReader) next() ([]byte, error) {
	var text []byte
	for {
		part, err := l.from.ReadSlice('\n')
		text = append(text, part...)
		l.read += int64(len(part))
		switch {
		case err == nil:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, damaged("it ends too early", err)
		case len(text) > longestLine:
			return nil, damaged("a line is too long", nil)
		}
	}
}

// end checks the trailer, and that nothing follows it.
func (l *lineReader) end() error {
	lines, sum := l.lines, hex.EncodeToString(l.sum.Sum(nil))
	var t backupTrailer
	if err := l.line(&t); err != nil {
		return err
	}
	if t.Lines != lines || t.SHA256 != sum {
		return damaged("its sum is not that of its lines", nil)
	}
	if _, err := l.from.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("something follows its end", err)
	}
	return nil
}
