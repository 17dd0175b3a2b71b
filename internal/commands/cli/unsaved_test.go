package cli_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/kernel"
)

func made(last kernel.Event) *scripted {
	return &scripted{files: map[string]string{"made.csv": "a,b\n"}, events: []kernel.Event{kernel.Display{Data: figure("png")}, kernel.File{Path: "made.csv", Size: 4, Created: true}, last}}
}

// replayed has the program ask a model that runs one piece of code.
func replayed(dir string, p *cli.Program) {
	_ = os.WriteFile(filepath.Join(dir, "recording"), nil, 0o600)
	p.NewModel = func(choose.Choice) (model.Model, error) {
		return model.NewReplay("replay", strings.NewReader(recording), 0)
	}
}

// makers are the commands whose results go to the out folder; each runs one piece of code.
func makers(out string) map[string][]string {
	return map[string][]string{
		"run":   {"run", "-o", out, "-c", "x"},
		"quiet": {"run", "-q", "-o", out, "-c", "x"},
		"json":  {"run", "--json", "-o", out, "-c", "x"},
		"ask":   {"ask", "--no-history", "-o", out, "--model", "replay:$DIR/recording", "what is it?"},
		"chat":  {"chat", "--no-history", "-o", out, "--model", "replay:$DIR/recording"},
		"repl":  {"repl", "-o", out},
	}
}

// TestResultsThatAreNotSaved wants every command to fail whose results cannot be written, and to say what is missing.
func TestResultsThatAreNotSaved(t *testing.T) {
	t.Parallel()
	for name, args := range makers("/proc/x") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, made(ok()), func(dir string, p *cli.Program) {
				replayed(dir, p)
				if name == "chat" || name == "repl" {
					p.In = strings.NewReader("x\n")
				}
			}, slices.Clone(args)...)
			if r.code != 125 {
				t.Errorf("exit code %d", r.code)
			}
			for _, want := range []string{"cove: not everything was saved in /proc/x: ", "figure-1.png: cannot make the folder /proc/x", "made.csv: cannot make", "\n  choose another folder with --out"} {
				if !strings.Contains(r.err, want) {
					t.Errorf("standard error lacks %q:\n%s", want, r.err)
				}
			}
			if name == "json" && !strings.HasSuffix(r.out, "\n") || name == "json" && !strings.Contains(r.out, `"code":"results_unsaved"`) {
				t.Errorf("standard output:\n%s", r.out)
			}
		})
	}
	r := run(t, made(kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 3}), nil, "run", "-o", "/proc/x", "-c", "x")
	if r.code != 3 || !strings.Contains(r.err, "not everything was saved") {
		t.Errorf("a program of its own exit code: %d\n%s", r.code, r.err)
	}
	gone := made(ok())
	gone.events, gone.vanished = gone.events[1:], true
	if r := run(t, gone, nil, "run", "-c", "x"); r.code != 0 || r.err != "" {
		t.Errorf("of a file that is not there any more: exit code %d\n%s", r.code, r.err)
	}
}

// TestTooManyResults makes more files than one command saves.
func TestTooManyResults(t *testing.T) {
	t.Parallel()
	s := &scripted{files: map[string]string{"one": "1"}}
	for range 1001 {
		s.events = append(s.events, kernel.Display{Data: figure("png")})
	}
	s.events = append(s.events, ok())
	if r := run(t, s, nil, "run", "-q", "-c", "x"); r.code != 125 || !strings.Contains(r.err, "what came after: one command saves at most 1000 files") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// TestResultsOfWhoIsAskedToEnd tells commands to end, as a terminal that is closed does, more than once, while code runs that has made something.
func TestResultsOfWhoIsAskedToEnd(t *testing.T) {
	t.Parallel()
	for s, code := range map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGTERM: 143} {
		for name, args := range makers("$DIR/out") {
			t.Run(s.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				busy := made(kernel.Done{Outcome: kernel.OutcomeInterrupted, ExitCode: 1})
				busy.started = make(chan struct{})
				never, end := io.Pipe()
				defer end.Close()
				r := run(t, busy, func(dir string, p *cli.Program) {
					replayed(dir, p)
					if name == "chat" || name == "repl" {
						p.In = io.MultiReader(strings.NewReader("x\n"), never)
					}
					signals := make(chan os.Signal, 3)
					p.Signals = signals
					go func() {
						<-busy.started
						signals <- s
						if s == syscall.SIGHUP {
							signals <- s
							signals <- syscall.SIGTERM
						}
					}()
				}, slices.Clone(args)...)
				if text, err := os.ReadFile(filepath.Join(r.dir, "out", "made.csv")); string(text) != "a,b\n" || r.code != code {
					t.Errorf("exit code %d, want %d; made.csv has %q (%v); stderr:\n%s", r.code, code, text, err, r.err)
				}
			})
		}
	}
}

// unwritable is an output that is gone, as a terminal that was closed.
type unwritable struct{ err error }

func (u unwritable) Write([]byte) (int, error) { return 0, u.err }

// TestResultsWithoutAnOutput has nobody who can read what is said: what was made is there nevertheless.
func TestResultsWithoutAnOutput(t *testing.T) {
	t.Parallel()
	for name, args := range makers("$DIR/out") {
		for err, code := range map[error]int{syscall.EIO: 125, syscall.EPIPE: 141} {
			t.Run(name+" "+err.Error(), func(t *testing.T) {
				t.Parallel()
				s := made(ok())
				s.events = append([]kernel.Event{kernel.Stream{Name: "stdout", Data: []byte("text\n")}}, s.events...)
				r := run(t, s, func(dir string, p *cli.Program) {
					replayed(dir, p)
					if name == "chat" || name == "repl" {
						p.In = strings.NewReader("x\n")
					}
					p.Out = unwritable{err}
				}, slices.Clone(args)...)
				if text, err := os.ReadFile(filepath.Join(r.dir, "out", "made.csv")); string(text) != "a,b\n" || r.code != code {
					t.Errorf("exit code %d, want %d; made.csv has %q (%v); stderr:\n%s", r.code, code, text, err, r.err)
				}
			})
		}
	}
}

// TestFilesOfEachInput wants what an input of the repl made to be there before the next one is read.
func TestFilesOfEachInput(t *testing.T) {
	t.Parallel()
	s := made(ok())
	var file string
	next := func() (io.Reader, error) {
		text, err := os.ReadFile(file)
		if string(text) != "a,b\n" {
			return nil, errors.Join(err, errors.New("made.csv is not there after the input that made it"))
		}
		return strings.NewReader(""), nil
	}
	r := run(t, s, func(dir string, p *cli.Program) {
		file = filepath.Join(dir, "out", "made.csv")
		p.In = io.MultiReader(strings.NewReader("x\n"), &later{open: next})
	}, "repl", "-q")
	if r.code != 0 {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// later is a reader that is opened when it is read from.
type later struct {
	open func() (io.Reader, error)
	r    io.Reader
}

func (l *later) Read(p []byte) (n int, err error) {
	if l.r == nil {
		if l.r, err = l.open(); err != nil {
			return 0, err
		}
	}
	return l.r.Read(p)
}
