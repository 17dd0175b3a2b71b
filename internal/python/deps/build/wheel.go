package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/pyenv"
)

// bring fetches a source distribution, by its hash, and puts it into a room.
func (b *Builder) bring(ctx context.Context, room *room, g *gateway.Gateway, p pin, source gateway.File) error {
	if source.Size > b.options.Largest {
		return tooBig(fmt.Sprintf("the source of %s", p), b.options.Largest)
	}
	reader, writer := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		err := g.Fetch(ctx, p.name, source.Name, source.SHA256, &capped{Writer: writer, left: b.options.Largest}, nil)
		writer.CloseWithError(err)
		fetched <- err
	}()
	_, err := room.link.WriteFile(ctx, inFolder+"/"+source.Name, reader, 0o644)
	reader.CloseWithError(errors.New("the sandbox does not accept more data"))
	failure := <-fetched
	if errors.Is(failure, errTooMuch) {
		return tooBig(fmt.Sprintf("the source of %s", p), b.options.Largest)
	}
	if err != nil {
		err = room.explain(ctx, err)
	}
	return errors.Join(failure, err)
}

var errTooMuch = errors.New("more bytes than allowed")

// capped fails at more bytes than it has left.
type capped struct {
	io.Writer
	left int64
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errTooMuch
	}
	return c.Writer.Write(p)
}

var wheelName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._]*-[A-Za-z0-9.!+_]+(-[0-9][A-Za-z0-9_.]*)?-[A-Za-z0-9._]+-[A-Za-z0-9._]+-[A-Za-z0-9._]+\.whl$`)
})

// collect takes the one wheel out of a room whose build has ended.
func (b *Builder) collect(ctx context.Context, room *room, env *pyenv.Environment, p pin, dir string) (layer.Wheel, error) {
	names := &head{limit: 4096}
	code, err := room.run(ctx, names, io.Discard, "/bin/ls", "-1", "--", outFolder)
	if err != nil {
		return layer.Wheel{}, err
	}
	wheels := strings.Fields(names.text.String())
	if code != 0 || len(wheels) != 1 {
		return layer.Wheel{}, failed(p.String(), fmt.Sprintf("it made %d wheels instead of one", len(wheels)))
	}
	file := wheels[0]
	if why := misnamed(file, p); why != "" {
		return layer.Wheel{}, failed(p.String(), why)
	}
	made := gateway.Project{Files: []gateway.File{{Name: file, Version: p.version, Wheel: true}}}
	if _, fits, err := deps.Fit(env, made, p.version); err != nil || !fits {
		return layer.Wheel{}, errors.Join(err, failed(p.String(), fmt.Sprintf("it made %s, which does not fit this Python", file)))
	}
	w := layer.Wheel{Name: p.name, Version: p.version, File: file}
	if w.SHA256, w.Size, err = b.take(ctx, room, p, filepath.Join(dir, file)); err != nil {
		return layer.Wheel{}, err
	}
	return w, nil
}

// misnamed says why a file cannot be the wheel of a distribution.
func misnamed(file string, p pin) string {
	if len(file) > 200 || !wheelName().MatchString(file) {
		return fmt.Sprintf("it made %q, which is not the name of a wheel", clean(file, 100))
	}
	name, rest, _ := strings.Cut(file, "-")
	version, _, _ := strings.Cut(rest, "-")
	if require.Normalize(name) != p.name || require.Compare(strings.ReplaceAll(version, "_", "-"), p.version) != 0 {
		return fmt.Sprintf("it made %s, a wheel of another package", file)
	}
	return ""
}

// take copies a wheel out of a room to a file on the host, which appears whole or not at all.
func (b *Builder) take(ctx context.Context, room *room, p pin, path string) (sum string, size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-")
	if err != nil {
		return "", 0, unwritable(path, err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name()) // gone after the rename
	}()
	hash := sha256.New()
	size, err = room.link.ReadFile(ctx, outFolder+"/"+filepath.Base(path), b.options.Largest, io.MultiWriter(f, hash))
	if err != nil {
		var failure *os.PathError
		if errors.As(err, &failure) {
			return "", 0, unwritable(path, err)
		}
		return "", 0, failed(p.String(), "its wheel could not be read: "+problem.Of(room.explain(ctx, err)).Message)
	}
	if size > b.options.Largest {
		return "", 0, tooBig("the wheel that was made of "+p.String(), b.options.Largest)
	}
	if err := f.Close(); err != nil {
		return "", 0, unwritable(path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return "", 0, unwritable(path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

func tooBig(what string, limit int64) error {
	return problem.New(problem.BuildFailed, fmt.Sprintf("%s is larger than %d MiB", what, limit>>20)).WithHint("use a package or version that has wheels")
}

func unwritable(path string, err error) error {
	dir := filepath.Dir(path)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return problem.New(problem.DiskFull, "there is not enough free disk space at "+dir).
			WithHint("free some space there, or set COVE_HOME to a folder on a larger disk").WithCause(err)
	}
	return problem.New(problem.DataFolderUnusable, "cove cannot write to "+dir).
		WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
}
