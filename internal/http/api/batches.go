package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	// usualAtOnce is how many items of a batch run at once when the client does not say, and mostAtOnce how many may.
	usualAtOnce, mostAtOnce = 4, 32
	// maxOfItem bounds the events of one item's result, in bytes.
	maxOfItem = 1 << 20
	// batchFarewell bounds the deletion of an item's session.
	batchFarewell = 30 * time.Second
	// strayLife is how long the session of an item lives whose client has left.
	strayLife = 24 * time.Hour
	// linesType is that of an answer with one JSON object on each line.
	linesType = "application/x-ndjson"
)

// BatchItem is code to run or a question to ask.
type BatchItem struct {
	Label   string  `json:"label,omitempty" maxLength:"200" doc:"Comes back with the result"`
	Code    string  `json:"code,omitempty" maxLength:"1048576" doc:"Python to run; or prompt"`
	Kernel  string  `json:"kernel,omitempty" maxLength:"64" doc:"Of the given session; main when left out"`
	Timeout float64 `json:"timeout_seconds,omitempty" minimum:"0" maximum:"86400" doc:"Of code: wall clock; the server's limit when left out"`

	Prompt       string   `json:"prompt,omitempty" maxLength:"1048576" doc:"What to ask, in a new conversation"`
	Model        string   `json:"model,omitempty" maxLength:"200" doc:"The server's default when left out"`
	Instructions string   `json:"instructions,omitempty" maxLength:"262144"`
	Files        []string `json:"files,omitempty" maxItems:"100" doc:"Of a question: ids of stored files that are put into the workspace first"`
	Python       *bool    `json:"python,omitempty" doc:"false: the model is not offered the interpreter"`
	MaxCalls     int      `json:"max_steps,omitempty" minimum:"0" maximum:"1000" doc:"Executions of a question; the server's limit when left out"`
	MaxTokens    int      `json:"max_tokens,omitempty" minimum:"0" doc:"Of each answer of the model"`
	Temperature  *float64 `json:"temperature,omitempty" minimum:"0" maximum:"2"`
}

// NewBatch says what to do, and how much of it at once.
type NewBatch struct {
	Items   []BatchItem `json:"items" minItems:"1" maxItems:"1000"`
	AtOnce  int         `json:"at_once,omitempty" minimum:"0" maximum:"32" doc:"How many run at once; 4 when left out"`
	Session string      `json:"session,omitempty" maxLength:"64" doc:"Where all of it runs; code of one kernel runs one after the other. Each item has a session of its own when left out"`
	Make    *NewSession `json:"make,omitempty" doc:"What the sessions of code are like that are made for it"`
	Keep    bool        `json:"keep,omitempty" doc:"Sessions that were made for code stay; otherwise each is deleted with its item's end"`
}

// BatchResult is what came of an item: an execution, a turn or a problem.
type BatchResult struct {
	Type      string     `json:"type" enum:"result"`
	Index     int        `json:"index" doc:"Of the item, from 0"`
	Label     string     `json:"label,omitempty"`
	OK        bool       `json:"ok" doc:"The code ended well, or the question was answered"`
	Execution *Execution `json:"execution,omitempty" doc:"With its events, of which 1 MiB come (events_cut)"`
	Turn      *Turn      `json:"turn,omitempty" doc:"With its events, of which 1 MiB come (events_cut)"`
	Problem   *Problem   `json:"problem,omitempty" doc:"Why it came to nothing"`
}

type createBatch struct{ Body NewBatch }

func (s *server) addBatches() {
	addRaw(s, operation{id: "batch.run", method: http.MethodPost, path: "/batches", tag: "executions", action: auth.SessionsExecute, summary: "Run many cells, or ask many questions",
		about: "Each item runs in a session of its own, or all in one that is given, so many at once as `at_once` says and your quotas let. The answer has a line of JSON for each thing that happens (`application/x-ndjson`), or events with `Accept: text/event-stream`: `begun` with the item's `index` and the id of its execution or turn, `result` in the order in which items end, " +
			"`running` after a while without anything else, and `end` with how many ended well, failed, and were not begun. An item that fails ends no other. When you leave, what has not begun is not begun; what has begun goes on, and is found by its id. An item for which there is no room now (`too_many_sessions`, `quota_sessions`, `quota_executions`, `queue_full`) waits up to two minutes. " +
			"It takes the right `sessions:read` as well, `sessions:write` for code without a session, and `conversations:write` and `conversations:read` for questions.",
		errors: []problem.Code{problem.InvalidRequest, problem.SessionNotFound}, example: `curl -N -H "Authorization: Bearer $KEY" $COVE/batches \
  -d '{"items":[{"code":"6*7"},{"code":"2**64","label":"power"},{"code":"sum(range(10))"}],"at_once":2}'`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *createBatch) error {
			b := in.Body
			if err := b.check(who); err != nil {
				return err
			}
			if b.Session != "" {
				if _, err := s.o.Hub.Session(r.Context(), who, b.Session); err != nil {
					return err
				}
			}
			open := func(ctx context.Context) (iter.Seq2[sse.Event, error], error) { return s.batch(ctx, who, b), nil }
			if wantsEvents(r.Header.Values("Accept")) {
				return s.stream(w, r, sse.Event{}, open)
			}
			return s.lines(w, r, open)
		})
}

