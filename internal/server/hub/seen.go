package hub

import (
	"context"
	"log/slog"

	"cove/internal/core/telemetry"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// The names of spans that are not stages of telemetry.
const (
	spanExecution = "execution"
	spanTurn      = "turn"
	spanLook      = "look" // the interpreter reads files
)

// The changes of sessions that are counted.
const (
	sessionCreated  = "created"
	sessionResumed  = "resumed"
	sessionForked   = "forked"
	sessionReturned = "returned"
)

// show registers the metrics of what is in memory.
func (h *Hub) show(t *telemetry.Telemetry) {
	t.Gauge("cove_sessions_live", "Sessions in memory.", func() float64 {
		h.mu.Lock()
		defer h.mu.Unlock()
		return float64(len(h.seats))
	})
	t.Gauge("cove_sessions_capacity", "Sessions that may be in memory.", func() float64 { return float64(h.capacity) })
	t.Gauge("cove_sessions_memory_bytes", "Memory of the sessions that are in memory, without what they have in common.", telemetry.Costly(h.memoryTaken))
	t.Gauge("cove_executions_running", "Executions that run.", func() float64 { return float64(h.slots.taken()) })
	t.Gauge("cove_executions_queued", "Executions that wait for their kernel or for the server.", func() float64 {
		running := h.slots.taken()
		h.mu.Lock()
		defer h.mu.Unlock()
		return float64(max(0, len(h.executions)-running))
	})
	t.Gauge("cove_turns_running", "Turns that run.", func() float64 { return float64(h.turns.count()) })
}

// memoryTaken is what the sessions in memory take, in bytes, as far as their engine tells.
func (h *Hub) memoryTaken() float64 {
	var all []ondisk.Weigher
	h.mu.Lock()
	for _, s := range h.seats {
		if w, ok := s.live.(ondisk.Weigher); ok {
			all = append(all, w)
		}
	}
	h.mu.Unlock()
	sum := int64(0)
	for _, w := range all { // without mu: the system is asked about each
		sum += w.Memory()
	}
	return float64(sum)
}

// sessionSeen counts and logs a change of a session.
func (h *Hub) sessionSeen(ctx context.Context, change, session, project string, attrs ...slog.Attr) {
	telemetry.Count(ctx, telemetry.Sessions, 1, change)
	level := slog.LevelInfo
	if change == string(SessionLost) {
		level = slog.LevelWarn
	}
	attrs = append([]slog.Attr{slog.String("change", change), slog.String("session", session), slog.String("project", project)}, attrs...)
	h.work.Log.LogAttrs(ctx, level, "session", attrs...)
}

// executionSeen measures and logs the end of an execution.
func (h *Hub) executionSeen(t *liveExecution, e Execution) {
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
	if !h.work.Log.Enabled(ctx, level) {
		return
	}
	waited := e.Finished.Sub(e.Created)
	if !e.Started.IsZero() {
		waited = e.Started.Sub(e.Created)
	}
	h.work.Log.LogAttrs(ctx, level, "execution finished", slog.String("outcome", outcome), slog.Float64("seconds", e.Wall.Seconds()),
		slog.Float64("waited", waited.Seconds()), slog.Int64("events", e.Events), slog.String("execution", e.ID), slog.String("session", e.Session),
		slog.String("turn", e.Turn), slog.String("project", e.Project))
}

// turnSeen counts and logs the end of a turn.
func (h *Hub) turnSeen(ctx context.Context, t Turn) {
	telemetry.Count(ctx, telemetry.Turns, 1, string(t.State))
	telemetry.Note(ctx, slog.String("outcome", string(t.State)), slog.Int("steps", t.Steps))
	h.work.Log.LogAttrs(ctx, slog.LevelInfo, "turn finished", slog.String("outcome", string(t.State)), slog.Float64("seconds", t.Finished.Sub(t.Created).Seconds()),
		slog.Int("steps", t.Steps), slog.Int64("tokens_in", t.Usage.InputTokens), slog.Int64("tokens_out", t.Usage.OutputTokens), slog.String("model", t.Model),
		slog.String("turn", t.ID), slog.String("conversation", t.Conversation), slog.String("session", t.Session), slog.String("project", t.Project))
}
