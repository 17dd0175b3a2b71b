package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"

	"cove/internal/code/advice"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// talker answers questions, one after the other: in this process, or on a server.
type talker interface {
	questioner
	modelChooser
	talkersSession
}

// questioner asks, and goes back.
type questioner interface {
	// Ask runs a turn and yields what happens, an Answer last. Breaking off the range stops it.
	Ask(ctx context.Context, prompt string) iter.Seq2[loop.Event, error]
	// Done is called when a turn has ended and what it said was shown. It says what there is to say besides, such as that a session was lost.
	Done()
	// Renew begins a new conversation.
	Renew()
	// Back has the next question go on from before the last one, whose words it returns.
	Back(ctx context.Context) (prompt string, err error)
	// Spent is what the last turn took.
	Spent(ctx context.Context) (model.Usage, model.Cost)
	// Decides has decide be asked about each program before it runs.
	Decides(decide decision)
	// Guard ends what runs when hard ends, until stop is called.
	Guard(hard context.Context) (stop func() bool)
}

// modelChooser knows which model is asked.
type modelChooser interface {
	// Use asks this model from now on and returns its whole name.
	Use(ctx context.Context, name string) (string, error)
	// Model is the name of the model that is asked, "" where the server says it; Models are those that there are.
	Model() string
	Models(ctx context.Context) ([]api.Model, error)
}

// talkersSession is the session in which the code of answers runs.
type talkersSession interface {
	// Fetch copies a workspace file to w.
	Fetch(ctx context.Context, path string, w io.Writer) error
	// List returns the workspace's files.
	List(ctx context.Context) ([]kernel.File, error)
	// Put copies files of the user's into the workspace.
	Put(ctx context.Context, inputs []input) error
	// Runner runs code in the session.
	Runner() runner
}

// decision says what becomes of a program of the model's that an Approval told of.
type decision func(context.Context, loop.Approval) (loop.Decision, error)

// localTalker asks in this process.
type localTalker struct {
	p       *Program
	cfg     config.Config
	session *commandSession

	look func(ctx context.Context, step int, code string) advice.Report // see hub.NewTurn; nil: nobody looks

	conversation string            // "": the next turn begins one
	parent       string            // the turn to go on from, or ""
	meta         map[string]string // of the conversations
	noted        bool              // the conversation has meta and the session's id

	choice choose.Choice
	offers offered
	asks   *callAsker
	decide decision // nil: nobody is asked
	last   hub.Turn
}

var _ talker = (*localTalker)(nil)

func (t *localTalker) Ask(ctx context.Context, prompt string) iter.Seq2[loop.Event, error] {
	return func(yield func(loop.Event, error) bool) {
		made := t.conversation == ""
		if err := t.note(ctx, prompt); err != nil {
			yield(nil, err)
			return
		}
		heard := true
		var asked loop.Approval
		var decide func(context.Context, int) (loop.Decision, error)
		if t.decide != nil {
			decide = func(ctx context.Context, _ int) (loop.Decision, error) { return t.decide(ctx, asked) }
		}
		turn, err := t.session.hub.records.Hub.RunTurn(ctx, auth.Local(), hub.NewTurn{
			Conversation: t.conversation, Parent: t.parent, Session: t.session.hub.session, InProject: true,
			Input: []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: prompt}}}}, Look: t.look, Decide: decide,
			Servers: t.offers.tools, AskBefore: t.offers.ask, Kernels: t.offers.kernels,
		}, func(e loop.Event) error {
			if a, ok := e.(loop.Approval); ok {
				asked = a
			}
			t.asks.hear(ctx, e)
			if _, ran := e.(loop.Start); ran {
				t.session.ran++
			}
			if heard = yield(e, nil); !heard {
				return errUnheard
			}
			return nil
		})
		switch {
		case turn.ID != "":
			t.parent, t.last = turn.ID, turn
		case made: // for a turn that did not begin
			_ = t.session.hub.records.Hub.DeleteConversation(context.WithoutCancel(ctx), auth.Local(), t.conversation)
			t.conversation = ""
		}
		if err != nil && heard {
			yield(nil, err)
		}
	}
}

