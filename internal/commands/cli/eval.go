package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/eval"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/server/hub"
)

type evalCmd struct {
	Run        evalRunCmd        `cmd:"" default:"withargs" help:"Have a model answer tasks. This is meant without a word."`
	References evalReferencesCmd `cmd:"" help:"Run the reference programs of the tasks instead of a model: what the platform itself costs."`
	Report     evalReportCmd     `cmd:"" help:"Report on runs again."`
	Ratings    evalRatingsCmd    `cmd:"" help:"Report on the ratings that people have given to answers."`
}

// evalFlags are the flags of both kinds of runs.
type evalFlags struct {
	Files    []string `arg:"" name:"files" help:"Files with tasks: HumanEval, BigCodeBench, ODEX, DABench (JSON or JSONL, also .gz), problem sets of DSEval (.py, or their folder), or your own (tasks.yaml)."`
	Format   string   `default:"" enum:"humaneval,bigcodebench,odex,dabench,dseval,tasks," placeholder:"FORMAT" help:"humaneval, bigcodebench, odex, dabench, dseval or tasks. Without: recognized."`
	Labels   string   `placeholder:"FILE" help:"DABench: the file with the right answers, where it is not beside the questions."`
	Data     string   `placeholder:"DIR" help:"DABench and DSEval: the folder of the files that the questions are about, where it is not beside them."`
	Folder   string   `name:"run" placeholder:"DIR" help:"The folder of the run. A run that is there already goes on. Without: a new folder in cove-eval."`
	Parallel int      `default:"0" placeholder:"N" help:"How many tasks run at once (default: the processors)."`
	Only     []string `sep:"," placeholder:"ID" help:"Only these tasks: ids, series, or patterns such as 'HumanEval/1?'. Repeatable."`
	MaxTasks int      `placeholder:"N" help:"At most so many tasks, from the beginning."`
	Sample   bool     `help:"Choose the tasks of --max-tasks at random, by --seed."`
	Seed     *int64   `placeholder:"N" help:"Seeds --sample and Python's random numbers in each session (without: 0), and, where it is given, the model of a compatible server."`
	Min      []string `sep:"," placeholder:"SHARE=LEAST" help:"Fail unless a share is at least so much, as right=0.8. Repeatable."`
	Against  []string `sep:"none" placeholder:"DIR" help:"Show the run in this folder beside. Without: those beside the run's folder that are over the same tasks. Repeatable."`
	sandboxFlags
	installFlags
	JSON bool `name:"json" help:"Print the report as one JSON object."`
}

type evalRunCmd struct {
	ownSignals
	evalFlags
	Model       string   `placeholder:"PROVIDER/NAME" help:"As cove ask takes it."`
	MaxSteps    int      `default:"${max_steps}" placeholder:"N" help:"How often the model may run code for one task (default: ${max_steps})."`
	Temperature *float64 `placeholder:"T" help:"Of the model. Without: its provider's."`
	Tries       *int     `placeholder:"N" help:"Answer each task N times at once (2 to 10), as cove ask --tries does, and judge the answer that most tries give. The report says what one try alone has right."`
	MaxTokens   int64    `placeholder:"N" help:"Begin no further task when the run has taken so many tokens."`
	MaxCost     float64  `placeholder:"AMOUNT" help:"Begin no further task when the run has cost so much; needs prices in the setting models.about."`
}

type evalReferencesCmd struct {
	ownSignals
	evalFlags
}

type evalReportCmd struct {
	Folder  string   `arg:"" help:"The folder of a run."`
	Against []string `sep:"none" placeholder:"DIR" help:"Show the run in this folder beside. Without: those beside the run's folder that are over the same tasks. Repeatable."`
	Min     []string `sep:"," placeholder:"SHARE=LEAST" help:"Fail unless a share is at least so much, as right=0.8. Repeatable."`
	JSON    bool     `name:"json" help:"Print the report as one JSON object."`
}

