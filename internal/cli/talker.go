package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

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
	// Done is told how the turn ended, once what it said was shown. It says what there is to say besides, such as that a session was lost.
	Done(failed error)
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
	p     *Program
	cfg   config.Config
	model model.Model
	bench *bench
	rec   *recorder

	messages []model.Message
	meta     map[string]string
	fresh    bool // the session is not the one that messages speak of
}

var _ talker = (*localTalker)(nil)

func (t *localTalker) Ask(ctx context.Context, prompt string) iter.Seq2[interpreter.Event, error] {
	meta := t.meta
	if version, _ := t.bench.Python(); version != "" {
		meta[metaPython] = version
	}
	t.rec.begin(prompt, t.model.Name(), meta)
	turn := interpreter.Turn{
		History: t.messages, Python: true, Fresh: t.fresh && len(t.messages) > 0,
		Input: []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: prompt}}}},
	}
	t.fresh = false
	events := interpreter.Run(ctx, t.model, t.bench, TurnLimits(t.cfg), turn)
	return t.rec.watch(func(yield func(interpreter.Event, error) bool) {
		for e, err := range events {
			if a, ok := e.(interpreter.Answer); ok {
				t.messages = append(t.messages, a.Messages...)
			}
			if stopped, ok := errors.AsType[*interpreter.Stopped](err); ok {
				t.messages = append(t.messages, stopped.Messages...)
			}
			if !yield(e, err) {
				return
			}
		}
	})
}

func (t *localTalker) Guard(hard context.Context) func() bool { return t.bench.killed(hard) }

func (t *localTalker) Done(failed error) {
	t.rec.end(failed)
	t.bench.tell()
}

func (t *localTalker) Fetch(ctx context.Context, path string, w io.Writer) error {
	return t.bench.Fetch(ctx, path, w)
}

func (t *localTalker) List(ctx context.Context) ([]kernel.File, error) { return t.bench.Files(ctx) }

func (t *localTalker) Use(ctx context.Context, name string) (string, error) {
	choice, err := choose.Model(ctx, t.cfg, name)
	if err != nil {
		return "", err
	}
	m, err := t.p.NewModel(choice)
	if err != nil {
		return "", err
	}
	t.model = m
	return m.Name(), nil
}

func (t *localTalker) Renew() {
	t.messages = nil
	t.rec.renew()
}

// goingOn is a conversation of the history that a command continues.
type goingOn struct {
	conversation hub.Conversation
	messages     []model.Message
	parent       string
}

// continued finds the conversation that id names ("" is the last) and what was said in it.
func (p *Program) continued(ctx context.Context, c config.Config, id string) (g *goingOn, err error) {
	from, err := p.localPast(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	found, err := find(ctx, from, id)
	if err != nil {
		return nil, err
	}
	if found.execution != nil {
		return nil, problem.New(problem.Invalid, "usage", "an execution is no conversation").WithHint("`cove history` lists conversations")
	}
	g = &goingOn{conversation: found.conversation}
	turns := branch(found.turns)
	if len(found.turns) == 1 {
		all, err := from.Turns(ctx, found.conversation.ID)
		if err != nil {
			return nil, err
		}
		turns = branchTo(all, found.turns[0].ID)
	}
	for _, t := range turns {
		g.messages, g.parent = append(g.messages, t.Messages...), t.ID
	}
	return g, nil
}

// greet says what is gone on with.
func (g *goingOn) greet(w io.Writer, session string) {
	fmt.Fprintf(w, "cove: going on with %q (%s)\n", oneLine(g.conversation.Title), g.conversation.ID)
	if session == "" {
		text := "its Python is gone: variables and files begin anew"
		if files := fileNames(g.conversation); len(files) > 0 {
			text += "; it had " + oneLine(strings.Join(files, ", ")) + ", which -f brings again"
		}
		fmt.Fprintln(w, "cove: "+text)
	}
}
