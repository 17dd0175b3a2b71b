package hub

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// ForkStored makes a session that goes on from the one with that name in Options.Sessions, whether the hub has made that or a command. Needs auth.SessionsWrite. Problems: session_unknown, session_in_use, session_image.
func (h *Hub) ForkStored(ctx context.Context, who auth.Principal, name string, n NewSession) (Session, error) {
	if err := who.Require(auth.SessionsWrite); err != nil {
		return Session{}, err
	}
	switch made, err := h.work.Store.Session(ctx, who.Project, name); {
	case err == nil && made.Image != nil:
		return Session{}, problem.New(problem.SessionImage, "the session "+name+" has the system of an image, and a command cannot fork it").WithHint("fork it in the server that has made it")
	case err != nil && !problem.Has(err, problem.SessionNotFound):
		return Session{}, err
	}
	row := h.newRow(who, n)
	info, err := h.o.Sessions.Fork(ctx, name, row.ID, h.o.Command, "")
	if err != nil {
		return Session{}, err
	}
	row.State, row.Owner, row.Packages, row.System, row.Saved, row.Executions = SessionPaused, "", info.Packages, info.Limits.System, info.Head.Saved, info.Head.Executions
	if err = row.Check(h.o.Base.Packages); err == nil {
		err = h.rootFor(row)
	}
	if err == nil {
		err = h.work.Store.AddSession(ctx, row)
	}
	if err != nil {
		h.work.RunInBackground(func(ctx context.Context) { h.unmake(ctx, row) })
		return Session{}, err
	}
	return row, nil
}

// StoreAs has the session with that name in Options.Sessions go on from the present state of session id, which stays; where there is none, it is made. What the former had is a point of it, as from before what
// is named before. Needs auth.SessionsWrite. Problems: session_in_use.
func (h *Hub) StoreAs(ctx context.Context, who auth.Principal, id, name, before string) error {
	return h.whilePaused(ctx, who, id, func() error {
		_, err := h.o.Sessions.Look(name)
		if problem.Has(err, problem.SessionUnknown) {
			_, err = h.o.Sessions.Fork(ctx, id, name, h.o.Command, "")
			return err
		}
		_, err = h.o.Sessions.Take(ctx, name, id, h.o.Command, before, h.o.Limits.Points)
		return err
	})
}

// ReleaseSession leaves a session that the hub has made to commands, which open it in Options.Sessions by its id. Its time has no end then. Needs auth.SessionsWrite.
func (h *Hub) ReleaseSession(ctx context.Context, who auth.Principal, id string) error {
	return h.whilePaused(ctx, who, id, func() error {
		if err := h.o.Sessions.Release(ctx, id, h.o.Command); err != nil {
			return err
		}
		_, err := h.work.Store.UpdateSession(ctx, who.Project, id, func(s *Session) error {
			s.Expires = time.Time{}
			return nil
		})
		return err
	})
}

// whilePaused calls use while a session is paused and stays so.
func (h *Hub) whilePaused(ctx context.Context, who auth.Principal, id string, use func() error) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		_, err = h.row(ctx, who, id)
	}
	if err != nil {
		return err
	}
	return h.pause(ctx, who.Project, id, use)
}
