package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/workspace"
)

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if p := problem.Of(err); p == nil && code != "" || p != nil && p.Code != code {
		t.Errorf("%s: got %v, want %q", what, err, code)
	}
}

func put(t *testing.T, l *guestlink.Link, path, text string) {
	t.Helper()
	if _, err := l.Write(t.Context(), path, strings.NewReader(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, l *guestlink.Link, dir string) (names []string) {
	t.Helper()
	entries, more, err := l.ListFolder(t.Context(), dir)
	if err != nil || more {
		t.Errorf("list %q: %v %v", dir, more, err)
	}
	for _, e := range entries {
		if e.Folder {
			e.Path += "/"
		}
		if e.Link {
			e.Path += "@"
		}
		names = append(names, e.Path)
	}
	return names
}

func wantListed(t *testing.T, l *guestlink.Link, dir string, want ...string) {
	t.Helper()
	if got := listed(t, l, dir); !slices.Equal(got, want) {
		t.Errorf("%q has %q, want %q", dir, got, want)
	}
}

func listsFolders(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	wantListed(t, l, "")
	put(t, l, "a/b/c.txt", "hello")
	put(t, l, "a.txt", "")
	if code, out := Shell(t, l, "mkfifo a/pipe; ln -s b a/link; ln -s b/c.txt a/to; ln -s /etc root; touch .hidden"); code != 0 {
		t.Fatal(out)
	}
	wantListed(t, l, "", ".hidden", "a/", "a.txt", "root@")
	wantListed(t, l, "a", "a/b/", "a/to", "a/link@")
	wantListed(t, l, "a/b", "a/b/c.txt")
	info, err := l.Stat(t.Context(), "a/b/c.txt")
	if entries, _, lerr := l.ListFolder(t.Context(), "a/b"); err != nil || lerr != nil || entries[0] != info || info.Size != 5 || info.Stamp == "" || info.Modified.IsZero() {
		t.Errorf("one look gives %+v, another %+v, %v", info, entries, errors.Join(err, lerr))
	}
	for _, path := range []string{"a/to", "a/link/c.txt"} {
		if through, err := l.Stat(t.Context(), path); err != nil || through.Stamp != info.Stamp || through.Path != path {
			t.Errorf("%s is %+v, %v", path, through, err)
		}
	}
	for _, dir := range []string{"", "a", "a/link"} {
		if info, err := l.Stat(t.Context(), dir); err != nil || !info.Folder || info.Path != dir || info.Size != 0 {
			t.Errorf("%q is %+v, %v", dir, info, err)
		}
	}
	for path, code := range map[string]string{
		"no": "file_not_found", "a/no/x": "file_not_found", "root/passwd": "file_denied",
		"a/pipe": "invalid_path", "../x": "invalid_path", "/etc": "invalid_path", "a.txt/x": "invalid_path",
		"bad\xffname": "invalid_path", strings.Repeat("n", 256): "invalid_path", strings.Repeat("d/", 3000) + "x": "invalid_path",
	} {
		_, err := l.Stat(t.Context(), path)
		wantCode(t, fmt.Sprintf("look at %.40q", path), err, code)
	}
	for path, code := range map[string]string{"a.txt": "invalid_path", "root": "file_denied", "no": "file_not_found", "a/pipe": "invalid_path"} {
		_, _, err := l.ListFolder(t.Context(), path)
		wantCode(t, "list "+path, err, code)
	}
	if code, out := Shell(t, l, "mkdir many && cd many && seq 12000 | xargs touch"); code != 0 {
		t.Fatal(out)
	}
	entries, more, err := l.ListFolder(t.Context(), "many")
	if err != nil || !more || len(entries) != 10000 || entries[1].Path != "many/10" || !slices.IsSortedFunc(entries, func(a, b workspace.Entry) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("of 12000 files %d are listed, more: %v, %v", len(entries), more, err)
	}
	var part bytes.Buffer
	for _, c := range []struct {
		offset, limit int64
		want          string
	}{{0, 0, "hello"}, {1, 3, "ell"}, {4, 100, "o"}, {5, 0, ""}, {1 << 60, 1, ""}} {
		part.Reset()
		if size, err := l.ReadRange(t.Context(), "a/b/c.txt", c.offset, c.limit, &part); err != nil || size != 5 || part.String() != c.want {
			t.Errorf("%d from %d: %q of %d, %v", c.limit, c.offset, part.String(), size, err)
		}
	}
	_, err = l.ReadRange(t.Context(), "a/b/c.txt", -1, 0, io.Discard)
	wantCode(t, "a negative offset", err, "invalid_request")
	_, err = l.ReadRange(t.Context(), "a", 0, 0, io.Discard)
	wantCode(t, "reading a folder", err, "invalid_path")
}

func movesAndRemoves(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	for _, path := range []string{"a.txt", "b.txt", "full/x/y.txt"} {
		put(t, l, path, path)
	}
	if code, out := Shell(t, l, "mkdir keep && echo kept > keep/k && ln -s ../keep full/link && ln -s / full/root && mkfifo full/pipe && ln -s keep out"); code != 0 {
		t.Fatal(out)
	}
	for _, c := range []struct{ from, to, code string }{
		{"a.txt", "b.txt", "file_exists"}, {"a.txt", "full", "file_exists"}, {"a.txt", "a.txt", "file_exists"}, {"no", "x", "file_not_found"},
		{"full", "full/x/full", "invalid_path"}, {"a.txt", "../x", "invalid_path"}, {"a.txt", "b.txt/x", "invalid_path"}, {"a.txt", "out/x", "file_denied"},
		{"out/k", "k", "file_denied"}, {"", "x", "invalid_path"}, {"a.txt", "bad\xff", "invalid_path"}, {"a.txt", "new/deep/a.txt", ""}, {"full/x", "moved", ""},
	} {
		_, err := l.Move(t.Context(), c.from, c.to)
		wantCode(t, c.from+" to "+c.to, err, c.code)
	}
	wantListed(t, l, "", "b.txt", "full/", "keep/", "moved/", "new/", "out@")
	wantListed(t, l, "moved", "moved/y.txt")
	if files, _, err := l.ListFiles(t.Context()); err != nil || len(files) != 4 {
		t.Errorf("there are %v, %v", files, err)
	}
	for _, c := range []struct {
		path string
		all  bool
		code string
	}{
		{"no", false, "file_not_found"}, {"no", true, "file_not_found"}, {"full", false, "not_empty"}, {"", true, "invalid_path"}, {".", true, "invalid_path"},
		{"out/k", false, "file_denied"}, {"full", true, ""}, {"b.txt", true, ""}, {"moved/y.txt", false, ""}, {"moved", false, ""}, {"out", true, ""},
	} {
		wantCode(t, "remove "+c.path, l.Remove(t.Context(), c.path, c.all), c.code)
	}
	wantListed(t, l, "", "keep/", "new/")
	if _, out := Shell(t, l, "cat keep/k; ls -A | sort; test -d /usr && echo whole"); out != "kept\nkeep\nnew\nwhole\n" {
		t.Errorf("left are %q", out)
	}
	for path, code := range map[string]string{"keep": "", "new/one/two": "", "keep/k": "file_exists", "keep/k/x": "invalid_path", "": "invalid_path", "/x": "invalid_path"} {
		wantCode(t, "make "+path, l.MakeFolder(t.Context(), path), code)
	}
	_, err := l.Write(t.Context(), "keep", strings.NewReader("x"), 0o644)
	wantCode(t, "a file in a folder's place", err, "file_exists")
}

// failing is a reader that fails after its first bytes.
type failing struct{ left int }

var errSource = errors.New("the client is gone")

func (f *failing) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, errSource
	}
	n := min(len(p), f.left)
	f.left -= n
	return n, nil
}

