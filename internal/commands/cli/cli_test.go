package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/sessions/ondisk"
)

// scripted is a session that emits what a test tells it to. What a command does not need of it, it cannot do.
type scripted struct {
	hub.Live
	events []kernel.Event
	files  map[string]string
	put    map[string]string
	req    kernel.Request
	// hang makes Execute wait for its context before the last event.
	started chan struct{}
	pauses  map[int]chan struct{} // to wait for before the event of that number
	opened  *[3]bool              // what the settings said about packages: install, offline, build
	closed  bool
	// inTurn are the events of each execution, where there are several.
	inTurn   [][]kernel.Event
	executed int
	// vanished has the files be gone when they are fetched.
	vanished bool
	told     map[string]string // what files of the workspace are, by name
}

func (s *scripted) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	s.req = req
	if len(s.inTurn) > 0 {
		s.events = s.inTurn[s.executed]
	}
	s.executed++
	return func(yield func(kernel.Event, error) bool) {
		for i, e := range s.events {
			if pause := s.pauses[i]; pause != nil {
				<-pause
			}
			if s.started != nil && i == len(s.events)-1 {
				close(s.started)
				<-ctx.Done()
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *scripted) PutFile(_ context.Context, path, host string) error {
	text, err := os.ReadFile(host)
	s.put[path] = string(text)
	return err
}

func (s *scripted) Fetch(_ context.Context, path string, w io.Writer) error {
	text, ok := s.files[path]
	if s.vanished {
		return problem.New(problem.FileNotFound, "there is no such file")
	}
	if !ok {
		return errors.New("no such file")
	}
	_, err := io.WriteString(w, text)
	return err
}

func (s *scripted) Files(context.Context) (files []kernel.File, err error) {
	for name := range s.told {
		files = append(files, kernel.File{Path: name})
	}
	return files, nil
}

func (s *scripted) Tell(_ context.Context, paths []string) (told []workspace.Told, err error) {
	for _, name := range paths {
		told = append(told, workspace.Told{What: s.told[name]})
	}
	return told, nil
}
func (s *scripted) ReadFile(context.Context, string, int64) ([]byte, error) { return nil, nil }
func (s *scripted) IsComplete(context.Context, string, string) (string, error) {
	return "", errors.New("there is no kernel to ask")
}
func (s *scripted) KernelNames() []string { return []string{"main"} }
func (s *scripted) May() ([]string, bool) { return nil, false }

func (s *scripted) SetNetwork(context.Context, guestlink.Network) error { return nil }

func (s *scripted) Python() (version string, packages map[string]string) { return "3.11.7", nil }
func (s *scripted) Close(context.Context) error                          { s.closed = true; return nil }
func environment(string) string                                          { return "" }
func ok() kernel.Event                                                   { return kernel.Done{Outcome: kernel.OutcomeOK} }
func done(o kernel.Outcome) kernel.Event {
	return kernel.Done{Outcome: o, ExitCode: 1, Message: "it ended"}
}
func figure(text string) kernel.Bundle {
	return kernel.Bundle{"image/png": base64.StdEncoding.EncodeToString([]byte(text)), "text/plain": "<Figure>"}
}

type result struct {
	code     int
	out, err string
	dir      string
	session  *scripted
}

// run runs a command line whose out folder is result.dir/out; setup may fill that folder first.
func run(t *testing.T, s *scripted, setup func(dir string, p *cli.Program), args ...string) result {
	t.Helper()
	dir := t.TempDir()
	if s.put == nil {
		s.put = map[string]string{}
	}
	cfg := config.Default(func(name string) string { return map[string]string{"HOME": dir}[name] })
	cfg.Folders.Out, cfg.Folders.Runtime = filepath.Join(dir, "out"), filepath.Join(dir, "run")
	var out, errs bytes.Buffer
	p := &cli.Program{
		In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: environment, Config: cfg,
		Open: func(_ context.Context, c config.Config, _ io.Writer) (hub.Live, error) {
			if s.opened != nil {
				*s.opened = [3]bool{c.Packages.Install, c.Packages.Offline, c.Packages.Build}
			}
			return s, nil
		},
		NewModel: func(c choose.Choice) (model.Model, error) {
			return model.NewReplay("replay", strings.NewReader(c.Name), 0)
		},
		Records: func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
			return records(ctx, filepath.Join(dir, "cove.db"), c, o)
		},
	}
	if setup != nil {
		setup(dir, p)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$DIR", dir)
	}
	code := cli.Main(t.Context(), args, p)
	return result{code, out.String(), errs.String(), dir, s}
}

// records is a database with a hub on it, as a command has it.
func records(ctx context.Context, file string, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
	s, err := store.Open(ctx, store.Options{Database: file})
	if err != nil {
		return nil, err
	}
	accounts := &auth.Accounts{Store: s, Audit: s}
	if err := accounts.FoundLocal(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	l := hub.DefaultLimits()
	l.Code, l.Stream, l.Output = 16<<20, 1<<20, int64(c.Sandbox.MaxOutput)
	h, err := hub.New(hub.Options{
		Store: s, Private: true, Models: o.Models, Log: o.Log, Turns: cli.TurnLimits(c), Limits: l,
		Base: ondisk.Base{Engine: c.Sandbox.Engine, Packages: c.Packages.Set, Limits: ondisk.LimitsOf(sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs})},
	})
	return &cli.Records{Hub: h, Store: s, Accounts: accounts, Audit: s, Close: s.Close}, err
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []kernel.Event
		want   int
	}{
		"ok":            {[]kernel.Event{ok()}, 0},
		"sys.exit(7)":   {[]kernel.Event{kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 7}}, 7},
		"exception":     {[]kernel.Event{kernel.Error{Name: "ValueError"}, done(kernel.OutcomeError)}, 1},
		"MemoryError":   {[]kernel.Event{kernel.Error{Name: "MemoryError"}, done(kernel.OutcomeError)}, 137},
		"timeout":       {[]kernel.Event{done(kernel.OutcomeTimeout)}, 124},
		"out of memory": {[]kernel.Event{done(kernel.OutcomeMemory)}, 137},
		"interrupted":   {[]kernel.Event{done(kernel.OutcomeInterrupted)}, 130},
		"segfault":      {[]kernel.Event{kernel.Done{Outcome: kernel.OutcomeDied, Signal: "SIGSEGV"}}, 139},
		"os._exit(4)":   {[]kernel.Event{kernel.Done{Outcome: kernel.OutcomeDied, ExitCode: 4}}, 4},
		"sandbox died":  {[]kernel.Event{done(kernel.OutcomeSandboxDied)}, 125},
		"no outcome":    {nil, 125},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, &scripted{events: test.events}, nil, "run", "-c", "x")
			if r.code != test.want {
				t.Errorf("exit code %d, want %d; stderr: %s", r.code, test.want, r.err)
			}
			if !r.session.closed {
				t.Error("the sandbox was left running")
			}
		})
	}
}

func TestMistakesAreFoundBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	fifo := func(dir string, p *cli.Program) {
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"a/x.csv", "b/x.csv", "caf\xe9.csv", "d\xe9/in.csv"} {
			_ = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
			_ = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		}
		p.Open = func(context.Context, config.Config, io.Writer) (hub.Live, error) {
			t.Error("a sandbox was started")
			return nil, errors.New("started")
		}
	}
	for want, args := range map[string][]string{
		"does not exist":                    {"run", "-c", "x", "-f", "$DIR/none"},
		"not an ordinary file":              {"run", "-c", "x", "-f", "$DIR/pipe"},
		"would both get the name x.csv":     {"run", "-c", "x", "-f", "$DIR/a/x.csv", "-f", "$DIR/b/x.csv"},
		`caf\xe9.csv" is not valid UTF-8`:   {"run", "-c", "x", "-f", "$DIR/caf\xe9.csv"},
		`d\xe9/in.csv" is not valid UTF-8`:  {"run", "-c", "x", "-f", "$DIR/d\xe9"},
		"is not a folder":                   {"run", "-c", "x", "-o", "$DIR/a/x.csv"},
		"after --":                          {"run", "-c", "x", "--year", "2025"},
		"nothing to run":                    {"run"},
		"gvisor, docker or local":           {"run", "-c", "x", "--engine", "podman"},
		"not a size":                        {"run", "-c", "x", "--memory", "lots"},
		"processor cores: this machine has": {"run", "-c", "x", "--cpus", "4000"},
		"of memory: this machine has":       {"run", "-c", "x", "--memory", "900000G"},
		"there is no question":              {"ask"},
		`there is no provider "x"`:          {"ask", "--model", "x/y", "hello"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := run(t, &scripted{}, fifo, args...)
			if r.code != 125 || !strings.Contains(r.err, want) {
				t.Errorf("exit code %d, stderr %q; want 125 and %q", r.code, r.err, want)
			}
		})
	}
}

