package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chzyer/readline"

	"cove/internal/config"
	"cove/internal/kernel"
)

type replCmd struct {
	ownSignals
	fileFlags
	sessionFlags
	sandboxFlags
	installFlags
}

// Help is the long help.
func (replCmd) Help() string {
	return `Each input runs as a notebook cell: names are kept, the last expression is shown, figures go to the out folder.
Ctrl-C interrupts what runs, Ctrl-D or exit() leaves. What is imported and is not there is installed first; %pip install NAME does
so by name, and %restart begins a new interpreter.

Examples:

    cove repl -f sales.csv
    cove repl --session lab --undoable`
}

// editor reads lines from a person.
type editor interface {
	SetPrompt(string)
	Readline() (string, error)
	Close() error
}

// plainEditor reads lines from a pipe, without prompts.
type plainEditor struct{ in *bufio.Reader }

func (plainEditor) SetPrompt(string) {}
func (plainEditor) Close() error     { return nil }
func (e plainEditor) Readline() (string, error) {
	line, err := e.in.ReadString('\n')
	if line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
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
	inputs, out, err := p.prepare(c.fileFlags)
	if err != nil {
		return 0, err
	}
	start := p.interruptible(ctx)
	b, err := p.open(start.soft, opening{cfg, c.sandboxFlags, c.sessionFlags, "cove repl"}, inputs, out)
	start.stop()
	if err != nil {
		if code := start.exitCode(); code != 0 {
			return code, nil
		}
		return 0, err
	}
	defer func() {
		end := p.interruptible(ctx)
		defer end.stop()
		b.settle(end.hard, &code, &err)
	}()
	e, err := newEditor(p, cfg, b)
	if err != nil {
		return 0, err
	}
	defer func() { _ = e.Close() }()
	if !c.Quiet {
		version, _ := b.Python()
		fmt.Fprintf(p.Err, "Python %s in a %s sandbox; %s\n", version, cfg.Engine, c.farewell())
	}
	r := &repl{p: p, cfg: cfg, bench: b, editor: e, quiet: c.Quiet}
	return r.loop(ctx)
}

func newEditor(p *Program, cfg config.Config, b *bench) (editor, error) {
	if _, tty := terminal(p.In); !tty {
		return plainEditor{bufio.NewReader(p.In)}, nil
	}
	rc := &readline.Config{HistoryFile: filepath.Join(cfg.Data, "history"), HistorySearchFold: true, HistoryLimit: 5000}
	if s, ok := b.Session.(completer); ok {
		rc.AutoComplete = completion{s}
	}
	if err := os.MkdirAll(cfg.Data, 0o755); err != nil {
		return nil, err
	}
	return newTerminalEditor(rc, readline.NewCancelableStdin(p.In))
}

// terminalEditor edits lines on a terminal.
type terminalEditor struct {
	*readline.Instance
	keys io.Closer
}

func newTerminalEditor(rc *readline.Config, keys io.ReadCloser) (terminalEditor, error) {
	rc.Stdin = keys
	rl, err := readline.NewEx(rc)
	return terminalEditor{rl, keys}, err
}

// Close also ends a wait for a key. The instance waits for its end and does not bring it about.
func (e terminalEditor) Close() error {
	return errors.Join(e.keys.Close(), e.Instance.Close())
}

// completer is what a session may offer beyond running code.
type completer interface {
	Complete(ctx context.Context, code string, cursor int) (matches []string, start, end int, err error)
}

type completion struct{ session completer }

// Do is readline's question for completions: what may follow line[:pos], and how much of it is there already.
func (c completion) Do(line []rune, pos int) ([][]rune, int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	matches, start, _, err := c.session.Complete(ctx, string(line), pos)
	if err != nil || start < 0 || start > pos {
		return nil, 0
	}
	have := string(line[start:pos])
	var out [][]rune
	for _, m := range matches {
		if rest, ok := strings.CutPrefix(m, have); ok && rest != "" {
			out = append(out, []rune(oneLine(rest)))
		}
	}
	return out, utf8.RuneCountInString(have)
}

// repl is one conversation with a kernel.
type repl struct {
	p      *Program
	cfg    config.Config
	bench  *bench
	editor editor
	quiet  bool

	count int
	files map[string]kernel.File
	order []string
}

