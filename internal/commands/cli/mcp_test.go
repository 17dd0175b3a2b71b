package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/server/auth"
	"cove/internal/testkit/testneeds"
)

// spokenMCP is a command that speaks the protocol, with a server in its place that answers each request with its method.
type spokenMCP struct {
	t       *testing.T
	in      io.WriteCloser
	out     *bufio.Reader
	signals chan os.Signal
	came    chan struct{} // a request for "wait" is there
	left    chan struct{} // its client has left it
	ended   chan result
}

func speakMCP(t *testing.T) *spokenMCP {
	in, write := io.Pipe()
	read, out := io.Pipe()
	s := &spokenMCP{t: t, in: write, out: bufio.NewReaderSize(read, 1<<20), signals: make(chan os.Signal, 1), came: make(chan struct{}, 1), left: make(chan struct{}, 1), ended: make(chan result, 1)}
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if who, ok := auth.From(r.Context()); !ok || who.Project != auth.Local().Project || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if m.Method == "wait" {
			s.came <- struct{}{}
			<-r.Context().Done()
			s.left <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, said := range []string{`{"method":"told"}`, `{"id":` + string(m.ID) + `,"result":"` + m.Method + `"}`} {
			_, _ = io.WriteString(w, "data: "+said+"\n\n")
		}
	})
	go func() {
		s.ended <- run(t, &scripted{}, func(_ string, p *cli.Program) {
			p.In, p.Out, p.Signals = in, out, s.signals
			open := p.Records
			p.Records = func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
				if o.Sessions == nil || o.Command != "cove mcp" {
					t.Errorf("%+v", o)
				}
				r, err := open(ctx, c, o)
				r.MCP, r.Ahead = served, func(context.Context) {}
				return r, err
			}
		}, "mcp")
		_ = out.Close()
	}()
	return s
}

func (s *spokenMCP) say(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, text+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *spokenMCP) hear(want string) {
	s.t.Helper()
	if line, err := s.out.ReadString('\n'); err != nil || !strings.Contains(line, want) {
		s.t.Fatalf("%q, %v; want %q", line, err, want)
	}
}

func (s *spokenMCP) end(code int) {
	s.t.Helper()
	select {
	case r := <-s.ended:
		if r.code != code || r.err != "" {
			s.t.Errorf("it ended with %d, not %d: %s", r.code, code, r.err)
		}
	case <-time.After(testneeds.Patience):
		s.t.Fatal("it does not end")
	}
}

// TestMCPWithoutAServer says to the command what it can answer, what is no message and what is too long, and ends it.
func TestMCPWithoutAServer(t *testing.T) {
	t.Parallel()
	s := speakMCP(t)
	answered := func(id string) {
		t.Helper()
		s.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`)
		s.hear(`{"method":"told"}`)
		s.hear(`{"id":` + id + `,"result":"tools/list"}`)
	}
	answered("1")
	s.say("")
	s.say("{no message")
	s.hear("-32700")
	s.say(`{"method":5}`)
	s.hear("method has to be a string, not a number")
	s.say(strings.Repeat("x", 33<<20))
	s.hear("longer than 32 MiB")
	answered("2")
	s.say(`{"jsonrpc":"2.0","id":3,"method":"wait"}`)
	<-s.came
	answered("4")
	s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	<-s.left
	if _, err := io.WriteString(s.in, `{"jsonrpc":"2.0","id":5,"method":"last"}`); err != nil { // without an end of the line
		t.Fatal(err)
	}
	_ = s.in.Close()
	s.hear("told")
	s.hear(`{"id":5,"result":"last"}`)
	s.end(0)
}

// TestMCPEndsWithASignal: whichever comes, while a request is under way.
func TestMCPEndsWithASignal(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := speakMCP(t)
			s.say(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
			<-s.came
			s.signals <- signal
			<-s.left
			s.end(code)
		})
	}
}
