package pyenv

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// FindMinor is FindPython for a Python of one minor version, "3.11". explicit may still name it.
func FindMinor(ctx context.Context, set Set, explicit, minor string) (Interpreter, error) {
	names := []string{explicit}
	if explicit == "" {
		names = append(onPath("python"+minor), onPath("python3")...)
	}
	var other []string
	for _, name := range names {
		python, err := FindPython(ctx, set, name)
		switch {
		case err == nil && strings.HasPrefix(python.Version, minor+"."):
			return python, nil
		case err == nil:
			other = append(other, python.Path+" is "+python.Version)
		case explicit != "" || ctx.Err() != nil:
			return Interpreter{}, err
		}
	}
	p := problem.New(problem.PythonNotFound, "a Python "+minor+" is needed, and none was found").WithHint("install it, or set COVE_PYTHON to its path")
	if len(other) > 0 {
		p = p.WithCause(errors.New(strings.Join(other, "; ")))
	}
	return Interpreter{}, p
}

// mostUV is how large uv may be, in bytes.
const mostUV = 200 << 20

// unpackUV puts uv from its wheel, whose hash the lock has, below the tools folder. The caller holds the lock.
func (b *builder) unpackUV() error {
	found, err := filepath.Glob(filepath.Join(b.wheels, "uv-*.whl"))
	if err != nil || len(found) != 1 {
		return problem.New(problem.UVNotFound, fmt.Sprintf("there are %d wheels of uv in %s, and one is needed", len(found), b.wheels)).WithHint("make the bundle again")
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return fmt.Errorf("read uv's wheel: %w", err)
	}
	sum := sha256.Sum256(text)
	if pin := Pins(asset("locks/uv.txt"))[0]; !slices.Contains(pin.SHA256, hex.EncodeToString(sum[:])) {
		return problem.New(problem.PackageHashMismatch, filepath.Base(found[0])+" is not the uv that cove was built for (its hash differs)").WithHint("make the bundle again")
	}
	wheel, err := zip.OpenReader(found[0])
	if err != nil {
		return fmt.Errorf("open uv's wheel: %w", err)
	}
	defer func() { _ = wheel.Close() }()
	for _, f := range wheel.File {
		if strings.HasSuffix(f.Name, ".data/scripts/uv") {
			return b.placeUV(f)
		}
	}
	return problem.New(problem.UVNotFound, "the wheel "+filepath.Base(found[0])+" has no uv").WithHint("make the bundle again")
}

func (b *builder) placeUV(f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return fmt.Errorf("open uv in its wheel: %w", err)
	}
	defer func() { _ = from.Close() }()
	path := ownUV(b.tools)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make tools folder: %w", err)
	}
	if err := durable.Replace(path, 0o755, io.LimitReader(from, mostUV)); err != nil {
		return fmt.Errorf("install uv: %w", err)
	}
	return nil
}
