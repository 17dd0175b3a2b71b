package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/hub/meter"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/work"
	"cove/internal/server/ownership"
	"cove/internal/server/stream"
)

const (
	mainKernel = "main"
)

// workKey marks the contexts of work that has begun, which a drain waits for.
type workKey struct{}

func isWork(ctx context.Context) bool { return ctx.Value(workKey{}) != nil }

// begin counts new work, unless the hub drains. The work's context has ctx's values and does not end with ctx; end must be called.
func (h *Hub) begin(ctx context.Context) (work context.Context, end func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case isWork(ctx):
	case h.work.IsFenced():
		return nil, nil, ownership.ErrLost()
	case h.draining:
		return nil, nil, drained()
	default:
		if err := h.work.UnstoredProblem(); err != nil {
			return nil, nil, err
		}
	}
	h.busy++
	work, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), workKey{}, true))
	stop := context.AfterFunc(h.working, func() { cancel(context.Cause(h.working)) })
	return work, func() {
		stop()
		cancel(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.busy--
		h.signalRoom()
	}, nil
}

// run runs one execution in a session that is held: it is recorded, waits for its kernel and for a slot, emits events, and its end is recorded before
// the Done is emitted. The error says why the execution could not be recorded, or is the session's error instead of a Done; the execution is final then too. An
// error of emit interrupts the code. e needs Project, Session and Code; ID and what the hub measures are filled in.
func (h *Hub) run(ctx context.Context, e Execution, req kernel.Request, emit emitter) (Execution, error) {
	e, t, err := h.admit(ctx, e)
	if err != nil {
		return e, err
	}
	return h.perform(ctx, t, e, req, emit, func(e *Execution, done kernel.Done, failed error) error {
		store := func(ctx context.Context) error {
			first, err := h.work.Store.FinishExecution(ctx, *e, nil)
			return h.settled(ctx, e, first, err)
		}
		err := h.work.WriteUntilStored(h.work.Ended, store)
		if stream.Refused(err) {
			*e = h.bare(*e, err)
			err = h.work.WriteUntilStored(h.work.Ended, store)
		}
		if err != nil || failed != nil {
			return err
		}
		_ = emit(t.ctx, done) // a caller that stopped listening knows that it did
		return nil
	})
}

// settled takes over the final state that another process has stored already, if any.
func (h *Hub) settled(ctx context.Context, e *Execution, first bool, err error) error {
	if err != nil || first {
		return err
	}
	there, err := h.work.Store.Execution(ctx, e.Project, e.ID)
	if err == nil {
		*e = there
	}
	return err
}

// admit puts an execution into its kernel's line and records it, with the audit row of the request: as running when nothing is before it, which saves recording
// that later, or else as queued. The caller has acquired the session.
func (h *Hub) admit(ctx context.Context, e Execution, asked ...audit.Row) (Execution, *liveExecution, error) {
	if most := h.o.Limits.Code; len(e.Code) > most {
		return e, nil, problem.New(problem.CodeTooLarge, fmt.Sprintf("the code has more than %d MiB", most>>20)).WithHint("put data into a file and have the code read that")
	}
	if err := h.spare(ctx, e.Session); err != nil {
		return e, nil, err
	}
	if e.ID == "" {
		e.ID = ident.New(ident.Execution)
	}
	if e.Kernel == "" {
		e.Kernel = mainKernel
	}
	e.State, e.Created, e.Owner = ExecutionQueued, h.work.Now(), h.work.OwnerID()
	t := &liveExecution{id: e.ID, session: e.Session, kernel: e.Kernel, project: e.Project, key: e.Key, of: e.Turn, apart: e.Detached, front: make(chan struct{}), came: time.Now()}
	ctx, t.over = telemetry.Span(ctx, spanExecution, slog.String("execution", e.ID), slog.String("session", e.Session), slog.String("kernel", e.Kernel))
	t.ctx, t.stop = context.WithCancelCause(ctx)
	if err := h.enter(ctx, t); err != nil {
		t.stop(nil)
		t.over(err)
		return e, nil, err
	}
	if work.IsClosed(t.front) && h.slots.try() {
		t.placed.Store(true)
		e.State, e.Started = ExecutionRunning, e.Created
	}
	if err := h.work.Store.AddExecution(ctx, e, asked...); err != nil {
		h.exit(t)
		t.over(err)
		h.work.RunInBackground(func(context.Context) { h.loseUnrecorded(e) })
		return e, nil, err
	}
	return e, t, nil
}

