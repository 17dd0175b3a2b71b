package jupyter

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// request is a client's message that is answered.
type request struct {
	received
	ctx     context.Context // goes on when the client is gone
	client  string
	who     auth.Principal
	refused error // the key is not valid any more, or sends too much
	aborted bool  // a request before it failed, or the kernel was restarted; guarded by shared.mu
	release func()
}

// into decodes the content. What is wrong there is like what is missing.
func (r *request) into(v any) {
	if len(r.content) > 0 {
		_ = json.Unmarshal(r.content, v)
	}
}

// free are the requests that cost nothing: they are answered from memory, and their key is not looked at again.
var free = map[string]bool{"kernel_info_request": true, "connect_request": true}

// take takes a message of a client. Requests of the shell wait for those before them, and others are served at once.
func (k *shared) take(ctx context.Context, c *socket, m received, release func()) {
	switch {
	case m.kind == "input_reply":
		var in struct {
			Value string `json:"value"`
		}
		(&request{received: m}).into(&in)
		k.answer(c.client, in.Value)
		release()
		return
	case !strings.HasSuffix(m.kind, "_request") && !isComm(m.kind):
		release()
		return
	}
	r := &request{received: m, ctx: context.WithoutCancel(ctx), client: c.client, release: release}
	r.who, _ = auth.From(ctx)
	if !free[m.kind] {
		r.who, r.refused = auth.Again(ctx)
	}
	if m.channel == controlChannel {
		k.serveAtOnce(r)
		return
	}
	k.mu.Lock()
	full, gone := len(k.queue) >= mostWaiting, k.gone
	if !full && !gone {
		k.queue = append(k.queue, r)
		if !k.working {
			k.working = true
			k.users++
			go k.work()
		}
	}
	k.mu.Unlock()
	if full {
		k.fail(r, problem.New(problem.QueueFull, "too many requests wait for this kernel"))
	}
	if full || gone {
		release()
	}
}

// serveAtOnce serves a request while code may run.
func (k *shared) serveAtOnce(r *request) {
	defer r.release()
	k.mu.Lock()
	working := k.working
	k.mu.Unlock()
	tell := k.tell
	if working { // clients wait for the request's end, and the kernel's state is that of what runs
		tell = k.show
	}
	tell(stateBusy, r.header)
	k.serve(r)
	tell(stateIdle, r.header)
}

// work serves the requests that wait, until there are none.
func (k *shared) work() {
	defer k.s.leave(k)
	for {
		k.mu.Lock()
		if len(k.queue) == 0 {
			k.working = false
			quitting := k.quitting
			k.mu.Unlock()
			if quitting {
				k.quit()
			}
			return
		}
		r := k.queue[0]
		k.queue = k.queue[1:]
		k.mu.Unlock()
		k.tell(stateBusy, r.header)
		k.serve(r)
		k.tell(stateIdle, r.header)
		r.release()
	}
}

// serve answers a request.
func (k *shared) serve(r *request) {
	k.mu.Lock()
	aborted := r.aborted
	k.mu.Unlock()
	switch {
	case aborted:
		k.reply(r, map[string]any{"status": "aborted", "execution_count": k.number()})
		return
	case r.refused != nil:
		k.fail(r, r.refused)
		return
	}
	switch r.kind {
	case "execute_request":
		k.execute(r)
	case "kernel_info_request":
		k.reply(r, k.s.kernelInfo())
	case "complete_request":
		k.complete(r)
	case "inspect_request":
		k.inspect(r)
	case "is_complete_request":
		k.isComplete(r)
	case "history_request":
		k.history(r)
	case "comm_info_request":
		k.commInfo(r)
	case "comm_open", "comm_msg", "comm_close":
		k.comm(r)
	case "interrupt_request":
		k.outcome(r, k.s.interrupt(r.ctx, r.who, k.place), map[string]any{})
	case "shutdown_request":
		k.shutdown(r)
	default:
		k.fail(r, problem.New(problem.InvalidRequest, "this server does not know requests of that type"))
	}
}

// reply answers a request on its channel.
func (k *shared) reply(r *request, content map[string]any) {
	if isComm(r.kind) {
		return // it has no reply
	}
	kind := strings.TrimSuffix(r.kind, "_request") + "_reply"
	k.deliver(&message{channel: r.channel, header: header{Type: kind}, parent: r.header, content: content}, r.client)
}