// check says what is wrong with a batch, or which right it takes that the caller has not: nothing of it has begun then.
func (b NewBatch) check(who auth.Principal) error {
	needs := map[auth.Action]bool{auth.SessionsRead: true}
	for n, item := range b.Items {
		switch {
		case (item.Code == "") == (item.Prompt == ""):
			return problem.New(problem.InvalidRequest, fmt.Sprintf("an item has either code or a prompt (body.items[%d])", n))
		case item.Code != "":
			needs[auth.SessionsWrite] = needs[auth.SessionsWrite] || b.Session == ""
		default:
			needs[auth.ConversationsWrite], needs[auth.ConversationsRead] = true, true
		}
	}
	if b.Session != "" && b.Make != nil {
		return problem.New(problem.InvalidRequest, "a batch runs in the session that is given, or in sessions that are made for it (body.make)")
	}
	for action, needed := range needs {
		if err := who.Require(action); needed && err != nil {
			return err
		}
	}
	return nil
}

// batch is a batch that runs.
type batch struct {
	s    *server
	who  auth.Principal
	what NewBatch
	out  chan sse.Event

	begun, ok, failed atomic.Int64
}

// batch runs a batch, and yields what happens. When nobody hears any more, nothing new begins.
func (s *server) batch(ctx context.Context, who auth.Principal, what NewBatch) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		ctx, leave := context.WithCancel(ctx)
		b := &batch{s: s, who: who, what: what, out: make(chan sse.Event)}
		var next atomic.Int64
		var working sync.WaitGroup
		for range min(cmp.Or(what.AtOnce, usualAtOnce), mostAtOnce, len(what.Items)) {
			working.Go(func() {
				for ctx.Err() == nil {
					n := int(next.Add(1)) - 1
					if n >= len(what.Items) {
						return
					}
					b.begun.Add(1)
					b.result(ctx, n, b.item(ctx, n))
				}
			})
		}
		go func() {
			working.Wait()
			close(b.out)
		}()
		defer func() {
			leave()
			for range b.out { // until all have left
			}
		}()
		for e := range b.out {
			if !yield(e, nil) {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(sse.Event{}, err)
			return
		}
		yield(sse.Event{Name: "end", Data: fmt.Appendf(nil, `{"type":"end","succeeded":%d,"failed":%d,"not_begun":%d}`, b.ok.Load(), b.failed.Load(), int64(len(what.Items))-b.begun.Load())}, nil)
	}
}

func (b *batch) tell(ctx context.Context, name string, thing any) {
	body, err := json.Marshal(thing)
	if err != nil {
		return
	}
	select {
	case b.out <- sse.Event{Name: name, Data: body}:
	case <-ctx.Done():
	}
}

// batchBegun says that an item has begun.
type batchBegun struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Label   string `json:"label,omitempty"`
	ID      string `json:"id"` // of the execution or turn
	Session string `json:"session,omitempty"`
}

func (b *batch) tellBegun(ctx context.Context, n int, what batchBegun) {
	what.Type, what.Index, what.Label = "begun", n, b.what.Items[n].Label
	b.tell(ctx, "begun", what)
}

func (b *batch) result(ctx context.Context, n int, r BatchResult) {
	r.Type, r.Index, r.Label = "result", n, b.what.Items[n].Label
	if r.OK {
		b.ok.Add(1)
	} else {
		b.failed.Add(1)
	}
	b.tell(ctx, "result", r)
}

func (b *batch) item(ctx context.Context, n int) (r BatchResult) {
	var err error
	if b.what.Items[n].Code != "" {
		r.Execution, err = b.run(ctx, n)
		r.OK = err == nil && r.Execution.State == hub.ExecutionState(kernel.OutcomeOK)
	} else {
		r.Turn, err = b.ask(ctx, n)
		r.OK = err == nil && r.Turn.State == hub.TurnCompleted
	}
	if err != nil {
		r.Problem = documentOf(err)
		r.OK = false
	}
	return r
}

