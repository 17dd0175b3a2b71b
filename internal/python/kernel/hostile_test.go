package kernel_test

import (
	"context"
	"encoding/json"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
	"cove/internal/python/kernel"
)

// hostile is a guest whose kernel says what a test wants: after "ready", the messages of a script as the answer to each execution.
type hostile struct {
	ready string
	say   func(say func(h wire.FromProcess, body string), id string)
	hear  func(say func(h wire.FromProcess, body string), h wire.ToKernel, body []byte) // what else it is told; may be nil
}

// start serves a hostile guest and starts a kernel in it.
func start(t *testing.T, g hostile) (*kernel.Kernel, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	go g.serve(t.Context(), wire.NewConn(theirs, false))
	l, err := guestlink.Open(t.Context(), ours, guestlink.Session{})
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
		} else if g.hear != nil {
			g.hear(say, h, body)
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
		{"module when none was offered", func(say func(wire.FromProcess, string), id string) {
			say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"module_request","id":"`+id+`","module":"x"}`)
		}, kernel.OutcomeProtocol, ""},
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

// TestHostileModules has kernels ask for modules as no driver would.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	request := func(module string) string {
		name, _ := json.Marshal(module) // a string
		return `{"type":"module_request","id":"ID","number":1,"module":` + string(name) + `,"loaded":["numpy","a.b","","1x","` + strings.Repeat("y", 300) + `"]}`
	}
	const reply = `{"type":"reply","id":"ID","status":"ok"}`
	for _, c := range []struct {
		name  string
		says  []string
		want  kernel.Outcome
		asked int
	}{
		{"one", []string{request("a.b_1"), reply}, kernel.OutcomeOK, 1},
		{"of another execution", []string{strings.ReplaceAll(request("a"), "ID", "exe1"), reply}, kernel.OutcomeProtocol, 0},
		{"no name", []string{request(""), reply}, kernel.OutcomeProtocol, 0},
		{"a path", []string{request("../x"), reply}, kernel.OutcomeProtocol, 0},
		{"an option", []string{request("-r"), reply}, kernel.OutcomeProtocol, 0},
		{"an empty part", []string{request("a..b"), reply}, kernel.OutcomeProtocol, 0},
		{"a number", []string{request("1a"), reply}, kernel.OutcomeProtocol, 0},
		{"another script", []string{request("имя"), reply}, kernel.OutcomeProtocol, 0},
		{"long", []string{request(strings.Repeat("a", 201)), reply}, kernel.OutcomeProtocol, 0},
		{"lines", []string{request("a\nb"), reply}, kernel.OutcomeProtocol, 0},
		{"many", append(slices.Repeat([]string{request("a")}, 21), reply), kernel.OutcomeProtocol, 1},
		{"at once", append(slices.Repeat([]string{request("a")}, 20), reply), kernel.OutcomeOK, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, err := start(t, hostile{ready: ready, say: func(say func(wire.FromProcess, string), id string) {
				for _, body := range c.says {
					say(wire.FromProcess{Kind: wire.FromMessage}, strings.ReplaceAll(body, "ID", id))
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			var asked, beside atomic.Int32
			req := kernel.Request{Missing: func(ctx context.Context, _ string, loaded []string, _ func(kernel.Event)) (kernel.Paths, error) {
				if beside.Add(1) > 1 {
					t.Error("it was asked for two modules at once")
				}
				defer beside.Add(-1)
				asked.Add(1)
				if !slices.Equal(loaded, []string{"numpy"}) {
					t.Errorf("%q are said to be loaded", loaded)
				}
				<-ctx.Done()
				return kernel.Paths{}, nil
			}}
			for ev, err := range k.Execute(t.Context(), req) {
				if done, ok := ev.(kernel.Done); err != nil || ok && done.Outcome != c.want {
					t.Errorf("ended as %+v, %v", ev, err)
				}
			}
			if n := int(asked.Load()); n != c.asked || beside.Load() != 0 {
				t.Errorf("it was asked %d times, want %d; %d questions outlived the execution", n, c.asked, beside.Load())
			}
		})
	}
}

// TestHostileMessages has kernels say more than anybody could use.
func TestHostileMessages(t *testing.T) {
	reply := func(id string) string { return `{"type":"reply","id":"` + id + `","status":"ok"}` }
	for _, c := range []struct {
		name  string
		limit int64
		says  func(id string) []string
		want  kernel.Outcome
		shown int // events besides the Done
	}{
		{"an object of many empty ones", 0, func(id string) []string {
			return []string{`{"type":"display","data":{"application/json":[` + strings.Repeat("{},", 6<<20) + `0]}}`, reply(id)}
		}, kernel.OutcomeOK, 1},
		{"metadata of many empty ones", 0, func(id string) []string {
			return []string{`{"type":"result","metadata":{"x":[` + strings.Repeat("[],", 6<<20) + `0]}}`, reply(id)}
		}, kernel.OutcomeOK, 1},
		{"an error of many lines", 0, func(id string) []string {
			return []string{`{"type":"error","traceback":[` + strings.Repeat(`"",`, 6<<20) + `""]}`, reply(id)}
		}, kernel.OutcomeOK, 1},
		{"errors without end", 1000, func(id string) []string {
			return append(slices.Repeat([]string{`{"type":"error","name":"` + strings.Repeat("x", 50_000) + `"}`}, 100), reply(id))
		}, kernel.OutcomeOK, 20},
		{"clearing without end", 1000, func(id string) []string {
			return append(slices.Repeat([]string{`{"type":"clear_output","name":"` + strings.Repeat("x", 50_000) + `"}`}, 100), reply(id))
		}, kernel.OutcomeOK, 20},
		{"traceback of numbers", 0, func(string) []string { return []string{`{"type":"error","traceback":[1]}`} }, kernel.OutcomeProtocol, 0},
		{"data of another type", 0, func(string) []string { return []string{`{"type":"display","data":[]}`} }, kernel.OutcomeProtocol, 0},
		{"questions without end", 0, func(id string) []string {
			return slices.Repeat([]string{`{"type":"input_request","id":"` + id + `"}`}, 100)
		}, kernel.OutcomeProtocol, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := start(t, hostile{ready: ready, say: func(say func(wire.FromProcess, string), id string) {
				for _, body := range c.says(id) {
					say(wire.FromProcess{Kind: wire.FromMessage}, body)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			before := inUse()
			var asking atomic.Int32
			input := func(string, bool) (string, error) {
				asking.Add(1)
				<-t.Context().Done()
				return "", t.Context().Err()
			}
			var shown []kernel.Event
			for ev, err := range k.Execute(t.Context(), kernel.Request{OutputLimit: c.limit, Input: input}) {
				if err != nil {
					t.Fatal(err)
				}
				if done, ok := ev.(kernel.Done); !ok {
					shown = append(shown, ev)
				} else if done.Outcome != c.want || len(shown) != c.shown {
					t.Errorf("%d shown, ended as %+v", len(shown), done)
				}
			}
			if held := inUse() - before; held > 128<<20 {
				t.Errorf("what it said takes %d MiB", held>>20)
			}
			if n := asking.Load(); n > 8 {
				t.Errorf("it asked for input %d times at once", n)
			}
			for _, ev := range shown {
				if failed, ok := ev.(kernel.Error); ok && len(failed.Traceback) > 2000 {
					t.Errorf("a traceback of %d lines", len(failed.Traceback))
				}
			}
		})
	}
}

// TestHostileAside has a kernel say much when it was not asked.
func TestHostileAside(t *testing.T) {
	k, err := start(t, hostile{ready: ready, say: func(say func(wire.FromProcess, string), id string) {
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"display","data":{"text/plain":"`+strings.Repeat("x", 30<<20)+`"}}`)
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := inUse()
	for range 2 {
		if done, _ := finish(t, k); done.Outcome != kernel.OutcomeOK {
			t.Errorf("ended as %+v", done)
		}
		await(t, "what it says", func() bool { return inUse()-before > 16<<20 })
		await(t, "the end of it", func() bool { return inUse()-before < 16<<20 })
	}
}

