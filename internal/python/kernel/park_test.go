package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/machine/guestlink"
	"cove/internal/python/kernel"
)

// waiter performs calls when the test says so, and has executions parked.
type waiter struct {
	mu      sync.Mutex
	wanted  chan struct{}
	calls   chan tool.Call
	answers map[int]func(tool.Result)
}

func newWaiter() *waiter {
	return &waiter{wanted: make(chan struct{}), calls: make(chan tool.Call, 100), answers: map[int]func(tool.Result){}}
}

func (w *waiter) request(t *testing.T, code string) kernel.Request {
	t.Helper()
	call := func(_ context.Context, calls []tool.Call, answer func(int, tool.Result)) {
		for _, c := range calls {
			w.mu.Lock()
			w.answers[c.Number] = func(r tool.Result) { answer(c.Number, r) }
			w.mu.Unlock()
			w.calls <- c
		}
	}
	return kernel.Request{Code: code, Park: w.park, Tools: &kernel.Tools{Set: offer(t, tool.Tool{Name: "ask"}), Call: call}}
}

func (w *waiter) park() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted
}

// want says whether executions are to be parked.
func (w *waiter) want(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if yes {
		close(w.wanted)
	} else {
		w.wanted = make(chan struct{})
	}
}

func (w *waiter) answer(number int, value any) {
	text, _ := json.Marshal(value)
	w.mu.Lock()
	give := w.answers[number]
	w.mu.Unlock()
	give(tool.Result{Value: text})
}

// heard is what a part of an execution yields.
type heard struct {
	printed string
	failed  string
	parked  *kernel.Parked
	done    *kernel.Done
}

func listen(t *testing.T, events func(func(kernel.Event, error) bool)) (h heard) {
	t.Helper()
	for ev, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		switch e := ev.(type) {
		case kernel.Stream:
			h.printed += string(e.Data)
		case kernel.Error:
			h.failed = e.Name
		case kernel.Parked:
			h.parked = &e
		case kernel.Done:
			h.done = &e
		}
	}
	return h
}

// parked runs code until it is parked.
func (w *waiter) parked(t *testing.T, k *kernel.Kernel, code string) heard {
	t.Helper()
	w.want(true)
	h := listen(t, k.Execute(t.Context(), w.request(t, code)))
	if h.parked == nil {
		t.Fatalf("it was not parked: %+v", h)
	}
	w.want(false)
	return h
}

// goOn answers a call of parked code, and hears it until it waits for the next one and is parked again, or ends.
func (w *waiter) goOn(t *testing.T, k *kernel.Kernel, p kernel.Parked, number int, value any) heard {
	t.Helper()
	ended := make(chan struct{})
	var answering sync.WaitGroup
	defer answering.Wait()
	defer close(ended)
	answering.Go(func() {
		w.answer(number, value)
		select {
		case <-w.calls:
			w.want(true)
		case <-ended:
		}
	})
	h := listen(t, k.Continue(t.Context(), p, nil))
	w.want(false)
	return h
}

func (w *world) rejoin(t *testing.T, l *guestlink.Link, pid int, p kernel.Parked) *kernel.Kernel {
	t.Helper()
	k, waits, err := kernel.Rejoin(t.Context(), l, w.config, pid, p)
	if err != nil || !waits {
		t.Fatalf("rejoin: %v %v", waits, err)
	}
	return k
}

