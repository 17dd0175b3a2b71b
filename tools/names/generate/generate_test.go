package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeIndex serves projects and remembers which pages were asked for.
type fakeIndex struct {
	mu      sync.Mutex
	wheels  map[string][]byte // file name -> content
	asked   map[string]int    // project -> times
	html    bool
	ranges  bool
	onAsked func(project string)
}

func wheel(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range files {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func many(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s/module_with_a_long_name_%06d.py", prefix, i))
	}
	return out
}

func (f *fakeIndex) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		f.serveFile(w, r, name)
		return
	}
	project := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple"), "/")
	f.mu.Lock()
	f.asked[project]++
	hook := f.onAsked
	f.mu.Unlock()
	if hook != nil {
		hook(project)
	}
	var files []string
	for name := range f.wheels {
		if strings.HasPrefix(name, strings.ReplaceAll(project, "-", "_")+"-") && !strings.HasSuffix(name, ".metadata") {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		http.NotFound(w, r)
		return
	}
	f.servePage(w, files)
}

func (f *fakeIndex) servePage(w http.ResponseWriter, files []string) {
	if f.html {
		w.Header().Set("Content-Type", "text/html")
		for _, name := range files {
			yanked := ""
			if strings.Contains(name, "-9.9-") {
				yanked = ` data-yanked="broken"`
			}
			fmt.Fprintf(w, "<a href=\"../../files/%s#sha256=00\"%s>%s</a><br/>\n", name, yanked, name)
		}
		return
	}
	w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
	var page struct {
		Files []map[string]any `json:"files"`
	}
	for _, name := range files {
		page.Files = append(page.Files, map[string]any{
			"filename": name, "url": "../../files/" + name, "yanked": strings.Contains(name, "-9.9-"), "core-metadata": f.wheels[name+".metadata"] != nil,
		})
	}
	if err := json.NewEncoder(w).Encode(page); err != nil {
		panic(err)
	}
}

