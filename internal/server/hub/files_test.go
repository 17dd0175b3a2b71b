package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

func (l *life) add(who auth.Principal, name, text string) hub.File {
	l.t.Helper()
	f, err := l.AddFile(l.t.Context(), who, hub.NewFile{Name: name}, strings.NewReader(text))
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

func (l *life) content(who auth.Principal, id string) string {
	l.t.Helper()
	_, r, err := l.OpenFile(l.t.Context(), who, id)
	if err != nil {
		l.t.Error(err)
		return ""
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err != nil {
		l.t.Error(err)
	}
	return string(text)
}

// kept lists the files below the folder of contents, also those that are no contents.
func (l *life) kept() (paths []string) {
	l.t.Helper()
	dir := filepath.Join(l.dir, "blobs")
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			paths = append(paths, rel)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
	return paths
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sealedAndNot runs a test with contents that are sealed, and with ones that are not.
func sealedAndNot(t *testing.T, run func(t *testing.T, how func(*hub.Options))) {
	t.Helper()
	t.Parallel()
	keys, err := seal.ParseKeys(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.NewRing(keys).Open(keys, "the test")
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]*seal.Sealer{"sealed": sealer, "not sealed": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(o *hub.Options) { o.Sealer = with })
		})
	}
}

// TestContentsAreSealed: no byte of a content, nor of an upload, is on the disk as it is.
func TestContentsAreSealed(t *testing.T) {
	sealedAndNot(t, func(t *testing.T, how func(*hub.Options)) {
		l, who := newLife(t, how), someone(auth.LocalProject)
		const secret = "a secret of 26 characters "
		l.add(who, "a.txt", secret)
		l.sent(who, l.newUpload(who, 100).ID, 0, secret)
		there := 0
		err := filepath.WalkDir(filepath.Join(l.dir, "blobs"), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			there += strings.Count(string(text), secret)
			return err
		})
		want := 2
		if strings.HasSuffix(t.Name(), "/sealed") {
			want = 0
		}
		if err != nil || there != want {
			t.Errorf("it is on the disk %d times instead of %d, %v", there, want, err)
		}
	})
}

func TestStoredFiles(t *testing.T) { sealedAndNot(t, storedFiles) }

func storedFiles(t *testing.T, how func(*hub.Options)) {
	l, who, other := newLife(t, how), someone(auth.LocalProject), someone("prj_other")
	first, second := l.add(who, "a.txt", "hello"), l.add(who, "b.txt", "hello")
	theirs := l.add(other, "c.txt", "hello")
	hash := hashOf("hello")
	if first.SHA256 != hash || first.Size != 5 || first.ID == second.ID || first.User != who.User || first.Project != who.Project || first.Created.IsZero() {
		t.Errorf("stored as %+v", first)
	}
	if kept := l.kept(); len(kept) != 1 || kept[0] != filepath.Join(hash[:2], hash[2:4], hash) {
		t.Errorf("three files with one content are kept as %v", kept)
	}
	if info, err := os.Stat(filepath.Join(l.dir, "blobs", l.kept()[0])); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a content has mode %v, %v", info.Mode(), err)
	}
	if got, err := l.File(t.Context(), who, first.ID); err != nil || !cmp.Equal(got, first) {
		t.Errorf("got %+v, %v", got, err)
	}
	if list, err := l.Files(t.Context(), who, "", hub.Page{}); err != nil || len(list.Items) != 2 || list.Items[0].ID != second.ID {
		t.Errorf("listed are %+v, %v", list, err)
	}
	_, err := l.File(t.Context(), other, first.ID)
	fails(t, err, "file_not_found")
	_, _, err = l.OpenFile(t.Context(), other, first.ID)
	fails(t, err, "file_not_found")
	fails(t, l.DeleteFile(t.Context(), other, first.ID), "file_not_found")
	viewer := who
	viewer.Role = auth.Viewer
	fails(t, l.DeleteFile(t.Context(), viewer, first.ID), "forbidden")
	_, err = l.AddFile(t.Context(), viewer, hub.NewFile{}, strings.NewReader("x"))
	fails(t, err, "forbidden")
	if got := l.content(viewer, first.ID); got != "hello" {
		t.Errorf("a viewer reads %q", got)
	}
	auditor := who
	auditor.Role = auth.Auditor
	_, err = l.File(t.Context(), auditor, first.ID)
	fails(t, err, "forbidden")
	for _, f := range []hub.File{first, second} {
		if err := l.DeleteFile(t.Context(), who, f.ID); err != nil {
			t.Error(err)
		}
	}
	fails(t, l.DeleteFile(t.Context(), who, first.ID), "file_not_found")
	if got := l.content(other, theirs.ID); got != "hello" {
		t.Errorf("with the files of one project went the content of another: %q", got)
	}
	if err := l.DeleteFile(t.Context(), other, theirs.ID); err != nil || len(l.kept()) != 0 {
		t.Errorf("left are %v, %v", l.kept(), err)
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	for said, want := range map[string]string{
		"a.txt": "a.txt", "": "file", ".": "file", "..": "file", "/": "file", "../../etc/passwd": "passwd", `C:\temp\x.csv`: "x.csv", "a/": "a",
		"a\nb\x00\x7f.txt": "ab.txt", "bad\xff.txt": "bad.txt", "gpj\u202Eexe.txt": "gpjexe.txt", "数据 1.csv": "数据 1.csv", "  ": "file", "\t": "file",
		strings.Repeat("长", 100) + ".csv": strings.Repeat("长", 83) + ".csv", strings.Repeat("x", 300): strings.Repeat("x", 255),
		".hidden": ".hidden", "a." + strings.Repeat("y", 300): "a." + strings.Repeat("y", 253),
	} {
		if f := l.add(who, said, said); f.Name != want || len(f.Name) > 255 {
			t.Errorf("%.50q is called %.50q, want %.50q", said, f.Name, want)
		}
	}
	for _, n := range []hub.NewFile{{Purpose: strings.Repeat("p", 65)}, {Purpose: "a\nb"}, {Life: -1}} {
		_, err := l.AddFile(t.Context(), who, n, strings.NewReader(""))
		fails(t, err, "invalid_request")
	}
}

