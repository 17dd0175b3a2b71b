// Command container makes the container image of cove, for `make image`, without a Docker daemon, and the seccomp profile that the image is run with, for `make seccomp`.
//
//	container -version 1.2.3 -out dist/cove-image.tar              # needs Debian's apt, and root for the environment and the warm interpreter
//	container -version 1.2.3 -out dist/cove-image.tar -ahead=false # without these
//	container seccomp DEFAULT.json > deploy/seccomp/cove.json
//
// It is run in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cove/internal/packaging/gobuild"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case len(os.Args) > 2 && os.Args[1] == inside: // this program, started by itself in the root of the image
		err = runInside(ctx, os.Args[2], os.Args[3:])
	case len(os.Args) == 3 && os.Args[1] == "seccomp":
		err = writeProfile(os.Stdout, os.Args[2])
	default:
		err = create(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

// maker makes one image.
type maker struct {
	gobuild.Source // no file of the image has a later date
	tmp            string
	ahead          bool // with the Python environment and the warm interpreter
}

func create(ctx context.Context) (err error) {
	version := flag.String("version", "", "the version, such as 1.2.3")
	out := flag.String("out", "dist/cove-image.tar", "the file to write: an OCI layout that docker load takes as well")
	ahead := flag.Bool("ahead", true, "put the Python environment and the warm interpreter into the image of this machine's architecture; needs root")
	architectures := flag.String("architectures", "amd64,arm64", "what to build for")
	flag.Parse()
	if *version == "" || flag.NArg() > 0 {
		return errors.New("say which version it is: make image VERSION=1.2.3")
	}
	if *ahead && os.Geteuid() != 0 {
		return errors.New("the Python environment and the warm interpreter are made in the image's own root file system, which takes root: use sudo, or leave them out (AHEAD=false)")
	}
	m := maker{ahead: *ahead}
	if m.Source, err = gobuild.Identify(ctx, *version); err != nil {
		return err
	}
	if m.tmp, err = os.MkdirTemp("", "cove-image-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.tmp)) }()
	if err := os.Chmod(m.tmp, 0o755); err != nil { // who makes the warm interpreter is not root, and looks for it from below
		return err
	}
	var built []platform
	for _, arch := range strings.Split(*architectures, ",") {
		p, err := m.platform(ctx, arch)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		built = append(built, p)
	}
	return m.write(*out, built)
}

// cove is where it is in the image.
const cove = "usr/local/bin/cove"

// notices is the folder with the licences of what the program contains.
const notices = "usr/share/doc/cove"

// platform is what the image of one architecture is made of.
type platform struct {
	arch   string
	layers []string // archives, lowest first
}

func (m maker) platform(ctx context.Context, arch string) (platform, error) {
	if !slices.Contains([]string{"amd64", "arm64"}, arch) {
		return platform{}, errors.New("cove is built for amd64 and arm64")
	}
	p, dir := platform{arch: arch}, filepath.Join(m.tmp, arch)
	root := filepath.Join(dir, "root")
	if err := m.base(ctx, arch, dir, root); err != nil {
		return p, fmt.Errorf("unpack Debian's packages: %w", err)
	}
	add := func(name string, folders ...string) error {
		path := filepath.Join(dir, name+".tar")
		p.layers = append(p.layers, path)
		return m.pack(path, root, folders)
	}
	native := arch == ownArchitecture()
	if m.ahead && native {
		if err := compileLibrary(ctx, root); err != nil {
			return p, fmt.Errorf("compile Python's library: %w", err)
		}
	}
	if err := add("base", "."); err != nil {
		return p, err
	}
	fmt.Fprintf(os.Stderr, "Building cove for %s.\n", arch)
	to := filepath.Join(root, cove)
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), m.Program(ctx, arch, to)); err != nil {
		return p, err
	}
	docs := filepath.Join(root, notices)
	if err := errors.Join(os.MkdirAll(docs, 0o755), gobuild.WriteNotices(ctx, arch, filepath.Join(docs, gobuild.Notices))); err != nil {
		return p, err
	}
	if !m.ahead || !native {
		return p, add("cove", cove, notices)
	}
	if err := m.makeAhead(ctx, root, filepath.Join(dir, "data")); err != nil {
		return p, fmt.Errorf("make the Python environment and the warm interpreter: %w", err)
	}
	// What changes least comes first: a new cove leaves the layer of the environment as it is.
	return p, errors.Join(add("environment", aheadFolder[1:]+"/pyenv", uv), add("cove", cove, notices), add("template", aheadFolder[1:]+"/templates"))
}
