package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cove/internal/config"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/sandbox"
)

// maxCode bounds a program's text.
const maxCode = 16 << 20

type runCmd struct {
	ownSignals
	Program string   `arg:"" optional:"" name:"file" help:"The program, run as python FILE does; - reads a cell from standard input."`
	Code    string   `short:"c" placeholder:"CODE" help:"Run this text as a notebook cell: the last expression is shown."`
	Args    []string `kong:"-"`
	codeFlags
	serverFlags
	Env     []string `short:"e" sep:"none" placeholder:"NAME=VALUE" help:"Set a variable of the code's environment; in a session it stays set. Repeatable; NAME alone takes the value that it has here. What the code must not see is for --credential."`
	Restart bool     `help:"Begin a new interpreter in the session first: variables and imports are lost, files are kept."`
	JSON    bool     `name:"json" help:"Print one event per line as JSON (docs/events.md)."`
}

// Help is the long help.
func (runCmd) Help() string {
	return `Standard output and standard error of the program pass through unchanged. Every file that the code creates or
changes, and every figure as figure-N.png, is put into the out folder.

Packages that the code imports and that are missing are installed before it runs; see cove packages --help.

On a server (--server) the program runs in a session that is made for it and deleted afterwards, or in the one that --session names. There input()
has no answer.

Examples:

    cove run -c 'import cowsay; cowsay.cow("moo")'
    cove run analysis.py -f data.csv -o out -- --year 2025
    echo 'sum(range(10))' | cove run -
    cove run --session lab -c 'x = [1, 2, 3]' && cove run --session lab -c 'sum(x)'
    cove run --server https://cove.example.com analysis.py -f data.csv
    cove run --tools git -c 'import tools; tools.git_git_log(repo_path="/srv/repo")'
    cove run -e YEAR=2025 --allow-net api.example.com --credential api.example.com=MY_TOKEN report.py

Exit code: the program's own; 1 uncaught exception; 124 timeout; 137 out of memory; 130 Ctrl-C;
125 cove itself failed, could not run the code, or could not save what it made.`
}

func workspaceLimit() int64 { return sandbox.DefaultLimits().Workspace }

// request reads the program that is to be run.
func (c *runCmd) request(ctx context.Context, p *Program) (kernel.Request, error) {
	req := kernel.Request{Mode: kernel.Cell, Code: c.Code, Args: c.Args}
	var err error
	if req.Environment, err = environment(c.Env, p.Getenv); err != nil {
		return req, err
	}
	switch {
	case c.Code != "" && c.Program != "":
		return req, problem.New(problem.Usage, "give a file or -c, not both").WithHint("what is meant for the program comes after --")
	case c.Code != "":
		return req, nil
	case c.Program == "":
		return req, problem.New(problem.Usage, "there is nothing to run").WithHint("give a file, - for standard input, or -c CODE; see `cove run --help`")
	case c.Program == "-":
		var text string
		err := await(ctx, func() (err error) {
			text, err = readBounded(p.In, "standard input")
			return err
		})
		if err == nil {
			req.Code = text
		}
		return req, err
	}
	files, _, err := collectOne(c.Program)
	if err != nil {
		return req, err
	}
	if len(files) != 1 || files[0].host != c.Program {
		return req, problem.New(problem.Usage, c.Program+" is a folder; cove run takes one program").WithHint("put the folder into the workspace with -f")
	}
	f, err := os.Open(c.Program)
	if err != nil {
		return req, unreadable(c.Program, err)
	}
	defer f.Close()
	req.Mode, req.Filename = kernel.Script, filepath.Base(c.Program)
	req.Code, err = readBounded(f, c.Program)
	return req, err
}

func readBounded(r io.Reader, name string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxCode+1))
	if err != nil {
		return "", problem.New(problem.InputUnreadable, name+" cannot be read").WithCause(err)
	}
	if len(text) > maxCode {
		return "", problem.New(problem.CodeTooBig, name+" is longer than "+config.Size(maxCode).String()+", the most that cove runs as one program")
	}
	return string(text), nil
}

func (c *runCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.config(p)
	if err != nil {
		return 0, err
	}
	c.install(&cfg)
	if err := c.check(cfg); err != nil {
		return 0, err
	}
	if c.Restart && c.Session == "" {
		return 0, problem.New(problem.Usage, "--restart needs a session with a name").WithHint("add --session NAME; without one, the interpreter is new anyway")
	}
	i := p.interruptible(ctx)
	defer i.stop()
	base, key, err := c.remote(cfg)
	if err != nil {
		return 0, err
	}
	run := func() (int, error) { return c.execute(i, p, cfg) }
	if base != "" {
		run = func() (int, error) { return c.remotely(i, p, base, key) }
	}
	code, err := run()
	if signalled := i.exitCode(); signalled != 0 && err != nil && !unsaved(err) {
		return signalled, nil
	}
	return code, err
}

