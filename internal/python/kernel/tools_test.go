package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/llm/tool"
	"cove/internal/machine/wire"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// offer makes tools out of functions.
func offer(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tools)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// printedWith runs code with tools, and returns what it printed, the name and words of its error, and its end.
func printedWith(t *testing.T, k *kernel.Kernel, req kernel.Request) (printed, failed string, done kernel.Done) {
	t.Helper()
	var out strings.Builder
	for ev, err := range k.Execute(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := ev.(type) {
		case kernel.Stream:
			out.Write(e.Data)
		case kernel.Error:
			failed = e.Name + ": " + e.Value
		case kernel.Done:
			done = e
		}
	}
	return out.String(), failed, done
}

// TestTools calls tools in all the ways that code can.
func TestTools(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	set := offer(t,
		tool.Tool{Name: "add-up", Description: "Adds numbers.", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","description":"The first."},"b":{"type":"integer"},"note":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`), Result: json.RawMessage(`{"type":"integer"}`)},
		tool.Tool{Name: "echo", Description: "Gives back what it gets."},
		tool.Tool{Name: "fail"},
		tool.Tool{Name: "lie", Result: json.RawMessage(`{"type":"integer"}`)},
	)
	var mu sync.Mutex
	var batches []int
	call := func(_ context.Context, calls []tool.Call, answer func(int, tool.Result)) {
		mu.Lock()
		batches = append(batches, len(calls))
		mu.Unlock()
		for _, c := range slices.Backward(calls) {
			switch c.Name {
			case "add-up":
				var in struct{ A, B int }
				_ = json.Unmarshal(c.Arguments, &in)
				answer(c.Number, tool.Result{Value: json.RawMessage(fmt.Sprint(in.A + in.B))})
			case "echo":
				answer(c.Number, tool.Result{Value: c.Arguments})
			case "fail":
				answer(c.Number, tool.Failed("the database is away"))
			case "lie":
				answer(c.Number, tool.Result{Value: json.RawMessage(`"seven"`)})
			}
		}
	}
	run := func(code string) (string, string) {
		t.Helper()
		batches = nil
		printed, failed, _ := printedWith(t, k, kernel.Request{Code: code, Tools: &kernel.Tools{Set: set, Globals: true, Call: call}, Timeout: time.Minute})
		return printed, failed
	}
	for _, c := range []struct{ code, printed, failed string }{
		{"import tools\nprint(tools.add_up(2, 3), tools.add_up(a=2, b=4))", "5 6\n", ""},
		{"print(await add_up(2, 3))", "5\n", ""},
		{"import asyncio\nprint(await asyncio.gather(*(add_up(n, n) for n in range(50))))", "[" + strings.Join(doubled(50), ", ") + "]\n", ""},
		{"import asyncio, tools\nasync def main():\n    return await asyncio.gather(tools.aio.add_up(1, 1), tools.aio.echo(x=[1, None, 'é']))\nprint(asyncio.run(main()))", "[2, {'x': [1, None, 'é']}]\n", ""},
		{"import tools\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool:\n    print(sum(pool.map(lambda n: tools.add_up(n, n), range(40))))", "1560\n", ""},
		{"import asyncio, tools\nprint(await asyncio.gather(asyncio.to_thread(tools.add_up, 1, 1), add_up(2, 2)), tools.add_up(3, 3))", "[2, 4] 6\n", ""},
		{"import tools, inspect\nprint(inspect.signature(tools.add_up), '|', tools.add_up.__doc__.splitlines()[0], '|', list(tools.find_tools('numbers')))", "(a: int, b: int, note: str = None) -> int | Adds numbers. | ['add_up(a: int, b: int, note: str = None) -> int']\n", ""},
		{"import tools, numpy as np\nprint(tools.echo(x=np.int64(3), y=np.arange(2)))", "{'x': 3, 'y': [0, 1]}\n", ""},
		{"import tools\ntools.fail()", "", "ToolError: fail: the database is away"},
		{"import tools\ntools.lie()", "", "ToolError: lie: the result does not fit"},
		{"import tools\ntools.add_up('2', 3)", "", "ToolError: add-up: the arguments do not fit"},
		{"import tools\ntools.add_up(2)", "", "TypeError: missing a required argument: 'b'"},
		{"import tools\ntools.echo(x=object())", "", "TypeError: echo: the arguments are no JSON"},
		{"import tools\ntools.echo(x='y' * 2_000_000)", "", "ToolError: echo: the arguments are larger"},
		{"import tools\ntools.nothing()", "", "AttributeError: "},
	} {
		if printed, failed := run(c.code); printed != c.printed || !strings.HasPrefix(failed, c.failed) || c.failed == "" && failed != "" {
			t.Errorf("%s\nprints %q and fails with %q", c.code, printed, failed)
		}
	}
	run("import asyncio\nawait asyncio.gather(*(echo(n=n) for n in range(20)))")
	if !slices.Equal(batches, []int{20}) {
		t.Errorf("20 calls at one time were told in %v", batches)
	}
	if _, failed, _ := printedWith(t, k, kernel.Request{Code: "import tools"}); !strings.HasPrefix(failed, "ModuleNotFoundError") {
		t.Errorf("code without tools has the module: %q", failed)
	}
	if _, failed, _ := printedWith(t, k, kernel.Request{Code: "add_up"}); !strings.HasPrefix(failed, "NameError") {
		t.Errorf("code without tools has the functions: %q", failed)
	}
}

func doubled(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(2*i))
	}
	return all
}

