package hub

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/python/kernel"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
	"cove/internal/sessions/ondisk"
)

const (
	recoverBatch = 500
	everything   = 1 << 30
	orphanAge    = 10 * time.Minute
)

// Recover ends the unfinished work of dead owners, and finds out what of their sessions is lost; the work of living owners is not touched. For an owner that is
// alone in its home, Recover also brings all records of the home in line with its disk, and removes from the disk what no record refers to; for others it costs
// three queries. Call it once, before anything else; Run repeats it, except for the disk.
func (h *Hub) Recover(ctx context.Context) error {
	began, before := h.work.Now(), h.lost.Load()
	if err := h.recoverAbandoned(ctx); err != nil {
		return err
	}
	if h.o.Owner == nil || h.o.Owner.Alone() {
		if err := h.recoverHome(ctx); err != nil {
			return fmt.Errorf("recover sessions: %w", err)
		}
		if err := h.SweepVolumes(ctx); err != nil {
			h.work.Log.WarnContext(ctx, "folders of volumes were not removed", "error", err)
		}
		if err := h.SweepUploads(ctx); err != nil {
			h.work.Log.WarnContext(ctx, "expired uploads were not removed", "error", err)
		}
	}
	h.work.Log.LogAttrs(ctx, slog.LevelInfo, "recovered", slog.Int64("lost", h.lost.Load()-before), slog.Float64("seconds", h.work.Now().Sub(began).Seconds()))
	return nil
}

// recoverExecutions ends the executions of killed servers. For an execution that is a step, recoverTurns ends the events.
func (h *Hub) recoverExecutions(ctx context.Context) error {
	body, err := transcript.Event(kernel.Done{
		Outcome: kernel.Outcome(ExecutionLost), ExitCode: 1, Lost: kernel.LostSession, Message: "cove ended while the code waited or ran; what it did is not known",
	})
	if err != nil {
		return err
	}
	for before := ""; ; {
		unfinished, err := h.work.Store.AbandonedExecutions(ctx, recoverBatch)
		if err != nil || len(unfinished) == 0 {
			return err
		}
		if unfinished[0].ID == before { // another process may have ended it, but then it is not listed again
			return problem.New(problem.RecoverStuck, "unfinished executions of a former server cannot be ended")
		}
		before = unfinished[0].ID
		for _, e := range unfinished {
			if _, err := h.loseExecution(ctx, e, body); err != nil && !problem.Is(err, problem.NotFound) {
				return err
			}
		}
	}
}

func (h *Hub) loseExecution(ctx context.Context, e Execution, body []byte) (first bool, err error) {
	var last []stream.Event
	if !e.IsStep() {
		if last, err = h.streams.Ending(ctx, e.ID, stream.Event{Origin: stream.Origin{Part: e.ID}, Body: body}); err != nil {
			return false, err
		}
		e.Events = last[len(last)-1].Seq
	}
	e.Lost = kernel.LostSession
	if e.State == ExecutionQueued {
		e.Lost = kernel.LostNothing
	}
	e.State, e.Finished, e.ExitCode = ExecutionLost, h.work.Now(), 1
	e.Message = "cove ended while the code waited or ran; what it did is not known"
	if first, err = h.work.Store.FinishExecution(ctx, e, last); err == nil && e.Detached {
		err = h.loseWaiting(ctx, e)
	}
	if first && err == nil {
		h.lost.Add(1)
		telemetry.Count(ctx, telemetry.Executions, 1, string(ExecutionLost))
		h.work.Log.LogAttrs(ctx, slog.LevelInfo, "execution lost", slog.String("execution", e.ID), slog.String("session", e.Session), slog.String("turn", e.Turn),
			slog.String("project", e.Project))
	}
	return first, err
}

// recoverHome finds out what is left of the sessions of this home that no living process has in memory, and removes sessions without a record.
func (h *Hub) recoverHome(ctx context.Context) error {
	if err := h.o.Sessions.Sweep(); err != nil {
		return err
	}
	infos, err := h.o.Sessions.List() // listed before the records are read: a session that another process makes meanwhile has its record before its folder
	if err != nil {
		return err
	}
	there := map[string]ondisk.Info{}
	for _, info := range infos {
		there[info.Name] = info
	}
	where := Where{States: []SessionState{SessionActive, SessionPaused, SessionLost}, Home: h.work.HomeID()}
	rows, err := h.work.Store.SessionsWhere(ctx, where, everything)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, row := range rows {
		known[row.ID] = true
	}
	where.Free, where.By = true, h.work.OwnerID()
	if rows, err = h.work.Store.SessionsWhere(ctx, where, everything); err != nil {
		return err
	}
	for _, row := range rows {
		info, ok := there[row.ID]
		if ok && info.State == ondisk.Running {
			continue // a process of this home has loaded it since
		}
		if err := h.settleSession(ctx, row, info, ok); err != nil {
			return err
		}
	}
	return h.removeOrphans(ctx, there, known)
}

