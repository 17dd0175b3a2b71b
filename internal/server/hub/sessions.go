package hub

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

// removePatience bounds how long a request waits until a deleted session's files are removed.
const removePatience = 10 * time.Second

// NewSession says what session to make. Zero fields stand for the server's limits and base.
type NewSession struct {
	Name     string
	Metadata map[string]string
	Packages string
	Memory   int64
	CPUs     float64
	Idle     time.Duration
	Life     time.Duration
	Files    []string      // stored files that are put into the workspace under their names
	Network  *Network      // nil: none; of a fork, that of its origin
	Volumes  []VolumeMount // folders that other sessions have, too; a fork has those of its origin
	Root     bool          // its programs may run as root and change the system; a fork is as its origin
	Image    string        // reference of an OCI image of a registry; "": the server's own system; a fork is as its origin
	Point    string        // a fork goes on from this point of its origin, or from before this turn; "": from the present state

	undo bool // UndoTurns makes the fork
}

// CreateSession makes a session that is ready for code. Needs auth.SessionsWrite. Problems: session_invalid, too_many_sessions, quota_sessions,
// quota_disk, draining, and those of Images and of starting a sandbox.
func (h *Hub) CreateSession(ctx context.Context, who auth.Principal, n NewSession) (Session, error) {
	row := h.newRow(who, n)
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = errors.Join(row.Check(h.o.Base.Packages), h.memoryFor(row), h.cpusFor(row), h.networkFor(ctx, who, row.Network), h.rootFor(row))
	}
	if err == nil {
		err = row.KeepSecrets(n.Network)
	}
	if err == nil {
		row.Volumes, err = h.MountsFor(ctx, who, row, n.Volumes)
	}
	if err == nil {
		err = h.MayStore(ctx, who.Project, who.Key, 0)
	}
	detail := ""
	if err == nil && n.Image != "" {
		detail = "image " + n.Image
		if row.Image, err = h.imageFor(ctx, who, n.Image); err == nil {
			row.BeginAt(h.work.Now())
		}
	}
	if err == nil {
		err = h.createSession(ctx, who, row, n.Files)
	}
	h.work.WriteAudit(ctx, who, "session.create", row.ID, detail, err)
	if err != nil {
		return Session{}, err
	}
	h.sessionSeen(ctx, sessionCreated, row.ID, row.Project, slog.String("user", who.User), slog.Float64("seconds", h.work.Now().Sub(row.Created).Seconds()))
	return row, nil
}

func (h *Hub) newRow(who auth.Principal, n NewSession) Session {
	now, limits := h.work.Now(), h.o.Base.Limits
	row := Session{
		ID: ident.New(ident.Session), Project: who.Project, User: who.User, Key: who.Key, Name: n.Name, Metadata: n.Metadata, State: SessionActive,
		Created: now, Used: now, Idle: n.Idle, Packages: n.Packages, Memory: n.Memory, CPUs: n.CPUs, Network: n.Network, Home: h.work.HomeID(), Owner: h.work.OwnerID(),
	}
	if n.Root {
		row.System = max(h.o.System, 1) // rootFor refuses it where no session has one
	}
	if row.Packages == "" {
		row.Packages = h.o.Base.Packages
	}
	if row.Memory == 0 {
		row.Memory = limits.Memory
	}
	if row.CPUs == 0 {
		row.CPUs = limits.CPUs
	}
	if row.Idle == 0 {
		row.Idle = h.o.Limits.Idle
	}
	if n.Life == 0 {
		n.Life = h.o.Limits.Life
	}
	if n.Life != 0 {
		row.Expires = now.Add(n.Life)
	}
	return row
}

func (h *Hub) createSession(ctx context.Context, who auth.Principal, row Session, files []string) error {
	work, end, err := h.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	added := make(chan error, 1)
	go func() { added <- h.work.Store.AddSession(ctx, row) }() // while the sandbox is made ready: both write to the disk, and wait for it
	s, err := h.first(work, ctx, row)
	if err == nil {
		defer h.release(s)
	}
	if err = errors.Join(<-added, err); err == nil {
		for _, file := range files {
			if _, err = h.PutFile(holding(work, s), who, row.ID, file, ""); err != nil {
				break
			}
		}
	}
	if err != nil {
		h.work.RunInBackground(func(ctx context.Context) { h.unmake(ctx, row) }) // the record may have been written despite an error
	}
	return err
}