// run runs code.
func (b *batch) run(ctx context.Context, n int) (*Execution, error) {
	item, session := b.what.Items[n], b.what.Session
	if session == "" {
		wanted := b.what.Make.hub()
		if wanted.Life == 0 && !b.what.Keep {
			wanted.Life = strayLife
		}
		made, err := patiently(ctx, func() (hub.Session, error) { return b.s.o.Hub.CreateSession(ctx, b.who, wanted) })
		if err != nil {
			return nil, err
		}
		session = made.ID
	}
	e, err := patiently(ctx, func() (hub.Execution, error) {
		return b.s.o.Hub.StartExecution(ctx, b.who, hub.NewExecution{Session: session, Kernel: item.Kernel, Code: item.Code, Timeout: time.Duration(item.Timeout * float64(time.Second))})
	})
	left := false // code goes on whose client has left, and its session with it
	defer func() {
		if b.what.Session == "" && !b.what.Keep && !left {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchFarewell)
			defer cancel()
			_ = b.s.o.Hub.DeleteSession(ctx, b.who, session) // it ends with the time
		}
	}()
	if err != nil {
		return nil, err
	}
	b.tellBegun(ctx, n, batchBegun{ID: e.ID, Session: session})
	events, cut, err := b.s.eventsOfItem(ctx, b.s.openExecution(b.who, e.ID, 0))
	if err == nil {
		e, err = b.s.o.Hub.Execution(ctx, b.who, e.ID)
	}
	left = ctx.Err() != nil
	if err != nil {
		return nil, err
	}
	out := executionOf(e)
	out.Events, out.Cut = events, cut
	return &out, nil
}

// ask asks a question.
func (b *batch) ask(ctx context.Context, n int) (*Turn, error) {
	item := b.what.Items[n]
	question, err := NewTurn{Prompt: item.Prompt, Session: b.what.Session, Model: item.Model, Files: item.Files, Instructions: item.Instructions, Python: item.Python,
		MaxCalls: item.MaxCalls, MaxTokens: item.MaxTokens, Temperature: item.Temperature}.hub("", "")
	if err != nil {
		return nil, err
	}
	t, err := patiently(ctx, func() (hub.Turn, error) { return b.s.o.Hub.StartTurn(ctx, b.who, question) })
	if err != nil {
		return nil, err
	}
	b.tellBegun(ctx, n, batchBegun{ID: t.ID})
	events, cut, failed := b.s.eventsOfItem(ctx, b.s.openTurn(b.who, t.ID, 0))
	if t, err = b.s.o.Hub.Turn(ctx, b.who, t.ID); err != nil {
		return nil, err
	}
	if failed != nil && !t.State.Final() {
		return nil, failed // following failed, not the turn
	}
	out := turnOf(t)
	out.Events, out.Cut = events, cut
	return &out, nil
}

// eventsOfItem collects the events of an item.
func (s *server) eventsOfItem(ctx context.Context, open opener) ([]json.RawMessage, bool, error) {
	events, err := open(ctx)
	if err != nil {
		return nil, false, err
	}
	return collect(events, maxOfItem)
}

// patiently does something, and does it again as long as there is no room for it.
func patiently[T any](ctx context.Context, do func() (T, error)) (out T, err error) {
	err = hub.Patiently(ctx, func() error {
		out, err = do()
		return err
	}, problem.TooManySessions, problem.QuotaSessions, problem.QuotaExecutions, problem.QueueFull)
	return out, err
}

// lines answers with one JSON object on each line.
func (s *server) lines(w http.ResponseWriter, r *http.Request, open opener) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events, err := open(ctx)
	if err != nil {
		return err
	}
	next := make(chan sse.Event)
	var producing sync.WaitGroup
	producing.Go(func() {
		defer close(next)
		for e, err := range events {
			if err != nil {
				if draining(ctx) {
					next <- failure(err)
				}
				return
			}
			next <- e
		}
	})
	defer producing.Wait()
	defer func() {
		cancel()
		for range next { // until the producer has left
		}
	}()
	to := sse.NewWriter(w)
	w.Header().Set("Content-Type", linesType)
	if _, err := to.Write(nil); err != nil {
		return nil
	}
	beat := time.NewTicker(s.o.Heartbeat)
	defer beat.Stop()
	for {
		line := []byte(`{"type":"running"}`)
		select {
		case <-beat.C:
		case e, ok := <-next:
			if !ok {
				return nil
			}
			line = e.Data
			beat.Reset(s.o.Heartbeat)
		}
		if _, err := to.Write(append(line, '\n')); err != nil {
			return nil // the client has gone
		}
	}
}