// broken is a reader that fails after its first bytes.
type broken struct {
	r   io.Reader
	err error
}

func (b broken) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

func TestUploadsThatFailLeaveNothing(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) { o.Limits.File, o.Limits.Project.Disk = 1000, 1500 })
	who := someone(auth.LocalProject)
	gone := errors.New("the client is gone")
	canceled, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx  context.Context
		from io.Reader
		want string
	}{
		"fails at once":       {t.Context(), broken{strings.NewReader(""), gone}, "internal"},
		"fails half-way":      {t.Context(), broken{strings.NewReader("half of it"), gone}, "internal"},
		"is a byte too large": {t.Context(), strings.NewReader(strings.Repeat("x", 1001)), "file_too_large"},
		"never ends":          {t.Context(), endless{}, "file_too_large"},
		"is given up":         {canceled, io.MultiReader(strings.NewReader("begun"), calling{cancel}, endless{}), "internal"},
		"tells a problem":     {t.Context(), broken{strings.NewReader("x"), problem.Received(problem.Invalid, "body_unreadable", "x")}, "body_unreadable"},
	} {
		f, err := l.AddFile(c.ctx, who, hub.NewFile{Name: "x"}, c.from)
		fails(t, err, c.want)
		if f != (hub.File{}) || strings.HasPrefix(name, "fails") && !errors.Is(err, gone) {
			t.Errorf("an upload that %s gave %+v, %v", name, f, err)
		}
	}
	if kept := l.kept(); len(kept) != 0 {
		t.Errorf("left are %v", kept)
	}
	full := l.add(who, "x", strings.Repeat("x", 1000))
	_, err := l.AddFile(t.Context(), who, hub.NewFile{}, strings.NewReader(strings.Repeat("y", 501)))
	fails(t, err, "quota_disk")
	l.add(who, "x", strings.Repeat("y", 500))
	_, err = l.AddFile(t.Context(), who, hub.NewFile{}, untouched{t})
	fails(t, err, "quota_disk")
	if kept := l.kept(); len(kept) != 2 {
		t.Errorf("kept are %v", kept)
	}
	if err := l.DeleteFile(t.Context(), who, full.ID); err != nil {
		t.Error(err)
	}
	l.add(who, "again", strings.Repeat("z", 1000))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type calling struct{ call func() }

func (c calling) Read([]byte) (int, error) {
	c.call()
	return 0, io.EOF
}

type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("what there is no room for is read all the same")
	return 0, io.EOF
}

