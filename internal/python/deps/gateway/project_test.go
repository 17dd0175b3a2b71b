package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyindex"
)

const (
	wheel1 = "demo-1.0-py3-none-any.whl"
	wheel2 = "demo-2.0-py3-none-any.whl"
)

func TestProjectFromEitherForm(t *testing.T) {
	t.Parallel()
	html := `<!DOCTYPE html><html><body><h1>Links for demo</h1>
<a href="../../files/demo-1.0-py3-none-any.whl#sha256=` + sum("one") + `" data-requires-python="&gt;=3.8" data-upload-time="2026-01-01T00:00:00Z" data-yanked="broken">demo-1.0-py3-none-any.whl</a><br/>
<a href="https://elsewhere.invalid/x/demo-2.0-py3-none-any.whl#sha256=` + sum("two") + `" data-core-metadata="sha256=` + sum("meta") + `">demo-2.0-py3-none-any.whl</a>
<a href="../../files/demo-2.0.win32-py2.4.exe#md5=0">demo-2.0.win32-py2.4.exe</a>
<a href="../../files/demo-2.0.tar.gz#sha256=` + sum("sdist") + `">demo-2.0.tar.gz</a></body></html>`
	json := inJSON(t,
		file(wheel1, "one").with("requires-python", ">=3.8").with("yanked", "broken").with("size", 0),
		listed{"filename": wheel2, "url": "https://elsewhere.invalid/x/" + wheel2, "hashes": map[string]string{"sha256": sum("two")}, "core-metadata": map[string]string{"sha256": sum("meta")}},
		listed{"filename": "demo-2.0.win32-py2.4.exe", "url": "../../files/demo-2.0.win32-py2.4.exe", "hashes": map[string]string{}},
		listed{"filename": "demo-2.0.tar.gz", "url": "../../files/demo-2.0.tar.gz", "hashes": map[string]string{"sha256": sum("sdist")}, "requires-python": nil, "yanked": false})
	want := gateway.Project{Name: "demo", FirstUpload: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Releases: 2, Index: "test", Files: []gateway.File{
		{Name: wheel1, Version: "1.0", SHA256: sum("one"), Uploaded: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), RequiresPython: ">=3.8", Yanked: true, Wheel: true},
		{Name: wheel2, Version: "2.0", SHA256: sum("two"), Wheel: true},
		{Name: "demo-2.0.tar.gz", Version: "2.0", SHA256: sum("sdist"), Withheld: "it is a source distribution"},
	}}
	for _, tt := range []struct{ name, kind, body string }{
		{"html", "text/html; charset=utf-8", html},
		{"html without a type", "", html},
		{"json", kindJSON, json},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.page("demo", tt.kind, tt.body)
			o := options(t, s.source())
			for range 2 { // asked for, and from the cache
				got, err := open(t, o).Project(t.Context(), "Demo")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
			if n := len(s.asked("/simple/demo/")); n != 1 {
				t.Errorf("the page was asked for %d times", n)
			}
		})
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	young := file(wheel2, "two").with("upload-time", "2026-06-01T07:00:00Z")
	undated := file(wheel2, "two").with("upload-time", nil)
	age := gateway.Rules{MinAge: 72 * time.Hour}
	undatedToo := gateway.Rules{MinAge: 72 * time.Hour, Undated: true}
	tests := []struct {
		name    string
		rules   gateway.Rules
		files   []listed
		passing string
		why     string // of the wheel of 2.0
	}{
		{"nothing is asked", gateway.Rules{}, []listed{file(wheel1, "one"), young}, wheel1 + " " + wheel2, ""},
		{"too young", age, []listed{file(wheel1, "one"), young}, wheel1, "it was uploaded 5 hours ago, and files have to be 3 days old"},
		{"exempt", gateway.Rules{MinAge: age.MinAge, AgeExempt: []string{"DE*"}}, []listed{young}, wheel2, ""},
		{"not exempt", gateway.Rules{MinAge: age.MinAge, AgeExempt: []string{"other", "demo-*"}}, []listed{file(wheel1, "one"), young}, wheel1, "it was uploaded 5 hours ago, and files have to be 3 days old"},
		{"without a time", age, []listed{file(wheel1, "one"), undated}, wheel1, "the index does not say when it was uploaded, and files have to be 3 days old"},
		{"without a time on an index that has times", undatedToo, []listed{file(wheel1, "one"), undated}, wheel1, "the index does not say when it was uploaded, and files have to be 3 days old"},
		{"without a time on an index that has none", undatedToo, []listed{undated}, wheel2, ""},
		{"a time that is none", age, []listed{file(wheel1, "one"), young.with("upload-time", "yesterday")}, wheel1, "the index does not say when it was uploaded, and files have to be 3 days old"},
		{"no hash", gateway.Rules{}, []listed{file(wheel1, "one"), young.with("hashes", map[string]string{"md5": "0"})}, wheel1, "the index gives no SHA-256 for it"},
		{"a hash that is none", gateway.Rules{}, []listed{file(wheel1, "one"), young.with("hashes", map[string]string{"sha256": "../x"})}, wheel1, "the index gives no SHA-256 for it"},
		{"too big", gateway.Rules{MaxFile: 1 << 20}, []listed{file(wheel1, "one"), young.with("size", 3<<20)}, wheel1, "it has 3.0 MiB, and the limit is 1.0 MiB"},
		{"a denied version", gateway.Rules{Deny: []string{"Demo == 2"}}, []listed{file(wheel1, "one"), young}, wheel1, "its version is on the list of those that are never installed"},
		{"denied versions", gateway.Rules{Deny: []string{"d*==2.*"}}, []listed{file(wheel1, "one"), young}, wheel1, "its version is on the list of those that are never installed"},
		{"listed twice", gateway.Rules{}, []listed{file(wheel1, "one"), young, young.with("hashes", map[string]string{"sha256": sum("three")})}, wheel1, "the index lists it twice, with different hashes"},
		{"listed twice alike", gateway.Rules{}, []listed{young, young}, wheel2, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.page("demo", kindJSON, inJSON(t, tt.files...))
			o := options(t, s.source())
			o.Rules = tt.rules
			g := open(t, o)
			p, err := g.Project(t.Context(), "demo")
			if err != nil {
				t.Fatal(err)
			}
			passing, withheld := names(p)
			if join(passing) != tt.passing || withheld[wheel2] != tt.why {
				t.Errorf("passing: %v, withheld: %v", passing, withheld)
			}
			var want []string
			if tt.why != "" {
				want = []string{"2.0: " + tt.why}
			}
			if diff := cmp.Diff(want, g.Reasons()["demo"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file that appears on an index without times, on a project that was looked up before, is as old as that.
func TestUndatedFilesAgeFromTheirAppearance(t *testing.T) {
	t.Parallel()
	s := serve(t)
	link := func(name string) string { return `<a href="/f/` + name + `#sha256=` + sum(name) + `">` + name + `</a>` }
	s.page("demo", "text/html", link(wheel1))
	o := options(t, s.source())
	o.Rules = gateway.Rules{MinAge: 72 * time.Hour, Undated: true}
	now := noon
	o.Now = func() time.Time { return now }
	see := func(want string, clauses ...string) {
		t.Helper()
		g := open(t, o)
		p, err := g.Project(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		if passing, withheld := names(p); join(passing) != want {
			t.Errorf("passing: %v, withheld: %v", passing, withheld)
		}
		if !p.Undated {
			t.Error("the caller is not told that ages are unknown")
		}
		if diff := cmp.Diff(clauses, g.Reasons()["demo"]); diff != "" {
			t.Error(diff)
		}
	}
	see(wheel1)
	s.page("demo", "text/html", link(wheel1)+link(wheel2))
	now = noon.Add(time.Hour)
	see(wheel1, "2.0: it appeared on the index less than a minute ago, and files have to be 3 days old")
	now = noon.Add(50 * time.Hour)
	see(wheel1, "2.0: it appeared on the index 2 days ago, and files have to be 3 days old")
	now = noon.Add(74 * time.Hour)
	see(wheel1 + " " + wheel2)
}

func TestAllowAndDeny(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, name := range []string{"demo", "demo-kit", "other"} {
		s.page(name, kindJSON, inJSON(t, listed{"filename": strings.ReplaceAll(name, "-", "_") + "-1.0-py3-none-any.whl", "url": "x.whl", "hashes": map[string]string{"sha256": sum(name)}}))
	}
	tests := []struct {
		rules gateway.Rules
		want  map[string]string
	}{
		{gateway.Rules{Deny: []string{"Demo"}}, map[string]string{"demo": "package_denied", "demo-kit": "", "other": ""}},
		{gateway.Rules{Deny: []string{"demo-*"}}, map[string]string{"demo": "", "Demo_Kit": "package_denied", "other": ""}},
		{gateway.Rules{Allow: []string{"demo*"}}, map[string]string{"demo": "", "demo.kit": "", "other": "package_denied"}},
		{gateway.Rules{Allow: []string{"demo*"}, Deny: []string{"demo_kit"}}, map[string]string{"demo": "", "demo-kit": "package_denied"}},
		{gateway.Rules{}, map[string]string{"absent": "package_unknown", "../demo": "package_unknown", "de mo": "package_unknown", "": "package_unknown", strings.Repeat("x", 300): "package_unknown"}},
	}
	for _, tt := range tests {
		o := options(t, s.source())
		o.Rules = tt.rules
		g := open(t, o)
		for name, code := range tt.want {
			_, err := g.Project(t.Context(), name)
			if code == "" && err == nil {
				continue
			}
			wantProblem(t, err, code)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("old", kindJSON, `{"meta":{"api-version":"1.4","project-status":"archived"},"files":[{"filename":"old-1.0-py3-none-any.whl","url":"o.whl","hashes":{"sha256":"`+sum("old")+`"}}]}`)
	s.page("evil", kindJSON, `{"meta":{"api-version":"1.4","project-status":"quarantined","project-status-reason":"malware"},"files":[]}`)
	s.page("worse", "text/html", `<html><head><meta name="pypi:repository-version" content="1.4"><meta name="pypi:project-status" content="quarantined"></head><body></body></html>`)
	g := open(t, options(t, s.source(), s.source()))
	p, err := g.Project(t.Context(), "old")
	if err != nil || p.Status != "archived" {
		t.Errorf("got %q, %v", p.Status, err)
	}
	for _, name := range []string{"evil", "worse"} {
		_, err = g.Project(t.Context(), name)
		wantProblem(t, err, "package_quarantined")
	}
}

func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	bad := []string{"../../etc/demo-1.0-py3-none-any.whl", "demo-1.0-py3-none.whl", "demo-1.0-py3-none-any-x-y.whl", "other-1.0-py3-none-any.whl", "demo-x-py3-none-any.whl",
		"demo-1.0-py3-none-any.whl.exe", ".demo-1.0-py3-none-any.whl", "demo-1.0\n-py3-none-any.whl", "demo-1.0-py3-none-any\x00.whl", "demo-1.0-beta-py3-none-any.whl",
		"demo-" + strings.Repeat("1", 260) + "-py3-none-any.whl", "demo-.tar.gz", "demo.tar.gz", `demo-1.0-py3-none-any".whl`, "demo-1.0/x-py3-none-any.whl"}
	good := map[string]string{"Demo-1.0-1-py2.py3-none-any.whl": "1.0", "demo-1!2.0rc1+cpu.1-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl": "1!2.0rc1+cpu.1",
		"demo-1.0.post1.zip": "1.0.post1", "demo-1.0-2.tar.gz": "1.0-2"}
	var files []listed
	for _, name := range bad {
		files = append(files, file(name, "x").with("url", "/x"))
	}
	for name := range good {
		files = append(files, file(name, "x").with("url", "/x"))
	}
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, files...))
	p, err := open(t, options(t, s.source())).Project(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range p.Files {
		got[f.Name] = f.Version
	}
	if diff := cmp.Diff(good, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheFirstIndexWins(t *testing.T) {
	t.Parallel()
	private, public := serve(t), serve(t)
	private.page("demo", kindJSON, inJSON(t, file(wheel1, "private")))
	public.page("demo", kindJSON, inJSON(t, file(wheel1, "public"), file("demo-99.0-py3-none-any.whl", "bait")))
	public.page("other", kindJSON, inJSON(t, file("other-1.0-py3-none-any.whl", "other")))
	private.page("empty", kindJSON, `{"meta":{"api-version":"1.0"},"files":[]}`)
	public.page("empty", kindJSON, inJSON(t, file("empty-1.0-py3-none-any.whl", "empty")))
	public.page("down", kindJSON, inJSON(t, file("down-1.0-py3-none-any.whl", "down")))
	private.on("/simple/down/", status(http.StatusInternalServerError))
	first, second := private.source(), public.source()
	first.Name, second.Name = "private", "public"
	g := open(t, options(t, first, second))
	for name, index := range map[string]string{"demo": "private", "other": "public", "empty": "public"} {
		p, err := g.Project(t.Context(), name)
		if err != nil || p.Index != index || len(p.Files) != 1 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if len(public.asked("/simple/demo/")) != 0 {
		t.Error("the public index heard of a project of the private one")
	}
	_, err := g.Project(t.Context(), "down")
	wantProblem(t, err, "index_unreachable")
	if len(public.asked("/simple/down/")) != 0 {
		t.Error("an index that does not work was passed over")
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{wheel1: "mine", "other-1.0-py3-none-any.whl": "other", "third-1.0-py3-none-any.whl": "third", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "demo-3.0-py3-none-any.whl"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "theirs"), file(wheel2, "two")))
	o := options(t, pyindex.Source{Name: dir, Folder: dir}, s.source())
	o.Rules.MinAge = 24 * time.Hour
	o.Now = time.Now
	g := open(t, o)
	p, err := g.Project(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if passing, _ := names(p); join(passing) != wheel1+" "+wheel2 || p.Files[0].SHA256 != sum("mine") {
		t.Errorf("got %+v", p)
	}
	var got strings.Builder
	if err := g.Fetch(t.Context(), "demo", wheel1, sum("mine"), &got, nil); err != nil || got.String() != "mine" {
		t.Errorf("fetched %q, %v", got.String(), err)
	}
	if p, err = g.Project(t.Context(), "other"); err != nil || p.Index != dir || p.Undated {
		t.Errorf("got %+v, %v", p, err)
	}
	// A wheel that is replaced is another one, and what it was may not be fetched.
	if err := os.WriteFile(filepath.Join(dir, wheel1), []byte("replaced"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err = g.Project(t.Context(), "demo"); err != nil || p.Files[0].SHA256 != sum("replaced") {
		t.Errorf("got %+v, %v", p, err)
	}
	wantProblem(t, g.Fetch(t.Context(), "demo", wheel1, sum("mine"), &got, nil), "file_unknown")

	s.Close()
	if p, err = g.Project(t.Context(), "third"); err != nil || p.Trouble == nil {
		t.Errorf("a folder does not serve when the index is down: %+v, %v", p, err)
	}
}

func TestFlatPage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	link := func(name, content string) string {
		return `<a href="wheels/` + name + `#sha256=` + sum(content) + `">` + name + `</a>`
	}
	s.on("/links.html", text("text/html", link(wheel1, "one")+link("other-1.0-py3-none-any.whl", "other")))
	s.on("/wheels/"+wheel1, text("", "one"))
	g := open(t, options(t, pyindex.Source{Name: "links", URL: s.URL + "/links.html", Flat: true}))
	for name, want := range map[string]string{"demo": wheel1, "other": "other-1.0-py3-none-any.whl"} {
		p, err := g.Project(t.Context(), name)
		if passing, _ := names(p); err != nil || join(passing) != want {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	var got strings.Builder
	if err := g.Fetch(t.Context(), "demo", wheel1, sum("one"), &got, nil); err != nil || got.String() != "one" {
		t.Errorf("fetched %q, %v", got.String(), err)
	}
	_, err := g.Project(t.Context(), "absent")
	wantProblem(t, err, "package_unknown")
	if n := len(s.asked("/links.html")); n != 1 {
		t.Errorf("the page was read %d times", n)
	}
}
