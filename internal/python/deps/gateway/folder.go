package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cove/internal/core/problem"
)

// folder is a local folder of wheels (find-links). It is the user's own, so that its files need no age.
type folder struct {
	dir   string
	shown string
	now   func() time.Time
}

func (f *folder) name() string {
	if f.shown == "" {
		return f.dir
	}
	return f.shown
}

func (f *folder) key() string {
	sum := sha256.Sum256([]byte(f.dir))
	return "folder-" + hex.EncodeToString(sum[:8])
}

func (f *folder) pageOf(project string) string { return project }
func (f *folder) trusted() bool                { return true }
func (f *folder) local() bool                  { return true }

// refresh lists the project's files. Those that the old page has, and that have not changed, are not read again.
func (f *folder) refresh(ctx context.Context, project string, old *page) (*page, error) {
	names, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, problem.New(problem.IndexUnreachable, "the folder of wheels "+f.name()+" cannot be read").
			WithHint("make it readable, or remove it from UV_FIND_LINKS and PIP_FIND_LINKS").WithCause(err)
	}
	known := map[string]entry{}
	if old != nil {
		for _, e := range old.entries {
			known[e.name] = e
		}
	}
	p := &page{fetched: f.now()}
	same := old != nil
	for _, item := range names {
		if _, _, ok := parseName(project, item.Name()); !ok || !plainName(item.Name()) {
			continue
		}
		info, err := os.Stat(filepath.Join(f.dir, item.Name()))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		modified := info.ModTime().UTC().Truncate(time.Microsecond)
		if e, was := known[item.Name()]; was && e.size == info.Size() && e.modified.Equal(modified) {
			p.entries = append(p.entries, e)
			continue
		}
		same = false
		e := entry{name: item.Name(), size: info.Size(), modified: modified, uploaded: modified}
		if e.sha256, err = fileSum(ctx, filepath.Join(f.dir, item.Name())); err != nil {
			continue
		}
		p.entries = append(p.entries, e)
	}
	p.absent = len(p.entries) == 0
	if same && len(p.entries) == len(old.entries) {
		p.sum = old.sum
	}
	return p, nil
}

func fileSum(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &canceling{ctx: ctx, from: file}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// canceling reads until its context ends.
type canceling struct {
	ctx  context.Context
	from io.Reader
}

func (c *canceling) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// open opens a file at an offset, which it honours as far as a range goes.
func (f *folder) open(ctx context.Context, ask transferRequest) (*transfer, error) {
	if ask.metadata {
		return nil, gone(ask.entry.name, f.name())
	}
	file, err := os.Open(filepath.Join(f.dir, ask.entry.name))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, gone(ask.entry.name, f.name())
		}
		return nil, fmt.Errorf("open a wheel of %s: %w", f.name(), err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open a wheel of %s: %w", f.name(), err)
	}
	return &transfer{Reader: &canceling{ctx: ctx, from: file}, close: file.Close, total: info.Size(), file: file}, nil
}
