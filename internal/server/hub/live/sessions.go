package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/sessions/ondisk"
)

// RemovePatience bounds how long a request waits until a deleted session's files are removed.
const RemovePatience = 10 * time.Second

// NewSession says what session to make. Zero fields stand for the server's limits and base.
type NewSession struct {
	Name     string
	Metadata map[string]string
	Packages string
	Memory   int64
	CPUs     float64
	Idle     time.Duration
	Life     time.Duration
	Files    []string             // stored files that are put into the workspace under their names
	Network  *record.Network      // nil: none; of a fork, that of its origin
	Volumes  []record.VolumeMount // folders that other sessions have, too; a fork has those of its origin
	Root     bool                 // its programs may run as root and change the system; a fork is as its origin
	Image    string               // reference of an OCI image of a registry; "": the server's own system; a fork is as its origin
	Point    string               // a fork goes on from this point of its origin, or from before this turn; "": from the present state

	Undo bool // UndoTurns makes the fork
}

// CreateSession makes a session that is ready for code. Needs auth.SessionsWrite. Problems: session_invalid, too_many_sessions, quota_sessions,
// quota_disk, draining, and those of Images and of starting a sandbox.
func (m *Manager) CreateSession(ctx context.Context, who auth.Principal, n NewSession) (record.Session, error) {
	row := m.newRow(who, n)
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = errors.Join(row.Check(m.o.Base.Packages), m.memoryFor(row), m.cpusFor(row), m.networkFor(ctx, who, row.Network), m.rootFor(row))
	}
	if err == nil {
		err = row.KeepSecrets(n.Network)
	}
	if err == nil {
		row.Volumes, err = m.library.MountsFor(ctx, who, row, n.Volumes)
	}
	if err == nil {
		err = m.meter.MayStore(ctx, who.Project, who.Key, 0)
	}
	detail := ""
	if err == nil && n.Image != "" {
		detail = "image " + n.Image
		if row.Image, err = m.imageFor(ctx, who, n.Image); err == nil {
			row.BeginAt(m.work.Now())
		}
	}
	if err == nil {
		err = m.createSession(ctx, who, row, n.Files)
	}
	m.work.WriteAudit(ctx, who, "session.create", row.ID, detail, err)
	if err != nil {
		return record.Session{}, err
	}
	m.sessionSeen(ctx, sessionCreated, row.ID, row.Project, slog.String("user", who.User), slog.Float64("seconds", m.work.Now().Sub(row.Created).Seconds()))
	return row, nil
}

func (m *Manager) newRow(who auth.Principal, n NewSession) record.Session {
	now, limits := m.work.Now(), m.o.Base.Limits
	row := record.Session{
		ID: ident.New(ident.Session), Project: who.Project, User: who.User, Key: who.Key, Name: n.Name, Metadata: n.Metadata, State: record.SessionActive,
		Created: now, Used: now, Idle: n.Idle, Packages: n.Packages, Memory: n.Memory, CPUs: n.CPUs, Network: n.Network, Home: m.work.HomeID(), Owner: m.work.OwnerID(),
	}
	if n.Root {
		row.System = max(m.o.System, 1) // rootFor refuses it where no session has one
	}
	if row.Packages == "" {
		row.Packages = m.o.Base.Packages
	}
	if row.Memory == 0 {
		row.Memory = limits.Memory
	}
	if row.CPUs == 0 {
		row.CPUs = limits.CPUs
	}
	if row.Idle == 0 {
		row.Idle = m.o.Limits.Idle
	}
	if n.Life == 0 {
		n.Life = m.o.Limits.Life
	}
	if n.Life != 0 {
		row.Expires = now.Add(n.Life)
	}
	return row
}

func (m *Manager) createSession(ctx context.Context, who auth.Principal, row record.Session, files []string) error {
	work, end, err := m.BeginWork(ctx)
	if err != nil {
		return err
	}
	defer end()
	added := make(chan error, 1)
	go func() { added <- m.work.Store.AddSession(ctx, row) }() // while the sandbox is made ready: both write to the disk, and wait for it
	s, err := m.loadFirst(work, ctx, row)
	if err == nil {
		defer m.releaseSeat(s)
	}
	if err = errors.Join(<-added, err); err == nil {
		for _, file := range files {
			if _, err = m.PutFile(holding(work, s), who, row.ID, file, ""); err != nil {
				break
			}
		}
	}
	if err != nil {
		m.work.RunInBackground(func(ctx context.Context) { m.RemoveUnmade(ctx, row) }) // the record may have been written despite an error
	}
	return err
}

// loadFirst loads a session that was just made and acquires it. It is not recorded as a use, which a restart would take for unsaved changes.
func (m *Manager) loadFirst(work, ctx context.Context, row record.Session) (*seat, error) {
	return m.awaitSeat(ctx, row.Project, row.ID, func() (*seat, <-chan struct{}, error) { return m.tryAcquireSeat(work, row.Project, row.ID, &row, true) })
}