// first loads a session that was just made and acquires it. It is not recorded as a use, which a restart would take for unsaved changes.
func (h *Hub) first(work, ctx context.Context, row Session) (*seat, error) {
	return h.await(ctx, row.Project, row.ID, func() (*seat, <-chan struct{}, error) { return h.tryAcquireSeat(work, row.Project, row.ID, &row, true) })
}

// unmake removes a session whose creation failed.
func (h *Hub) unmake(ctx context.Context, row Session) {
	err := h.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		_, err := h.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
			s.State, s.Reason, s.Disk = SessionDeleted, "the session could not be made", 0
			return nil
		})
		return err
	})
	if err == nil || problem.Of(err).Kind == problem.NotFound {
		err = h.destroy(ctx, row.ID)
	}
	if err != nil {
		h.work.Log.WarnContext(ctx, "the remains of a session that could not be made were not removed", "session", row.ID, "error", err)
	}
}

// rootFor returns a problem when a session asks for a root that no session of this server has.
func (h *Hub) rootFor(s Session) error {
	if s.System > 0 && h.o.System == 0 {
		return problem.New(problem.RootAbsent, "no session of this server has a root").WithHint("leave root out; the operator can set sandbox.root = true")
	}
	return nil
}

// cpusFor says whether there are as many CPUs as a session wants.
func (h *Hub) cpusFor(s Session) error {
	if most := max(float64(runtime.NumCPU()), h.o.Base.Limits.CPUs); s.CPUs > most {
		return problem.New(problem.SessionInvalid, fmt.Sprintf("%v CPUs are more than the server's machine has: %d; a session may have %v to %v", s.CPUs, runtime.NumCPU(), sandbox.LeastCPUs, most)).
			WithHint("ask for fewer, or leave cpus out")
	}
	return nil
}

// memoryFor returns a problem when a session asks for more memory than it may have. Memory is not taken from other sessions before the session uses it.
func (h *Hub) memoryFor(s Session) error {
	if most := h.o.Limits.Memory; most > 0 && s.Memory > most {
		has := ""
		if room, err := h.o.Room(); err == nil {
			has = fmt.Sprintf("; the server's machine has %d MiB", room.Total>>20)
		}
		return problem.New(problem.SessionMemory, fmt.Sprintf("%d MiB are more than the %d MiB of memory that a session of this server may have%s", s.Memory>>20, most>>20, has)).
			WithHint("ask for less; the operator can raise limits.session_memory")
	}
	return nil
}

// Session returns a session. Needs auth.SessionsRead.
func (h *Hub) Session(ctx context.Context, who auth.Principal, id string) (Session, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return Session{}, err
	}
	return h.row(ctx, who, id)
}

// row returns a session's record, completed from memory.
func (h *Hub) row(ctx context.Context, who auth.Principal, id string) (Session, error) {
	row, err := h.work.Store.Session(ctx, who.Project, id)
	if err == nil && row.State == SessionDeleted {
		err = sessionGone()
	}
	if err != nil {
		return Session{}, err
	}
	return h.fresh(row), nil
}

func (h *Hub) fresh(row Session) Session {
	var live Live
	h.mu.Lock()
	if s := h.seats[row.ID]; s != nil && s.live != nil {
		live, row.Executions = s.live, s.ran
		if !s.touched.IsZero() {
			row.Used = s.used
		}
	}
	h.mu.Unlock()
	if w, ok := live.(ondisk.Weigher); ok { // without mu: the system is asked
		row.Taken = w.Memory()
	}
	return row
}

// Sessions lists sessions, the newest first. Needs auth.SessionsRead.
func (h *Hub) Sessions(ctx context.Context, who auth.Principal, f SessionFilter, p Page) (Listing[Session], error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return Listing[Session]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return Listing[Session]{}, err
	}
	list, err := h.work.Store.Sessions(ctx, who.Project, f, p)
	for i := range list.Items {
		list.Items[i] = h.fresh(list.Items[i])
	}
	return list, err
}

// SessionChange says what to change of a session; nil fields stay.
type SessionChange struct {
	Name     *string
	Metadata map[string]string // replaces
	Life     *time.Duration    // from now on: extends it, or shortens it
	Idle     *time.Duration
	Network  *Network // connections that there are end
}

