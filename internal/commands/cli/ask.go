package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"syscall"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

type askCmd struct {
	ownSignals
	Prompt []string `arg:"" optional:"" help:"The question."`
	talkFlags
	JSON bool `name:"json" help:"Print one event per line as JSON (docs/events.md)."`
}

// Help is the long help.
func (askCmd) Help() string {
	return `Progress goes to standard error, and the answer to standard output. Data that is piped in becomes a file
in the workspace.

Examples:

    cove ask -f sales.csv "Which region grew fastest? Plot it."
    cat prices.csv | cove ask "Which month was the most expensive?"
    cove ask --quiet -f report.xlsx "Total of column C" > total.txt
    cove ask --continue "And by month?"
    cove ask --server http://127.0.0.1:8700 -f sales.csv "Which region grew fastest?"
    cove ask --session lab -f sales.csv "Clean it up" && cove ask --session lab "Now plot it by month"

Exit code: 0 answered; 1 stopped at a limit before the answer was complete; 130 Ctrl-C;
125 cove or the model service failed, or what was made could not be saved.`
}

func (c *askCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	goOnWith, words, err := c.question()
	if err != nil {
		return 0, err
	}
	if words, err = c.filesAmongWords(p, words); err != nil {
		return 0, err
	}
	prompt := strings.TrimSpace(strings.Join(words, " "))
	if prompt == "" {
		return 0, problem.New(problem.Usage, "there is no question").WithHint(`ask one, for example: cove ask -f sales.csv "Which region grew fastest?"`)
	}
	i := p.interruptible(ctx)
	defer i.stop()
	code, err := c.answer(i, &talking{p: p, cfg: cfg, talkFlags: c.talkFlags, goOnWith: goOnWith, command: "cove ask"}, prompt)
	if signalled := i.exitCode(); signalled != 0 && !unsaved(err) {
		return signalled, nil
	}
	return code, err
}

func (c *askCmd) answer(i *interruption, t *talking, prompt string) (code int, err error) {
	p := t.p
	inputs, out, err := p.prepare(i.soft, c.fileFlags, c.networkFlags)
	if err != nil {
		return 0, err
	}
	if err := t.reach(i.soft); err != nil {
		return 0, err
	}
	if isPiped(p.In) {
		piped, remove, err := spool(i.soft, p.In, workspaceLimit())
		if err != nil {
			return 0, err
		}
		defer remove()
		inputs = append(inputs, unique(piped, inputs)...)
	}
	v := &askView{p: p, out: out, json: c.JSON, quiet: c.Quiet, plotly: p.plotly(t.cfg), narrator: newNarrator(p, p.Err, p.signs(c.Quiet || c.JSON)), images: c.pictures(p, p.Err)}
	defer v.narrator.live.Over()
	return t.talk(i, inputs, out, func(with talker) (int, error) {
		if t.mayAsk() {
			e, err := newEditor(p, "", nil)
			if err != nil {
				return 0, err
			}
			defer func() { _ = e.Close() }()
			v.narrator.asks = true
			with.Decides((&decider{p: p, typist: &typist{editor: e}, view: v.narrator}).decide)
		}
		return v.ask(i, with, prompt)
	})
}

// ask shows one turn and returns the exit code.
func (v *askView) ask(i *interruption, t talker, prompt string) (int, error) {
	defer t.Guard(i.hard)()
	ctx, stop := context.WithCancel(i.soft)
	defer stop()
	v.first = firstAwaited(t)
	begun := time.Now()
	over := v.watchCode(i, t)
	asked := v.follow(t.Ask(ctx, prompt), stop)
	over()
	code, err := v.finish(i, t, asked)
	if asked == nil {
		v.tellSpent(i.soft, t, time.Since(begun))
	}
	t.Done()
	return code, err
}

// watchCode has it said of code of the question's that it goes on after it was interrupted, where it runs in this process, until over is called.
func (v *askView) watchCode(i *interruption, t talker) (over func()) {
	if _, here := t.(*localTalker); !here {
		return func() {}
	}
	v.code, over = i.watchCode(v.p.Err)
	return over
}

// tellSpent says on a terminal what an answer took.
func (v *askView) tellSpent(ctx context.Context, t talker, took time.Duration) {
	if v.narrator.live == nil {
		return
	}
	u, c := t.Spent(ctx)
	v.narrator.note(spentText(u, c, took))
}

// spentText is what was used up: tokens where the provider says them, money where there are prices, time.
func spentText(u model.Usage, c model.Cost, took time.Duration) string {
	var parts []string
	if u.InputTokens+u.OutputTokens > 0 {
		text := fmt.Sprintf("%s tokens in, %s out", grouped(u.InputTokens), grouped(u.OutputTokens))
		if u.Estimated {
			text = fmt.Sprintf("about %s tokens in, %s out", grouped(u.InputTokens), grouped(u.OutputTokens))
		}
		parts = append(parts, text)
	}
	if c.Currency != "" {
		parts = append(parts, fmt.Sprintf("%s %.4f", oneLine(c.Currency), c.Amount))
	}
	return strings.Join(append(parts, seconds(took.Seconds())), ", ")
}

// grouped is a number with commas between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// firstAwaited is what is awaited when a question was asked.
func firstAwaited(t talker) string {
	if _, remote := t.(*remoteTalker); remote {
		return "waiting for the server" // where questions may queue
	}
	return ""
}

// unique gives piped data a name that no file of the user's has.
func unique(piped, inputs []input) []input {
	taken := map[string]bool{}
	for _, in := range inputs {
		taken[in.name] = true
	}
	for k := range piped {
		for taken[piped[k].name] {
			piped[k].name = "piped-" + piped[k].name
		}
	}
	return piped
}