// TestToolsTime has the time of an execution stand still while tools are waited for, up to a bound, and interrupts code that waits.
func TestToolsTime(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	_, _, k := begin(t)
	set := offer(t, tool.Tool{Name: "wait"})
	var ended atomic.Int32
	tools := &kernel.Tools{Set: set, Call: func(ctx context.Context, calls []tool.Call, answer func(int, tool.Result)) {
		var in struct{ Milliseconds int }
		_ = json.Unmarshal(calls[0].Arguments, &in)
		select {
		case <-time.After(time.Duration(in.Milliseconds) * time.Millisecond):
			answer(calls[0].Number, tool.Result{})
		case <-ctx.Done():
			ended.Add(1)
		}
	}}
	printed, failed, done := printedWith(t, k, kernel.Request{Code: "import tools\nprint(tools.wait(milliseconds=3000), tools.wait(milliseconds=3000))", Tools: tools, Timeout: 5 * time.Second})
	if printed != "None None\n" || failed != "" || done.Outcome != kernel.OutcomeOK || done.Wall < 6*time.Second {
		t.Errorf("two calls of 3 s each in code with 5 s: %q %q %+v", printed, failed, done)
	}
	tools.Patience = time.Second
	_, _, done = printedWith(t, k, kernel.Request{Code: "import tools\ntools.wait(milliseconds=600_000)", Tools: tools, Timeout: 5 * time.Minute})
	if done.Outcome != kernel.OutcomeTimeout || !strings.Contains(done.Message, "did not answer in time") || ended.Load() != 1 {
		t.Errorf("a call of ten minutes with a patience of 1 s: %+v", done)
	}
	tools.Patience = 0
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	for ev, err := range k.Execute(ctx, kernel.Request{Code: "import tools\ntools.wait(milliseconds=600_000)", Tools: tools}) {
		if d, ok := ev.(kernel.Done); err != nil || ok && (d.Outcome != kernel.OutcomeInterrupted || d.Lost != "") {
			t.Errorf("an interrupt during a call: %v %+v", err, ev)
		}
	}
	if ended.Load() != 2 {
		t.Error("the call was not ended with the code")
	}
	// Threads that are left behind hear of the end.
	printedWith(t, k, kernel.Request{Code: "import tools, threading\nsaid = []\ndef late():\n    try:\n        tools.wait(milliseconds=600_000)\n    except tools.ToolError as e:\n        said.append(str(e))\nthread = threading.Thread(target=late)\nthread.start()\nimport time\ntime.sleep(.2)", Tools: tools})
	if printed, failed, _ = printedWith(t, k, kernel.Request{Code: "thread.join()\nprint(said)"}); printed != "['wait: the code that called has ended']\n" && printed != "['wait: the tools of an execution can be called until it ends']\n" {
		t.Errorf("a thread that was left behind: %q %q", printed, failed)
	}
}

