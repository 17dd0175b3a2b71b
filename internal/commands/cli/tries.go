package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// tryFlags have a question answered several times at once.
type tryFlags struct {
	Tries  *int     `placeholder:"N" help:"Answer each question N times at once (2 to 10), each try in a fork of the session, and go on from the best one: that which passes --assert, or what most answer."`
	Models []string `placeholder:"PROVIDER/NAME" help:"With --tries: who answers them, one after the other, instead of --model alone."`
	Assert string   `placeholder:"CODE" help:"With --tries: code that a right answer passes, such as 'total > 0'. It runs after a try, without an error and with a last value that is not false; the words of the answer are the variable answer."`
}

// checkTries returns what is wrong with flags about tries.
func (f talkFlags) checkTries() error {
	switch n := numberOf(f.Tries); {
	case f.Tries == nil && (f.Assert != "" || len(f.Models) > 0):
		return problem.New(problem.Usage, "--models and --assert are about several tries").WithHint("add --tries 3")
	case f.Tries == nil:
		return nil
	case n < 2 || n > hub.MostTries:
		return triesOutOfRange()
	case len(f.Models) > n:
		return problem.New(problem.Usage, "there are more --models than --tries")
	case f.AskFirst:
		return problem.New(problem.Usage, "--ask shows code before it runs, and --tries runs several programs at once").WithHint("leave one of them out")
	case len(f.Tools) > 0:
		return problem.New(problem.Usage, "each of several tries would call the tools").WithHint("leave --tools or --tries out")
	}
	return nil
}

func triesOutOfRange() error {
	return problem.New(problem.Usage, "--tries must be 2 to 10").WithHint("leave it out to have each question answered once")
}

// numberOf is the number that a flag gives, 0 where it is not given.
func numberOf(flag *int) int {
	if flag == nil {
		return 0
	}
	return *flag
}

// asked is the model that is asked; "": the settings say which.
func (f talkFlags) asked() string {
	if f.Model == "" && len(f.Models) > 0 {
		return f.Models[0]
	}
	return f.Model
}

// tries is what a turn is asked with; nil: one.
func (f tryFlags) tries() *api.Tries {
	if f.Tries == nil {
		return nil
	}
	return &api.Tries{Number: *f.Tries, Models: f.Models, Check: f.Assert}
}

// openModels opens the models of the tries.
func (t *talking) openModels(ctx context.Context) (map[string]model.Model, error) {
	all := map[string]model.Model{}
	for _, name := range t.Models {
		_, m, err := t.p.openModel(ctx, t.cfg, name)
		if err != nil {
			return nil, err
		}
		all[name] = m
	}
	return all, nil
}

