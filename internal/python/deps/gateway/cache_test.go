package gateway_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
)

func TestRevalidation(t *testing.T) {
	t.Parallel()
	for _, header := range []struct{ answer, question, value string }{
		{"ETag", "If-None-Match", `"v1"`},
		{"Last-Modified", "If-Modified-Since", "Mon, 01 Jun 2026 10:00:00 GMT"},
	} {
		t.Run(header.answer, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			body := inJSON(t, file(wheel1, "one"))
			s.on("/simple/demo/", func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(header.question) == header.value {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				w.Header().Set(header.answer, header.value)
				text(kindJSON, body)(w, r)
			})
			o := options(t, s.source())
			now := noon
			o.Now = func() time.Time { return now }
			ask := func(g *gateway.Gateway, asked int, validated bool) {
				t.Helper()
				p, err := g.Project(t.Context(), "demo")
				if passing, _ := names(p); err != nil || join(passing) != wheel1 {
					t.Fatalf("got %+v, %v", p, err)
				}
				requests := s.asked("/simple/demo/")
				if len(requests) != asked {
					t.Fatalf("asked %d times, want %d", len(requests), asked)
				}
				if last := requests[asked-1]; validated != (last.Header.Get(header.question) == header.value) {
					t.Errorf("the last question had %v", last.Header)
				}
			}
			g := open(t, o)
			ask(g, 1, false)
			now = noon.Add(9 * time.Minute)
			ask(g, 1, false)
			ask(open(t, o), 1, false)
			now = noon.Add(11 * time.Minute)
			ask(open(t, o), 2, true)
			ask(g, 2, true) // which finds what the other has learned
			now = noon.Add(20 * time.Minute)
			ask(g, 2, true)
			now = noon.Add(22 * time.Minute)
			ask(g, 3, true)
			now = noon.Add(-time.Hour) // a clock that was put back
			ask(g, 4, true)
		})
	}
}

func TestOfflineAndStale(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one")))
	s.on("/files/"+wheel1, text("", "one"))
	o := options(t, s.source())
	now := noon
	o.Now = func() time.Time { return now }
	if _, err := open(t, o).Project(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, o).Project(t.Context(), "absent"); problem.Of(err).Code != "package_unknown" {
		t.Fatal(err)
	}
	now = noon.Add(300 * time.Hour)
	before := len(s.asked("/simple/demo/"))

	away := o
	away.Offline = true
	g := open(t, away)
	p, err := g.Project(t.Context(), "demo")
	if err != nil || !p.Stale.Equal(noon) || p.Trouble != nil || len(p.Files) != 1 {
		t.Errorf("offline: %+v, %v", p, err)
	}
	_, err = g.Project(t.Context(), "absent")
	wantProblem(t, err, "package_unknown")
	_, err = g.Project(t.Context(), "other")
	wantProblem(t, err, "index_offline")
	wantProblem(t, g.Fetch(t.Context(), "demo", wheel1, sum("one"), &strings.Builder{}, nil), "index_offline")
	if n := len(s.asked("/simple/demo/")); n != before {
		t.Error("the index was asked although cove is offline")
	}

	// What an index says now counts, also when it is nonsense; when it says nothing, what it has said before does.
	s.on("/simple/demo/", status(http.StatusForbidden))
	_, err = open(t, o).Project(t.Context(), "demo")
	wantProblem(t, err, "index_denied")
	s.on("/simple/demo/", status(http.StatusBadGateway))
	p, err = open(t, o).Project(t.Context(), "demo")
	if err != nil || !p.Stale.Equal(noon) || problem.Of(p.Trouble).Code != "index_unreachable" {
		t.Errorf("an index that is down: %+v, %v", p, err)
	}
	s.Close()
	p, err = open(t, o).Project(t.Context(), "demo")
	if err != nil || problem.Of(p.Trouble).Code != "index_unreachable" {
		t.Errorf("an index that is gone: %+v, %v", p, err)
	}
	_, err = g.Ask(t.Context(), "demo")
	wantProblem(t, err, "index_offline")
}

// TestAskAsks wants to know whether the index answers, which a page that is fresh does not tell.
func TestAskAsks(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one")))
	g := open(t, options(t, s.source()))
	if _, err := g.Ask(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if p, err := g.Project(t.Context(), "demo"); err != nil || p.Trouble != nil {
		t.Fatalf("what is fresh: %+v, %v", p, err)
	}
	_, err := g.Ask(t.Context(), "demo")
	wantProblem(t, err, "index_unreachable")
}

// A cache that something has damaged is no cache.
func TestDamagedCache(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.page("demo", kindJSON, inJSON(t, file(wheel1, "one"), file(wheel2, "two")))
	o := options(t, s.source())
	if _, err := open(t, o).Project(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	path := cached(t, o.Cache)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for name, content := range map[string]string{
		"empty": "", "cut in the middle": string(whole[:len(whole)/2]), "without its end": strings.Join(lines[:len(lines)-2], ""), "of another version": "x" + string(whole),
		"too long": string(whole) + "x", "another format": strings.ReplaceAll(string(whole), "\t", " "), "no number": strings.Replace(string(whole), "\t3\t", "\tx\t", 1),
	} {
		if content == string(whole) {
			t.Fatalf("%s: nothing is damaged", name)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, noon, noon); err != nil {
			t.Fatal(err)
		}
		before := len(s.asked("/simple/demo/"))
		p, err := open(t, o).Project(t.Context(), "demo")
		if err != nil || len(p.Files) != 2 || len(s.asked("/simple/demo/")) != before+1 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// cached returns the files of a cache.
func cached(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestManyAskOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	release := make(chan struct{})
	good := text(kindJSON, inJSON(t, file(wheel1, "one")))
	s.on("/simple/demo/", func(w http.ResponseWriter, r *http.Request) {
		<-release
		good(w, r)
	})
	g := open(t, options(t, s.source()))
	var all sync.WaitGroup
	begun := make(chan struct{}, 20)
	for range 20 {
		all.Go(func() {
			begun <- struct{}{}
			if p, err := g.Project(t.Context(), "demo"); err != nil || len(p.Files) != 1 {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	for range 20 {
		<-begun
	}
	close(release)
	all.Wait()
	if n := len(s.asked("/simple/demo/")); n != 1 {
		t.Errorf("the index was asked %d times", n)
	}
}
