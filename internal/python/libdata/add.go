package libdata

import (
	"archive/zip"
	"context"
	"crypto/md5" //nolint:gosec // NLTK's index has no other sums of older packages
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

// Options say where an item comes from and how large it may be.
type Options struct {
	Place string // an https:// or http:// address, or a folder; "" is the library's own
	Most  int64  // bytes, before and after unpacking; 0 is no limit
	// Told is called with the bytes that have come so far; nil: nobody wants to know.
	Told func(received int64)
}

// Add fetches an item and all that it consists of. What is there already is fetched anew. Problems: data_invalid, data_unknown, data_unreachable, data_damaged, data_too_large.
func (s *Store) Add(ctx context.Context, i Item, o Options) (Record, error) {
	recipe := libraries[i.Library]
	if o.Place == "" {
		o.Place = recipe.place
	}
	if o.Place == "" {
		return Record{}, problem.New(problem.DataInvalid, "where "+i.Library+"'s data comes from is not said").
			WithHint("cove data add " + i.String() + " --from FOLDER")
	}
	work, err := os.MkdirTemp(s.dir, "adding-")
	if err != nil {
		return Record{}, fmt.Errorf("add %s: %w", i, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	a := &adding{ctx: ctx, item: i, options: o, work: work, source: sourceOf(o.Place)}
	if err := recipe.fetch(a); err != nil {
		return Record{}, err
	}
	if len(a.files) == 0 {
		return Record{}, problem.New(problem.DataUnknown, o.Place+" has no "+i.Name)
	}
	slices.SortFunc(a.files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	return s.publish(work, i, o.Place, a.files)
}

// adding is one Add while it goes on.
type adding struct {
	ctx     context.Context
	item    Item
	options Options
	work    string
	source  source
	files   []File
	size    int64 // bytes that were written
}

// sums are what a file is checked against; "" is not known.
type sums struct{ md5, sha256 string }

// text fetches a small file.
func (a *adding) text(name string) ([]byte, error) {
	const most = 32 << 20
	r, err := a.source.open(a.ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, unreachable(a.options.Place, err)
	case len(text) > most:
		return nil, problem.New(problem.DataTooLarge, name+" of "+a.options.Place+" is larger than such a file is")
	}
	return text, nil
}

// file fetches a file of the source to a path below the mount.
func (a *adding) file(name, to string, want sums) error {
	r, err := a.source.open(a.ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return a.write(r, name, to, want)
}

func (a *adding) write(r io.Reader, name, to string, want sums) error {
	if !fs.ValidPath(to) || len(a.files) == mostFiles {
		return problem.New(problem.DataDamaged, fmt.Sprintf("%s has a file %.100q that it must not have", a.item, to))
	}
	target := filepath.Join(a.work, to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("add %s: %w", a.item, err)
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("add %s: %w", a.item, err)
	}
	defer func() { _ = f.Close() }()
	strong, weak := sha256.New(), md5.New() //nolint:gosec // as above
	size, err := io.Copy(io.MultiWriter(f, strong, weak), &counted{r, a})
	var too *problem.Error
	switch {
	case errors.As(err, &too):
		return err
	case err != nil:
		return unreachable(a.options.Place, err)
	}
	sum := hex.EncodeToString(strong.Sum(nil))
	if want.sha256 != "" && !strings.EqualFold(want.sha256, sum) || want.sha256 == "" && want.md5 != "" && !strings.EqualFold(want.md5, hex.EncodeToString(weak.Sum(nil))) {
		return problem.New(problem.DataDamaged, name+" of "+a.options.Place+" is not what its index says").WithHint("try again; if it stays so, what is offered there was changed")
	}
	a.files = append(a.files, File{Path: filepath.ToSlash(to), Size: size, SHA256: sum})
	return errors.Join(f.Sync(), f.Close())
}

// counted counts what is written against the item's limit.
type counted struct {
	r io.Reader
	a *adding
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.a.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.a.size += int64(n)
	if most := c.a.options.Most; most > 0 && c.a.size > most {
		return n, problem.New(problem.DataTooLarge, fmt.Sprintf("%s is larger than %d bytes", c.a.item, most)).WithHint("allow more with --most SIZE")
	}
	if c.a.options.Told != nil {
		c.a.options.Told(c.a.size)
	}
	return n, err
}

// unzip unpacks a file that was fetched, into a folder below the mount. Only plain files are taken, and of those the ones that keep accepts.
func (a *adding) unzip(from, into string, keep func(name string) bool) error {
	damaged := func(why string) error {
		return problem.New(problem.DataDamaged, fmt.Sprintf("the archive of %s cannot be unpacked: %s", a.item, why))
	}
	z, err := zip.OpenReader(filepath.Join(a.work, from))
	if err != nil {
		return damaged(err.Error())
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if f.FileInfo().IsDir() || !keep(f.Name) {
			continue
		}
		if !fs.ValidPath(f.Name) || !f.Mode().IsRegular() {
			return damaged(fmt.Sprintf("it has %.100q", f.Name))
		}
		r, err := f.Open()
		if err != nil {
			return damaged(err.Error())
		}
		err = a.write(r, f.Name, path.Join(into, f.Name), sums{})
		_ = r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// forget takes a file that was only needed on the way out again.
func (a *adding) forget(to string) {
	a.files = slices.DeleteFunc(a.files, func(f File) bool { return f.Path == to })
	_ = os.Remove(filepath.Join(a.work, to))
}
