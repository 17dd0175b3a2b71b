package live

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/transcript"
)

// Bounds of a Rollback.
const (
	mostRolledBack = 100  // executions that are named
	mostSearched   = 1000 // executions that are counted
	mostFilesNamed = 1000
	searchedAtOnce = 1 << 20 // bytes of events
	lastEvents     = 100     // events of an execution that are searched for its files, which are emitted at its end
)

// lostSandbox is the reason of a rollback after a sandbox has ended while no code ran in it.
const lostSandbox = "its sandbox was lost"

// FindRollback finds out what a session lost that goes on from the state that was saved at to. It includes an earlier rollback that no client has acknowledged.
func (m *Manager) FindRollback(ctx context.Context, row record.Session, to time.Time, reason string) (*record.Rollback, error) {
	lost, err := m.work.Store.ExecutionsSince(ctx, row.Project, row.ID, to, mostSearched)
	if err != nil {
		return nil, err
	}
	r := &record.Rollback{At: m.work.Now(), To: to.Truncate(time.Microsecond).UTC(), Reason: reason, Executions: []string{}, Files: []string{}}
	if before := row.Rollback; before != nil {
		r.Executions, r.More, r.Files = slices.Clone(before.Executions), before.More, slices.Clone(before.Files)
	}
	for _, e := range lost {
		if slices.Contains(r.Executions, e.ID) {
			continue
		}
		if len(r.Executions) >= mostRolledBack {
			r.More++
			continue
		}
		r.Executions = append(r.Executions, e.ID)
		if err := m.addFiles(ctx, r, e); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addFiles adds the files that an execution has made or changed.
func (m *Manager) addFiles(ctx context.Context, r *record.Rollback, e record.Execution) error {
	stream, after := e.ID, max(0, e.Events-lastEvents)
	if e.Turn != "" {
		stream, after = e.Turn, 0
	}
	for len(r.Files) < mostFilesNamed {
		events, err := m.work.Store.Events(ctx, stream, e.ID, after, lastEvents, searchedAtOnce)
		if err != nil {
			return err
		}
		for _, event := range events {
			after = event.Seq
			if path, ok := filePath(event.Body, e.Turn != ""); ok && !slices.Contains(r.Files, path) && len(r.Files) < mostFilesNamed {
				r.Files = append(r.Files, path)
			}
		}
		if len(events) == 0 {
			return nil
		}
	}
	return nil
}

// filePath reads the path of a File event, alone or in an event of a turn.
func filePath(body []byte, ofTurn bool) (string, bool) {
	if ofTurn {
		body = transcript.OutputOf(body)
	}
	if transcript.TypeOf(body) != "file" {
		return "", false
	}
	event, err := transcript.ParseEvent(body)
	f, ok := event.(kernel.File)
	return f.Path, ok && err == nil
}

// noteSandboxLoss records that a session in memory has lost its sandbox and goes on from its saved state, if anything was lost by that.
func (m *Manager) noteSandboxLoss(ctx context.Context, session, reason string) {
	m.LoseParked(session, lostWaiting(reason))
	m.mu.Lock()
	s := m.seats[session]
	m.mu.Unlock()
	if s == nil || s.name == nil {
		return // evict records the loss
	}
	row, err := m.work.Store.Session(ctx, s.project, s.id)
	var r *record.Rollback
	if err == nil {
		r, err = m.FindRollback(ctx, row, s.name.Head().Saved, reason)
	}
	if err == nil && len(r.Executions) > 0 {
		err = m.NoteRollback(ctx, s.project, s.id, r)
	}
	if err != nil {
		m.work.Log.ErrorContext(ctx, "a session's loss was not recorded", "session", s.id, "error", err)
	}
}

// NoteRollback records what a session lost. The session's next execution reports it.
func (m *Manager) NoteRollback(ctx context.Context, project, session string, r *record.Rollback) error {
	m.LoseParked(session, lostWaiting(r.Reason))
	m.setRollback(session, r)
	return m.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		_, err := m.work.Store.UpdateSession(ctx, project, session, func(row *record.Session) error {
			row.Rollback = r
			return nil
		})
		return err
	})
}

// noteVanished records that the files of a session are gone from the disk, so that the session starts anew.
func (m *Manager) noteVanished(ctx context.Context, s *seat, row record.Session) error {
	r, err := m.FindRollback(ctx, row, time.Time{}, "its files are gone")
	if err != nil {
		return err
	}
	m.work.Log.ErrorContext(ctx, "the files of a session are gone from the disk", "session", s.id)
	return m.NoteRollback(ctx, s.project, s.id, r)
}

// noteRenewed records that a session could not be restored and started anew with its files, as can happen after an upgrade of the server.
func (m *Manager) noteRenewed(ctx context.Context, s *seat, why string) error {
	m.work.Log.WarnContext(ctx, "a session was started anew with its files", "session", s.id, "why", "it "+why)
	return m.NoteRollback(ctx, s.project, s.id, &record.Rollback{At: m.work.Now(), Reason: "it " + why, Executions: []string{}, Files: []string{}})
}

func (m *Manager) setRollback(session string, r *record.Rollback) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seats[session]; s != nil {
		s.rollback = r
	}
}

// TakeRollback returns what a session in memory has lost and no client was told yet, once.
func (m *Manager) TakeRollback(ctx context.Context, project, session string) *record.Rollback {
	m.mu.Lock()
	s := m.seats[session]
	if s == nil || s.rollback == nil || s.rollback.Told {
		m.mu.Unlock()
		return nil
	}
	r := *s.rollback
	told := r
	told.Told = true
	s.rollback = &told
	m.mu.Unlock()
	_, err := m.work.Store.UpdateSession(ctx, project, session, func(row *record.Session) error {
		if row.Rollback != nil && row.Rollback.At.Equal(r.At) {
			row.Rollback.Told = true
		}
		return nil
	})
	if err != nil {
		m.work.Log.WarnContext(ctx, "a rollback may be reported twice", "session", session, "error", err)
	}
	m.work.Log.LogAttrs(ctx, slog.LevelInfo, "rollback told", slog.String("session", session), slog.Int("executions", len(r.Executions)+r.More))
	return &r
}

// AcknowledgeRollback removes a session's Rollback, which a client has taken note of. Needs auth.SessionsWrite.
func (m *Manager) AcknowledgeRollback(ctx context.Context, who auth.Principal, id string) (record.Session, error) {
	row, err := record.Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		row, err = m.work.Store.UpdateSession(ctx, who.Project, id, func(s *record.Session) error {
			if s.State == record.SessionDeleted {
				return SessionGone()
			}
			s.Rollback = nil
			return nil
		})
	}
	if err == nil {
		m.setRollback(id, nil)
	}
	m.work.WriteAudit(ctx, who, "session.acknowledge", id, "", err)
	if problem.Is(err, problem.NotFound) {
		err = SessionGone()
	}
	if err != nil {
		return record.Session{}, err
	}
	return m.withLiveState(row), nil
}
