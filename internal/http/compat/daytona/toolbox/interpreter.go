package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/python/displaysetup"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	defaultContext = "default" // is the session's main kernel, and not listed
	contextPrefix  = "ctx-"    // begins the names of kernels that are contexts of clients
	defaultRun     = 600.0     // seconds
	statusTimeout  = websocket.StatusCode(4008)
	mostContexts   = 10_000 // that are remembered here, of all sandboxes
)

// contexts are what is known here of contexts, which are kernels: where they work, and whether the setup has run there.
type contexts struct {
	mu  sync.Mutex
	all map[string]*codeContext // by the session and the kernel
}

type codeContext struct {
	dir     string
	created time.Time
	ready   bool
}

func (x *contexts) with(session, name string, use func(*codeContext)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == nil || len(x.all) > mostContexts {
		x.all = map[string]*codeContext{} // the setup runs once more, and does nothing then
	}
	key := session + " " + name
	if x.all[key] == nil {
		x.all[key] = &codeContext{}
	}
	use(x.all[key])
}

func (x *contexts) forget(session, name string) {
	x.with(session, name, func(one *codeContext) { one.ready = false })
}

// shownContext is a context as clients see it.
type shownContext struct {
	ID       string    `json:"id"`
	Dir      string    `json:"cwd"`
	Created  time.Time `json:"createdAt"`
	Active   bool      `json:"active"`
	Language string    `json:"language"`
}

func (t *Toolbox) shownContext(c *call, name string) shownContext {
	out := shownContext{ID: name, Dir: c.s.Work, Created: c.s.Session.Created, Active: true, Language: "python"}
	t.contexts.with(c.id(), name, func(one *codeContext) {
		if one.dir != "" {
			out.Dir, out.Created = one.dir, one.created
		}
	})
	return out
}

