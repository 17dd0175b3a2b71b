package openai

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/server/hub"
)

const source = "openai"

func (s *server) createResponse(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	r, err := s.readRequest(f)
	if err != nil {
		return err
	}
	turn, k, err := s.begin(c, f, &r)
	if err != nil {
		return err
	}
	bodybudget.Decoded(c.Context())
	o := options{outputs: slices.Contains(r.includes, withOutputs), live: live(c), whole: !r.stream}
	switch {
	case r.stream:
		return s.stream(c, turn, k, o, -1, !r.Background)
	case r.Background:
		return c.reply(begun(turn, k))
	}
	return s.await(c, turn, k, o)
}

func live(c *call) bool { return c.Header.Get("X-Stream-Output") == "1" }

// begun is the object of a response that is made in the background.
func begun(turn hub.Turn, k kept) response {
	r := newResponse(turn, k)
	r.Status = statusQueued
	if turn.State == hub.TurnRunning {
		r.Status = statusInProgress
	}
	return r
}

// begin starts the turn that a request asks for.
func (s *server) begin(c *call, f *form, r *request) (hub.Turn, kept, error) {
	b, err := s.goesOnFrom(c, r)
	if err != nil {
		return hub.Turn{}, kept{}, err
	}
	in := &input{s: s, c: c, python: r.python, developer: slices.Clone(b.developer), named: slices.Clone(b.named)}
	if err := in.bring(r.container.files); err != nil {
		return hub.Turn{}, kept{}, err
	}
	if len(b.pending) > 0 {
		text, _ := json.Marshal(b.pending)
		if err := in.read(&form{}, "input", text); err != nil {
			return hub.Turn{}, kept{}, err
		}
	}
	pending := len(in.items)
	if err := in.read(f, "input", r.input); err != nil {
		return hub.Turn{}, kept{}, err
	}
	session := ""
	if !in.history.resumes() { // else it is that of the program
		if session, err = s.place(c, r, b, in); err != nil {
			return hub.Turn{}, kept{}, err
		}
	}
	k := kept{Echo: r.echo, Include: r.includes, Input: in.items, Developer: in.developer, Pending: pending, Named: in.named[max(0, len(in.named)-mostNamed):]}
	n, err := newTurn(r, in, b, session)
	if err != nil {
		return hub.Turn{}, kept{}, err
	}
	n.Once = c.Header.Get("Idempotency-Key")
	if n.Foreign, err = json.Marshal(k); err != nil {
		return hub.Turn{}, kept{}, err
	}
	turn, err := s.Hub.StartTurn(c.Context(), c.who, n)
	if err != nil {
		return hub.Turn{}, kept{}, refused(err, r)
	}
	if len(turn.Foreign) > 0 {
		k = keptOf(turn) // a repeated request gets the turn of the first one
	}
	if len(b.pending) > 0 && r.store {
		forget := func(items []json.RawMessage) []json.RawMessage { return without(items, b.pending) }
		if _, err = s.changePending(c, b.conversation, nil, forget); err != nil {
			s.abandon(c, turn.ID)
		}
	}
	return turn, k, err
}

// newTurn says to the hub what a request asks for.
func newTurn(r *request, in *input, b before, session string) (hub.NewTurn, error) {
	n := hub.NewTurn{
		Unnoticed:    true,
		Conversation: b.conversation, Parent: r.previous, Session: session, Model: r.Model, Prompt: strings.TrimSpace(strings.Join(in.prompt, "\n")),
		Instructions: join(append([]string{r.text}, in.developer...)...),
		NoPython:     !r.python, Tools: r.functions, CodeTools: r.callable, Choice: r.choice, Temperature: r.Temperature, TopP: r.TopP, Format: r.format, Effort: r.effort, Extra: r.extra,
		Source: source, Unattended: true, Hidden: !r.store,
	}
	n.Files, n.Names = in.filesOf()
	if !r.ParallelToolCalls {
		n.Parallel = new(false)
	}
	if r.MaxToolCalls != nil {
		n.MaxCalls = int(min(*r.MaxToolCalls, 1<<20))
	}
	if r.MaxOutputTokens != nil {
		n.MaxTokens = int(min(*r.MaxOutputTokens, 1<<30))
	}
	if r.previous == "" && b.conversation == "" {
		if id := in.history.unanswered(); id != "" && !in.history.resumes() {
			return n, invalid("input", "", "No tool output found for function call "+short(id)+".")
		}
		if id := in.history.orphan(); id != "" {
			return n, invalid("input", "", "No tool call found for function call output with call_id "+short(id)+".")
		}
		n.History, n.Input = in.history.split()
	} else {
		n.Input = in.history.messages
	}
	if len(n.Input) == 0 {
		return n, invalid("input", "", "The input has nothing for the model to answer: add a message of the user.")
	}
	return n, nil
}

