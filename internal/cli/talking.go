package cli

import (
	"context"
	"strings"

	"cove/internal/config"
	"cove/internal/ident"
	"cove/internal/model"
	"cove/internal/named"
)

// historyFlags are the flags of commands that leave something in the history.
type historyFlags struct {
	Continue  bool `help:"Go on with the conversation that was used last, or with the one whose id comes first: --continue cnv_... QUESTION."`
	NoHistory bool `help:"Keep nothing of this in the history."`
}

// question takes the id of the conversation to go on with away from the words.
func (c *askCmd) question() []string {
	if c.goesOnWith() != "" {
		return c.Prompt[1:]
	}
	return c.Prompt
}

func (c *askCmd) goesOnWith() string {
	if c.Continue && len(c.Prompt) > 0 && (ident.Valid(ident.Conversation, c.Prompt[0]) || ident.Valid(ident.Turn, c.Prompt[0])) {
		return c.Prompt[0]
	}
	return ""
}

// talking opens what answers questions, has use talk to it and ends it.
type talking struct {
	p   *Program
	cfg config.Config
	sandboxFlags
	sessionFlags
	historyFlags
	goOnWith string
	command  string
	outlives bool // what is talked goes on when the interruption that it was opened with is over
}

func (t talking) locally(i *interruption, m model.Model, inputs []input, out *outFolder, use func(talker) (int, error)) (code int, err error) {
	var g *goingOn
	if t.Continue {
		if g, err = t.p.continued(i.soft, t.cfg, t.goOnWith); err != nil {
			return 0, err
		}
		t.sessionFlags = t.sessionOf(g)
		if !t.Quiet {
			g.greet(t.p.Err, t.Session)
		}
	}
	rec := t.p.newRecorder(i.soft, t.cfg, g)
	defer rec.close()
	b, err := t.p.open(i.soft, opening{t.cfg, t.sandboxFlags, t.sessionFlags, t.command}, inputs, out)
	if err != nil {
		return 0, err
	}
	defer func() {
		if i.hard.Err() != nil && t.outlives { // it was about the beginning
			i = t.p.interruptible(context.Background())
			defer i.stop()
		}
		b.settle(i.hard, &code, &err)
	}()
	l := &localTalker{p: t.p, cfg: t.cfg, model: m, bench: b, rec: rec, meta: t.meta(inputs, g)}
	if g != nil {
		l.messages, l.fresh = g.messages, t.Session == ""
	}
	return use(l)
}

// sessionOf is the session with a name that the conversation worked in, where it is still there and no other one is asked for.
func (t talking) sessionOf(g *goingOn) sessionFlags {
	f := t.sessionFlags
	name := g.conversation.Metadata[metaSession]
	if f.Session != "" || name == "" {
		return f
	}
	all, err := t.p.store(t.cfg).List()
	if err != nil {
		return f
	}
	for _, s := range all {
		if s.Name == name && s.State != named.Broken {
			f.Session = name
		}
	}
	return f
}

// meta is what the conversation remembers.
func (t talking) meta(inputs []input, g *goingOn) map[string]string {
	meta := map[string]string{}
	if t.Session != "" {
		meta[metaSession] = t.Session
	}
	var names []string
	if g != nil {
		names = fileNames(g.conversation)
	}
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	for _, in := range inputs {
		if !known[in.name] {
			names = append(names, strings.ReplaceAll(in.name, "\n", " "))
		}
	}
	if len(names) > 0 {
		meta[metaFiles] = strings.Join(names[:min(len(names), 100)], "\n")
	}
	return meta
}
