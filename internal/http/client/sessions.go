package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"cove/internal/http/api"
	"cove/internal/python/kernel"
	"cove/internal/server/transcript"
)

// Version says what the server is.
func (c *Client) Version(ctx context.Context) (api.Version, error) {
	return get[api.Version](ctx, c, "/version", nil)
}

// Me says whom the key stands for.
func (c *Client) Me(ctx context.Context) (api.Caller, error) {
	return get[api.Caller](ctx, c, "/me", nil)
}

// pages yields the things of a list, asking for one page after another.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := url.Values{"limit": {"100"}}
		for name, values := range given(query) {
			q[name] = values
		}
		for {
			page, err := get[api.List[T]](ctx, c, path, q)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Set("after", page.Next)
		}
	}
}

// CreateSession makes a session that is ready for code.
func (c *Client) CreateSession(ctx context.Context, n api.NewSession) (api.Session, error) {
	return create[api.Session](ctx, c, "/sessions", n)
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, id string) (api.Session, error) {
	return get[api.Session](ctx, c, "/sessions"+join(id), nil)
}

// SessionFilter narrows a list of sessions; empty fields do not.
type SessionFilter struct{ State, User, Name string }

// Sessions yields sessions, the newest first.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[api.Session, error] {
	return pages[api.Session](ctx, c, "/sessions", url.Values{"state": {f.State}, "user": {f.User}, "name": {f.Name}})
}

// ChangeSession changes or extends a session.
func (c *Client) ChangeSession(ctx context.Context, id string, change api.SessionChange) (api.Session, error) {
	return act[api.Session](ctx, c, http.MethodPatch, "/sessions"+join(id), change)
}

// PauseSession saves a session and frees its memory.
func (c *Client) PauseSession(ctx context.Context, id string) (api.Session, error) {
	return act[api.Session](ctx, c, http.MethodPost, "/sessions"+join(id, "pause"), nil)
}

// ResumeSession brings a session into memory.
func (c *Client) ResumeSession(ctx context.Context, id string) (api.Session, error) {
	return act[api.Session](ctx, c, http.MethodPost, "/sessions"+join(id, "resume"), nil)
}

// ForkSession makes a session that goes on from where id is.
func (c *Client) ForkSession(ctx context.Context, id string, n api.NewSession) (api.Session, error) {
	return create[api.Session](ctx, c, "/sessions"+join(id, "fork"), n)
}

// Points lists what a session can be returned to, the oldest first.
func (c *Client) Points(ctx context.Context, id string) ([]api.SessionPoint, error) {
	out, err := get[api.SessionPoints](ctx, c, "/sessions"+join(id, "points"), nil)
	return out.Items, err
}

// UndoSession returns a session to a point, or to before a turn; "" is the newest point that is not its present state. Problems: nothing_to_undo, point_unknown.
func (c *Client) UndoSession(ctx context.Context, id, to string) (api.Session, error) {
	return act[api.Session](ctx, c, http.MethodPost, "/sessions"+join(id, "undo"), api.Undo{To: to})
}

// DeleteSession ends a session.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.delete(ctx, "/sessions"+join(id), nil)
}

// Kernels lists a session's interpreters.
func (c *Client) Kernels(ctx context.Context, session string) ([]api.Kernel, error) {
	out, err := get[api.List[api.Kernel]](ctx, c, "/sessions"+join(session, "kernels"), nil)
	return out.Items, err
}

// StartKernel starts another interpreter in a session.
func (c *Client) StartKernel(ctx context.Context, session, name string) (api.Kernel, error) {
	return create[api.Kernel](ctx, c, "/sessions"+join(session, "kernels"), map[string]string{"name": name})
}

// RestartKernel begins a new interpreter in the place of one.
func (c *Client) RestartKernel(ctx context.Context, session, name string) (api.Kernel, error) {
	return act[api.Kernel](ctx, c, http.MethodPost, "/sessions"+join(session, "kernels", name, "restart"), nil)
}

// StopKernel ends an interpreter other than "main".
func (c *Client) StopKernel(ctx context.Context, session, name string) error {
	return c.delete(ctx, "/sessions"+join(session, "kernels", name), nil)
}

// Run has code run, and yields what it emits. When the connection breaks it is followed again, and no event is missed or comes twice; what
// the server itself lost is told by a *Gap, which does not end it. The execution goes on when the caller stops to listen.
func (c *Client) Run(ctx context.Context, session string, n api.NewExecution) (api.Execution, iter.Seq2[kernel.Event, error], error) {
	e, s, err := begin[api.Execution](ctx, c, "/sessions"+join(session, "executions"), "execution", n)
	if err != nil {
		return e, nil, err
	}
	return e, c.followExecution(ctx, e.ID, 0, s), nil
}

