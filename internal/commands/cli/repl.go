package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"cove/internal/commands/lineedit"
	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/http/client"
	"cove/internal/python/kernel"
)

type replCmd struct {
	ownSignals
	codeFlags
	serverFlags
}

// Help is the long help.
func (replCmd) Help() string {
	return `Each input runs as a notebook cell: names are kept, the last expression is shown, figures and files go to the out folder at once.
Ctrl-C interrupts what runs, Ctrl-D or exit() leaves. What is imported and is not there is installed first; %pip install NAME does
so by name, and %restart begins a new interpreter. %save FILE.ipynb writes what was run and shown so far as a notebook (also .md and .py).

Examples:

    cove repl -f sales.csv
    cove repl --session lab --undoable
    cove repl --session lab --server https://cove.example.com`
}

func (c *replCmd) run(ctx context.Context, p *Program) (code int, err error) {
	cfg, err := c.config(p)
	if err != nil {
		return 0, err
	}
	c.install(&cfg)
	if err := c.check(cfg); err != nil {
		return 0, err
	}
	base, key, err := c.remote(cfg)
	if err != nil {
		return 0, err
	}
	if base != "" {
		return c.remotely(ctx, p, cfg, base, key)
	}
	start := p.interruptible(ctx)
	inputs, out, err := p.prepare(start.soft, c.fileFlags, c.networkFlags)
	if err != nil {
		start.stop()
		return start.exitCode(), ifUnsignalled(start, err)
	}
	tools, end, err := c.offer(start.soft, p, cfg)
	if err != nil {
		start.stop()
		return 0, err
	}
	defer end()
	s, err := p.open(start.soft, opening{cfg: cfg, flags: c.sandboxFlags, network: c.networkFlags, session: c.sessionFlags, command: "cove repl"}, inputs, out)
	if err == nil {
		err = c.set(start.soft, s, p.Getenv)
	}
	start.stop()
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.discard())
		}
		if code := start.exitCode(); code != 0 {
			return code, nil
		}
		return 0, err
	}
	defer func() {
		end := p.interruptible(ctx)
		defer end.stop()
		s.settle(end.hard, &code, &err)
	}()
	completes, _ := s.Live.(completer)
	version, _ := s.Python()
	r := &repl{p: p, cfg: cfg, session: s, out: s.out, tell: s.tell, killed: s.killed, isComplete: s.IsComplete, quiet: c.Quiet, tools: tools, images: c.pictures(p, p.Out)}
	return r.run(ctx, completes, fmt.Sprintf("Python %s in a %s sandbox; %s", version, cfg.Sandbox.Engine, c.farewell()))
}

// remotely has the inputs run on a server.
func (c *replCmd) remotely(ctx context.Context, p *Program, cfg config.Config, base, key string) (code int, err error) {
	if err := c.checkRemote(p.Config); err != nil {
		return 0, err
	}
	start := p.interruptible(ctx)
	inputs, out, err := p.prepare(start.soft, c.fileFlags, c.networkFlags)
	if err != nil {
		start.stop()
		return start.exitCode(), ifUnsignalled(start, err)
	}
	defer out.close()
	s := &remoteRun{client: client.New(base, key), err: p.Err}
	defer s.client.Close()
	if err = s.begin(start.soft, p, &c.codeFlags); err == nil && c.Session == "" {
		defer s.end()
	}
	if err == nil {
		err = sendInputs(start.soft, s.client, s.session, inputs, p.signs(c.Quiet))
	}
	if err == nil {
		err = c.set(start.soft, s, p.Getenv)
	}
	out.live = p.signs(c.Quiet)
	start.stop()
	if err != nil {
		if code := start.exitCode(); code != 0 {
			return code, nil
		}
		return 0, err
	}
	if c.Timeout == p.Config.Sandbox.Timeout {
		cfg.Sandbox.Timeout = 0 // the server's
	}
	r := &repl{p: p, cfg: cfg, session: s, out: out, tell: func() {}, isComplete: s.IsComplete, quiet: c.Quiet, images: c.pictures(p, p.Out)}
	return r.run(ctx, s, "Python on "+oneLine(base)+"; "+c.farewell())
}

// repl is one conversation with a kernel.
type repl struct {
	p       *Program
	cfg     config.Config
	session runner
	out     *outFolder
	tell    func() // what the session has to say
	// killed is that of a session here; nil: it is on a server.
	killed     func(hard context.Context) (stop func() bool)
	isComplete func(ctx context.Context, kernel, code string) (string, error)
	typist     typist
	tools      *kernel.Tools // of the code, where it runs here
	quiet      bool
	images     terminal.Protocol
	tty        bool

	asking atomic.Bool // code waits for a line

	cells notebookCells
	count int
	left  []kernel.File // that are not in the out folder yet
}