// serverOnly is the first flag that was given and that only a server's sessions can have together with --tries, or "".
func (t *talking) serverOnly() string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--root", t.Root}, {"--image", t.Image != ""}, {"--allow-net", len(t.AllowNet) > 0}, {"--deny-net", len(t.DenyNet) > 0}, {"--credential", len(t.Credential) > 0},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// inTries is locally for questions with several tries. A hub of this process answers as a server would, in a session of its own, since what is forked has to be the hub's. The session begins as the one that
// is to go on, which has the outcome at the end; until then it is as it was.
func (t *talking) inTries(i *interruption, inputs []input, out *outFolder, use func(talker) (int, error)) (code int, err error) {
	defer out.close()
	if flag := t.serverOnly(); flag != "" {
		return 0, problem.New(problem.Usage, fmt.Sprintf("%s and --tries go together on a server alone", flag)).WithHint("leave one of them out, or ask a server: --server URL")
	}
	if err := possible(t.cfg); err != nil {
		return 0, err
	}
	if !t.cfg.Saves() {
		return 0, problem.New(problem.Usage, "--tries forks the session, which the engine "+t.cfg.Sandbox.Engine+" cannot do").WithHint("leave --tries out, or use --engine gvisor")
	}
	models, err := t.openModels(i.soft)
	if err != nil {
		return 0, err
	}
	live := t.p.signs(t.Quiet)
	defer live.Over()
	h := t.p.openHub(i.soft, t.cfg, t.model, RecordsOptions{Command: t.command, Sessions: t.progress()})
	defer h.close()
	h.models.others = models
	s := &tried{h: h, talking: t}
	if err := s.open(i.soft, live); err != nil {
		return 0, err
	}
	c, end := h.serveInside()
	defer end()
	r := &remoteTalker{p: t.p, client: c, session: s.id, check: t.Check, steps: t.MaxSteps, offers: t.offered(), tries: t.tries(), asks: &callAsker{toolAsker: t.asker(t.p), approve: approving(c)}}
	if g := s.from; g != nil {
		r.conversation, r.parent = g.conversation.ID, g.parent
	}
	defer func() {
		if i.leave.Err() != nil && t.outlives { // it was about the beginning
			i = t.p.interruptible(context.Background())
			defer i.stop()
		}
		err = errors.Join(err, s.settle(i, inputs, live))
	}()
	if err := sendInputs(i.soft, c, s.id, inputs, live); err != nil {
		return 0, err
	}
	if err := t.set(i.soft, r.Runner(), t.p.Getenv); err != nil {
		return 0, err
	}
	out.live = live
	return use(&triesTalker{remoteTalker: r, talking: t, models: h.models, session: s})
}

// progress is where it is said what makes a session ready.
func (t *talking) progress() io.Writer {
	if t.Quiet {
		return io.Discard
	}
	if f, ok := t.p.Err.(*terminal.File); ok {
		return lang.Lines(f.Telling())
	}
	return lang.Lines(t.p.Err)
}

// serveInside has the hub answer a client in this process, with the rights of the machine's user, until end is called.
func (h *localHub) serveInside() (c *client.Client, end func()) {
	inside := newInside()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.records.API.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Local())))
	})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(inside) // until it is closed
	}()
	c = client.New("http://cove", "").Through(inside.dial)
	return c, func() {
		c.Close()
		_ = server.Close()
		<-over
	}
}

// tried is the session of the hub in which questions with several tries are answered: the conversation's, or a copy of the one with a name.
type tried struct {
	*talking
	h    *localHub
	id   string
	kept bool        // it is the conversation's, and stays
	from *goingOn    // the conversation that goes on, or nil
	head ondisk.Info // of the session with the name as the copy was made; zero where there was none

	used         bool   // a question was answered, or the user has changed something
	first        string // the first turn that was answered
	conversation string // of the last one
}

// open finds the session, or makes it.
func (s *tried) open(ctx context.Context, live *terminal.Live) error {
	records, err := s.h.wait(ctx)
	if err != nil {
		return err
	}
	o := opening{cfg: s.cfg, session: s.sessionFlags}
	o.kept = s.p.newKept(o)
	if s.Continue {
		if s.from, err = s.resumed(ctx, s.h); err != nil {
			return err
		}
		s.p.goOn(s.from, &o)
		if !s.Quiet {
			s.from.greet(s.p.Err)
		}
	}
	s.Session = o.session.Session
	s.kept = o.kept != nil && s.Session == ""
	if s.kept && o.kept.there {
		s.id = o.kept.id
		return nil
	}
	n := hub.NewSession{Packages: s.Packages, Life: strayLife} // as long as it stays when this process is killed
	if s.Memory != nil {
		n.Memory = int64(*s.Memory)
	}
	if s.CPUs != nil {
		n.CPUs = *s.CPUs
	}
	live.Await(lang.Text("starting the sandbox"))
	if s.Session != "" {
		s.head, err = s.p.store(s.cfg).Look(s.Session)
	}
	var row hub.Session
	if s.Session == "" || problem.Has(err, problem.SessionUnknown) {
		row, err = records.Hub.CreateSession(ctx, auth.Local(), n)
	} else if err == nil {
		row, err = records.Hub.ForkStored(ctx, auth.Local(), s.Session, n)
	}
	s.id = row.ID
	return err
}

