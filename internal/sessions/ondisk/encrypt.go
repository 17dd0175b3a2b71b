package ondisk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/durable"
	"cove/internal/core/seal"
	"cove/internal/machine/keeper"
	"cove/internal/machine/snapshot"
)

// Any says whether the store has a session.
func (s Store) Any() bool {
	found, _ := filepath.Glob(filepath.Join(s.Dir, "*", recordName))
	return len(found) > 0
}

// Encrypt seals what is on the disk of every session: the files of its snapshots that names has, and its journals. What is sealed already stays, so that it can be called
// again. A session that a process uses or keeps in memory is a problem with code "session_in_use".
func (s Store) Encrypt(ctx context.Context, names []string, sealer *seal.Sealer, told func(done, all int)) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return unwritable(s.Dir, err)
	}
	for i, e := range entries {
		if CheckName(e.Name()) == nil {
			if err := s.encryptOne(ctx, e.Name(), names, sealer); err != nil {
				return fmt.Errorf("encrypt session %s: %w", e.Name(), err)
			}
		}
		told(i+1, len(entries))
	}
	return nil
}

func (s Store) encryptOne(ctx context.Context, name string, names []string, sealer *seal.Sealer) error {
	l, rec, err := s.acquire(ctx, name, "cove encryption on")
	if err != nil {
		return err
	}
	defer l.release()
	if keeper.Lives(l.dir) {
		return inUse(name, l.dir)
	}
	store, _, err := rec.openPages(l.dir)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	for _, at := range append([]Entry{rec.Head}, rec.Undo...) {
		if at.Snapshot == "" || at.Elsewhere != 0 {
			continue
		}
		if err := snapshot.Seal(ctx, snapshotPath(l.dir, at), names, sealer, store); err != nil {
			return err
		}
	}
	for i, at := range rec.Undo {
		if at.Packed {
			rec.Undo[i].Room = snapshot.Occupied(snapshotPath(l.dir, at))
		}
	}
	if err := errors.Join(rec.write(l.dir), os.RemoveAll(filepath.Join(l.dir, pagesName))); err != nil {
		return err
	}
	return encryptJournals(filepath.Join(l.dir, journalName), sealer)
}

// encryptJournals seals the contents of a session's journals, and then the lines.
func encryptJournals(dir string, sealer *seal.Sealer) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), logSuffix) {
			err = encryptLines(path, sealer)
		} else {
			err = sealer.SealFile(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func encryptLines(path string, sealer *seal.Sealer) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out strings.Builder
	j := &journal{sealer: sealer}
	for line := range strings.Lines(string(text)) {
		c, err := j.read([]byte(line))
		if err != nil {
			break // what a crash cut short
		}
		sealed, err := j.line(c)
		if err != nil {
			return err
		}
		out.Write(sealed)
	}
	return durable.Replace(path, 0o600, io.Reader(strings.NewReader(out.String())))
}

// line is a change as a line of the log.
func (j *journal) line(c change) ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return append([]byte(j.sealer.SealText(journalName, string(text))), '\n'), nil
}

// read reads a line. One that begins as JSON does is from before the journal was sealed.
func (j *journal) read(line []byte) (c change, err error) {
	if j.sealer != nil && !bytes.HasPrefix(line, []byte("{")) {
		text, err := j.sealer.OpenText(journalName, string(bytes.TrimSpace(line)))
		if err != nil {
			return c, err
		}
		line = []byte(text)
	}
	return c, json.Unmarshal(line, &c)
}

// open opens a content.
func (j *journal) open(content string) (io.ReadCloser, error) {
	return j.sealer.OpenFile(j.pathOf(content), true)
}
