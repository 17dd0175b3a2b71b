package cli

import (
	"context"
	"errors"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cove/internal/commands/lineedit"
	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/notebook"
)

type chatCmd struct {
	ownSignals
	Conversation string `arg:"" optional:"" help:"With --continue: the conversation to go on with; without, the one that was used last."`
	talkFlags
}

// Help is the long help.
func (chatCmd) Help() string {
	return `One question after the other; the Python and its variables stay for the whole conversation. A line that ends with \ goes on in the next
one, and """ begins and ends a text of several lines. Ctrl-C stops an answer, Ctrl-D leaves. /help lists what else there is.

Examples:

    cove chat -f sales.csv
    cove chat --continue
    cove chat --server http://127.0.0.1:8700`
}

func (c *chatCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	if c.Conversation != "" && !c.Continue {
		return 0, problem.New(problem.Usage, "add --continue to go on with a conversation").WithHint("cove chat --continue " + oneLine(c.Conversation))
	}
	i := p.interruptible(ctx)
	begun := sync.OnceFunc(i.stop)
	defer begun()
	inputs, out, err := p.prepare(i.soft, c.fileFlags, c.networkFlags)
	if err != nil {
		return i.exitCode(), ifUnsignalled(i, err)
	}
	t := &talking{p: p, cfg: cfg, talkFlags: c.talkFlags, goOnWith: c.Conversation, command: "cove chat", outlives: true}
	code := 0
	if err = t.reach(i.soft); err == nil {
		code, err = t.talk(i, inputs, out, func(with talker) (int, error) {
			begun() // from now on each answer has its own
			return c.talk(ctx, t, with, out)
		})
	}
	if signalled := i.exitCode(); signalled != 0 && err != nil && !unsaved(err) {
		return signalled, nil
	}
	return code, err
}

// chat is a conversation in the terminal.
type chat struct {
	p      *Program
	cfg    config.Config
	with   talker
	out    *outFolder
	editor editor
	quiet  bool
	tty    bool
	images terminal.Protocol
	lost   bool // not every result was saved
	asks   bool // whether code may run
	used   usedUp
	doc    notebook.Document
}

