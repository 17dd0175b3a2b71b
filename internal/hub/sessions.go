package hub

import (
	"context"
	"errors"
	"time"

	"cove/internal/auth"
)

var errTodo = errors.New("not written yet")

// NewSession says what session to make. Zero fields take the server's defaults.
type NewSession struct {
	Name     string
	Metadata map[string]string
	Packages string
	Memory   int64
	CPUs     float64
	Idle     time.Duration
	Life     time.Duration
	Files    []string // stored files that are put into the workspace under their names
}

// CreateSession makes a session that is ready for code. Needs auth.SessionsWrite.
func (h *Hub) CreateSession(ctx context.Context, who auth.Principal, n NewSession) (Session, error) {
	return Session{}, errTodo
}

// Session returns a session. Needs auth.SessionsRead.
func (h *Hub) Session(ctx context.Context, who auth.Principal, id string) (Session, error) {
	return Session{}, errTodo
}

// Sessions lists sessions, the newest first. Needs auth.SessionsRead.
func (h *Hub) Sessions(ctx context.Context, who auth.Principal, f SessionFilter, p Page) (Listing[Session], error) {
	return Listing[Session]{}, errTodo
}

// SessionChange says what to change of a session; nil fields stay.
type SessionChange struct {
	Name     *string
	Metadata map[string]string // replaces
	Life     *time.Duration    // from now on: extends it, or shortens it
	Idle     *time.Duration
}

// ChangeSession changes or extends a session. Needs auth.SessionsWrite.
func (h *Hub) ChangeSession(ctx context.Context, who auth.Principal, id string, c SessionChange) (Session, error) {
	return Session{}, errTodo
}

// PauseSession saves a session and frees its memory. It waits for running code. Needs auth.SessionsWrite.
func (h *Hub) PauseSession(ctx context.Context, who auth.Principal, id string) (Session, error) {
	return Session{}, errTodo
}

// ResumeSession brings a session into memory, which every other request that needs it does by itself. Needs auth.SessionsWrite.
func (h *Hub) ResumeSession(ctx context.Context, who auth.Principal, id string) (Session, error) {
	return Session{}, errTodo
}

// ForkSession makes a session that goes on from where id is, with its variables and files. Needs auth.SessionsWrite.
func (h *Hub) ForkSession(ctx context.Context, who auth.Principal, id string, n NewSession) (Session, error) {
	return Session{}, errTodo
}

// DeleteSession ends a session; what runs in it is interrupted. Needs auth.SessionsWrite.
func (h *Hub) DeleteSession(ctx context.Context, who auth.Principal, id string) error {
	return errTodo
}

// Kernels lists a session's interpreters. Needs auth.SessionsRead.
func (h *Hub) Kernels(ctx context.Context, who auth.Principal, session string) ([]Kernel, error) {
	return nil, errTodo
}

// StartKernel starts another interpreter in a session. Needs auth.SessionsWrite.
func (h *Hub) StartKernel(ctx context.Context, who auth.Principal, session, name string) (Kernel, error) {
	return Kernel{}, errTodo
}

// RestartKernel begins a new interpreter in the place of one. Needs auth.SessionsExecute.
func (h *Hub) RestartKernel(ctx context.Context, who auth.Principal, session, name string) (Kernel, error) {
	return Kernel{}, errTodo
}

// StopKernel ends an interpreter other than "main". Needs auth.SessionsWrite.
func (h *Hub) StopKernel(ctx context.Context, who auth.Principal, session, name string) error {
	return errTodo
}
