package live

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/sessions/ondisk"
)

// A turn begins with a point: its session's state, to which the session can be returned and from which another one can go on. So a conversation can branch at any
// earlier turn, with the variables and files of that moment.

// Point is something that a session was, and can be again.
type Point struct {
	ID         string
	Saved      time.Time // zero: the beginning, before anything ran
	Executions int       // that had run
	Before     []string  // the turns that began there
	Bytes      int64     // on the disk, without what the point has in common with older ones
	Present    bool      // nothing has changed in the session since, as far as it is saved
}

// largePoint is the part of Limits.PointRoom from which on no turn keeps a point of a session by itself: saving and packing it would take longer than the model does.
const largePoint = 4

// ReturnedBack is the reason of a rollback that a client has asked for.
const ReturnedBack = "a client returned it to an earlier point"

// pointsOf lists the points of a session, the oldest first.
func pointsOf(info ondisk.Info) []Point {
	var all []Point
	for _, e := range info.Undo {
		all = append(all, pointOf(e))
	}
	if info.Head.Kept {
		head := pointOf(info.Head)
		head.Present = true
		all = append(all, head)
	}
	return all
}

func pointOf(e ondisk.Entry) Point {
	p := Point{ID: e.Point(), Saved: e.Saved, Executions: e.Executions, Before: e.Before, Bytes: e.Size}
	if e.Packed {
		p.Bytes = e.Room
	}
	return p
}

// withoutPoints is what a session takes on the disk but for its points, which a fork does not have.
func withoutPoints(info ondisk.Info) int64 {
	n := info.Disk
	for _, p := range pointsOf(info) {
		if !p.Present {
			n -= p.Bytes
		}
	}
	return max(n, info.Head.Size)
}

// Points returns what a session can be returned to, the oldest first. Needs auth.SessionsRead.
func (m *Manager) Points(ctx context.Context, who auth.Principal, id string) ([]Point, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	row, err := m.FindSession(ctx, who, id)
	if err == nil {
		_, err = m.work.CheckHere(ctx, row)
	}
	if err != nil {
		return nil, err
	}
	info, err := m.o.Sessions.Look(id)
	if problem.Has(err, problem.SessionUnknown) {
		return nil, nil // nothing of it was ever saved
	}
	return pointsOf(info), WithoutCommands(err)
}

// KeepPoint saves a session's present state as a point. Needs auth.SessionsWrite. A problem with code "session_busy" says that code ran all the time.
func (m *Manager) KeepPoint(ctx context.Context, who auth.Principal, id string) (Point, error) {
	_, err := m.toSave(ctx, who, id)
	if err == nil && m.o.Limits.Points == 0 {
		err = problem.New(problem.PointUnknown, "this server keeps no points").WithHint("the operator's setting session.points says how many")
	}
	if err == nil {
		err = m.PeekSession(ctx, who, id, func(ctx context.Context, _ Live) error { return m.MarkPoint(ctx, id, "") })
	}
	m.work.WriteAudit(ctx, who, "session.point", id, "", err)
	if err != nil {
		return Point{}, err
	}
	info, err := m.o.Sessions.Look(id)
	points := pointsOf(info)
	if err != nil || len(points) == 0 {
		return Point{}, cmp.Or(WithoutCommands(err), SessionGone()) // it was deleted meanwhile
	}
	return points[len(points)-1], nil
}

// ReturnSession returns a session to a point, by its name or by a turn that began there; "" is the newest one that is not the present state. Later points are
// deleted. Running code is waited for. What was done since is told as a rollback. Needs auth.SessionsWrite.
func (m *Manager) ReturnSession(ctx context.Context, who auth.Principal, id, point string) (record.Session, error) {
	row, err := m.toSave(ctx, who, id)
	if err == nil {
		var work context.Context
		var end func()
		if work, end, err = m.BeginWork(ctx); err == nil {
			err = m.PauseWhenUnused(telemetry.Carry(ctx, work), who.Project, id, func() error { return m.ReturnPaused(work, row, point) })
			end()
		}
	}
	m.work.WriteAudit(ctx, who, "session.undo", id, cmp.Or(point, "newest"), err)
	if err != nil {
		return record.Session{}, err
	}
	m.sessionSeen(ctx, sessionReturned, id, row.Project, slog.String("point", point))
	return m.FindSession(ctx, who, id)
}

// ReturnPaused is ReturnSession for a session that nothing else can use meanwhile.
func (m *Manager) ReturnPaused(ctx context.Context, row record.Session, point string) error {
	var info ondisk.Info
	var err error
	if point == "" {
		info, err = m.o.Sessions.Undo(ctx, row.ID, m.o.Command)
	} else {
		info, err = m.o.Sessions.Return(ctx, row.ID, m.o.Command, point)
	}
	if err != nil {
		return WithoutCommands(err)
	}
	m.LoseParked(row.ID, errReturned)
	return m.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		lost, err := m.FindRollback(ctx, row, info.Head.Saved, ReturnedBack)
		if err != nil {
			return err
		}
		_, err = m.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *record.Session) error {
			if s.State == record.SessionDeleted {
				return SessionGone()
			}
			s.State, s.Reason, s.Saved, s.Disk = record.SessionPaused, "", info.Head.Saved, info.Disk
			if len(lost.Executions) > 0 {
				s.Rollback = lost
			}
			return nil
		})
		return err
	})
}

// MarkPoint keeps the state of a session in memory as a point, before the turn of that id begins.
func (m *Manager) MarkPoint(ctx context.Context, session, turn string) error {
	m.mu.Lock()
	s := m.seats[session]
	if s == nil || s.name == nil || s.attached {
		m.mu.Unlock()
		return nil
	}
	name := s.name
	m.mu.Unlock()
	if turn != "" && m.o.Limits.PointRoom > 0 && name.Head().Size > m.o.Limits.PointRoom/largePoint {
		return nil
	}
	from := m.work.Now()
	if err := name.Mark(ctx, turn); err != nil {
		return err
	}
	s.tally.skip(s.Live) // the processor time of saving is not charged to the session
	return m.noteSaved(ctx, s, from, true)
}
