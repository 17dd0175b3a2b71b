package cli_test

import (
	"os"
	"strings"
	"testing"

	"cove/internal/cli"
	"cove/internal/kernel"
)

// TestOutputThatCannotBeWritten gives commands a full device as standard output: none may end as if all were well.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"version"}, {"--help"}, {"run", "--help"}, {"config"}, {"config", "path"}, {"config", "get", "sandbox.memory"}, {"completion", "bash"}, {"history"},
		{"history", "--json"}, {"packages", "resolve", "cv2"}, {"run", "-c", "1"}, {"run", "-c", "1", "--json"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			s := &scripted{events: []kernel.Event{kernel.Stream{Name: "stdout", Data: []byte("hello\n")}, ok()}}
			r := run(t, s, func(dir string, p *cli.Program) {
				remembered(t, "one")(dir, p)
				p.Out = full
			}, args...)
			if r.code != 125 || strings.Count(r.err, "no space left on device") != 1 {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			r = run(t, s, func(dir string, p *cli.Program) {
				remembered(t, "one")(dir, p)
				p.Out = closedPipe{}
			}, args...)
			if r.code != 141 || strings.Contains(r.err, "broken pipe") {
				t.Errorf("a closed pipe: exit code %d: %s", r.code, r.err)
			}
		})
	}
}