func TestFilesAndFiguresAreSavedSafely(t *testing.T) {
	t.Parallel()
	s := &scripted{
		events: []kernel.Event{
			kernel.Display{Data: figure("one"), ID: "a"},
			kernel.Display{Data: figure("two"), ID: "a", Update: true},
			kernel.Display{Data: figure("three")},
			kernel.File{Path: "sub/new.csv"}, kernel.File{Path: "../evil"}, kernel.File{Path: "/etc/evil"},
			kernel.File{Path: "bad\x1b]0;name"}, kernel.File{Path: "link/inside"}, kernel.File{Path: "target"},
			ok(),
		},
		files: map[string]string{"sub/new.csv": "1", "../evil": "2", "/etc/evil": "2", "bad\x1b]0;name": "3", "link/inside": "4", "target": "5"},
	}
	r := run(t, s, func(dir string, _ *cli.Program) {
		_ = os.MkdirAll(filepath.Join(dir, "out"), 0o755)
		_ = os.WriteFile(filepath.Join(dir, "victim"), []byte("mine"), 0o600)
		_ = os.Symlink(dir, filepath.Join(dir, "out", "link"))
		_ = os.Symlink(filepath.Join(dir, "victim"), filepath.Join(dir, "out", "target"))
	}, "run", "-c", "x")
	for name, want := range map[string]string{
		"out/figure-1.png": "two", "out/figure-2.png": "three", "out/sub/new.csv": "1", "out/bad_]0;name": "3", "out/target-2": "5", "out/target": "mine", "victim": "mine",
	} {
		got, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"evil", "inside"} {
		if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
			t.Errorf("%s was written outside the out folder", name)
		}
	}
	if strings.ContainsRune(r.err, 0x1b) {
		t.Errorf("a name reached the terminal with its escapes: %q", r.err)
	}
}

func TestInputsAreNotOverwritten(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{kernel.File{Path: "data.csv"}, ok()}, files: map[string]string{"data.csv": "changed"}}
	r := run(t, s, func(dir string, _ *cli.Program) {
		_ = os.WriteFile(filepath.Join(dir, "data.csv"), []byte("mine"), 0o600)
	}, "run", "-c", "x", "-f", "$DIR/data.csv", "-o", "$DIR")
	for name, want := range map[string]string{"data.csv": "mine", "data-2.csv": "changed"} {
		if got, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if !strings.Contains(r.err, "data.csv came with -f and stays as it is") {
		t.Errorf("that the file stays is not said: %s", r.err)
	}
	if s.put["data.csv"] != "mine" {
		t.Errorf("the workspace got %q", s.put)
	}
}

