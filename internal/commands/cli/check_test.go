package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

var _ hub.Live = (*scripted)(nil)

// found is what a session says where the same is found by each look.
func found(lines ...string) []kernel.Event {
	lines = append([]string{`{"kind":"source","parsed":true}`}, lines...)
	return []kernel.Event{kernel.Stream{Name: "stdout", Data: []byte(strings.Join(lines, "\n") + "\n")}, ok()}
}

const (
	slowLine = `{"kind":"finding","rule":"slow-iterrows","severity":"warning","line":12,"column":5,"message":"it is \u001b[31mslow","better":"be fast"}`
	noteLine = `{"kind":"finding","rule":"F401","severity":"note","line":1,"column":8,"message":"unused"}`
)

func program(dir string, _ *cli.Program) {
	_ = os.WriteFile(filepath.Join(dir, "a.py"), []byte(strings.Repeat("x = 1\n", 20)), 0o600)
	_ = os.WriteFile(filepath.Join(dir, "b.ipynb"), []byte("{}"), 0o600)
}

func TestCheckShowsFindings(t *testing.T) {
	t.Parallel()
	r := run(t, &scripted{events: found(slowLine, noteLine)}, program, "check", "$DIR/a.py")
	want := r.dir + `/a.py
  1:8   note     F401           unused
  12:5  warning  slow-iterrows  it is [31mslow
                                better: be fast

2 findings in 1 file: 0 errors, 1 warning, 1 note
`
	if r.code != 1 || r.out != want {
		t.Errorf("exit code %d, got\n%s\nwant\n%s\n%s", r.code, r.out, want, r.err)
	}
	if !r.session.closed {
		t.Error("the sandbox was left running")
	}
}

func TestCheckExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []kernel.Event
		args   []string
		want   int
	}{
		"nothing":             {found(), nil, 0},
		"a note":              {found(noteLine), nil, 0},
		"a note that counts":  {found(noteLine), []string{"--fail-on", "note"}, 1},
		"a warning":           {found(slowLine), nil, 1},
		"not bad enough":      {found(slowLine), []string{"--fail-on", "error"}, 0},
		"never":               {found(slowLine), []string{"--fail-on", "never"}, 0},
		"ignored":             {found(slowLine), []string{"--ignore", "slow-"}, 0},
		"the sandbox is gone": {[]kernel.Event{done(kernel.OutcomeSandboxDied)}, nil, 125},
	} {
		r := run(t, &scripted{events: test.events}, program, append([]string{"check", "$DIR/a.py", "--json"}, test.args...)...)
		if r.code != test.want || !json.Valid([]byte(r.out)) {
			t.Errorf("%s: exit code %d, want %d; %s%s", name, r.code, test.want, r.out, r.err)
		}
	}
}

func TestCheckRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		args []string
		code int
	}{
		"nothing to check":       {nil, 2},
		"exclude each other":     {[]string{"$DIR/a.py", "--docs", "--bench"}, 2},
		"does not go with":       {[]string{"$DIR/a.py", "--docs", "--profile"}, 2},
		"takes one file":         {[]string{"$DIR/a.py", "$DIR/a.py", "--docs"}, 2},
		"are for --bench":        {[]string{"$DIR/a.py", "--sizes", "1,2"}, 2},
		"--out is for":           {[]string{"$DIR/a.py", "-o", "x"}, 2},
		"no arguments":           {[]string{"$DIR/a.py", "--", "x"}, 2},
		"unknown flag":           {[]string{"$DIR/a.py", "--wrong"}, 2},
		"not an ordinary file":   {[]string{"$DIR"}, 2},
		"does not exist":         {[]string{"$DIR/none.py"}, 125},
		"is not a notebook that": {[]string{"$DIR/b.ipynb"}, 125},
		"each larger than":       {[]string{"$DIR/a.py", "--bench", "--sizes", "5,5"}, 125},
	} {
		s := &scripted{events: found()}
		r := run(t, s, program, append([]string{"check"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.err, want) {
			t.Errorf("%q: exit code %d, want %d; stderr %q", want, r.code, test.code, r.err)
		}
	}
}

func TestCheckPassesArgumentsOn(t *testing.T) {
	t.Parallel()
	s := &scripted{events: found(`{"kind":"profile","seconds":1,"peak":2048,"exit":0,"measured":true}`, `{"kind":"line","line":3,"python":0.5,"native":0.25,"system":0,"peak":1024}`)}
	r := run(t, s, program, "check", "$DIR/a.py", "--profile", "--", "--year", "2025")
	for _, want := range []string{"ended with exit code 0 after 1.0 s, with at most 2.0 KiB", "750 ms  500 ms  250 ms       -  1.0 KiB     3  x = 1"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	if r.code != 0 {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
}