// TurnLimits are the settings' bounds of one turn.
func TurnLimits(c config.Config) loop.Limits {
	l := loop.DefaultLimits()
	l.Steps, l.Tokens, l.Time, l.Execution, l.NoInstall = c.Turn.MaxSteps, c.Turn.MaxTokens, time.Duration(c.Turn.MaxTime), time.Duration(c.Sandbox.Timeout), !c.Packages.Install
	return l
}

// askView shows one question being answered.
type askView struct {
	p           *Program
	out         *outFolder
	json, quiet bool
	plotly      func() string
	narrator    *narrator
	images      terminal.Protocol
	first       string // what is awaited at first; "": the model
	pace        pace
	code        *runningCode // nil: it runs elsewhere

	order    []string
	files    map[string]kernel.File
	answer   *loop.Answer
	reported int // files of out that were told of

	unread error // why nothing more is shown
}

// follow shows the events until the answer, or returns why there is none. When they cannot be shown any more it calls stop, and still takes note
// of what is to be saved.
func (v *askView) follow(events iter.Seq2[loop.Event, error], stop func()) error {
	v.narrator.live.Await(lang.Text(cmp.Or(v.first, "waiting for the model")))
	for e, err := range events {
		if err != nil {
			return cmp.Or(v.unread, err)
		}
		if err := v.event(e); err != nil {
			v.unread = fmt.Errorf("write what happens: %w", err)
			stop()
		}
	}
	return v.unread
}

func (v *askView) event(e loop.Event) error {
	v.code.event(e)
	if a, ok := e.(loop.Answer); ok {
		v.answer = &a // written last, after what was saved
		return nil
	}
	o, output := e.(loop.Output)
	if output {
		if f, ok := o.Event.(kernel.File); ok {
			v.note(f)
		}
	}
	if v.unread != nil {
		return nil
	}
	if v.json {
		if output && !v.pace.passes(o.Event) {
			return nil
		}
		if err := (lines{v.p.Out}).turnEvent(e); err != nil {
			return err
		}
	} else if !v.quiet {
		v.narrator.event(e)
	}
	if output {
		return v.collect(o.Event)
	}
	return nil
}

// note remembers a file for the end.
func (v *askView) note(f kernel.File) {
	if v.files == nil {
		v.files = map[string]kernel.File{}
	}
	if _, known := v.files[f.Path]; !known {
		v.order = append(v.order, f.Path)
	}
	v.files[f.Path] = f
}

// collect keeps the figures.
func (v *askView) collect(e kernel.Event) error {
	switch e := e.(type) {
	case kernel.Display:
		return v.figure(shown{e.Data, e.Metadata, e.ID, e.Update})
	case kernel.Result:
		return v.figure(shown{data: e.Data, metadata: e.Metadata})
	}
	return nil
}

func (v *askView) figure(d shown) error {
	s, ok := v.out.figure(d, v.plotly)
	switch {
	case ok && (v.quiet || v.json && s.Path == ""):
	case ok && s.Path == "":
		v.narrator.picture(drawing(v.p.Err, v.images, d))
	case ok && v.json:
		v.reported = len(v.out.saved)
		return lines{v.p.Out}.saved(s)
	case ok && !v.quiet:
		v.narrator.picture(drawing(v.p.Err, v.images, d))
		v.narrator.note("figure: " + s.Path)
	}
	return nil
}

// finish saves the files, writes the answer and returns the exit code. asked is why there is no answer.
func (v *askView) finish(i *interruption, from fetcher, asked error) (int, error) {
	var files []kernel.File
	for _, path := range v.order {
		files = append(files, v.files[path])
	}
	v.out.files(i.hard, from, files)
	if errors.Is(asked, syscall.EPIPE) {
		v.p.alsoFailed(v.out.failure(), false)
		return exitBrokenPipe, nil
	}
	if v.unread != nil {
		v.p.alsoFailed(v.out.failure(), false)
		return 0, asked
	}
	if v.json {
		for _, s := range v.out.saved[v.reported:] {
			if err := (lines{v.p.Out}).saved(s); err != nil {
				return 0, err
			}
		}
	} else if !v.quiet {
		v.narrator.finish()
	}
	if asked == nil && v.answer == nil {
		asked = problem.New(problem.NoAnswer, "the question ended without an answer")
	}
	if asked == nil {
		asked = v.write(*v.answer)
	}
	if v.json {
		v.out.saved = nil // said already
	}
	if !v.quiet {
		v.out.list(v.p.Err)
	}
	lost := v.out.failure()
	if asked == nil && v.answer.Reason == loop.Complete {
		return 0, lost
	}
	v.p.alsoFailed(lost, v.json && asked == nil)
	return exitUncaught, asked
}

func (v *askView) write(a loop.Answer) error {
	if v.json {
		return lines{v.p.Out}.turnEvent(a)
	}
	if !v.quiet && sameFile(v.p.Out, v.p.Err) && v.narrator.hasSaid(a.Text) {
		return nil
	}
	text := a.Text
	if _, tty := terminal.Descriptor(v.p.Out); tty {
		var e escapes
		text = e.clean([]byte(text))
		if v.p.lays(v.p.Out) {
			text = strings.Join(terminal.Markdown(stripColours(text), v.p.markdown(v.p.Out)), "\n")
		}
	}
	_, err := io.WriteString(v.p.Out, strings.TrimRight(text, "\n")+"\n")
	return err
}
