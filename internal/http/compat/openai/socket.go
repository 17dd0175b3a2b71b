package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// What a WebSocket may take. OpenAI ends connections after an hour too.
const (
	socketLife    = time.Hour
	socketIdle    = 15 * time.Minute // without a message of the client while nothing runs
	socketPing    = 20 * time.Second // between pings
	slowest       = time.Minute      // for the answer to a ping, and for reading a message; a client that takes longer is gone
	socketWaiting = 16               // messages that wait while a response is made
	socketRate    = 10               // messages in a second; what was not used in four seconds may come at once
	socketMemory  = 16 << 20         // bytes of a response that was not stored, kept for the next message
)

// socket is one connection of OpenAI's WebSocket mode: the client sends "response.create" messages, which are answered one after the other with
// the events of streams. Every message is a request of its own: the key is looked at again, and its rate counts.
type socket struct {
	s       *server
	c       *call // of the upgrade
	conn    *websocket.Conn
	ctx     context.Context
	rate    *rate.Limiter
	waiting atomic.Int64 // bytes of messages that wait
	last    remembered
}

// remembered is the conversation up to the last response of the connection, where that was not stored: there is no other place to go on from it.
type remembered struct {
	id      string
	items   []json.RawMessage
	release func() // of the memory that it takes
}

func (r remembered) forget() {
	if r.release != nil {
		r.release()
	}
}

// said is a message of the client: a request of its own, which takes of the server's memory until it is answered.
type said struct {
	ctx     context.Context
	text    []byte
	release func()
}

// connect takes over the connection of GET /v1/responses.
func (s *server) connect(c *call) error {
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return noMethod(c.w, c.Request, []string{http.MethodPost})
	}
	// Whose page calls was looked at when the request came in, as for every other request. A page cannot send the key: it is taken from the
	// header alone, which scripts cannot set here.
	conn, err := websocket.Accept(c.w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(s.MaxBody)
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	k := &socket{s: s, c: c, conn: conn, ctx: ctx, rate: rate.NewLimiter(socketRate, 4*socketRate)}
	messages := make(chan said, socketWaiting)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		k.listen(messages, cancel)
	}()
	go k.ping(cancel)
	k.serve(messages)
	k.last.forget()
	cancel(nil)
	<-heard
	close(messages)
	for m := range messages {
		m.release()
	}
	return nil
}

// listen reads messages until the client goes away. It reads on while a response is made: that is how the client's going away is noticed.
func (k *socket) listen(messages chan<- said, cancel context.CancelCauseFunc) {
	for {
		kind, r, err := k.conn.Reader(k.ctx)
		if err != nil {
			cancel(err)
			return
		}
		m := said{}
		m.ctx, m.release = bodybudget.Another(k.ctx)
		m.text, err = bodybudget.Read(m.ctx, r)
		if _, refused := errors.AsType[*problem.Error](err); err != nil && !refused {
			m.release()
			cancel(err)
			return
		}
		if err == nil && kind != websocket.MessageText {
			err = invalid("", "", "Messages of this connection are JSON objects, as text.")
		}
		if err == nil {
			err = k.queue(m, messages)
		}
		if err != nil {
			m.release()
			k.refuse(err)
		}
	}
}

func (k *socket) queue(m said, messages chan<- said) error {
	size := int64(len(m.text))
	if waiting := k.waiting.Add(size); waiting <= k.s.MaxBody || waiting == size {
		select {
		case messages <- m:
			return nil
		default:
		}
	}
	k.waiting.Add(-size)
	return busy()
}

func busy() *fault {
	return &fault{status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "response_in_progress",
		message: "This connection makes one response at a time, and too many messages wait for it. Send the next one when a response has ended."}
}

// ping finds out whether the client is there.
func (k *socket) ping(cancel context.CancelCauseFunc) {
	every := time.NewTicker(socketPing)
	defer every.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-every.C:
		}
		ctx, stop := context.WithTimeout(k.ctx, slowest)
		err := k.conn.Ping(ctx)
		stop()
		if err != nil {
			cancel(err)
			return
		}
	}
}

