package cli_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/python/kernel"
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

// TestOwnExitCodesStay wants the exit code of code that failed, or of a signal, to be that also where its output could not be written.
func TestOwnExitCodesStay(t *testing.T) {
	t.Parallel()
	hello := kernel.Stream{Name: "stdout", Data: []byte("hello\n")}
	for name, test := range map[string]struct {
		end  kernel.Event
		want int
	}{
		"its own":              {kernel.Done{Outcome: kernel.OutcomeOK, ExitCode: 3}, 3},
		"of an error":          {kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}, 1},
		"of a timeout":         {kernel.Done{Outcome: kernel.OutcomeTimeout}, 124},
		"stopped for the pipe": {kernel.Done{Outcome: kernel.OutcomeInterrupted}, 141},
	} {
		for _, json := range []string{"--quiet", "--json"} {
			r := run(t, &scripted{events: []kernel.Event{hello, test.end}}, func(_ string, p *cli.Program) { p.Out = closedPipe{} }, "run", json, "-c", "x")
			if r.code != test.want {
				t.Errorf("%s, %s: exit code %d, want %d: %s", name, json, r.code, test.want, r.err)
			}
		}
	}
	signals := make(chan os.Signal)
	s := &scripted{events: []kernel.Event{hello, kernel.Done{Outcome: kernel.OutcomeInterrupted}}, started: make(chan struct{})}
	r := run(t, s, func(_ string, p *cli.Program) {
		p.Signals = signals
		p.Out = writes(func([]byte) (int, error) {
			signals <- syscall.SIGTERM
			return 0, syscall.EPIPE
		})
	}, "run", "-c", "x")
	if r.code != 143 {
		t.Errorf("after SIGTERM: exit code %d: %s", r.code, r.err)
	}
}

// writes is a writer that is a function.
type writes func([]byte) (int, error)

// Write implements io.Writer.
func (w writes) Write(b []byte) (int, error) { return w(b) }

// TestMCPClientsThatLeave wants a client that closes its end to end the command as it ends it otherwise.
func TestMCPClientsThatLeave(t *testing.T) {
	t.Parallel()
	r := run(t, &scripted{}, func(_ string, p *cli.Program) {
		p.In, p.Out = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"), closedPipe{}
		open := p.Records
		p.Records = func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
			r, err := open(ctx, c, o)
			r.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":1,"result":{}}`) })
			r.Ahead = func(context.Context) {}
			return r, err
		}
	}, "mcp")
	if r.code != 0 || r.err != "" {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
