package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"cove/internal/machine/process"
	"cove/internal/python/displaysetup"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

const (
	mostCode = 32 << 20 // bytes of a request to run code
	// beatEvery is how often a silent stream says that it is there, which is how a client's leaving is noticed.
	beatEvery = 5 * time.Second
	// longestRun bounds code: its client decides when it has taken too long, and leaves.
	longestRun = 24 * time.Hour
)

type runRequest struct {
	Code     string            `json:"code"`
	Context  string            `json:"context_id"`
	Language string            `json:"language"`
	Env      map[string]string `json:"env_vars"`
}

// execute runs code and streams what it emits: a JSON object a line.
func (s *server) execute(w http.ResponseWriter, r *http.Request, b sandbox) error {
	var in runRequest
	if err := readJSON(w, r, mostCode, &in); err != nil {
		return err
	}
	if in.Context != "" && in.Language != "" {
		return &fault{http.StatusBadRequest, "Only one of context_id or language can be provided"}
	}
	language, err := languageOf(in.Language)
	if err != nil {
		return err
	}
	where := standing(language)
	if in.Context != "" {
		if where, err = b.record.contextOf(in.Context); err != nil {
			return err
		}
		language = where.Language
	}
	name := contextName{b.id, where.ID}
	t := &told{w: w, flush: http.NewResponseController(w).Flush, forget: func() { s.contexts.forget(b.id, where.ID) }}
	if where.Language != python {
		return s.executeBeside(r.Context(), b, where, workerRequest{Code: in.Code, Language: language, Before: in.Env, Behind: again(b.record.Env, in.Env)}, t)
	}
	count, err := s.prepare(r.Context(), b, where, name)
	if err != nil {
		return err
	}
	started, err := s.Hub.StartExecution(r.Context(), b.who, hub.NewExecution{Session: b.id, Kernel: where.ID, Code: in.Code, Timeout: longestRun, Environment: environment(b.record.Env, in.Env)})
	if err != nil {
		return err
	}
	events, err := s.Hub.Follow(r.Context(), b.who, started.ID, 0)
	if err != nil {
		return err
	}
	t.count = count
	t.begin()
	if !t.follow(r.Context(), events) { // the client has left, and its next code is not to wait
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
		defer cancel()
		_, _ = s.Hub.InterruptExecution(ctx, b.who, started.ID) // it may have ended by now
	}
	s.contexts.with(name, func(state *contextState) { state.count = max(state.count, t.count) })
	return nil
}

// executeBeside runs code in a context that is a process.
func (s *server) executeBeside(ctx context.Context, b sandbox, where codeContext, q workerRequest, t *told) error {
	if err := process.CheckEnvironment(q.Before); err != nil {
		return err
	}
	if err := s.Hub.CheckProgram(ctx, b.who, ""); err != nil { // the rules for code are Python's
		return err
	}
	t.begin()
	name := contextName{b.id, where.ID}
	leave, err := s.contexts.alone(ctx, name)
	if err != nil {
		return nil // the client has left
	}
	defer leave()
	s.contexts.with(name, func(state *contextState) {
		state.count++
		t.count = state.count
	})
	if t.send(map[string]any{"type": "number_of_executions", "execution_count": t.count}) && s.runWorker(ctx, b, where, q, t) {
		t.send(map[string]any{"type": "end_of_execution"})
	}
	return nil
}

// prepare has the setup run in a context before its first code, and returns the number that the code will have.
func (s *server) prepare(ctx context.Context, b sandbox, where codeContext, name contextName) (count int, err error) {
	first := false
	s.contexts.with(name, func(state *contextState) {
		first = !state.ready
		state.ready = true
		state.count++
		count = state.count
	})
	if !first {
		return count, nil
	}
	_, err = s.Hub.StartExecution(ctx, b.who, hub.NewExecution{Session: b.id, Kernel: where.ID, Code: displaysetup.Setup, Unheard: true, Program: "setup.py", Args: []string{where.Dir}, Environment: b.record.Env})
	if err != nil {
		s.contexts.forget(b.id, where.ID)
	}
	return count, err
}

// environment is what is set for an execution: the sandbox's variables, its own, and what those become again after it.
func environment(all, own map[string]string) map[string]string {
	env := maps.Clone(nonNil(all))
	if len(own) == 0 {
		return env
	}
	maps.Copy(env, own)
	text, _ := json.Marshal(again(all, own)) // strings alone
	env[displaysetup.Passing] = string(text)
	return env
}

// again is what variables of one execution become after it: what they are for all, or nothing.
func again(all, own map[string]string) map[string]*string {
	out := map[string]*string{}
	for name := range own {
		out[name] = nil
		if value, ok := all[name]; ok {
			out[name] = &value
		}
	}
	return out
}

// told is a stream of what an execution emits.
type told struct {
	w      http.ResponseWriter
	flush  func() error
	count  int // of the execution
	forget func()
	failed bool // an error was told
	left   bool // the client is not there any more
}

// begin sends the head of the answer: clients wait for that alone a limited time.
func (t *told) begin() {
	t.w.Header().Set("Content-Type", "application/x-ndjson")
	t.w.WriteHeader(http.StatusOK)
	t.left = t.flush() != nil
}