// loseUnrecorded ends an execution whose record failed, in case that the record was written although the store returned an error. No client knows of it.
func (h *Hub) loseUnrecorded(e Execution) {
	e.State, e.Finished, e.Message = ExecutionLost, h.work.Now(), "the execution could not be recorded and did not run"
	_ = h.work.WriteUntilStored(h.work.Ended, func(ctx context.Context) error {
		_, err := h.work.Store.FinishExecution(ctx, e, nil)
		return err
	})
}

// enter adds an execution to the line of its kernel, and counts it against the quotas.
func (h *Hub) enter(ctx context.Context, t *liveExecution) error {
	limits, err := h.Meter.Quotas(ctx, t.project, t.key)
	if err != nil {
		return err
	}
	h.mu.Lock()
	s := h.seats[t.session]
	var live Live
	if s != nil {
		live = s.live
	}
	h.mu.Unlock()
	if live == nil || s.project != t.project {
		return sessionGone()
	}
	if !slices.Contains(live.KernelNames(), t.kernel) {
		return problem.New(problem.KernelNotFound, "the session has no kernel "+t.kernel).WithHint("start the kernel first, or leave kernel out for " + mainKernel)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case meter.IsFull(h.flying[t.project], limits.Project.Executions), t.key != "" && meter.IsFull(h.flying[t.byKey()], limits.Key.Executions):
		return exhausted(problem.QuotaExecutions, "you have as many executions waiting or running as you may have")
	case !s.join(t, h.o.Limits.Queue):
		return exhausted(problem.QueueFull, "too many executions wait for this kernel")
	}
	h.executions[t.id] = t
	h.flying[t.project]++
	h.flying[t.byKey()]++
	return nil
}

// exit removes an execution that has ended, and releases its slot.
func (h *Hub) exit(t *liveExecution) {
	t.stop(nil)
	t.left.Store(true)
	h.rest(t)
	h.calls.dropExecution(t.id)
	h.inputs.dropExecution(t.id)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.executions, t.id)
	if s := h.seats[t.session]; s != nil { // none, if code that waited was stopped while its session was not in memory
		s.leave(t)
	}
	h.ran(t)
}

// rest gives an execution's slot back, if it has one.
func (h *Hub) rest(t *liveExecution) {
	if t.placed.CompareAndSwap(true, false) {
		h.slots.give()
	}
}

// goOn waits for a slot for an execution that gave its own back.
func (h *Hub) goOn(ctx context.Context, t *liveExecution) error {
	if err := h.slots.take(ctx, t.project); err != nil {
		return err
	}
	if t.placed.Store(true); t.left.Load() {
		h.rest(t) // it has ended meanwhile
	}
	return nil
}

// ran notes that an execution's code has ended: it counts no more, for a client that hears of its end may begin the next one before it is recorded. The caller holds Hub.mu.
func (h *Hub) ran(t *liveExecution) {
	if t.ran {
		return
	}
	t.ran = true
	for _, who := range []string{t.project, t.byKey()} {
		if h.flying[who]--; h.flying[who] <= 0 {
			delete(h.flying, who)
		}
	}
}

// perform runs an admitted execution. end records its end; failed is the session's error instead of a Done.
func (h *Hub) perform(ctx context.Context, t *liveExecution, e Execution, req kernel.Request, emit emitter, end func(e *Execution, done kernel.Done, failed error) error) (Execution, error) {
	defer h.exit(t)
	var done kernel.Done
	var failed error
	defer func() { t.over(failed) }()
	if err := h.queue(t); err != nil {
		done = kernel.Done{Outcome: kernel.OutcomeInterrupted, ExitCode: 1, Message: "the execution was interrupted before it ran"}
	} else {
		h.started(ctx, &e)
		var r *Rollback
		if !t.unheard {
			r = h.takeRollback(ctx, t.project, t.session)
		}
		if r != nil {
			_ = emit(t.ctx, r.Event()) // the code runs even if this fails
		}
		spent := h.metered(t)
		emit, ended := h.redacting(t, emit)
		done, failed = h.execute(t, req, emit, r != nil)
		e.Redacted = ended()
		e.CPU = spent(done.Wall)
	}
	h.mu.Lock()
	h.ran(t)
	h.mu.Unlock()
	e.State, e.Finished = ExecutionState(done.Outcome), h.work.Now()
	e.ExitCode, e.Message, e.Lost, e.Wall, e.Dropped = done.ExitCode, done.Message, done.Lost, done.Wall, done.Dropped
	h.count(e) // before anybody hears of the end: a caller's next execution meets the quota
	err := end(&e, done, failed)
	h.executionSeen(t, e)
	if err != nil {
		h.work.Log.ErrorContext(ctx, "the end of an execution was not recorded", "execution", e.ID, "error", err)
		return e, err
	}
	if done.Lost == kernel.LostSession {
		h.noteSandboxLoss(ctx, t.session, done.Message)
	}
	return e, failed
}

