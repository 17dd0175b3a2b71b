package live

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
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
	"cove/internal/sessions/ondisk"
)

const (
	// RecoverBatch is how many records of dead owners are read at once.
	RecoverBatch = 500
	everything   = 1 << 30
	orphanAge    = 10 * time.Minute
)

// Recover ends the unfinished work of dead owners, and finds out what of their sessions is lost; the work of living owners is not touched. For an owner that is
// alone in its home, Recover also brings all records of the home in line with its disk, and removes from the disk what no record refers to; for others it costs
// three queries. Call it once, before anything else; Run repeats it, except for the disk.
func (m *Manager) Recover(ctx context.Context) error {
	began, before := m.work.Now(), m.Lost.Load()
	if err := m.recoverAbandoned(ctx); err != nil {
		return err
	}
	if m.o.Owner == nil || m.o.Owner.Alone() {
		if err := m.recoverHome(ctx); err != nil {
			return fmt.Errorf("recover sessions: %w", err)
		}
		if err := m.library.SweepVolumes(ctx); err != nil {
			m.work.Log.WarnContext(ctx, "folders of volumes were not removed", "error", err)
		}
		if err := m.library.SweepUploads(ctx); err != nil {
			m.work.Log.WarnContext(ctx, "expired uploads were not removed", "error", err)
		}
	}
	m.work.Log.LogAttrs(ctx, slog.LevelInfo, "recovered", slog.Int64("lost", m.Lost.Load()-before), slog.Float64("seconds", m.work.Now().Sub(began).Seconds()))
	return nil
}

// recoverExecutions ends the executions of killed servers. For an execution that is a step, recoverTurns ends the events.
func (m *Manager) recoverExecutions(ctx context.Context) error {
	body, err := transcript.Event(kernel.Done{
		Outcome: kernel.Outcome(record.ExecutionLost), ExitCode: 1, Lost: kernel.LostSession, Message: "cove ended while the code waited or ran; what it did is not known",
	})
	if err != nil {
		return err
	}
	for before := ""; ; {
		unfinished, err := m.work.Store.AbandonedExecutions(ctx, RecoverBatch)
		if err != nil || len(unfinished) == 0 {
			return err
		}
		if unfinished[0].ID == before { // another process may have ended it, but then it is not listed again
			return problem.New(problem.RecoverStuck, "unfinished executions of a former server cannot be ended")
		}
		before = unfinished[0].ID
		for _, e := range unfinished {
			if _, err := m.loseExecution(ctx, e, body); err != nil && !problem.Is(err, problem.NotFound) {
				return err
			}
		}
	}
}

func (m *Manager) loseExecution(ctx context.Context, e record.Execution, body []byte) (first bool, err error) {
	var last []stream.Event
	if !e.IsStep() {
		if last, err = m.Streams.Ending(ctx, e.ID, stream.Event{Origin: stream.Origin{Part: e.ID}, Body: body}); err != nil {
			return false, err
		}
		e.Events = last[len(last)-1].Seq
	}
	e.Lost = kernel.LostSession
	if e.State == record.ExecutionQueued {
		e.Lost = kernel.LostNothing
	}
	e.State, e.Finished, e.ExitCode = record.ExecutionLost, m.work.Now(), 1
	e.Message = "cove ended while the code waited or ran; what it did is not known"
	if first, err = m.work.Store.FinishExecution(ctx, e, last); err == nil && e.Detached {
		err = m.hooks.LoseWaiting(ctx, e)
	}
	if first && err == nil {
		m.Lost.Add(1)
		telemetry.Count(ctx, telemetry.Executions, 1, string(record.ExecutionLost))
		m.work.Log.LogAttrs(ctx, slog.LevelInfo, "execution lost", slog.String("execution", e.ID), slog.String("session", e.Session), slog.String("turn", e.Turn),
			slog.String("project", e.Project))
	}
	return first, err
}

// recoverHome finds out what is left of the sessions of this home that no living process has in memory, and removes sessions without a record.
func (m *Manager) recoverHome(ctx context.Context) error {
	if err := m.o.Sessions.Sweep(); err != nil {
		return err
	}
	infos, err := m.o.Sessions.List() // listed before the records are read: a session that another process makes meanwhile has its record before its folder
	if err != nil {
		return err
	}
	there := map[string]ondisk.Info{}
	for _, info := range infos {
		there[info.Name] = info
	}
	where := record.Where{States: []record.SessionState{record.SessionActive, record.SessionPaused, record.SessionLost}, Home: m.work.HomeID()}
	rows, err := m.work.Store.SessionsWhere(ctx, where, everything)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, row := range rows {
		known[row.ID] = true
	}
	where.Free, where.By = true, m.work.OwnerID()
	if rows, err = m.work.Store.SessionsWhere(ctx, where, everything); err != nil {
		return err
	}
	for _, row := range rows {
		info, ok := there[row.ID]
		if ok && info.State == ondisk.Running {
			continue // a process of this home has loaded it since
		}
		if err := m.settleSession(ctx, row, info, ok); err != nil {
			return err
		}
	}
	return m.removeOrphans(ctx, there, known)
}

