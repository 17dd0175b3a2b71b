package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
)

func open(r io.Reader, own About) (*tar.Reader, About, error) {
	t := tar.NewReader(r)
	h, err := t.Next()
	if err != nil || h.Name != aboutName || h.Typeflag != tar.TypeReg {
		return nil, About{}, invalid(err)
	}
	a, err := readAbout(t)
	if err == nil {
		err = a.check(own)
	}
	return t, a, err
}

// Unpack writes the files of a bundle into the folder dir, which exists and is empty, without folders of their own: the program as "cove" and each wheel by its name. It returns
// when every one of them is there with the sum that it should have. After an error what is in dir is of no use.
//
// Problems: bundle_invalid, bundle_unfit, file_unwritable, canceled.
func Unpack(ctx context.Context, r io.Reader, own About, dir string) (About, error) {
	t, a, err := open(r, own)
	if err != nil {
		return a, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return a, unwritable(dir, err)
	}
	defer func() { _ = root.Close() }()
	for _, f := range a.Files { // they come in this order
		if ctx.Err() != nil {
			return a, problem.New(problem.GivenUp, "unpacking the bundle was cancelled").WithCause(context.Cause(ctx))
		}
		h, err := t.Next()
		if err != nil {
			return a, invalid(err)
		}
		if h.Name != f.Name || h.Typeflag != tar.TypeReg || h.Size != f.Size {
			return a, invalid(fmt.Errorf("it has %.200q where %q should be", h.Name, f.Name))
		}
		if err := unpackFile(root, f, t); err != nil {
			return a, err
		}
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return a, invalid(errors.Join(errors.New("it has more than it lists"), err))
	}
	return a, nil
}

func unpackFile(root *os.Root, f File, r io.Reader) error {
	mode := os.FileMode(0o644)
	if f.Name == Program {
		mode = 0o755
	}
	to, err := root.OpenFile(strings.TrimPrefix(f.Name, wheelsDir), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return unwritable(root.Name(), err)
	}
	sum, source := sha256.New(), &problem.Source{From: r}
	_, err = io.Copy(io.MultiWriter(to, sum), source)
	if err = errors.Join(err, to.Close()); source.Failed != nil {
		return invalid(source.Failed)
	} else if err != nil {
		return unwritable(filepath.Join(root.Name(), f.Name), err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return invalid(fmt.Errorf("%s has the SHA-256 %s, and should have %s", f.Name, got, f.SHA256))
	}
	return nil
}

func unwritable(path string, err error) error {
	return problem.New(problem.FileUnwritable, "cannot write "+path).WithCause(err)
}
