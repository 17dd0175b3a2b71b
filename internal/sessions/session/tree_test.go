package session_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/machine/sandbox"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

func write(t *testing.T, s *session.Live, path, text string) {
	t.Helper()
	if info, err := s.Write(t.Context(), path, strings.NewReader(text)); err != nil || info.Path != path || info.Size != int64(len(text)) || info.Modified.IsZero() {
		t.Fatalf("wrote %+v, %v", info, err)
	}
}

// TestTree changes the workspace beside code, which is not said to have done it.
func TestTree(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		write(t, s, "in/a.txt", "a")
		write(t, s, "in/b.txt", "b")
		write(t, s, "c.txt", "c")
		runCell(t, s, code("1", "result 1\nok"))
		wantCode(t, "move", s.Move(t.Context(), "in", "out/deep"), "")
		wantCode(t, "move", s.Move(t.Context(), "c.txt", "d.txt"), "")
		wantCode(t, "folder", s.MakeFolder(t.Context(), "empty"), "")
		runCell(t, s, code("import os\nsorted(os.listdir('out/deep')), sorted(os.listdir('.'))", "result (['a.txt', 'b.txt'], ['d.txt', 'empty', 'out'])\nok"))
		wantCode(t, "remove", s.Remove(t.Context(), "out/deep/a.txt", false), "")
		runCell(t, s, code("open('out/deep/a.txt', 'w').write('new'); open('d.txt', 'a').write('!');", "changed d.txt 2\ncreated out/deep/a.txt 3\nok"))
		wantCode(t, "remove", s.Remove(t.Context(), "out", false), "not_empty")
		wantCode(t, "remove", s.Remove(t.Context(), "out", true), "")
		entries, more, err := s.List(t.Context(), "")
		if err != nil || more || len(entries) != 2 || entries[0].Path != "d.txt" || !entries[1].Folder {
			t.Errorf("listed are %+v %v %v", entries, more, err)
		}
		var part bytes.Buffer
		if size, err := s.Read(t.Context(), "d.txt", 1, 5, &part); err != nil || size != 2 || part.String() != "!" {
			t.Errorf("read %q of %d, %v", part.String(), size, err)
		}
		_, err = s.Stat(t.Context(), "no")
		wantCode(t, "stat", err, "file_not_found")
		// Many that work on the files while code runs and lists them.
		var working sync.WaitGroup
		for i := range 4 {
			working.Go(func() {
				for n := range 10 {
					path := fmt.Sprintf("w%d/%d.txt", i, n)
					if _, err := s.Write(t.Context(), path, strings.NewReader(path)); err != nil {
						t.Error(err)
					}
					wantCode(t, "move", s.Move(t.Context(), path, path+".moved"), "")
				}
			})
		}
		for range 5 {
			runCell(t, s, code("1", "result 1\nok"))
		}
		working.Wait()
	})
}

