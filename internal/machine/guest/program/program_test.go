package program_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/machine/guest/program"
	"cove/internal/testkit/testneeds"
)

// toolchain is the Go that builds the guest. Another one would give other bytes.
const toolchain = "go1.26.8"

// budget bounds one compressed guest, in bytes: they are part of the repository and of every cove.
const budget = 1800 << 10

var update = flag.Bool("update", false, "write the guests anew")

// TestProgramsAreCurrent builds the guests from their sources and compares them byte by byte. Where their Go cannot be had, the digest of the sources is compared.
func TestProgramsAreCurrent(t *testing.T) {
	t.Parallel()
	sources := digestOf(t, "../../../../cmd/cove-guest", "..", "../../wire")
	if !*update {
		noted, err := os.ReadFile("guest.sources")
		if err != nil || strings.TrimSpace(string(noted)) != sources {
			t.Errorf("the guest's sources have changed since it was built (%v): run `make guest`, and commit what that writes", err)
		}
	}
	for _, arch := range []string{"amd64", "arm64"} {
		built := build(t, arch)
		want, err := program.IDOf(bytes.NewReader(built))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			write(t, arch, want, built)
		}
		packed, err := os.ReadFile("guest_" + arch + ".gz")
		if err != nil {
			t.Fatal(err)
		}
		if len(packed) > budget {
			t.Errorf("the guest for %s has %d bytes, more than the %d that it may have", arch, len(packed), budget)
		}
		if !bytes.Equal(unpack(t, packed), built) {
			t.Errorf("the guest for %s is not what its sources give: run `make guest`, and commit what that writes", arch)
		}
		if id, err := os.ReadFile("guest_" + arch + ".id"); err != nil || strings.TrimSpace(string(id)) != want {
			t.Errorf("the id of the guest for %s is %q (%v), not %s", arch, id, err, want)
		}
	}
	if *update {
		put(t, "guest.sources", []byte(sources+"\n"))
	}
}

func write(t *testing.T, arch, id string, built []byte) {
	t.Helper()
	if packed, err := os.ReadFile("guest_" + arch + ".gz"); err == nil && len(packed) > 0 && bytes.Equal(unpack(t, packed), built) {
		return
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(built); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, "guest_"+arch+".gz", packed.Bytes())
	put(t, "guest_"+arch+".id", []byte(id+"\n"))
}

func put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// build returns what the sources give, which depends on nothing but them and the toolchain.
func build(t *testing.T, arch string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cove-guest")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path, "cove/cmd/cove-guest")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GODEBUG=")
	if out, err := cmd.CombinedOutput(); err != nil {
		if which, werr := exec.Command("go", "env", "GOVERSION").Output(); werr != nil || strings.TrimSpace(string(which)) != toolchain {
			testneeds.Absent(t, testneeds.Need(toolchain), string(out))
		}
		t.Fatalf("build the guest: %v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// digestOf is a digest of the Go files of folders, but for tests.
func digestOf(t *testing.T, folders ...string) string {
	t.Helper()
	h := sha256.New()
	for _, dir := range folders {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no sources in %s: %v", dir, err)
		}
		for _, path := range found {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(text)
			h.Write(append(sum[:], filepath.Base(path)...))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestIsInstalledAndNoted(t *testing.T) {
	t.Parallel()
	guests, image := filepath.Join(t.TempDir(), "guests"), t.TempDir()
	path, err := program.Install(guests)
	if err != nil {
		t.Fatal(err)
	}
	again, err := program.Install(guests)
	if err != nil || again != path {
		t.Errorf("installed again as %s, not %s: %v", again, path, err)
	}
	if _, err := program.Noted(image, guests); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was noted: %v", err)
	}
	if err := program.Note(path, image); err != nil {
		t.Fatal(err)
	}
	if noted, err := program.Noted(image, guests); err != nil || noted != path {
		t.Errorf("noted is %s, not %s: %v", noted, path, err)
	}
	elsewhere, err := program.Install(filepath.Join(t.TempDir(), "guests"))
	if err != nil {
		t.Fatal(err)
	}
	a, errA := os.Stat(path)
	b, errB := os.Stat(elsewhere)
	if errA != nil || errB != nil || a.Mode().Perm() != 0o755 || !a.ModTime().Equal(b.ModTime()) {
		t.Errorf("a saved sandbox would not know its guest again: %v %v, %v %v", a, b, errA, errB)
	}
	if _, err := program.Noted(image, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the guest is not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(image, "guest"), []byte("../../bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := program.Noted(image, guests); err == nil {
		t.Errorf("any file is taken for a guest: %s", path)
	}
}
