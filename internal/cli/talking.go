package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"cove/internal/config"
	"cove/internal/ident"
	"cove/internal/model"
	"cove/internal/model/choose"
	"cove/internal/named"
	"cove/internal/problem"
)

// historyFlags are the flags of commands that leave something in the history.
type historyFlags struct {
	Continue  bool `help:"Go on with the conversation that was used last, or with the one whose id comes first: --continue cnv_... QUESTION."`
	NoHistory bool `help:"Keep nothing of this in the history."`
}

// talkFlags are the flags of the commands that ask a model.
type talkFlags struct {
	Model string `placeholder:"PROVIDER/NAME" help:"openai/..., anthropic/..., ollama/... or replay:FILE. Without it: COVE_MODEL, the config file, then what the environment offers."`
	fileFlags
	sessionFlags
	sandboxFlags
	installFlags
	serverFlags
	historyFlags
	MaxSteps int `default:"${max_steps}" placeholder:"N" help:"How often the model may run code for one question (default: ${max_steps})."`
}

// settings are those of the program with the flags on top. What can be wrong with flags alone is found.
func (f talkFlags) settings(p *Program) (config.Config, error) {
	cfg, err := f.config(p)
	if err != nil {
		return cfg, err
	}
	f.install(&cfg)
	if f.MaxSteps < 1 {
		return cfg, problem.New(problem.Invalid, "usage", "--max-steps must be at least 1")
	}
	cfg.Turn.MaxSteps, cfg.Store.History = f.MaxSteps, cfg.Store.History && !f.NoHistory
	return cfg, f.check(cfg)
}

// question takes the id of the conversation to go on with, "" for the last, away from the words.
func (c *askCmd) question() (goOnWith string, words []string, err error) {
	if !c.Continue || len(c.Prompt) == 0 || !regexp.MustCompile(`^(cnv|trn|exe)_\w*$`).MatchString(c.Prompt[0]) {
		return "", c.Prompt, nil
	}
	id := c.Prompt[0]
	if !ident.Valid(ident.Conversation, id) && !ident.Valid(ident.Turn, id) {
		return "", nil, problem.New(problem.Invalid, "id_invalid", id+" is not the id of a conversation").WithHint("`cove history` lists conversations")
	}
	return id, c.Prompt[1:], nil
}

// talking opens what answers questions, has use talk to it and ends it.
type talking struct {
	p   *Program
	cfg config.Config
	talkFlags
	goOnWith string
	command  string
	outlives bool // what is talked goes on when the interruption that it was opened with is over

	base, key string      // the server, or
	model     model.Model // what is asked here
}

// reach finds the server to ask, or the model to ask from here.
func (t *talking) reach(ctx context.Context) (err error) {
	if t.base, t.key, err = t.remote(t.cfg); err != nil || t.base != "" {
		return err
	}
	choice, err := choose.Model(ctx, t.cfg, t.Model)
	if err != nil {
		return err
	}
	if choice.Because != "" && !t.Quiet {
		fmt.Fprintf(t.p.Err, "cove: using %s, because %s\n", oneLine(choice.String()), choice.Because)
	}
	t.model, err = t.p.NewModel(choice)
	return err
}

// talk opens what was reached.
func (t *talking) talk(i *interruption, inputs []input, out *outFolder, use func(talker) (int, error)) (int, error) {
	if t.base != "" {
		return t.remotely(i, inputs, out, use)
	}
	return t.locally(i, inputs, out, use)
}

func (t *talking) locally(i *interruption, inputs []input, out *outFolder, use func(talker) (int, error)) (code int, err error) {
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
		if i.leave.Err() != nil && t.outlives { // it was about the beginning
			i = t.p.interruptible(context.Background())
			defer i.stop()
		}
		b.settle(i.hard, &code, &err)
	}()
	l := &localTalker{p: t.p, cfg: t.cfg, model: t.model, bench: b, rec: rec, meta: t.meta(inputs, g)}
	if g != nil {
		l.messages, l.fresh = g.messages, t.Session == ""
	}
	return use(l)
}

// sessionOf is the session with a name that the conversation worked in, where it is still there and no other one is asked for.
func (t *talking) sessionOf(g *goingOn) sessionFlags {
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
func (t *talking) meta(inputs []input, g *goingOn) map[string]string {
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
