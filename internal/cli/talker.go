package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"

	"cove/internal/advice"
	"cove/internal/auth"
	"cove/internal/config"
	"cove/internal/hub"
	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/model"
	"cove/internal/model/choose"
	"cove/internal/problem"
)

// talker answers questions, one after the other: in this process, or on a server.
type talker interface {
	// Ask runs a turn and yields what happens, an Answer last. Breaking off the range stops it.
	Ask(ctx context.Context, prompt string) iter.Seq2[interpreter.Event, error]
	// Done is called when a turn has ended and what it said was shown. It says what there is to say besides, such as that a session was lost.
	Done()
	// Fetch copies a workspace file to w.
	Fetch(ctx context.Context, path string, w io.Writer) error
	// List returns the workspace's files.
	List(ctx context.Context) ([]kernel.File, error)
	// Use asks this model from now on and returns its whole name.
	Use(ctx context.Context, name string) (string, error)
	// Renew begins a new conversation.
	Renew()
	// Guard ends what runs when hard ends, until stop is called.
	Guard(hard context.Context) (stop func() bool)
}

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
}

var _ talker = (*localTalker)(nil)

func (t *localTalker) Ask(ctx context.Context, prompt string) iter.Seq2[interpreter.Event, error] {
	return func(yield func(interpreter.Event, error) bool) {
		made := t.conversation == ""
		if err := t.note(ctx, prompt); err != nil {
			yield(nil, err)
			return
		}
		heard := true
		turn, err := t.session.hub.records.Hub.RunTurn(ctx, auth.Local(), hub.NewTurn{
			Conversation: t.conversation, Parent: t.parent, Session: t.session.hub.session,
			Input: []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: prompt}}}}, Look: t.look,
		}, func(e interpreter.Event) error {
			if _, ran := e.(interpreter.Start); ran {
				t.session.ran++
			}
			if heard = yield(e, nil); !heard {
				return errUnheard
			}
			return nil
		})
		switch {
		case turn.ID != "":
			t.parent = turn.ID
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
	choice, err := choose.Model(ctx, t.cfg, name)
	if err != nil {
		return "", err
	}
	m, err := t.p.NewModel(choice)
	if err != nil {
		return "", err
	}
	t.session.hub.models.Model = m
	return m.Name(), nil
}

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
	fmt.Fprintf(w, "cove: going on with %q (%s)\n", oneLine(g.conversation.Title), g.conversation.ID)
	if g.fresh {
		text := "its Python is gone: variables and files begin anew"
		if files := fileNames(g.conversation); len(files) > 0 {
			text += "; it had " + oneLine(strings.Join(files, ", ")) + ", which -f brings again"
		}
		fmt.Fprintln(w, "cove: "+text)
	}
}
