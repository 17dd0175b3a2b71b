package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// mostFailures is how many tasks in a row may fail for reasons that are not the model's before a run is stopped.
const mostFailures = 5

// Runner does the tasks of a run that are not done.
type Runner struct {
	Platform Platform
	Folder   *Folder
	Plan     Plan
	Tasks    []Task
	Parallel int // groups of tasks at once; a group is a series, or a task of its own
	// MaxTokens and MaxCost bound what the run takes: once that much was taken, no further task begins. Those that run end first. 0: no bound.
	MaxTokens int64
	MaxCost   float64
	// Progress is told how far the run is, one call after the other; nil: nobody is.
	Progress func(Progress)

	mu       sync.Mutex // guards what follows
	progress Progress
	reached  string // the bound that keeps further tasks from beginning
	failures int    // in a row
	fatal    error  // why the run is stopped
	known    bool   // the plan has the environment
	stop     context.CancelFunc
}

// Progress says how far a run is.
type Progress struct {
	Tasks, Done, Right, Unjudged, Running int
	Spent                                 Spent
}

// Result is how a run ended.
type Result struct {
	Figures Figures
	Records []Record // in the order of the tasks
	Bound   string   // why no further task began; ""
}

// Run does what is not done yet and returns the figures of everything that is. It returns an error besides when ctx ended, or when going on makes no sense, as when
// the model's provider refuses the key. Problems: eval_stopped, canceled, eval_folder and the model's.
func (r *Runner) Run(ctx context.Context) (Result, error) {
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	todo := r.todo()
	if len(todo) > 0 {
		if err := r.Platform.Prepare(ctx); err != nil {
			return Result{}, err
		}
	}
	var running sync.WaitGroup
	for range max(1, min(r.Parallel, len(todo))) {
		running.Go(func() {
			for g := r.next(ctx, &todo); g != nil; g = r.next(ctx, &todo) {
				r.group(ctx, g)
			}
		})
	}
	running.Wait()
	records := inOrder(r.Plan.Tasks, r.Folder.Done)
	result := Result{Figures: Compute(len(r.Plan.Tasks), records), Records: records, Bound: r.reached}
	switch {
	case r.fatal != nil:
		return result, r.fatal
	case ctx.Err() != nil:
		return result, problem.New(problem.GivenUp, "the run was stopped before its end")
	}
	return result, nil
}

// todo is the groups that are not done. A series that is not done as a whole is done again as a whole.
func (r *Runner) todo() [][]Task {
	var out [][]Task
	r.progress.Tasks, r.progress.Spent = len(r.Tasks), r.Folder.Spent()
	for _, g := range groupsOf(r.Tasks) {
		right, done := 0, true
		for _, t := range g {
			record, ok := r.Folder.Done(t.ID)
			done = done && ok && record.Judged
			if record.Right {
				right++
			}
		}
		if !done {
			out = append(out, g)
			continue
		}
		r.progress.Done += len(g)
		r.progress.Right += right
	}
	return out
}

// next takes the next group, or nil when there is none that may begin.
func (r *Runner) next(ctx context.Context, todo *[][]Task) []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(*todo) == 0 || ctx.Err() != nil {
		return nil
	}
	if r.reached = r.bound(); r.reached != "" {
		return nil
	}
	g := (*todo)[0]
	*todo = (*todo)[1:]
	return g
}

// bound says which bound of the run is reached.
func (r *Runner) bound() string {
	spent := r.Folder.Spent()
	switch {
	case r.MaxTokens > 0 && spent.Tokens >= r.MaxTokens:
		return fmt.Sprintf("the run has taken %d tokens of the %d that it may", spent.Tokens, r.MaxTokens)
	case r.MaxCost > 0 && spent.Cost >= r.MaxCost:
		return fmt.Sprintf("the run has cost %g of the %g that it may", spent.Cost, r.MaxCost)
	}
	return ""
}

