package hub

import (
	"context"
	"fmt"
	"log/slog"

	"cove/internal/server/ownership"
)

// recoverAbandoned ends what dead owners left. Several processes may do so at the same time.
func (h *Hub) recoverAbandoned(ctx context.Context) error {
	if err := h.recoverExecutions(ctx); err != nil {
		return fmt.Errorf("recover executions: %w", err)
	}
	if err := h.recoverTurns(ctx); err != nil {
		return fmt.Errorf("recover turns: %w", err)
	}
	rows, err := h.work.Store.AbandonedSessions(ctx, h.work.HomeID(), recoverBatch)
	if err != nil {
		return fmt.Errorf("recover sessions: %w", err)
	}
	for _, row := range rows {
		if row.Home != "" && row.Home != h.work.HomeID() {
			err = h.loseElsewhere(ctx, row)
		} else {
			_, err = h.exclusively(row.Project, row.ID, func() error { return h.correct(ctx, row) })
		}
		if err != nil {
			return fmt.Errorf("recover session %s: %w", row.ID, err)
		}
	}
	return nil
}

// loseElsewhere records that a session of another home was lost with its server. It keeps its owner: that home settles it against its disk.
func (h *Hub) loseElsewhere(ctx context.Context, row Session) error {
	mine := false
	_, err := h.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
		if mine = s.State == SessionActive && s.Owner == row.Owner; mine {
			s.State, s.Reason = SessionLost, "the server that had the session in memory ended; what of the session was saved is known when that server runs again"
		}
		return nil
	})
	if mine && err == nil {
		h.lost.Add(1)
		h.sessionSeen(ctx, string(SessionLost), row.ID, row.Project, slog.String("home", row.Home))
	}
	return err
}

// settleAbandoned finds out what is left of a session of this home that a dead process had in memory.
func (h *Hub) settleAbandoned(ctx context.Context, row Session) (Session, error) {
	if _, err := h.exclusively(row.Project, row.ID, func() error { return h.correct(ctx, row) }); err != nil {
		return row, err
	}
	return h.work.Store.Session(ctx, row.Project, row.ID)
}

// recoverEvery ends the unfinished work of owners that die meanwhile, until ctx ends.
func (h *Hub) recoverEvery(ctx context.Context) {
	if h.o.Owner == nil {
		return
	}
	h.every(ctx, ownership.Round, func() {
		if err := h.recoverAbandoned(ctx); err != nil && ctx.Err() == nil && !h.work.IsFenced() {
			h.work.Log.WarnContext(ctx, "unfinished work of other processes was not ended", "error", err)
		}
	})
}

// neighbours says whether other processes work in this home.
func (h *Hub) neighbours(ctx context.Context) (bool, error) {
	if h.o.Owner == nil {
		return false, nil
	}
	n, err := h.work.Store.Neighbours(ctx, h.work.OwnerID(), h.work.HomeID())
	return n > 0, err
}
