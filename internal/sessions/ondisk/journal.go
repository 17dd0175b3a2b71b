package ondisk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/workspace"
)

// Changes are the ways in which clients, not code, change a workspace.
type Changes = interface {
	Write(ctx context.Context, path string, r io.Reader) (workspace.Entry, error) // whole or not at all
	Move(ctx context.Context, from, to string) error                              // never replaces
	Remove(ctx context.Context, path string, all bool) error                      // all: folders with what is in them
	MakeFolder(ctx context.Context, path string) error                            // with those on the way to it
}

// journal keeps on the disk what clients have changed in the workspace since the head was saved, so that a change that was acknowledged outlives the sandbox.
// It belongs to one head, and is void as soon as there is another, which contains the changes.
//
//	<session>/journal/<head>.log   a line of JSON for each change, in their order
//	<session>/journal/put_*        the contents of files, also of those that are still being received
//
// The sandbox is changed first and the line is written then, so a change that the sandbox refused is not in the journal. The caller sees to it that neither a
// save nor another change comes in between. A line that a crash cut short was never acknowledged.
type journal struct {
	path    string       // of the log
	sealer  *seal.Sealer // what lines and contents are sealed with; nil: they are not
	log     *os.File     // nil until the first change
	changes []change
	newest  map[string]int // by path: the index in changes of the one that put the file there
	bytes   int64          // of the contents that are still needed
	wide    int            // of changes, those with Files
	void    int            // of changes, those that are void
	reader  int            // the index of the last change whose result depends on contents that were put before it; -1: none
}

// change is one line of the log.
type change struct {
	Op      string    `json:"op"` // put, move, remove, folder; with Files also copy, set, replace, link
	Path    string    `json:"path"`
	To      string    `json:"to,omitempty"` // of a link: its target
	All     bool      `json:"all,omitempty"`
	Content string    `json:"content,omitempty"` // a file beside the log
	Size    int64     `json:"size,omitempty"`
	At      time.Time `json:"at"`

	// Files says that it was made in the file system of the session's machine, and not in the workspace alone; see filechanges.go.
	Files bool                `json:"files,omitempty"`
	Root  bool                `json:"root,omitempty"` // with the rights of the session's root
	Over  bool                `json:"over,omitempty"` // what is there may be replaced
	Set   *filesystem.Set     `json:"set,omitempty"`
	Text  *filesystem.Replace `json:"text,omitempty"`

	void bool // it put a file there that later changes replaced or removed, and its content is not kept any more
}

const (
	journalName   = "journal"
	logSuffix     = ".log"
	contentPrefix = "put_"
	beginning     = "start" // the head of a session that was never saved
)

func journalPath(dir string, head Entry) string {
	name := head.Snapshot
	if name == "" {
		name = beginning
	}
	return filepath.Join(dir, journalName, name+logSuffix)
}

func newJournal(dir string, head Entry, sealer *seal.Sealer) *journal {
	return emptyJournal(journalPath(dir, head), sealer)
}

func emptyJournal(path string, sealer *seal.Sealer) *journal {
	return &journal{path: path, sealer: sealer, newest: map[string]int{}, reader: -1}
}

// pathOf returns the path of a content.
func (j *journal) pathOf(content string) string {
	return filepath.Join(filepath.Dir(j.path), filepath.Base(content))
}

