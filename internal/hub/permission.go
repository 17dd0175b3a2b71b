package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"cove/internal/auth"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/tool"
)

// asked are the calls of an execution that wait for a user's word before they are made.
type asked struct {
	h         *Hub
	execution string
	project   string

	mu    sync.Mutex
	calls map[int]*askedCall // by number, from before anybody hears of them until they do not wait any more
	slot  sync.Mutex         // held while a slot is waited for
}

// askedCall is a call that waits. It may be decided before anybody waits for that.
type askedCall struct {
	decided bool            // somebody has the right to say the word, and says it; guarded by asked.mu
	word    chan saidOfCall // holds one
}

// saidOfCall is a user's word about a call, or why there will be none.
type saidOfCall struct {
	tool.Word
	none error
}

// overseen returns tools whose calls wait for the user's word where that is asked for, and are in the audit log.
func (h *Hub) overseen(who auth.Principal, e Execution, tools *kernel.Tools) *kernel.Tools {
	if tools == nil || !tools.Set.AsksAny() {
		return h.audited(who, e, tools)
	}
	a := &asked{h: h, execution: e.ID, project: e.Project, calls: map[int]*askedCall{}}
	out := *tools
	out.Asking = a.add
	out.Patience = max(out.Patience, h.o.Limits.Approval+kernel.ToolPatience)
	out.Call = tool.Asking(tools.Set, a.await, tools.Call)
	return h.audited(who, e, &out)
}

// add notes that a call waits, before a client can hear of it.
func (a *asked) add(number int) {
	a.mu.Lock()
	a.calls[number] = &askedCall{word: make(chan saidOfCall, 1)}
	a.mu.Unlock()
	a.h.mu.Lock()
	a.h.asked[a.execution] = a
	a.h.mu.Unlock()
}

// claim gives one caller the right to decide about a call.
func (a *asked) claim(number int) (chan<- saidOfCall, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.calls[number]
	if c == nil || c.decided {
		return nil, false
	}
	c.decided = true
	return c.word, true
}

// over notes that a call does not wait any more.
func (a *asked) over(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.calls, number)
}

// errStopping is why calls are not made that wait for their users' word when the server stops.
var errStopping = errors.New("the server stopped while the call waited for the user's word")

// await waits for the user's word about a call. Others may run code in the execution's place meanwhile.
func (a *asked) await(ctx context.Context, c tool.Call) (tool.Word, error) {
	defer a.over(c.Number)
	a.mu.Lock()
	word := a.calls[c.Number].word
	a.mu.Unlock()
	a.h.mu.Lock()
	t, draining := a.h.executions[a.execution], a.h.draining
	a.h.mu.Unlock()
	if draining {
		return tool.Word{}, errStopping
	}
	if t != nil {
		a.h.rest(t)
	}
	patience := a.h.o.Limits.Approval
	late := time.NewTimer(patience)
	defer late.Stop()
	var said saidOfCall
	select {
	case said = <-word:
	case <-late.C:
		if _, mine := a.claim(c.Number); !mine { // somebody has said it in this moment, and was told that it counts
			said = <-word
			break
		}
		said.none = fmt.Errorf("nobody said within %s whether it may be made", patience)
	case <-ctx.Done():
		return tool.Word{}, errors.New("the code that called has ended")
	}
	if t != nil {
		if err := a.goOn(ctx, t); err != nil {
			return tool.Word{}, err
		}
	}
	return said.Word, said.none
}

// goOn waits for a slot, unless another call of the execution has done so.
func (a *asked) goOn(ctx context.Context, t *liveExecution) error {
	a.slot.Lock()
	defer a.slot.Unlock()
	if t.placed.Load() {
		return nil
	}
	return a.h.goOn(ctx, t)
}

// stopAsking ends the wait of all calls for their users' word, when the hub drains.
func (h *Hub) stopAsking() {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.asked))
	h.mu.Unlock()
	for _, a := range all {
		a.mu.Lock()
		numbers := slices.Collect(maps.Keys(a.calls))
		a.mu.Unlock()
		for _, number := range numbers {
			if word, ok := a.claim(number); ok {
				word <- saidOfCall{none: errStopping}
			}
		}
	}
}

// ApproveCall lets a call of a tool be made that waits for a user's word, or not. The execution goes on with its result, or with an error for the code. Needs auth.SessionsExecute. Problems: execution_not_found, call_not_waiting, execution_elsewhere,
// invalid_request.
func (h *Hub) ApproveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (Execution, error) {
	e, err := h.approveCall(ctx, who, execution, number, w)
	detail := fmt.Sprintf("call %d refused", number)
	if w.Run {
		detail = fmt.Sprintf("call %d allowed", number)
	}
	h.audit(ctx, who, "execution.approve", execution, detail, err)
	return e, err
}

func (h *Hub) approveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (Execution, error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return Execution{}, err
	}
	switch {
	case w.Run && w.Note != "":
		return Execution{}, problem.New(problem.InvalidRequest, "a call that is made takes no note").WithHint("leave note out, or refuse the call")
	case len(w.Note) > longestNote:
		return Execution{}, problem.New(problem.InvalidRequest, "the note has more than 4 KiB")
	}
	e, err := h.o.Store.Execution(ctx, who.Project, execution)
	if err != nil {
		return Execution{}, err
	}
	h.mu.Lock()
	a := h.asked[execution]
	h.mu.Unlock()
	if a != nil && a.project == who.Project {
		if word, ok := a.claim(number); ok {
			word <- saidOfCall{Word: w}
			return e, nil
		}
	}
	if !e.State.Final() {
		if err := h.runsElsewhere(ctx, problem.ExecutionElsewhere, "execution", e.Owner); err != nil {
			return Execution{}, err
		}
	}
	return Execution{}, problem.New(problem.CallNotWaiting, fmt.Sprintf("call %d of the execution waits for nobody's word", number)).
		WithHint("it was decided before, or the code has ended: look at the execution's events")
}
