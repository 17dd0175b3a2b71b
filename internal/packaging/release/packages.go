package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cove/internal/packaging/gobuild"
)

// tools are the programs of others that a release is made with, at the versions that .ci/release.mod pins.
func tools() []string {
	return []string{"github.com/goreleaser/nfpm/v2/cmd/nfpm", "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"}
}

// tool returns the path of one of the tools, which are built when the first is wanted.
func (r *release) tool(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(r.tmp, "tools")
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-modfile=.ci/release.mod", "-o", dir + "/"}, tools()...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	return path, gobuild.Run(cmd)
}

func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return cmd
}

// packages makes those of Debian, RPM and Alpine.
func (r *release) packages(ctx context.Context) error {
	nfpm, err := r.tool(ctx, "nfpm")
	if err != nil {
		return err
	}
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	for arch, stage := range r.stages {
		// Beside what the archive has, in a folder of its own: the archive was made without.
		if err := os.CopyFS(filepath.Join(stage, "package"), os.DirFS("deploy/package")); err != nil {
			return err
		}
		if err := date(stage, r.source.Date); err != nil {
			return err
		}
		for _, kind := range []string{"deb", "rpm", "apk"} {
			version := r.source.Version
			if kind == "apk" {
				version = alpineVersion(version)
			}
			cmd := command(ctx, stage, nfpm, "package", "--config", "package/nfpm.yaml", "--packager", kind, "--target", out+"/")
			cmd.Env = append(os.Environ(), "COVE_ARCH="+arch, "COVE_VERSION="+version, "COVE_DATE="+r.source.Date.Format(time.RFC3339),
				"SOURCE_DATE_EPOCH="+strconv.FormatInt(r.source.Date.Unix(), 10))
			if err := gobuild.Run(cmd); err != nil {
				return err
			}
		}
	}
	return nil
}

// alpineVersion returns a version in the form that Alpine knows, where what is before a release is one of four words and a number: 1.3.0_rc1. Any other word becomes "pre";
// nfpm would write 1.3.0_rc.1, which apk refuses.
func alpineVersion(version string) string {
	release, before, found := strings.Cut(version, "-")
	if !found {
		return release
	}
	if m := regexp.MustCompile(`^(alpha|beta|pre|rc)\.?(\d*)$`).FindStringSubmatch(before); m != nil {
		return release + "_" + m[1] + m[2]
	}
	return release + "_pre"
}

// date gives everything below a folder one date and modes that do not depend on the umask.
func date(dir string, when time.Time) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if entry.IsDir() || entry.Name() == "cove" {
			mode = 0o755
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
		return os.Chtimes(path, when, when)
	})
}
