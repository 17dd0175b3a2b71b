// Package benchcmd is the command cove-bench, which measures cove beside its peers. It is a program of its own, beside cove: who uses cove does
// not measure it, and what measures is not in the program that faces users. What is measured, and how, is package bench's.
package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/tools/bench"
)

// The exit codes, which are those of cove.
const (
	exitCoveFailed  = 1
	exitFailure     = 125
	exitInterrupted = 130
	exitBrokenPipe  = 141
)

// closeTimeout bounds how long cove's own side may take to go; what stays is swept by the next command.
const closeTimeout = 10 * time.Second

// Program is what the command works with.
type Program struct {
	Out, Err io.Writer
	Version  string

	Config    config.Config
	ConfigErr error // what Load said

	// Signals delivers interrupts and requests to end; nil means that none ever come.
	Signals <-chan os.Signal
	// Self is the path of the running program; the cove beside it is the one that is measured as a process of its own.
	Self string
	// Prepare prepares cove's own side. Progress is said to progress, which may be io.Discard.
	Prepare func(ctx context.Context, c config.Config, progress io.Writer) (*Side, error)
}

type grammar struct {
	Rows         []string `sep:"," placeholder:"ID" help:"Measure only these rows: first, pool, roundtrip, output, process, terminal, port, network, serve, events, followers, create, create-many, sandbox, loop, pause, fork, install, memory, crowd, density."`
	Peers        []string `sep:"," placeholder:"ID" help:"Measure cove beside these only: cove-run, python3, bubblewrap, docker, docker-exec, docker-kept, gateway, gateway-prespawn, jupyter-terminals, uv-target, pip-target, relay, client-loop; none for cove alone."`
	Rounds       int      `default:"0" placeholder:"N" help:"Samples of each subject in the rows that take several; 0 means each row's own number."`
	Quick        bool     `help:"Take few samples: about six minutes instead of about thirty."`
	InstallPeers bool     `help:"As root, install docker.io, debootstrap and bubblewrap with apt-get where they are missing."`
	Cove         string   `placeholder:"PATH" help:"The cove program to measure: as a server, and as a command of its own (default: the one beside cove-bench, else the one on the PATH)."`
	JSON         bool     `name:"json" help:"Print one JSON document, with every sample."`
	Check        bool     `help:"Fail when a figure of cove's is more than it may be beside its peer's: what is compared, and how much it may be, is printed at the end."`
	Quiet        bool     `short:"q" help:"Say nothing while it runs."`
}

const description = `Measures cove and its peers on this machine in one run, in rounds that take turns, after a round that does not count.
The rows serve, events, followers, create and create-many are about servers: cove serve on a free port, and the Jupyter kernel gateway.
The row loop is about tasks in which a model calls a tool; its model is a script in this process, so it measures time and tokens, not models.

Leave the machine alone meanwhile. Ctrl-C prints what there is so far. Everything that was started is gone afterwards; a
virtual environment for the Jupyter kernel gateway and a root file system for docker stay in the data folder, below bench.

A peer that cannot be measured here is named with the reason and with what to install.

Exit code: 0, also when a peer failed; 1 when cove itself gave a wrong answer or none, or with --check a figure that is too high; 130 after Ctrl-C.`

// Main runs the command line args (without the program's name) and returns the exit code.
func Main(ctx context.Context, args []string, p *Program) int {
	code, err := p.main(ctx, args)
	if err == nil {
		return code
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitBrokenPipe
	}
	p.report(err)
	if problem.Is(err, problem.Canceled) {
		return exitInterrupted
	}
	return exitFailure
}

// report tells the person what went wrong and what to do; joined errors one by one.
func (p *Program) report(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			p.report(one)
		}
		return
	}
	told := problem.Of(err)
	fmt.Fprintln(p.Err, "cove-bench: "+strings.TrimSpace(told.Error()))
	if told.Hint != "" {
		fmt.Fprintln(p.Err, "  "+strings.ReplaceAll(told.Hint, "\n", "\n  "))
	}
}

