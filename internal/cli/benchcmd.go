package cli

import (
	"context"
	"errors"
	"io"

	benchmark "cove/internal/bench"
	"cove/internal/pyenv"
)

// BenchSide is cove's own side of `cove bench`.
type BenchSide struct {
	Cove    benchmark.Cove
	Env     *pyenv.Environment          // the standard environment, for the peers
	Command string                      // path of the cove program
	Close   func(context.Context) error // frees what Cove holds
}

type benchCmd struct {
	ownSignals
	Rows         []string `sep:"," placeholder:"ID" help:"Measure only these rows: first, pool, roundtrip, output, serve, events, create, create-many, pause, fork, install, memory, crowd."`
	Peers        []string `sep:"," placeholder:"ID" help:"Measure cove beside these only: cove-run, python3, bubblewrap, docker, docker-exec, gateway, gateway-prespawn, uv-target, pip-target; none for cove alone."`
	Rounds       int      `default:"0" placeholder:"N" help:"Samples of each subject in the rows that take several; 0 means each row's own number."`
	Quick        bool     `help:"Take few samples: about five minutes instead of about fifteen."`
	InstallPeers bool     `help:"As root, install docker.io, debootstrap and bubblewrap with apt-get where they are missing."`
	JSON         bool     `name:"json" help:"Print one JSON document, with every sample."`
	Quiet        bool     `short:"q" help:"Say nothing while it runs."`
}

// Help is the long help.
func (benchCmd) Help() string {
	return `Measures cove and its peers on this machine in one run, in rounds that take turns, after a round that does not count.
The rows serve, events, create and create-many are about servers: cove serve on a free port, and the Jupyter kernel gateway.

Leave the machine alone meanwhile. Ctrl-C prints what there is so far. Everything that was started is gone afterwards; a
virtual environment for the Jupyter kernel gateway and a root file system for docker stay in the data folder, below bench.

A peer that cannot be measured here is named with the reason and with what to install.

Exit code: 0, also when a peer failed; 1 when cove itself gave a wrong answer or none; 130 after Ctrl-C.`
}

func (c *benchCmd) run(ctx context.Context, p *Program) (code int, err error) {
	if p.ConfigErr != nil {
		return 0, p.ConfigErr
	}
	i := p.interruptible(ctx)
	defer i.stop()
	progress := p.Err
	if c.Quiet {
		progress = io.Discard
	}
	side, err := p.Bench(i.soft, p.Config, progress)
	if err != nil {
		return 0, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, side.Close(ctx))
	}()
	report, err := benchmark.Run(i.soft, c.options(p, side, progress))
	if report == nil {
		return 0, err
	}
	show := report.Text
	if c.JSON {
		show = report.JSON
	}
	if err := errors.Join(err, show(p.Out)); err != nil {
		return 0, err
	}
	if code := i.exitCode(); code != 0 {
		return code, nil
	}
	if report.CoveFailed() {
		return 1, nil
	}
	return 0, nil
}

func (c *benchCmd) options(p *Program, side *BenchSide, progress io.Writer) benchmark.Options {
	o := benchmark.Options{
		Data: p.Config.Data, Env: side.Env, Cove: side.Cove, Command: side.Command, Version: p.Version,
		Rows: c.Rows, Rounds: c.Rounds, Quick: c.Quick, Install: c.InstallPeers, Progress: progress,
	}
	for _, peer := range c.Peers {
		if peer != "none" {
			o.Subjects = append(o.Subjects, peer)
		}
	}
	if len(c.Peers) > 0 {
		o.Subjects = append(o.Subjects, "cove", "cove-serve")
	}
	return o
}
