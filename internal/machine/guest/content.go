package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"cove/internal/machine/wire"
)

// readPlace sends a file, of unknown size as far as wire.UnsizedLimit.
func (g *guest) readPlace(ch *wire.Channel, spec wire.FileSpec, offset, limit int64) error {
	if offset < 0 || limit < 0 {
		return fault{wire.FaultInvalid, "a negative offset or limit"}
	}
	var f *os.File
	as, err := g.rightsFor(spec)
	if err != nil {
		return err
	}
	err = as(func() error {
		p, err := g.find(spec.Path, false)
		if err == nil {
			f, err = os.OpenFile(p.full, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which a FIFO would hang without
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	size, err := regularSize(f, spec.Path)
	if err != nil {
		return err
	}
	var content io.ReadSeeker = f
	if size == 0 {
		text, err := io.ReadAll(io.LimitReader(f, wire.UnsizedLimit))
		if err != nil {
			return err
		}
		content, size = bytes.NewReader(text), int64(len(text))
	}
	return sendContent(ch, content, size, offset, limit)
}

// regularSize returns the size of what must be a regular file.
func regularSize(f *os.File, asked string) (int64, error) {
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fault{wire.FaultPath, fmt.Sprintf("%.300q is not a regular file", asked)}
	}
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// sendContent answers with the size of a file and then as much of it as is asked for, and never more than the size announced: code may be appending.
func sendContent(ch *wire.Channel, content io.ReadSeeker, size, offset, limit int64) error {
	if _, err := content.Seek(min(offset, size), io.SeekStart); err != nil {
		return err
	}
	if err := wire.WriteMessage(ch, wire.Response{Size: size}, nil); err != nil {
		return nil
	}
	n := max(0, size-offset)
	if limit > 0 {
		n = min(n, limit)
	}
	if _, err := io.CopyN(ch, content, n); err != nil {
		_ = ch.Reset(err.Error())
		return nil
	}
	_ = ch.CloseWrite()
	return nil
}

// writePlace puts what the host sends in the place of a file.
func (g *guest) writePlace(ch *wire.Channel, spec wire.FileSpec) error {
	set, err := newSetter(wire.EntrySet{})
	if spec.Set != nil {
		set, err = newSetter(*spec.Set)
	}
	if err != nil {
		return err
	}
	as, err := g.rightsFor(spec)
	if err != nil {
		return err
	}
	w := writing{g: g, replace: !spec.New, root: spec.Root}
	if err := as(func() error { return w.begin(spec.Path) }); err != nil {
		return err
	}
	defer w.end()
	_, err = io.Copy(w.part, ch)
	err = errors.Join(err, w.part.Close())
	var entry wire.Entry
	err = as(func() error {
		if err == nil {
			err = w.finish(set)
		}
		if err != nil {
			return errors.Join(err, os.Remove(w.name))
		}
		entry, err = w.to.entry(new(names), false)
		return err
	})
	if err != nil {
		return err
	}
	body, err := json.Marshal(entry)
	if err == nil {
		answer(ch, wire.Response{}, body)
	}
	return err
}

// writing is a file that is written under another name first, in the same folder: code never sees half a file.
type writing struct {
	g       *guest
	replace bool
	root    bool // who writes can give files to others
	to      place
	before  fs.FileInfo // what is there, or nil
	part    *os.File
	name    string // of part
	end     func()
}

// begin finds the place and opens the part.
func (w *writing) begin(asked string) (err error) {
	if w.to, err = w.g.find(asked, false); err != nil {
		return err
	}
	if w.to, err = w.to.through(); err != nil {
		return err
	}
	if err := w.to.makeWay(); err != nil {
		return err
	}
	before, err := os.Lstat(w.to.full)
	switch {
	case err == nil && !w.replace:
		return fault{wire.FaultExists, fmt.Sprintf("there is something at %.300q already", asked)}
	case err == nil && before.IsDir():
		return fault{wire.FaultExists, fmt.Sprintf("%.300q is a folder", asked)}
	case err == nil && !before.Mode().IsRegular():
		return fault{wire.FaultPath, fmt.Sprintf("%.300q is not a regular file", asked)}
	case err == nil:
		if err := mayWrite(w.to.full); err != nil {
			return err
		}
		w.before = before
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	name, end := w.g.parts.begin(w.to.folder())
	w.name = path.Join(w.to.folder(), name)
	if w.part, err = os.OpenFile(w.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600); err != nil {
		end()
		if p, ok := errors.AsType[*fs.PathError](err); ok { // about the file, and not about the part of which nobody knows
			p.Op, p.Path = "write", w.to.full
		}
		return err
	}
	w.end = end
	return nil
}

func systemInfo(fi fs.FileInfo) (*syscall.Stat_t, bool) {
	if fi == nil {
		return nil, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return st, ok
}

// mayWrite says whether a file may be written to: replacing one needs no right to it, but nobody expects that. access(2) asks for the real user, which is not the one
// whose rights are in force.
func mayWrite(full string) error {
	f, err := os.OpenFile(full, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, syscall.ETXTBSY) { // a program that runs goes on with what it has
		return nil
	}
	return err
}

// finish gives the part its mode and all else, and its name.
func (w *writing) finish(set setter) error {
	mode := fs.FileMode(0o644)
	if w.before != nil {
		mode = w.before.Mode().Perm()
	}
	err := error(nil)
	if st, ok := systemInfo(w.before); ok && w.root { // a file that is replaced stays whose it is
		err = os.Lchown(w.name, int(st.Uid), int(st.Gid))
	}
	if err == nil {
		err = os.Chmod(w.name, mode)
	}
	if err == nil {
		err = set.apply(w.name, false)
	}
	if err == nil {
		err = rename(w.name, w.to.full, w.replace)
	}
	return err
}
