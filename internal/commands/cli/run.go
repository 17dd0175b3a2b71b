package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
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
	All     bool `help:"Run the cells of a notebook that follow one that fails, too."`
	Inplace bool `name:"inplace" help:"Write what came of a notebook into the notebook itself."`
	Restart bool `help:"Begin a new interpreter in the session first: variables and imports are lost, files are kept."`
	JSON    bool `name:"json" help:"Print one event per line as JSON (docs/events.md)."`

	cells  *notebook.Program // of a notebook
	target string            // where it is written with what came of it; "": into the out folder
}

// Help is the long help.
func (runCmd) Help() string {
	return `Standard output and standard error of the program pass through unchanged. The cells of a notebook (.ipynb) are run in their order up to the first that
fails (--all: to the last), and the notebook is put into the out folder with what came of them, into the file that -o FILE.ipynb names, or with --inplace
into itself. Every file that the code creates or
changes, and every figure as figure-N.png, is put into the out folder.

Packages that the code imports and that are missing are installed before it runs; see cove packages --help.

On a server (--server) the program runs in a session that is made for it and deleted afterwards, or in the one that --session names. input()
and getpass() ask here.

Examples:

    cove run -c 'import cowsay; cowsay.cow("moo")'
    cove run analysis.py -f data.csv -o out -- --year 2025
    cove run analysis.ipynb -f data.csv -o done.ipynb
    echo 'sum(range(10))' | cove run -
    cove run --session lab -c 'x = [1, 2, 3]' && cove run --session lab -c 'sum(x)'
    cove run --server https://cove.example.com analysis.py -f data.csv
    cove run --tools git -c 'import tools; tools.git_git_log(repo_path="/srv/repo")'
    cove run -e YEAR=2025 --allow-net api.example.com --credential api.example.com=MY_TOKEN report.py

Exit code: the program's own; 1 uncaught exception; 124 timeout; 137 out of memory; 130 Ctrl-C;
125 cove itself failed, could not run the code, or could not save what it made.`
}

func workspaceLimit() int64 { return sandbox.DefaultLimits().Workspace }

// endingsOfData are those of files that people pass in place of a program.
var endingsOfData = []string{".csv", ".tsv", ".xlsx", ".xls", ".parquet", ".json", ".jsonl", ".pdf", ".png", ".jpg", ".zip"}

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
			req.Code, err = programText("standard input", []byte(text))
		}
		return req, err
	}
	if isNotebook(c.Program) {
		if len(c.Args) > 0 {
			return req, problem.New(problem.Usage, "a notebook takes no arguments").WithHint("set variables of its environment with --env NAME=VALUE")
		}
		if c.cells, err = readNotebook(c.Program); err == nil {
			err = c.aim(p.Config.Folders.Out)
		}
		req.Args = argumentsOfNotebooks
		return req, err
	}
	if c.All || c.Inplace {
		return req, problem.New(problem.Usage, "--all and --inplace are for notebooks").WithHint("give a file that ends in .ipynb")
	}
	if slices.Contains(endingsOfData, strings.ToLower(filepath.Ext(c.Program))) {
		return req, problem.New(problem.Usage, oneLine(c.Program)+" is data, not a program").WithHint("pass it to the code with -f, as in: cove run -f " + quoted(c.Program) + " -c CODE")
	}
	files, _, err := collectOne(c.Program)
	if err != nil && strings.ContainsAny(c.Program, "( =\n") && problem.Has(err, problem.InputUnreadable) {
		err = problem.Of(err).WithHint("give code with -c")
	}
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
	text, err := readBounded(f, c.Program)
	if err == nil {
		req.Code, err = programText(c.Program, []byte(text))
	}
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
	inputs, out, err := p.prepare(i.soft, c.fileFlags, c.networkFlags)
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
		o.hub = p.openHub(i.soft, cfg, nil, RecordsOptions{Command: o.command})
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
	v := &runView{p: p, out: out, json: c.JSON, quiet: c.Quiet, plotly: p.plotly(cfg), live: p.signs(c.Quiet || c.JSON), images: c.pictures(p, p.Out)}
	if err := c.program(i, v, s, req); err != nil {
		return 0, err
	}
	c.tellHidden(v, req, inputs)
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
