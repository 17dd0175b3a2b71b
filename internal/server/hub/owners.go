package hub

import (
	"context"
	"fmt"
	"log/slog"

	"cove/internal/core/problem"
	"cove/internal/server/ownership"
)

// me returns the id of this process as an owner; "" where the hub is alone on its store.
func (h *Hub) me() string {
	if h.o.Owner == nil {
		return ""
	}
	return h.o.Owner.ID
}

// home returns the id of the home that has this hub's sessions on its disk; "" where the hub is alone on its store.
func (h *Hub) home() string {
	if h.o.Owner == nil {
		return ""
	}
	return h.o.Owner.Home
}

// fenced says that other processes count this one as dead: the database takes nothing more from it.
func (h *Hub) fenced() bool { return h.o.Owner != nil && closed(h.o.Owner.Lost()) }

// lostOwner is why nothing that this process does counts any more; nil while it counts.
func (h *Hub) lostOwner() error {
	if h.fenced() {
		return ownership.ErrLost()
	}
	return nil
}

// here returns a problem when this hub cannot use a session, because it is on another home's disk or in another process's memory. abandoned says that a dead
// process had the session in memory, so that this hub first has to find out what was lost.
func (h *Hub) here(ctx context.Context, row Session) (abandoned bool, err error) {
	switch {
	case row.Home != "" && row.Home != h.home():
		return false, h.elsewhere(ctx, problem.SessionElsewhere, "session", row.Home)
	case row.Owner == "", row.Owner == h.me():
		return false, nil
	}
	other, err := h.o.Store.Owner(ctx, row.Owner)
	switch {
	case problem.Is(err, problem.NotFound):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, problem.New(problem.SessionInUse, fmt.Sprintf("the session is used by %s (process %d)", other.Command, other.PID)).
		WithHint("wait until that command has ended or has paused the session; one command at a time can use a session")
}

// elsewhere is the problem of a session or a file that is on the disk of another home, or in the memory of a process there.
func (h *Hub) elsewhere(ctx context.Context, code problem.UnavailableCode, what, home string) error {
	at, served, err := h.o.Store.Home(ctx, home)
	if err != nil && !problem.Is(err, problem.NotFound) {
		return err
	}
	where, hint := "another server", "ask that server"
	switch {
	case err == nil && at.Epoch == 0: // no server was ever started there
		where, hint = "the command line in another folder or on another machine", "use it there"
	case !served:
		hint = "that server is not running; ask its operator to start it"
	}
	if at.Host != "" {
		where += " (" + at.Host + ")"
	}
	return problem.New(code, "the "+what+" is on "+where).WithHint(hint)
}

// runsElsewhere says why an execution or a turn that has not ended cannot be stopped here; nil where another process does not run it.
func (h *Hub) runsElsewhere(ctx context.Context, code problem.UnavailableCode, what, by string) error {
	if by == "" || by == h.me() {
		return nil
	}
	other, err := h.o.Store.Owner(ctx, by)
	switch {
	case problem.Is(err, problem.NotFound):
		return nil // its process is dead, and recovery is about to end it
	case err != nil:
		return err
	case other.Home != h.home():
		return h.elsewhere(ctx, code, what, other.Home)
	}
	return problem.New(code, fmt.Sprintf("the %s is run by %s (process %d)", what, other.Command, other.PID)).
		WithHint("interrupt that process")
}

// recoverAbandoned ends what dead owners left. Several processes may do so at the same time.
func (h *Hub) recoverAbandoned(ctx context.Context) error {
	if err := h.recoverExecutions(ctx); err != nil {
		return fmt.Errorf("recover executions: %w", err)
	}
	if err := h.recoverTurns(ctx); err != nil {
		return fmt.Errorf("recover turns: %w", err)
	}
	rows, err := h.o.Store.AbandonedSessions(ctx, h.home(), recoverBatch)
	if err != nil {
		return fmt.Errorf("recover sessions: %w", err)
	}
	for _, row := range rows {
		if row.Home != "" && row.Home != h.home() {
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
	_, err := h.o.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
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
	return h.o.Store.Session(ctx, row.Project, row.ID)
}

// recoverEvery ends the unfinished work of owners that die meanwhile, until ctx ends.
func (h *Hub) recoverEvery(ctx context.Context) {
	if h.o.Owner == nil {
		return
	}
	h.every(ctx, ownership.Round, func() {
		if err := h.recoverAbandoned(ctx); err != nil && ctx.Err() == nil && !h.fenced() {
			h.log.WarnContext(ctx, "unfinished work of other processes was not ended", "error", err)
		}
	})
}

// neighbours says whether other processes work in this home.
func (h *Hub) neighbours(ctx context.Context) (bool, error) {
	if h.o.Owner == nil {
		return false, nil
	}
	n, err := h.o.Store.Neighbours(ctx, h.me(), h.home())
	return n > 0, err
}