func (t *Toolbox) makeContext(c *call) error {
	var in struct {
		Dir      string `json:"cwd"`
		Language string `json:"language"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if in.Language != "" && in.Language != "python" {
		return invalid(fmt.Sprintf("language: contexts are of python, not of %.40q", in.Language))
	}
	code, _ := auth.RandomCode()
	name := contextPrefix + code
	if _, err := t.o.Hub.StartKernel(c.Context(), c.who, c.id(), name); err != nil {
		return err
	}
	t.contexts.with(c.id(), name, func(one *codeContext) { one.dir, one.created = c.s.absolute(in.Dir), time.Now().UTC() })
	reply(c.w, http.StatusOK, t.shownContext(c, name))
	return nil
}

func (t *Toolbox) listContexts(c *call) error {
	all, err := t.o.Hub.Kernels(c.Context(), c.who, c.id())
	if err != nil {
		return err
	}
	out := []shownContext{}
	for _, k := range all {
		if k.Name != kernel.Main && !strings.HasPrefix(k.Name, runPrefix) {
			out = append(out, t.shownContext(c, k.Name))
		}
	}
	reply(c.w, http.StatusOK, map[string]any{"contexts": out})
	return nil
}

func (t *Toolbox) deleteContext(c *call) error {
	name := c.PathValue("context")
	if name == defaultContext || name == kernel.Main {
		return invalid("the default context cannot be deleted")
	}
	err := t.o.Hub.StopKernel(c.Context(), c.who, c.id(), name)
	if problem.Has(err, problem.KernelNotFound) {
		err = &fault{http.StatusNotFound, "NOT_FOUND", fmt.Sprintf("context not found: %.100s", name)}
	}
	if err == nil {
		t.contexts.forget(c.id(), name)
		reply(c.w, http.StatusOK, map[string]string{"message": "Context deleted successfully"})
	}
	return err
}

// interpret runs code in a context: one message with the code comes, and what it emits goes out.
func (t *Toolbox) interpret(c *call) error {
	return t.connected(c, func(ctx context.Context, s *socket) (websocket.StatusCode, string) {
		ctx, end := context.WithCancel(ctx)
		defer end()
		reading, over := context.WithTimeout(ctx, slowest)
		kind, text, err := s.conn.Read(reading)
		over()
		if err != nil {
			return websocket.StatusProtocolError, "no code came"
		}
		var in struct {
			Code    string            `json:"code"`
			Context string            `json:"contextId"`
			Env     map[string]string `json:"envs"`
			Timeout *float64          `json:"timeout"`
		}
		if kind != websocket.MessageText || json.Unmarshal(text, &in) != nil {
			return websocket.StatusProtocolError, "the message is not the JSON that is expected"
		}
		seconds := defaultRun
		if in.Timeout != nil {
			seconds = *in.Timeout
		}
		limit, err := timeLimit(&seconds)
		if err == nil {
			err = process.CheckEnvironment(in.Env)
		}
		if err != nil || strings.TrimSpace(in.Code) == "" {
			return websocket.StatusPolicyViolation, "the code is empty, or its timeout or variables are not valid"
		}
		if limit == 0 {
			limit = longestRun
		}
		name := in.Context
		if name == "" || name == defaultContext {
			name = kernel.Main
		}
		go s.listen(end, func(websocket.MessageType, []byte) error { return nil }) // it says nothing more, and leaves
		inner := *c
		inner.Request = c.WithContext(ctx)
		run := &interpretation{ctx: ctx, end: end, s: s}
		return run.closing(t.runIn(&inner, name, in.Code, in.Env, limit, run))
	})
}

// runIn runs code in a kernel, and has run tell what it emits.
func (t *Toolbox) runIn(c *call, name, code string, own map[string]string, limit time.Duration, run *interpretation) error {
	if err := t.prepare(c, name); err != nil {
		return err
	}
	env := c.s.environment(own)
	if len(own) > 0 {
		env[displaysetup.Passing] = c.s.again(own)
	}
	started, err := t.o.Hub.StartExecution(c.Context(), c.who, hub.NewExecution{Session: c.id(), Kernel: name, Code: code, Timeout: limit, Environment: env})
	if err != nil {
		return err
	}
	err = t.follow(c, started.ID, run.event)
	if run.done.Lost != kernel.LostNothing {
		t.contexts.forget(c.id(), name)
	}
	return err
}

// prepare has the setup run in a kernel before its first code.
func (t *Toolbox) prepare(c *call, name string) error {
	first, dir := false, c.s.Work
	t.contexts.with(c.id(), name, func(one *codeContext) {
		first, one.ready = !one.ready, true
		if one.dir != "" {
			dir = one.dir
		}
	})
	if !first {
		return nil
	}
	_, err := t.o.Hub.StartExecution(c.Context(), c.who, hub.NewExecution{Session: c.id(), Kernel: name, Code: displaysetup.Setup, Unheard: true, Program: "setup.py", Args: []string{dir}, Environment: c.s.environment(nil), Unnumbered: true})
	if err != nil {
		t.contexts.forget(c.id(), name)
	}
	return err
}

// again is what variables of one execution become after it, as the setup takes it: what they are for all, or nothing.
func (s Sandbox) again(own map[string]string) string {
	out := map[string]*string{}
	for name := range own {
		out[name] = nil
		if value, ok := s.Env[name]; ok {
			out[name] = &value
		}
	}
	text, _ := json.Marshal(out) // strings alone
	return string(text)
}

// interpretation tells a client what its code emits. Frames of the types "display" and "result" are cove's: Daytona's clients leave out what they do not know.
type interpretation struct {
	ctx    context.Context
	end    func()
	s      *socket
	failed bool
	done   kernel.Done
}

func (i *interpretation) send(frame map[string]any) {
	text, err := json.Marshal(frame)
	if err != nil || i.ctx.Err() != nil {
		return
	}
	if i.s.write(i.ctx, websocket.MessageText, text) != nil {
		i.end()
	}
}

func (i *interpretation) event(e kernel.Event, text json.RawMessage) {
	switch e := e.(type) {
	case kernel.Stream:
		i.send(map[string]any{"type": e.Name, "text": string(e.Data)})
	case kernel.Error:
		i.failed = true
		i.send(map[string]any{"type": "error", "name": e.Name, "value": e.Value, "traceback": strings.Join(e.Traceback, "\n")})
	case kernel.Rollback:
		i.send(map[string]any{"type": "stderr", "text": e.String() + "\n"})
	case kernel.Display:
		i.rich("display", text)
	case kernel.Result:
		i.rich("result", text)
	case kernel.Done:
		i.done = e
		if e.Dropped > 0 {
			i.send(map[string]any{"type": "stderr", "text": fmt.Sprintf("\n[%d more bytes of output are left out]\n", e.Dropped)})
		}
	}
}

// rich tells what code shows: its data by MIME types, and with a figure the chart.
func (i *interpretation) rich(kind string, text json.RawMessage) {
	data := bundle(text)
	frame := map[string]any{"type": kind, "data": shown(data)}
	if figure := data[displaysetup.ChartMIME]; len(figure) > 0 {
		c := chartOf(figure, nil)
		frame["chart"] = c
	}
	i.send(frame)
}

// closing says how the code ended, and how the connection is to be closed.
func (i *interpretation) closing(err error) (websocket.StatusCode, string) {
	switch {
	case i.ctx.Err() != nil:
		return websocket.StatusGoingAway, ""
	case problem.Has(err, problem.KernelNotFound):
		return websocket.StatusPolicyViolation, "context not found"
	case err != nil:
		code, _, text := said(err)
		if code < 500 || errors.Is(err, context.Canceled) {
			return websocket.StatusPolicyViolation, text
		}
		return websocket.StatusInternalError, text
	}
	switch i.done.Outcome {
	case kernel.OutcomeTimeout:
		return statusTimeout, "execution timed out"
	case kernel.OutcomeInterrupted:
		i.send(map[string]any{"type": "control", "text": "interrupted"})
		return websocket.StatusNormalClosure, ""
	case kernel.OutcomeOK, kernel.OutcomeError:
	default:
		if !i.failed {
			i.send(map[string]any{"type": "error", "name": "RuntimeError", "value": i.done.Message, "traceback": i.done.Message})
		}
	}
	i.send(map[string]any{"type": "control", "text": "completed"})
	return websocket.StatusNormalClosure, ""
}