func (c *runCmd) execute(i *interruption, p *Program, cfg config.Config) (code int, err error) {
	req, err := c.request(i.soft, p)
	if err != nil {
		return 0, err
	}
	inputs, out, err := p.prepare(c.fileFlags)
	if err != nil {
		return 0, err
	}
	tools, end, err := c.offer(i.soft, p, cfg)
	if err != nil {
		return 0, err
	}
	defer end()
	req.Tools = tools
	o := opening{cfg: cfg, flags: c.sandboxFlags, network: c.networkFlags, session: c.sessionFlags, command: "cove run"}
	if c.Session != "" {
		o.hub = p.openHub(i.soft, cfg, o.command, nil)
		defer o.hub.close()
	}
	s, err := p.open(i.soft, o, withProgram(inputs, c.Program, req), out)
	if err != nil {
		return 0, err
	}
	defer s.settle(i.hard, &code, &err)
	defer s.killed(i.hard)()

	ask := newAsker(p, c.Program == "-", c.JSON)
	req.Timeout, req.OutputLimit, req.Input = time.Duration(cfg.Sandbox.Timeout), int64(cfg.Sandbox.MaxOutput), ask.input
	req.Restart = c.Restart
	v := &runView{p: p, out: out, json: c.JSON, quiet: c.Quiet, plotly: p.plotly(cfg), live: p.newLiveLine()}
	if err := v.execute(i, s, req); err != nil {
		return 0, err
	}
	return v.finish(i, s)
}

// withProgram puts the program beside its files, as it is when python runs it, unless -f brought one of that name.
func withProgram(inputs []input, program string, req kernel.Request) []input {
	if req.Mode != kernel.Script {
		return inputs
	}
	for _, in := range inputs {
		if in.name == req.Filename {
			return inputs
		}
	}
	files, _, err := collectOne(program)
	if err != nil {
		return inputs // it was read a moment ago; the program itself can run without its file
	}
	return append(inputs, files...)
}

// runView shows one execution the way python would show it.
type runView struct {
	p           *Program
	out         *outFolder
	json, quiet bool
	plotly      func() string
	live        *liveLine
	pace        pace

	files  []kernel.File
	last   kernel.Error
	done   kernel.Done
	ended  bool
	broken bool  // standard output is closed, or
	failed error // cannot be written
	told   told
	column bool // the code's output ended within a line
}

func (v *runView) execute(i *interruption, s runner, req kernel.Request) error {
	ctx, stop := context.WithCancel(i.soft)
	defer stop()
	defer v.live.clear()
	if !v.json {
		req.Columns = columns(v.p.Out)
	}
	for e, err := range s.Execute(ctx, req) {
		if err != nil {
			return err
		}
		if err := v.event(e); err != nil {
			v.unread(err)
			stop() // nobody reads any more; but what was made until now is saved
		}
	}
	return nil
}

// unread notes why nothing more is shown.
func (v *runView) unread(err error) {
	v.broken = true
	if !errors.Is(err, syscall.EPIPE) {
		v.failed = fmt.Errorf("write the output: %w", err)
	}
}

func (v *runView) event(e kernel.Event) error {
	switch e := e.(type) {
	case kernel.File:
		v.files = append(v.files, e)
	case kernel.Error:
		v.last = e
	case kernel.Done:
		v.done, v.ended = e, true
		return nil // written last, after what was saved
	}
	if v.broken {
		return nil
	}
	if v.json && v.pace.passes(e) {
		if err := (lines{v.p.Out}).event(e); err != nil {
			return err
		}
	}
	return v.show(e)
}

func (v *runView) show(e kernel.Event) error {
	if e, ok := e.(kernel.Install); ok {
		v.install(e)
		return nil
	}
	v.live.clear()
	var err error
	switch e := e.(type) {
	case kernel.Rollback:
		if !v.json {
			_, err = fmt.Fprintln(v.p.Err, "cove: "+e.String())
		}
	case kernel.Stream:
		v.column = !bytes.HasSuffix(e.Data, []byte("\n"))
		to := v.p.Out
		if e.Name == "stderr" {
			to = v.p.Err
		}
		if !v.json {
			_, err = to.Write(e.Data)
		}
	case kernel.Display:
		return v.bundle(e.Data, e.ID, e.Update)
	case kernel.Result:
		return v.bundle(e.Data, "", false)
	case kernel.Error:
		if !v.json {
			err = writeTraceback(v.p.Err, e)
		}
	}
	return err
}

