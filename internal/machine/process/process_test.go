package process_test

import (
	"slices"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"INT": 2, "SIGINT": 2, "kill": 9, "15": 15, "sigterm": 15} {
		if got, err := process.ParseSignal(name); err != nil || int(got) != want {
			t.Errorf("%s is %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "0", "65", "-1", "NONE"} {
		if _, err := process.ParseSignal(name); !problem.Has(err, problem.ProcessInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, c := range []struct {
		exit process.Exit
		want int
	}{{process.Exit{Code: 3}, 3}, {process.Exit{Signal: "SIGKILL"}, 137}, {process.Exit{Signal: process.SignalName(15)}, 143}} {
		if got := c.exit.Status(); got != c.want {
			t.Errorf("%+v has the status %d", c.exit, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	base := map[string]string{"PATH": "/bin", "NO_COLOR": "1", "TERM": "dumb"}
	plain := process.Start{Env: map[string]string{"PATH": "/x"}}
	if got, want := plain.Environment(base), []string{"NO_COLOR=1", "PATH=/x", "TERM=dumb"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	tty := process.Start{Terminal: &process.Size{Columns: 80, Rows: 24}}
	if got, want := tty.Environment(base), []string{"COLORTERM=truecolor", "PATH=/bin", "TERM=xterm-256color"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if base["NO_COLOR"] != "1" {
		t.Error("the base was changed")
	}
}