// openJournal reads the journal of a head, where there is one.
func openJournal(dir string, head Entry, sealer *seal.Sealer) (*journal, error) {
	j := newJournal(dir, head, sealer)
	f, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was changed since the last save: %w", err)
	}
	whole := int64(0)
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break // the end, or what a crash cut short
		}
		c, err := j.read(line)
		if problem.Has(err, problem.SealedDamaged) {
			return nil, errors.Join(fmt.Errorf("read what was changed since the last save: %w", err), f.Close())
		}
		if err != nil {
			break
		}
		whole += int64(len(line))
		j.note(c)
	}
	if err := errors.Join(f.Truncate(whole), seekEnd(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	j.log = f
	return j, nil
}

func seekEnd(f *os.File) error {
	_, err := f.Seek(0, io.SeekEnd)
	return err
}

// journaled says whether the journal of a head has a change.
func journaled(dir string, head Entry) bool {
	f, err := os.Open(journalPath(dir, head))
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = bufio.NewReader(f).ReadBytes('\n')
	return err == nil
}

// receive writes the content of a file to the disk. With a file of the host that never changes it makes a link instead of a copy.
func (j *journal) receive(r io.Reader) (content string, size int64, err error) {
	if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
		return "", 0, unkept(err)
	}
	content = id(contentPrefix)
	path := j.pathOf(content)
	if f, ok := r.(*os.File); ok && j.sealer == nil && os.Link(f.Name(), path) == nil {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return content, info.Size(), nil
		}
		_ = os.Remove(path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", 0, unkept(err)
	}
	source := &problem.Source{From: r}
	sealed, err := j.sealer.NewWriter(f)
	if err == nil {
		size, err = io.Copy(sealed, source)
	}
	if err == nil {
		err = errors.Join(sealed.Close(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		if source.Failed != nil {
			return "", 0, source.Failed
		}
		return "", 0, unkept(err)
	}
	return content, size, nil
}

// drop removes a content that no change has.
func (j *journal) drop(content string) { _ = os.Remove(j.pathOf(content)) }

// add appends a change to the log, with its time, and returns when it is on the disk.
func (j *journal) add(c *change) error {
	c.At = time.Now()
	line, err := j.line(*c)
	if err != nil {
		return err
	}
	if err := j.begin(); err != nil {
		return unkept(err)
	}
	end, err := j.log.Seek(0, io.SeekCurrent)
	if err == nil {
		if _, err = j.log.Write(line); err == nil {
			err = j.log.Sync()
		}
		if err != nil { // half a line would hide those after it
			err = errors.Join(err, j.log.Truncate(end), seekEnd(j.log))
		}
	}
	if err != nil {
		c.At = time.Time{}
		return unkept(err)
	}
	for _, content := range j.note(*c) {
		j.drop(content)
	}
	switch {
	case j.wide > 0 && j.void > mostChanges:
		return j.rewrite(slices.DeleteFunc(slices.Clone(j.changes), func(c change) bool { return c.void }))
	case j.wide == 0 && j.fromNothing() && len(j.changes) > mostChanges+2*len(j.newest):
		return j.rewrite(j.sum())
	}
	return nil
}

// mayAdd refuses a change of the file system where there are too many that only a save can end.
func (j *journal) mayAdd() error {
	if len(j.changes) < mostKept {
		return nil
	}
	return problem.New(problem.SessionsUnwritable, fmt.Sprintf("%d changes of files wait to be saved with the session", len(j.changes))).
		WithHint("pause the session, or make a new one: engines that save no sessions take no more changes")
}

const (
	// mostKept bounds the changes of a journal that cannot be shortened. A session that can be saved is saved long before.
	mostKept = 50_000

	// mostChanges is how many changes the journal may have beyond those that are needed; of a session that is never saved, those that its workspace's present content takes.
	mostChanges = 200
)

// fromNothing says whether the changes started with an empty workspace, so that fewer changes can have the same result.
func (j *journal) fromNothing() bool { return filepath.Base(j.path) == beginning+logSuffix }

// rewrite rewrites the log with fewer changes that have the same result. Where the engine cannot save sessions, nothing else ever shortens it.
func (j *journal) rewrite(changes []change) error {
	short := emptyJournal(j.path, j.sealer)
	for _, c := range changes {
		short.note(c)
	}
	var text bytes.Buffer
	for _, c := range short.changes {
		line, err := j.line(c)
		if err != nil {
			return err
		}
		text.Write(line)
	}
	if err := durable.Replace(j.path, 0o600, &text); err != nil {
		return unkept(err)
	}
	log, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if err == nil {
		err = seekEnd(log)
	}
	if err != nil {
		return unkept(err)
	}
	j.close()
	short.log = log
	*j = *short
	return nil
}

// sum returns changes that make the journal's result from an empty workspace: the folders, and the files in them under their present names.
func (j *journal) sum() []change {
	folders := map[string]change{}
	for _, c := range j.changes {
		if c.Op == "folder" {
			folders[c.Path] = c
		}
		if c.Op != "remove" && c.Op != "move" {
			continue
		}
		for path, f := range folders {
			if path != c.Path && !strings.HasPrefix(path, c.Path+"/") {
				continue
			}
			delete(folders, path)
			if c.Op == "move" {
				f.Path = c.To + strings.TrimPrefix(path, c.Path)
				folders[f.Path] = f
			}
		}
	}
	var out []change
	for _, path := range slices.Sorted(maps.Keys(folders)) {
		out = append(out, folders[path])
	}
	for _, path := range j.present() {
		c := j.changes[j.newest[path]]
		c.Path = path
		out = append(out, c)
	}
	return out
}

// begin makes the log, durably: a crash does not lose its name.
func (j *journal) begin() error {
	if j.log != nil {
		return nil
	}
	dir := filepath.Dir(j.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		if err := durable.SyncFolder(dir); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	j.log = f
	return nil
}

func unkept(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return problem.New(problem.DiskFull, "there is no room left on the disk to keep the file").WithCause(err).WithHint("make room, or delete what is not needed")
	}
	return problem.New(problem.SessionsUnwritable, "the change could not be written to the disk").WithCause(err)
}

// end removes the journal, when its changes are saved or not wanted any more.
func (j *journal) end() {
	j.close()
	_ = os.Remove(j.path)
	for _, c := range j.changes {
		if c.Content != "" {
			j.drop(c.Content)
		}
	}
}

// close closes the journal's file and leaves it on the disk.
func (j *journal) close() {
	if j.log != nil {
		j.log.Close()
		j.log = nil
	}
}

// present returns the paths of the files that the changes have put there and not removed again.
func (j *journal) present() []string {
	var paths []string
	for path := range j.newest {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// cloneJournal gives a fork's head the journal of its origin's, with all contents: those that it does not need go when it is opened.
func cloneJournal(from string, head Entry, to string, forked Entry) error {
	source, target := journalPath(from, head), journalPath(to, forked)
	if !journaled(from, head) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return unkept(err)
	}
	contents, err := filepath.Glob(filepath.Join(filepath.Dir(source), contentPrefix+"*"))
	if err != nil {
		return err
	}
	for _, content := range contents {
		if err := replicate(content, filepath.Join(filepath.Dir(target), filepath.Base(content)), true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unkept(err)
		}
	}
	if err := replicate(source, target, false); err != nil {
		return unkept(err)
	}
	return durable.SyncFolder(filepath.Dir(target))
}

// replicate makes to a link to a file that never changes, or a copy of it.
func replicate(from, to string, shared bool) error {
	if shared && os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// tidyJournals removes the journals of other heads, and contents that are not needed or were never received whole.
func tidyJournals(dir string, own *journal) {
	entries, err := os.ReadDir(filepath.Join(dir, journalName))
	if err != nil {
		return
	}
	wanted := map[string]bool{filepath.Base(own.path): true}
	for _, c := range own.changes {
		wanted[c.Content] = !c.void
	}
	for _, e := range entries {
		if !wanted[e.Name()] {
			_ = os.Remove(filepath.Join(dir, journalName, e.Name()))
		}
	}
}
