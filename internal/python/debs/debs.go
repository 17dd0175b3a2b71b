// Package debs makes layers of system packages: the files that packages of this machine's Debian, or of its kin, bring beside what the machine has.
//
// They are installed once, by apt in a sandbox with a root, so that nothing of them runs on the host and no root is needed there. What apt and the packages' own scripts have written comes out as a tar
// file, which is theirs and believed in nothing: it is bounded and unpacked as an image's layer is, without owners, devices and set-user-ID bits. Where the host has a folder as well, links to the
// host's entries are put into it (rootfs.CompleteLayer), and sandboxes see the layer's folder, read-only.
//
//	<dir>/<digest>/layer.json   what it is; written last
//	<dir>/<digest>/root/        its files, which never change
//	<dir>/<digest>/in-use       locked by those that have sandboxes with it (image.Hold)
//	<dir>/.lock                 held by the process that makes one
//	<dir>/.tmp-*                one that is being made or removed, or what a killed process left of it
package debs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/machine/image"
	"cove/internal/machine/rootfs"
)

// Folder is the folder of the layers below the data folder.
const Folder = "system"

const (
	version      = 1
	manifestName = "layer.json"
	rootName     = "root"
	tmpPrefix    = ".tmp-"
	keySeparator = "~" // between an environment's key and the layer that it is used with
	usualEntries = 500_000
)

// Maker installs packages beside those of the host and writes the files that came with them as a tar file.
type Maker interface {
	Make(ctx context.Context, packages []string, files io.Writer, progress io.Writer) error
}

// Store is the folder that keeps layers. It is made when needed.
type Store struct {
	Dir     string
	Size    int64  // bytes that one layer may have
	Entries int    // files, folders and links that one may have; 0: half a million
	Host    string // the folder that stands for the host's root; "": /
	Maker   Maker
}

// Layer is a layer that is made.
type Layer struct {
	Version   int       `json:"version"`
	Digest    string    `json:"digest"`
	Packages  []string  `json:"packages"`  // that were asked for
	Libraries string    `json:"libraries"` // a digest of what the host's libraries were
	Size      int64     `json:"size"`      // bytes of its files
	Entries   int       `json:"entries"`
	Made      time.Time `json:"made"`
	dir       string
}

// Root is the folder with the layer's files.
func (l *Layer) Root() string { return filepath.Join(l.dir, rootName) }

// Key names the environment with that key as it is used with a layer.
func Key(environment, digest string) string { return environment + keySeparator + digest }

// CutKey returns the two parts of a Key, and for another key that and "".
func CutKey(key string) (environment, digest string) {
	environment, digest, _ = strings.Cut(key, keySeparator)
	return environment, digest
}

