package ondisk

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
)

// FileUser is a Live that shows the file system of its machine; see session.Live.UseFiles.
type FileUser interface {
	UseFiles(ctx context.Context, change bool, use func(guestlink.Files) error) error
}

// UseFiles is UseFiles of the Live. A change that returns without an error is on the host's disk, wherever in the machine it was made, and is made again if the sandbox is lost before the session is
// saved, as with Write.
func (s *LeasedSession) UseFiles(ctx context.Context, change bool, use func(guestlink.Files) error) error {
	l, ok := s.Live.(FileUser)
	if !ok {
		return unchangeable()
	}
	if !change || s.currentJournal() == nil {
		return l.UseFiles(ctx, change, use)
	}
	if s.busy.Acquire(ctx, 1) != nil {
		return problem.New(problem.GivenUp, "stopped before anything was changed")
	}
	defer s.busy.Release(1)
	return l.UseFiles(ctx, true, func(f guestlink.Files) error { return use(&keptFiles{f, s, s.Lost()}) })
}

// keptFiles is a file system whose changes are added to the session's journal.
type keptFiles struct {
	guestlink.Files
	s    *LeasedSession
	lost <-chan struct{} // closed when its sandbox ends
}

// change makes a change and adds it to the journal.
func (f *keptFiles) change(ctx context.Context, c change, apply func() error) error {
	c.Files, c.Root = true, guestlink.IsRoot(ctx)
	f.s.changing.Lock()
	defer f.s.changing.Unlock()
	c, lasts := f.s.outsideVolumes(c)
	if lasts {
		return apply()
	}
	err := f.s.mayNote()
	if err == nil {
		err = apply()
	}
	if err == nil {
		err = f.s.note(&c)
	}
	if err != nil {
		f.s.drop(c.Content)
		return err
	}
	select {
	case <-f.lost: // the next sandbox may have been filled before the change was in the journal
		return problem.New(problem.SandboxDied, "the session's sandbox ended while its files were changed").WithHint("look whether the change was made, and make it again")
	default:
		return nil
	}
}

// entry is change for what returns an entry.
func (f *keptFiles) entry(ctx context.Context, c change, apply func() (filesystem.Entry, error)) (n filesystem.Entry, err error) {
	err = f.change(ctx, c, func() (err error) {
		n, err = apply()
		return err
	})
	return n, err
}

// WritePath implements guestlink.Files.
func (f *keptFiles) WritePath(ctx context.Context, path string, r io.Reader, set filesystem.Set, fresh bool) (filesystem.Entry, error) {
	if f.s.inVolume(path) {
		return f.Files.WritePath(ctx, path, r, set, fresh)
	}
	j := f.s.currentJournal()
	content, size, err := j.receive(r) // takes as long as r does
	if err != nil {
		return filesystem.Entry{}, err
	}
	return f.entry(ctx, change{Op: "put", Path: path, Content: content, Size: size, Set: &set}, func() (filesystem.Entry, error) {
		kept, err := j.open(content)
		if err != nil {
			return filesystem.Entry{}, unkept(err)
		}
		defer func() { _ = kept.Close() }()
		return f.Files.WritePath(ctx, path, kept, set, fresh)
	})
}

// ChangePath implements guestlink.Files.
func (f *keptFiles) ChangePath(ctx context.Context, path string, set filesystem.Set, all bool) (filesystem.Entry, error) {
	return f.entry(ctx, change{Op: "set", Path: path, Set: &set, All: all}, func() (filesystem.Entry, error) { return f.Files.ChangePath(ctx, path, set, all) })
}

// ReplaceText implements guestlink.Files.
func (f *keptFiles) ReplaceText(ctx context.Context, r filesystem.Replace) (done []filesystem.Replaced, err error) {
	err = f.change(ctx, change{Op: "replace", Text: &r}, func() (err error) {
		done, err = f.Files.ReplaceText(ctx, r)
		return err
	})
	return done, err
}

// MovePath implements guestlink.Files.
func (f *keptFiles) MovePath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	return f.entry(ctx, change{Op: "move", Path: c.From, To: c.To, Over: c.Replace}, func() (filesystem.Entry, error) { return f.Files.MovePath(ctx, c) })
}

// CopyPath implements guestlink.Files.
func (f *keptFiles) CopyPath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	return f.entry(ctx, change{Op: "copy", Path: c.From, To: c.To, Over: c.Replace}, func() (filesystem.Entry, error) { return f.Files.CopyPath(ctx, c) })
}

// RemovePath implements guestlink.Files.
func (f *keptFiles) RemovePath(ctx context.Context, path string, all bool) error {
	return f.change(ctx, change{Op: "remove", Path: path, All: all}, func() error { return f.Files.RemovePath(ctx, path, all) })
}

// MakePath implements guestlink.Files.
func (f *keptFiles) MakePath(ctx context.Context, path string, set filesystem.Set, fresh bool) (filesystem.Entry, error) {
	return f.entry(ctx, change{Op: "folder", Path: path, Set: &set}, func() (filesystem.Entry, error) { return f.Files.MakePath(ctx, path, set, fresh) })
}

// LinkPath implements guestlink.Files.
func (f *keptFiles) LinkPath(ctx context.Context, path, target string, replace bool) (filesystem.Entry, error) {
	return f.entry(ctx, change{Op: "link", Path: path, To: target, Over: replace}, func() (filesystem.Entry, error) { return f.Files.LinkPath(ctx, path, target, replace) })
}

// workspaceFolder is where the engines that have volumes have the workspace.
const workspaceFolder = "/home/user"

// inVolume says whether a path leads into a volume of the session, with the names in it as they are.
func (s *LeasedSession) inVolume(p string) bool {
	s.mu.Lock()
	volumes := s.rec.Volumes
	s.mu.Unlock()
	if !path.IsAbs(p) {
		p = path.Join(workspaceFolder, p)
	}
	p = path.Clean(p) + "/"
	return slices.ContainsFunc(volumes, func(v Volume) bool { return strings.HasPrefix(p, v.Path+"/") })
}

// outsideVolumes returns what of a change is not in the session's volumes. lasts says that nothing is: what is in a volume is on the host's disk, and another session may have changed it since.
func (s *LeasedSession) outsideVolumes(c change) (outside change, lasts bool) {
	switch {
	case c.Op == "copy":
		return c, s.inVolume(c.To)
	case c.Op == "move" && s.inVolume(c.To):
		c = change{Op: "remove", Path: c.Path, All: true, Files: c.Files, Root: c.Root}
	case c.Op == "replace":
		text := *c.Text
		text.Paths = slices.DeleteFunc(slices.Clone(text.Paths), s.inVolume)
		c.Text = &text
		return c, len(text.Paths) == 0
	}
	return c, s.inVolume(c.Path)
}
