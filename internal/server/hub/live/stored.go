package live

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// ForkStored makes a session that goes on from the one with that name in Options.Sessions, whether the hub has made that or a command. Needs auth.SessionsWrite. Problems: session_unknown, session_in_use, session_image.
func (m *Manager) ForkStored(ctx context.Context, who auth.Principal, name string, n NewSession) (record.Session, error) {
	if err := who.Require(auth.SessionsWrite); err != nil {
		return record.Session{}, err
	}
	switch made, err := m.work.Store.Session(ctx, who.Project, name); {
	case err == nil && made.Image != nil:
		return record.Session{}, problem.New(problem.SessionImage, "the session "+name+" has the system of an image, and a command cannot fork it").WithHint("fork it in the server that has made it")
	case err != nil && !problem.Has(err, problem.SessionNotFound):
		return record.Session{}, err
	}
	row := m.newRow(who, n)
	info, err := m.o.Sessions.Fork(ctx, name, row.ID, m.o.Command, "")
	if err != nil {
		return record.Session{}, err
	}
	row.State, row.Owner, row.Packages, row.System, row.Saved, row.Executions = record.SessionPaused, "", info.Packages, info.Limits.System, info.Head.Saved, info.Head.Executions
	if err = row.Check(m.o.Base.Packages); err == nil {
		err = m.rootFor(row)
	}
	if err == nil {
		err = m.work.Store.AddSession(ctx, row)
	}
	if err != nil {
		m.work.RunInBackground(func(ctx context.Context) { m.RemoveUnmade(ctx, row) })
		return record.Session{}, err
	}
	return row, nil
}

// StoreAs has the session with that name in Options.Sessions go on from the present state of session id, which stays; where there is none, it is made. What the former had is a point of it, as from before what
// is named before. Needs auth.SessionsWrite. Problems: session_in_use.
func (m *Manager) StoreAs(ctx context.Context, who auth.Principal, id, name, before string) error {
	return m.whilePaused(ctx, who, id, func() error {
		_, err := m.o.Sessions.Look(name)
		if problem.Has(err, problem.SessionUnknown) {
			_, err = m.o.Sessions.Fork(ctx, id, name, m.o.Command, "")
			return err
		}
		_, err = m.o.Sessions.Take(ctx, name, id, m.o.Command, before, m.o.Limits.Points)
		return err
	})
}

// ReleaseSession leaves a session that the hub has made to commands, which open it in Options.Sessions by its id. Its time has no end then. Needs auth.SessionsWrite.
func (m *Manager) ReleaseSession(ctx context.Context, who auth.Principal, id string) error {
	return m.whilePaused(ctx, who, id, func() error {
		if err := m.o.Sessions.Release(ctx, id, m.o.Command); err != nil {
			return err
		}
		_, err := m.work.Store.UpdateSession(ctx, who.Project, id, func(s *record.Session) error {
			s.Expires = time.Time{}
			return nil
		})
		return err
	})
}

// whilePaused calls use while a session is paused and stays so.
func (m *Manager) whilePaused(ctx context.Context, who auth.Principal, id string, use func() error) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		_, err = m.FindSession(ctx, who, id)
	}
	if err != nil {
		return err
	}
	return m.PauseWhenUnused(ctx, who.Project, id, use)
}