func leavesNoHalfFile(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{Limits: sandbox.Limits{Workspace: 16 << 20}})
	put(t, l, "a.txt", "before")
	for _, size := range []int{0, 1, 100 << 10, 3 << 20} {
		if _, err := l.Write(t.Context(), "a.txt", &failing{size}, 0o644); !errors.Is(err, errSource) {
			t.Errorf("a source that fails after %d bytes: %v", size, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := l.Write(ctx, "a.txt", io.MultiReader(bytes.NewReader(make([]byte, size)), cancelling{cancel}), 0o644)
		if err == nil {
			t.Errorf("a write that was canceled after %d bytes succeeded", size)
		}
	}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			_, err := l.Write(t.Context(), "raced.txt", strings.NewReader(strings.Repeat(fmt.Sprint(i), 200<<10)), 0o644)
			wantCode(t, "two writers", err, "")
		})
	}
	writers.Wait()
	if e.Isolates() {
		_, err := l.Write(t.Context(), "big.bin", io.LimitReader(zeros{}, 64<<20), 0o644)
		wantCode(t, "more than the workspace holds", err, "workspace_full")
		if _, err := l.Write(t.Context(), "fits.bin", io.LimitReader(zeros{}, 8<<20), 0o644); err != nil {
			t.Errorf("what was not written takes room: %v", err)
		}
		wantCode(t, "remove", l.Remove(t.Context(), "fits.bin", false), "")
	}
	// A write that was given up is cleaned up after the answer.
	settled(t, l, "ls -A", "a.txt\nraced.txt\n")
	if _, out := Shell(t, l, "cat a.txt; tr -s 0-9 < raced.txt | wc -c; wc -c < raced.txt"); out != fmt.Sprintf("before1\n%d\n", 200<<10) {
		t.Errorf("got %.100q", out)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// cancelling gives up in the midst of what it has.
type cancelling struct{ cancel func() }

func (c cancelling) Read(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

// settled waits until a command prints what it is to print.
func settled(t *testing.T, l *guestlink.Link, script, want string) {
	t.Helper()
	for {
		_, out := Shell(t, l, script)
		if out == want {
			return
		}
		if _, err := l.Stat(t.Context(), ""); err != nil || t.Context().Err() != nil || !strings.Contains(out, ".part-") {
			t.Errorf("%s gives %q, want %q", script, out, want)
			return
		}
	}
}

func meetsStrangeNames(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	long := strings.Repeat("长", 85) // 255 bytes
	names := []string{"a\nb", "tab\there", " space ", "quote\"'", "back\\slash", "é", "e\u0301", "\u202Ertl", "-rf", "~", "$HOME", "*", "CON", "a:b", "\x01\x7f", long}
	for _, name := range names {
		put(t, l, name, name)
	}
	put(t, l, "dir\n/"+long, "inside")
	slices.Sort(names)
	want := slices.Concat(names, []string{"dir\n/"})
	slices.Sort(want)
	wantListed(t, l, "", want...)
	for _, name := range names {
		var got bytes.Buffer
		if _, err := l.ReadFile(t.Context(), name, 0, &got); err != nil || got.String() != name {
			t.Errorf("%q has %q, %v", name, got.String(), err)
		}
		_, err := l.Move(t.Context(), name, "moved/"+name)
		wantCode(t, fmt.Sprintf("move %q", name), err, "")
		wantCode(t, fmt.Sprintf("remove %q", name), l.Remove(t.Context(), "moved/"+name, false), "")
	}
	if code, out := Shell(t, l, `printf x > "$(printf 'bad\377name')"; printf y > good; mkdir "$(printf 'dir\377')"; printf z > "$(printf 'dir\377')/z"`); code != 0 {
		t.Fatal(out)
	}
	wantListed(t, l, "", "bad%FFname", "dir\n/", "dir%FF/", "good", "moved/")
	files, _, err := l.ListFiles(t.Context())
	if err != nil || len(files) != 4 {
		t.Errorf("%v are listed, %v", files, err)
	}
	var got bytes.Buffer
	if _, err := l.ReadFile(t.Context(), "dir%FF/z", 0, &got); err != nil || got.String() != "z" {
		t.Errorf("the name that is no text leads to %q, %v", got.String(), err)
	}
	for _, name := range []string{"bad\ufffdname", "bad", "dir\ufffd"} {
		_, err := l.Stat(t.Context(), name)
		wantCode(t, "the wrong file", err, "file_not_found")
	}
}

// meetsLargeTrees has more folders than can be looked at, or be open at one time.
func meetsLargeTrees(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{Limits: sandbox.Limits{OpenFiles: 256}})
	for _, c := range []struct{ name, script string }{
		{"deep", `python3 -c "
import os
os.mkdir('kept')
for i in range(800):
    os.mkdir('deep'); open('file', 'w').close(); os.symlink('/', 'root')
    os.chdir('deep')"`},
		{"wide", "mkdir wide && cd wide && seq 6000 | xargs mkdir && touch kept"},
	} {
		if code, out := Shell(t, l, c.script); code != 0 {
			t.Fatal(out)
		}
		if files, more, err := l.ListFiles(t.Context()); err != nil || !more || len(files) > 200 {
			t.Errorf("%s: %d files, more: %v, %v", c.name, len(files), more, err)
		}
		wantCode(t, "remove what is "+c.name, l.Remove(t.Context(), c.name, true), "")
	}
	wantListed(t, l, "", "file", "kept/", "root@")
	for _, mode := range []string{"000", "111"} {
		if code, out := Shell(t, l, "mkdir -p locked && chmod "+mode+" locked ."); code != 0 {
			t.Fatal(out)
		}
		wantListed(t, l, "", "file", "kept/", "locked/", "root@")
		if files, more, err := l.ListFiles(t.Context()); err != nil || more || len(files) != 1 {
			t.Errorf("locked with %s: %v %v %v", mode, files, more, err)
		}
	}
}