func (r *repl) loop(ctx context.Context) (int, error) {
	r.files = map[string]kernel.File{}
	for {
		code, signalled, err := r.p.prompted(ctx, func() (string, error) { return r.read(ctx) })
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || signalled != 0 {
			return signalled, err
		}
		trimmed := strings.TrimSpace(code)
		if trimmed == "" {
			continue
		}
		if leaves(trimmed) {
			break
		}
		if code, err := r.execute(ctx, code); err != nil || code != 0 {
			return code, err
		}
	}
	var files []kernel.File
	for _, path := range r.order {
		files = append(files, r.files[path])
	}
	r.bench.out.files(ctx, r.bench, files)
	if !r.quiet {
		r.bench.out.list(r.p.Err)
	}
	return 0, nil
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
	r.editor.SetPrompt(fmt.Sprintf("In [%d]: ", r.count+1))
	var typed []string
	for {
		line, err := r.editor.Readline()
		if errors.Is(err, readline.ErrInterrupt) {
			return "", nil
		}
		if errors.Is(err, io.EOF) && len(typed) > 0 {
			return strings.Join(typed, "\n") + "\n", nil
		}
		if err != nil {
			return "", err
		}
		typed = append(typed, line)
		code := strings.Join(typed, "\n")
		if r.complete(ctx, code, typed) {
			return code, nil
		}
		r.editor.SetPrompt("   ...: ")
	}
}

func (r *repl) complete(ctx context.Context, code string, typed []string) bool {
	last := typed[len(typed)-1]
	if len(typed) > 2 && strings.TrimSpace(last) == "" && strings.TrimSpace(typed[len(typed)-2]) == "" {
		return true // two empty lines always run what is there
	}
	if s, ok := r.bench.Session.(interface {
		IsComplete(ctx context.Context, code string) (string, error)
	}); ok {
		if status, err := s.IsComplete(ctx, code); err == nil {
			return status != "incomplete"
		}
	}
	return looksComplete(code, typed)
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

// execute runs one input. The int is an exit code when the program has to end.
func (r *repl) execute(ctx context.Context, code string) (int, error) {
	i := r.p.interruptible(ctx)
	defer i.stop()
	stop := r.bench.killed(i.hard)
	defer stop()
	r.count++
	before := len(r.bench.out.saved)
	v := &runView{p: r.p, out: r.bench.out, quiet: r.quiet, plotly: r.p.plotly(r.cfg), live: r.p.newLiveLine()}
	req := kernel.Request{Code: code, Timeout: time.Duration(r.cfg.Timeout), OutputLimit: int64(r.cfg.MaxOutput), Input: r.input}
	err := v.execute(i, r.bench, req)
	r.bench.tell()
	if i.hard.Err() != nil && ctx.Err() == nil {
		return i.exitCode(), nil
	}
	if err != nil {
		return 0, err
	}
	if v.broken {
		return exitBrokenPipe, nil
	}
	for _, f := range v.files {
		if _, known := r.files[f.Path]; !known {
			r.order = append(r.order, f.Path)
		}
		r.files[f.Path] = f
	}
	if !r.quiet {
		for _, s := range r.bench.out.saved[before:] {
			fmt.Fprintf(r.p.Err, "[figure: %s]\n", s.Path)
		}
	}
	if v.done.Outcome != kernel.OutcomeOK && v.done.Message != "" {
		fmt.Fprintln(r.p.Err, "cove: "+oneLine(v.done.Message))
	}
	if v.done.Outcome == kernel.OutcomeRestart {
		fmt.Fprintln(r.p.Err, "  to go on, enter %restart and then this again: variables and imports are lost, files are kept")
	}
	return 0, nil
}

// input answers input() of the code with the same editor, so that no typed line goes astray.
func (r *repl) input(prompt string, password bool) (string, error) {
	if rl, ok := r.editor.(terminalEditor); ok && password {
		text, err := rl.ReadPassword(oneLine(prompt))
		return string(text), err
	}
	r.editor.SetPrompt(oneLine(prompt))
	if _, ok := r.editor.(plainEditor); ok {
		fmt.Fprint(r.p.Out, prompt)
	}
	return r.editor.Readline()
}
