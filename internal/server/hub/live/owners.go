package live

import (
	"context"
	"fmt"
	"log/slog"

	"cove/internal/server/hub/record"
	"cove/internal/server/ownership"
)

// recoverAbandoned ends what dead owners left. Several processes may do so at the same time.
func (m *Manager) recoverAbandoned(ctx context.Context) error {
	if err := m.recoverExecutions(ctx); err != nil {
		return fmt.Errorf("recover executions: %w", err)
	}
	if err := m.hooks.RecoverTurns(ctx); err != nil {
		return fmt.Errorf("recover turns: %w", err)
	}
	rows, err := m.work.Store.AbandonedSessions(ctx, m.work.HomeID(), RecoverBatch)
	if err != nil {
		return fmt.Errorf("recover sessions: %w", err)
	}
	for _, row := range rows {
		if row.Home != "" && row.Home != m.work.HomeID() {
			err = m.loseElsewhere(ctx, row)
		} else {
			_, err = m.exclusively(row.Project, row.ID, func() error { return m.correctRecord(ctx, row) })
		}
		if err != nil {
			return fmt.Errorf("recover session %s: %w", row.ID, err)
		}
	}
	return nil
}

// loseElsewhere records that a session of another home was lost with its server. It keeps its owner: that home settles it against its disk.
func (m *Manager) loseElsewhere(ctx context.Context, row record.Session) error {
	mine := false
	_, err := m.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *record.Session) error {
		if mine = s.State == record.SessionActive && s.Owner == row.Owner; mine {
			s.State, s.Reason = record.SessionLost, "the server that had the session in memory ended; what of the session was saved is known when that server runs again"
		}
		return nil
	})
	if mine && err == nil {
		m.Lost.Add(1)
		m.sessionSeen(ctx, string(record.SessionLost), row.ID, row.Project, slog.String("home", row.Home))
	}
	return err
}

// settleAbandoned finds out what is left of a session of this home that a dead process had in memory.
func (m *Manager) settleAbandoned(ctx context.Context, row record.Session) (record.Session, error) {
	if _, err := m.exclusively(row.Project, row.ID, func() error { return m.correctRecord(ctx, row) }); err != nil {
		return row, err
	}
	return m.work.Store.Session(ctx, row.Project, row.ID)
}

// recoverEvery ends the unfinished work of owners that die meanwhile, until ctx ends.
func (m *Manager) recoverEvery(ctx context.Context) {
	if m.o.Owner == nil {
		return
	}
	m.CallEvery(ctx, ownership.Round, func() {
		if err := m.recoverAbandoned(ctx); err != nil && ctx.Err() == nil && !m.work.IsFenced() {
			m.work.Log.WarnContext(ctx, "unfinished work of other processes was not ended", "error", err)
		}
	})
}

// neighbours says whether other processes work in this home.
func (m *Manager) neighbours(ctx context.Context) (bool, error) {
	if m.o.Owner == nil {
		return false, nil
	}
	n, err := m.work.Store.Neighbours(ctx, m.work.OwnerID(), m.work.HomeID())
	return n > 0, err
}
