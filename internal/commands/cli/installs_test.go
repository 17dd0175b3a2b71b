package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/commands/cli"
	"cove/internal/commands/terminal/terminaltest"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

func installed(p installation.Provision) kernel.Install { return kernel.Install{Provision: p} }

func progress(phase string, received, total int64) kernel.Install {
	return kernel.Install{Progress: &installation.Progress{Phase: phase, Received: received, Total: total, Packages: []installation.Package{{Name: "torch", Version: "2.9.0", Asked: true}}}}
}

func cowsay() installation.Provision {
	return installation.Provision{Installed: []installation.Package{{Name: "cowsay", Version: "6.1", Size: 25_000, Asked: true, Module: "cowsay", Reason: "table"}}, Seconds: 0.42}
}

func cv2() installation.Provision {
	p := installation.Provision{Seconds: 2.1, Installed: []installation.Package{
		{Name: "opencv-python-headless", Version: "4.13.0", Size: 60e6, Asked: true}, {Name: "pyyaml", Version: "6.0.3", Size: 4e6, Asked: true},
	}}
	for _, name := range []string{"a", "b", "c"} {
		p.Installed = append(p.Installed, installation.Package{Name: name, Version: "1"})
	}
	return p
}

func unreachable() *problem.Error {
	return problem.New(problem.IndexUnreachable, "the package index cannot be reached").WithHint("check the network\nor use --offline")
}

func TestInstallsAreTold(t *testing.T) {
	t.Parallel()
	cached, slow := cowsay(), cowsay()
	cached.Cached, slow.Seconds = true, 72
	anew := cowsay()
	anew.Restart = "cowsay needs numpy<2, and numpy 2.1 is imported"
	hidden := installation.Provision{Refused: []installation.Refusal{{Name: "fo\x1b[2Ko", Code: "package_unknown", Reason: "nothing is known\nto provide it", Hint: "did you mean foo?"}}, Notes: []string{"polars 0.1 has no wheel"}}
	again := hidden
	again.Notes, again.Refused = nil, append(again.Refused[:1:1], again.Refused...)
	for name, test := range map[string]struct {
		event       kernel.Event
		want, quiet string
	}{
		"one":               {installed(cowsay()), "installed cowsay 6.1 (0.4 s)\n", ""},
		"cached":            {installed(cached), "installed cowsay 6.1 (cached)\n", ""},
		"slow":              {installed(slow), "installed cowsay 6.1 (1 min 12 s)\n", ""},
		"several":           {installed(cv2()), "installed opencv-python-headless 4.13.0, pyyaml 6.0.3 and 3 more (2.1 s, 64 MB)\n", ""},
		"begun anew":        {kernel.Install{Provision: anew, Restarted: true}, "installed cowsay 6.1 (0.4 s)\ncove: the interpreter was started anew, because cowsay needs numpy<2, and numpy 2.1 is imported\n", ""},
		"not possible now":  {installed(anew), "", ""},
		"refused and noted": {installed(hidden), "cove: polars 0.1 has no wheel\ncove: foo: nothing is known to provide it\n  did you mean foo?\n", "cove: foo: nothing is known to provide it\n  did you mean foo?\n"},
		"refused twice":     {installed(again), "cove: foo: nothing is known to provide it\n  did you mean foo?\n", "cove: foo: nothing is known to provide it\n  did you mean foo?\n"},
		"failure": {kernel.Install{Failure: unreachable()}, "cove: nothing was installed: the package index cannot be reached\n  check the network\n  or use --offline\n",
			"cove: nothing was installed: the package index cannot be reached\n  check the network\n  or use --offline\n"},
		"progress, not on a pipe": {progress("download", 1, 2), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := []kernel.Event{test.event, kernel.Stream{Name: "stdout", Data: []byte("moo\n")}, ok()}
			r := run(t, &scripted{events: events}, nil, "run", "-c", "x")
			if r.code != 0 || r.out != "moo\n" || r.err != test.want {
				t.Errorf("exit code %d, stdout %q, stderr:\n%s\nwant:\n%s", r.code, r.out, r.err, test.want)
			}
			if quiet := run(t, &scripted{events: events}, nil, "run", "-q", "-c", "x"); quiet.err != test.quiet {
				t.Errorf("with -q stderr:\n%s\nwant:\n%s", quiet.err, test.quiet)
			}
		})
	}
}

