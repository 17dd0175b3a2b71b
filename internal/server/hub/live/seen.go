package live

import (
	"context"
	"log/slog"

	"cove/internal/core/telemetry"
	"cove/internal/python/kernel"
	"cove/internal/server/hub/record"
	"cove/internal/sessions/ondisk"
)

// The names of spans that are not stages of telemetry.
const (
	spanExecution = "execution"
	SpanTurn      = "turn"
	SpanLook      = "look" // the interpreter reads files
)

// The changes of sessions that are counted.
const (
	sessionCreated  = "created"
	sessionResumed  = "resumed"
	sessionForked   = "forked"
	sessionReturned = "returned"
)

// registerGauges registers the metrics of what is in memory.
func (m *Manager) registerGauges(t *telemetry.Telemetry) {
	t.Gauge("cove_sessions_live", "Sessions in memory.", func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return float64(len(m.seats))
	})
	t.Gauge("cove_sessions_capacity", "Sessions that may be in memory.", func() float64 { return float64(m.capacity) })
	t.Gauge("cove_sessions_memory_bytes", "Memory of the sessions that are in memory, without what they have in common.", telemetry.Costly(m.memoryTaken))
	t.Gauge("cove_executions_running", "Executions that run.", func() float64 { return float64(m.slots.taken()) })
	t.Gauge("cove_executions_queued", "Executions that wait for their kernel or for the server.", func() float64 {
		running := m.slots.taken()
		m.mu.Lock()
		defer m.mu.Unlock()
		return float64(max(0, len(m.executions)-running))
	})
	t.Gauge("cove_turns_running", "Turns that run.", func() float64 { return float64(m.hooks.CountRunning()) })
}

// memoryTaken is what the sessions in memory take, in bytes, as far as their engine tells.
func (m *Manager) memoryTaken() float64 {
	var all []ondisk.Weigher
	m.mu.Lock()
	for _, s := range m.seats {
		if w, ok := s.Live.(ondisk.Weigher); ok {
			all = append(all, w)
		}
	}
	m.mu.Unlock()
	sum := int64(0)
	for _, w := range all { // without mu: the system is asked about each
		sum += w.Memory()
	}
	return float64(sum)
}

// sessionSeen counts and logs a change of a session.
func (m *Manager) sessionSeen(ctx context.Context, change, session, project string, attrs ...slog.Attr) {
	telemetry.Count(ctx, telemetry.Sessions, 1, change)
	level := slog.LevelInfo
	if change == string(record.SessionLost) {
		level = slog.LevelWarn
	}
	attrs = append([]slog.Attr{slog.String("change", change), slog.String("session", session), slog.String("project", project)}, attrs...)
	m.work.Log.LogAttrs(ctx, level, "session", attrs...)
}

// executionSeen measures and logs the end of an execution.
func (m *Manager) executionSeen(t *liveExecution, e record.Execution) {
	ctx, outcome := t.ctx, string(e.State)
	telemetry.Count(ctx, telemetry.Executions, 1, outcome)
	telemetry.Observe(ctx, telemetry.Wall, e.Wall, outcome)
	if e.Dropped > 0 {
		telemetry.Count(ctx, telemetry.DroppedOutput, float64(e.Dropped))
	}
	telemetry.Note(ctx, slog.String("outcome", outcome))
	level := slog.LevelDebug
	if e.Lost != kernel.LostNothing {
		level = slog.LevelInfo
	}
	if !m.work.Log.Enabled(ctx, level) {
		return
	}
	waited := e.Finished.Sub(e.Created)
	if !e.Started.IsZero() {
		waited = e.Started.Sub(e.Created)
	}
	m.work.Log.LogAttrs(ctx, level, "execution finished", slog.String("outcome", outcome), slog.Float64("seconds", e.Wall.Seconds()),
		slog.Float64("waited", waited.Seconds()), slog.Int64("events", e.Events), slog.String("execution", e.ID), slog.String("session", e.Session),
		slog.String("turn", e.Turn), slog.String("project", e.Project))
}
