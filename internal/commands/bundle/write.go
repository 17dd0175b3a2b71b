package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Source is a file for a bundle.
type Source struct {
	Name string // Program, or WheelName of one
	Path string // on this machine
}

// WheelName is what a wheel is called in a bundle.
func WheelName(file string) string { return wheelsDir + file }

// Write writes a bundle with these files, the program first. What a.Files has is made here.
func Write(ctx context.Context, w io.Writer, a About, sources []Source) error {
	a.Form, a.Files = form, nil
	for _, s := range sources {
		f, err := describe(s)
		if err != nil {
			return err
		}
		a.Files = append(a.Files, f)
	}
	if err := a.check(a); err != nil {
		return err
	}
	text, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if err := t.WriteHeader(header(aboutName, int64(len(text)))); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	for i, s := range sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := add(t, s, a.Files[i]); err != nil {
			return err
		}
	}
	return t.Close()
}

// header is that of a member: nobody's, and of no day, so that the same contents are the same bundle.
func header(name string, size int64) *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)}
	if name == Program {
		h.Mode = 0o755
	}
	return h
}

func describe(s Source) (File, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	return File{Name: s.Name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

func add(t *tar.Writer, s Source, as File) error {
	f, err := os.Open(s.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.WriteHeader(header(as.Name, as.Size)); err != nil {
		return err
	}
	if n, err := io.Copy(t, f); err != nil || n != as.Size {
		return errors.Join(fmt.Errorf("%s changed while it was read", s.Path), err)
	}
	return nil
}