func TestInstallsAsJSON(t *testing.T) {
	t.Parallel()
	p := cowsay()
	p.Refused = []installation.Refusal{{Name: "foo", Code: "package_unknown", Reason: "why", Hint: "how"}}
	s := &scripted{events: []kernel.Event{
		progress("resolve", 0, 0), progress("resolve", 0, 0), progress("download", 5, 10), installed(p), kernel.Install{Failure: unreachable()},
		kernel.Done{Outcome: kernel.OutcomeRestart, ExitCode: 1, Message: "m"},
	}}
	r := run(t, s, nil, "run", "--json", "-c", "x")
	var got []string
	for line := range strings.Lines(r.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is no JSON", line)
		}
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		`{"type":"install_progress","packages":[{"name":"torch","version":"2.9.0","asked":true}],"phase":"resolve"}`,
		`{"type":"install_progress","packages":[{"name":"torch","version":"2.9.0","asked":true}],"phase":"download","received_bytes":5,"total_bytes":10}`,
		`{"type":"install","cached":false,"notes":[],"packages":[{"name":"cowsay","version":"6.1","size":25000,"asked":true,"module":"cowsay","reason":"table"}],` +
			`"refused":[{"code":"package_unknown","hint":"how","name":"foo","reason":"why"}],"restarted":false,"seconds":0.42}`,
		`{"type":"install","cached":false,"failure":{"code":"index_unreachable","hint":"check the network\nor use --offline","kind":"unavailable","message":"the package index cannot be reached"},` +
			`"notes":[],"packages":[],"refused":[],"restarted":false,"seconds":0}`,
		`{"type":"done","exit_code":1,"message":"m","outcome":"needs_restart","seconds":0}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.code != 125 {
		t.Errorf("exit code %d", r.code)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	events := []kernel.Event{kernel.Done{Outcome: kernel.OutcomeRestart, ExitCode: 1, Message: "foo needs numpy<2, and numpy 2.1 is imported; nothing was run"}}
	r := run(t, &scripted{events: events}, nil, "run", "-c", "import foo")
	want := "cove: foo needs numpy<2, and numpy 2.1 is imported; nothing was run\n  to go on, add --restart: variables and imports are lost then, files are kept\n"
	if r.code != 125 || r.err != want {
		t.Errorf("exit code %d, stderr:\n%s\nwant:\n%s", r.code, r.err, want)
	}
	l := newLab(t, events...)
	if r := l.do(t, nil, "run", "--session", "lab", "--restart", "-c", "import foo"); !l.last.req.Restart {
		t.Errorf("the session was not asked for a new interpreter: %s", r.err)
	}
	if r := run(t, &scripted{}, nil, "run", "--restart", "-c", "x"); r.code != 125 || !strings.Contains(r.err, "--session NAME") {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
}

func TestInstallsWhileAsking(t *testing.T) {
	t.Parallel()
	refused := installation.Provision{Refused: []installation.Refusal{{Name: "foo", Reason: "no package is known to provide foo", Hint: "check the name"}}}
	s := &scripted{events: []kernel.Event{progress("resolve", 0, 0), installed(cowsay()), installed(refused), kernel.Stream{Name: "stdout", Data: []byte("moo\n")}, ok()}}
	r := run(t, s, func(dir string, p *cli.Program) {
		p.NewModel = func(choose.Choice) (model.Model, error) {
			return model.NewReplay("replay", strings.NewReader(recording), 0)
		}
		_ = os.WriteFile(filepath.Join(dir, "r"), nil, 0o600)
	}, "ask", "--model", "replay:$DIR/r", "what is it?")
	want := "```\n[installed cowsay 6.1 (0.4 s)]\n[no package is known to provide foo; check the name]\n  | moo\n"
	if !strings.Contains(r.err, want) {
		t.Errorf("stderr:\n%s\nwant in it:\n%s", r.err, want)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	y := terminaltest.New(t, 40, 8)
	s := &scripted{events: []kernel.Event{
		progress("download", 12_300_000, 64e6), installed(cowsay()), kernel.Stream{Name: "stderr", Data: []byte("half a line")},
		progress("resolve", 0, 0), installed(cowsay()), ok(),
	}}
	seen := make(chan struct{})
	s.pauses = map[int]chan struct{}{1: seen}
	go func() {
		y.UntilShown("downloading torch 2.9.0, 12 of 64 MB")
		close(seen)
	}()
	run(t, s, func(_ string, p *cli.Program) { p.Err = y.Device }, "run", "-c", "x")
	y.Shows("installed cowsay 6.1 (0.4 s)", "half a line", "installed cowsay 6.1 (0.4 s)", "|")
}

// TestLargeDownloadsAreAnnounced wants one line that stays of a download of more than 100 MB, on a terminal and in a pipe, with its size and before it ends.
func TestLargeDownloadsAreAnnounced(t *testing.T) {
	t.Parallel()
	events := []kernel.Event{
		progress("resolve", 0, 0), progress("download", 0, 800e6), progress("download", 400e6, 800e6), progress("unpack", 800e6, 800e6), installed(cowsay()),
		progress("download", 0, 64e6), installed(cowsay()), progress("download", 5, 900e6), installed(cowsay()), ok(),
	}
	const done = "installed cowsay 6.1 (0.4 s)\n"
	want := "downloading torch 2.9.0, 800 MB\n" + done + done + "downloading torch 2.9.0, 900 MB\n" + done
	if r := run(t, &scripted{events: events}, nil, "run", "-c", "x"); r.err != want {
		t.Errorf("stderr:\n%s\nwant:\n%s", r.err, want)
	}
	if r := run(t, &scripted{events: events}, nil, "run", "-q", "-c", "x"); r.err != "" {
		t.Errorf("with -q stderr:\n%s", r.err)
	}
	y := terminaltest.New(t, 60, 12)
	run(t, &scripted{events: events}, func(_ string, p *cli.Program) { p.Err = y.Device }, "run", "-c", "x")
	y.Shows(append(strings.Split(strings.TrimSpace(want), "\n"), "|")...)
	s := &scripted{events: events}
	r := run(t, s, func(dir string, p *cli.Program) {
		p.NewModel = func(choose.Choice) (model.Model, error) {
			return model.NewReplay("replay", strings.NewReader(recording), 0)
		}
		_ = os.WriteFile(filepath.Join(dir, "r"), nil, 0o600)
	}, "ask", "--model", "replay:$DIR/r", "what is it?")
	if strings.Count(r.err, "[downloading torch 2.9.0, 800 MB]\n") != 1 {
		t.Errorf("asking, stderr:\n%s", r.err)
	}
}

func TestInstallFlags(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string][3]bool{"--quiet": {true, false, false}, "--no-install": {false, false, false}, "--offline": {true, true, false}, "--allow-build": {true, false, true}} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			var got [3]bool
			run(t, &scripted{events: []kernel.Event{ok()}, opened: &got}, nil, "run", flag, "-c", "x")
			if got != want {
				t.Errorf("install, offline, build: %v, want %v", got, want)
			}
		})
	}
}