// Help is the long help.
func (evalCmd) Help() string {
	return `Each task is asked in a session of its own, in the way of cove ask, and its answer is judged by the task's checks. The folder of the
run keeps a record and a transcript of each task, and the report as text, JSON and a page. docs/eval.md says what the figures mean.

Examples:

    cove eval HumanEval.jsonl.gz --model openai/gpt-5.5 --max-tasks 50 --sample
    cove eval tasks.yaml --min right=0.8
    cove eval references HumanEval.jsonl.gz
    cove eval report cove-eval/HumanEval-2 --against cove-eval/HumanEval-1

Exit code: 0 all tasks were judged and every --min is met; 1 otherwise; 130 Ctrl-C, after which the same command with --run goes on;
125 cove or the model service failed.`
}

func (c *evalRunCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	if c.MaxSteps < 1 {
		return 0, problem.New(problem.Usage, "--max-steps must be at least 1")
	}
	tries := numberOf(c.Tries)
	if c.Tries != nil && (tries < 2 || tries > hub.MostTries) {
		return 0, triesOutOfRange()
	}
	cfg.Turn.MaxSteps = c.MaxSteps
	e, err := c.evaluation(p, cfg)
	if err != nil {
		return 0, err
	}
	if tries > 0 && slices.ContainsFunc(e.set.Tasks, func(t eval.Task) bool { return t.Series != "" }) {
		e.say("tasks of a series are answered once: each begins where the one before has ended")
	}
	if tries > 0 && c.Parallel == 0 {
		e.Parallel = max(1, e.Parallel/tries)
	}
	e.kind, e.temperature, e.tries, e.maxTokens, e.maxCost = eval.KindModel, c.Temperature, tries, c.MaxTokens, c.MaxCost
	return e.carryOut(ctx, func(ctx context.Context) (model.Model, error) {
		choice, err := choose.Model(ctx, cfg, c.Model)
		if err != nil {
			return nil, err
		}
		if choice.Provider == "replay" {
			return nil, problem.New(problem.Usage, "a recording answers one conversation, and cannot be asked tasks").WithHint("name a model with --model")
		}
		if choice.Because != "" && !c.Quiet {
			notef(p.Err, "using %s, because %s", oneLine(choice.String()), lang.Text(choice.Because))
		}
		m, err := p.NewModel(choice)
		if err == nil && c.MaxCost > 0 && !priced(cfg, m.Name()) {
			err = problem.New(problem.EvalUnpriced, "--max-cost needs the prices of "+oneLine(m.Name())+", which are not known").
				WithHint("set models.about, for example COVE_MODELS_ABOUT='" + oneLine(m.Name()) + " input=1.25 output=10', or bound the run with --max-tokens")
		}
		return m, err
	})
}

// priced says whether the settings have prices of a model.
func priced(c config.Config, name string) bool {
	known, _ := c.Models.Known() // what is wrong with them was found before
	return known[name].Price != nil
}

func (c *evalReferencesCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	e, err := c.evaluation(p, cfg)
	if err != nil {
		return 0, err
	}
	e.kind = eval.KindReferences
	return e.carryOut(ctx, func(context.Context) (model.Model, error) { return nil, nil })
}

func (c *evalReportCmd) run(_ context.Context, p *Program) (int, error) {
	thresholds, err := thresholdsOf(c.Min)
	if err != nil {
		return 0, err
	}
	r, err := eval.ReadReport(c.Folder)
	if err != nil {
		return 0, err
	}
	return p.tellReport(r, thresholds, c.Against, c.JSON)
}

// settings are the program's with the flags on top.
func (f evalFlags) settings(p *Program) (config.Config, error) {
	cfg, err := f.config(p)
	if err != nil {
		return cfg, err
	}
	f.install(&cfg)
	if f.Parallel < 0 || f.MaxTasks < 0 {
		return cfg, problem.New(problem.Usage, "--parallel and --max-tasks must not be below 0")
	}
	return cfg, possible(cfg)
}