// TestWaitsAreInterruptedByOtherThreads has the interrupt of code that waits for the host go to another thread, as the operating system may choose: the wait goes on in the main thread.
func TestWaitsAreInterruptedByOtherThreads(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	request := kernel.Request{
		Tools: &kernel.Tools{Set: offer(t, tool.Tool{Name: "wait"}), Call: func(ctx context.Context, _ []tool.Call, _ func(int, tool.Result)) {
			<-ctx.Done()
		}},
		Input: func(string, bool) (string, error) {
			<-ended
			return "", io.EOF
		},
	}
	for _, wait := range []string{"import tools; tools.wait()", "input()"} {
		ctx, cancel := context.WithCancel(t.Context())
		request.Code = "import signal, threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n" +
			"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nprint('waits', flush=True)\n" + wait
		for ev, err := range k.Execute(ctx, request) {
			if _, ok := ev.(kernel.Stream); ok {
				cancel()
			}
			if d, ok := ev.(kernel.Done); err != nil || ok && (d.Outcome != kernel.OutcomeInterrupted || d.Lost != "") {
				t.Errorf("%s: %v %+v", wait, err, ev)
			}
		}
		cancel()
	}
}

// TestCallsAreInterruptedAtAnyMoment interrupts code that calls tools all the time, in threads too: whatever an interrupt comes between, nothing is held after it.
func TestCallsAreInterruptedAtAnyMoment(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	request := kernel.Request{Tools: &kernel.Tools{Set: offer(t, tool.Tool{Name: "echo"}), Call: func(_ context.Context, calls []tool.Call, answer func(int, tool.Result)) {
		for _, c := range calls {
			answer(c.Number, tool.Result{Value: json.RawMessage("1")})
		}
	}}}
	const rounds = 40
	for round := range rounds {
		request.Code = fmt.Sprintf(`
import tools, threading
x = %d
def work():
    try:
        while True: tools.echo()
    except tools.ToolError:
        pass
for _ in range(%d):
    threading.Thread(target=work, daemon=True).start()
print("begun", flush=True)
while True: tools.echo()`, round, round%3)
		ctx, cancel := context.WithCancel(t.Context())
		for ev, err := range k.Execute(ctx, request) {
			if e, ok := ev.(kernel.Stream); ok && strings.Contains(string(e.Data), "begun") {
				time.AfterFunc(time.Duration(round)*700*time.Microsecond, cancel)
			}
			if d, ok := ev.(kernel.Done); err != nil || ok && (d.Outcome != kernel.OutcomeInterrupted || d.Lost != "") {
				t.Fatalf("round %d: %v %+v", round, err, ev)
			}
		}
		cancel()
	}
	if got := run(t, k, "print(x)"); got != fmt.Sprintln(rounds-1) {
		t.Errorf("%q", got)
	}
}

