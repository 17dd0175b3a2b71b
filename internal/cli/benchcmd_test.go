package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cove/internal/bench"
	"cove/internal/cli"
	"cove/internal/config"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/pyenv"
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
func (c *benchCove) Fill(context.Context) error               { return nil }
func (c *benchCove) Save(context.Context, string, bool) error { return nil }
func (c *benchCove) Close(context.Context) error              { return nil }

func (c *benchCove) Execute(context.Context, kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		if c.asked != nil {
			c.asked()
		}
		yield(kernel.Result{Data: kernel.Bundle{"text/plain": c.answer}}, nil)
		yield(ok(), nil)
	}
}

// runBench runs `cove bench` with cove alone unless args say otherwise.
func runBench(t *testing.T, cove *benchCove, signals <-chan os.Signal, args ...string) result {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default(environment)
	cfg.Data = t.TempDir()
	var out, errs bytes.Buffer
	p := &cli.Program{
		In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: environment, Version: "9.9", Config: cfg, Signals: signals,
		Bench: func(context.Context, config.Config, io.Writer) (*cli.BenchSide, error) {
			if cove == nil {
				return nil, problem.New(problem.Unavailable, "gvisor_unusable", "there is no gVisor here").WithHint("see cove doctor")
			}
			return &cli.BenchSide{Cove: cove, Env: &pyenv.Environment{Python: python, Version: "3.0", Set: pyenv.Minimal},
				Close: func(context.Context) error { cove.closed = true; return nil }}, nil
		},
	}
	return result{code: cli.Main(t.Context(), append([]string{"bench"}, args...), p), out: out.String(), err: errs.String()}
}

func TestBench(t *testing.T) {
	t.Parallel()
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
			got := runBench(t, c.cove, nil, c.args...)
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
	got := runBench(t, &benchCove{answer: "2"}, nil, "--peers", "none", "--rows", "roundtrip", "--rounds", "1", "--json", "--quiet")
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
	signals := make(chan os.Signal)
	asked := 0
	cove := &benchCove{answer: "2"}
	cove.asked = func() {
		if asked++; asked == 30 {
			signals <- os.Interrupt
		}
	}
	got := runBench(t, cove, signals, "--peers", "none", "--rows", "roundtrip", "--rounds", "100000")
	if got.code != 130 || !strings.Contains(got.out, "Stopped early") || !cove.closed {
		t.Errorf("exit code %d, closed %v\n%s\n%s", got.code, cove.closed, got.out, got.err)
	}
}

func TestBenchNeedsItsSettings(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	p := &cli.Program{Out: io.Discard, Err: &errs, ConfigErr: errors.New("the settings are broken")}
	if code := cli.Main(t.Context(), []string{"bench"}, p); code != 125 || !strings.Contains(errs.String(), "the settings are broken") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