// send writes one event; false where nobody is there any more.
func (t *told) send(event map[string]any) bool {
	text, err := line(event)
	if err != nil {
		text, _ = line(map[string]any{"type": "error", "name": "UnserializableOutput", "value": err.Error(), "traceback": ""})
	}
	if _, err = t.w.Write(text); err != nil || t.flush() != nil {
		t.left = true
	}
	return !t.left
}

// follow tells the events of an execution until its end; false where the client left before.
func (t *told) follow(ctx context.Context, events hub.Follower[json.RawMessage]) bool {
	if !t.send(map[string]any{"type": "number_of_executions", "execution_count": t.count}) {
		return false
	}
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for n, err := range beating(ctx, iter.Seq2[hub.Numbered[json.RawMessage], error](events), beats.C) {
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			t.send(map[string]any{"type": "error", "name": "UnexpectedEndOfExecution", "value": "the execution could not be followed to its end: " + problemText(err), "traceback": ""})
			break
		}
		if n == nil {
			if !t.send(map[string]any{"type": "keepalive"}) {
				return false
			}
			continue
		}
		if n.Gap {
			continue
		}
		e, err := transcript.ParseEvent(n.Event)
		if err != nil {
			continue // of a later version
		}
		if !t.event(e, n.Event) {
			return false
		}
		if _, last := e.(kernel.Done); last {
			return t.send(map[string]any{"type": "end_of_execution"})
		}
	}
	return t.send(map[string]any{"type": "end_of_execution"})
}

// event tells one event, of which text is what is recorded.
func (t *told) event(e kernel.Event, text json.RawMessage) bool {
	var raw struct {
		Data map[string]json.RawMessage `json:"data"` // as the code said it: 1.0 is not 1 to clients
	}
	switch e := e.(type) {
	case kernel.Stream:
		return t.stream(e.Name, string(e.Data))
	case kernel.Display:
		return e.Update || json.Unmarshal(text, &raw) != nil || t.result(raw.Data, false)
	case kernel.Result:
		if e.Count != t.count {
			t.count = e.Count
			t.send(map[string]any{"type": "number_of_executions", "execution_count": t.count})
		}
		return json.Unmarshal(text, &raw) != nil || t.result(raw.Data, true)
	case kernel.Error:
		return t.failure(e.Name, e.Value, strings.Join(e.Traceback, "\n"))
	case kernel.Rollback:
		return t.stream("stderr", e.String()+"\n")
	case kernel.Done:
		return t.done(e)
	}
	return true
}

func (t *told) stream(name, text string) bool {
	return t.send(map[string]any{"type": name, "text": text, "timestamp": time.Now().UTC().Format(time.RFC3339Nano)})
}

func (t *told) failure(name, value, traceback string) bool {
	t.failed = true
	return t.send(map[string]any{"type": "error", "name": name, "value": value, "traceback": traceback})
}

// done tells what the end of an execution says beyond its output.
func (t *told) done(d kernel.Done) bool {
	if d.Lost != kernel.LostNothing {
		t.forget()
	}
	ok := true
	if d.Dropped > 0 {
		ok = t.stream("stderr", fmt.Sprintf("\n%d bytes of output are left out: it is more than the sandbox may print\n", d.Dropped))
	}
	if name := nameOfEnd(d.Outcome); name != "" && !t.failed {
		ok = t.failure(name, d.Message, d.Message)
	}
	return ok
}

// nameOfEnd is the name of an exception for an end that none of Python's own stands for; "" where the code ran to its end.
func nameOfEnd(o kernel.Outcome) string {
	switch o {
	case kernel.OutcomeOK, kernel.OutcomeError:
		return ""
	case kernel.OutcomeTimeout:
		return "TimeoutError"
	case kernel.OutcomeInterrupted:
		return "KeyboardInterrupt"
	case kernel.OutcomeMemory:
		return "MemoryError"
	case kernel.OutcomeRestart:
		return "RestartRequired"
	}
	return "UnexpectedEndOfExecution"
}

// words are the MIME types that a result has a name for.
var words = map[string]string{
	"text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
	"application/json": "json", "application/javascript": "javascript", "application/vnd.e2b.data+json": "data", "application/vnd.e2b.chart+json": "chart",
}

// result tells a value, or what the code asked to show.
func (t *told) result(b map[string]json.RawMessage, main bool) bool {
	out, extra := map[string]any{"type": "result", "is_main_result": main}, map[string]any{}
	for _, mime := range slices.Sorted(maps.Keys(b)) {
		value := b[mime]
		switch name := words[mime]; {
		case mime == "text/plain":
			var text string
			_ = json.Unmarshal(value, &text) // it is a string, or there is none
			out["text"] = unquoted(text)
		case name != "":
			out[name] = value
		case !strings.HasPrefix(mime, "application/vnd.cove.") && !strings.HasPrefix(mime, "text/vnd.cove."):
			extra[mime] = value
		}
	}
	out["extra"] = extra
	return t.send(out)
}

// unquoted is text without the quotes that Python puts around a string.
func unquoted(text string) string {
	if n := len(text); n > 1 && text[0] == text[n-1] && (text[0] == '\'' || text[0] == '"') {
		return text[1 : n-1]
	}
	return text
}