// TestFilesOfTheUsersStay has runs save into a folder with files of the user's: those that an earlier run put there are replaced, and others only with --force.
func TestFilesOfTheUsersStay(t *testing.T) {
	t.Parallel()
	out, data := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".bashrc", "mine")
	write("notes.txt", "mine")
	once := func(text string, spared []string, want map[string]string, flags ...string) {
		t.Helper()
		s := &scripted{files: map[string]string{}}
		for _, name := range []string{".bashrc", "notes.txt", "new.csv"} {
			s.events, s.files[name] = append(s.events, kernel.File{Path: name}), text
		}
		s.events = append(s.events, ok())
		r := run(t, s, func(_ string, p *cli.Program) { p.Config.Folders.Out, p.Config.Folders.Data = out, data }, append([]string{"run", "-c", "x"}, flags...)...)
		for _, name := range []string{".bashrc", "notes.txt", "new.csv"} {
			if said := strings.Contains(r.err, filepath.Join(out, name)+" was there before"); said != slices.Contains(spared, name) {
				t.Errorf("%s: of %s it says %q", text, name, r.err)
			}
		}
		got := map[string]string{}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(out, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			got[e.Name()] = string(content)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	users := []string{".bashrc", "notes.txt"}
	once("first", users, map[string]string{".bashrc": "mine", "notes.txt": "mine", ".bashrc-2": "first", "notes-2.txt": "first", "new.csv": "first"})
	once("second", users, map[string]string{".bashrc": "mine", "notes.txt": "mine", ".bashrc-2": "second", "notes-2.txt": "second", "new.csv": "second"})
	write("new.csv", "I changed it")
	once("third", append(users, "new.csv"), map[string]string{".bashrc": "mine", "notes.txt": "mine", ".bashrc-2": "third", "notes-2.txt": "third", "new.csv": "I changed it", "new-2.csv": "third"})
	once("fourth", nil, map[string]string{".bashrc": "fourth", "notes.txt": "fourth", ".bashrc-2": "third", "notes-2.txt": "third", "new.csv": "fourth", "new-2.csv": "third"}, "--force")
	once("fifth", nil, map[string]string{".bashrc": "fifth", "notes.txt": "fifth", ".bashrc-2": "third", "notes-2.txt": "third", "new.csv": "fifth", "new-2.csv": "third"})
}

func TestRunPassesThrough(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{
		kernel.Stream{Name: "stdout", Data: []byte("\x1b[2Jraw \xff\n")}, kernel.Stream{Name: "stderr", Data: []byte("err\n")},
		kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, ok(),
	}}
	r := run(t, s, nil, "run", "-c", "x", "--", "--year", "2025")
	if r.out != "\x1b[2Jraw \xff\n42\n" || r.err != "err\n" {
		t.Errorf("stdout %q, stderr %q", r.out, r.err)
	}
	if strings.Join(s.req.Args, " ") != "--year 2025" || s.req.Mode != kernel.Cell {
		t.Errorf("request %+v", s.req)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "out")); err == nil {
		t.Error("the out folder was made for nothing")
	}
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	s := &scripted{
		events: []kernel.Event{kernel.Stream{Name: "stdout", Data: []byte("é")}, kernel.Stream{Name: "stdout", Data: []byte{0xff}}, kernel.File{Path: "f"}, ok()},
		files:  map[string]string{"f": "x"},
	}
	r := run(t, s, nil, "run", "--json", "-c", "x")
	var types []string
	for line := range strings.Lines(r.out) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !strings.HasPrefix(line, `{"type":`) {
			t.Errorf("the type is not first in %q", line)
		}
		types = append(types, e["type"].(string))
	}
	if got := strings.Join(types, " "); got != "stream stream file saved done" {
		t.Errorf("events: %s", got)
	}
	if !strings.Contains(r.out, `"data":"/w=="`) {
		t.Errorf("bytes that are not UTF-8 are not base64: %s", r.out)
	}
}

func TestCtrlC(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{done(kernel.OutcomeInterrupted)}, started: make(chan struct{})}
	r := run(t, s, func(_ string, p *cli.Program) {
		signals := make(chan os.Signal)
		p.Signals = signals
		go func() {
			<-s.started
			signals <- os.Interrupt
		}()
	}, "run", "-c", "x")
	if r.code != 130 || !s.closed {
		t.Errorf("exit code %d, closed %v", r.code, s.closed)
	}
}

// closedPipe is standard output whose reader has gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestClosedPipeEndsQuietly(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{kernel.Stream{Name: "stdout", Data: []byte("x")}, done(kernel.OutcomeInterrupted)}}
	r := run(t, s, func(_ string, p *cli.Program) { p.Out = closedPipe{} }, "run", "-c", "x")
	if r.code != 141 || r.err != "" || !s.closed {
		t.Errorf("exit code %d, stderr %q, closed %v", r.code, r.err, s.closed)
	}
}

const recording = `{"parts": [{"text": "Let me see."}, {"code": "6*7"}], "outcome": "ok"}
{"parts": [{"text": "It is \u001b]0;owned\u0007 42."}]}`

func ask(t *testing.T, args ...string) result {
	t.Helper()
	s := &scripted{events: []kernel.Event{kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, ok()}}
	return run(t, s, func(dir string, p *cli.Program) {
		file := filepath.Join(dir, "recording")
		_ = os.WriteFile(file, []byte(recording), 0o600)
		p.NewModel = func(c choose.Choice) (model.Model, error) { return model.OpenReplay(c.Name, 0) }
	}, append([]string{"ask", "--model", "replay:$DIR/recording"}, args...)...)
}

func TestAsk(t *testing.T) {
	t.Parallel()
	r := ask(t, "what is it?")
	if r.code != 0 || r.out != "It is \x1b]0;owned\x07 42.\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", r.code, r.out, r.err)
	}
	for _, want := range []string{"Let me see.", "```python\n6*7\n```", "  | 42\n"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("the narration lacks %q: %q", want, r.err)
		}
	}
	if strings.Contains(r.err, "owned") {
		t.Errorf("an escape sequence is in the narration: %q", r.err)
	}
	quiet := ask(t, "--quiet", "what is it?")
	if quiet.err != "" || quiet.out != r.out {
		t.Errorf("--quiet: stdout %q, stderr %q", quiet.out, quiet.err)
	}
	lines := ask(t, "--json", "what is it?")
	if last := lines.out[strings.LastIndex(strings.TrimSpace(lines.out), "\n")+1:]; !strings.HasPrefix(last, `{"type":"answer"`) {
		t.Errorf("the last line is %q", last)
	}
}