var name = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+](:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?$`)
})

// CheckName returns what is wrong with the name of a package: NAME, NAME:ARCHITECTURE, and either with =VERSION. Problems: system_package_name.
func CheckName(text string) error {
	if !name().MatchString(text) {
		return problem.New(problem.SystemPackageName, fmt.Sprintf("%.100q is no name of a Debian package", text)).WithHint("packages.system has names such as graphviz, tesseract-ocr or poppler-utils=22.12.0-2")
	}
	return nil
}

// Digest names the layer with these packages on this host. What the host has installed is in it, since a layer has what comes beside that.
func (s Store) Digest(packages []string) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%d %s %q\n", version, runtime.GOARCH, packages)
	for _, p := range []string{"/etc/os-release", "/var/lib/dpkg/status"} {
		text, err := os.ReadFile(filepath.Join(cmp.Or(s.Host, "/"), p))
		if err != nil {
			return "", problem.New(problem.SystemPackagesUnsupported, "packages.system is for Debian and its kin, and this machine is none: it has no "+p).
				WithHint("install the programs on this machine, whose programs every sandbox has, and leave packages.system empty").WithCause(err)
		}
		_, _ = fmt.Fprintf(sum, "%d\n%s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// libraries is a digest of the list of the host's libraries.
func (s Store) libraries() string {
	text, _ := os.ReadFile(filepath.Join(cmp.Or(s.Host, "/"), "/etc/ld.so.cache")) // a host without one has none later either
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// IsStale says whether the host has other libraries than those that a layer was made beside: links in it may lead nowhere.
func (s Store) IsStale(l *Layer) bool { return l.Libraries != s.libraries() }

// began are the digests of the layers that this process began with, by folder and packages: when the machine's packages change, a server goes on with what its sandboxes have, and installs nothing
// while a session waits.
var began sync.Map

// Ensure returns the layer with these packages, made where it is not there. Processes that ask at the same time make it once. What fails or is cancelled leaves nothing behind.
//
// Problems: system_package_name, system_packages_unsupported, system_package_unknown, system_packages_failed, disk_full, data_folder_unusable, canceled, and those of starting a sandbox.
func (s Store) Ensure(ctx context.Context, packages []string, progress io.Writer) (*Layer, error) {
	packages = slices.Compact(slices.Sorted(slices.Values(packages)))
	for _, p := range packages {
		if err := CheckName(p); err != nil {
			return nil, err
		}
	}
	asked := s.Dir + "\x00" + strings.Join(packages, "\x00")
	if digest, has := began.Load(asked); has {
		if l, err := s.Open(digest.(string)); err == nil { //nolint:forcetypeassert // nothing else is stored
			return l, nil
		}
	}
	digest, err := s.Digest(packages)
	if err != nil {
		return nil, err
	}
	l, err := s.ensure(ctx, digest, packages, progress)
	if err == nil {
		began.Store(asked, digest)
	}
	return l, err
}

// ensure is Ensure for packages that are looked at.
func (s Store) ensure(ctx context.Context, digest string, packages []string, progress io.Writer) (*Layer, error) {
	if l, err := s.Open(digest); err == nil {
		return l, nil
	}
	lock, err := s.lock(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	if l, err := s.Open(digest); err == nil { // made while this process waited
		return l, nil
	}
	s.removeUnfinished()
	start := time.Now()
	_, _ = fmt.Fprintf(progress, "Installing system packages for all sandboxes, once (some minutes): %s\n", strings.Join(packages, ", "))
	l, err := s.make(ctx, digest, packages, progress)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	_, _ = fmt.Fprintf(progress, "Ready: the system packages take %.1f MB (%.1f s).\n", float64(l.Size)/1e6, time.Since(start).Seconds())
	return l, nil
}

// Open returns the layer with that digest and remembers that it is used. Problems: system_packages_missing.
func (s Store) Open(digest string) (*Layer, error) {
	l, err := s.read(digest)
	if err != nil {
		return nil, problem.New(problem.SystemPackagesMissing, "the system packages that the session began with are not on this machine any more").
			WithHint("start another session").WithCause(err)
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(l.dir, image.UseName), now, now)
	return l, nil
}

func (s Store) read(digest string) (*Layer, error) {
	if digest == "" || strings.Trim(digest, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q is no digest", digest)
	}
	l := &Layer{dir: filepath.Join(s.Dir, digest)}
	text, err := os.ReadFile(filepath.Join(l.dir, manifestName))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, err
	}
	if l.Version != version || l.Digest != digest {
		return nil, fmt.Errorf("the layer %s is of another version of cove", digest)
	}
	return l, nil
}

// Find returns the layer with these packages on this host, or nil where it is not made.
func (s Store) Find(packages []string) *Layer {
	digest, err := s.Digest(slices.Compact(slices.Sorted(slices.Values(packages))))
	if err != nil {
		return nil
	}
	l, _ := s.read(digest)
	return l
}

// make makes a layer. The caller holds the lock.
func (s Store) make(ctx context.Context, digest string, packages []string, progress io.Writer) (l *Layer, err error) {
	tmp, err := os.MkdirTemp(s.Dir, tmpPrefix)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	l = &Layer{Version: version, Digest: digest, Packages: packages, Libraries: s.libraries(), Made: time.Now().UTC(), dir: tmp}
	for _, dir := range []string{tmp, l.Root()} { // sandboxes of other users pass through them, whatever the umask
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil { //nolint:gosec // see above
			return nil, err
		}
	}
	if err := s.fill(ctx, l, progress); err != nil {
		return nil, err
	}
	if err := rootfs.CompleteLayer(l.Root(), cmp.Or(s.Host, "/")); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, image.UseName), nil, 0o600); err != nil {
		return nil, err
	}
	if err := durable.Replace(filepath.Join(tmp, manifestName), 0o600, strings.NewReader(string(text)+"\n")); err != nil {
		return nil, err
	}
	l.dir = filepath.Join(s.Dir, digest)
	if err := os.RemoveAll(l.dir); err != nil { // of another version of cove
		return nil, err
	}
	return l, os.Rename(tmp, l.dir)
}

// fill has the packages installed, and unpacks what came with them.
func (s Store) fill(ctx context.Context, l *Layer, progress io.Writer) error {
	files, out := io.Pipe()
	made := make(chan error, 1)
	go func() {
		err := s.Maker.Make(ctx, l.Packages, out, progress)
		made <- errors.Join(err, out.CloseWithError(err))
	}()
	var err error
	l.Size, l.Entries, err = image.UnpackTar(l.Root(), files, s.Size, cmp.Or(s.Entries, usualEntries))
	_ = files.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // the maker stops writing
	failed := <-made
	switch {
	case failed != nil && (err == nil || errors.Is(err, failed)):
		return failed
	case problem.Has(err, problem.ImageTooLarge):
		return problem.New(problem.SystemPackagesFailed, fmt.Sprintf("the system packages have more than %d MB, or more files than a sandbox can be given", s.Size>>20)).
			WithHint("name fewer packages in packages.system, or raise sandbox.system (COVE_SYSTEM)").WithCause(err)
	case problem.Has(err, problem.ImageDamaged):
		return problem.New(problem.SystemPackagesFailed, "what the system packages brought cannot be used").WithHint("name other packages in packages.system").WithCause(err)
	}
	return err
}

// explain makes problems of errors of the store's own.
func (s Store) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.GivenUp, "the installation of the system packages was cancelled").WithHint("nothing of it was kept").WithCause(ctx.Err())
	}
	if _, is := errors.AsType[*problem.Error](err); is {
		return err
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return problem.New(problem.DiskFull, "there is no room left on the disk for the system packages").WithHint("make room; nothing of them was left behind").WithCause(err)
	}
	if _, is := errors.AsType[*fs.PathError](err); is {
		return problem.New(problem.DataFolderUnusable, "cove cannot write to "+s.Dir).WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
	}
	return err
}

// lock waits until this process alone may make layers.
func (s Store) lock(ctx context.Context, progress io.Writer) (*os.File, error) {
	if err := errors.Join(os.MkdirAll(s.Dir, 0o711), os.Chmod(s.Dir, 0o711)); err != nil { //nolint:gosec // sandboxes of other users pass through it, whatever the umask
		return nil, s.explain(ctx, err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(s.explain(ctx, err), f.Close())
		}
		if !told {
			_, _ = fmt.Fprintln(progress, "Another cove is installing system packages: waiting for it.")
			told = true
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(s.explain(ctx, ctx.Err()), f.Close())
		}
	}
}

// removeUnfinished removes what killed processes left behind. The caller holds the lock.
func (s Store) removeUnfinished() {
	left, _ := filepath.Glob(filepath.Join(s.Dir, tmpPrefix+"*")) // the pattern is well-formed
	for _, dir := range left {
		_ = os.RemoveAll(dir) // what cannot be removed now is tried again next time
	}
}

// Sweep removes layers that were not used for so long, but for those that needed names and those that a sandbox has.
func (s Store) Sweep(ctx context.Context, needed []string, unused time.Duration) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := s.lock(ctx, io.Discard)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	s.removeUnfinished()
	for _, e := range entries {
		dir := filepath.Join(s.Dir, e.Name())
		info, err := os.Stat(filepath.Join(dir, image.UseName))
		if strings.HasPrefix(e.Name(), ".") || slices.Contains(needed, e.Name()) || err != nil || time.Since(info.ModTime()) < unused {
			continue
		}
		release, err := image.TakeUnused(dir)
		if err != nil {
			continue // a sandbox has it
		}
		// In this order a removal that is cut short leaves nothing that looks whole.
		if gone, err := os.MkdirTemp(s.Dir, tmpPrefix); err == nil {
			_ = os.Rename(dir, filepath.Join(gone, "layer")) // tried again next time
			_ = os.RemoveAll(gone)
		}
		release()
	}
	return nil
}
