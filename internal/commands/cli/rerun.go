package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
)

type rerunCmd struct {
	ownSignals
	serverFlags
	ID string `arg:"" optional:"" complete:"conversation" help:"cnv_..., trn_... or exe_..., a number of cove history, or last, which is what is meant without one."`
	fileFlags
	sandboxFlags
	networkFlags
	installFlags
}

// Help is the long help.
func (rerunCmd) Help() string {
	return `The code runs in a new session of this machine, without a model, and its output is shown. What it printed before and prints differently
now is told at the end. Give the files that it reads with -f. With a server (--server), the code comes from the server and runs on this machine.

Examples:

    cove rerun -f sales.csv
    cove rerun 3 -o again

Exit code: 0 everything is as before; 1 something differs.`
}

func (c *rerunCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.config(p)
	if err != nil {
		return 0, err
	}
	c.install(&cfg)
	i := p.interruptible(ctx)
	defer i.stop()
	code, err := c.again(i, p, cfg)
	if signalled := i.exitCode(); signalled != 0 && err != nil {
		return signalled, nil
	}
	return code, err
}

func (c *rerunCmd) again(i *interruption, p *Program, cfg config.Config) (code int, err error) {
	cells, err := c.cells(i.soft, p)
	if err != nil {
		return 0, err
	}
	inputs, out, err := p.prepare(i.soft, c.fileFlags, c.networkFlags)
	if err != nil {
		return 0, err
	}
	s, err := p.open(i.soft, opening{cfg: cfg, flags: c.sandboxFlags, network: c.networkFlags, command: "cove rerun"}, inputs, out)
	if err != nil {
		return 0, err
	}
	defer s.settle(i.hard, &code, &err)
	defer s.killed(i.hard)()
	r := rerun{p: p, quiet: c.Quiet}
	for n, old := range cells {
		if err := r.cell(i, s, n+1, len(cells), *old, kernel.Request{Code: old.Code, Timeout: time.Duration(cfg.Sandbox.Timeout), OutputLimit: int64(cfg.Sandbox.MaxOutput)}, p.plotly(cfg)); err != nil {
			return 0, err
		}
	}
	if code = r.finish(i, s); code == 0 {
		return 0, s.out.failure()
	}
	p.alsoFailed(s.out.failure(), false)
	return code, nil
}

func (c *rerunCmd) cells(ctx context.Context, p *Program) (cells []*notebook.Cell, err error) {
	err = p.withPast(ctx, c.serverFlags, func(from past) error {
		d, err := (&exportCmd{ID: c.ID}).document(ctx, from)
		cells = d.Cells()
		if err == nil && len(cells) == 0 {
			err = problem.New(problem.NothingRan, "no code ran there")
		}
		return err
	})
	return cells, err
}

// rerun compares as it goes.
type rerun struct {
	p       *Program
	quiet   bool
	files   []kernel.File
	differs []string
}

func (r *rerun) cell(i *interruption, s *commandSession, n, of int, old notebook.Cell, req kernel.Request, plotly func() string) error {
	if !r.quiet {
		fmt.Fprintf(r.p.Err, "[%d of %d]\n", n, of)
	}
	v := &runView{p: r.p, out: s.out, quiet: r.quiet, plotly: plotly, live: r.p.signs(r.quiet)}
	now := notebook.Cell{Code: old.Code}
	ctx, stop := context.WithCancel(i.soft)
	defer stop()
	defer v.live.Over()
	for e, err := range s.Execute(ctx, req) {
		if err != nil {
			return err
		}
		now.Add(e)
		if err := v.event(e); err != nil {
			return err
		}
	}
	v.explain()
	r.files = append(r.files, v.files...)
	if what := difference(old, now); what != "" {
		r.differs = append(r.differs, fmt.Sprintf("%d of %d: %s", n, of, what))
	}
	return i.soft.Err()
}

// finish says what differs.
func (r *rerun) finish(i *interruption, s *commandSession) int {
	s.out.files(i.hard, s, r.files)
	if !r.quiet {
		s.out.list(r.p.Err)
	}
	if len(r.differs) == 0 {
		if !r.quiet {
			notef(r.p.Err, "everything is as it was")
		}
		return 0
	}
	notef(r.p.Err, "%s not as before:", lang.Text(map[bool]string{true: "one execution is", false: fmt.Sprint(len(r.differs)) + " executions are"}[len(r.differs) == 1]))
	for _, d := range r.differs {
		fmt.Fprintln(r.p.Err, "  "+strings.ReplaceAll(d, "\n", "\n  "))
	}
	return exitUncaught
}

// difference says in words how an execution went differently, or "".
func difference(old, now notebook.Cell) string {
	switch {
	case old.Outcome != now.Outcome:
		return lang.Sprintf("it ended with %s, before with %s", now.Outcome, lang.Text(orUnknown(old.Outcome)))
	case len(figures(old)) != len(figures(now)):
		return lang.Sprintf("%s, before %d", count(len(figures(now)), "figure"), len(figures(old)))
	}
	before, after := compared(old), compared(now)
	if before == after {
		return ""
	}
	a, b := firstDifference(before, after)
	return lang.Sprintf("the output differs\n  - %s\n  + %s", oneLine(shortenedTo(a, 200)), oneLine(shortenedTo(b, 200)))
}

func orUnknown(o kernel.Outcome) string {
	if o == "" {
		return "no known end"
	}
	return string(o)
}

// address is an object's place in memory, which is another one each time.
const address = `0x[0-9a-f]{6,}`

func compared(c notebook.Cell) string {
	text := regexp.MustCompile(address).ReplaceAllString(c.Text(), "0x…")
	return strings.TrimSpace(regexp.MustCompile(`[ \t]+\n`).ReplaceAllString(text, "\n"))
}

func figures(c notebook.Cell) []notebook.Output {
	var out []notebook.Output
	for _, o := range c.Outputs {
		if o.Display != nil && isFigure(*o.Display) || o.Result != nil && isFigure(*o.Result) {
			out = append(out, o)
		}
	}
	return out
}

func firstDifference(a, b string) (string, string) {
	before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n := range max(len(before), len(after)) {
		var x, y string
		if n < len(before) {
			x = before[n]
		}
		if n < len(after) {
			y = after[n]
		}
		if x != y {
			return x, y
		}
	}
	return a, b
}

func shortenedTo(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}
