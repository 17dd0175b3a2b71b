package layer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	unpackers   = 2
	largestStub = 2 << 10

	// A wheel that is larger than bombSize unpacked and bombRatio times as large as its file is taken for a bomb. Deflate reaches 1,032.
	bombSize  = 128 << 20
	bombRatio = 100
)

// unpacking is the unpacking of one wheel into a folder that nobody else sees.
type unpacking struct {
	archive *archive
	tree    string
	plan    *plan
	files   []entry // in the order of plan.targets
}

// unpack writes the files of a plan below tree, which exists, and returns them sorted by path.
func unpack(ctx context.Context, a *archive, p *plan, tree string) ([]entry, error) {
	slices.SortFunc(p.targets, func(x, y target) int { return strings.Compare(x.path, y.path) })
	u := &unpacking{archive: a, tree: tree, plan: p, files: make([]entry, len(p.targets))}
	if err := u.makeFolders(); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	for first := range unpackers {
		group.Go(func() error {
			unzip, buf := newInflater(), make([]byte, 64<<10)
			for i := first; i < len(p.targets); i += unpackers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := u.write(i, unzip, buf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return u.files, group.Wait()
}

func (u *unpacking) makeFolders() error {
	made := map[string]bool{".": true}
	var add func(dir string) error
	add = func(dir string) error {
		if made[dir] {
			return nil
		}
		made[dir] = true
		if err := add(path.Dir(dir)); err != nil {
			return err
		}
		return makeFolder(filepath.Join(u.tree, dir))
	}
	for _, t := range u.plan.targets {
		if err := add(path.Dir(t.path)); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder makes a folder that everyone can read, whatever the umask is.
func makeFolder(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return notTwice(err, path)
	}
	return os.Chmod(path, 0o755)
}

// notTwice explains what only happens on file systems for which two names are one.
func notTwice(err error, name string) error {
	if errors.Is(err, fs.ErrExist) {
		return defectf("%q is in it twice for this file system", path.Base(name))
	}
	return err
}

// write writes one file.
func (u *unpacking) write(i int, unzip *inflater, buf []byte) (err error) {
	t := u.plan.targets[i]
	full := filepath.Join(u.tree, t.path)
	f, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return notTwice(err, full)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	sinks := io.MultiWriter(f, sum)
	wanted, want := newHash(t.record)
	if wanted != nil {
		sinks = io.MultiWriter(f, sum, wanted)
	}
	var head bytes.Buffer
	stub := path.Base(t.path) == "__init__.py" && t.size <= largestStub
	if stub {
		sinks = io.MultiWriter(sinks, &head)
	}
	n, err := io.CopyBuffer(sinks, u.archive.content(t.member, unzip), buf)
	if err != nil {
		return err
	}
	if wanted != nil && encodeHash(wanted) != want {
		return defectf("%q is not the file that its RECORD describes", t.path)
	}
	u.files[i] = entry{path: t.path, size: n, sum: base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), stub: stub && isStub(head.Bytes())}
	mode := fs.FileMode(0o444)
	if t.executable {
		mode = 0o555
	}
	return f.Chmod(mode)
}

// namespaceLine is a line that only says that a package has parts elsewhere.
var namespaceLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(import pkg_resources|import pkgutil|from pkgutil import extend_path|(pkg_resources|__import__\(['"]pkg_resources['"]\))\.declare_namespace\(__name__\)` +
		`|__path__ = ((pkgutil\.)?|__import__\(['"]pkgutil['"]\)\.)extend_path\(__path__, __name__\)|try:|except ImportError:|pass)?$`)
})

// isStub says that an __init__.py has nothing of its own. Any wheel of a namespace package brings one, and any of them will do.
func isStub(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		code, _, _ := strings.Cut(line, "#")
		if !namespaceLine().MatchString(strings.TrimSpace(code)) {
			return false
		}
	}
	return true
}

// isBomb says that a wheel unpacks to far more than files of packages do.
func isBomb(file, unpacked int64) bool { return unpacked > bombSize && unpacked/bombRatio > file }
