package record

import (
	"context"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// AnswerDay is how a project's turns with one model went on one day: figures without content, which stay when conversations are deleted.
type AnswerDay struct {
	Day            string    `json:"day" format:"date"` // 2026-11-21
	Model          string    `json:"model" doc:"PROVIDER/NAME"`
	Turns          int64     `json:"turns" doc:"That ended; those that are neither completed nor failed nor canceled wait for results of the client's functions, or were lost with their server"`
	Completed      int64     `json:"completed"`
	Failed         int64     `json:"failed"`
	Canceled       int64     `json:"canceled"`
	Repaired       int64     `json:"repaired" doc:"Completed although a step had failed"`
	Steps          int64     `json:"steps" doc:"Executions"`
	FailedSteps    int64     `json:"failed_steps" doc:"Of these, those that did not end ok"`
	Installs       int64     `json:"installs"`
	FailedInstalls int64     `json:"failed_installs"`
	InputTokens    int64     `json:"input_tokens"`
	OutputTokens   int64     `json:"output_tokens"`
	Seconds        float64   `json:"seconds" doc:"Of whole turns, together"`
	RunSeconds     float64   `json:"run_seconds" doc:"Of these, of code"`
	InstallSeconds float64   `json:"install_seconds" doc:"Of these, of installing packages"`
	Within         [11]int64 `json:"within" doc:"How many turns took at most 1, 2, 4 … 512 seconds, each without those before it, and longer"`
	Median         float64   `json:"median_seconds" doc:"Half of the turns took no longer: 1, 2, 4 … 512 seconds, or 1024 for all that is longer"`
	P95            float64   `json:"p95_seconds" doc:"95 of 100 turns took no longer, likewise"`
}

// Work is what a turn did, as far as AnswerDay counts it.
type Work struct {
	FailedSteps, Installs, FailedInstalls int
	Run, Install                          time.Duration
}

// NoteEvent counts what an event of the turn tells.
func (w *Work) NoteEvent(event TurnEvent) {
	output, ok := event.(loop.Output)
	if !ok {
		return
	}
	switch e := output.Event.(type) {
	case kernel.Done:
		w.Run += e.Wall
		if e.Outcome != kernel.OutcomeOK {
			w.FailedSteps++
		}
	case kernel.Install:
		if e.Progress != nil {
			return
		}
		w.Installs++
		w.Install += time.Duration(e.Provision.Seconds * float64(time.Second))
		if e.Failure != nil || len(e.Provision.Refused) > 0 {
			w.FailedInstalls++
		}
	}
}

// AnswerDay returns what the turn adds to its day's figures.
func (t Turn) AnswerDay() AnswerDay {
	ended := t.Finished
	if ended.IsZero() { // what a dead server left
		ended = t.Created
	}
	took := ended.Sub(t.Created)
	d := AnswerDay{
		Day: ended.UTC().Format(time.DateOnly), Model: t.Model, Turns: 1, Steps: int64(t.Steps), FailedSteps: int64(t.Work.FailedSteps),
		Installs: int64(t.Work.Installs), FailedInstalls: int64(t.Work.FailedInstalls), InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens,
		Seconds: took.Seconds(), RunSeconds: t.Work.Run.Seconds(), InstallSeconds: t.Work.Install.Seconds(),
	}
	switch t.State {
	case TurnCompleted:
		d.Completed = 1
		if t.Work.FailedSteps > 0 {
			d.Repaired = 1
		}
	case TurnFailed:
		d.Failed = 1
	case TurnCanceled:
		d.Canceled = 1
	}
	at, limit := 0, time.Second
	for at < len(d.Within)-1 && took > limit {
		at, limit = at+1, 2*limit
	}
	d.Within[at] = 1
	return d
}

// Timed returns the day with its Median and P95, which follow from Within.
func (d AnswerDay) Timed() AnswerDay {
	d.Median, d.P95 = d.quantile(0.5), d.quantile(0.95)
	return d
}

// quantile returns the number of seconds within which a part of the turns ended, from 0 to 1: a bound from above, 1024 for all that is longer than 512.
func (d AnswerDay) quantile(part float64) float64 {
	var all, seen int64
	for _, n := range d.Within {
		all += n
	}
	if all == 0 {
		return 0
	}
	bound := 1.0
	for _, count := range d.Within[:len(d.Within)-1] {
		if seen += count; float64(seen) >= part*float64(all) {
			break
		}
		bound *= 2
	}
	return bound
}

// AnswerStore keeps the figures of answers. FinishTurn adds to them.
type AnswerStore interface {
	// Answers returns the days from first to last (2026-11-21) of a project, the latest first, each with its models by name; of all projects together where project is "".
	Answers(ctx context.Context, project, first, last string) ([]AnswerDay, error)
}
