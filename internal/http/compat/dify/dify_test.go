package dify_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/compat/dify"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const result = "<<RESULT>>{\"a\": \"ü\\n</b>\"}<<RESULT>>\n"

// TestProgramsOfEachLanguage looks at what is run for a request.
func TestProgramsOfEachLanguage(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]struct{ file, command, checked string }{
		"python3": {"main.py", "python main.py", "1"}, "nodejs": {"main.cjs", "node main.cjs", ""},
	} {
		f := &fakeHub{events: []process.Event{out(result[:12]), errs("a warning\n"), out(result[12:]), ends(process.Exit{})}}
		r := run(t, f, language, "1")
		if r.status != 200 || r.Code != 0 || r.Message != "success" || r.Data.Stdout != result || r.Data.Stderr != "a warning\n" || r.Data.Error != "" || r.Data.ExitCode != 0 {
			t.Errorf("%s: %+v", language, r)
		}
		if f.files[want.file] != "1" || f.checked[0] != want.checked {
			t.Errorf("%s: files %q, checked %q", language, f.files, f.checked)
		}
		s := f.started[0]
		if strings.Join(s.Args, " ") != want.command || !s.Followed || s.Input || s.Timeout != 45*time.Second {
			t.Errorf("%s: started %+v", language, s)
		}
		if n := f.made[0]; n.Life != 10*time.Minute || n.Network != nil || n.Name != "" {
			t.Errorf("%s: made %+v", language, n)
		}
	}
}

// TestOutcomes: "error" is empty when a program succeeded, and else says why it failed, with what it wrote.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []process.Event
		code   int
		err    string
	}{
		"a code":                          {[]process.Event{errs("Traceback"), ends(process.Exit{Code: 3})}, 3, "the program ended with exit code 3\nTraceback"},
		"a code, no words":                {[]process.Event{ends(process.Exit{Code: 1})}, 1, "the program ended with exit code 1"},
		"a signal":                        {[]process.Event{ends(process.Exit{Signal: "SIGSEGV"})}, -1, "the program was ended by SIGSEGV"},
		"memory":                          {[]process.Event{ends(process.Exit{Signal: "SIGKILL", Reason: process.ForMemory})}, -1, "out of memory: the program used more than its session may have"},
		"time":                            {[]process.Event{ends(process.Exit{Signal: "SIGKILL", Reason: process.ForTime})}, -1, "timeout: the program ran for more than 45s, and was stopped"},
		"a gap":                           {[]process.Event{{Kind: process.Gap}, ends(process.Exit{})}, -1, "a part of the output was lost"},
		"an end of which nothing is said": {[]process.Event{{Kind: process.Ended}}, -1, "the sandbox does not say how the program ended"},
		"too much":                        {[]process.Event{out("123456"), errs("7890"), out("x"), ends(process.Exit{})}, -1, "the program has printed more than 10 bytes, and was stopped\n7890"},
		"as much as fits":                 {[]process.Event{out("123456"), errs("7890"), ends(process.Exit{})}, 0, ""},
	} {
		f := &fakeHub{events: c.events}
		r := run(t, f, "python3", "1", func(o *dify.Options) {
			if strings.HasSuffix(name, "much") || strings.HasSuffix(name, "fits") {
				o.MaxOutput = 10
			}
		})
		if r.status != 200 || r.Code != 0 || r.Data.ExitCode != c.code || r.Data.Error != c.err {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestOutputThatIsNoText: each byte that is no UTF-8 becomes one replacement character.
func TestOutputThatIsNoText(t *testing.T) {
	t.Parallel()
	r := run(t, &fakeHub{events: []process.Event{out("a\xff\x00\xe4\xb8"), out("\xad"), ends(process.Exit{})}}, "python3", "1")
	if r.Data.Stdout != "a\ufffd\x00中" {
		t.Errorf("%q", r.Data.Stdout)
	}
}

// TestATimeThatTheSandboxDoesNotKeep: the server keeps it, too.
func TestATimeThatTheSandboxDoesNotKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &fakeHub{events: []process.Event{out("x")}, stays: true}, "python3", "while True: pass", func(o *dify.Options) { o.Timeout = time.Second })
		if r.status != 200 || r.Data.ExitCode != -1 || r.Data.Stdout != "x" || !strings.HasPrefix(r.Data.Error, "timeout") {
			t.Errorf("%+v", r)
		}
	})
}

// TestAClientThatLeaves: its session is deleted.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	f := &fakeHub{stays: true, follows: make(chan struct{})}
	ctx, leave := context.WithCancel(auth.With(t.Context(), auth.Local()))
	h, served := surfaceOf(f), make(chan struct{})
	go func() {
		defer close(served)
		request(h, ctx)
	}()
	<-f.follows
	leave()
	<-served
	if made, open := f.sessions(); made != 1 || open != 0 {
		t.Errorf("of %d sessions %d are left", made, open)
	}
}