// settleSession records the state of a session of this home that no process has in memory, and what it lost.
func (m *Manager) settleSession(ctx context.Context, row record.Session, info ondisk.Info, ok bool) error {
	was := row.State
	if row.Owner != "" {
		row.State, row.Reason = record.SessionActive, "" // whatever a process of another home, which cannot see this disk, has recorded
	}
	state, reason, lost, err := m.findRemains(ctx, row, info, ok)
	if err != nil || state == was && reason == row.Reason && row.Owner == "" && row.Home == m.work.HomeID() {
		return err
	}
	mine := false
	_, err = m.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *record.Session) error {
		if mine = s.State != record.SessionDeleted && s.Owner == row.Owner; !mine {
			return nil
		}
		if s.Home, s.Owner = m.work.HomeID(), ""; state == row.State && reason == row.Reason {
			return nil
		}
		s.State, s.Reason, s.Saved, s.Rollback = state, reason, info.Head.Saved, lost
		if s.Disk = 0; ok && info.Head.Snapshot != "" {
			s.Disk = info.Disk
		}
		return nil
	})
	if mine && err == nil && state == record.SessionLost && was != record.SessionLost {
		m.Lost.Add(1)
		m.sessionSeen(ctx, string(record.SessionLost), row.ID, row.Project, slog.String("reason", reason))
	}
	return err
}

// findRemains returns the state of a session that was in the memory of a process which has ended, and what the session lost.
func (m *Manager) findRemains(ctx context.Context, row record.Session, info ondisk.Info, ok bool) (state record.SessionState, reason string, lost *record.Rollback, err error) {
	state, reason = stateOfRow(row, info, ok)
	if state == row.State && reason == row.Reason {
		return state, reason, row.Rollback, nil
	}
	lost = row.Rollback
	if state == record.SessionLost || ok && info.State == ondisk.Lost {
		why := reason
		if info.State == ondisk.Lost {
			reason, why = cmp.Or(reason, serverEnded(info)), "the server ended while it was in memory"
		}
		lost, err = m.FindRollback(ctx, row, info.Head.Saved, why)
		if err != nil {
			return state, reason, nil, err
		}
		switch fresh := len(lost.Executions); {
		case row.Rollback != nil && fresh == len(row.Rollback.Executions), row.Rollback == nil && fresh == 0:
			if info.Kept && state == record.SessionLost && info.State == ondisk.Lost {
				state, reason = record.SessionPaused, "" // only clients changed files, and the journal has these changes
			}
			if state != record.SessionLost {
				reason, lost = "", row.Rollback
			}
		default:
			state = record.SessionLost
		}
	}
	return state, reason, lost, nil
}

// stateOfRow returns the state of a session whose server has ended. When its record was touched after the session was loaded, the session was used since.
func stateOfRow(row record.Session, info ondisk.Info, ok bool) (record.SessionState, string) {
	if row.State == record.SessionLost || row.State == record.SessionPaused && ok && info.State != ondisk.Lost {
		return row.State, row.Reason
	}
	switch {
	case !ok:
		return record.SessionLost, "its files are gone; it starts anew"
	case info.State == ondisk.Broken:
		return record.SessionLost, "its files are damaged: " + info.Reason
	case info.State == ondisk.Lost && (info.Running == nil || row.Used.After(info.Running.Since) && row.Used.After(info.Head.Saved)):
		return record.SessionLost, serverEnded(info)
	}
	return record.SessionPaused, ""
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
func (m *Manager) removeOrphans(ctx context.Context, there map[string]ondisk.Info, known map[string]bool) error {
	var orphans []string
	for name := range there {
		if ident.Valid(ident.Session, name) && !known[name] {
			orphans = append(orphans, name)
		}
	}
	if len(orphans) > 0 && len(known) == 0 {
		deleted, err := m.work.Store.SessionsWhere(ctx, record.Where{States: []record.SessionState{record.SessionDeleted}, Home: m.work.HomeID()}, 1)
		if err != nil {
			return err
		}
		if len(deleted) == 0 {
			m.work.Log.WarnContext(ctx, "the folder of sessions belongs to another database; nothing in it is removed", "folder", m.o.Sessions.Dir, "sessions", len(orphans))
			return nil
		}
	}
	shared, err := m.neighbours(ctx)
	if err != nil {
		return err
	}
	for _, name := range orphans {
		if shared && m.work.Now().Sub(there[name].Created) < orphanAge {
			continue // another process may be about to record it
		}
		if err := m.o.Sessions.Remove(ctx, name, m.o.Command); err != nil {
			m.work.Log.WarnContext(ctx, "the files of a session without a record were not removed", "session", name, "error", err)
			continue
		}
		m.work.Log.InfoContext(ctx, "the files of a session without a record were removed", "session", name)
	}
	return nil
}