// StartExecution has code run and does not wait for it.
func (c *Client) StartExecution(ctx context.Context, session string, n api.NewExecution) (api.Execution, error) {
	return create[api.Execution](ctx, c, "/sessions"+join(session, "executions")+"?background=true", n)
}

// Follow yields an execution's events with an id above after, old ones and those that come, as Run does.
func (c *Client) Follow(ctx context.Context, id string, after int64) iter.Seq2[kernel.Event, error] {
	return c.followExecution(ctx, id, after, nil)
}

func (c *Client) followExecution(ctx context.Context, id string, after int64, s *stream) iter.Seq2[kernel.Event, error] {
	return follow(ctx, c, "/executions"+join(id, "events"), after, s, transcript.ParseEvent, func(e kernel.Event) bool {
		_, done := e.(kernel.Done)
		return done
	})
}

// Execution returns an execution.
func (c *Client) Execution(ctx context.Context, id string) (api.Execution, error) {
	return get[api.Execution](ctx, c, "/executions"+join(id), nil)
}

// ExecutionFilter narrows a list of executions; empty fields do not.
type ExecutionFilter struct {
	Session, Kernel, Turn, State string
	Oldest                       bool // first
}

// Executions yields executions, the newest first unless the filter says otherwise.
func (c *Client) Executions(ctx context.Context, f ExecutionFilter) iter.Seq2[api.Execution, error] {
	q := url.Values{"session": {f.Session}, "kernel": {f.Kernel}, "turn": {f.Turn}, "state": {f.State}}
	if f.Oldest {
		q.Set("order", "oldest")
	}
	return pages[api.Execution](ctx, c, "/executions", q)
}

// Interrupt stops an execution.
func (c *Client) Interrupt(ctx context.Context, id string) (api.Execution, error) {
	return act[api.Execution](ctx, c, http.MethodPost, "/executions"+join(id, "interrupt"), nil)
}

// ApproveCall says whether a call of a tool is made that waits for a user's word. Problems: call_not_waiting.
func (c *Client) ApproveCall(ctx context.Context, execution string, number int, w api.CallWord) error {
	_, err := act[api.Execution](ctx, c, http.MethodPost, "/executions"+join(execution, "calls", strconv.Itoa(number), "approve"), w)
	return err
}

// AnswerInput gives code the line that it waits for, or the end of its input. Problems: input_not_waiting, invalid_request.
func (c *Client) AnswerInput(ctx context.Context, execution string, number int, a api.InputAnswer) error {
	_, err := act[api.Execution](ctx, c, http.MethodPost, "/executions"+join(execution, "inputs", strconv.Itoa(number)), a)
	return err
}

// Packages returns the version of a session's Python, and of its packages by name.
func (c *Client) Packages(ctx context.Context, session string) (api.PackageList, error) {
	return get[api.PackageList](ctx, c, "/sessions"+join(session, "packages"), nil)
}

// Install makes packages importable in a session. told, if not nil, hears how far it is.
func (c *Client) Install(ctx context.Context, session string, requirements []string, told func(kernel.Install)) (kernel.Install, error) {
	s, err := c.open(ctx, call{method: http.MethodPost, path: "/sessions" + join(session, "packages"), body: api.NewPackages{Requirements: requirements}})
	if err != nil {
		return kernel.Install{}, err
	}
	defer s.finish()
	for {
		m, err := s.next()
		if err != nil {
			return kernel.Install{}, c.unreachable(ctx, err)
		}
		if p, ok := transcript.ParseFailure(m.Data); ok && m.Name == "failure" {
			return kernel.Install{}, p
		}
		e, _ := transcript.ParseEvent(m.Data)
		switch i, ok := e.(kernel.Install); {
		case !ok:
		case i.Progress == nil:
			return i, nil
		case told != nil:
			told(i)
		}
	}
}

// Complete returns what may stand at the cursor (in characters) of code in a kernel.
func (c *Client) Complete(ctx context.Context, session, kernel, code string, cursor int) (api.Completions, error) {
	return act[api.Completions](ctx, c, http.MethodPost, "/sessions"+join(session)+"/kernels"+join(kernel, "complete"), map[string]any{"code": code, "cursor": cursor})
}

// IsComplete says whether code is "complete", "incomplete", "invalid" or "unknown" in a kernel.
func (c *Client) IsComplete(ctx context.Context, session, kernel, code string) (string, error) {
	out, err := act[api.Completeness](ctx, c, http.MethodPost, "/sessions"+join(session)+"/kernels"+join(kernel, "is-complete"), map[string]any{"code": code})
	return out.Status, err
}