// note makes the conversation, where there is none, and has it record, once, what --continue needs.
func (t *localTalker) note(ctx context.Context, prompt string) error {
	if t.conversation != "" && t.noted {
		return nil
	}
	if version, _ := t.session.Python(); version != "" {
		t.meta[metaPython] = version
	}
	h := t.session.hub.records.Hub
	if t.conversation == "" {
		c, err := h.CreateConversation(ctx, auth.Local(), hub.NewConversation{
			Title: hub.TitleOf(prompt), Session: t.session.hub.session, Metadata: t.meta, Source: "cli",
		})
		t.conversation, t.noted = c.ID, err == nil
		return err
	}
	_, err := h.ChangeConversation(ctx, auth.Local(), t.conversation, hub.ConversationChange{Session: &t.session.hub.session, Edit: func(meta map[string]string) (map[string]string, error) {
		if meta == nil {
			meta = map[string]string{}
		}
		maps.Copy(meta, t.meta)
		return meta, nil
	}})
	t.noted = err == nil
	return err
}

func (t *localTalker) Guard(hard context.Context) func() bool { return t.session.killed(hard) }

func (t *localTalker) Done() { t.session.tell() }

func (t *localTalker) Fetch(ctx context.Context, path string, w io.Writer) error {
	return t.session.Fetch(ctx, path, w)
}

func (t *localTalker) List(ctx context.Context) ([]kernel.File, error) { return t.session.Files(ctx) }

func (t *localTalker) Use(ctx context.Context, name string) (string, error) {
	choice, m, err := t.p.openModel(ctx, t.cfg, name)
	if err != nil {
		return "", err
	}
	t.session.hub.models.Model, t.choice = m, choice
	return m.Name(), nil
}

// openModel opens the model with that name.
func (p *Program) openModel(ctx context.Context, cfg config.Config, name string) (choose.Choice, model.Model, error) {
	choice, err := choose.Model(ctx, cfg, name)
	if err != nil {
		return choice, nil, err
	}
	m, err := p.NewModel(choice)
	return choice, m, err
}

func (t *localTalker) Model() string { return t.session.hub.models.Name() }

func (t *localTalker) Models(ctx context.Context) ([]api.Model, error) {
	return t.p.models(ctx, t.choice.String())
}

func (t *localTalker) Back(ctx context.Context) (string, error) {
	if t.parent == "" {
		return "", nothingAsked()
	}
	turn, err := t.session.hub.records.Hub.Turn(ctx, auth.Local(), t.parent)
	if err != nil {
		return "", err
	}
	if t.parent = turn.Parent; t.parent == "" {
		t.Renew()
	}
	return turn.Prompt, nil
}

func nothingAsked() error {
	return problem.New(problem.Usage, "nothing was asked yet")
}

func (t *localTalker) Put(ctx context.Context, inputs []input) error {
	return put(ctx, t.session.Live, inputs, t.session.live)
}

func (t *localTalker) Runner() runner {
	t.session.ran++ // what it does is kept
	return t.session
}

func (t *localTalker) Spent(context.Context) (model.Usage, model.Cost) {
	return t.last.Usage, t.last.Cost
}

func (t *localTalker) Decides(decide decision) { t.decide = decide }

func (t *localTalker) Renew() { t.conversation, t.parent = "", "" }

// goingOn is a conversation of the history that a command continues.
type goingOn struct {
	conversation hub.Conversation
	parent       string // the turn that it goes on from
	fresh        bool   // its Python is gone
}

// continued finds the conversation that id names ("" is the last) and the turn to go on from.
func continued(ctx context.Context, from past, id string) (*goingOn, error) {
	found, err := find(ctx, from, id)
	if err != nil {
		return nil, err
	}
	if found.execution != nil {
		return nil, problem.New(problem.Usage, "an execution is no conversation").WithHint("`cove history` lists conversations")
	}
	g := &goingOn{conversation: found.conversation}
	if n := len(found.turns); n > 0 {
		g.parent = found.turns[n-1].ID
	}
	return g, nil
}

// greet says what is gone on with.
func (g *goingOn) greet(w io.Writer) {
	notef(w, "going on with %q (%s)", oneLine(g.conversation.Title), g.conversation.ID)
	if g.fresh {
		text := "its Python is gone: variables and files begin anew"
		if files := fileNames(g.conversation); len(files) > 0 {
			text += "; it had " + oneLine(strings.Join(files, ", ")) + ", which -f brings again"
		}
		fmt.Fprintln(w, "cove: "+lang.Text(text))
	}
}
