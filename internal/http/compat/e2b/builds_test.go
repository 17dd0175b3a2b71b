package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/builder"
)

func TestTemplateNames(t *testing.T) {
	t.Parallel()
	for said, want := range map[string][2]string{"app": {"app", ""}, "App:V1.0": {"app", "v1.0"}, "a_b-c:x\n": {"a_b-c", "x"}} {
		if name, tag, err := parseName(said); err != nil || [2]string{name, tag} != want {
			t.Errorf("%q is %s:%s, %v", said, name, tag, err)
		}
	}
	for _, said := range []string{"", ":x", "a:", "a/b", "a b", "a:b:c", "-a", strings.Repeat("a", 200), "é"} {
		if _, _, err := parseName(said); err == nil {
			t.Errorf("%q is a name", said)
		}
	}
	for _, said := range []string{"", "app:", ":x", "other:x", "a b"} {
		if _, err := parseTag(said, "app"); err == nil {
			t.Errorf("%q is a tag", said)
		}
	}
	if tag, err := parseTag("app:v1", "app"); tag != "v1" || err != nil {
		t.Errorf("%q, %v", tag, err)
	}
	for _, name := range []string{baseTemplate, codeTemplate, "06f1k3t3y4m0v8s2k5r7w9x1z4"} {
		if mayName(name) == nil {
			t.Errorf("%s may be built", name)
		}
	}
	one, two := templateID("p", "a"), templateID("q", "a")
	if one != templateID("p", "a") || one == two || mayName(one) != nil || len(one) != 20 {
		t.Errorf("%s, %s", one, two)
	}
}

// TestRecipes says by its step what a build cannot be.
func TestRecipes(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	may := func(image string) (bool, error) {
		if image != "ghcr.io/team/tool:1" {
			return false, errors.New("not this one")
		}
		return true, nil
	}
	if got, err := (buildRequest{Image: "ghcr.io/team/tool:1"}).recipe(may); err != nil || !got.Fetched {
		t.Errorf("an image that the operator allows: %+v, %v", got, err)
	}
	if got, err := (buildRequest{Image: "python:3.12"}).recipe(may); err != nil || got.Fetched {
		t.Errorf("an image that a session stands for: %+v, %v", got, err)
	}
	const start = `{"fromImage": "e2bdev/base", "steps": [{"type": "RUN", "args": ["a", "root"]}, `
	for steps, want := range map[string]struct {
		step int
		word string
	}{
		`{"type": "COPY", "args": ["a", "/b", "user", "0755"], "filesHash": "` + hash + `"}]}`: {-1, ""},
		`{"type": "COPY", "args": ["a", "/b"]}]}`:                                              {2, "hash"},
		`{"type": "COPY", "args": ["../a", "/b"], "filesHash": "` + hash + `"}]}`:              {2, "out of the context"},
		`{"type": "ENV", "args": ["A"]}]}`:                                                     {2, "ENV"},
		`{"type": "MOUNT", "args": []}]}`:                                                      {2, "MOUNT"},
		`{"type": "RUN"}], "fromImage": "node:22"}`:                                            {0, "node:22"},
		`{"type": "RUN"}], "fromImageRegistry": {"type": "registry", "password": "x"}}`:        {0, "credentials"},
	} {
		var in buildRequest
		if err := json.Unmarshal([]byte(start+steps), &in); err != nil {
			t.Fatal(err)
		}
		got, err := in.recipe(may)
		f, failed := errors.AsType[*builder.Fault](err)
		if failed != (want.step >= 0) || failed && (f.Step != want.step || !strings.Contains(f.Message, want.word)) {
			t.Errorf("%s: %v", steps, err)
		}
		if want.step < 0 && (got.Steps[0].User != "root" || got.Steps[1].Archive != hash || got.Steps[1].Mode != "0755") {
			t.Errorf("%+v", got)
		}
	}
}