// TestParkedCode has code wait without a connection, and go on in the same frame over others.
func TestParkedCode(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	asks := newWaiter()
	h := asks.parked(t, k, `
import tools
total = 0
print("first")
for n in range(4):
    total += tools.ask(n=n)
print("total", total)
`)
	<-asks.calls
	printed, pid := h.printed, k.PID()
	for n := range 4 {
		if n%2 == 0 { // the connection may be another
			_ = l.Close()
			l = w.connect(t)
		}
		k = w.rejoin(t, l, pid, *h.parked)
		h = asks.goOn(t, k, *h.parked, n+1, 10*n)
		if printed += h.printed; n < 3 && h.parked == nil {
			t.Fatalf("call %d: %+v", n+1, h)
		}
	}
	if h.done == nil || h.done.Outcome != kernel.OutcomeOK || printed != "first\ntotal 60\n" {
		t.Errorf("%q %+v", printed, h.done)
	}
	if got := run(t, k, "print(total, n)"); got != "60 3\n" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestParkedCodeLosesNothing has threads of parked code write more than pipes hold, show things and make calls.
func TestParkedCodeLosesNothing(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	asks := newWaiter()
	h := asks.parked(t, k, `
import tools, threading, os, sys, time
go = threading.Event()
def work():
    go.wait()
    open("begun", "w").close()
    for n in range(40000):
        print("line", n)
    os.write(1, b"raw\n" * 100000)
    print("asked", tools.ask(what="thread"))
worker = threading.Thread(target=work)
worker.start()
threading.Timer(1, go.set).start()
print("main", tools.ask(what="main"))
worker.join()
`)
	if len(asks.calls) != 1 {
		t.Fatalf("%d calls", len(asks.calls))
	}
	<-asks.calls
	w.appears(t, "begun")
	_ = l.Close()
	l = w.connect(t)
	k = w.rejoin(t, l, k.PID(), *h.parked)
	go func() {
		if c := <-asks.calls; string(c.Arguments) == `{"what": "thread"}` {
			asks.answer(c.Number, "T")
		}
		asks.answer(1, "M")
	}()
	all := listen(t, k.Continue(t.Context(), *h.parked, nil))
	var want strings.Builder
	for n := range 40000 {
		fmt.Fprintln(&want, "line", n)
	}
	lines, rest, _ := strings.Cut(all.printed, "line 39999\n")
	if lines+"line 39999\n" != want.String() || strings.Count(rest, "raw\n") != 100000 || !strings.Contains(rest, "asked T\n") || !strings.Contains(rest, "main M\n") {
		t.Errorf("%d bytes, and %d of raw", len(lines), strings.Count(rest, "raw\n"))
	}
	if all.done == nil || all.done.Outcome != kernel.OutcomeOK || all.done.Dropped != 0 {
		t.Errorf("%+v", all.done)
	}
}

// TestParkedCodeIsInterrupted ends parked code, and code whose kernel has died or was taken over.
func TestParkedCodeIsInterrupted(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	asks := newWaiter()
	h := asks.parked(t, k, "import tools\nx = 1\ntry:\n    tools.ask()\nfinally:\n    print('cleaned up')")
	k = w.rejoin(t, l, k.PID(), *h.parked)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if h = listen(t, k.Continue(stopped, *h.parked, nil)); h.done == nil || h.done.Outcome != kernel.OutcomeInterrupted || h.done.Lost != "" || h.printed != "cleaned up\n" || h.failed != "KeyboardInterrupt" {
		t.Fatalf("%+v %+v", h, h.done)
	}
	if got := run(t, k, "print(x)"); got != "1\n" {
		t.Errorf("%q", got)
	}

	h = asks.parked(t, k, "tools.ask()") // the module's functions are of the execution
	if taken := w.attach(t, l, k.PID()); run(t, taken, "print(x)") != "1\n" {
		t.Errorf("a kernel that was taken over does not work")
	} else if err := taken.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	k, waits, err := kernel.Rejoin(t.Context(), l, w.config, k.PID(), *h.parked)
	if err != nil || waits {
		t.Fatalf("%v %v", waits, err)
	}
	h.parked.End()

	h = asks.parked(t, k, "import threading, time, os\nthreading.Thread(target=lambda: (time.sleep(1), os._exit(3))).start()\ntools.ask()")
	await(t, "the end of the kernel", func() bool { return syscall.Kill(k.PID(), 0) != nil })
	var done kernel.Done
	if next, _, err := kernel.Rejoin(t.Context(), l, w.config, k.PID(), *h.parked); err == nil { // the guest says it in this moment
		done = *listen(t, next.Continue(t.Context(), *h.parked, nil)).done
	} else if done = h.parked.Gone(err); !problem.Has(err, problem.KernelNotFound) {
		t.Fatal(err)
	}
	if done.Outcome != kernel.OutcomeDied || !strings.Contains(done.Message, "exit status 3") {
		t.Errorf("%+v", done)
	}
}