// abandon ends what runs, at once.
func (s *tried) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = s.h.records.Hub.Drain(ctx)
}

// settle saves what the answers have made, for the session with the name or for --continue. When that fails, the copy stays and is named.
func (s *tried) settle(i *interruption, inputs []input, live *terminal.Live) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	defer context.AfterFunc(i.hard, func() { time.AfterFunc(hurriedSave, cancel) })()
	live.Await(lang.Text("saving the session"))
	defer live.Over()
	h := s.h.records.Hub
	if s.used {
		if err := s.save(ctx, h); err != nil {
			return problem.New(problem.SessionUnsaved, "what the answer has made is not in the session: "+message(err)).WithHint("it is in session " + s.id + ": cove run --session " + s.id)
		}
		if err := s.note(ctx, h, inputs); err != nil {
			return err
		}
	}
	if s.kept && (s.used || s.from != nil && !s.from.fresh) {
		return nil
	}
	if err := h.DeleteSession(ctx, auth.Local(), s.id); err != nil && problem.Of(err).Kind != problem.NotFound && i.hard.Err() == nil {
		notef(s.p.Err, "session %s stays: %s", s.id, oneLine(spoken(err)))
	}
	return nil
}

// save has the session that goes on have what was made.
func (s *tried) save(ctx context.Context, h *hub.Hub) error {
	switch {
	case s.kept:
		return h.ReleaseSession(ctx, auth.Local(), s.id)
	case s.Session == "":
		return nil
	}
	now, err := s.p.store(s.cfg).Look(s.Session)
	if err == nil && !now.Used.Equal(s.head.Used) && !s.Quiet {
		notef(s.p.Err, "another command has changed session %s meanwhile; `cove session undo %s` goes back to that", s.Session, s.Session)
	}
	return h.StoreAs(ctx, auth.Local(), s.id, s.Session, s.first)
}

// note has the conversation remember what --continue needs.
func (s *tried) note(ctx context.Context, h *hub.Hub, inputs []input) error {
	if s.conversation == "" {
		return nil
	}
	meta := s.meta(inputs, s.from)
	change := hub.ConversationChange{Edit: func(all map[string]string) (map[string]string, error) {
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, meta)
		return all, nil
	}}
	if s.kept {
		change.Session = &s.id
	}
	_, err := h.ChangeConversation(ctx, auth.Local(), s.conversation, change)
	return err
}

// triesTalker asks the hub of this process, which knows the models that this machine has.
type triesTalker struct {
	*remoteTalker
	*talking
	models  *chosenModel
	session *tried
}

func (t *triesTalker) Ask(ctx context.Context, prompt string) iter.Seq2[loop.Event, error] {
	return func(yield func(loop.Event, error) bool) {
		for e, err := range t.remoteTalker.Ask(ctx, prompt) {
			if _, answered := e.(loop.Answer); answered && err == nil {
				t.session.used, t.session.first, t.session.conversation = true, cmp.Or(t.session.first, t.last), t.conversation
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (t *triesTalker) Guard(hard context.Context) func() bool {
	return context.AfterFunc(hard, t.session.abandon)
}

func (t *triesTalker) Put(ctx context.Context, inputs []input) error {
	t.session.used = true
	return t.remoteTalker.Put(ctx, inputs)
}

func (t *triesTalker) Runner() runner {
	t.session.used = true
	return t.remoteTalker.Runner()
}

func (t *triesTalker) Use(ctx context.Context, name string) (string, error) {
	choice, m, err := t.talking.p.openModel(ctx, t.cfg, name)
	if err != nil {
		return "", err
	}
	t.models.Model, t.choice = m, choice
	return m.Name(), nil
}

func (t *triesTalker) Model() string { return t.models.Name() }

func (t *triesTalker) Models(ctx context.Context) ([]api.Model, error) {
	return t.talking.p.models(ctx, t.choice.String())
}