// run reads inputs and has them run, until their end.
func (r *repl) run(ctx context.Context, completes completer, greeting string) (code int, err error) {
	e, err := newEditor(r.p, filepath.Join(r.cfg.Folders.Data, "history"), func(o *lineedit.Options) { r.edits(o, completes) })
	if err != nil {
		return 0, err
	}
	defer func() { _ = e.Close() }()
	if !r.quiet {
		fmt.Fprintln(r.p.Err, lang.Text(greeting))
	}
	r.typist = typist{editor: e}
	_, r.tty = terminal.Descriptor(r.p.In)
	code, err = r.loop(ctx)
	if signalled := r.deliver(ctx); code == 0 {
		code = signalled
	}
	lost := r.out.failure()
	if !r.quiet {
		r.out.list(r.p.Err)
	}
	if code == 0 && err == nil {
		return 0, lost
	}
	r.p.alsoFailed(lost, false)
	return code, err
}

// edits says how inputs are edited: with colours, and until they are complete.
func (r *repl) edits(o *lineedit.Options, completes completer) {
	if r.p.colours(o.Out) {
		o.Highlight = looksOf
	}
	o.Continuation, o.Edit = "   ...: ", r.p.elsewhere("input.py")
	o.More = func(ctx context.Context, text string) (string, bool) {
		if r.asking.Load() { // a line for input()
			return "", false
		}
		if r.complete(ctx, text, strings.Split(text, "\n")) {
			return "", false
		}
		return r.indent(text), true
	}
	if completes != nil {
		o.Complete = func(ctx context.Context, text string, cursor int) ([]string, int) {
			return complete(ctx, completes, text, cursor)
		}
	}
}

func (r *repl) loop(ctx context.Context) (int, error) {
	for {
		code, signalled, err := r.p.prompted(ctx, func() (string, error) { return r.read(ctx) })
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil || signalled != 0 {
			return signalled, err
		}
		trimmed := strings.TrimSpace(code)
		if trimmed == "" {
			continue
		}
		if leaves(trimmed) {
			return 0, nil
		}
		if name, asked := notebookName(trimmed); asked {
			r.saveNotebook(name)
			continue
		}
		if code, err := r.execute(ctx, code); err != nil || code != 0 {
			return code, err
		}
	}
}

func leaves(code string) bool {
	switch code {
	case "exit", "quit", "exit()", "quit()", "%exit", "%quit":
		return true
	}
	return false
}

// read returns the next complete input. Ctrl-C drops what was typed so far.
func (r *repl) read(ctx context.Context) (string, error) {
	prompt := fmt.Sprintf("In [%d]: ", r.count+1)
	var typed []string
	for {
		line, err := r.typist.line(prompt, false, ctx.Done())
		if errors.Is(err, lineedit.ErrInterrupt) {
			return "", nil
		}
		if errors.Is(err, io.EOF) && len(typed) > 0 {
			return r.remember(typed) + "\n", nil
		}
		if err != nil {
			return "", err
		}
		typed = append(typed, strings.Split(line, "\n")...)
		if r.complete(ctx, strings.Join(typed, "\n"), typed) {
			return r.remember(typed), nil
		}
		prompt = "   ...: "
	}
}

// remember keeps an input for the arrow keys, as a whole, and returns it.
func (r *repl) remember(typed []string) string {
	code := strings.Join(typed, "\n")
	_ = r.typist.Remember(code) // what cannot be kept is run all the same
	return code
}

func (r *repl) complete(ctx context.Context, code string, typed []string) bool {
	last := typed[len(typed)-1]
	if len(typed) > 2 && strings.TrimSpace(last) == "" && strings.TrimSpace(typed[len(typed)-2]) == "" {
		return true // two empty lines always run what is there
	}
	if strings.HasPrefix(strings.TrimSpace(typed[0]), "%%") { // of a magic for cells nobody knows where it ends but the person
		return len(typed) > 1 && strings.TrimSpace(last) == ""
	}
	if status, err := r.isComplete(ctx, kernel.Main, code); err == nil {
		return status != "incomplete"
	}
	return looksComplete(code, typed)
}

// indent is what the next line of an input begins with: as much as the last line and a level more after a colon.
func (r *repl) indent(text string) string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	indent := last[:len(last)-len(strings.TrimLeft(last, " \t"))]
	trimmed := strings.TrimSpace(last)
	switch word, _, _ := strings.Cut(trimmed, " "); {
	case strings.HasSuffix(trimmed, ":"):
		return indent + "    "
	case trimmed == "pass" || trimmed == "break" || trimmed == "continue" || word == "return" || word == "raise":
		return strings.TrimSuffix(indent, "    ")
	}
	return indent
}

