package benchcmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
	"cove/tools/bench"
	"cove/tools/bench/benchcmd"
)

// benchCove is cove's side of a benchmark; each of its sessions answers everything with one value.
type benchCove struct {
	answer string
	asked  func() // before each execution
	closed bool
}

func (c *benchCove) Open(context.Context) (bench.CoveSession, error)           { return c, nil }
func (c *benchCove) Claim(context.Context) (bench.CoveSession, error)          { return c, nil }
func (c *benchCove) Resume(context.Context, string) (bench.CoveSession, error) { return c, nil }
func (c *benchCove) Install(context.Context, string, bench.Readiness, bool) (bench.CoveSession, error) {
	return c, nil
}
func (c *benchCove) Fill(context.Context) error  { return nil }
func (c *benchCove) Close(context.Context) error { return nil }

func (c *benchCove) Save(_ context.Context, folder string, _ bool) (sandbox.Checkpoint, error) {
	return sandbox.CheckpointIn(folder), nil
}

func (c *benchCove) Execute(context.Context, kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		if c.asked != nil {
			c.asked()
		}
		yield(kernel.Result{Data: kernel.Bundle{"text/plain": c.answer}}, nil)
		yield(kernel.Done{Outcome: kernel.OutcomeOK}, nil)
	}
}

type result struct {
	code     int
	out, err string
}

func none(string) string { return "" }

// run runs cove-bench with cove alone unless args say otherwise.
func run(t *testing.T, cove *benchCove, signals <-chan os.Signal, args ...string) result {
	t.Helper()
	python := testneeds.FindPython(t).Path
	cfg := config.Default(none)
	cfg.Folders.Data = t.TempDir()
	var out, errs bytes.Buffer
	p := &benchcmd.Program{
		Out: &out, Err: &errs, Version: "9.9", Config: cfg, Signals: signals, Self: program(t, t.TempDir(), "cove"),
		Prepare: func(context.Context, config.Config, io.Writer) (*benchcmd.Side, error) {
			if cove == nil {
				return nil, problem.Received(problem.Unavailable, "gvisor_unusable", "there is no gVisor here").WithHint("see cove doctor")
			}
			return &benchcmd.Side{Cove: cove, Env: &pyenv.Environment{Python: python, Version: "3.0", Set: pyenv.Minimal},
				Close: func(context.Context) error { cove.closed = true; return nil }}, nil
		},
	}
	return result{code: benchcmd.Main(t.Context(), args, p), out: out.String(), err: errs.String()}
}

// program makes one that says its name and ends with 9, and returns its path.
func program(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	testneeds.Program(t, path, "#!/bin/sh\necho \"I am $0\" >&2\nexit 9\n")
	return path
}

func TestBench(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, c := range map[string]struct {
		cove     *benchCove
		args     []string
		code     int
		out, err string // what must be among it
	}{
		"cove answers":         {&benchCove{answer: "2"}, []string{"--peers", "none", "--rows", "roundtrip", "--quick"}, 0, "round trip of 1+1", "[1/1]"},
		"cove is wrong":        {&benchCove{answer: "3"}, []string{"--peers", "none", "--rows", "pool", "--quick"}, 1, "0 %", "answered \"3\""},
		"a peer beside it":     {&benchCove{answer: "2"}, []string{"--peers", "python3", "--rows", "pool", "--rounds", "1"}, 0, "python3 -c", "Preparing python3"},
		"no such row":          {&benchCove{answer: "2"}, []string{"--rows", "speed"}, 125, "", "there is no row speed"},
		"no such peer":         {&benchCove{answer: "2"}, []string{"--peers", "e2b"}, 125, "", "there is no subject e2b"},
		"cove cannot run here": {nil, nil, 125, "", "there is no gVisor here\n  see cove doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, c.cove, nil, c.args...)
			if got.code != c.code || !strings.Contains(got.out, c.out) || !strings.Contains(got.err, c.err) {
				t.Errorf("exit code %d\n%s\n%s", got.code, got.out, got.err)
			}
			if c.cove != nil && !c.cove.closed {
				t.Error("cove's side was not closed")
			}
		})
	}
}

func TestBenchJSONIsOneDocument(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	got := run(t, &benchCove{answer: "2"}, nil, "--peers", "none", "--rows", "roundtrip", "--rounds", "1", "--json", "--quiet")
	var report bench.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, got.out)
	}
	if len(report.Rows) != 1 || len(report.Rows[0].Results[0].Samples) != 20 || report.Version != "9.9" || !report.Complete {
		t.Errorf("%s", got.out)
	}
	if got.err != "" {
		t.Errorf("quiet, and yet it said %q", got.err)
	}
}

func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	signals := make(chan os.Signal)
	asked := 0
	cove := &benchCove{answer: "2"}
	cove.asked = func() {
		if asked++; asked == 30 {
			signals <- os.Interrupt
		}
	}
	got := run(t, cove, signals, "--peers", "none", "--rows", "roundtrip", "--rounds", "100000")
	if got.code != 130 || !strings.Contains(got.out, "Stopped early") || !cove.closed {
		t.Errorf("exit code %d, closed %v\n%s\n%s", got.code, cove.closed, got.out, got.err)
	}
}

func TestBenchNeedsItsSettings(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	p := &benchcmd.Program{Out: io.Discard, Err: &errs, ConfigErr: errors.New("the settings are broken")}
	if code := benchcmd.Main(t.Context(), nil, p); code != 125 || !strings.Contains(errs.String(), "the settings are broken") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

// The program is one that fails with its own path, so that the failure tells which was taken.
func TestTheCoveThatIsMeasured(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	named := program(t, t.TempDir(), "another")
	got := run(t, &benchCove{answer: "2"}, nil, "--peers", "cove-run", "--rows", "first", "--rounds", "1", "--cove", named)
	if !strings.Contains(got.out, "I am "+named) {
		t.Errorf("the one that was named was not run:\n%s", got.out)
	}
	got = run(t, &benchCove{answer: "2"}, nil, "--peers", "cove-run", "--rows", "first", "--rounds", "1")
	if !strings.Contains(got.out, "I am ") || strings.Contains(got.out, named) {
		t.Errorf("the one beside cove-bench was not run:\n%s", got.out)
	}
	got = run(t, &benchCove{answer: "2"}, nil, "--cove", filepath.Join(t.TempDir(), "cove"))
	if got.code != 125 || !strings.Contains(got.err, "is no program") || !strings.Contains(got.err, "make bench") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}