// settleSession records the state of a session of this home that no process has in memory, and what it lost.
func (h *Hub) settleSession(ctx context.Context, row Session, info ondisk.Info, ok bool) error {
	was := row.State
	if row.Owner != "" {
		row.State, row.Reason = SessionActive, "" // whatever a process of another home, which cannot see this disk, has recorded
	}
	state, reason, lost, err := h.remains(ctx, row, info, ok)
	if err != nil || state == was && reason == row.Reason && row.Owner == "" && row.Home == h.work.HomeID() {
		return err
	}
	mine := false
	_, err = h.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
		if mine = s.State != SessionDeleted && s.Owner == row.Owner; !mine {
			return nil
		}
		if s.Home, s.Owner = h.work.HomeID(), ""; state == row.State && reason == row.Reason {
			return nil
		}
		s.State, s.Reason, s.Saved, s.Rollback = state, reason, info.Head.Saved, lost
		if s.Disk = 0; ok && info.Head.Snapshot != "" {
			s.Disk = info.Disk
		}
		return nil
	})
	if mine && err == nil && state == SessionLost && was != SessionLost {
		h.lost.Add(1)
		h.sessionSeen(ctx, string(SessionLost), row.ID, row.Project, slog.String("reason", reason))
	}
	return err
}

// remains returns the state of a session that was in the memory of a process which has ended, and what the session lost.
func (h *Hub) remains(ctx context.Context, row Session, info ondisk.Info, ok bool) (state SessionState, reason string, lost *Rollback, err error) {
	state, reason = found(row, info, ok)
	if state == row.State && reason == row.Reason {
		return state, reason, row.Rollback, nil
	}
	lost = row.Rollback
	if state == SessionLost || ok && info.State == ondisk.Lost {
		why := reason
		if info.State == ondisk.Lost {
			reason, why = cmp.Or(reason, serverEnded(info)), "the server ended while it was in memory"
		}
		lost, err = h.rollback(ctx, row, info.Head.Saved, why)
		if err != nil {
			return state, reason, nil, err
		}
		switch fresh := len(lost.Executions); {
		case row.Rollback != nil && fresh == len(row.Rollback.Executions), row.Rollback == nil && fresh == 0:
			if info.Kept && state == SessionLost && info.State == ondisk.Lost {
				state, reason = SessionPaused, "" // only clients changed files, and the journal has these changes
			}
			if state != SessionLost {
				reason, lost = "", row.Rollback
			}
		default:
			state = SessionLost
		}
	}
	return state, reason, lost, nil
}

// found returns the state of a session whose server has ended. When its record was touched after the session was loaded, the session was used since.
func found(row Session, info ondisk.Info, ok bool) (SessionState, string) {
	if row.State == SessionLost || row.State == SessionPaused && ok && info.State != ondisk.Lost {
		return row.State, row.Reason
	}
	switch {
	case !ok:
		return SessionLost, "its files are gone; it starts anew"
	case info.State == ondisk.Broken:
		return SessionLost, "its files are damaged: " + info.Reason
	case info.State == ondisk.Lost && (info.Running == nil || row.Used.After(info.Running.Since) && row.Used.After(info.Head.Saved)):
		return SessionLost, serverEnded(info)
	}
	return SessionPaused, ""
}

// serverEnded says what a session lost when the server that had it in memory ended.
func serverEnded(info ondisk.Info) string {
	remains := "it starts anew"
	if info.Head.Snapshot != "" {
		remains = "variables and files since " + info.Head.Saved.UTC().Format("2006-01-02 15:04:05") + " UTC are lost"
	}
	return "the server ended while it was in memory; " + remains
}

// removeOrphans removes sessions without a record from the disk: those of deleted sessions, and of sessions that were never completed.
func (h *Hub) removeOrphans(ctx context.Context, there map[string]ondisk.Info, known map[string]bool) error {
	var orphans []string
	for name := range there {
		if ident.Valid(ident.Session, name) && !known[name] {
			orphans = append(orphans, name)
		}
	}
	if len(orphans) > 0 && len(known) == 0 {
		deleted, err := h.work.Store.SessionsWhere(ctx, Where{States: []SessionState{SessionDeleted}, Home: h.work.HomeID()}, 1)
		if err != nil {
			return err
		}
		if len(deleted) == 0 {
			h.work.Log.WarnContext(ctx, "the folder of sessions belongs to another database; nothing in it is removed", "folder", h.o.Sessions.Dir, "sessions", len(orphans))
			return nil
		}
	}
	shared, err := h.neighbours(ctx)
	if err != nil {
		return err
	}
	for _, name := range orphans {
		if shared && h.work.Now().Sub(there[name].Created) < orphanAge {
			continue // another process may be about to record it
		}
		if err := h.o.Sessions.Remove(ctx, name, h.o.Command); err != nil {
			h.work.Log.WarnContext(ctx, "the files of a session without a record were not removed", "session", name, "error", err)
			continue
		}
		h.work.Log.InfoContext(ctx, "the files of a session without a record were removed", "session", name)
	}
	return nil
}