func TestPipedDataGetsAFittingName(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"stdin.csv": "a,b\n1,2\n", "stdin.tsv": "a\tb\n1\t2\n", "stdin.json": "{\"a\": 1}", "stdin.jsonl": "{\"a\":1}\n{\"a\":2}\n",
		"stdin.txt": "hello world\nhow are you", "stdin.png": "\x89PNG\r\n\x1a\n...", "stdin.parquet": "PAR1...", "stdin.xlsx": "PK\x03\x04..xl/workbook.xml", "stdin.bin": "\x00\x01",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := &scripted{events: []kernel.Event{ok()}}
			run(t, s, func(dir string, p *cli.Program) {
				p.In = strings.NewReader(text)
				p.NewModel = func(choose.Choice) (model.Model, error) {
					return model.NewReplay("replay", strings.NewReader(`{"parts": [{"text": "fine"}]}`), 0)
				}
				_ = os.WriteFile(filepath.Join(dir, "r"), nil, 0o600)
			}, "ask", "--model", "replay:$DIR/r", "what is it?")
			if s.put[want] != text {
				t.Errorf("the workspace got %q", s.put)
			}
		})
	}
}

// TestFiguresThatCodeSavedAreNotSavedTwice also wants a figure to be saved whose file does not come.
func TestFiguresThatCodeSavedAreNotSavedTwice(t *testing.T) {
	t.Parallel()
	saved := func(name string) kernel.Event {
		return kernel.Display{Data: figure(name), Metadata: map[string]any{"image/png": json.RawMessage(`{"saved": "` + name + `"}`)}}
	}
	s := &scripted{files: map[string]string{"chart.png": "mine"}, events: []kernel.Event{
		saved("chart.png"), saved("gone.png"), kernel.Display{Data: figure("unsaved")}, kernel.File{Path: "chart.png", Size: 4, Created: true}, ok(),
	}}
	r := run(t, s, func(dir string, _ *cli.Program) {
		_ = os.MkdirAll(filepath.Join(dir, "out"), 0o755)
		_ = os.WriteFile(filepath.Join(dir, "out", "figure-7.png"), []byte("earlier"), 0o600)
	}, "run", "-c", "x")
	for name, want := range map[string]string{"figure-7.png": "earlier", "figure-8.png": "unsaved", "figure-9.png": "gone.png", "chart.png": "mine"} {
		if got, _ := os.ReadFile(filepath.Join(r.dir, "out", name)); string(got) != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(r.dir, "out")); len(entries) != 4 {
		t.Errorf("the folder has %v", entries)
	}
}

func TestDisplaysOfOtherKinds(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{
		kernel.Display{Data: kernel.Bundle{"text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>x</b>"}},
		kernel.Display{Data: kernel.Bundle{"text/plain": "<IPython.core.display.HTML object>", "text/html": "<style>b {}</style>"}},
		kernel.Display{Data: kernel.Bundle{"text/plain": "<pandas.io.formats.style.Styler at 0x7ecbcbf6b690>", "text/html": "<table></table>"}},
		kernel.Display{Data: kernel.Bundle{"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "**b**"}},
		kernel.Display{Data: kernel.Bundle{"text/plain": "<IPython.core.display.JSON object>", "application/json": json.RawMessage(`{"a":1}`)}},
		kernel.Result{Data: kernel.Bundle{"text/plain": "   a\n0  1", "text/html": "<table></table>"}}, ok(),
	}}
	r := run(t, s, nil, "run", "-c", "x")
	if want := "**b**\n{\n  \"a\": 1\n}\n   a\n0  1\n"; r.out != want {
		t.Errorf("stdout %q, want %q", r.out, want)
	}
	for _, want := range []string{"figure-1.html", "figure-2.html", "figure-3.md"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("stderr lacks %s: %q", want, r.err)
		}
	}
}

// recordsIn opens the database of another run.
func recordsIn(dir string) func(context.Context, config.Config, cli.RecordsOptions) (*cli.Records, error) {
	return func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
		return records(ctx, filepath.Join(dir, "cove.db"), c, o)
	}
}
