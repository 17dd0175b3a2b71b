package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// MostKernels is in how many kernels besides the main one the code of a turn may run.
const MostKernels = 8

var kernelName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`) })

// kernelOf returns the kernel that a call's arguments name; "": the main one. Its error is a sentence for the model.
func (t *turn) kernelOf(arguments string) (string, error) {
	var named struct {
		Kernel string `json:"kernel"`
	}
	if t.spec.Kernels == 0 || json.Unmarshal([]byte(arguments), &named) != nil || named.Kernel == "" || named.Kernel == kernel.Main {
		return "", nil
	}
	if !kernelName().MatchString(named.Kernel) {
		return "", errors.New("the name of a kernel has letters, digits, - and _, at most 32")
	}
	if !slices.Contains(t.kernels, named.Kernel) {
		if len(t.kernels) >= t.spec.Kernels {
			return "", fmt.Errorf("there are %d kernels besides the main one already, which is the most; use one of these: %q", len(t.kernels), t.kernels)
		}
		t.kernels = append(t.kernels, named.Kernel)
	}
	return named.Kernel, nil
}

// together returns the programs of those of the first calls that can run at the same time: each in a kernel of its own.
func (t *turn) together(calls []model.ToolCall) (programs []placed) {
	if t.spec.Kernels == 0 {
		return nil
	}
	taken := map[string]bool{}
	for _, call := range calls {
		code, kernel, err := t.programOf(call)
		if err != nil || taken[kernel] {
			break
		}
		taken[kernel] = true
		programs = append(programs, placed{code, kernel})
	}
	return programs
}

// placed is code of the model's, and the kernel that it is for.
type placed struct{ code, kernel string }

// besides is code that runs beside other code.
type besides struct {
	step   int
	run    *Suspended // nil: it does not run, and has an outcome
	events iter.Seq2[kernel.Event, error]
	outcome
}

// runTogether runs programs at the same time, and tells of it as if one had run after the other: a client sees one execution at a time, the first as it happens. Whether each may run is decided before any does.
func (t *turn) runTogether(ctx context.Context, programs []placed) (results []model.ToolResult, err error) {
	t.known.called = true
	var all []besides
	for n, one := range programs {
		var b besides
		var err error
		b.step, b.run, b.outcome, err = t.admit(ctx, one.code, one.kernel)
		if _, limit := errors.AsType[*limitReached](err); limit && n > 0 {
			break // the others run, and the next attempt meets the limit again
		}
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for n, b := range all {
		if b.run != nil {
			p := t.program(b.step, b.run)
			p.Beside = true
			all[n].events = kept(&running, t.session.Execute(ctx, p))
		}
	}
	for _, b := range all {
		if b.run != nil {
			b.outcome, err = t.watch(ctx, b.step, b.run, b.events)
		}
		if problem.Has(err, problem.TooManyKernels, problem.QuotaExecutions, problem.QueueFull) { // the model can have it run alone
			b.outcome, err = outcome{text: "Not run: " + problem.Of(err).Message + ".", failed: true}, nil
		}
		if err != nil {
			return results, err
		}
		results = append(results, b.result())
	}
	return results, nil
}

// kept takes events as they come, and returns them for somebody who takes them later. The session bounds how much there is of them.
func kept(running *sync.WaitGroup, events iter.Seq2[kernel.Event, error]) iter.Seq2[kernel.Event, error] {
	type entry struct {
		event kernel.Event
		err   error
	}
	var mu sync.Mutex
	var entries []entry
	ended := false
	more := make(chan struct{}, 1)
	signal := func() {
		select {
		case more <- struct{}{}:
		default:
		}
	}
	running.Go(func() {
		for event, err := range events {
			mu.Lock()
			entries = append(entries, entry{event, err})
			mu.Unlock()
			signal()
		}
		mu.Lock()
		ended = true
		mu.Unlock()
		signal()
	})
	return func(yield func(kernel.Event, error) bool) {
		for {
			mu.Lock()
			taken, last := entries, ended
			entries = nil
			mu.Unlock()
			for _, e := range taken {
				if !yield(e.event, e.err) {
					return
				}
			}
			if last {
				return
			}
			if len(taken) == 0 {
				<-more
			}
		}
	}
}