// group does the tasks of a group in one session and records them.
func (r *Runner) group(ctx context.Context, g []Task) {
	r.tell(func(p *Progress) { p.Running++ })
	do := func() ([]Record, error) { return r.once(ctx, g, 0) }
	if r.Plan.Settings.Tries > 1 && len(g) == 1 {
		do = func() ([]Record, error) { return r.try(ctx, g[0]) }
	}
	records, err := do()
	if err == nil && ctx.Err() == nil {
		err = r.Folder.Append(records...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Running--
	switch {
	case err != nil:
		r.end(err)
	case ctx.Err() == nil:
		for _, one := range records {
			r.count(one)
		}
	}
	r.progress.Spent = r.Folder.Spent()
	r.show()
}

// count takes a record into account. The caller holds mu.
func (r *Runner) count(one Record) {
	r.progress.Done++
	switch {
	case one.Right:
		r.progress.Right++
	case !one.Judged:
		r.progress.Unjudged++
	}
	if one.Judged {
		r.failures = 0
		return
	}
	if r.failures++; r.failures >= mostFailures {
		r.end(problem.New(problem.EvalStopped, fmt.Sprintf("%d tasks in a row could not be done: %s", r.failures, one.Failure.Message)))
	}
}

// end stops the run. The caller holds mu.
func (r *Runner) end(err error) {
	if r.fatal == nil && !errors.Is(err, errCanceled) {
		r.fatal = err
	}
	r.stop()
}

// errCanceled says that the context of a run has ended.
var errCanceled = errors.New("the run was stopped")

func (r *Runner) tell(change func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.progress)
	r.show()
}

// show passes the progress on. The caller holds mu.
func (r *Runner) show() {
	if r.Progress != nil {
		r.Progress(r.progress)
	}
}

// doGroup returns a record for each task of a group. An error ends the run.
func (r *Runner) once(ctx context.Context, g []Task, try int) ([]Record, error) {
	began := time.Now()
	s, err := r.Platform.Open(ctx, g[0].Files)
	if ctx.Err() != nil {
		if err == nil {
			s.Close()
		}
		return nil, errCanceled
	}
	if err != nil {
		return unopened(g, began, err), nil
	}
	defer s.Close()
	opening := time.Since(began)
	if err := r.environment(s); err != nil {
		return nil, err
	}
	if _, err := listen(ctx, s, seeding(r.Plan.Seed)); err != nil {
		return unopened(g, began, err), nil
	}
	var records []Record
	for _, t := range g {
		one, err := r.do(ctx, s, t, try, began, opening)
		if err != nil {
			return nil, err
		}
		records, opening = append(records, one), 0
		if !one.Judged { // what comes next in the session stands on it
			for _, next := range g[len(records):] {
				records = append(records, Record{Task: next.ID, Series: next.Series, Started: time.Now().UTC(), Failure: one.Failure})
			}
			break
		}
	}
	return records, nil
}

// unopened records tasks for which no session could be opened.
func unopened(g []Task, began time.Time, err error) []Record {
	var records []Record
	for _, t := range g {
		records = append(records, unjudged(t, began, problem.Of(err)))
	}
	return records
}

func unjudged(t Task, began time.Time, p *problem.Error) Record {
	return Record{Task: t.ID, Series: t.Series, Started: began.UTC(), Failure: &Failure{p.Code, bounded(p.Message, longestWhy)}}
}

// seeding is code that seeds Python's random numbers, and numpy's where it is loaded, without leaving a name.
func seeding(seed int64) string {
	return fmt.Sprintf("(lambda s, m: (__import__('random').seed(s), 'numpy' in m and m['numpy'].random.seed(s %% 2**32)) and None)(%d, __import__('sys').modules)", seed)
}

// environment writes down what Python the run has, once; a run that goes on has the same.
func (r *Runner) environment(s Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known {
		return nil
	}
	python, packages := s.Python()
	sum := digestOf(packages)
	if r.Plan.Packages == "" {
		there, err := ReadPlan(r.Folder.Path)
		if err != nil {
			return err
		}
		r.Plan = there
	}
	if r.Plan.Packages == "" {
		r.Plan.Python, r.Plan.Packages = python, sum
		if err := r.Folder.WritePlan(r.Plan); err != nil {
			return err
		}
	}
	if r.Plan.Python != python || r.Plan.Packages != sum {
		return problem.New(problem.EvalOther, "the run began with another Python or other packages than there are now").WithHint("begin another run; what the folder has stays as it is")
	}
	r.known = true
	return nil
}

// do does one task. An error ends the run.
func (r *Runner) do(ctx context.Context, s Session, t Task, try int, began time.Time, opening time.Duration) (Record, error) {
	out := Record{Task: t.ID, Series: t.Series, Started: began.UTC()}
	if t.Before != "" {
		if _, err := listen(ctx, s, "exec(compile("+literal(t.Before)+", '<before>', 'exec'), globals())"); err != nil {
			return r.broken(ctx, out, err)
		}
	}
	h := &hearing{}
	h.line(map[string]any{"type": "task", "id": t.ID, "prompt": t.Prompt})
	asking := time.Now()
	asked, err := r.ask(ctx, s, t, h)
	total := opening + time.Since(asking)
	if ctx.Err() != nil {
		return out, errCanceled
	}
	out.Conversation, out.Executions, out.Installs = asked.Conversation, h.executions, h.installs
	out.Tokens = Tokens{asked.Usage.InputTokens, asked.Usage.OutputTokens, asked.Usage.CachedTokens, asked.Usage.Estimated}
	out.Cost = Cost{asked.Cost.Amount, asked.Cost.Currency}
	out.Seconds = Seconds{Total: total.Seconds(), Model: asked.Model.Seconds(), Install: h.install, Run: h.run}
	out.Seconds.Overhead = max(0, out.Seconds.Total-out.Seconds.Model-out.Seconds.Install-out.Seconds.Run)
	if err == nil && h.answer == nil {
		err = problem.New(problem.NoAnswer, "the question ended without an answer")
	}
	switch {
	case err != nil && !ofTheModel(err):
		out, err = r.broken(ctx, out, err)
	case err != nil:
		p := problem.Of(err)
		out.Judged, out.Failure = true, &Failure{p.Code, bounded(p.Message, longestWhy)}
		for _, c := range t.Checks {
			out.Checks = append(out.Checks, CheckResult{Kind: c.Kind, Why: out.Failure.Message})
		}
		err = nil
	default:
		out.Answer, out.Reason = bounded(h.answer.Text, longestAnswer), string(h.answer.Reason)
		err = r.judge(ctx, s, t, h.answer.Text, &out)
	}
	if err != nil {
		return out, err
	}
	h.line(map[string]any{"type": "checks", "judged": out.Judged, "right": out.Right, "checks": out.Checks, "failure": out.Failure})
	out.Transcript = transcriptName(r.Plan.Tasks, t.ID, try)
	err = durable.Replace(filepath.Join(r.Folder.Path, out.Transcript), 0o644, bytes.NewReader(h.transcript()))
	if err != nil {
		err = unusable(r.Folder.Path, err)
	}
	return out, err
}

// judge applies the checks. Code that has ended the session's sandbox or interpreter is wrong.
func (r *Runner) judge(ctx context.Context, s Session, t Task, answer string, out *Record) error {
	began := time.Now()
	checks, err := judge(ctx, s, t, answer)
	if ctx.Err() != nil {
		return errCanceled
	}
	if err != nil {
		for _, c := range t.Checks {
			checks = append(checks, CheckResult{Kind: c.Kind, Why: "the session cannot be judged: " + bounded(problem.Of(err).Message, longestWhy/2)})
		}
	}
	out.Judged, out.Right, out.Checks = true, true, checks
	for _, c := range checks {
		out.Right = out.Right && c.Right
	}
	out.Seconds.Check = time.Since(began).Seconds()
	return nil
}

// ask has the model answer a task, or its reference program.
func (r *Runner) ask(ctx context.Context, s Session, t Task, h *hearing) (Asked, error) {
	if r.Plan.Kind == KindModel {
		return s.Ask(ctx, t.Prompt, h.event)
	}
	_ = h.event(loop.Start{Step: 1, Code: t.Reference})
	err := s.Execute(ctx, t.Reference, func(e kernel.Event) error { return h.event(loop.Output{Step: 1, Event: e}) })
	if err == nil {
		err = h.event(loop.Answer{Text: h.said, Reason: loop.Complete, Steps: 1})
	}
	return Asked{}, err
}

// broken records that a task could not be done, or ends the run where the next one could not be either.
func (r *Runner) broken(ctx context.Context, out Record, err error) (Record, error) {
	if ctx.Err() != nil {
		return out, errCanceled
	}
	if hopeless(err) {
		return out, err
	}
	p := problem.Of(err)
	out.Failure = &Failure{p.Code, bounded(p.Message, longestWhy)}
	return out, nil
}

// ofTheModel says that a turn failed by what the model said or did: another attempt would be another answer.
func ofTheModel(err error) bool {
	return problem.Has(err, problem.NoAnswer, problem.TurnTimeout, problem.ModelContextTooLong, problem.ModelAnswerTooLong, problem.ModelTooLong, problem.ModelEmpty,
		problem.ModelDeadline, problem.SessionOOM)
}

// hopeless says that no other task can be done either.
func hopeless(err error) bool {
	return problem.Has(err, problem.ModelAuth, problem.ModelKeyMissing, problem.ModelQuotaExhausted, problem.ModelNotFound, problem.ModelUnknown, problem.ModelMissing,
		problem.ModelBaseURL, problem.DiskFull)
}

// transcriptName is the file of a task's transcript, relative to the run's folder. Ids may have any characters.
func transcriptName(ids []string, id string, try int) string {
	at, ending := 0, ""
	if try > 0 {
		ending = fmt.Sprintf("-try-%d", try+1)
	}
	for n, other := range ids {
		if other == id {
			at = n + 1
		}
	}
	safe := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, id)
	return filepath.ToSlash(filepath.Join(transcriptsDir, fmt.Sprintf("%04d-%s%s.jsonl", at, safe[:min(len(safe), 80)], ending)))
}