// outcome answers a request with content, or with an error.
func (k *shared) outcome(r *request, err error, content map[string]any) {
	if err != nil {
		k.fail(r, err)
		return
	}
	out := map[string]any{"status": "ok"}
	maps.Copy(out, content)
	k.reply(r, out)
}

// fail answers a request with an error. That of code is shown to all clients as an exception is: many look there alone.
func (k *shared) fail(r *request, err error) {
	p, less := problem.Public(err)
	if p.Kind == problem.Internal || less {
		k.s.Log.ErrorContext(r.ctx, "a request to a kernel failed", "type", r.kind, "session", k.place.session.ID, "error", err)
	}
	out := map[string]any{"ename": p.Code, "evalue": sentence(p), "traceback": []string{p.Code + ": " + sentence(p)}}
	if r.kind == "execute_request" {
		k.publish("error", r.header, maps.Clone(out), nil)
		out["execution_count"], out["user_expressions"], out["payload"] = k.number(), map[string]any{}, []any{}
	}
	if isComm(r.kind) {
		k.publish("stream", r.header, map[string]string{"name": "stderr", "text": "cove: " + sentence(p) + "\n"}, nil)
	}
	out["status"] = "error"
	k.reply(r, out)
	if problem.Is(err, problem.NotFound) && problem.Has(p, problem.SessionNotFound) {
		k.die()
	}
}

func (k *shared) number() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count
}

// kernelInfo says what a kernel is.
func (s *server) kernelInfo() map[string]any {
	python := s.Python()
	return map[string]any{
		"status": "ok", "protocol_version": "5.3", "implementation": "cove", "implementation_version": s.Version, "banner": "Python " + python + " in a sandbox of cove " + s.Version,
		"language_info": map[string]any{
			"name": "python", "version": python, "mimetype": "text/x-python", "file_extension": ".py", "pygments_lexer": "ipython3", "nbconvert_exporter": "python",
			"codemirror_mode": map[string]any{"name": "ipython", "version": 3},
		},
		"help_links": []any{}, "debugger": false, "supported_features": []string{},
	}
}

// editing is the content of requests about code that is being written.
type editing struct {
	Code   string `json:"code"`
	Cursor *int   `json:"cursor_pos"` // in characters; nil: the end
}

func (r *request) editing() (code string, cursor int) {
	var in editing
	r.into(&in)
	if in.Cursor == nil {
		return in.Code, len([]rune(in.Code))
	}
	return in.Code, *in.Cursor
}

func (k *shared) complete(r *request) {
	code, cursor := r.editing()
	matches, start, end, err := k.s.Hub.Complete(r.ctx, r.who, k.place.session.ID, k.place.kernel, code, cursor)
	if matches == nil {
		matches = []string{}
	}
	k.outcome(r, err, map[string]any{"matches": matches, "cursor_start": start, "cursor_end": end, "metadata": map[string]any{}})
}

func (k *shared) inspect(r *request) {
	code, cursor := r.editing()
	text, err := k.s.Hub.Describe(r.ctx, r.who, k.place.session.ID, k.place.kernel, code, cursor)
	data := map[string]any{}
	if text != "" {
		data["text/plain"] = text
	}
	k.outcome(r, err, map[string]any{"found": text != "", "data": data, "metadata": map[string]any{}})
}

func (k *shared) isComplete(r *request) {
	code, _ := r.editing()
	status, err := k.s.Hub.IsComplete(r.ctx, r.who, k.place.session.ID, k.place.kernel, code)
	if err != nil {
		status = "unknown"
	}
	k.reply(r, map[string]any{"status": status, "indent": ""})
}

// shutdown ends a kernel, or begins a new interpreter.
func (k *shared) shutdown(r *request) {
	var in struct {
		Restart bool `json:"restart"`
	}
	r.into(&in)
	if in.Restart {
		k.outcome(r, k.s.restart(r.ctx, r.who, k.place), map[string]any{"restart": true})
		return
	}
	if err := r.who.Require(auth.SessionsWrite); err != nil {
		k.fail(r, err)
		return
	}
	k.outcome(r, nil, map[string]any{"restart": false}) // the connection ends with the kernel
	if err := k.s.end(r.ctx, r.who, k.place); err != nil {
		k.s.Log.WarnContext(r.ctx, "a kernel was not ended", "session", k.place.session.ID, "error", err)
	}
}