// serve answers messages until the client goes away, the connection is too old, or the server stops. What runs then is seen to its end first, as
// long as the server lets it.
func (k *socket) serve(messages <-chan said) {
	life := time.NewTimer(socketLife)
	defer life.Stop()
	idle := time.NewTimer(socketIdle)
	defer idle.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.s.Stopping:
			_ = k.conn.Close(websocket.StatusGoingAway, "the server is stopping")
			return
		case <-life.C:
			k.refuse(invalid("", "websocket_connection_limit_reached", "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue."))
			_ = k.conn.Close(websocket.StatusNormalClosure, "60 minutes are over")
			return
		case <-idle.C:
			_ = k.conn.Close(websocket.StatusNormalClosure, "nothing was sent for 15 minutes")
			return
		case message := <-messages:
			err := k.answer(message.ctx, message.text)
			k.waiting.Add(-int64(len(message.text)))
			message.release()
			if err != nil && !errors.Is(err, errTold) && !gone(k.ctx) {
				k.refuse(err)
			}
			idle.Reset(socketIdle)
		}
	}
}

// refuse tells of an error, as OpenAI does on this transport.
func (k *socket) refuse(err error) {
	f := faultOf(err)
	if f.status >= http.StatusInternalServerError {
		k.s.Log.ErrorContext(k.ctx, "request failed", "path", k.c.URL.Path, "request", k.c.who.Request, "error", err)
	}
	type inner struct {
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Param   *string `json:"param"`
	}
	_ = k.write(struct {
		Type   string `json:"type"`
		Status int    `json:"status"`
		Error  inner  `json:"error"`
	}{"error", f.status, inner{f.kind, cmp.Or(f.code, f.kind), f.message, orNull(f.param)}})
}

func (k *socket) send(e event) error { return k.write(e) }

func (k *socket) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.ctx, slowest)
	defer cancel()
	return k.conn.Write(ctx, websocket.MessageText, text)
}

// answer makes the response that a message asks for.
func (k *socket) answer(ctx context.Context, message []byte) error {
	if err := k.rate.Wait(ctx); err != nil {
		return err
	}
	who, err := auth.Again(ctx)
	if err != nil {
		return err
	}
	f, err := k.s.formOf(message)
	if err != nil {
		return err
	}
	if kind := f.needed("type"); f.err == nil && kind != "response.create" {
		f.fail(notOneOf("type", kind, []string{"response.create"}))
	}
	if f.yes("background") {
		f.fail(unsupported("background", "Unsupported parameter: 'background' is not supported on a WebSocket."))
	}
	generate := f.boolean("generate")
	if f.err != nil {
		return f.err
	}
	for _, name := range []string{"type", "background", "generate", "stream", "stream_options"} {
		delete(f.raw, name)
	}
	r, err := k.s.readRequest(f)
	if err != nil {
		return err
	}
	request := k.c.WithContext(ctx)
	request.Header = request.Header.Clone()
	request.Header.Del("Idempotency-Key") // it was meant for one request
	c := &call{Request: request, w: k.c.w, who: who}
	continued := r.previous != "" && *r.PreviousResponseID == k.last.id
	if continued {
		if err := k.recall(&r); err != nil {
			return err
		}
	}
	made, err := k.respond(c, f, &r, generate != nil && !*generate)
	if err == nil || continued { // what failed is not gone on from a second time; what was stored is found by its id
		k.last.forget()
		k.last = made
	}
	return err
}

// recall puts the conversation that the connection remembers before the request's input.
func (k *socket) recall(r *request) error {
	items, err := asItems(r.input)
	if err != nil {
		return err
	}
	r.previous = ""
	r.input, err = json.Marshal(slices.Concat(k.last.items, items))
	return err
}

