package hub

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"cove/internal/ident"
	"cove/internal/kernel"
	"cove/internal/named"
	"cove/internal/problem"
	"cove/internal/telemetry"
	"cove/internal/transcript"
)

const (
	recoverBatch = 500
	everything   = 1 << 30
)

// Recover brings the records in line with the machine after a start: what a killed server left running is lost or taken back, executions
// without an end get one. Call it once, before anything else.
func (h *Hub) Recover(ctx context.Context) error {
	began, before := h.now(), h.lost.Load()
	if err := h.recoverExecutions(ctx); err != nil {
		return fmt.Errorf("recover executions: %w", err)
	}
	if err := h.recoverTurns(ctx); err != nil {
		return fmt.Errorf("recover turns: %w", err)
	}
	if err := h.recoverSessions(ctx); err != nil {
		return fmt.Errorf("recover sessions: %w", err)
	}
	h.log.LogAttrs(ctx, slog.LevelInfo, "recovered", slog.Int64("lost", h.lost.Load()-before), slog.Float64("seconds", h.now().Sub(began).Seconds()))
	return nil
}

// recoverExecutions ends what a killed server ran. The end of a step's events is the business of its turn.
func (h *Hub) recoverExecutions(ctx context.Context) error {
	body, err := transcript.Event(kernel.Done{
		Outcome: kernel.Outcome(ExecutionLost), ExitCode: 1, Lost: kernel.LostSession, Message: "the server ended while the code waited or ran; what it did is not known",
	})
	if err != nil {
		return err
	}
	for {
		unfinished, err := h.o.Store.UnfinishedExecutions(ctx, recoverBatch)
		if err != nil || len(unfinished) == 0 {
			return err
		}
		ended := 0
		for _, e := range unfinished {
			first, err := h.loseExecution(ctx, e, body)
			if err != nil {
				return err
			}
			if first {
				ended++
			}
		}
		if ended == 0 {
			return problem.New(problem.Internal, "recover_stuck", "executions that a former server left cannot be ended")
		}
	}
}

func (h *Hub) loseExecution(ctx context.Context, e Execution, body []byte) (first bool, err error) {
	var last []StoredEvent
	if e.Turn == "" {
		if last, err = h.lostEnd(ctx, e.ID, e.ID, 0, body); err != nil {
			return false, err
		}
		e.Events = last[len(last)-1].Seq
	}
	e.Lost = kernel.LostSession
	if e.State == ExecutionQueued {
		e.Lost = kernel.LostNothing
	}
	e.State, e.Finished, e.ExitCode = ExecutionLost, h.now(), 1
	e.Message = "the server ended while the code waited or ran; what it did is not known"
	if first, err = h.o.Store.FinishExecution(ctx, e, last); first && err == nil {
		h.lost.Add(1)
		telemetry.Count(ctx, telemetry.Executions, 1, string(ExecutionLost))
		h.log.LogAttrs(ctx, slog.LevelInfo, "execution lost", slog.String("execution", e.ID), slog.String("session", e.Session), slog.String("turn", e.Turn),
			slog.String("project", e.Project))
	}
	return first, err
}

// recoverSessions finds out what there is of sessions that were in memory, and removes what belongs to nobody.
func (h *Hub) recoverSessions(ctx context.Context) error {
	if err := h.o.Sessions.Sweep(); err != nil {
		return err
	}
	infos, err := h.o.Sessions.List()
	if err != nil {
		return err
	}
	there := map[string]named.Info{}
	for _, info := range infos {
		there[info.Name] = info
	}
	rows, err := h.o.Store.SessionsWhere(ctx, Where{States: []SessionState{SessionActive, SessionPaused, SessionLost}}, everything)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, row := range rows {
		known[row.ID] = true
		info, ok := there[row.ID]
		state, reason, err := h.settleSession(ctx, row, info, ok)
		if err != nil {
			return err
		}
		if state == SessionLost && row.State != SessionLost {
			h.lost.Add(1)
			h.sessionSeen(ctx, string(SessionLost), row.ID, row.Project, slog.String("reason", reason))
		}
	}
	return h.removeOrphans(ctx, there, known)
}

