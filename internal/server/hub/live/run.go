package live

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

// AsWork marks a context as that of work that has begun.
func AsWork(ctx context.Context) context.Context { return context.WithValue(ctx, workKey{}, true) }

func isWork(ctx context.Context) bool { return ctx.Value(workKey{}) != nil }

// Uninterrupted returns the context that ends when a drain stops waiting for work.
func (m *Manager) Uninterrupted() context.Context { return m.working }

// IsDraining says whether a drain has begun.
func (m *Manager) IsDraining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.draining
}

// BeginWork counts new work, unless the hub drains. The work's context has ctx's values and does not end with ctx; end must be called.
func (m *Manager) BeginWork(ctx context.Context) (work context.Context, end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case isWork(ctx):
	case m.work.IsFenced():
		return nil, nil, ownership.ErrLost()
	case m.draining:
		return nil, nil, drained()
	default:
		if err := m.work.UnstoredProblem(); err != nil {
			return nil, nil, err
		}
	}
	m.busy++
	work, cancel := context.WithCancelCause(AsWork(context.WithoutCancel(ctx)))
	stop := context.AfterFunc(m.working, func() { cancel(context.Cause(m.working)) })
	return work, func() {
		stop()
		cancel(nil)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy--
		m.signalRoom()
	}, nil
}

// RunAndRecord runs one execution in a session that is held: it is recorded, waits for its kernel and for a slot, emits events, and its end is recorded before
// the Done is emitted. The error says why the execution could not be recorded, or is the session's error instead of a Done; the execution is final then too. An
// error of emit interrupts the code. e needs Project, Session and Code; ID and what the hub measures are filled in.
func (m *Manager) RunAndRecord(ctx context.Context, e record.Execution, req kernel.Request, emit emitter) (record.Execution, error) {
	e, t, err := m.admitExecution(ctx, e)
	if err != nil {
		return e, err
	}
	return m.performExecution(ctx, t, e, req, emit, func(e *record.Execution, done kernel.Done, failed error) error {
		store := func(ctx context.Context) error {
			first, err := m.work.Store.FinishExecution(ctx, *e, nil)
			return m.checkSettled(ctx, e, first, err)
		}
		err := m.work.WriteUntilStored(m.work.Ended, store)
		if stream.Refused(err) {
			*e = m.withoutOutput(*e, err)
			err = m.work.WriteUntilStored(m.work.Ended, store)
		}
		if err != nil || failed != nil {
			return err
		}
		_ = emit(t.ctx, done) // a caller that stopped listening knows that it did
		return nil
	})
}

// checkSettled takes over the final state that another process has stored already, if any.
func (m *Manager) checkSettled(ctx context.Context, e *record.Execution, first bool, err error) error {
	if err != nil || first {
		return err
	}
	there, err := m.work.Store.Execution(ctx, e.Project, e.ID)
	if err == nil {
		*e = there
	}
	return err
}

// admitExecution puts an execution into its kernel's line and records it, with the audit row of the request: as running when nothing is before it, which saves recording
// that later, or else as queued. The caller has acquired the session.
func (m *Manager) admitExecution(ctx context.Context, e record.Execution, asked ...audit.Row) (record.Execution, *liveExecution, error) {
	if most := m.o.Limits.Code; len(e.Code) > most {
		return e, nil, problem.New(problem.CodeTooLarge, fmt.Sprintf("the code has more than %d MiB", most>>20)).WithHint("put data into a file and have the code read that")
	}
	if err := m.spareMemory(ctx, e.Session); err != nil {
		return e, nil, err
	}
	if e.ID == "" {
		e.ID = ident.New(ident.Execution)
	}
	if e.Kernel == "" {
		e.Kernel = mainKernel
	}
	e.State, e.Created, e.Owner = record.ExecutionQueued, m.work.Now(), m.work.OwnerID()
	t := &liveExecution{id: e.ID, session: e.Session, kernel: e.Kernel, project: e.Project, key: e.Key, of: e.Turn, apart: e.Detached, front: make(chan struct{}), came: time.Now()}
	ctx, t.over = telemetry.Span(ctx, spanExecution, slog.String("execution", e.ID), slog.String("session", e.Session), slog.String("kernel", e.Kernel))
	t.ctx, t.stop = context.WithCancelCause(ctx)
	if err := m.enterLine(ctx, t); err != nil {
		t.stop(nil)
		t.over(err)
		return e, nil, err
	}
	if work.IsClosed(t.front) && m.slots.try() {
		t.placed.Store(true)
		e.State, e.Started = record.ExecutionRunning, e.Created
	}
	if err := m.work.Store.AddExecution(ctx, e, asked...); err != nil {
		m.exitLine(t)
		t.over(err)
		m.work.RunInBackground(func(context.Context) { m.loseUnrecorded(e) })
		return e, nil, err
	}
	return e, t, nil
}