// asItems is an input as a list. What is no list of items is refused where the input is read.
func asItems(input json.RawMessage) ([]json.RawMessage, error) {
	var text string
	if json.Unmarshal(input, &text) == nil {
		item, err := json.Marshal(map[string]string{"type": "message", "role": "user", "content": text})
		return []json.RawMessage{item}, err
	}
	var items []json.RawMessage
	if json.Unmarshal(input, &items) != nil {
		return nil, wrongType("input", "one of a string or array of input items", input)
	}
	return items, nil
}

// respond makes a response and returns what there is to be remembered of it: nothing where it was stored, or is too large.
func (k *socket) respond(c *call, f *form, r *request, warm bool) (remembered, error) {
	if warm {
		return k.warm(c, f, r)
	}
	turn, kept, err := k.s.begin(c, f, r)
	if err != nil {
		return remembered{}, err
	}
	bodybudget.Decoded(c.Context())
	t := newTranslation(turn, kept, options{outputs: slices.Contains(r.includes, withOutputs), live: live(c)}, k.send)
	ended, err := k.follow(c, turn, t)
	if !ended {
		k.s.abandon(c, turn.ID)
	}
	if err != nil || !ended {
		return remembered{}, err
	}
	if t.failed != nil || t.response.Status == statusFailed {
		return remembered{}, errTold
	}
	if r.store {
		return remembered{}, nil
	}
	var output []json.RawMessage
	for _, i := range t.items {
		if i.void {
			continue
		}
		text, err := json.Marshal(i.json(true))
		if err != nil {
			return remembered{}, err
		}
		output = append(output, text)
	}
	return k.remember(responseID(turn.ID), r.input, output)
}

// errTold is that of a response which failed and whose events say so.
var errTold = errors.New("the response failed, and the client was told")

func (k *socket) follow(c *call, turn hub.Turn, t *translation) (ended bool, err error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	t.place = k.s.placeOf(ctx, c.who, turn.ID)
	steps, err := k.s.steps(ctx, c.who, turn.ID)
	if err != nil {
		return false, err
	}
	if err := t.begin(); err != nil {
		return false, err
	}
	return k.s.pump(c, t, func() error { return nil }, steps, nil)
}

func (k *socket) remember(id string, input json.RawMessage, output []json.RawMessage) (remembered, error) {
	items, err := asItems(input)
	if err != nil {
		return remembered{}, err
	}
	items = slices.Concat(items, output)
	size := 0
	for _, item := range items {
		size += len(item)
	}
	if size > socketMemory || len(items) > mostItems {
		return remembered{}, nil
	}
	one, release := bodybudget.Another(k.ctx)
	if err := bodybudget.Recall(one, int64(size)); err != nil {
		release() // the client is told when it wants to go on from it
		return remembered{}, nil
	}
	return remembered{id: id, items: items, release: release}, nil
}

// warm answers "generate": false, which says what a later message goes on from: nothing is asked of a model, and there is no output.
func (k *socket) warm(c *call, f *form, r *request) (remembered, error) {
	if r.previous != "" || r.talk != "" {
		return remembered{}, unsupported("generate", "This server takes 'generate': false only where a conversation begins.")
	}
	in := &input{s: k.s, c: c, dry: true}
	if err := in.read(f, "input", r.input); err != nil {
		return remembered{}, err
	}
	turn := hub.Turn{ID: ident.New(ident.Turn), Model: r.Model, Created: k.s.Now(), State: hub.TurnRunning}
	t := newTranslation(turn, kept{Echo: r.echo}, options{}, k.send)
	if err := t.begin(); err != nil {
		return remembered{}, err
	}
	t.response.Status, t.response.CompletedAt, t.response.Usage = statusCompleted, new(turn.Created.Unix()), &usage{}
	if err := t.emit(event{Type: "response.completed", Response: t.snapshot()}); err != nil {
		return remembered{}, err
	}
	return k.remember(responseID(turn.ID), r.input, nil)
}