// looksComplete guesses where nobody can be asked: a block ends with an empty line.
func looksComplete(code string, typed []string) bool {
	open := strings.Count(code, "(") + strings.Count(code, "[") + strings.Count(code, "{") -
		strings.Count(code, ")") - strings.Count(code, "]") - strings.Count(code, "}")
	last := typed[len(typed)-1]
	if open > 0 || strings.HasSuffix(last, "\\") || strings.HasSuffix(strings.TrimSpace(last), ":") {
		return false
	}
	return len(typed) == 1 || strings.TrimSpace(last) == ""
}

// execute runs one input and saves what it made. The int is an exit code when the program has to end.
func (r *repl) execute(ctx context.Context, code string) (int, error) {
	r.count++
	v := &runView{p: r.p, out: r.out, quiet: r.quiet, plotly: r.p.plotly(r.cfg), live: r.p.signs(r.quiet), images: r.images, cell: r.cells.next(code)}
	figures := len(r.out.saved)
	signalled, stopped, err := r.cell(ctx, v, code)
	r.tell()
	shown := slices.Clone(r.out.saved[figures:])
	if signalled == 0 {
		signalled = r.deliver(ctx)
	}
	switch {
	case signalled != 0:
		return signalled, nil
	case v.failed != nil:
		return 0, v.failed
	case v.broken:
		return exitBrokenPipe, nil
	case err != nil && !r.tty:
		return 0, err
	case stopped:
		notef(r.p.Err, "stopped; nothing was run")
		return 0, nil
	case err != nil:
		r.p.report(err) // the person sees whether there is something left to do here
		return 0, nil
	}
	if !r.quiet {
		for _, s := range shown {
			lang.Fprintf(r.p.Err, "[figure: %s]\n", s.Path)
		}
	}
	r.out.tellLosses(r.p.Err)
	if v.done.Outcome != kernel.OutcomeOK && v.done.Message != "" {
		fmt.Fprintln(r.p.Err, "cove: "+lang.Text(oneLine(v.done.Message)))
	}
	if v.done.Outcome == kernel.OutcomeRestart {
		fmt.Fprintln(r.p.Err, "  "+lang.Text("to go on, enter %restart and then this again: variables and imports are lost, files are kept"))
	}
	return 0, nil
}

// cell has one input run. signalled is an exit code when the program was asked to end, and stopped says that Ctrl-C came before anything ran.
func (r *repl) cell(ctx context.Context, v *runView, code string) (signalled int, stopped bool, err error) {
	i := r.p.interruptible(ctx)
	defer i.stop()
	if r.killed != nil {
		defer r.killed(i.hard)()
	}
	over := make(chan struct{})
	err = v.execute(i, r.session, kernel.Request{
		Code: code, Timeout: time.Duration(r.cfg.Sandbox.Timeout), OutputLimit: int64(r.cfg.Sandbox.MaxOutput), Tools: r.tools,
		Input: func(prompt string, password bool) (string, error) { return r.input(prompt, password, over) },
	})
	close(over)
	for _, f := range v.files {
		r.left = append(slices.DeleteFunc(r.left, func(old kernel.File) bool { return old.Path == f.Path }), f)
	}
	if v.done.Lost == kernel.LostSession {
		r.left = nil
	}
	if i.leave.Err() != nil && ctx.Err() == nil {
		r.left = r.out.files(i.hard, r.session, r.left)
		return i.exitCode(), false, nil
	}
	return 0, err != nil && i.soft.Err() != nil && problem.Of(err).Kind == problem.Canceled, err
}

// deliver puts what was made into the out folder, at once: the terminal may be closed at any time. Ctrl-C leaves the rest for the next time. The
// int is an exit code when the program was asked to end.
func (r *repl) deliver(ctx context.Context) int {
	if len(r.left) == 0 {
		r.out.release()
		return 0
	}
	i := r.p.interruptible(ctx)
	defer i.stop()
	if r.left = r.out.files(i.soft, r.session, r.left); i.leave.Err() == nil || ctx.Err() != nil {
		return 0
	}
	r.left = r.out.files(i.hard, r.session, r.left)
	return i.exitCode()
}

// input answers input() of the code with the same editor, so that no typed line goes astray.
func (r *repl) input(prompt string, password bool, over <-chan struct{}) (string, error) {
	if _, ok := r.typist.editor.(plainEditor); ok {
		fmt.Fprint(r.p.Out, prompt)
	}
	r.asking.Store(true)
	defer r.asking.Store(false)
	return r.typist.line(oneLine(prompt), password, over)
}
