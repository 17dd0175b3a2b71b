package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Agent is a Subject in which a model solves tasks by calling a tool that the caller has.
type Agent interface {
	// Refill returns when what is prepared ahead of need is there. It is not timed.
	Refill(ctx context.Context) error
	// Outside are the model and the tool that it works with.
	Outside() *outside
	// Attempt prepares the client for one task; nothing is sent. Each request of the client's takes delay longer.
	Attempt(w workload, delay time.Duration) *attempt
}

var _, _ Agent = (*clientLoop)(nil), (*coveAgent)(nil)

// attempt is one task, as its client sees it.
type attempt struct {
	link   *link
	answer func(ctx context.Context) (string, error) // has the task done
	close  func(ctx context.Context) error           // frees what it left
}

// Close frees what the task left.
func (a *attempt) Close(ctx context.Context) error {
	defer a.link.close()
	if a.close == nil {
		return nil
	}
	return a.close(ctx)
}

// Delays that are put into the network, and how many of them Quick has.
var loopDelays = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond}

const quickDelays = 2

// What a task is measured by, besides its time at each delay.
const (
	loopModelCalls = iota
	loopRequests
	loopTokens
	loopBytes
	loopCounts // how many there are
)

func loopRow() Row {
	var measures []Measure
	for _, w := range workloads() {
		measures = append(measures, w.measures()...)
	}
	return Row{
		ID: "loop", Title: "a task with 20 calls of a tool", Base: clientLoopID, Rounds: 5, Quick: 1, Measures: measures,
		Able: as[Agent]("no model works with it"),
		Round: func(ctx context.Context, s Subject, rec Recorder) error {
			agent := s.(Agent)
			defer quiet(ctx, agent)
			for i, w := range workloads() {
				delays := loopDelays
				if rec.Quick {
					delays = delays[:quickDelays]
				}
				for j, delay := range delays {
					if err := solve(ctx, agent, w, delay, i*(len(loopDelays)+loopCounts), j, rec); err != nil {
						return fmt.Errorf("%s calls, %s: %w", w.id, delay, err)
					}
				}
			}
			return nil
		},
	}
}

func (w workload) measures() (all []Measure) {
	for _, delay := range loopDelays {
		m := Measure{ID: fmt.Sprintf("loop-%s-%dms", w.id, delay.Milliseconds()), Unit: "ms",
			Title:  fmt.Sprintf("20 %s calls, %d ms of network", w.id, delay.Milliseconds()),
			Detail: w.about + " The scripted model answers at once."}
		if delay > 0 {
			m.Detail += fmt.Sprintf(" Each request of the client's, and each one to the model, takes %d ms longer.", delay.Milliseconds())
		}
		if slices.Index(loopDelays, delay) >= quickDelays {
			m.Detail += " Not with --quick."
		}
		all = append(all, m)
	}
	counts := [loopCounts]Measure{
		loopModelCalls: {ID: "calls", Unit: "calls", Title: "the model"},
		loopRequests:   {ID: "requests", Unit: "requests", Title: "the client"},
		loopTokens:     {ID: "tokens", Unit: "tokens", Title: "what the model reads and says", Detail: " A quarter of the bytes of the texts and tools that the model is sent, and of what it says, in all its calls; no provider's cache."},
		loopBytes:      {ID: "link", Unit: "kB", Title: "the client's link", Detail: " Both ways, with HTTP's headers."},
	}
	for _, m := range counts {
		m.ID, m.Title, m.Detail = "loop-"+w.id+"-"+m.ID, fmt.Sprintf("20 %s calls: %s", w.id, m.Title), "At any delay."+m.Detail
		all = append(all, m)
	}
	return all
}

// solve has one task done. first is the index of the workload's first measure, at that of its delay.
func solve(ctx context.Context, s Agent, w workload, delay time.Duration, first, at int, rec Recorder) (err error) {
	if err := s.Refill(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	model := s.Outside().begin(w, delay)
	a := s.Attempt(w, delay)
	defer free(ctx, a, &err)
	begun := time.Now()
	answer, err := a.answer(ctx)
	took := time.Since(begun)
	if err != nil {
		return err
	}
	if want := w.want(); answer != want {
		return fmt.Errorf("answered %.200q instead of %q", answer, want)
	}
	rec.took(first+at, took)
	counts := first + len(loopDelays)
	rec.Value(counts+loopModelCalls, float64(len(model.Requests())))
	rec.Value(counts+loopRequests, float64(a.link.requests.Load()))
	rec.Value(counts+loopTokens, float64(model.tokens()))
	rec.Value(counts+loopBytes, float64(a.link.bytes.Load())/1e3)
	return nil
}
