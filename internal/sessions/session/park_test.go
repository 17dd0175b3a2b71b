package session_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// asking performs the calls of code when a test says so, and has executions parked as soon as they wait.
type asking struct {
	mu      sync.Mutex
	wanted  chan struct{}
	answers map[int]func(tool.Result)
}

func (a *asking) call(_ context.Context, calls []tool.Call, answer func(int, tool.Result)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range calls {
		a.answers[c.Number] = func(r tool.Result) { answer(c.Number, r) }
	}
	close(a.wanted)
}

func (a *asking) park() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wanted
}

// partOf hears code until it ends or is parked.
func partOf(t *testing.T, events iter.Seq2[kernel.Event, error]) (parked *kernel.Parked, done kernel.Done, printed string) {
	t.Helper()
	for event, err := range events {
		if err != nil {
			t.Fatalf("%+v", err)
		}
		switch e := event.(type) {
		case kernel.Stream:
			printed += string(e.Data)
		case kernel.File:
			printed += "(" + e.Path + ")"
		case kernel.Parked:
			parked = &e
		case kernel.Done:
			done = e
		}
	}
	return parked, done, printed
}

// begin runs code until it is parked.
func (a *asking) begin(t *testing.T, s *session.Live, code string) (kernel.Parked, string) {
	t.Helper()
	a.wanted, a.answers = make(chan struct{}), map[int]func(tool.Result){}
	set, err := tool.NewSet([]tool.Tool{{Name: "ask"}})
	if err != nil {
		t.Fatal(err)
	}
	parked, done, printed := partOf(t, s.Execute(t.Context(), kernel.Request{Code: code, Park: a.park, Tools: &kernel.Tools{Set: set, Call: a.call}}))
	if parked == nil {
		t.Fatalf("it was not parked: %+v", done)
	}
	return *parked, printed
}

// answer gives a call its answer as soon as the code goes on.
func (a *asking) answer(number int, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = make(chan struct{})
	give := a.answers[number]
	go give(tool.Result{Value: json.RawMessage(value)})
}

// TestParkedCodeIsSaved saves a session whose code waits, and has it go on in the session and in what is opened from the checkpoint.
func TestParkedCodeIsSaved(t *testing.T) {
	t.Parallel()
	e, a := newGVisor(t), &asking{}
	s := open(t, e, sandbox.Limits{})
	parked, printed := a.begin(t, s, `
import tools
def two():
    local = [1]
    open("made.txt", "w").write("x")
    local.append(tools.ask())
    local.append(tools.ask())
    return local
x = 7
print(two())
`)
	if printed != "(made.txt)" || s.KernelPIDs()["main"] == 0 {
		t.Errorf("%q %v", printed, s.KernelPIDs())
	}
	if _, err := s.Variables(t.Context(), ""); !problem.Has(err, problem.SessionBusy) {
		t.Errorf("a look at variables: %v", err)
	}
	wantCode(t, "start", s.StartKernel(t.Context(), "b"), "")
	runCell(t, s, in("b", "1 + 1", "result 2\nok"))
	kept := save(t, s, true)
	pids := s.KernelPIDs()
	fork, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Checkpoint: kept, Kernels: pids, Reseed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fork.Close(context.Background()) })
	runCell(t, fork, in("", "x", "result 7\nok"))
	a.answer(1, "2")
	again, done, _ := partOf(t, s.Resume(t.Context(), parked))
	if again == nil || again.ID() != parked.ID() {
		t.Fatalf("%+v", done)
	}
	image := save(t, s, false)
	later, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Checkpoint: image, Kernels: pids, Parked: map[string]string{"main": again.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = later.Close(context.Background()) })
	if _, err := later.Variables(t.Context(), ""); !problem.Has(err, problem.SessionBusy) {
		t.Errorf("a look at variables: %v", err)
	}
	a.answer(2, "3")
	if last, done, printed := partOf(t, later.Resume(t.Context(), *again)); last != nil || done.Outcome != kernel.OutcomeOK || printed != "[1, 2, 3]\n" {
		t.Errorf("%q %+v", printed, done)
	}
	runCell(t, later, in("", "x", "result 7\nok"))
	runCell(t, later, in("b", "_", "result 2\nok"))
}

// TestParkedCodeEnds interrupts code that waits, restarts its kernel, and ends its sandbox.
func TestParkedCodeEnds(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s, a := open(t, e, sandbox.Limits{}), &asking{}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		const code = "import tools\nx = 7\ntry:\n    tools.ask()\nfinally:\n    print('cleaned up')"
		parked, _ := a.begin(t, s, code)
		if _, done, printed := partOf(t, s.Resume(stopped, parked)); done.Outcome != kernel.OutcomeInterrupted || done.Lost != "" || printed != "cleaned up\n" {
			t.Errorf("%q %+v", printed, done)
		}
		runCell(t, s, in("", "x", "result 7\nok"))

		parked, _ = a.begin(t, s, code)
		wantCode(t, "restart", s.RestartKernel(t.Context(), ""), "")
		if _, done, _ := partOf(t, s.Resume(t.Context(), parked)); done.Outcome != kernel.OutcomeInterrupted || done.Lost != kernel.LostKernel || !strings.Contains(done.Message, "was ended") {
			t.Errorf("%+v", done)
		}
		runCell(t, s, in("", "'x' in globals()", "result False\nok"))

		parked, _ = a.begin(t, s, code)
		wantCode(t, "reboot", s.Reboot(t.Context()), "")
		if _, done, _ := partOf(t, s.Resume(t.Context(), parked)); done.Outcome != kernel.OutcomeInterrupted || done.Lost != kernel.LostKernel {
			t.Errorf("%+v", done)
		}

		parked, _ = a.begin(t, s, code)
		wantCode(t, "close", s.Close(t.Context()), "")
		if _, done, _ := partOf(t, s.Resume(t.Context(), parked)); done.Lost != kernel.LostSession {
			t.Errorf("%+v", done)
		}
	})
}