// RemoveUnmade removes a session whose creation failed.
func (m *Manager) RemoveUnmade(ctx context.Context, row record.Session) {
	err := m.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		_, err := m.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *record.Session) error {
			s.State, s.Reason, s.Disk = record.SessionDeleted, "the session could not be made", 0
			return nil
		})
		return err
	})
	if err == nil || problem.Of(err).Kind == problem.NotFound {
		err = m.destroySession(ctx, row.ID)
	}
	if err != nil {
		m.work.Log.WarnContext(ctx, "the remains of a session that could not be made were not removed", "session", row.ID, "error", err)
	}
}

// rootFor returns a problem when a session asks for a root that no session of this server has.
func (m *Manager) rootFor(s record.Session) error {
	if s.System > 0 && m.o.System == 0 {
		return problem.New(problem.RootAbsent, "no session of this server has a root").WithHint("leave root out; the operator can set sandbox.root = true")
	}
	return nil
}

// cpusFor says whether there are as many CPUs as a session wants.
func (m *Manager) cpusFor(s record.Session) error {
	if most := max(float64(runtime.NumCPU()), m.o.Base.Limits.CPUs); s.CPUs > most {
		return problem.New(problem.SessionInvalid, fmt.Sprintf("%v CPUs are more than the server's machine has: %d; a session may have %v to %v", s.CPUs, runtime.NumCPU(), sandbox.LeastCPUs, most)).
			WithHint("ask for fewer, or leave cpus out")
	}
	return nil
}

// memoryFor returns a problem when a session asks for more memory than it may have. Memory is not taken from other sessions before the session uses it.
func (m *Manager) memoryFor(s record.Session) error {
	if most := m.o.Limits.Memory; most > 0 && s.Memory > most {
		has := ""
		if room, err := m.o.Room(); err == nil {
			has = fmt.Sprintf("; the server's machine has %d MiB", room.Total>>20)
		}
		return problem.New(problem.SessionMemory, fmt.Sprintf("%d MiB are more than the %d MiB of memory that a session of this server may have%s", s.Memory>>20, most>>20, has)).
			WithHint("ask for less; the operator can raise limits.session_memory")
	}
	return nil
}

// Session returns a session. Needs auth.SessionsRead.
func (m *Manager) Session(ctx context.Context, who auth.Principal, id string) (record.Session, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return record.Session{}, err
	}
	return m.FindSession(ctx, who, id)
}

// FindSession returns a session's record, completed from memory.
func (m *Manager) FindSession(ctx context.Context, who auth.Principal, id string) (record.Session, error) {
	row, err := m.work.Store.Session(ctx, who.Project, id)
	if err == nil && row.State == record.SessionDeleted {
		err = SessionGone()
	}
	if err != nil {
		return record.Session{}, err
	}
	return m.withLiveState(row), nil
}

func (m *Manager) withLiveState(row record.Session) record.Session {
	var live Live
	m.mu.Lock()
	if s := m.seats[row.ID]; s != nil && s.Live != nil {
		live, row.Executions = s.Live, s.ran
		if !s.touched.IsZero() {
			row.Used = s.used
		}
	}
	m.mu.Unlock()
	if w, ok := live.(ondisk.Weigher); ok { // without mu: the system is asked
		row.Taken = w.Memory()
	}
	return row
}

// Sessions lists sessions, the newest first. Needs auth.SessionsRead.
func (m *Manager) Sessions(ctx context.Context, who auth.Principal, f record.SessionFilter, p record.Page) (record.Listing[record.Session], error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return record.Listing[record.Session]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return record.Listing[record.Session]{}, err
	}
	list, err := m.work.Store.Sessions(ctx, who.Project, f, p)
	for i := range list.Items {
		list.Items[i] = m.withLiveState(list.Items[i])
	}
	return list, err
}

// SessionChange says what to change of a session; nil fields stay.
type SessionChange struct {
	Name     *string
	Metadata map[string]string // replaces
	Life     *time.Duration    // from now on: extends it, or shortens it
	Idle     *time.Duration
	Network  *record.Network // connections that there are end
}

// ChangeSession changes or extends a session. Needs auth.SessionsWrite.
func (m *Manager) ChangeSession(ctx context.Context, who auth.Principal, id string, c SessionChange) (record.Session, error) {
	row, err := record.Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		err = m.networkFor(ctx, who, c.Network)
	}
	if err == nil {
		row, err = m.work.Store.UpdateSession(ctx, who.Project, id, func(s *record.Session) error {
			if s.State == record.SessionDeleted {
				return SessionGone()
			}
			return c.apply(s, m.work.Now(), m.o.Base.Packages)
		})
	}
	if err == nil {
		m.mu.Lock()
		if s := m.seats[id]; s != nil {
			s.idle = row.Idle
		}
		m.mu.Unlock()
		if c.Network != nil {
			err = m.changeNetwork(ctx, who.Project, id)
		}
	}
	m.work.WriteAudit(ctx, who, "session.change", id, "", err)
	if err != nil {
		return record.Session{}, err
	}
	return m.withLiveState(row), nil
}

