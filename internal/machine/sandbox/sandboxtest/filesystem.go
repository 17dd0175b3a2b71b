package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
)

// shell runs a line in the sandbox and returns what it said.
func shell(ctx context.Context, t *testing.T, l *guestlink.Link, line string) string {
	t.Helper()
	out, errs, exit := told(ctx, t, l, shellScript(ctx, t, l, line, process.Start{}))
	if exit.Code != 0 {
		t.Fatalf("%s: exit code %d, %s", line, exit.Code, errs)
	}
	return out
}

func readPath(ctx context.Context, t *testing.T, l *guestlink.Link, path string, offset, limit int64) string {
	t.Helper()
	c, err := l.OpenPath(ctx, path, offset, limit)
	if err != nil {
		t.Errorf("read %s: %v", path, err)
		return ""
	}
	defer func() { _ = c.Close() }()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("read %s: %v", path, err)
	}
	return string(text)
}

func writePath(ctx context.Context, t *testing.T, l *guestlink.Link, path, text string, set filesystem.Set) filesystem.Entry {
	t.Helper()
	n, err := l.WritePath(ctx, path, strings.NewReader(text), set, false)
	if err != nil {
		t.Fatalf("write %s: %v", path, err)
	}
	return n
}

// hasAFileSystem looks at, changes, copies, moves and removes what is in the workspace, and asks programs in the sandbox whether they see it.
func hasAFileSystem(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	mode, then, value := uint32(0o640), time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC), "blue"
	n := writePath(ctx, t, l, "deep/a.txt", "hello", filesystem.Set{Mode: &mode, Modified: &then, Attributes: map[string]*string{"color": &value}})
	if n.Kind != filesystem.File || n.Size != 5 || n.Symbolic() != "-rw-r-----" || !n.Modified.Equal(then) || n.Attributes["color"] != "blue" || n.Owner == "" || !strings.HasSuffix(n.Full, "/deep/a.txt") {
		t.Errorf("written: %+v", n)
	}
	if got := shell(ctx, t, l, "stat -c '%a %s %Y' deep/a.txt; cat deep/a.txt"); got != fmt.Sprintf("640 5 %d\nhello", then.Unix()) {
		t.Errorf("a program sees %q", got)
	}
	shell(ctx, t, l, "cd deep; ln -s a.txt good; ln -s nowhere broken; mkfifo pipe; mkdir -p in/it; chmod 000 in/it; echo x > in/y; ln -s . loop")
	entries, more, unnamed, err := l.ListPath(ctx, "deep", 2)
	var seen []string
	for _, n := range entries {
		seen = append(seen, fmt.Sprint(n.Path, " ", n.Kind, " ", n.Target, " ", n.To))
	}
	want := []string{"deep/a.txt file  ", "deep/broken link nowhere ", "deep/good link a.txt file", "deep/in folder  ", "deep/in/it folder  ", "deep/in/y file  ", "deep/loop link . folder", "deep/pipe other  "}
	if err != nil || more || unnamed != 0 || !slices.Equal(seen, want) {
		t.Errorf("listed %q, %v %v %v, want %q", seen, more, unnamed, err, want)
	}
	if n, err := l.StatPath(ctx, "deep/good", false); err != nil || n.Kind != filesystem.File || n.Size != 5 {
		t.Errorf("followed: %+v, %v", n, err)
	}
	if got := readPath(ctx, t, l, "deep/good", 1, 3); got != "ell" {
		t.Errorf("read %q", got)
	}
	_, err = l.OpenPath(ctx, "deep/pipe", 0, 0)
	wantCode(t, "read a pipe", err, "invalid_path")

	// Writing through a symlink changes what it leads to, whose mode stays.
	writePath(ctx, t, l, "deep/good", "other", filesystem.Set{})
	if got := shell(ctx, t, l, "stat -c %a deep/a.txt; cat deep/a.txt; readlink deep/good"); got != "640\nothera.txt\n" {
		t.Errorf("after a write through a symlink: %q", got)
	}
	_, err = l.WritePath(ctx, "deep/a.txt", strings.NewReader("no"), filesystem.Set{}, true)
	wantCode(t, "write anew", err, "file_exists")
	// A write that breaks off changes nothing and leaves nothing behind.
	if _, err = l.WritePath(ctx, "deep/a.txt", io.MultiReader(strings.NewReader("half"), broken{}), filesystem.Set{}, false); err == nil {
		t.Error("a write that broke off is said to be whole")
	}
	if got := readPath(ctx, t, l, "deep/a.txt", 0, 0); got != "other" {
		t.Errorf("after a write that broke off: %q", got)
	}
	changesNames(ctx, t, l)
	gives(t, "the operations of a file system", "yes")
}

