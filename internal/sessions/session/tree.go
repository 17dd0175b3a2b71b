package session

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/workspace"
)

// putMode is the permissions of a file that comes from a client.
const putMode = 0o644

// List returns the files and folders of one folder ("" is the workspace), by name. Anything else in the folder, such as a link, is left out. more says that the
// folder has more entries than one listing holds.
func (s *Live) List(ctx context.Context, dir string) (entries []workspace.Entry, more bool, err error) {
	err = s.reached(ctx, func(l *guestlink.Link) error {
		entries, more, err = l.ListFolder(ctx, dir)
		entries = slices.DeleteFunc(entries, func(e workspace.Entry) bool { return e.Link })
		return err
	})
	return entries, more, err
}

// Stat describes a file or folder.
func (s *Live) Stat(ctx context.Context, path string) (info workspace.Entry, err error) {
	err = s.reached(ctx, func(l *guestlink.Link) error {
		info, err = l.Stat(ctx, path)
		return err
	})
	return info, err
}

// Read copies limit bytes (0: all) from offset on to w and returns the file's size. The error for a file that cannot be read comes before the first byte, and
// so does the one for asking for more bytes than a workspace can hold: a sparse file has any size.
func (s *Live) Read(ctx context.Context, path string, offset, limit int64, w io.Writer) (size int64, err error) {
	err = s.reached(ctx, func(l *guestlink.Link) error {
		c, err := l.OpenFile(ctx, path, offset, limit)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		size = c.Size
		if err := s.credible(c); err != nil {
			return err
		}
		if _, err = io.Copy(w, c); err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		return err
	})
	return size, err
}

// credible refuses a file that claims to have more than a workspace can hold.
func (s *Live) credible(c guestlink.Reading) error {
	if c.Len() <= s.opts.Limits.Workspace+growth {
		return nil
	}
	return problem.New(problem.FileTooLarge, fmt.Sprintf("the file claims to have %d MiB, but a workspace holds at most %d", c.Whole()>>20, s.opts.Limits.Workspace>>20)).
		WithHint("ask for a part of the file")
}

// Write puts r's bytes in a file and makes the folders that lead to it. When it fails, the file is as it was before; otherwise its content is replaced.
func (s *Live) Write(ctx context.Context, path string, r io.Reader) (workspace.Entry, error) {
	return s.write(ctx, path, r, putMode)
}

// Move gives a file or folder another name and makes the folders that lead to it. It never replaces anything.
func (s *Live) Move(ctx context.Context, from, to string) error {
	over, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer over()
	// All under the lock, because it is quick: an execution that ends meanwhile must not report the file under its new name as one that it made.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.awake(ctx); err != nil {
		return err
	}
	s.touched.Store(true)
	stamp, err := s.link.Move(ctx, from, to)
	if err != nil {
		return explain(s.sandbox, err)
	}
	for path, before := range s.below(from) {
		delete(s.known, path)
		s.known[to+strings.TrimPrefix(path, from)] = before
	}
	if _, isFile := s.known[to]; isFile {
		s.known[to] = stamp // a file's stamp changes with its name; the stamps of a folder's files do not
	}
	return nil
}

// Remove removes a file or an empty folder; with all a folder with what is in it.
func (s *Live) Remove(ctx context.Context, path string, all bool) error {
	return s.reached(ctx, func(l *guestlink.Link) error {
		s.touched.Store(true)
		if err := l.Remove(ctx, path, all); err != nil { // which can take long
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for gone := range s.below(path) {
			if s.link == l {
				delete(s.known, gone)
			}
		}
		return nil
	})
}

// MakeFolder makes a folder and those that lead to it. It succeeds when the folder exists already.
func (s *Live) MakeFolder(ctx context.Context, path string) error {
	return s.reached(ctx, func(l *guestlink.Link) error {
		s.touched.Store(true)
		return l.MakeFolder(ctx, path)
	})
}

// below returns what is known of a file, or of the files in a folder.
func (s *Live) below(path string) map[string]string {
	found := map[string]string{}
	for p, stamp := range s.known {
		if p == path || strings.HasPrefix(p, path+"/") {
			found[p] = stamp
		}
	}
	return found
}

// reached calls use with the connection to the sandbox. The session is not saved or left until use returns.
func (s *Live) reached(ctx context.Context, use func(*guestlink.Link) error) error {
	over, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer over()
	l, sb, err := s.connected(ctx)
	if err != nil {
		return err
	}
	return explain(sb, use(l))
}

func (s *Live) connected(ctx context.Context) (*guestlink.Link, sandbox.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.awake(ctx); err != nil {
		return nil, nil, err
	}
	return s.link, s.sandbox, nil
}
