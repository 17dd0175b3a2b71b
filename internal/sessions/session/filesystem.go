package session

import (
	"context"
	"errors"
	"io"
	"iter"
	"path"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
)

// UseFiles has use work with the file system of the session's machine, as its code sees it. Without change use may only look. The session is not saved or left until use
// returns; what use puts into the workspace no execution is said to have made. Problems: file_not_found, file_exists, file_denied, invalid_path, not_empty,
// workspace_full, files_absent.
func (s *Live) UseFiles(ctx context.Context, change bool, use func(guestlink.Files) error) error {
	return s.reached(ctx, func(l *guestlink.Link) error {
		look := credibleFiles{l, s}
		if !change {
			return use(look)
		}
		s.touched.Store(true)
		f := &changing{Files: look, s: s, l: l}
		return errors.Join(use(f), f.absorb(ctx))
	})
}

// credibleFiles is a file system in which a sparse file cannot be read that claims to be larger than can be.
type credibleFiles struct {
	guestlink.Files
	s *Live
}

// OpenPath implements guestlink.Files.
func (f credibleFiles) OpenPath(ctx context.Context, path string, offset, limit int64) (guestlink.Reading, error) {
	c, err := f.Files.OpenPath(ctx, path, offset, limit)
	if err != nil {
		return nil, err
	}
	if err := f.s.credible(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// changing is a file system whose changes in the workspace are noted.
type changing struct {
	guestlink.Files
	s       *Live
	l       *guestlink.Link
	changed []string // from the workspace
}

// within returns a path from the workspace, for an absolute one or one that begins there.
func (c *changing) within(p string) (string, bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.sandbox == nil {
		return "", false
	}
	if path.IsAbs(p) {
		below, ok := strings.CutPrefix(path.Clean(p), c.s.sandbox.Layout().Workspace+"/")
		return below, ok
	}
	return path.Clean(p), !filesystem.Outside(p)
}

func (c *changing) note(paths ...string) {
	for _, p := range paths {
		if below, ok := c.within(p); ok {
			c.changed = append(c.changed, below)
		}
	}
}

// WritePath implements guestlink.Files.
func (c *changing) WritePath(ctx context.Context, p string, r io.Reader, set filesystem.Set, fresh bool) (filesystem.Entry, error) {
	below, ok := c.within(p)
	if ok { // an execution that ends meanwhile does not report it, nor when it has just become whole
		c.s.mu.Lock()
		c.s.writing[below]++
		c.s.mu.Unlock()
		defer func() {
			c.s.mu.Lock()
			defer c.s.mu.Unlock()
			if c.s.writing[below]--; c.s.writing[below] == 0 {
				delete(c.s.writing, below)
			}
		}()
	}
	n, err := c.Files.WritePath(ctx, p, r, set, fresh)
	if c.note(p, n.Full); err != nil {
		return n, err
	}
	if ok && n.Stamp != "" {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if c.s.link == c.l {
			c.s.known[below] = n.Stamp
		}
	}
	return n, err
}

// ChangePath implements guestlink.Files.
func (c *changing) ChangePath(ctx context.Context, p string, set filesystem.Set, all bool) (filesystem.Entry, error) {
	n, err := c.Files.ChangePath(ctx, p, set, all)
	c.note(p, n.Full)
	return n, err
}

// MovePath implements guestlink.Files.
func (c *changing) MovePath(ctx context.Context, m filesystem.Copy) (filesystem.Entry, error) {
	n, err := c.Files.MovePath(ctx, m)
	c.note(m.From, m.To, n.Full)
	return n, err
}

// CopyPath implements guestlink.Files.
func (c *changing) CopyPath(ctx context.Context, m filesystem.Copy) (filesystem.Entry, error) {
	n, err := c.Files.CopyPath(ctx, m)
	c.note(m.To, n.Full)
	return n, err
}

// RemovePath implements guestlink.Files.
func (c *changing) RemovePath(ctx context.Context, p string, all bool) error {
	c.note(p)
	return c.Files.RemovePath(ctx, p, all)
}

// ReplaceText implements guestlink.Files.
func (c *changing) ReplaceText(ctx context.Context, r filesystem.Replace) ([]filesystem.Replaced, error) {
	c.note(r.Paths...)
	return c.Files.ReplaceText(ctx, r)
}

// absorb has what was changed count as known, so that no execution is said to have made it.
func (c *changing) absorb(ctx context.Context) error {
	if len(c.changed) == 0 {
		return nil
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.link != c.l {
		return nil
	}
	listed, more, err := c.l.ListFiles(ctx)
	if err != nil {
		return err
	}
	now := make(map[string]string, len(listed))
	for _, f := range listed {
		now[f.Path] = f.Stamp
	}
	for _, changed := range c.changed {
		for known := range c.s.below(changed) {
			if _, there := now[known]; !there && !more {
				delete(c.s.known, known)
			}
		}
		for p, stamp := range now {
			if p == changed || changed == "." || strings.HasPrefix(p, changed+"/") {
				c.s.known[p] = stamp
			}
		}
	}
	return nil
}

// WatchFiles watches a file, or a folder and with all those below it, and calls began when it does: what happens from then on is told of. It does not keep the session
// from being saved, and goes on after that; what happened in the moment of the save may be missing, which an event of kind Lost says. It ends with ctx, with an event of
// kind Ended, and with a problem when the sandbox is lost. Problems: file_not_found, too_many_processes, files_absent.
func (s *Live) WatchFiles(ctx context.Context, path string, all bool, began func()) iter.Seq2[filesystem.Event, error] {
	return func(yield func(filesystem.Event, error) bool) {
		for vain, again := 0, false; ; vain++ {
			l, sb, err := s.connected(ctx)
			if err != nil {
				yield(filesystem.Event{}, err)
				return
			}
			w, err := l.WatchFiles(ctx, path, all)
			switch {
			case err == nil && again && !yield(filesystem.Event{Kind: filesystem.Lost}, nil):
				_ = w.Close()
				return
			case err == nil:
				if !again {
					began()
				}
				again, vain = true, 0
				if err = s.follow(ctx, w, yield); err == nil {
					return
				}
			case again && problem.Has(err, problem.FileNotFound):
				yield(filesystem.Event{Kind: filesystem.Ended}, nil)
				return
			}
			if ctx.Err() != nil || ended(sb.Done()) || !guestlink.Cut(err) || vain >= followsInVain {
				yield(filesystem.Event{}, errors.Join(ctx.Err(), explain(sb, err)))
				return
			}
			awaitEnd(l.Done(), breakGrace)
		}
	}
}

// follow yields what a watch tells of, and returns why it ended; nil: there is nothing more to tell, or nobody to hear of it.
func (s *Live) follow(ctx context.Context, w *guestlink.Watch, yield func(filesystem.Event, error) bool) error {
	defer func() { _ = w.Close() }()
	defer context.AfterFunc(ctx, func() { _ = w.Close() })()
	for e, err := range w.Events() {
		if err != nil {
			return err
		}
		if !yield(e, nil) {
			return nil
		}
	}
	return nil
}