// refused puts what the hub says of a request that it does not take into OpenAI's words.
func refused(err error, r *request) error {
	switch p := problem.Of(err); p.Code {
	case string(problem.ModelUnknown), string(problem.ModelNotFound):
		return invalid("model", "model_not_found", "The requested model '"+short(r.Model)+"' does not exist.")
	case string(problem.SessionNotFound):
		return noContainer(r.container.id)
	case string(problem.ConversationNotFound):
		return noConversation(conversationID(r.talk))
	case string(problem.FileNotFound):
		return invalid("input", "", sentence(p))
	}
	return err
}

// await answers with the whole response. A client that goes away stops it, as at OpenAI.
func (s *server) await(c *call, turn hub.Turn, k kept, o options) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	t := newTranslation(turn, k, o, func(event) error { return nil })
	t.place = s.placeOf(ctx, c.who, turn.ID)
	steps, err := s.steps(ctx, c.who, turn.ID)
	if err != nil {
		s.abandon(c, turn.ID)
		return err
	}
	for over := false; !over; {
		st, ok := <-steps
		if gone(c.Context()) {
			s.abandon(c, turn.ID)
			return nil
		}
		if !ok {
			st = step{err: problem.New(problem.TurnLost, "the response broke off")}
		}
		if over, err = t.feed(st); err != nil {
			return err
		}
	}
	if t.failed != nil && !t.ran {
		return refused(t.failed, &request{echo: k.Echo})
	}
	// Otherwise the client gets an object that says how far it came: code ran, and a repeated request would run it again.
	c.w.Header().Set("X-Should-Retry", "false")
	return c.reply(t.snapshot())
}

// abandon cancels a turn that nobody waits for.
func (s *server) abandon(c *call, turn string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 10*time.Second)
	defer cancel()
	if _, err := s.Hub.CancelTurn(ctx, c.who, turn); err != nil {
		s.Log.WarnContext(ctx, "the turn of a client that went away was not cancelled", "turn", turn, "error", err)
	}
}

// stream sends a turn's events after the number after. With cancelled, the turn does not outlive the stream.
func (s *server) stream(c *call, turn hub.Turn, k kept, o options, after int64, cancelled bool) error {
	out := newOutlet(c.w, after)
	ended, err := s.streamTurn(c, turn, k, o, out)
	if cancelled && !ended {
		s.abandon(c, turn.ID)
	}
	if out.begun() {
		return nil // there is nobody to tell, or it was told
	}
	return err
}

// streamTurn streams a turn and says whether the turn has ended. It waits a little before it begins, so that what fails at once fails with a
// status.
func (s *server) streamTurn(c *call, turn hub.Turn, k kept, o options, out *outlet) (ended bool, err error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	t := newTranslation(turn, k, o, out.send)
	t.place = s.placeOf(ctx, c.who, turn.ID)
	steps, err := s.steps(ctx, c.who, turn.ID)
	if err != nil {
		return false, err
	}
	wait := time.NewTimer(s.Settle)
	defer wait.Stop()
	var first *step
	select {
	case st, ok := <-steps:
		if ok {
			first = &st
		}
	case <-wait.C:
	case <-c.Context().Done():
		return false, nil
	}
	if first != nil && first.err != nil && out.after < 0 && !gone(c.Context()) && problem.Of(first.err).Kind != problem.Canceled {
		return true, refused(first.err, &request{echo: k.Echo})
	}
	out.begin()
	if err := t.begin(); err != nil {
		return false, err
	}
	return s.pump(c, t, out.comment, steps, first)
}