func (c SessionChange) apply(s *record.Session, now time.Time, own string) error {
	if c.Name != nil {
		s.Name = *c.Name
	}
	if c.Metadata != nil {
		s.Metadata = maps.Clone(c.Metadata)
	}
	if s.Origin != nil && (c.Name != nil || c.Metadata != nil) {
		s.Origin.Undo = false
	}
	if c.Network != nil {
		if err := s.KeepSecrets(c.Network); err != nil {
			return err
		}
	}
	if c.Idle != nil {
		if *c.Idle <= 0 {
			return record.InvalidSession(record.BriefIdle)
		}
		s.Idle = *c.Idle
	}
	if c.Life != nil {
		if *c.Life <= 0 {
			return record.InvalidSession("the session's life must be longer than 0; to end the session, delete it")
		}
		s.Expires = now.Add(*c.Life)
	}
	return s.Check(own)
}

// PauseSession saves a session and frees its memory. It waits for running code. Needs auth.SessionsWrite.
func (m *Manager) PauseSession(ctx context.Context, who auth.Principal, id string) (record.Session, error) {
	row, err := m.toSave(ctx, who, id)
	if err == nil {
		err = m.PauseWhenUnused(ctx, who.Project, id, nil)
	}
	if err == nil {
		row, err = m.FindSession(ctx, who, id)
	}
	m.work.WriteAudit(ctx, who, "session.pause", id, "", err)
	return row, err
}

// ResumeSession loads a session into memory, as every other request that needs the session does by itself. Needs auth.SessionsWrite.
func (m *Manager) ResumeSession(ctx context.Context, who auth.Principal, id string) (record.Session, error) {
	row, err := record.Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		err = m.PeekSession(ctx, who, id, func(context.Context, Live) error { return nil })
	}
	if err == nil {
		row, err = m.FindSession(ctx, who, id)
	}
	m.work.WriteAudit(ctx, who, "session.resume", id, "", err)
	return row, err
}

// DeleteSession deletes a session; code that runs in it is interrupted. Needs auth.SessionsWrite.
func (m *Manager) DeleteSession(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = m.mayDelete(ctx, who.Project, id)
	}
	if err == nil {
		err = m.DeleteSessionRow(ctx, who.Project, id)
	}
	m.work.WriteAudit(ctx, who, "session.delete", id, "", err)
	return err
}

// mayDelete refuses to delete a session that another process may have in memory. A session of a home without a living server can be deleted anywhere: its files
// on that disk have no record then, and are removed when a server starts there again.
func (m *Manager) mayDelete(ctx context.Context, project, id string) error {
	row, err := m.work.Store.Session(ctx, project, id)
	if err != nil || row.State == record.SessionDeleted {
		return err // deleting checks this again
	}
	if row.Home != "" && row.Home != m.work.HomeID() {
		if _, served, err := m.work.Store.Home(ctx, row.Home); err == nil && !served {
			return nil
		}
	}
	_, err = m.work.CheckHere(ctx, row)
	return err
}

// DeleteSessionRow is durable when it returns; the session's files are removed soon, at the latest by Run.
func (m *Manager) DeleteSessionRow(ctx context.Context, project, id string) error {
	_, err := m.work.Store.UpdateSession(ctx, project, id, func(s *record.Session) error {
		if s.State == record.SessionDeleted {
			return SessionGone()
		}
		s.State, s.Reason, s.Disk, s.Used = record.SessionDeleted, "", 0, m.work.Now()
		return nil
	})
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		m.work.RunInBackground(func(ctx context.Context) { m.destroyDeleted(ctx, project, id) }) // the record may have been written despite the error
	}
	if err != nil {
		return err
	}
	m.sessionSeen(ctx, string(record.SessionDeleted), id, project)
	removed := make(chan struct{})
	m.work.RunInBackground(func(ctx context.Context) {
		defer close(removed)
		m.destroyAll(ctx, id)
	})
	select {
	case <-removed:
	case <-time.After(RemovePatience):
	case <-ctx.Done():
	}
	return nil
}

// destroyDeleted removes the files of a session if the store calls it deleted.
func (m *Manager) destroyDeleted(ctx context.Context, project, id string) {
	var row record.Session
	err := m.work.WriteUntilStored(ctx, func(ctx context.Context) (err error) {
		row, err = m.work.Store.Session(ctx, project, id)
		return err
	})
	if err == nil && row.State == record.SessionDeleted {
		m.sessionSeen(ctx, string(record.SessionDeleted), id, project)
		m.destroyAll(ctx, id)
	}
}

func (m *Manager) destroyAll(ctx context.Context, id string) {
	if err := m.destroySession(ctx, id); err != nil {
		m.work.Log.WarnContext(ctx, "what is left of a deleted session was not removed", "session", id, "error", err)
	}
}