func (f *fakeIndex) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	content, ok := f.wheels[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if !f.ranges {
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func newFakeIndex(t *testing.T) (*fakeIndex, string) {
	t.Helper()
	f := &fakeIndex{asked: map[string]int{}, ranges: true, wheels: map[string][]byte{
		"plain-1.0-py3-none-any.whl":                        wheel(t, "plainmodule/__init__.py", "tests/__init__.py", "plain-1.0.dist-info/RECORD"),
		"plain-9.9-py3-none-any.whl":                        wheel(t, "yanked.py"),
		"plain-2.0a1-py3-none-any.whl":                      wheel(t, "early.py"),
		"big-1.0-py3-none-any.whl":                          wheel(t, append(many("bigpackage", 3000), "bigpackage/__init__.py")...),
		"declared-1.0-py3-none-any.whl":                     wheel(t, "whatever.py"),
		"garbage-1.0-py3-none-any.whl":                      []byte(strings.Repeat("this is no zip ", 1000)),
		"empty-1.0-py3-none-any.whl":                        {},
		"google_thing-1.0-py3-none-any.whl":                 wheel(t, "google/cloud/odd_thing/__init__.py", "google/cloud/odd_thing/a.py"),
		"native-1.0-cp313-cp313-manylinux_2_28_x86_64.whl":  wheel(t, "_native.cpython-313-x86_64-linux-gnu.so", "native-1.0.data/purelib/nativepy.py", "native-1.0.data/scripts/tool.py"),
		"native-1.0-cp313-cp313-win_amd64.whl":              wheel(t, "windows_only.py"),
		"declared-1.0-py3-none-any.whl.metadata":            []byte("Metadata-Version: 2.5\nName: declared\nImport-Name: declared_module\nImport-Name: _hidden; private\n\nImport-Name: body\n"),
		"insecure-1.0-py3-none-any.whl":                     wheel(t, "../../evil.py", "insecuremodule.py", "/absolute.py"),
		strings.Repeat("long", 1) + "-1.0-py3-none-any.whl": wheel(t, "longmodule.py"),
		"broken-not.a.version-py3-none-any.whl":             wheel(t, "brokenmodule.py"),
		"truncated-1.0-py3-none-any.whl":                    wheel(t, many("truncated", 100)...)[:2000],
	}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL + "/simple"
}

var ranked = []string{"plain", "big", "declared", "garbage", "empty", "absent", "google-thing", "native", "insecure", "long", "broken", "truncated"}

// prepare returns options for a run over the projects of the fake index.
func prepare(t *testing.T, index string) options {
	t.Helper()
	o := options{public: t.TempDir(), cache: t.TempDir(), out: t.TempDir(), index: index, top: len(ranked), pace: time.Microsecond}
	rows := []map[string]any{}
	for i, name := range ranked {
		rows = append(rows, map[string]any{"project": name, "download_count": 1000 - i})
	}
	text, err := json.Marshal(map[string]any{"last_update": "today", "rows": rows})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.public, "top-pypi-packages.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return o
}

const wantTable = `bigpackage	big
declared_module	declared
google.cloud.odd_thing	google-thing
insecuremodule	insecure
longmodule	long
nativepy	native
plainmodule	plain
`

func written(t *testing.T, o options, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func withoutPrivate(table string) string {
	var out strings.Builder
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "_") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func TestTheTableOfAnIndex(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeIndex){
		"JSON":           func(*fakeIndex) {},
		"without ranges": func(f *fakeIndex) { f.ranges = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, url := newFakeIndex(t)
			change(f)
			o := prepare(t, url)
			if err := run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if got := withoutPrivate(written(t, o, "table.txt")); got != wantTable {
				t.Errorf("the table is\n%swant\n%s", got, wantTable)
			}
			if got := written(t, o, "projects.txt"); !strings.Contains(got, "googlething\t7\tgoogle-thing\n") || !strings.HasPrefix(got, "absent\t6\n") {
				t.Errorf("the projects are\n%s", got)
			}
		})
	}
}

func TestAnIndexOfHTML(t *testing.T) {
	t.Parallel()
	f, url := newFakeIndex(t)
	f.html = true
	o := prepare(t, url)
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	// An index of HTML without data-core-metadata leaves only the list of files to read.
	want := strings.Replace(wantTable, "declared_module\tdeclared\n", "", 1) + "whatever\tdeclared\n"
	if got := withoutPrivate(written(t, o, "table.txt")); got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
}

func TestAKilledRunGoesOn(t *testing.T) {
	t.Parallel()
	f, url := newFakeIndex(t)
	o := prepare(t, url)
	ctx, kill := context.WithCancel(t.Context())
	f.onAsked = func(project string) {
		if project == "google-thing" {
			kill()
		}
	}
	if err := run(ctx, o); err == nil {
		t.Fatal("a run that was stopped says that it is finished")
	}
	kept, err := os.ReadFile(filepath.Join(o.cache, "evidence.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	done := strings.Count(string(kept), "\n")
	if done == 0 || done >= len(ranked) {
		t.Fatalf("the stopped run kept %d of %d projects", done, len(ranked))
	}
	torn := []byte(string(kept) + `{"project":"nati`)
	if err := os.WriteFile(filepath.Join(o.cache, "evidence.jsonl"), torn, 0o644); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.onAsked, f.asked = nil, map[string]int{}
	f.mu.Unlock()
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := withoutPrivate(written(t, o, "table.txt")); got != wantTable {
		t.Errorf("the table of a run in two parts is\n%swant\n%s", got, wantTable)
	}
	if len(f.asked) != len(ranked)-done {
		t.Errorf("the second run asked for %d projects, %d were left", len(f.asked), len(ranked)-done)
	}
	f.asked = map[string]int{}
	if err := run(t.Context(), o); err != nil || len(f.asked) != 0 {
		t.Errorf("a third run asked for %v again: %v", f.asked, err)
	}
}

func TestABusyIndexIsAskedAgain(t *testing.T) {
	t.Parallel()
	f, _ := newFakeIndex(t)
	var mu sync.Mutex
	refused := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		first := !refused[r.URL.Path]
		refused[r.URL.Path] = true
		mu.Unlock()
		if first {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	o := prepare(t, server.URL+"/simple")
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := withoutPrivate(written(t, o, "table.txt")); got != wantTable {
		t.Errorf("the table is\n%swant\n%s", got, wantTable)
	}
}

func TestWheelsAndInstalledPackages(t *testing.T) {
	t.Parallel()
	o := prepare(t, "")
	o.top, o.wheels, o.site = 0, t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(o.wheels, "plain-1.0-py3-none-any.whl"), wheel(t, "plainmodule.py"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.wheels, "long-1.0-py3-none-any.whl"), []byte("no zip"), 0o644); err != nil {
		t.Fatal(err)
	}
	info := filepath.Join(o.site, "Big-1.0.dist-info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(info, "RECORD"), []byte("bigpackage/__init__.py,sha256=x,1\n../../bin/tool,,\n\"odd,name.py\",,\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, want := written(t, o, "table.txt"), "bigpackage\tbig\nplainmodule\tplain\n"; got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
}

func TestNothingIsWrittenWithoutAListOfProjects(t *testing.T) {
	t.Parallel()
	o := options{public: t.TempDir(), cache: t.TempDir(), out: t.TempDir()}
	if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "list of projects") {
		t.Errorf("without a list of projects: %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.out, "table.txt")); err == nil {
		t.Error("a table was written")
	}
}
