package librechat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

const (
	mostRuns        = 256 // of the server, that their client has not heard the end of
	mostProjectRuns = 64
	callPrefix      = "call_"
)

// programmatic is POST /librechat/exec/programmatic: code that calls tools of LibreChat's, or the results of these calls. The code waits where it called, and goes on with the results;
// see createProgrammaticToolCallingTool in @librechat/agents.
type programmatic struct {
	request
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"tools"`
	Timeout float64 `json:"timeout"` // milliseconds

	Token   string       `json:"continuation_token"`
	Results []toolResult `json:"tool_results"`
}

type toolResult struct {
	Call   string          `json:"call_id"`
	Result json.RawMessage `json:"result"`
	Failed bool            `json:"is_error"`
	Error  string          `json:"error_message"`
}

// step is the answer: calls to perform, or the end.
type step struct {
	Status string   `json:"status"` // tool_call_required, completed, error
	Token  string   `json:"continuation_token,omitempty"`
	Calls  []called `json:"tool_calls,omitempty"`
	Error  string   `json:"error,omitempty"`
	*answer
}

type called struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// run is code that may wait for its client.
type run struct {
	project, key string
	relay        *tool.Relay
	over         chan struct{} // closed when answer and err are there
	leave        context.CancelFunc

	answer *answer
	err    error
}

// runs are those whose client has not heard of the end. It knows them by a token.
type runs struct {
	mu      sync.Mutex
	byToken map[string]*run
	project map[string]int // how many there are of each
}

func (s *server) execProgrammatic(c *call) error {
	var p programmatic
	if err := s.decode(c, &p); err != nil {
		return err
	}
	if p.Token != "" {
		return s.goOn(c, p)
	}
	if err := p.check(); err != nil {
		return err
	}
	if l, ok := languages()[p.Language]; p.Language != "" && (!ok || !l.python) {
		return problem.New(problem.InvalidRequest, fmt.Sprintf("code in %.20q cannot call tools here", p.Language)).WithHint("there is py")
	}
	var offered []tool.Tool
	for _, t := range p.Tools {
		offered = append(offered, tool.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	set, err := tool.NewSet(offered)
	if err != nil {
		return err
	}
	session, err := s.ready(c.Context(), c, p.request)
	if err != nil {
		return err
	}
	token, r, err := s.begin(c, p, session, set)
	if err != nil {
		return err
	}
	return s.next(c, token, r)
}

// begin starts code that goes on beside the request.
func (s *server) begin(c *call, p programmatic, session hub.Session, set *tool.Set) (token string, r *run, err error) {
	ctx, leave := context.WithCancel(context.WithoutCancel(c.Context()))
	r = &run{project: c.who.Project, key: c.who.Key, relay: tool.NewRelay(), over: make(chan struct{}), leave: leave}
	token = rand.Text()
	if err := s.runs.add(token, r); err != nil {
		leave()
		return "", nil, err
	}
	limit := s.Timeout
	if asked := time.Duration(p.Timeout * float64(time.Millisecond)); asked > 0 {
		limit = min(limit, asked)
	}
	go func() {
		defer time.AfterFunc(s.Timeout, func() { s.runs.remove(token) }) // its client may be about to hear of the end
		defer leave()
		defer close(r.over)
		tools := &kernel.Tools{Set: set, Globals: true, Call: r.relay.Call, Patience: s.Timeout}
		r.answer, r.err = s.answered(ctx, c, session, p.request, func(a *answer) error {
			return s.runPython(ctx, c, session, hub.NewExecution{Code: p.Code, Args: p.args, Timeout: limit, Tools: tools}, a)
		})
	}()
	return token, r, nil
}

// goOn hands results to code that waits for them.
func (s *server) goOn(c *call, p programmatic) error {
	r := s.runs.find(p.Token, c.who.Key)
	if r == nil {
		return problem.New(problem.ExecutionNotFound, "there is no code that waits for these results: it has ended, or its client took too long").WithHint("run the code again")
	}
	for _, result := range p.Results {
		number, err := strconv.Atoi(strings.TrimPrefix(result.Call, callPrefix))
		if err != nil {
			return problem.New(problem.InvalidRequest, fmt.Sprintf("there is no call %.40q", result.Call))
		}
		out := tool.Result{Value: result.Result}
		if result.Failed {
			out = tool.Failed(result.Error)
		}
		r.relay.Answer(number, out) // one that was answered already stays as it is
	}
	return s.next(c, p.Token, r)
}

// next answers with the calls that come next, or with what came of the code. Code whose client leaves meanwhile is interrupted.
func (s *server) next(c *call, token string, r *run) error {
	calls, err := r.relay.Next(c.Context(), r.over)
	if err != nil {
		r.leave()
		s.runs.remove(token)
		return err
	}
	if len(calls) > 0 {
		out := step{Status: "tool_call_required", Token: token}
		for _, one := range calls {
			out.Calls = append(out.Calls, called{fmt.Sprintf("%s%03d", callPrefix, one.Number), one.Name, one.Arguments})
		}
		return c.reply(out)
	}
	s.runs.remove(token)
	if r.err != nil {
		return r.err
	}
	out := step{Status: "completed", answer: r.answer}
	if r.answer.Message != nil { // it did not end by itself
		out.Status, out.Error = "error", *r.answer.Message
	}
	return c.reply(out)
}

func (a *runs) add(token string, r *run) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.byToken) >= mostRuns || a.project[r.project] >= mostProjectRuns {
		return problem.New(problem.QueueFull, "too much code waits for results of tools").WithHint("try again in a moment")
	}
	if a.byToken == nil {
		a.byToken, a.project = map[string]*run{}, map[string]int{}
	}
	a.byToken[token] = r
	a.project[r.project]++
	return nil
}

func (a *runs) remove(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.byToken[token]
	if r == nil {
		return
	}
	delete(a.byToken, token)
	if a.project[r.project]--; a.project[r.project] == 0 {
		delete(a.project, r.project)
	}
}

func (a *runs) find(token, key string) *run {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.byToken[token]; r != nil && r.key == key {
		return r
	}
	return nil
}