// TestBuilds has builds of a project alone found, begun once, and bounded.
func TestBuilds(t *testing.T) {
	t.Parallel()
	who, other := auth.Principal{Project: "p", User: "u"}, auth.Principal{Project: "q", User: "u"}
	var b builds
	one := func(i int) *making {
		m := &making{id: uuid(), template: fmt.Sprint("t", i), name: fmt.Sprint("n", i), who: who, began: time.Now(), status: statusWaiting, archives: map[string]string{}}
		b.add(m)
		return m
	}
	first := one(0)
	if b.find(other, first.template, first.id) != nil || b.find(who, "t1", first.id) != nil || b.find(who, "n0", first.id) != first {
		t.Error("a build is found by those who may not, or not by those who may")
	}
	if b.waiting(other, "n0") != nil || b.waiting(who, "t0") != first {
		t.Error("a build waits for another's archives")
	}
	code, err := b.archiveCode(first, "hash")
	if m, hash := b.ofCode(code); err != nil || m != first || hash != "hash" || len(code) < 20 {
		t.Errorf("%q: %v, %v, %v", code, m, hash, err)
	}
	if m, _ := b.ofCode("x" + code); m != nil {
		t.Error("a wrong code leads to a build")
	}
	for i := range mostArchives {
		_, err = b.archiveCode(first, fmt.Sprint(i))
	}
	if err == nil {
		t.Error("archives have no bound")
	}
	ctx, stop := context.WithCancelCause(t.Context())
	if err := b.begin(first, who, 3, stop); err != nil {
		t.Fatal(err)
	}
	if err := b.begin(first, who, 3, stop); err == nil {
		t.Error("it has begun twice")
	}
	for i := 1; i < mostRunning; i++ {
		if err := b.begin(one(i), who, 1, func(error) {}); err != nil {
			t.Error(err)
		}
	}
	late := one(50)
	if f, ok := errors.AsType[*fault](b.begin(late, who, 1, func(error) {})); !ok || f.status != http.StatusTooManyRequests {
		t.Errorf("too many run: %v", f)
	}
	if b.stop(other, "n0") || !b.stop(who, "n0") || !errors.Is(context.Cause(ctx), errBuildStopped) {
		t.Error("it is stopped by others, or not by its own")
	}
	first.end(statusError, &reason{Message: "m"})
	if b.stop(who, "n0") || first.running() {
		t.Error("it runs on")
	}
	for i := range 2 * mostBuilds {
		one(100 + i)
	}
	if len(b.all) > mostBuilds || b.find(who, first.template, first.id) != nil || b.find(who, "t1", b.all[0].id) == nil {
		t.Errorf("%d builds are remembered", len(b.all))
	}
	if id := uuid(); !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("%s is no UUID", id)
	}
}

func TestBuildLogsAreBounded(t *testing.T) {
	t.Parallel()
	m := &making{steps: 2}
	for i, want := range map[int]string{0: "base", 1: "1", 2: "2", 3: "finalize"} {
		if got := m.stepName(i); got != want {
			t.Errorf("step %d is %s", i, got)
		}
	}
	for range mostLogged + 10 {
		m.say(builder.Said{Text: "x"})
	}
	if n := len(m.log); n != mostLogged+1 || m.log[n-1].Level != builder.Warn {
		t.Errorf("%d lines", n)
	}
	large := &making{}
	for range 10 {
		large.say(builder.Said{Text: strings.Repeat("x", 1<<20)})
	}
	if n := len(large.log); n != 5 || large.log[4].Level != builder.Warn {
		t.Errorf("%d large lines", n)
	}
	for from, want := range map[int]int{0: mostLogPage, mostLogged: 1, mostLogged + 5: 0} {
		if got := page(m.log, from, mostLogPage); len(got) != want || got == nil {
			t.Errorf("%d lines from %d on", len(got), from)
		}
	}
}

// TestWithoutProfile has the shells of clients not read the host's profile.
func TestWithoutProfile(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"/bin/bash -l -c echo": "/bin/bash -c echo", "/bin/bash -i -l": "/bin/bash -i", "/bin/bash -c -l": "/bin/bash -c -l", "ls -l": "ls -l"} {
		if got := strings.Join(withoutProfile(strings.Fields(line)), " "); got != want {
			t.Errorf("%q is %q", line, got)
		}
	}
}
