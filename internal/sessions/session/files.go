package session

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

// changes returns the results that were created or changed since the last look.
func (s *Live) changes(ctx context.Context) ([]kernel.File, error) {
	listed, _, err := s.link.ListFiles(ctx)
	if err != nil {
		return nil, explain(s.sandbox, err)
	}
	var changed []kernel.File
	now := make(map[string]string, len(listed))
	for _, f := range listed {
		before, ok := s.known[f.Path]
		if s.writing[f.Path] > 0 {
			now[f.Path] = before // the kernel that writes it reports it
			continue
		}
		if !ok && f.Size == 0 && workspace.Unfinished(f.Path) {
			continue // it is created when something is in it
		}
		now[f.Path] = f.Stamp
		if (!ok || before != f.Stamp) && !workspace.Incidental(f.Path) {
			changed = append(changed, kernel.File{Path: f.Path, Size: f.Size, Created: !ok})
		}
	}
	s.known = now
	return changed, nil
}

// Put writes r's bytes to a workspace path (relative, slash-separated). They are lost with the sandbox; see PutFile.
func (s *Live) Put(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error {
	_, err := s.write(ctx, path, r, mode)
	return err
}

// PutFile copies a host file to a workspace path. When a sandbox is lost, it is copied again into the next one.
func (s *Live) PutFile(ctx context.Context, path, host string) error {
	err := opened(host, func(f *os.File, mode fs.FileMode) error {
		var r io.Reader = f
		if told, ok := ctx.Value(putting{}).(func(int64)); ok {
			r = &readTold{r: f, told: told}
		}
		_, err := s.write(ctx, path, r, mode)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs[path] = host
	return nil
}

// Putting has PutFile call told with the bytes of its file that were read so far.
func Putting(ctx context.Context, told func(bytes int64)) context.Context {
	return context.WithValue(ctx, putting{}, told)
}

type putting struct{}

// readTold tells how much was read.
type readTold struct {
	r    io.Reader
	n    int64
	told func(int64)
}

func (c *readTold) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	c.told(c.n)
	return n, err
}

// opened calls use with a host's file and its permissions.
func opened(host string, use func(f *os.File, mode fs.FileMode) error) error {
	f, err := os.Open(host)
	if err != nil {
		return problem.New(problem.InputUnreadable, "cannot read "+host).WithCause(err)
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return use(f, fi.Mode().Perm())
}

// write puts a file in that then counts as known, so that no execution is said to have made it.
func (s *Live) write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (workspace.Entry, error) {
	over, err := s.share(ctx)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer over()
	s.mu.Lock()
	if err := s.awake(ctx); err != nil {
		s.mu.Unlock()
		return workspace.Entry{}, err
	}
	l, sb := s.link, s.sandbox
	s.writing[path]++
	s.mu.Unlock()
	// Without mu: it takes as long as r does.
	info, err := l.Write(ctx, path, r, mode)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing[path]--; s.writing[path] == 0 {
		delete(s.writing, path)
	}
	if err == nil && s.link != l {
		err = problem.New(problem.SessionLost, "the sandbox was lost while the file was written")
	}
	if err != nil {
		return workspace.Entry{}, explain(sb, err)
	}
	s.known[path] = info.Stamp
	s.touched.Store(true)
	return info, nil
}

// Files lists the workspace.
func (s *Live) Files(ctx context.Context) (files []kernel.File, err error) {
	err = s.reached(ctx, func(l *guestlink.Link) error {
		listed, _, err := l.ListFiles(ctx)
		files = make([]kernel.File, 0, len(listed))
		for _, f := range listed {
			files = append(files, kernel.File{Path: f.Path, Size: f.Size})
		}
		return err
	})
	return files, err
}

// ReadFile returns at most the first limit bytes of a workspace file.
func (s *Live) ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	err := s.reached(ctx, func(l *guestlink.Link) error {
		_, err := l.ReadFile(ctx, path, limit, &b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Fetch copies a workspace file to w.
func (s *Live) Fetch(ctx context.Context, path string, w io.Writer) error {
	return s.reached(ctx, func(l *guestlink.Link) error {
		_, err := l.ReadFile(ctx, path, 0, w)
		return err
	})
}
