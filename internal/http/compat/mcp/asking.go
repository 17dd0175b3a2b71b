package mcp

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

const (
	// mostWaiting and mostWaitingOfKey bound the code that waits for an answer which comes with another call.
	mostWaiting, mostWaitingOfKey = 256, 8
	// kept is how long what came of such code is there when it has ended without the answer.
	kept = time.Minute
	// longestPrompt bounds what a user is asked, and longestAnswer what code is told, in bytes.
	longestPrompt, longestAnswer = 2 << 10, 64 << 10
	// question names the one question of a result, and field what the form asks for.
	question, field = "input", "value"
)

// run is code that runs, and what came of it so far. It may outlast the call that started it, when its question is that call's result.
type run struct {
	execution string
	fresh     bool
	asked     chan asked
	patience  time.Duration        // how long each question waits
	now       atomic.Pointer[call] // who hears how far it is
	cancel    func()               // ends the following
	over      chan struct{}        // closed when there is nothing to follow any more

	// When over is closed:
	o    *outcome
	done *kernel.Done
	err  error
}

// asked is a question of the code's.
type asked struct {
	prompt string
	answer chan<- string // "no" is that it is closed
}

// input answers input() of the code; getpass() gets no answer: the protocol has servers not ask for what is secret.
func (r *run) input(prompt string, password bool) (string, error) {
	if password {
		return "", errNobody
	}
	answer := make(chan string, 1)
	late := time.NewTimer(r.patience)
	defer late.Stop()
	select {
	case r.asked <- asked{prompt, answer}:
	case <-late.C:
		return "", errNobody
	case <-r.over:
		return "", errNobody
	}
	select {
	case text, ok := <-answer:
		if ok {
			return text, nil
		}
	case <-late.C:
	case <-r.over:
	}
	return "", errNobody
}

// form is what the client's user is asked.
func form(prompt string) *sdk.ElicitParams {
	prompt = strings.TrimSpace(strings.ToValidUTF8(prompt[:min(len(prompt), longestPrompt)], "\ufffd"))
	if prompt == "" {
		prompt = "(no prompt)"
	}
	return &sdk.ElicitParams{Mode: "form", Message: "The Python code asks for input: " + prompt, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": "string", "title": "Input", "maxLength": longestAnswer}}, "required": []string{field},
	}}
}

// give passes what the user said on to the code.
func (q asked) give(said *sdk.ElicitResult) {
	defer close(q.answer)
	if said == nil || said.Action != "accept" {
		return
	}
	if text, ok := said.Content[field].(string); ok && len(text) <= longestAnswer {
		q.answer <- text
	}
}

// direct asks the user of a client of an older version while the call lasts.
func (c *call) direct(q asked) {
	said, err := c.request.Session.Elicit(c, form(q.prompt))
	if err != nil {
		said = nil
	}
	q.give(said)
}

// waiting is the code whose question is the result of a call.
type waiting struct {
	mu  sync.Mutex
	all map[string]waits // by what the client brings back
}

type waits struct {
	owner, arguments string
	run              *run
	asked            asked
}

// put keeps code until its answer comes, and returns what the client is to bring back; "": there is no room.
func (w *waiting) put(one waits) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := 0
	for _, other := range w.all {
		if other.owner == one.owner {
			own++
		}
	}
	if len(w.all) >= mostWaiting || own >= mostWaitingOfKey {
		return ""
	}
	if w.all == nil {
		w.all = map[string]waits{}
	}
	state := rand.Text()
	w.all[state] = one
	go func() { // the time of the code and of its questions ends it
		<-one.run.over
		time.Sleep(kept)
		w.take(state, one.owner, one.arguments, true)
	}()
	return state
}

// take returns the code that waits, and with last for the last time. It is its caller's, and of the same call.
func (w *waiting) take(state, owner, arguments string, last bool) (waits, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok := w.all[state]
	if !ok || one.owner != owner || one.arguments != arguments {
		return waits{}, false
	}
	if last {
		delete(w.all, state)
	}
	return one, true
}

// asks says whether the caller's user can be asked, and whether that takes another call.
func (c *call) asks() (can, again bool) {
	p := c.request.Session.InitializeParams()
	if p == nil || !hasForms(p.Capabilities) {
		return false, false
	}
	return true, p.ProtocolVersion >= rounds
}

// goOn brings code the answer that it waits for, and waits for what comes of it.
func (s *server) goOn(c *call, state string) (*sdk.CallToolResult, error) {
	answer, answered := c.request.Params.InputResponses[question].(*sdk.ElicitResult)
	one, ok := s.waiting.take(state, owner(c.who), string(c.arguments), answered)
	if !ok {
		return nil, gone()
	}
	if !answered {
		return asking(state, one.asked), nil
	}
	one.asked.give(answer)
	return s.await(c, one.run)
}

// asking is the result that asks.
func asking(state string, q asked) *sdk.CallToolResult {
	return &sdk.CallToolResult{RequestState: state, InputRequests: sdk.InputRequestMap{question: form(q.prompt)}}
}

// await waits until the code has ended, asks, or its client has left.
func (s *server) await(c *call, r *run) (*sdk.CallToolResult, error) {
	r.now.Store(c)
	defer r.now.CompareAndSwap(c, nil)
	_, again := c.asks()
	for {
		select {
		case <-r.over:
			if r.done == nil {
				s.interrupt(c, r)
				return nil, r.err
			}
			return r.o.answer(*r.done, r.fresh, s.MaxOutput), nil
		case q := <-r.asked:
			if !again {
				go c.direct(q)
				continue
			}
			if state := s.waiting.put(waits{owner(c.who), string(c.arguments), r, q}); state != "" {
				return asking(state, q), nil
			}
			q.give(nil)
		case <-c.Done(): // the client has left, and its next code is not to wait
			s.interrupt(c, r)
			return nil, c.Err()
		}
	}
}

// interrupt ends code that nobody follows.
func (s *server) interrupt(c *call, r *run) {
	r.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c), farewell)
	defer cancel()
	_, _ = s.Hub.InterruptExecution(ctx, c.who, r.execution) // it may have ended
}

// start has code run, and follows it.
func (s *server) start(c *call, r *run, begin func(input func(string, bool) (string, error)) (string, error)) error {
	r.asked, r.over, r.cancel = make(chan asked), make(chan struct{}), func() {}
	var input func(string, bool) (string, error)
	if can, _ := c.asks(); can {
		input = r.input
	}
	id, err := begin(input)
	if err != nil {
		close(r.over)
		return err
	}
	r.execution = id
	ctx, cancel := context.WithCancel(context.WithoutCancel(c))
	r.cancel = cancel
	r.now.Store(c)
	go func(who auth.Principal) {
		defer cancel()
		defer close(r.over)
		r.done, r.err = s.follow(ctx, who, r)
	}(c.who)
	return nil
}