// loseUnrecorded ends an execution whose record failed, in case that the record was written although the store returned an error. No client knows of it.
func (m *Manager) loseUnrecorded(e record.Execution) {
	e.State, e.Finished, e.Message = record.ExecutionLost, m.work.Now(), "the execution could not be recorded and did not run"
	_ = m.work.WriteUntilStored(m.work.Ended, func(ctx context.Context) error {
		_, err := m.work.Store.FinishExecution(ctx, e, nil)
		return err
	})
}

// enterLine adds an execution to the line of its kernel, and counts it against the quotas.
func (m *Manager) enterLine(ctx context.Context, t *liveExecution) error {
	limits, err := m.meter.Quotas(ctx, t.project, t.key)
	if err != nil {
		return err
	}
	m.mu.Lock()
	s := m.seats[t.session]
	var live Live
	if s != nil {
		live = s.Live
	}
	m.mu.Unlock()
	if live == nil || s.project != t.project {
		return SessionGone()
	}
	if !slices.Contains(live.KernelNames(), t.kernel) {
		return problem.New(problem.KernelNotFound, "the session has no kernel "+t.kernel).WithHint("start the kernel first, or leave kernel out for " + mainKernel)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case meter.IsFull(m.flying[t.project], limits.Project.Executions), t.key != "" && meter.IsFull(m.flying[t.byKey()], limits.Key.Executions):
		return exhausted(problem.QuotaExecutions, "you have as many executions waiting or running as you may have")
	case !s.join(t, m.o.Limits.Queue):
		return exhausted(problem.QueueFull, "too many executions wait for this kernel")
	}
	m.executions[t.id] = t
	m.flying[t.project]++
	m.flying[t.byKey()]++
	return nil
}

// exitLine removes an execution that has ended, and releases its slot.
func (m *Manager) exitLine(t *liveExecution) {
	t.stop(nil)
	t.left.Store(true)
	m.returnSlot(t)
	m.calls.dropExecution(t.id)
	m.inputs.dropExecution(t.id)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.executions, t.id)
	if s := m.seats[t.session]; s != nil { // none, if code that waited was stopped while its session was not in memory
		s.leave(t)
	}
	m.noteCodeEnded(t)
}

// returnSlot gives an execution's slot back, if it has one.
func (m *Manager) returnSlot(t *liveExecution) {
	if t.placed.CompareAndSwap(true, false) {
		m.slots.give()
	}
}

// ContinueAfterWait waits for a slot for an execution that gave its own back.
func (m *Manager) ContinueAfterWait(ctx context.Context, t *liveExecution) error {
	if err := m.slots.take(ctx, t.project); err != nil {
		return err
	}
	if t.placed.Store(true); t.left.Load() {
		m.returnSlot(t) // it has ended meanwhile
	}
	return nil
}

// noteCodeEnded notes that an execution's code has ended: it counts no more, for a client that hears of its end may begin the next one before it is recorded. The caller holds Hub.mu.
func (m *Manager) noteCodeEnded(t *liveExecution) {
	if t.ran {
		return
	}
	t.ran = true
	for _, who := range []string{t.project, t.byKey()} {
		if m.flying[who]--; m.flying[who] <= 0 {
			delete(m.flying, who)
		}
	}
}