// inUse returns the bytes of memory that are in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestHostileValues has values come through as they are, or not at all.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	k, err := start(t, hostile{ready: ready, say: func(say func(wire.FromProcess, string), id string) {
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"display","metadata":{"deep":`+deep(9000)+`,"x":{"y":"\"["}},"data":{"text/plain":"a\u0000b","text/html":{},"image/png":1,
			"application/json":{"n":12345678901234567890,"text":"`+"\xff"+`"},"application/vnd.x+json":"text","application/deep+json":`+deep(501)+`,"application/flat+json":`+deep(500)+`}}`)
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"display","data":null,"metadata":null}`)
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
	}})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for ev, err := range k.Execute(t.Context(), kernel.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(kernel.Display); ok {
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, string(text))
		}
	}
	want := []string{
		`{"Data":{"application/flat+json":` + deep(500) + `,"application/json":{"n":12345678901234567890,"text":"` + "\ufffd" +
			`"},"application/vnd.x+json":"text","text/plain":"a\u0000b"},"Metadata":{"x":{"y":"\"["}},"ID":"","Update":false}`,
		`{"Data":{},"Metadata":null,"ID":"","Update":false}`,
	}
	if !slices.Equal(shown, want) {
		t.Errorf("shown are %q", shown)
	}
}

// TestHostileOutput has a guest write more than it was to pass on.
func TestHostileOutput(t *testing.T) {
	t.Parallel()
	k, err := start(t, hostile{ready: ready, say: func(say func(wire.FromProcess, string), id string) {
		for range 100 {
			say(wire.FromProcess{Kind: wire.FromStdout}, strings.Repeat("x", 1000))
		}
		say(wire.FromProcess{Kind: wire.FromMessage}, `{"type":"reply","id":"`+id+`","status":"ok"}`)
	}})
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for ev, err := range k.Execute(t.Context(), kernel.Request{OutputLimit: 10_000}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case kernel.Stream:
			shown += len(ev.Data)
		case kernel.Done:
			if shown != 10_000 || ev.Dropped != 90_000 {
				t.Errorf("%d bytes shown, %d dropped", shown, ev.Dropped)
			}
		}
	}
}
