package ondisk

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
)

// Write puts r's bytes in a file of the workspace: all of them, or, when it fails, none. When it returns without an error, the change is on the host's disk,
// and is made again if the sandbox is lost before the session is saved. The same holds for Move, Remove and MakeFolder.
func (s *LeasedSession) Write(ctx context.Context, path string, r io.Reader) (info workspace.Entry, err error) {
	j := s.currentJournal()
	if j == nil {
		return info, unchangeable()
	}
	content, size, err := j.receive(r) // takes as long as r does
	if err != nil {
		return info, err
	}
	kept := j.pathOf(content)
	err = s.change(ctx, change{Op: "put", Path: path, Content: content, Size: size}, func(t Changes) error {
		f, err := j.open(content)
		if err != nil {
			return unkept(err)
		}
		defer func() { _ = f.Close() }()
		info, err = t.Write(ctx, path, f)
		return err
	})
	if err != nil {
		_ = os.Remove(kept)
	}
	return info, err
}

// Move gives a file or folder another name. It never replaces anything.
func (s *LeasedSession) Move(ctx context.Context, from, to string) error {
	return s.change(ctx, change{Op: "move", Path: from, To: to}, func(t Changes) error { return t.Move(ctx, from, to) })
}

// Remove removes a file or an empty folder; with all a folder with what is in it.
func (s *LeasedSession) Remove(ctx context.Context, path string, all bool) error {
	return s.change(ctx, change{Op: "remove", Path: path, All: all}, func(t Changes) error { return t.Remove(ctx, path, all) })
}

// MakeFolder makes a folder and those that lead to it. It succeeds when the folder exists already.
func (s *LeasedSession) MakeFolder(ctx context.Context, path string) error {
	return s.change(ctx, change{Op: "folder", Path: path}, func(t Changes) error { return t.MakeFolder(ctx, path) })
}

func unchangeable() error {
	return problem.New(problem.SessionUnchangeable, "the files of this session cannot be changed from outside")
}

// change changes the workspace and adds the change to the journal.
func (s *LeasedSession) change(ctx context.Context, c change, apply func(Changes) error) error {
	t, ok := s.Live.(Changes)
	if !ok {
		return unchangeable()
	}
	if s.busy.Acquire(ctx, 1) != nil {
		return problem.New(problem.GivenUp, "stopped before anything was changed")
	}
	defer s.busy.Release(1)
	s.changing.Lock()
	defer s.changing.Unlock()
	for {
		lost := s.Lost()
		if err := apply(t); err != nil {
			return err
		}
		if err := s.note(&c); err != nil {
			return err
		}
		select {
		case <-lost: // the next sandbox may have been filled before the change was in the journal
		default:
			return nil
		}
	}
}

// note adds a change to the journal, once.
func (s *LeasedSession) note(c *change) error {
	s.mu.Lock()
	s.at = s.at.on(filesChange)
	s.mu.Unlock()
	if !c.At.IsZero() {
		return nil
	}
	s.noting.Lock()
	defer s.noting.Unlock()
	return s.journal.add(c)
}

func (s *LeasedSession) currentJournal() *journal {
	s.noting.Lock()
	defer s.noting.Unlock()
	return s.journal
}

// drop removes a content that no change has; "" is none.
func (s *LeasedSession) drop(content string) {
	if content != "" {
		s.currentJournal().drop(content)
	}
}

// mayNote refuses a change that the journal has no room for.
func (s *LeasedSession) mayNote() error {
	s.noting.Lock()
	defer s.noting.Unlock()
	return s.journal.mayAdd()
}

// catchUp repeats the changes that were acknowledged and are not in the head that the session was started from, and opens the journal for those to come.
func (s *LeasedSession) catchUp(ctx context.Context) error {
	t, ok := s.Live.(Changes)
	if !ok || s.kept != nil {
		return nil
	}
	j, err := openJournal(s.dir, s.rec.Head, s.ground.Sealer)
	if err != nil {
		return err
	}
	s.journal = j
	if l, ok := s.Live.(Restarter); ok {
		l.Refill(s.refill)
	}
	if len(j.changes) == 0 {
		return nil
	}
	failed, err := j.replay(ctx, t)
	if err != nil {
		return err
	}
	s.at = s.at.on(filesChange)
	s.sayRefilled(j.present(), failed)
	return nil
}

// sayRefilled tells which files were put back. Where changes are sealed, the record has their number and not their names.
func (s *LeasedSession) sayRefilled(files, failed []string) {
	files = slices.DeleteFunc(files, func(path string) bool { return slices.Contains(failed, path) })
	say := func(what string, paths []string) {
		text := "files that were put in after that " + what + ": "
		kept := text + listing(paths)
		if s.ground.Sealer != nil {
			kept = text + strconv.Itoa(len(paths))
		}
		s.noticeKept(text+listing(paths), kept)
	}
	if len(files) > 0 {
		say("were restored", files)
	}
	if len(failed) > 0 {
		say("could not be restored", failed)
	}
}

// listing names a few of many paths.
func listing(paths []string) string {
	const most = 10
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}

// refill repeats the journal's changes in a sandbox that replaces a lost one.
func (s *LeasedSession) refill(ctx context.Context, t Changes) error {
	s.noting.Lock()
	if s.journal == nil {
		s.noting.Unlock()
		return nil
	}
	now := *s.journal // a change that is made meanwhile is repeated by its caller
	now.changes, now.newest = slices.Clone(now.changes), maps.Clone(now.newest)
	s.noting.Unlock()
	failed, err := now.replay(ctx, t)
	if err == nil {
		s.sayRefilled(now.present(), failed)
	}
	return err
}

// replaceJournal begins the journal of a new head and removes the former one. The caller sees to it that nothing changes the session meanwhile.
func (s *LeasedSession) replaceJournal(head Entry) {
	s.noting.Lock()
	defer s.noting.Unlock()
	if s.journal == nil {
		return
	}
	old := s.journal
	s.journal = newJournal(s.dir, head, s.ground.Sealer)
	old.end()
}

// releaseJournal closes the journal and leaves it on the disk for the process that opens the session next.
func (s *LeasedSession) releaseJournal() {
	s.noting.Lock()
	defer s.noting.Unlock()
	if s.journal != nil {
		s.journal.close()
	}
}