// ChangeSession changes or extends a session. Needs auth.SessionsWrite.
func (h *Hub) ChangeSession(ctx context.Context, who auth.Principal, id string, c SessionChange) (Session, error) {
	row, err := Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		err = h.networkFor(ctx, who, c.Network)
	}
	if err == nil {
		row, err = h.work.Store.UpdateSession(ctx, who.Project, id, func(s *Session) error {
			if s.State == SessionDeleted {
				return sessionGone()
			}
			return c.apply(s, h.work.Now(), h.o.Base.Packages)
		})
	}
	if err == nil {
		h.mu.Lock()
		if s := h.seats[id]; s != nil {
			s.idle = row.Idle
		}
		h.mu.Unlock()
		if c.Network != nil {
			err = h.changeNetwork(ctx, who.Project, id)
		}
	}
	h.work.WriteAudit(ctx, who, "session.change", id, "", err)
	if err != nil {
		return Session{}, err
	}
	return h.fresh(row), nil
}

func (c SessionChange) apply(s *Session, now time.Time, own string) error {
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
func (h *Hub) PauseSession(ctx context.Context, who auth.Principal, id string) (Session, error) {
	row, err := h.toSave(ctx, who, id)
	if err == nil {
		err = h.pause(ctx, who.Project, id, nil)
	}
	if err == nil {
		row, err = h.row(ctx, who, id)
	}
	h.work.WriteAudit(ctx, who, "session.pause", id, "", err)
	return row, err
}

// ResumeSession loads a session into memory, as every other request that needs the session does by itself. Needs auth.SessionsWrite.
func (h *Hub) ResumeSession(ctx context.Context, who auth.Principal, id string) (Session, error) {
	row, err := Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		err = h.peek(ctx, who, id, func(context.Context, Live) error { return nil })
	}
	if err == nil {
		row, err = h.row(ctx, who, id)
	}
	h.work.WriteAudit(ctx, who, "session.resume", id, "", err)
	return row, err
}

// DeleteSession deletes a session; code that runs in it is interrupted. Needs auth.SessionsWrite.
func (h *Hub) DeleteSession(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.SessionsWrite)
	if err == nil {
		err = h.mayDelete(ctx, who.Project, id)
	}
	if err == nil {
		err = h.deleteSession(ctx, who.Project, id)
	}
	h.work.WriteAudit(ctx, who, "session.delete", id, "", err)
	return err
}

// mayDelete refuses to delete a session that another process may have in memory. A session of a home without a living server can be deleted anywhere: its files
// on that disk have no record then, and are removed when a server starts there again.
func (h *Hub) mayDelete(ctx context.Context, project, id string) error {
	row, err := h.work.Store.Session(ctx, project, id)
	if err != nil || row.State == SessionDeleted {
		return err // deleting checks this again
	}
	if row.Home != "" && row.Home != h.work.HomeID() {
		if _, served, err := h.work.Store.Home(ctx, row.Home); err == nil && !served {
			return nil
		}
	}
	_, err = h.work.CheckHere(ctx, row)
	return err
}

// deleteSession is durable when it returns; the session's files are removed soon, at the latest by Run.
func (h *Hub) deleteSession(ctx context.Context, project, id string) error {
	_, err := h.work.Store.UpdateSession(ctx, project, id, func(s *Session) error {
		if s.State == SessionDeleted {
			return sessionGone()
		}
		s.State, s.Reason, s.Disk, s.Used = SessionDeleted, "", 0, h.work.Now()
		return nil
	})
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		h.work.RunInBackground(func(ctx context.Context) { h.destroyDeleted(ctx, project, id) }) // the record may have been written despite the error
	}
	if err != nil {
		return err
	}
	h.sessionSeen(ctx, string(SessionDeleted), id, project)
	removed := make(chan struct{})
	h.work.RunInBackground(func(ctx context.Context) {
		defer close(removed)
		h.destroyAll(ctx, id)
	})
	select {
	case <-removed:
	case <-time.After(removePatience):
	case <-ctx.Done():
	}
	return nil
}

// destroyDeleted removes the files of a session if the store calls it deleted.
func (h *Hub) destroyDeleted(ctx context.Context, project, id string) {
	var row Session
	err := h.work.WriteUntilStored(ctx, func(ctx context.Context) (err error) {
		row, err = h.work.Store.Session(ctx, project, id)
		return err
	})
	if err == nil && row.State == SessionDeleted {
		h.sessionSeen(ctx, string(SessionDeleted), id, project)
		h.destroyAll(ctx, id)
	}
}

func (h *Hub) destroyAll(ctx context.Context, id string) {
	if err := h.destroy(ctx, id); err != nil {
		h.work.Log.WarnContext(ctx, "what is left of a deleted session was not removed", "session", id, "error", err)
	}
}