func (c *chatCmd) talk(ctx context.Context, t *talking, with talker, out *outFolder) (int, error) {
	p, cfg := t.p, t.cfg
	e, err := newChatEditor(p, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { _ = e.Close() }()
	_, tty := terminal.Descriptor(p.In)
	r := &chat{p: p, cfg: cfg, with: with, out: out, editor: e, quiet: c.Quiet, tty: tty, images: c.pictures(p, p.Err), asks: t.mayAsk()}
	if tty && !c.Quiet {
		whom := "the server's model"
		if name := with.Model(); name != "" {
			whom = oneLine(name)
		}
		lang.Fprintf(p.Err, "Ask %s something. /help says what else there is; Ctrl-D leaves.\n", whom)
	}
	code, err := r.loop(ctx)
	if code == 0 && r.lost {
		code = exitFailure
	}
	return code, err
}

func newChatEditor(p *Program, cfg config.Config) (editor, error) {
	set := func(o *lineedit.Options) { o.Complete, o.Edit = completeChat, p.elsewhere("question.md") }
	if !cfg.Store.History {
		return newEditor(p, "", set)
	}
	return newEditor(p, filepath.Join(cfg.Folders.Data, "chat-history"), set)
}

func (c *chat) loop(ctx context.Context) (int, error) {
	code := 0
	for {
		text, signalled, err := c.p.prompted(ctx, c.read)
		switch {
		case errors.Is(err, io.EOF):
			return code, nil
		case err != nil || signalled != 0:
			return signalled, err
		}
		word := strings.TrimSpace(text)
		switch {
		case word == "":
			continue
		case strings.HasPrefix(word, "/"):
			ask, leave, err := c.command(ctx, word)
			if err != nil {
				c.p.report(err)
			}
			if leave {
				return code, nil
			}
			if word = ask; word == "" {
				continue
			}
		}
		var over bool
		if code, over, err = c.answer(ctx, word); err != nil || over {
			return code, err
		}
	}
}

// read returns the next question. Ctrl-C drops what was typed so far.
func (c *chat) read() (string, error) {
	c.editor.SetPrompt("› ")
	var typed []string
	quoted := false
	for {
		line, err := c.editor.ReadLine()
		switch {
		case errors.Is(err, lineedit.ErrInterrupt):
			return "", nil
		case errors.Is(err, io.EOF) && len(typed) > 0:
			return strings.Join(typed, "\n"), nil
		case err != nil:
			return "", err
		}
		if strings.TrimSpace(line) == `"""` {
			if quoted {
				return c.remember(typed), nil
			}
			quoted = true
		} else if begun, more := strings.CutSuffix(line, `\`); more && !quoted {
			typed = append(typed, begun)
		} else if typed = append(typed, line); !quoted {
			return c.remember(typed), nil
		}
		c.editor.SetPrompt("… ")
	}
}

// remember keeps what was typed for the arrow keys.
func (c *chat) remember(typed []string) string {
	text := strings.Join(typed, "\n")
	_ = c.editor.Remember(text) // what cannot be kept is asked all the same
	return text
}

// answer asks one question. over says that the program has to end.
func (c *chat) answer(ctx context.Context, prompt string) (code int, over bool, err error) {
	i := c.p.interruptible(ctx)
	defer i.stop()
	v := &askView{p: c.p, out: c.out, quiet: c.quiet, plotly: c.p.plotly(c.cfg), narrator: newNarrator(c.p, c.p.Err, c.p.signs(c.quiet)), images: c.images, first: firstAwaited(c.with)}
	defer v.narrator.live.Over()
	if c.asks {
		v.narrator.asks = true
		c.with.Decides((&decider{p: c.p, typist: &typist{editor: c.editor}, view: v.narrator}).decide)
	}
	saved := c.out.saved
	c.out.saved, c.out.lost = nil, nil // each answer tells of its own
	var events []loop.Event
	defer c.with.Guard(i.hard)()
	turn, stop := context.WithCancel(i.soft)
	defer stop()
	begun := time.Now()
	ended := v.watchCode(i, c.with)
	asked := v.follow(collectEvents(c.with.Ask(turn, prompt), &events), stop)
	ended()
	code, err = v.finish(i, c.with, asked)
	c.out.saved = append(saved, c.out.saved...)
	if asked == nil {
		usage, cost := c.with.Spent(i.soft)
		c.used.add(usage, cost, time.Since(begun))
		if v.narrator.live != nil {
			v.narrator.note(spentText(usage, cost, time.Since(begun)))
		}
	}
	c.with.Done()
	answer := ""
	if v.answer != nil {
		answer = v.answer.Text
	}
	c.doc.Turns = append(c.doc.Turns, notebook.ReadTurn(prompt, answer, events))
	c.lost = c.lost || len(c.out.lost) > 0
	signalled := i.exitCode()
	if i.leave.Err() != nil && ctx.Err() == nil {
		return signalled, true, nil
	}
	switch {
	case problem.Has(err, problem.ResultsUnsaved):
		c.p.report(err)
		return exitFailure, false, nil
	case err == nil:
		return code, false, nil
	case signalled != 0 && problem.Of(err).Kind == problem.Canceled:
		notef(c.p.Err, "stopped")
		return exitInterrupted, false, nil
	case !c.tty:
		return 0, true, err
	}
	c.p.report(err)
	return exitFailure, false, nil
}

// collectEvents keeps what passes.
func collectEvents(events iter.Seq2[loop.Event, error], into *[]loop.Event) iter.Seq2[loop.Event, error] {
	return func(yield func(loop.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				*into = append(*into, e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
