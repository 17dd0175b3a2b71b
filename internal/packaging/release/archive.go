package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cove/internal/packaging/gobuild"
)

// sumsFile has the SHA-256 of every other file of a release, as sha256sum writes and reads it.
const sumsFile = "SHA256SUMS"

// archives packs what an architecture has, and puts the script that installs it beside.
func (r *release) archives(context.Context) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for arch, stage := range r.stages {
		if err := pack(filepath.Join(r.out, r.name(arch)+".tar.gz"), stage, r.source.Date); err != nil {
			return err
		}
	}
	script, err := os.ReadFile("deploy/install.sh")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "install.sh"), script, 0o755)
}

// pack writes a folder as an archive whose bytes depend on the contents, the names and the date alone: the files are in the order of their names, and nobody's.
func pack(archive, dir string, date time.Time) error {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t := tar.NewWriter(packed)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(dir), path)
		if err != nil {
			return err
		}
		return add(t, path, filepath.ToSlash(name), entry, date)
	})
	return errors.Join(err, t.Close(), packed.Close(), f.Close())
}

func add(t *tar.Writer, path, name string, entry fs.DirEntry, date time.Time) error {
	h := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: date, Format: tar.FormatUSTAR}
	if entry.IsDir() {
		return t.WriteHeader(h)
	}
	if !entry.Type().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	h.Typeflag, h.Name, h.Size, h.Mode = tar.TypeReg, name, int64(len(text)), 0o644
	if filepath.Base(path) == "cove" {
		h.Mode = 0o755
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = t.Write(text)
	return err
}

// sums writes the sums of all files of the release.
func (r *release) sums(context.Context) error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, sumsFile), []byte(list.String()), 0o644)
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// compareWithAnother makes the release of the same commit again, from a copy of the sources at another path and with nothing cached, and says which files differ.
func compareWithAnother(ctx context.Context, version, out string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, sumsFile)); err != nil {
		return fmt.Errorf("there is no release in %s to compare with; make release VERSION=%s makes it: %w", out, version, err)
	}
	tmp, err := os.MkdirTemp("", "cove-another-place-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	tree, again := filepath.Join(tmp, "sources"), filepath.Join(tmp, "dist")
	if _, err := gobuild.Output(ctx, "git", "clone", "--quiet", "--no-hardlinks", ".", tree); err != nil {
		return err
	}
	say("making it again in " + tree + ", with nothing cached; that takes some minutes")
	cmd := command(ctx, tree, "go", "run", "./internal/packaging/release", "-version", version, "-out", again)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(tmp, "cache"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	differing, count, err := differences(out, again)
	if err != nil {
		return err
	}
	if len(differing) > 0 {
		return fmt.Errorf("of the release made twice, these differ: %s", strings.Join(differing, ", "))
	}
	say(fmt.Sprintf("made twice, all %d files have the same bytes", count))
	return nil
}

// differences returns the names that two folders do not both have with the same bytes, and how many files there are in the first.
func differences(a, b string) (names []string, count int, err error) {
	texts := [2]map[string][]byte{{}, {}}
	for i, dir := range []string{a, b} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range entries {
			sum, err := sumOf(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, 0, err
			}
			texts[i][e.Name()] = []byte(sum)
		}
	}
	for name, sum := range texts[0] {
		if !bytes.Equal(sum, texts[1][name]) {
			names = append(names, name)
		}
	}
	for name := range texts[1] {
		if texts[0][name] == nil {
			names = append(names, name)
		}
	}
	return names, len(texts[0]), nil
}
