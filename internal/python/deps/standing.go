package deps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cove/internal/core/problem"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// The files of a Standing. The first is written by people too, the second by Lock alone.
const (
	StandingFile = "cove-packages.txt"
	LockFile     = "cove-packages.lock"
)

// Standing are the packages that sessions of a project, or all sessions, begin with. They are listed as requirements in cove-packages.txt; cove-packages.lock beside
// it has the exact versions of their whole closure, with hashes.
type Standing struct {
	Dir          string                // where the two files are, or will be
	Project      bool                  // Dir is a project's; otherwise what is in it holds where there is no project
	Requirements []require.Requirement // in the order of the file
	Locked       map[string]string     // distribution to version, of the lock; nil when there is none

	text string // of the file
	lock *lock
}

// FindStanding returns the standing packages of the project that dir belongs to, which is the nearest folder above with a cove-packages.txt of the user's own, or else
// those in <data>/packages, which hold everywhere. It may be empty. Problems: requirement_invalid, requirement_not_allowed, lock_invalid.
func FindStanding(dir, data string) (*Standing, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("locate the project: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, StandingFile)); err == nil && info.Mode().IsRegular() && isOurs(info) {
			return StandingIn(at)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	s, err := StandingIn(filepath.Join(data, "packages"))
	if err != nil {
		return nil, err
	}
	s.Project = false
	return s, nil
}

// isOurs says whether a file is the user's own or the system's: others must not decide what is installed in a folder that they can write to.
func isOurs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(s.Uid) == os.Geteuid() || s.Uid == 0)
}

// StandingIn returns the standing packages of the project in dir, which may have none yet.
func StandingIn(dir string) (*Standing, error) {
	s := &Standing{Dir: dir, Project: true}
	text, err := os.ReadFile(filepath.Join(dir, StandingFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.RequirementsUnreadable, "the list of packages "+filepath.Join(dir, StandingFile)+" cannot be read").WithCause(err)
	}
	s.text = string(text)
	if s.Requirements, err = require.ParseAll(s.text); err != nil {
		return nil, s.Blamed(err)
	}
	if s.lock, err = readLock(filepath.Join(dir, LockFile)); err != nil {
		return nil, err
	}
	if s.lock != nil {
		s.Locked = map[string]string{}
		for _, e := range s.lock.entries {
			s.Locked[e.name] = e.version
		}
	}
	return s, nil
}

// File is the path of the list.
func (s *Standing) File() string { return filepath.Join(s.Dir, StandingFile) }

// Blamed is an error about what the list asks for, with the list in its words: who runs something in a folder need not know of a list in one above it.
func (s *Standing) Blamed(err error) error {
	p := problem.Of(err)
	if strings.Contains(p.Message, s.File()) || p.Kind == problem.Canceled {
		return err
	}
	blamed := p.Reworded(fmt.Sprintf("%s asks for packages that sessions here begin with: %s", s.File(), p.Message))
	if blamed.Hint == "" {
		return blamed.WithHint("edit that file, or work in another folder")
	}
	return blamed.WithHint(blamed.Hint + "; or edit " + s.File())
}

// Add installs requirements beside those that are there, changing as few versions as it can, and writes both files. When it fails, or when something of what is
// asked for is refused, both stay as they were; the Provision says what was refused.
func (s *Standing) Add(ctx context.Context, i *Installer, asked []require.Requirement, told func(installation.Progress)) (installation.Provision, error) {
	next := slices.Clone(s.Requirements)
	for _, r := range asked {
		at := slices.IndexFunc(next, func(old require.Requirement) bool { return old.Name == r.Name && old.Marker == r.Marker })
		if at < 0 {
			next = append(next, r)
		} else {
			next[at] = r
		}
	}
	return s.renew(ctx, i, next, s.Locked, told)
}

// Remove takes packages off by their names, and writes both files. Problems: package_not_listed, and those of Add.
func (s *Standing) Remove(ctx context.Context, i *Installer, names []string, told func(installation.Progress)) (installation.Provision, error) {
	next := slices.Clone(s.Requirements)
	for _, name := range names {
		before := len(next)
		next = slices.DeleteFunc(next, func(r require.Requirement) bool { return r.Name == require.Normalize(name) })
		if len(next) == before {
			return installation.Provision{}, problem.New(problem.PackageNotListed, fmt.Sprintf("%s is not listed in %s", name, filepath.Join(s.Dir, StandingFile))).
				WithHint("\"cove packages ls\" lists the packages")
		}
	}
	return s.renew(ctx, i, next, s.Locked, told)
}

// Lock looks for the newest versions that fit and writes the lock.
func (s *Standing) Lock(ctx context.Context, i *Installer, told func(installation.Progress)) (installation.Provision, error) {
	return s.renew(ctx, i, s.Requirements, nil, told)
}

// renew installs requirements and, when all goes well, writes the files.
func (s *Standing) renew(ctx context.Context, i *Installer, next []require.Requirement, prefer map[string]string, told func(installation.Progress)) (installation.Provision, error) {
	unlock, err := locked(ctx, filepath.Join(i.dir, "locks", "standing"))
	if err != nil {
		return installation.Provision{}, err
	}
	defer unlock()
	p, versions, err := i.standing(ctx, next, prefer, prefer == nil, told)
	if err != nil || len(p.Refused) > 0 {
		return p, err
	}
	made, err := i.lockOf(ctx, versions)
	if err != nil {
		return p, err
	}
	text := edited(s.text, next)
	if err := writeProject(filepath.Join(s.Dir, LockFile), made.String()); err != nil {
		return p, err
	}
	if text != s.text {
		if err := writeProject(filepath.Join(s.Dir, StandingFile), text); err != nil {
			return p, err
		}
	}
	s.text, s.Requirements, s.lock, s.Locked = text, next, made, versions
	return p, nil
}

// Begin returns what a session begins with: exactly what the lock says where it is for this kind of machine, else the versions closest to it. It writes no files.
// The Provision's State is the session's, whose Paths belong to the kernel from its start; nothing has to be added.
func (s *Standing) Begin(ctx context.Context, i *Installer, told func(installation.Progress)) (installation.Provision, error) {
	if len(s.Requirements) == 0 {
		return installation.Provision{Cached: true}, nil
	}
	why, err := i.unfit(s)
	if err != nil {
		return installation.Provision{}, err
	}
	if why == "" {
		return i.fromLock(ctx, s, told)
	}
	p, _, err := i.standing(ctx, s.Requirements, s.Locked, false, told)
	if s.lock != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("%s %s; \"cove packages lock\" makes a new one", filepath.Join(s.Dir, LockFile), why))
	}
	return p, err
}

// edited is the text of a list of packages after a change. Comments, and lines that still hold, stay as they are.
func edited(text string, next []require.Requirement) string {
	var out []string
	left := slices.Clone(next)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		bare, comment, _ := strings.Cut(line, "#")
		r, err := require.Parse(strings.TrimSpace(bare))
		if strings.TrimSpace(bare) == "" || err != nil {
			out = append(out, line)
			continue
		}
		at := slices.IndexFunc(left, func(n require.Requirement) bool { return n.Name == r.Name && n.Marker == r.Marker })
		if at < 0 {
			continue
		}
		if left[at].String() != r.String() {
			line = left[at].String()
			if comment != "" {
				line += "  #" + comment
			}
		}
		out = append(out, line)
		left = slices.Delete(left, at, at+1)
	}
	for _, r := range left {
		out = append(out, r.String())
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}

func writeProject(path, text string) error {
	if err := writeWhole(path, []byte(text)); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
