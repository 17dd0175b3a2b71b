package kernel_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"cove/internal/kernel"
	"cove/internal/link"
	"cove/internal/wire"
)

// hostile is a guest whose kernel says what a test wants: after "ready", the messages of a script as the answer to each execution.
type hostile struct {
	ready string
	say   func(say func(h wire.FromProcess, body string), id string)
}

// start serves a hostile guest and starts a kernel in it.
func start(t *testing.T, g hostile) (*kernel.Kernel, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	go g.serve(t.Context(), wire.NewConn(theirs, false))
	l, err := link.Open(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	k, err := kernel.Start(t.Context(), l, kernel.Config{Python: "/python"})
	if err == nil {
		t.Cleanup(k.Close)
	}
	return k, err
}

func (g hostile) serve(ctx context.Context, conn *wire.Conn) {
	if _, err := conn.Handshake(wire.Hello{Version: wire.Version, Info: wire.Encode(wire.GuestInfo{PID: 1})}, func(wire.Hello) error { return nil }); err != nil {
		return
	}
	go func() {
		for {
			ch, err := conn.Accept(ctx)
			if err != nil {
				return
			}
			go g.kernel(ch)
		}
	}()
	_ = conn.Run(ctx)
}

func (g hostile) kernel(ch *wire.Channel) {
	var req wire.Request
	if _, err := wire.ReadMessage(ch, wire.MessageLimit, &req); err != nil {
		return
	}
	say := func(h wire.FromProcess, body string) { _ = wire.WriteMessage(ch, h, []byte(body)) }
	_ = wire.WriteMessage(ch, wire.Response{PID: 2}, nil)
	say(wire.FromProcess{Kind: wire.FromMessage}, g.ready)
	for {
		var h wire.ToKernel
		body, err := wire.ReadMessage(ch, wire.MessageLimit, &h)
		if err != nil {
			return
		}
		var asked struct{ Type, ID string }
		if h.Kind == wire.ToMessage && json.Unmarshal(body, &asked) == nil && asked.Type == "execute" {
			g.say(say, asked.ID)
		}
	}
}

const ready = `{"type":"ready","python":"3.11.7"}`

func TestNotReady(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"other message": `{"type":"reply"}`, "not JSON": "{", "not an object": "[1]"} {
		if _, err := start(t, hostile{ready: said}); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}

// TestHostileKernel has kernels say what no driver would.
func TestHostileKernel(t *testing.T) {
	t.Parallel()
	message := func(body string) func(func(wire.FromProcess, string), string) {
		return func(say func(wire.FromProcess, string), _ string) {
			say(wire.FromProcess{Kind: wire.FromMessage}, body)
		}
	}
	for _, c := range []struct {
		name   string
		say    func(say func(wire.FromProcess, string), id string)
		want   kernel.Outcome
		stdout string
	}{
		{"not JSON", message("{"), kernel.OutcomeProtocol, ""},
		{"array", message("[]"), kernel.OutcomeProtocol, ""},
		{"fields of other types", message(`{"type":"error","traceback":"x"}`), kernel.OutcomeProtocol, ""},
		{"reply to another", message(`{"type":"reply","id":"exe99"}`), kernel.OutcomeProtocol, ""},
		{"input that was not offered", message(`{"type":"input_request","id":"exe1"}`), kernel.OutcomeProtocol, ""},
		{"characters cut anywhere", func(say func(wire.FromProcess, string), id string) {
			for _, b := range []byte("a你😀é") {
				say(wire.FromProcess{Kind: wire.FromStdout}, string([]byte{b}))
			}
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
		}, kernel.OutcomeOK, "a你😀é"},
		{"half a character at the end", func(say func(wire.FromProcess, string), id string) {
			say(wire.FromProcess{Kind: wire.FromStdout}, "x\xe4\xbd")
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
		}, kernel.OutcomeOK, "x\xe4\xbd"},
		{"unknown messages are passed over", func(say func(wire.FromProcess, string), id string) {
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"tomorrow"}`)
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
		}, kernel.OutcomeOK, ""},
		{"says it was interrupted", func(say func(wire.FromProcess, string), id string) {
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"error","exit_code":1,"interrupted":true}`)
		}, kernel.OutcomeInterrupted, ""},
		{"exit code beyond a byte", func(say func(wire.FromProcess, string), id string) {
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"error","exit_code":-1}`)
		}, kernel.OutcomeError, ""},
		{"ends", func(say func(wire.FromProcess, string), _ string) {
			say(wire.FromProcess{Kind: wire.FromExit, Signal: 11}, "")
		}, kernel.OutcomeDied, ""},
		{"ends for memory", func(say func(wire.FromProcess, string), _ string) {
			say(wire.FromProcess{Kind: wire.FromExit, Signal: 9, Memory: true}, "")
		}, kernel.OutcomeMemory, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, err := start(t, hostile{ready: ready, say: c.say})
			if err != nil {
				t.Fatal(err)
			}
			done, stdout := finish(t, k)
			if done.Outcome != c.want || stdout != c.stdout || done.ExitCode < 0 || done.ExitCode > 255 {
				t.Errorf("ended as %+v after %q", done, stdout)
			}
		})
	}
}

// TestDisplayLimit has displays count against the output limit.
func TestDisplayLimit(t *testing.T) {
	t.Parallel()
	k, err := start(t, hostile{ready: ready, say: func(say func(wire.FromProcess, string), id string) {
		for range 100 {
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"display","data":{"text/plain":"`+strings.Repeat("x", 1000)+`","image/png":5}}`)
		}
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
	}})
	if err != nil {
		t.Fatal(err)
	}
	var shown int
	for ev, err := range k.Execute(t.Context(), kernel.Request{OutputLimit: 10_000}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case kernel.Display:
			shown++
			if _, ok := ev.Data["image/png"]; ok {
				t.Error("an image that is no text came through")
			}
		case kernel.Done:
			if shown != 9 || ev.Dropped < 90_000 {
				t.Errorf("%d shown, %d bytes dropped", shown, ev.Dropped)
			}
		}
	}
}

func finish(t *testing.T, k *kernel.Kernel) (done kernel.Done, stdout string) {
	t.Helper()
	for ev, err := range k.Execute(t.Context(), kernel.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case kernel.Stream:
			stdout += string(ev.Data)
		case kernel.Done:
			done = ev
		}
	}
	return done, stdout
}