// pump translates step after step until the last; beats fill a silence. It says whether the turn has ended.
func (s *server) pump(c *call, t *translation, comment func() error, steps <-chan step, first *step) (ended bool, err error) {
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	if first != nil && !gone(c.Context()) {
		if ended, err = t.feed(*first); ended || err != nil {
			return ended, err
		}
	}
	for {
		select {
		case <-c.Context().Done():
			return false, nil
		case <-beat.C:
			if err := comment(); err != nil {
				return false, err
			}
		case st, ok := <-steps:
			if gone(c.Context()) {
				return false, nil
			}
			if !ok {
				st = step{err: problem.New(problem.TurnLost, "the response broke off")}
			}
			beat.Reset(s.Heartbeat)
			if ended, err = t.feed(st); ended || err != nil {
				return ended, err
			}
		}
	}
}

// turnOf returns the turn that the path names.
func (s *server) turnOf(c *call) (hub.Turn, error) {
	id, err := ownResponse(c.PathValue("id"))
	if err != nil {
		return hub.Turn{}, err
	}
	turn, err := s.Hub.Turn(c.Context(), c.who, id)
	if err == nil && turn.Hidden {
		err = noResponse(c.PathValue("id")) // it runs, or did a moment ago; the client asked that it be not stored
	}
	return turn, named(err, noResponse(c.PathValue("id")))
}

func (s *server) getResponse(c *call) error {
	q, err := readQuery(c)
	if err != nil {
		return err
	}
	// openai-go says in a body, also with GET, that it wants a stream.
	if body, err := s.readForm(c); err == nil && body.yes("stream") {
		q.stream = true
	}
	turn, err := s.turnOf(c)
	if err != nil {
		return err
	}
	k := keptOf(turn)
	o := options{outputs: slices.Contains(q.include, withOutputs), live: live(c), whole: !q.stream}
	if q.stream {
		o.outputs = o.outputs || len(q.include) == 0 && slices.Contains(k.Include, withOutputs)
		return s.stream(c, turn, k, o, q.startingAfter, false)
	}
	t, err := s.replay(c.Context(), c.who, turn, o)
	if err != nil {
		return err
	}
	return c.reply(t.snapshot())
}

func (s *server) deleteResponse(c *call) error {
	turn, err := s.turnOf(c)
	if err != nil {
		return err
	}
	if !turn.State.Final() {
		if _, err := s.Hub.CancelTurn(c.Context(), c.who, turn.ID); err != nil {
			return err
		}
		if err := s.untilOver(c, turn.ID); err != nil {
			return err
		}
	}
	if err := s.Hub.DeleteTurn(c.Context(), c.who, turn.ID); err != nil {
		return named(err, noResponse(c.PathValue("id")))
	}
	return c.reply(deleted{c.PathValue("id"), "response", true})
}

// deleted is the answer to a deletion.
type deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// untilOver waits for the end of a turn that was cancelled.
func (s *server) untilOver(c *call, turn string) error {
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	follow, err := s.Hub.FollowTurn(ctx, c.who, turn, 0)
	if err != nil {
		return err
	}
	for _, err := range follow {
		if err != nil {
			break
		}
	}
	return nil
}

func (s *server) cancelResponse(c *call) error {
	turn, err := s.turnOf(c)
	if err != nil {
		return err
	}
	k := keptOf(turn)
	if !k.Echo.Background {
		return invalid("", "", "Cannot cancel a synchronous response.")
	}
	if !turn.State.Final() {
		if turn, err = s.Hub.CancelTurn(c.Context(), c.who, turn.ID); err != nil {
			return err
		}
		if err := s.untilOver(c, turn.ID); err != nil {
			return err
		}
		if turn, err = s.Hub.Turn(c.Context(), c.who, turn.ID); err != nil {
			return err
		}
	}
	t, err := s.replay(c.Context(), c.who, turn, options{whole: true})
	if err != nil {
		return err
	}
	return c.reply(t.snapshot())
}

func (s *server) inputItems(c *call) error {
	q, err := readPage(c, 20, 100)
	if err != nil {
		return err
	}
	turn, err := s.turnOf(c)
	if err != nil {
		return err
	}
	k := keptOf(turn)
	page, err := q.cut(rawEntries(k.Input[len(k.added()):]))
	if err != nil {
		return err
	}
	return c.reply(page)
}