// started records that a queued execution runs.
func (h *Hub) started(ctx context.Context, e *Execution) {
	if e.State == ExecutionRunning {
		return
	}
	e.State, e.Started = ExecutionRunning, h.work.Now()
	if err := h.work.Store.StartExecution(ctx, e.ID, e.Started); err != nil {
		h.work.Log.WarnContext(ctx, "the start of an execution was not recorded", "execution", e.ID, "error", err)
	}
}

// queue waits for the kernel and, unless the execution has one, for a slot.
func (h *Hub) queue(t *liveExecution) (err error) {
	_, over := telemetry.Step(t.ctx, telemetry.StageQueue)
	defer func() { over(err) }()
	select {
	case <-t.front:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if !t.placed.Load() {
		if err = h.goOn(t.ctx, t); err != nil {
			return err
		}
	}
	return context.Cause(h.working) // the execution's own context ends a moment later
}

// emitter takes an event of an execution. It may wait until ctx ends, which is when the code has to end: the same goroutine ends it.
type emitter func(ctx context.Context, event Event) error

// execute runs the code and emits all but the Done. told says that the execution has told of a lost sandbox: where the next one was lost too before the code ran in it, as one that was kept ready, nothing more is lost.
func (h *Hub) execute(t *liveExecution, req kernel.Request, emit emitter, told bool) (done kernel.Done, err error) {
	req.Kernel, req.OutputLimit = t.kernel, h.o.Limits.Output
	req.Timeout = record.Tighter(req.Timeout, h.o.Limits.Execution)
	began := time.Now()
	running, over := record.WithLimit(t.ctx, req.Longest())
	defer over()
	deaf, ended, heard := false, false, false
	for event, failed := range h.codeEvents(t, req) {
		if failed != nil {
			err = failed
			break
		}
		if !heard {
			heard = true
			telemetry.Observe(t.ctx, telemetry.Stages, time.Since(t.came), telemetry.StageFirstEvent)
		}
		if d, ok := event.(kernel.Done); ok {
			done, ended = d, true
			continue
		}
		if _, ok := event.(kernel.Rollback); ok && !h.attached(t.session) {
			h.noteSandboxLoss(t.ctx, t.session, lostSandbox)
			if t.unheard {
				continue
			}
			r := h.takeRollback(t.ctx, t.project, t.session)
			if r == nil || told {
				continue // the session had no unsaved changes
			}
			event = r.Event()
		}
		if deaf {
			continue
		}
		if emit(running, event) != nil {
			deaf = true
			t.stop(errUnheard)
		}
	}
	if ended {
		return done, nil
	}
	if err == nil {
		err = problem.New(problem.ExecutionUnfinished, "the session did not say how the execution ended")
	}
	done = kernel.Done{Outcome: kernel.OutcomeSandboxDied, ExitCode: 1, Wall: time.Since(began), Message: h.work.PublicProblem(t.ctx, "execution", t.id, err).Message}
	if t.ctx.Err() != nil {
		done.Outcome, done.Message = kernel.OutcomeInterrupted, "it was interrupted"
	}
	return done, err
}

var errUnheard = errors.New("the consumer of the events has left")

// count counts what an execution has used.
func (h *Hub) count(e Execution) {
	h.mu.Lock()
	if s := h.seats[e.Session]; s != nil {
		s.ran++
	}
	h.mu.Unlock()
	cpu := cmp.Or(e.CPU, e.Wall) // an upper bound, for want of a measurement
	h.Meter.AddUsageOf(e.Project, e.Key, Usage{Executions: 1, WallSeconds: e.Wall.Seconds(), CPUSeconds: cpu.Seconds()})
}
