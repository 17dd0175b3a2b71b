// Command release makes everything that a release of cove consists of, for `make release`: programs, archives, packages for Debian, RPM and Alpine, lists of
// what they are made of, and the sums of all that.
//
//	release -version 1.2.3 -out dist
//	release -version 1.2.3 -out dist -check   # makes it again elsewhere, and compares
//
// The bytes depend on the version and the commit alone: not on the folder, the day, the user or what is in a cache. It is run in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"cove/internal/packaging/gobuild"
)

func main() {
	version := flag.String("version", "", "the version, such as 1.2.3 or 1.3.0-rc.1")
	out := flag.String("out", "dist", "the folder to make; what a release made there before is replaced")
	check := flag.Bool("check", false, "make the release again from a copy of the sources elsewhere, with nothing cached, and compare it with what is in the folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *check {
		err = compareWithAnother(ctx, *version, *out)
	} else {
		err = makeRelease(ctx, *version, *out)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one that is being made.
type release struct {
	source gobuild.Source // every file has the date of its commit
	out    string
	tmp    string
	stages map[string]string // what one architecture's archive and packages have, by architecture
}

// architectures are those that are built for, as Go calls them.
func architectures() []string { return []string{"amd64", "arm64"} }

// checkVersion wants what semver.org calls a version.
func checkVersion(version string) error {
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`).MatchString(version) {
		return fmt.Errorf("%q is not a version such as 1.2.3 or 1.3.0-rc.1: make release VERSION=1.2.3", version)
	}
	return nil
}

// makeRelease puts a release into the folder out, whole: what was there before goes when the new one is made.
func makeRelease(ctx context.Context, version, out string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	if err := replaceable(out); err != nil {
		return err
	}
	source, err := gobuild.Identify(ctx, version)
	if err != nil {
		return err
	}
	r := &release{source: source, stages: map[string]string{}}
	if r.tmp, err = os.MkdirTemp("", "cove-release-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.tmp) }()
	r.out = filepath.Join(r.tmp, "out")
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the programs", r.programs}, {"the archives", r.archives}, {"the packages", r.packages}, {"what they are made of", r.materials}, {"the sums", r.sums},
	} {
		say("making " + step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("make %s: %w", step.what, err)
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.CopyFS(out, os.DirFS(r.out)); err != nil {
		return err
	}
	say(fmt.Sprintf("cove %s of commit %s is in %s", version, source.Commit[:12], out))
	return nil
}

// replaceable refuses to replace a folder that no release is in.
func replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, sumsFile)); err != nil {
		return fmt.Errorf("%s has files that are not of a release; remove it, or name another folder with DIST=", out)
	}
	return nil
}

// name is what the archive of an architecture, and the folder in it, are called.
func (r *release) name(arch string) string {
	return "cove-" + r.source.Version + "-linux-" + arch
}

func say(text string) { fmt.Fprintln(os.Stderr, "release: "+strings.TrimSpace(text)) }