// TestWorkspaceLimit fills the workspace.
func TestWorkspaceLimit(t *testing.T) {
	t.Parallel()
	s := open(t, newGVisor(t), sandbox.Limits{Workspace: 4 << 20})
	write(t, s, "kept.txt", "kept")
	_, err := s.Write(t.Context(), "kept.txt", bytes.NewReader(make([]byte, 5<<20)))
	wantCode(t, "write", err, "workspace_full")
	gone := errors.New("gone")
	_, err = s.Write(t.Context(), "kept.txt", io.MultiReader(strings.NewReader("half"), failing{gone}))
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	runCell(t, s, code("import os; os.listdir('.'), open('kept.txt').read()", "result (['kept.txt'], 'kept')\nok"))
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestArchive(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{Workspace: 64 << 20})
		write(t, s, "dir/a.txt", "hello")
		write(t, s, "dir/deep/数据.bin", strings.Repeat("x", 100<<10))
		write(t, s, `dir/..\..\evil`, "evil")
		write(t, s, "dir/a\nb", "newline")
		write(t, s, "beside.txt", "beside")
		runCell(t, s, code(`import os
os.symlink("/etc/passwd", "dir/link"); os.symlink("/", "dir/root"); os.mkfifo("dir/pipe"); os.mkdir("dir/empty")
open("dir/secret", "w").close(); os.chmod("dir/secret", 0); os.utime("dir/a.txt", (0, -1e9));`, "changed dir/a.txt 5\ncreated dir/secret 0\nok"))
		want := map[string]string{
			"a.txt": "hello", "deep/": "", "deep/数据.bin": strings.Repeat("x", 100<<10), `..%5C..%5Cevil`: "evil", "a%0Ab": "newline", "empty/": "",
		}
		var packed bytes.Buffer
		wantCode(t, "zip", s.Archive(t.Context(), "dir", "zip", &packed), "")
		got := unzip(t, packed.Bytes())
		delete(got, "secret")       // which root may read, and which is
		delete(got, "LEFT-OUT.txt") // listed where the guest may not
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("zip: %s", diff)
		}
		packed.Reset()
		wantCode(t, "tar", s.Archive(t.Context(), "dir", "tar.gz", &packed), "")
		got = untar(t, &packed)
		delete(got, "secret")
		delete(got, "LEFT-OUT.txt")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tar: %s", diff)
		}
		packed.Reset()
		wantCode(t, "all of it", s.Archive(t.Context(), "", "tar.gz", &packed), "")
		if names := slices.Sorted(maps.Keys(untar(t, &packed))); !slices.Contains(names, "beside.txt") || !slices.Contains(names, "dir/deep/数据.bin") {
			t.Errorf("of all there are %q", names)
		}
		wantCode(t, "format", s.Archive(t.Context(), "dir", "rar", io.Discard), "archive_format")
		wantCode(t, "a file", s.Archive(t.Context(), "beside.txt", "zip", io.Discard), "invalid_path")
		wantCode(t, "nothing", s.Archive(t.Context(), "no", "zip", io.Discard), "file_not_found")
		runCell(t, s, codeLike(`open("dir/sparse", "w").truncate(1 << 40);`, "created dir/sparse .*ok"))
		packed.Reset()
		wantCode(t, "a sparse file", s.Archive(t.Context(), "", "tar.gz", &packed), "")
		if got := untar(t, &packed); !strings.Contains(got["LEFT-OUT.txt"], "dir/sparse\n") || got["beside.txt"] == "" {
			t.Errorf("beside a sparse file there are %q, and left out %q", slices.Sorted(maps.Keys(got)), got["LEFT-OUT.txt"])
		}
		runCell(t, s, codeLike(`for name in "ab": open("dir/" + name, "w").truncate(40 << 20);`, "created dir/a .*created dir/b .*ok"))
		packed.Reset()
		wantCode(t, "too much", s.Archive(t.Context(), "", "zip", &packed), "archive_too_large")
		if packed.Len() > 0 {
			t.Errorf("%d bytes were written of what is refused", packed.Len())
		}
		runCell(t, s, codeLike(`import os; os.remove("dir/a"); os.remove("dir/b")`, ".*ok"))
		_, err := s.Read(t.Context(), "dir/sparse", 0, 0, io.Discard)
		wantCode(t, "a sparse file", err, "file_too_large")
		var part bytes.Buffer
		if size, err := s.Read(t.Context(), "dir/sparse", 1<<39, 3, &part); err != nil || size != 1<<40 || part.String() != "\x00\x00\x00" {
			t.Errorf("a part of a sparse file of %d bytes: %q, %v", size, part.String(), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Archive(ctx, "dir/deep", "zip", io.Discard); err == nil {
			t.Error("an archive that nobody wants is made")
		}
	})
}

// TestArchiveOfWhatIsForbidden archives folders with a file and a folder that code has forbidden to read.
func TestArchiveOfWhatIsForbidden(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{Workspace: 64 << 20})
		write(t, s, "a.txt", "hello")
		write(t, s, "LEFT-OUT.txt", "mine")
		write(t, s, "closed/in.txt", "inside")
		write(t, s, "secret.txt", "secret")
		runCell(t, s, codeLike(`import os; os.chmod("closed", 0); os.chmod("secret.txt", 0);`, "(?s).*ok"))
		_, err := s.Read(t.Context(), "secret.txt", 0, 0, io.Discard)
		if err == nil {
			testneeds.RunsElsewhere(t, "an ordinary user", "whoever starts sandboxes of this engine here may read everything")
		}
		wantCode(t, "a forbidden file", err, "file_denied")
		_, _, err = s.List(t.Context(), "closed")
		wantCode(t, "a forbidden folder", err, "file_denied")
		for format, unpack := range map[string]func([]byte) map[string]string{
			"zip":    func(b []byte) map[string]string { return unzip(t, b) },
			"tar.gz": func(b []byte) map[string]string { return untar(t, bytes.NewReader(b)) },
		} {
			var packed bytes.Buffer
			wantCode(t, format, s.Archive(t.Context(), "", format, &packed), "")
			want := map[string]string{"a.txt": "hello", "LEFT-OUT.txt": "mine", "closed/": "", "_LEFT-OUT.txt": "closed\nsecret.txt\n"}
			if diff := cmp.Diff(want, unpack(packed.Bytes())); diff != "" {
				t.Errorf("%s: %s", format, diff)
			}
			wantCode(t, format, s.Archive(t.Context(), "closed", format, io.Discard), "file_denied")
		}
		runCell(t, s, codeLike(`os.chmod("closed", 0o755);`, "(?s).*ok")) // for whoever removes it
	})
}

func unzip(t *testing.T, text []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(b)
	}
	return got
}

func untar(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(b)
	}
}