// settleSession records what a session is that no server has in memory, and what it lost.
func (h *Hub) settleSession(ctx context.Context, row Session, info named.Info, ok bool) (state SessionState, reason string, err error) {
	state, reason = found(row, info, ok)
	if state == row.State && reason == row.Reason {
		return state, reason, nil
	}
	lost := row.Rollback
	if state == SessionLost || ok && info.State == named.Lost {
		why := reason
		if info.State == named.Lost {
			reason, why = cmp.Or(reason, serverEnded(info)), "the server ended while it was in memory"
		}
		lost, err = h.rollback(ctx, row, info.Head.Saved, why)
		if err != nil {
			return state, reason, err
		}
		switch fresh := len(lost.Executions); {
		case row.Rollback != nil && fresh == len(row.Rollback.Executions), row.Rollback == nil && fresh == 0:
			if info.Kept && state == SessionLost && info.State == named.Lost {
				state, reason = SessionPaused, "" // only files were put in, and those are kept
			}
			if state != SessionLost {
				reason, lost = "", row.Rollback
			}
		default:
			state = SessionLost
		}
	}
	_, err = h.o.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
		if s.State == SessionDeleted {
			return nil
		}
		s.State, s.Reason, s.Saved, s.Rollback = state, reason, info.Head.Saved, lost
		if s.Disk = 0; ok && info.Head.Snapshot != "" {
			s.Disk = info.Disk
		}
		return nil
	})
	return state, reason, err
}

// found says what a session is whose server has ended. A session was used since it was brought into memory when its record was touched after that.
func found(row Session, info named.Info, ok bool) (SessionState, string) {
	if row.State == SessionLost || row.State == SessionPaused && ok && info.State != named.Lost {
		return row.State, row.Reason
	}
	switch {
	case !ok:
		return SessionLost, "its files are gone; it starts anew"
	case info.State == named.Broken:
		return SessionLost, "its files are damaged: " + info.Reason
	case info.State == named.Lost && (info.Running == nil || row.Used.After(info.Running.Since) && row.Used.After(info.Head.Saved)):
		return SessionLost, serverEnded(info)
	}
	return SessionPaused, ""
}

// serverEnded says what the end of a server cost a session that it had in memory.
func serverEnded(info named.Info) string {
	remains := "it starts anew"
	if info.Head.Snapshot != "" {
		remains = "variables and files since " + info.Head.Saved.UTC().Format("2006-01-02 15:04:05") + " UTC are lost"
	}
	return "the server ended while it was in memory; " + remains
}

// removeOrphans removes sessions from the disk that no record has: of deleted ones, and of ones that were never made whole.
func (h *Hub) removeOrphans(ctx context.Context, there map[string]named.Info, known map[string]bool) error {
	var orphans []string
	for name := range there {
		if ident.Valid(ident.Session, name) && !known[name] {
			orphans = append(orphans, name)
		}
	}
	if len(orphans) > 0 && len(known) == 0 {
		deleted, err := h.o.Store.SessionsWhere(ctx, Where{States: []SessionState{SessionDeleted}}, 1)
		if err != nil {
			return err
		}
		if len(deleted) == 0 {
			h.log.WarnContext(ctx, "the folder of sessions belongs to another database; nothing in it is removed", "folder", h.o.Sessions.Dir, "sessions", len(orphans))
			return nil
		}
	}
	for _, name := range orphans {
		if err := h.o.Sessions.Remove(ctx, name, command); err != nil {
			h.log.WarnContext(ctx, "what is left of a session was not removed", "session", name, "error", err)
			continue
		}
		h.log.InfoContext(ctx, "what was left of a session was removed", "session", name)
	}
	return nil
}