// install tells of packages on standard error, where they are told apart from what the code says.
func (v *runView) install(e kernel.Install) {
	if v.json {
		return
	}
	if e.Progress != nil {
		if !v.quiet && !v.column {
			v.live.set(progressText(*e.Progress))
		}
		return
	}
	v.live.clear()
	t := taleOf(e)
	if v.column && v.live != nil {
		fmt.Fprintln(v.p.Err)
		v.column = false
	}
	if t.installed != "" && !v.quiet {
		fmt.Fprintln(v.p.Err, t.installed)
	}
	if !v.quiet {
		for _, note := range t.notes {
			fmt.Fprintln(v.p.Err, "cove: "+note)
		}
	}
	for _, trouble := range v.told.news(t.troubles) {
		fmt.Fprintln(v.p.Err, "cove: "+trouble)
	}
}

func writeTraceback(w io.Writer, e kernel.Error) error {
	for _, line := range e.Traceback {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(e.Traceback) == 0 {
		if _, err := fmt.Fprintf(w, "%s: %s\n", e.Name, e.Value); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, hintLine(e))
	return err
}

// hintLine is the line below a traceback that helps to mend the error, or "".
func hintLine(e kernel.Error) string {
	if e.Hint == "" {
		return ""
	}
	return "Hint: " + e.Hint + "\n"
}

func (v *runView) bundle(data kernel.Bundle, id string, update bool) error {
	s, ok := v.out.figure(data, id, update, v.plotly)
	switch {
	case ok && v.json:
		return lines{v.p.Out}.saved(s)
	case ok || v.json:
		return nil
	}
	if text := plainText(data); text != "" {
		_, err := fmt.Fprintln(v.p.Out, text)
		return err
	}
	return nil
}

// finish saves the files, says what happened and returns the exit code.
func (v *runView) finish(i *interruption, s fetcher) (int, error) {
	if !v.ended {
		return 0, problem.New(problem.NoOutcome, "the execution ended without an outcome")
	}
	figures := len(v.out.saved)
	if v.done.Lost != kernel.LostSession {
		v.out.files(i.hard, s, v.files)
	}
	if v.json && !v.broken {
		for _, s := range v.out.saved[figures:] {
			if err := (lines{v.p.Out}).saved(s); err != nil {
				return 0, err
			}
		}
		if err := (lines{v.p.Out}).event(v.done); err != nil {
			return 0, err
		}
	}
	if v.json {
		v.out.saved = nil // said already
	}
	if !v.quiet {
		v.out.list(v.p.Err)
		if v.done.Dropped > 0 {
			fmt.Fprintf(v.p.Err, "cove: %s of output were left out; --max-output allows more\n", humanSize(v.done.Dropped))
		}
	}
	v.explain()
	code, lost := v.exitCode(i), v.out.failure()
	switch {
	case v.failed != nil:
		return 0, errors.Join(v.failed, lost)
	case v.broken:
		code = exitBrokenPipe
	case code == 0:
		return 0, lost
	}
	v.p.alsoFailed(lost, v.json && !v.broken)
	return code, nil
}

// alsoFailed tells of a failure where the exit code says something else.
func (p *Program) alsoFailed(err error, json bool) {
	if err == nil {
		return
	}
	p.report(err)
	if json {
		_ = lines{p.Out}.failure(err)
	}
}

// explain says how the code ended when Python itself did not.
func (v *runView) explain() {
	if v.done.Outcome == kernel.OutcomeInterrupted || v.broken || v.exited() {
		return
	}
	if v.done.Outcome != kernel.OutcomeOK && v.done.Message != "" {
		fmt.Fprintln(v.p.Err, "cove: "+oneLine(v.done.Message))
	}
	if v.done.Outcome == kernel.OutcomeRestart {
		fmt.Fprintln(v.p.Err, "  to go on, add --restart: variables and imports are lost then, files are kept")
	}
}

// exited says that the code left the interpreter on its own, with os._exit: what python would say nothing about.
func (v *runView) exited() bool { return v.done.Outcome == kernel.OutcomeDied && v.done.Signal == "" }

func (v *runView) exitCode(i *interruption) int {
	switch v.done.Outcome {
	case kernel.OutcomeOK:
		return v.done.ExitCode & 0xff
	case kernel.OutcomeError:
		if v.last.Name == "MemoryError" {
			return exitMemory
		}
		if code := v.done.ExitCode & 0xff; code != 0 || v.last.Name == "" {
			return code
		}
		return exitUncaught
	case kernel.OutcomeTimeout:
		return exitTimeout
	case kernel.OutcomeInterrupted:
		return cmp.Or(i.exitCode(), exitInterrupted)
	case kernel.OutcomeMemory:
		return exitMemory
	case kernel.OutcomeDied:
		if n := signalNumber(v.done.Signal); n != 0 {
			return 128 + n
		}
		return v.done.ExitCode & 0xff
	default:
		return exitFailure
	}
}