// evaluation is a run of tasks by this command.
type evaluation struct {
	p   *Program
	cfg config.Config
	evalFlags
	set        eval.Set
	thresholds []eval.Threshold

	kind        eval.Kind
	temperature *float64
	tries       int
	maxTokens   int64
	maxCost     float64
}

// evaluation reads the tasks.
func (f evalFlags) evaluation(p *Program, cfg config.Config) (*evaluation, error) {
	e := &evaluation{p: p, cfg: cfg, evalFlags: f}
	var err error
	if e.thresholds, err = thresholdsOf(f.Min); err != nil {
		return nil, err
	}
	set, err := eval.Load(f.Files, eval.LoadOptions{Format: eval.Format(f.Format), Labels: f.Labels, Data: f.Data})
	if err != nil {
		return nil, err
	}
	if e.set, err = set.Choose(eval.Choice{Only: f.Only, Most: f.MaxTasks, Sample: f.Sample, Seed: e.seed()}); err != nil {
		return nil, err
	}
	if e.Parallel == 0 {
		e.Parallel = runtime.NumCPU()
	}
	return e, nil
}

func (f evalFlags) seed() int64 {
	if f.Seed == nil {
		return 0
	}
	return *f.Seed
}

func thresholdsOf(texts []string) ([]eval.Threshold, error) {
	var out []eval.Threshold
	for _, text := range texts {
		t, err := eval.ParseThreshold(text)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// carryOut does the run and tells what came of it. reach returns the model that is asked; nil where none is.
func (e *evaluation) carryOut(ctx context.Context, reach func(context.Context) (model.Model, error)) (int, error) {
	for _, notice := range e.set.Notices {
		e.say(notice)
	}
	if e.kind == eval.KindReferences {
		if err := e.withReferences(); err != nil {
			return 0, err
		}
	}
	i := e.p.interruptible(ctx)
	defer i.stop()
	m, err := reach(i.soft)
	if err != nil {
		return 0, err
	}
	plan, err := e.plan(m)
	if err != nil {
		return 0, err
	}
	if e.Folder == "" {
		e.Folder = newRunFolder(e.set.Name, plan.Created)
	}
	folder, err := eval.OpenFolder(e.Folder, plan)
	if err != nil {
		return 0, err
	}
	defer func() { _ = folder.Close() }() // each row was synced when it was written
	result, bound, err := e.work(i, folder, plan, m)
	if code := i.exitCode(); code != 0 {
		e.goesOn()
		return code, nil
	}
	if err != nil {
		e.goesOn()
		return 0, err
	}
	r, err := eval.ReadReport(e.Folder)
	if err != nil {
		return 0, err
	}
	r.Bound, r.Records = bound, result
	return e.p.tellReport(r, e.thresholds, e.Against, e.JSON)
}

// work opens what the run needs, and does what is not done yet.
func (e *evaluation) work(i *interruption, folder *eval.Folder, plan eval.Plan, m model.Model) ([]eval.Record, string, error) {
	platform, err := e.open(i.soft, m)
	if err != nil {
		return nil, "", err
	}
	defer platform.close()
	e.say("the run is kept in " + oneLine(e.Folder))
	live := e.p.live
	defer live.Over()
	r := &eval.Runner{
		Platform: platform, Folder: folder, Plan: plan, Tasks: e.set.Tasks, Parallel: e.Parallel, MaxTokens: e.maxTokens, MaxCost: e.maxCost,
		Progress: func(p eval.Progress) { live.Progress(progressLine(p)) },
	}
	result, err := r.Run(i.soft)
	return result.Records, result.Bound, err
}

func progressLine(p eval.Progress) string {
	text := fmt.Sprintf("%d of %d done, %d right, %d running", p.Done, p.Tasks, p.Right, p.Running)
	if p.Unjudged > 0 {
		text += fmt.Sprintf(", %d could not be judged", p.Unjudged)
	}
	if p.Spent.Tokens > 0 {
		text += fmt.Sprintf(", %d tokens", p.Spent.Tokens)
	}
	return text
}

func (e *evaluation) say(text string) {
	if !e.Quiet {
		fmt.Fprintln(e.p.Err, "cove: "+lang.Text(text))
	}
}

// goesOn says how to go on with a run that was stopped. That is no detail: it is said also with --quiet.
func (e *evaluation) goesOn() {
	notef(e.p.Err, "what is done is kept; the same command with --run %s goes on", oneLine(e.Folder))
}

// withReferences takes away the tasks that have no reference program.
func (e *evaluation) withReferences() error {
	var kept []eval.Task
	broken := map[string]bool{} // series that have a task without one
	for _, t := range e.set.Tasks {
		if t.Reference == "" && t.Series != "" {
			broken[t.Series] = true
		}
	}
	for _, t := range e.set.Tasks {
		if t.Reference != "" && !broken[t.Series] {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return problem.New(problem.EvalEmpty, "the tasks have no reference programs").WithHint("a task of tasks.yaml has one as its reference; DABench has none")
	}
	if n := len(e.set.Tasks) - len(kept); n > 0 {
		e.say(fmt.Sprintf("%d tasks have no reference program and are left out", n))
	}
	e.set.Tasks = kept
	return nil
}

func (e *evaluation) plan(m model.Model) (eval.Plan, error) {
	plan, err := eval.NewPlan(e.kind, e.set, e.seed())
	if err != nil {
		return plan, err
	}
	if m != nil {
		plan.Model = m.Name()
	}
	c := e.cfg
	plan.Cove, plan.Temperature = e.p.Build.String(), e.temperature
	plan.Settings = eval.Settings{
		Engine: c.Sandbox.Engine, Packages: c.Packages.Set, Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs, Timeout: time.Duration(c.Sandbox.Timeout).Seconds(),
		Install: c.Packages.Install, Offline: c.Packages.Offline, Build: c.Packages.Build,
		MaxSteps: c.Turn.MaxSteps, Tries: e.tries, MaxTurnTokens: c.Turn.MaxTokens, MaxTime: time.Duration(c.Turn.MaxTime).Seconds(),
	}
	plan.Machine = eval.Machine{System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Parallel: e.Parallel}
	return plan, nil
}

// newRunFolder is a folder that is not there yet.
func newRunFolder(name string, at time.Time) string {
	name = strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\ `, c) || c < ' ' {
			return '-'
		}
		return c
	}, name)
	base := filepath.Join("cove-eval", fmt.Sprintf("%.60s-%s", name, at.Format("20060102-150405")))
	folder := base
	for n := 2; ; n++ {
		if _, err := os.Lstat(folder); errors.Is(err, os.ErrNotExist) {
			return folder
		}
		folder = fmt.Sprintf("%s-%d", base, n)
	}
}

// tellReport prints a report, saves it in the run's folder and returns the exit code.
func (p *Program) tellReport(r eval.Report, thresholds []eval.Threshold, against []string, asJSON bool) (int, error) {
	if err := r.Beside(against...); err != nil {
		return 0, err
	}
	code := 0
	if r.Figures.Judged < r.Figures.Tasks {
		code = exitUncaught
	}
	for _, t := range thresholds {
		t = t.Against(r.Figures)
		if r.Thresholds = append(r.Thresholds, t); !t.Met {
			code = exitUncaught
		}
	}
	if err := r.Save(); err != nil {
		return 0, err
	}
	write := r.WriteText
	if asJSON {
		write = r.WriteJSON
	}
	if err := write(p.Out); err != nil {
		return 0, fmt.Errorf("write the report: %w", err)
	}
	if !asJSON {
		lang.Fprintf(p.Out, "The page: %s\n", oneLine(filepath.Join(r.Folder, eval.ReportPage)))
	}
	return code, nil
}
