package anthropic

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const surfaceName = "anthropic"

// containerLife is what is said of a container that is not deleted by itself.
const containerLife = 30 * 24 * time.Hour

func (s *server) messages(c *call) error {
	r, err := s.read(c, true)
	if err != nil {
		return err
	}
	session, err := s.container(c, r)
	if err != nil {
		return err
	}
	in := &input{s: s, c: c, python: r.python, shell: r.shell}
	if err := in.read(r.Messages, session != ""); err != nil {
		return err
	}
	name, err := s.modelFor(c, r.Model)
	if err != nil {
		return err
	}
	bodybudget.Decoded(c.Context())
	a := &answer{c: c, model: r.Model, thinks: r.thinks, stream: r.Stream, input: r.estimate(in)}
	if r.shell {
		return s.commands(c, r, in, session, name, a)
	}
	if r.python {
		return s.turn(c, r, in, session, name, a)
	}
	return s.passOn(c, r, in, name, a)
}

// container finds the session that the request names; "" is none.
func (s *server) container(c *call, r *request) (string, error) {
	if !r.python || r.Container == nil || r.Container.ID == "" {
		return "", nil
	}
	id, ok := own(ident.Session, containerPrefix, r.Container.ID)
	if !ok {
		return "", noContainer(r.Container.ID)
	}
	session, err := s.Hub.Session(c.Context(), c.who, id)
	if err == nil && session.State == hub.SessionDeleted {
		err = noContainer(r.Container.ID)
	}
	return id, named(err, noContainer(r.Container.ID))
}

// modelFor is the model that is asked. Programs name one of Anthropic's; where the server has none of those, its usual model answers.
func (s *server) modelFor(c *call, name string) (string, error) {
	if !strings.HasPrefix(name, "claude-") {
		return name, nil
	}
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(models, func(m hub.ModelInfo) bool { return m.Provider == "anthropic" || strings.Contains(m.ID, "claude") }) {
		return name, nil
	}
	return "", nil
}

// refused puts what the hub says of a request that it does not take into Anthropic's words.
func refused(err error, r *request) error {
	switch {
	case problem.Has(err, problem.ModelUnknown, problem.ModelNotFound):
		return noModel(r.Model)
	case problem.Has(err, problem.SessionNotFound) && r.Container != nil:
		return noContainer(r.Container.ID)
	}
	return err
}

// turn runs the loop on the server. Its turn is kept while it runs and not afterwards: the client keeps the conversation.
func (s *server) turn(c *call, r *request, in *input, session, name string, a *answer) error {
	if err := c.who.Require(auth.ConversationsRead); err != nil {
		return err
	}
	n := hub.NewTurn{Unnoticed: true, Session: session, Model: name, Instructions: r.system(in.system), Tools: r.functions, CodeTools: r.callable, CodeGlobals: true, Choice: r.choice, Parallel: r.parallel,
		MaxTokens: r.tokens(), Temperature: r.Temperature, TopP: r.TopP, Format: r.format, Effort: r.effort, Files: in.files, Names: in.names,
		Source: surfaceName, Unattended: true, Hidden: true, Once: c.Header.Get("Idempotency-Key")}
	maps.DeleteFunc(n.Names, func(id, _ string) bool { return !slices.Contains(n.Files, id) })
	n.History, n.Input = in.history.split()
	turn, err := s.Hub.StartTurn(c.Context(), c.who, n)
	if err != nil {
		return refused(err, r)
	}
	a.id, a.caller, a.resumed = messageID(turn.ID), r.caller, in.resumed
	if name != r.Model {
		a.model = turn.Model
	}
	place := func() string { // the session may be made after the turn has begun
		if t, err := s.Hub.Turn(c.Context(), c.who, turn.ID); turn.Session == "" && err == nil {
			turn.Session = t.Session
		}
		return turn.Session
	}
	a.container = func() object { return s.shownContainer(c, place()) }
	a.keep = func(x *execution) (ids, notes []string) { return s.keepFiles(c, place(), x) }
	ended, err := s.pump(c, a, s.turnSteps(turn.ID))
	if !ended {
		s.abandon(c, turn.ID)
	}
	if a.out != nil {
		return nil // there is nobody to tell, or it was told
	}
	return refused(err, r)
}

func (s *server) shownContainer(c *call, id string) object {
	if id == "" {
		return nil
	}
	expires := s.Now().Add(containerLife)
	if session, err := s.Hub.Session(c.Context(), c.who, id); err == nil && !session.Expires.IsZero() {
		expires = session.Expires
	}
	return object{"id": containerPrefix + ident.Body(id), "expires_at": expires.UTC().Format(time.RFC3339), "skills": []object{}}
}

// abandon cancels a turn that nobody waits for.
func (s *server) abandon(c *call, turn string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 10*time.Second)
	defer cancel()
	if _, err := s.Hub.CancelTurn(ctx, c.who, turn); err != nil {
		s.Log.WarnContext(ctx, "the turn of a client that went away was not cancelled", "turn", turn, "error", err)
	}
}

// take translates one event of a turn and says whether it was the last.
func (a *answer) take(e loop.Event) (bool, error) {
	switch e := e.(type) {
	case loop.Text:
		return false, a.say(e.Delta)
	case loop.Reasoning:
		return false, a.think(e.Delta)
	case loop.Code:
		return false, a.code(e.Delta)
	case loop.Start:
		return false, a.started(e)
	case loop.Output:
		return false, a.output(e)
	case loop.Refused:
		return false, a.refused(e)
	case loop.Notice:
		return false, a.again()
	case loop.Answer:
		if err := a.close(); err != nil {
			return false, err
		}
		if err := a.rest(e); err != nil {
			return false, err
		}
		if err := a.calls(e.Calls); err != nil {
			return false, err
		}
		return true, a.finish(reasonOf(e.Reason), e.Usage)
	}
	return false, nil
}

// passOn asks the model without the interpreter.
func (s *server) passOn(c *call, r *request, in *input, name string, a *answer) error {
	m, err := s.Hub.OpenModel(c.Context(), c.who, name)
	if err != nil {
		return refused(err, r)
	}
	a.id = newID(messagePrefix)
	if name != r.Model {
		a.model = m.Name()
	}
	req := model.Request{System: r.system(in.system), Messages: in.history.messages, Tools: r.functions, MaxTokens: r.tokens(), Choice: r.choice,
		Parallel: r.parallel, Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop, Format: r.format, Effort: r.effort}
	_, err = s.pump(c, a, modelSteps(m, req))
	if a.out != nil {
		return nil // there is nobody to tell, or it was told
	}
	return refused(err, r)
}

// part translates one part of a model's answer and says whether it was the last.
func (a *answer) part(p model.Part) (bool, error) {
	end, ok := p.(model.Finish)
	if !ok {
		return false, a.piece(p)
	}
	if _, err := a.settle(end.Calls); err != nil {
		return false, err
	}
	return true, a.finish(stopReason(end.Reason), end.Usage)
}