// TestHostileTools has a kernel that calls what it may not.
func TestHostileTools(t *testing.T) {
	t.Parallel()
	calls := func(id string, list string) string {
		return fmt.Sprintf(`{"type":"tool_calls","id":%q,"calls":[%s]}`, id, list)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"number":%d,"name":"echo","arguments":"{}"},`, 40), ",")
	numbers := make([]any, 40)
	for i := range numbers {
		numbers[i] = i
	}
	for name, c := range map[string]struct {
		list  string
		other bool // in the name of another execution
		none  bool // nothing was offered
		want  kernel.Outcome
	}{
		"not offered":       {list: `{"number":1,"name":"rm","arguments":"{}"}`, want: kernel.OutcomeOK},
		"arguments":         {list: `{"number":1,"name":"echo","arguments":"[1"}`, want: kernel.OutcomeOK},
		"no tools, late":    {list: `{"number":1,"name":"echo","arguments":"{}"}`, none: true, other: true, want: kernel.OutcomeOK},
		"no tools":          {list: `{"number":1,"name":"echo","arguments":"{}"}`, none: true, want: kernel.OutcomeProtocol},
		"another execution": {list: `{"number":1,"name":"echo","arguments":"{}"}`, other: true, want: kernel.OutcomeOK},
		"twice":             {list: `{"number":1,"name":"echo","arguments":"{}"},{"number":1,"name":"echo","arguments":"{}"}`, want: kernel.OutcomeProtocol},
		"too many":          {list: fmt.Sprintf(many, numbers...), want: kernel.OutcomeProtocol},
		"no calls":          {list: `7`, want: kernel.OutcomeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := start(t, hostile{ready: `{"type":"ready","python":"3.11.7","tools":true}`, say: func(say func(wire.FromProcess, string), id string) {
				asked := id
				if c.other {
					asked = "exe-0"
				}
				say(wire.FromProcess{Kind: wire.FromMessage}, calls(asked, c.list))
				say(wire.FromProcess{Kind: wire.FromMessage}, fmt.Sprintf(`{"type":"reply","id":%q,"status":"ok"}`, id))
			}})
			if err != nil {
				t.Fatal(err)
			}
			var performed atomic.Int32
			req := kernel.Request{Code: "1"}
			if !c.none {
				req.Tools = &kernel.Tools{Set: offer(t, tool.Tool{Name: "echo"}), Call: func(ctx context.Context, calls []tool.Call, _ func(int, tool.Result)) {
					performed.Add(int32(len(calls)))
					<-ctx.Done()
				}}
			}
			_, _, done := printedWith(t, k, req)
			if done.Outcome != c.want || c.want == kernel.OutcomeOK && performed.Load() != 0 {
				t.Errorf("%+v, and %d calls were performed", done, performed.Load())
			}
		})
	}
}

// FuzzToolCalls has a kernel say anything where it should list calls. Whatever it says, only calls of what was offered are performed, with arguments that fit, and the execution ends.
func FuzzToolCalls(f *testing.F) {
	for _, list := range []string{
		`[{"number":1,"name":"echo","arguments":"{\"n\":1}"}]`, `[{"number":-1,"name":"echo","arguments":"{}"},{"number":1e9,"name":"","arguments":""}]`, `{"number":1}`, `[[]]`, `[null]`, `7`, `"x"`,
		`[{"number":1,"name":"echo","arguments":"{\"n\":1}"},{"number":1,"name":"echo","arguments":"{\"n\":1}"}]`, `[{"number":"1","name":7,"arguments":{}}]`, `[{"number":1,"name":"echo","arguments":"{\"n\":1,\"n\":\"x\"}"}]`,
	} {
		f.Add(list)
	}
	set, err := tool.NewSet([]tool.Tool{{Name: "echo", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, list string) {
		if !json.Valid([]byte(list)) {
			return // what is no JSON is package wire's to refuse
		}
		k, err := start(t, hostile{ready: `{"type":"ready","python":"3.11.7","tools":true}`, say: func(say func(wire.FromProcess, string), id string) {
			say(wire.FromProcess{Kind: wire.FromMessage}, fmt.Sprintf(`{"type":"tool_calls","id":%q,"calls":%s}`, id, list))
			say(wire.FromProcess{Kind: wire.FromMessage}, fmt.Sprintf(`{"type":"reply","id":%q,"status":"ok"}`, id))
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, done := printedWith(t, k, kernel.Request{Code: "1", Tools: &kernel.Tools{Set: set, Call: func(_ context.Context, calls []tool.Call, answer func(int, tool.Result)) {
			for _, c := range calls {
				var arguments struct{ N *float64 }
				if err := json.Unmarshal(c.Arguments, &arguments); c.Name != "echo" || err != nil || arguments.N == nil {
					t.Errorf("a call of %q with %s is performed", c.Name, c.Arguments)
				}
				answer(c.Number, tool.Result{Value: c.Arguments})
			}
		}}})
		if done.Outcome != kernel.OutcomeOK && done.Outcome != kernel.OutcomeProtocol {
			t.Errorf("%+v", done)
		}
	})
}
