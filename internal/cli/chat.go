package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync"

	"cove/internal/config"
	"cove/internal/hub"
	"cove/internal/interpreter"
	"cove/internal/lineedit"
	"cove/internal/notebook"
	"cove/internal/problem"
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
	inputs, out, err := p.prepare(c.fileFlags)
	if err != nil {
		return 0, err
	}
	i := p.interruptible(ctx)
	begun := sync.OnceFunc(i.stop)
	defer begun()
	t := &talking{p: p, cfg: cfg, talkFlags: c.talkFlags, goOnWith: c.Conversation, command: "cove chat", outlives: true}
	code := 0
	if err = t.reach(i.soft); err == nil {
		code, err = t.talk(i, inputs, out, func(with talker) (int, error) {
			begun() // from now on each answer has its own
			return c.talk(ctx, p, cfg, with, out)
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
	lost   bool // not every result was saved
	doc    notebook.Document
}

func (c *chatCmd) talk(ctx context.Context, p *Program, cfg config.Config, with talker, out *outFolder) (int, error) {
	e, err := newChatEditor(p, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { _ = e.Close() }()
	_, tty := terminal(p.In)
	r := &chat{p: p, cfg: cfg, with: with, out: out, editor: e, quiet: c.Quiet, tty: tty}
	if tty && !c.Quiet {
		fmt.Fprintln(p.Err, "Ask something. /help says what else there is; Ctrl-D leaves.")
	}
	code, err := r.loop(ctx)
	if code == 0 && r.lost {
		code = exitFailure
	}
	return code, err
}

func newChatEditor(p *Program, cfg config.Config) (editor, error) {
	if !cfg.Store.History {
		return newEditor(p, "", nil)
	}
	return newEditor(p, filepath.Join(cfg.Folders.Data, "chat-history"), nil)
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
			leave, err := c.command(ctx, word)
			if err != nil {
				c.p.report(err)
			}
			if leave {
				return code, nil
			}
			continue
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
	v := &askView{p: c.p, out: c.out, quiet: c.quiet, plotly: c.p.plotly(c.cfg), narrator: newNarrator(c.p, c.p.Err)}
	defer v.narrator.live.clear()
	saved := c.out.saved
	c.out.saved, c.out.lost = nil, nil // each answer tells of its own
	var events []interpreter.Event
	defer c.with.Guard(i.hard)()
	turn, stop := context.WithCancel(i.soft)
	defer stop()
	asked := v.follow(collectEvents(c.with.Ask(turn, prompt), &events), stop)
	code, err = v.finish(i, c.with, asked)
	c.out.saved = append(saved, c.out.saved...)
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
		fmt.Fprintln(c.p.Err, "cove: stopped")
		return exitInterrupted, false, nil
	case !c.tty:
		return 0, true, err
	}
	c.p.report(err)
	return exitFailure, false, nil
}

// collectEvents keeps what passes.
func collectEvents(events iter.Seq2[interpreter.Event, error], into *[]interpreter.Event) iter.Seq2[interpreter.Event, error] {
	return func(yield func(interpreter.Event, error) bool) {
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

const chatHelp = `/files          list the files of the workspace
/get FILE       copy a file of the workspace into the out folder
/save FILE      write the conversation to FILE.ipynb, FILE.md or FILE.py
/new            begin a new conversation
/model NAME     ask another model from now on
/quit           leave; so does Ctrl-D
"""             begins and ends a text of several lines; a \ at the end of a line goes on in the next
Ctrl-C          stops an answer, not the conversation
`

// command does what begins with a slash. leave says that the conversation is over.
func (c *chat) command(ctx context.Context, line string) (leave bool, err error) {
	i := c.p.interruptible(ctx)
	defer i.stop()
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/help", "/?":
		_, err = io.WriteString(c.p.Out, chatHelp)
	case "/quit", "/exit", "/q":
		return true, nil
	case "/files":
		err = c.files(i.soft)
	case "/get":
		err = c.get(i.soft, rest)
	case "/save":
		err = c.save(rest)
	case "/new":
		c.doc = notebook.Document{}
		c.with.Renew()
		fmt.Fprintln(c.p.Err, "cove: a new conversation; the files and variables are still there")
	case "/model":
		err = c.use(i.soft, rest)
	default:
		err = problem.New(problem.Usage, "there is no "+oneLine(word)).WithHint("/help lists what there is")
	}
	return false, err
}

func (c *chat) files(ctx context.Context) error {
	files, err := c.with.List(ctx)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		fmt.Fprintln(c.p.Err, "cove: the workspace has no files")
	}
	for _, f := range files {
		fmt.Fprintf(c.p.Out, "%10s  %s\n", humanSize(f.Size), oneLine(f.Path))
	}
	return nil
}

func (c *chat) get(ctx context.Context, name string) error {
	if name == "" {
		return problem.New(problem.Usage, "which file?").WithHint("/files lists them")
	}
	before := len(c.out.saved)
	if err := c.out.file(ctx, c.with, name); err != nil {
		return err
	}
	for _, s := range c.out.saved[min(before, len(c.out.saved)-1):] {
		fmt.Fprintf(c.p.Out, "%s  %s\n", s.Path, humanSize(s.Size))
	}
	return nil
}

func (c *chat) save(name string) error {
	if name == "" {
		return problem.New(problem.Usage, "under which name?").WithHint("/save sales.ipynb")
	}
	write := notebook.WriteIPYNB
	switch filepath.Ext(name) {
	case ".md":
		write = notebook.WriteMarkdown
	case ".py":
		write = notebook.WritePython
	case ".ipynb":
	default:
		name += ".ipynb"
	}
	if len(c.doc.Turns) > 0 {
		c.doc.Title = hub.TitleOf(c.doc.Turns[0].Prompt)
	}
	if _, err := writeWhole(name, 0o666, func(w io.Writer) error { return write(w, c.doc) }); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.p.Out, name)
	return err
}

func (c *chat) use(ctx context.Context, name string) error {
	if name == "" {
		return problem.New(problem.Usage, "which model?").WithHint("/model openai/gpt-5.5")
	}
	used, err := c.with.Use(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.p.Err, "cove: asking %s from now on\n", oneLine(used))
	return nil
}