// TestManyAtOnce: a request that does not get its turn is told to come again.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	f := &fakeHub{stays: true, follows: make(chan struct{})}
	h := surfaceOf(f, func(o *dify.Options) { o.AtOnce, o.Patience = 1, time.Millisecond })
	ctx, leave := context.WithCancel(auth.With(t.Context(), auth.Local()))
	served := make(chan struct{})
	go func() {
		defer close(served)
		request(h, ctx)
	}()
	<-f.follows
	r := ask(t, h, t.Context(), auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`)
	if r.status != 503 || r.Code != -503 || r.header.Get("Retry-After") == "" {
		t.Errorf("%+v", r)
	}
	leave()
	<-served
	if made, open := f.sessions(); made != 1 || open != 0 {
		t.Errorf("of %d sessions %d are left", made, open)
	}
}

// TestNetworks: a program has as much of a network as it may, and hears when it failed for want of one.
func TestNetworks(t *testing.T) {
	t.Parallel()
	failure := []process.Event{errs("socket.gaierror: [Errno -3] Temporary failure in name resolution\n"), ends(process.Exit{Code: 1})}
	f := &fakeHub{events: failure}
	if r := run(t, f, "python3", "1"); f.made[0].Network != nil || !strings.HasSuffix(r.Data.Error, "resolution\nPrograms have no network on this server: its operator can allow destinations.") {
		t.Errorf("%+v", r)
	}
	f = &fakeHub{events: []process.Event{errs("ValueError"), ends(process.Exit{Code: 1})}}
	if r := run(t, f, "python3", "1"); strings.Contains(r.Data.Error, "network") {
		t.Errorf("for another failure: %+v", r)
	}
	f = &fakeHub{events: failure, network: &hub.Network{Allow: []string{"*.example.com"}}}
	if r := run(t, f, "python3", "1"); f.made[0].Network != f.network || strings.Contains(r.Data.Error, "Programs have no network") {
		t.Errorf("%+v", r)
	}
	r := ask(t, surfaceOf(f), t.Context(), auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`)
	if f.made[1].Network != nil || r.status != 200 {
		t.Errorf("one that did not ask for it: %+v, %+v", f.made[1], r)
	}
}

// TestRefusals: what the user of Dify is to read has the status 200.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role         auth.Role
		method, path string
		body         string
		refuse       string
		with         error
		status, code int
		says         string
	}{
		"nobody":           {"", "POST", "run", `{}`, "", nil, 401, -401, "give Dify a key"},
		"a viewer":         {auth.Viewer, "POST", "run", `{"language":"python3","code":"1"}`, "", nil, 403, -403, ""},
		"no JSON":          {auth.Owner, "POST", "run", `language=python3`, "", nil, 200, -400, "not what Dify sends"},
		"no code":          {auth.Owner, "POST", "run", `{"language":"python3"}`, "", nil, 200, -400, "no code"},
		"another language": {auth.Owner, "POST", "run", `{"language":"ruby","code":"1"}`, "", nil, 400, -400, `"ruby"`},
		"too long":         {auth.Owner, "POST", "run", `{"language":"python3","code":"` + strings.Repeat("x", 9<<20) + `"}`, "", nil, 200, -413, "8388608 bytes"},
		"no Node.js":       {auth.Owner, "POST", "run", `{"language":"nodejs","code":"1"}`, "StartProcess", failed(problem.ProgramMissing), 200, -404, "no Node.js"},
		"rules for code":   {auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`, "CheckProgram", failed(problem.CodeRefused), 200, -400, "did not work"},
		"no sessions":      {auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`, "CreateSession", failed(problem.QuotaSessions), 503, -429, ""},
		"a used up day":    {auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`, "CheckProgram", failed(problem.QuotaCPU), 200, -429, ""},
		"a stop":           {auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`, "CreateSession", failed(problem.Draining), 503, -503, ""},
		"a fault":          {auth.Owner, "POST", "run", `{"language":"python3","code":"1"}`, "FollowProcess", errors.New("kingfisher"), 500, -500, "went wrong"},
		"nothing there":    {auth.Owner, "GET", "runs", ``, "", nil, 404, -404, ""},
		"another method":   {auth.Owner, "GET", "run", ``, "", nil, 405, -405, "POST"},
		"node's packages":  {auth.Owner, "GET", "dependencies?language=nodejs", ``, "", nil, 400, -400, ""},
	} {
		f := &fakeHub{refuse: map[string]error{c.refuse: c.with}}
		r := ask(t, surfaceOf(f), t.Context(), c.role, c.method, c.path, c.body)
		if r.status != c.status || r.Code != c.code || !strings.Contains(r.Message, c.says) || strings.Contains(r.Message, "kingfisher") {
			t.Errorf("%s: %+v", name, r)
		}
		if made, open := f.sessions(); open != 0 {
			t.Errorf("%s: of %d sessions %d are left", name, made, open)
		}
	}
}

func TestPreload(t *testing.T) {
	t.Parallel()
	f := &fakeHub{events: []process.Event{ends(process.Exit{})}}
	ask(t, surfaceOf(f), t.Context(), auth.Owner, "POST", "run", `{"language":"python3","code":"print(a)","preload":"a=1"}`)
	if f.files["main.py"] != "a=1\nprint(a)" || f.checked[0] != f.files["main.py"] {
		t.Errorf("%q, checked %q", f.files, f.checked)
	}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	f := &fakeHub{}
	for _, path := range []string{"dependencies?language=python3", "dependencies/refresh?language=python3"} {
		r := ask(t, surfaceOf(f), t.Context(), auth.Owner, "GET", path, "")
		if d := r.Data.Dependencies; r.status != 200 || len(d) != 2 || d[0].Name != "jinja2" || d[1].Version != "2.0" {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := ask(t, surfaceOf(f), t.Context(), auth.Owner, "POST", "dependencies/update", `{"language":"python3"}`); r.status != 200 || r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if made, open := f.sessions(); made != 2 || open != 0 {
		t.Errorf("of %d sessions %d are left", made, open)
	}
}