// changesNames copies, moves, removes and makes, with what hasAFileSystem has made.
func changesNames(ctx context.Context, t *testing.T, l *guestlink.Link) {
	if _, err := l.CopyPath(ctx, filesystem.Copy{From: "deep/a.txt", To: "new/copy.txt"}); err != nil {
		t.Error(err)
	}
	_, err := l.CopyPath(ctx, filesystem.Copy{From: "deep/a.txt", To: "new/copy.txt"})
	wantCode(t, "copy onto a file", err, "file_exists")
	shell(ctx, t, l, "chmod 755 deep/in/it")
	if _, err := l.CopyPath(ctx, filesystem.Copy{From: "deep", To: "twice"}); err != nil {
		t.Error(err)
	}
	if got := shell(ctx, t, l, "cd twice; find . | sort | tr '\\n' ' '; readlink broken; cat in/y"); got != ". ./a.txt ./broken ./good ./in ./in/it ./in/y ./loop ./pipe nowhere\nx\n" {
		t.Errorf("the copy has %q", got)
	}
	_, err = l.CopyPath(ctx, filesystem.Copy{From: "twice", To: "twice/in/itself"})
	wantCode(t, "copy into itself", err, "invalid_path")
	if n, err := l.MovePath(ctx, filesystem.Copy{From: "twice/a.txt", To: "new/copy.txt", Replace: true}); err != nil || n.Attributes["color"] != "" || n.Size != 5 {
		t.Errorf("moved: %+v, %v", n, err)
	}
	wantCode(t, "remove a full folder", l.RemovePath(ctx, "twice", false), "not_empty")
	if err := errors.Join(l.RemovePath(ctx, "twice", true), l.RemovePath(ctx, "deep/broken", false)); err != nil {
		t.Error(err)
	}
	wantCode(t, "remove nothing", l.RemovePath(ctx, "twice", true), "file_not_found")
	wantCode(t, "remove the workspace", l.RemovePath(ctx, "", true), "invalid_path")
	private, gone := uint32(0o700), uint32(0)
	if n, err := l.MakePath(ctx, "made/folder", filesystem.Set{Mode: &private}, true); err != nil || n.Symbolic() != "drwx------" {
		t.Errorf("made: %+v, %v", n, err)
	}
	_, err = l.MakePath(ctx, "made/folder", filesystem.Set{}, true)
	wantCode(t, "make a folder twice", err, "file_exists")
	if n, err := l.LinkPath(ctx, "made/link", "../deep/a.txt", false); err != nil || n.Target != "../deep/a.txt" || !strings.HasSuffix(n.Resolved, "/deep/a.txt") || n.To != filesystem.File {
		t.Errorf("link: %+v, %v", n, err)
	}
	if _, err := l.ChangePath(ctx, "made", filesystem.Set{Mode: &private}, true); err != nil {
		t.Error(err)
	}
	_, err = l.ChangePath(ctx, "deep/a.txt", filesystem.Set{Owner: "nobody-here"}, false)
	wantCode(t, "an owner that is not there", err, "invalid_request")
	if _, err := l.ChangePath(ctx, "deep/a.txt", filesystem.Set{Mode: &gone, Attributes: map[string]*string{"color": nil}}, false); err != nil {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the client has left") }

// confinesRelativePaths makes symlinks that lead out of the workspace, which no relative path follows.
func confinesRelativePaths(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	shell(ctx, t, l, "mkdir in; ln -s / up; ln -s /etc/passwd users; ln -s /etc in/etc; ln -s in inner; ln -s ../../../../../.. far; echo x > in/x")
	for _, p := range []string{"..", "../x", "up", "up/etc/passwd", "users", "in/etc/passwd", "far/etc/passwd", "in/../../x", "up/../up/etc"} {
		_, statErr := l.StatPath(ctx, p, false)
		_, readErr := l.OpenPath(ctx, p, 0, 0)
		_, listErr := l.SearchFiles(ctx, filesystem.Search{Path: p, Name: "passwd"})
		_, writeErr := l.WritePath(ctx, p+"/new", strings.NewReader("x"), filesystem.Set{}, false)
		_, copyErr := l.CopyPath(ctx, filesystem.Copy{From: "in/x", To: p + "/new"})
		_, watchErr := l.WatchFiles(ctx, p, true)
		for what, err := range map[string]error{"stat": statErr, "read": readErr, "search": listErr, "write": writeErr, "copy": copyErr, "watch": watchErr} {
			if err == nil {
				t.Errorf("%s %q gets through", what, p)
			}
		}
	}
	if n, err := l.StatPath(ctx, "users", true); err != nil || n.Target != "/etc/passwd" {
		t.Errorf("the link itself: %+v, %v", n, err)
	}
	if got := readPath(ctx, t, l, "inner/x", 0, 0); got != "x\n" {
		t.Errorf("a symlink within the workspace leads to %q", got)
	}
	for _, p := range []string{"a\x00b", strings.Repeat("x", 256), strings.Repeat("x/", 200) + "y", strings.Repeat("xy/", 2000), "\xff"} {
		if _, err := l.WritePath(ctx, p, strings.NewReader("x"), filesystem.Set{}, false); err == nil {
			t.Errorf("%.20q is a path", p)
		}
	}
}

// searchesFiles looks for names and text, and replaces some.
func searchesFiles(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	writePath(ctx, t, l, "src/a.py", "import os\nname = 'Ada'\n", filesystem.Set{})
	writePath(ctx, t, l, "src/deep/b.py", "# grüße an Ada\r\nprint(ada)", filesystem.Set{})
	writePath(ctx, t, l, "src/c.bin", "Ada\x00Ada", filesystem.Set{})
	writePath(ctx, t, l, "src/long.txt", strings.Repeat("x", 3000)+"Ada"+strings.Repeat("y", 3000), filesystem.Set{})
	shell(ctx, t, l, "ln -s .. src/loop; echo Ada > src/secret; chmod 000 src/secret")
	for name, c := range map[string]struct {
		search filesystem.Search
		want   []string
	}{
		"names":        {filesystem.Search{Path: "src", Name: "*.py"}, []string{"src/a.py:0:0:", "src/deep/b.py:0:0:"}},
		"paths":        {filesystem.Search{Path: "src", Name: "deep/*"}, []string{"src/deep/b.py:0:0:"}},
		"over folders": {filesystem.Search{Path: "", Name: "**/[ab].p?"}, []string{"src/a.py:0:0:", "src/deep/b.py:0:0:"}},
		"text":         {filesystem.Search{Path: "src", Name: "*.py", Text: "Ada"}, []string{"src/a.py:2:9:name = 'Ada'", "src/deep/b.py:1:12:# grüße an Ada"}},
		"any case":     {filesystem.Search{Path: "src", Name: "*.py", Text: "ada", Fold: true}, []string{"src/a.py:2:9:name = 'Ada'", "src/deep/b.py:1:12:# grüße an Ada", "src/deep/b.py:2:7:print(ada)"}},
		"expression":   {filesystem.Search{Path: "src", Text: `^print\(\w+\)$`, Regular: true}, []string{"src/deep/b.py:2:1:print(ada)"}},
		"one file":     {filesystem.Search{Path: "src/a.py", Text: "os"}, []string{"src/a.py:1:8:import os"}},
		"first":        {filesystem.Search{Path: "src", Text: "Ada", Name: "*.py", Limit: 1}, []string{"src/a.py:2:9:name = 'Ada'"}},
	} {
		found, err := l.SearchFiles(ctx, c.search)
		var got []string
		for _, m := range found.Matches {
			got = append(got, fmt.Sprintf("%s:%d:%d:%s", m.Path, m.Line, m.Column, m.Text))
		}
		if err != nil || !slices.Equal(got, c.want) || found.More != (name == "first") {
			t.Errorf("%s: %q, more %v, %v, want %q", name, got, found.More, err, c.want)
		}
	}
	long, err := l.SearchFiles(ctx, filesystem.Search{Path: "src", Text: "Ada"})
	if err != nil || len(long.Matches) < 3 || len(long.Matches[2].Text) > 500 || !strings.Contains(long.Matches[2].Text, "Ada") || long.Skipped < 1 {
		t.Errorf("everywhere: %+v, %v", long, err)
	}
	_, err = l.SearchFiles(ctx, filesystem.Search{Path: "src", Text: "(", Regular: true})
	wantCode(t, "no expression", err, "invalid_request")
	_, err = l.SearchFiles(ctx, filesystem.Search{Path: "none", Text: "x"})
	wantCode(t, "nowhere", err, "file_not_found")

	shell(ctx, t, l, "chmod 750 src/a.py")
	did, err := l.ReplaceText(ctx, filesystem.Replace{Paths: []string{"src/a.py", "src/none.py", "src/c.bin"}, Text: `'(\w)da'`, Regular: true, With: "'${1}lan'"})
	if err != nil || len(did) != 3 || did[0].Times != 1 || did[0].Err != nil || !problem.Has(did[1].Err, problem.FileNotFound) || did[2].Err == nil {
		t.Errorf("replaced: %+v, %v", did, err)
	}
	if got := shell(ctx, t, l, "stat -c %a src/a.py; cat src/a.py"); got != "750\nimport os\nname = 'Alan'\n" {
		t.Errorf("after replacing: %q", got)
	}
	did, err = l.ReplaceText(ctx, filesystem.Replace{Paths: []string{"src/long.txt"}, Text: "x", With: strings.Repeat("y", 64<<10)})
	if err != nil || did[0].Err == nil {
		t.Errorf("a file that would become too large: %+v, %v", did, err)
	}
}

// watchesFiles has programs and the host change files that are watched, in folders that come and go.
func watchesFiles(t *testing.T, e sandbox.Engine) {
	_, l := Start(t, e, sandbox.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	shell(ctx, t, l, "mkdir -p top/old; echo x > top/file; echo x > outside")
	all, err := l.WatchFiles(ctx, "top", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	one, err := l.WatchFiles(ctx, "top/file", false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	seen := gather(all)
	steps := []struct{ line, want string }{
		{"echo y >> top/file", "write file"},
		{"chmod 600 top/file", "change file"},
		{"mkdir top/new", "create new/"},
		{"echo z > top/new/deep", "create new/deep"}, // on a busy machine the folder is looked at only when this has been written
		{"echo z >> top/new/deep", "write new/deep"},
		{"mkdir -p top/a/b/c && echo q > top/a/b/c/d", "create a/ create a/b/ create a/b/c/ create a/b/c/d"},
		{"mv top/file top/old/moved", "move file>old/moved"},
		{"mv top/a top/e && echo r >> top/e/b/c/d", "move a>e/ write e/b/c/d"},
		{"mv outside top/came", "create came"},
		{"mv top/came outside", "remove came"},
		{"rm -r top/e", "remove e/b/c/d remove e/b/c/ remove e/b/ remove e/"},
	}
	for _, s := range steps {
		shell(ctx, t, l, s.line)
		seen.want(ctx, t, s.line, strings.Fields(s.want))
	}
	// What the host writes comes under another name first, of which nobody hears.
	writePath(ctx, t, l, "top/sent", "x", filesystem.Set{})
	put(t, l, "top/sent too", "x")
	seen.want(ctx, t, "sent", []string{"write", "sent", "write", "sent", "too"})
	seen.never(t, "part-")
	single := gather(one)
	shell(ctx, t, l, "echo 1 > top/file; echo 2 > top/else; echo 3 > top/other && mv top/other top/file; rm top/file")
	single.want(ctx, t, "one file", strings.Fields("create file write file remove file"))
	single.never(t, "else")
	shell(ctx, t, l, "rm -r top")
	seen.want(ctx, t, "the end", []string{"end"})
	_, err = l.WatchFiles(ctx, "none", true)
	wantCode(t, "nothing to watch", err, "file_not_found")
	for range 2 { // the places of those who have left are free again, a moment later
		var held []*guestlink.Watch
		for ctx.Err() == nil {
			w, err := l.WatchFiles(ctx, "", true)
			if err == nil {
				held = append(held, w)
				continue
			}
			if wantCode(t, "one more than there may be", err, "too_many_processes"); len(held) >= wire.WatchLimit-2 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(held) > wire.WatchLimit || ctx.Err() != nil {
			t.Errorf("%d watch at a time", len(held))
		}
		for _, w := range held {
			_ = w.Close()
		}
	}
}

// gathered are the events of a watch as words: "write a", "create b/", "move a>b".
type gathered struct {
	come  chan string
	words []string
}

func gather(w *guestlink.Watch) *gathered {
	g := &gathered{come: make(chan string, 10_000)}
	go func() {
		defer close(g.come)
		for e, err := range w.Events() {
			if err != nil {
				return
			}
			text := string(e.Kind) + " " + e.Path
			if e.From != "" {
				text = string(e.Kind) + " " + e.From + ">" + e.Path
			}
			if e.Folder {
				text += "/"
			}
			g.come <- text
		}
	}()
	return g
}

// want waits until the words have come in their order, with others between them.
func (g *gathered) want(ctx context.Context, t *testing.T, what string, words []string) {
	t.Helper()
	from, left := len(g.words), words
	for len(left) > 0 {
		select {
		case text, ok := <-g.come:
			if !ok {
				t.Fatalf("%s: the watch ended with %q, before %q", what, g.words[from:], left)
			}
			g.words = append(g.words, text)
			for _, word := range strings.Fields(text) {
				if len(left) > 0 && left[0] == word {
					left = left[1:]
				}
			}
		case <-ctx.Done():
			t.Fatalf("%s: %q came, and not %q", what, g.words[from:], left)
		}
	}
}

// never says when something has come that should not.
func (g *gathered) never(t *testing.T, part string) {
	t.Helper()
	for _, text := range g.words {
		if strings.Contains(text, part) {
			t.Errorf("%q came", text)
		}
	}
}