func TestUploadsAtOnceShareTheRoom(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) { o.Limits.Project.Disk = 1000 })
	who := someone(auth.LocalProject)
	var uploads sync.WaitGroup
	var stored atomic.Int64
	for i := range 12 {
		uploads.Go(func() {
			f, err := l.AddFile(t.Context(), who, hub.NewFile{}, strings.NewReader(strings.Repeat(string(rune('a'+i)), 300)))
			if err == nil {
				stored.Add(f.Size)
			} else {
				fails(t, err, "quota_disk")
			}
		})
	}
	uploads.Wait()
	if n := stored.Load(); n > 1000 || n == 0 || int(n) != 300*len(l.kept()) {
		t.Errorf("%d bytes are stored, as %v", n, l.kept())
	}
}

// TestContentsOutliveRaces adds, reads and deletes files of few contents at once: a record always has its content, and no content stays
// without a record.
func TestContentsOutliveRaces(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 25 {
				text := fmt.Sprint("content ", (i+n)%3)
				f, err := l.AddFile(t.Context(), who, hub.NewFile{Name: "x"}, strings.NewReader(text))
				if err != nil {
					t.Error(err)
					return
				}
				if got := l.content(who, f.ID); got != text {
					t.Errorf("got %q, want %q", got, text)
				}
				if err := l.DeleteFile(t.Context(), who, f.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if err := l.SweepFiles(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if kept := l.kept(); len(kept) != 0 {
		t.Errorf("left are %v", kept)
	}
}

func TestFilesExpire(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	l := newLife(t, func(o *hub.Options) { o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
	who := someone(auth.LocalProject)
	stays := l.add(who, "stays", "stays")
	goes, err := l.AddFile(t.Context(), who, hub.NewFile{Name: "goes", Life: time.Hour}, strings.NewReader("goes"))
	if err != nil || !goes.Expires.Equal(goes.Created.Add(time.Hour)) {
		t.Fatalf("%+v %v", goes, err)
	}
	sweep := func() {
		t.Helper()
		if err := l.SweepFiles(t.Context()); err != nil {
			t.Error(err)
		}
	}
	sweep()
	if got := l.content(who, goes.ID); got != "goes" {
		t.Errorf("before its time it is %q", got)
	}
	ahead.Store(int64(time.Hour))
	_, _, err = l.OpenFile(t.Context(), who, goes.ID)
	fails(t, err, "file_not_found")
	if list, err := l.Files(t.Context(), who, "", hub.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("listed are %+v, %v", list, err)
	}
	sweep()
	if kept := l.kept(); len(kept) != 1 || filepath.Base(kept[0]) != stays.SHA256 {
		t.Errorf("kept are %v", kept)
	}
}

// TestSweepRemovesWhatACrashLeft finds contents without a record, and half of an upload.
func TestSweepRemovesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	stays := l.add(who, "stays", "stays")
	blobs := filepath.Join(l.dir, "blobs")
	for _, text := range []string{"one", "two", "three"} {
		hash := hashOf(text)
		if err := os.MkdirAll(filepath.Join(blobs, hash[:2], hash[2:4]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(blobs, hash[:2], hash[2:4], hash), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dead, ago := filepath.Join(blobs, ".new-DEAD-1"), time.Now().Add(-2*time.Hour)
	if err := errors.Join(os.WriteFile(dead, []byte("ha"), 0o600), os.Chtimes(dead, ago, ago)); err != nil {
		t.Fatal(err)
	}
	for range 256 {
		if err := l.SweepFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if kept := l.kept(); len(kept) != 1 || filepath.Base(kept[0]) != stays.SHA256 {
		t.Errorf("kept are %v", kept)
	}
	if got := l.content(who, stays.ID); got != "stays" {
		t.Errorf("what stays is %q", got)
	}
}

func TestNoRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blobs := filepath.Join(dir, "blobs")
	if err := os.Mkdir(blobs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", blobs, "tmpfs", 0, "size=65536"); err != nil {
		testneeds.Absent(t, testneeds.Root, err)
	}
	l := lifeIn(t, dir, openStore(t, dir), nil)
	t.Cleanup(func() {
		if err := unix.Unmount(blobs, 0); err != nil {
			t.Error(err)
		}
	})
	who := someone(auth.LocalProject)
	_, err := l.AddFile(t.Context(), who, hub.NewFile{}, bytes.NewReader(make([]byte, 1<<20)))
	fails(t, err, "disk_full")
	if kept := l.kept(); len(kept) != 0 {
		t.Errorf("left are %v", kept)
	}
	l.add(who, "fits", "fits")
}
