// Package gobuild builds the program cove as it is given to others, for releases and for the container image.
package gobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Source says what is built, which the program tells in `cove version`.
type Source struct {
	Version string
	Commit  string    // the whole id
	Date    time.Time // of the commit
}

// Identify finds out which commit the sources in this folder are of, and refuses changes beside it. Sources that are no repository name theirs: COVE_COMMIT and SOURCE_DATE_EPOCH.
func Identify(ctx context.Context, version string) (Source, error) {
	s, seconds := Source{Version: version, Commit: os.Getenv("COVE_COMMIT")}, os.Getenv("SOURCE_DATE_EPOCH")
	if s.Commit == "" {
		changed, err := Output(ctx, "git", "status", "--porcelain")
		if err != nil {
			return s, fmt.Errorf("ask git for the commit (elsewhere, COVE_COMMIT and SOURCE_DATE_EPOCH name it): %w", err)
		}
		if changed != "" {
			return s, fmt.Errorf("what is given to others is built of a commit, and there are changes beside it:\n%s", changed)
		}
		if s.Commit, err = Output(ctx, "git", "rev-parse", "HEAD"); err != nil {
			return s, err
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{40,64}$`).MatchString(s.Commit) {
		return s, fmt.Errorf("%q is not the whole id of a commit", s.Commit)
	}
	if seconds == "" {
		var err error
		if seconds, err = Output(ctx, "git", "log", "-1", "--format=%ct", s.Commit); err != nil {
			return s, err
		}
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || epoch <= 0 {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and not seconds since 1970", seconds)
	}
	s.Date = time.Unix(epoch, 0).UTC()
	return s, nil
}

// Program compiles cove for linux and an architecture into the file to: static, stripped, without a path or a date of this machine. The folder of to exists.
func (s Source) Program(ctx context.Context, arch, to string) error {
	set := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s -X main.date=%s", s.Version, s.Commit, s.Date.Format(time.RFC3339))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", set, "-o", to, "./cmd/cove")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off")
	return Run(cmd)
}

// Run runs a program to its end. What it writes is told when it fails.
func Run(cmd *exec.Cmd) error {
	text, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err), errors.New(string(bytes.TrimSpace(text))))
	}
	return nil
}

// Output runs a program to its end and returns what it writes, without the white space around it.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
