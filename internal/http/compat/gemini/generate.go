package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/sse"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

const (
	// source is what turns say of the surface that they came through.
	source = "gemini"
	// transient is how long a file of a request is kept that is on its way into a session.
	transient = 24 * time.Hour
)

// form is how an answer is sent.
type form int

const (
	whole  form = iota // one object
	events             // server-sent events
	array              // an array that grows
)

func (s *server) generate(c *call, name string, f form) error {
	o, err := s.readBody(c)
	if err != nil {
		return err
	}
	r, err := s.readRequest(c, o, name)
	if err != nil {
		return err
	}
	bodybudget.Decoded(c.Context())
	n := hub.NewTurn{Unnoticed: true, Model: name, Prompt: strings.TrimSpace(strings.Join(r.in.prompt, "\n")), Instructions: r.system, NoPython: !r.python, Tools: r.functions, Choice: r.choice,
		MaxTokens: r.max, Temperature: r.temp, TopP: r.topP, Format: r.format, Effort: r.effort, Stop: r.stop, Source: source, Unattended: true, Hidden: true}
	if n.History, n.Input = r.in.split(); len(n.Input) == 0 {
		return invalid("The last of the contents must be of the user: text, a file, or a functionResponse.")
	}
	if err := s.place(c, r, &n); err != nil {
		return err
	}
	turn, err := s.Hub.StartTurn(c.Context(), c.who, n)
	if err != nil {
		return err
	}
	out := &outlet{w: c.w, form: f}
	a := &answer{turn: turn, model: name, thoughts: r.thoughts, session: func() string {
		t, _ := s.Hub.Turn(c.Context(), c.who, turn.ID)
		return t.Session
	}}
	if f != whole {
		a.send = out.send
	}
	ended, err := s.pump(c, a, out)
	if !ended {
		s.abandon(c, turn.ID)
	}
	if out.begun {
		return nil // it was told, or there is nobody to tell
	}
	return err
}

// place says in which session code runs, and which files are put there first.
func (s *server) place(c *call, r *request, n *hub.NewTurn) error {
	if !r.python {
		return nil
	}
	if r.in.session != "" {
		session, err := s.Hub.Session(c.Context(), c.who, r.in.session)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			return err
		}
		n.Session = session.ID // "" when it is gone: the conversation goes on in a new one
	}
	if !c.who.May(auth.FilesWrite) {
		return nil // pictures are shown to the model all the same
	}
	for _, f := range r.in.files {
		if n.Session != "" && f.runs < r.in.placed {
			continue // it was put there then, and the code may have changed it
		}
		if f.stored != "" {
			n.Files = append(n.Files, f.stored)
			if n.Names == nil {
				n.Names = map[string]string{}
			}
			n.Names[f.stored] = f.name
			continue
		}
		stored, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: f.name, Purpose: "user_data", Life: transient}, bytes.NewReader(f.data))
		if err != nil {
			return err
		}
		n.Files = append(n.Files, stored.ID)
	}
	return nil
}

// abandon stops a turn whose client is gone.
func (s *server) abandon(c *call, turn string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), 10*time.Second)
	defer cancel()
	if _, err := s.Hub.CancelTurn(ctx, c.who, turn); err != nil && problem.Of(err).Kind != problem.NotFound {
		s.Log.WarnContext(ctx, "the turn of a client that went away was not cancelled", "turn", turn, "error", err)
	}
}

// step is what the follower of a turn brings: an event, or the error that ended the turn.
type step struct {
	event hub.Numbered[hub.TurnEvent]
	err   error
}

// steps has a turn's events come through a channel, so that somebody can wait for something else at the same time. It is closed after the last.
func (s *server) steps(ctx context.Context, who auth.Principal, turn string) (<-chan step, error) {
	follow, err := s.Hub.FollowTurn(ctx, who, turn, 0)
	if err != nil {
		return nil, err
	}
	out := make(chan step)
	go func() {
		defer close(out)
		for e, err := range stream.Read(follow, transcript.ParseTurnEvent) {
			select {
			case out <- step{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out, nil
}

// pump answers with what a turn says, and returns whether the turn has ended.
func (s *server) pump(c *call, a *answer, out *outlet) (ended bool, err error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	steps, err := s.steps(ctx, c.who, a.turn.ID)
	if err != nil {
		return false, err
	}
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-beat.C:
			if err := out.beat(); err != nil {
				return false, err
			}
		case st, ok := <-steps:
			switch {
			case ctx.Err() != nil:
				return false, nil
			case !ok:
				return true, out.fail(problem.New(problem.TurnLost, "the answer broke off"))
			case st.err != nil:
				return true, out.fail(st.err)
			case st.event.Gap || st.event.Event == nil:
				a.gap = a.gap || st.event.Gap
				continue
			}
			last, err := a.take(st.event.Event)
			if err != nil {
				return false, err
			}
			if last != nil {
				return true, out.finish(*last)
			}
		}
	}
}

// outlet writes an answer in its form.
type outlet struct {
	w     http.ResponseWriter
	form  form
	to    *sse.Writer // of both streams
	begun bool
}

func (o *outlet) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.element(text)
}

// element writes one element of a stream.
func (o *outlet) element(text []byte) error {
	first := !o.begun
	o.begin()
	switch {
	case o.form == events:
		text = sse.Event{Data: text}.Append(nil)
	case first:
		text = append([]byte("["), text...)
	default:
		text = append([]byte(",\r\n"), text...)
	}
	_, err := o.to.Write(text)
	return err
}

func (o *outlet) begin() {
	if o.begun {
		return
	}
	o.begun = true
	o.to = sse.NewWriter(o.w)
	if o.form == array {
		o.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	}
	o.w.WriteHeader(http.StatusOK)
}

func (o *outlet) send(r response) error { return o.write(r) }

// finish writes the last chunk, or the whole answer.
func (o *outlet) finish(r response) error {
	if o.form == whole {
		o.begun = true
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		o.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_, err = o.w.Write(append(text, '\n'))
		return err
	}
	err := o.write(r)
	if err == nil && o.form == array {
		_, err = o.to.Write([]byte("]\n"))
	}
	return err
}

// fail ends the answer with an error: with a status where nothing was sent yet, otherwise within the stream.
func (o *outlet) fail(err error) error {
	if !o.begun {
		return err
	}
	text := faultOf(err).body()
	if err := o.element(text); err != nil || o.form != array {
		return err
	}
	_, err = o.to.Write([]byte("]\n"))
	return err
}

// beat is a sign of life in a silent stream that has begun. It is an empty event: of comments, which server-sent events have for this, the SDKs for Python and Go make errors.
func (o *outlet) beat() error {
	if !o.begun {
		return nil
	}
	_, err := o.to.Write([]byte("\n\n"))
	return err
}