// performExecution runs an admitted execution. end records its end; failed is the session's error instead of a Done.
func (m *Manager) performExecution(ctx context.Context, t *liveExecution, e record.Execution, req kernel.Request, emit emitter, end func(e *record.Execution, done kernel.Done, failed error) error) (record.Execution, error) {
	defer m.exitLine(t)
	var done kernel.Done
	var failed error
	defer func() { t.over(failed) }()
	if err := m.waitInLine(t); err != nil {
		done = kernel.Done{Outcome: kernel.OutcomeInterrupted, ExitCode: 1, Message: "the execution was interrupted before it ran"}
	} else {
		m.recordStart(ctx, &e)
		var r *record.Rollback
		if !t.unheard {
			r = m.TakeRollback(ctx, t.project, t.session)
		}
		if r != nil {
			_ = emit(t.ctx, r.Event()) // the code runs even if this fails
		}
		spent := m.metered(t)
		emit, ended := m.redacting(t, emit)
		done, failed = m.executeCode(t, req, emit, r != nil)
		e.Redacted = ended()
		e.CPU = spent(done.Wall)
	}
	m.mu.Lock()
	m.noteCodeEnded(t)
	m.mu.Unlock()
	e.State, e.Finished = record.ExecutionState(done.Outcome), m.work.Now()
	e.ExitCode, e.Message, e.Lost, e.Wall, e.Dropped = done.ExitCode, done.Message, done.Lost, done.Wall, done.Dropped
	m.countUsage(e) // before anybody hears of the end: a caller's next execution meets the quota
	err := end(&e, done, failed)
	m.executionSeen(t, e)
	if err != nil {
		m.work.Log.ErrorContext(ctx, "the end of an execution was not recorded", "execution", e.ID, "error", err)
		return e, err
	}
	if done.Lost == kernel.LostSession {
		m.noteSandboxLoss(ctx, t.session, done.Message)
	}
	return e, failed
}

// recordStart records that a queued execution runs.
func (m *Manager) recordStart(ctx context.Context, e *record.Execution) {
	if e.State == record.ExecutionRunning {
		return
	}
	e.State, e.Started = record.ExecutionRunning, m.work.Now()
	if err := m.work.Store.StartExecution(ctx, e.ID, e.Started); err != nil {
		m.work.Log.WarnContext(ctx, "the start of an execution was not recorded", "execution", e.ID, "error", err)
	}
}

// waitInLine waits for the kernel and, unless the execution has one, for a slot.
func (m *Manager) waitInLine(t *liveExecution) (err error) {
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
		if err = m.ContinueAfterWait(t.ctx, t); err != nil {
			return err
		}
	}
	return context.Cause(m.working) // the execution's own context ends a moment later
}

// emitter takes an event of an execution. It may wait until ctx ends, which is when the code has to end: the same goroutine ends it.
type emitter func(ctx context.Context, event record.Event) error

// executeCode runs the code and emits all but the Done. told says that the execution has told of a lost sandbox: where the next one was lost too before the code ran in it, as one that was kept ready, nothing more is lost.
func (m *Manager) executeCode(t *liveExecution, req kernel.Request, emit emitter, told bool) (done kernel.Done, err error) {
	req.Kernel, req.OutputLimit = t.kernel, m.o.Limits.Output
	req.Timeout = record.Tighter(req.Timeout, m.o.Limits.Execution)
	began := time.Now()
	running, over := record.WithLimit(t.ctx, req.Longest())
	defer over()
	deaf, ended, heard := false, false, false
	for event, failed := range m.codeEvents(t, req) {
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
		if _, ok := event.(kernel.Rollback); ok && !m.isAttached(t.session) {
			m.noteSandboxLoss(t.ctx, t.session, lostSandbox)
			if t.unheard {
				continue
			}
			r := m.TakeRollback(t.ctx, t.project, t.session)
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
			t.stop(ErrUnheard)
		}
	}
	if ended {
		return done, nil
	}
	if err == nil {
		err = problem.New(problem.ExecutionUnfinished, "the session did not say how the execution ended")
	}
	done = kernel.Done{Outcome: kernel.OutcomeSandboxDied, ExitCode: 1, Wall: time.Since(began), Message: m.work.PublicProblem(t.ctx, "execution", t.id, err).Message}
	if t.ctx.Err() != nil {
		done.Outcome, done.Message = kernel.OutcomeInterrupted, "it was interrupted"
	}
	return done, err
}

// ErrUnheard ends code whose events nobody takes any more.
var ErrUnheard = errors.New("the consumer of the events has left")

// countUsage counts what an execution has used.
func (m *Manager) countUsage(e record.Execution) {
	m.mu.Lock()
	if s := m.seats[e.Session]; s != nil {
		s.ran++
	}
	m.mu.Unlock()
	cpu := cmp.Or(e.CPU, e.Wall) // an upper bound, for want of a measurement
	m.meter.AddUsageOf(e.Project, e.Key, record.Usage{Executions: 1, WallSeconds: e.Wall.Seconds(), CPUSeconds: cpu.Seconds()})
}