func (p *Program) main(ctx context.Context, args []string) (int, error) {
	var g grammar
	exited, code := false, 0
	parser, err := kong.New(&g,
		kong.Name("cove-bench"), kong.Description(description), kong.Writers(p.Out, p.Err),
		kong.Exit(func(c int) { exited, code = true, c }),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}),
	)
	if err != nil {
		return 0, fmt.Errorf("build the command line: %w", err)
	}
	_, err = parser.Parse(args)
	switch {
	case exited:
		return code, nil
	case err != nil:
		return 0, problem.New(problem.Usage, err.Error()).WithHint("see `cove-bench --help`")
	case p.ConfigErr != nil:
		return 0, p.ConfigErr
	}
	return p.run(ctx, g)
}

func (p *Program) run(ctx context.Context, g grammar) (code int, err error) {
	soft, signalled, stop := p.interruptible(ctx)
	defer stop()
	progress := p.Err
	if g.Quiet {
		progress = io.Discard
	}
	command, err := p.cove(g.Cove)
	if err != nil {
		return 0, err
	}
	side, err := p.Prepare(soft, p.Config, progress)
	if err != nil {
		return 0, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, side.Close(ctx))
	}()
	report, err := bench.Run(soft, p.options(g, side, command, progress))
	if report == nil {
		return 0, err
	}
	show := report.Text
	if g.JSON {
		show = report.JSON
	}
	if err := errors.Join(err, show(p.Out)); err != nil {
		return 0, err
	}
	if code := signalled(); code != 0 {
		return code, nil
	}
	if report.CoveFailed() || g.Check && !report.Check(p.Err) {
		return exitCoveFailed, nil
	}
	return 0, nil
}

func (p *Program) options(g grammar, side *Side, command string, progress io.Writer) bench.Options {
	o := bench.Options{
		Data: p.Config.Folders.Data, Env: side.Env, Cove: side.Cove, Command: command, Version: p.Version,
		Rows: g.Rows, Rounds: g.Rounds, Quick: g.Quick, Install: g.InstallPeers, Progress: progress,
	}
	for _, peer := range g.Peers {
		if peer != "none" {
			o.Subjects = append(o.Subjects, peer)
		}
	}
	if len(g.Peers) > 0 {
		o.Subjects = append(o.Subjects, "cove", "cove-serve", "cove-loop", "cove-code", "cove-host")
	}
	return o
}

// cove is the path of the cove program.
func (p *Program) cove(wanted string) (string, error) {
	candidates := []string{wanted}
	if wanted == "" {
		candidates = []string{filepath.Join(filepath.Dir(p.Self), "cove"), "cove"}
	}
	for _, candidate := range candidates {
		path, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err == nil { // peers run in folders of their own
			return path, nil
		}
	}
	what := "no cove program is beside cove-bench or on the PATH"
	if wanted != "" {
		what = wanted + " is no program"
	}
	return "", problem.New(bench.CodeNoCove, what).
		WithHint("`make bench` builds both; or name one that is built: cove-bench --cove bin/cove")
}

// interruptible returns a context that ends with the first signal, and the exit code that the signal asks for, 0 before one came. Stop must be
// called in the end.
func (p *Program) interruptible(ctx context.Context) (soft context.Context, signalled func() int, stop func()) {
	soft, interrupt := context.WithCancel(ctx)
	var code atomic.Int32
	over, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		for {
			select {
			case <-over:
				return
			case s := <-p.Signals:
				wanted := int32(exitInterrupted)
				if n, ok := s.(syscall.Signal); ok && s != os.Interrupt {
					wanted = 128 + int32(n)
				}
				code.CompareAndSwap(0, wanted)
				interrupt()
			}
		}
	}()
	return soft, func() int { return int(code.Load()) }, func() { close(over); <-joined; interrupt() }
}
