// Package hub is what a server has and does, before any protocol: sessions, executions, files, conversations and turns of many users.
// Surfaces (the native API, OpenAI's, the command line's own process) translate to its methods and back. It knows neither HTTP nor SQL.
//
// Every method takes the caller, asks it for the right to do what the method does, and sees nothing of other projects: what is not
// the caller's project's is not found (problem.NotFound). Every change leaves a row in the audit log.
package hub

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"time"

	"cove/internal/audit"
	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/model"
	"cove/internal/named"
	"cove/internal/pydeps"
	"cove/internal/pydeps/require"
	"cove/internal/wire"
)

// Options say what a hub is made of.
type Options struct {
	Store Store
	// Sessions keeps paused sessions on the disk, and Prepare says what they stand on; a new session that Prepare's Ground starts from the
	// beginning may come from a pool.
	Sessions named.Store
	Prepare  named.Prepare
	Base     named.Base // what a new session is made of
	Blobs    string     // folder of file contents, by hash
	Models   Models
	Limits   Limits
	Audit    audit.Log
	// Quotas returns what a project and a key may use where that was set for them; nil quotas are those of Limits.
	Quotas func(ctx context.Context, project, key string) (ofProject, ofKey *Quota, err error)
	Turns  interpreter.Limits // the server's bounds of one turn
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Models are the models that a server can ask.
type Models interface {
	// Open connects to a model by PROVIDER/NAME, or by NAME alone where one provider is the default. "" is the default model.
	Open(ctx context.Context, name string) (model.Model, error)
	// List returns what can be asked.
	List(ctx context.Context) ([]ModelInfo, error)
}

// ModelInfo describes a model.
type ModelInfo struct {
	ID       string // as Open takes it
	Provider string
	Default  bool
}

// Live is a session in memory: *session.Session behind named.Live.
type Live interface {
	named.Live
	Kernels
	Tree
	// Install makes packages importable in the session's kernels.
	Install(ctx context.Context, requirements []require.Requirement, told func(pydeps.Progress)) (pydeps.Provision, error)
}

// Kernels are the interpreters of one session. The first is "main", is always there, and is what kernel.Request.Kernel "" means.
type Kernels interface {
	StartKernel(ctx context.Context, name string) error   // a problem of kind Invalid when it exists
	RestartKernel(ctx context.Context, name string) error // a new interpreter in its place; running code is interrupted
	StopKernel(ctx context.Context, name string) error    // not "main"
	KernelNames() []string
}

// Tree is a session's workspace as a file tree. Paths are relative and slash-separated; "" is the workspace itself. Symlinks are never
// followed. Errors are problems: file_not_found, file_denied, workspace_full, invalid_path, file_exists, not_empty.
type Tree interface {
	List(ctx context.Context, dir string) (entries []wire.FileInfo, more bool, err error) // one level, by name
	Stat(ctx context.Context, path string) (wire.FileInfo, error)
	Read(ctx context.Context, path string, offset, limit int64, w io.Writer) (size int64, err error) // limit 0: to the end
	Write(ctx context.Context, path string, r io.Reader) (wire.FileInfo, error)                      // whole or not at all
	Move(ctx context.Context, from, to string) error                                                 // never replaces
	Remove(ctx context.Context, path string, all bool) error                                         // all: folders with what is in them
	MakeFolder(ctx context.Context, path string) error
	// Archive writes a folder as "tar.gz" or "zip".
	Archive(ctx context.Context, dir, format string, w io.Writer) error
}

// Limits bound what the users of a server may hold at once and use up. Zero means no limit, but for those with a default.
type Limits struct {
	Sessions   int           // live sessions of the whole server; 0: what the memory allows
	Executions int           // running executions of the whole server; further ones wait; 0: twice the processors
	Queue      int           // executions that may wait for one kernel; 0: 16
	Project    Quota         // of a project that has none of its own
	Key        Quota         // of a key that has none of its own
	Idle       time.Duration // after which a session without work is paused; 0: 15 minutes
	Life       time.Duration // after which a session that nobody extended is deleted; 0: 30 days
	Execution  time.Duration // wall clock of one execution; 0: 5 minutes
	Output     int64         // bytes of output of one execution; 0: 16 MiB
	File       int64         // bytes of one uploaded file; 0: 512 MiB
}

// Quota is what a project or a key may use. Zero fields are no limit.
type Quota struct {
	Sessions   int     `json:"live_sessions,omitempty"`
	Executions int     `json:"concurrent_executions,omitempty"`
	CPUSeconds float64 `json:"cpu_seconds_per_day,omitempty"`
	Disk       int64   `json:"disk_bytes,omitempty"` // files and paused sessions
	Tokens     int64   `json:"tokens_per_day,omitempty"`
}

// Hub is safe for concurrent use.
type Hub struct {
	o Options
}

// Page says which part of a list is wanted: Limit entries (1 to 100; 0 means 20) after the cursor that the last page gave.
type Page struct {
	After string
	Limit int
	// Oldest has the oldest come first.
	Oldest bool
}

// Listing is one page. Next is the cursor of the next one, "" at the end.
type Listing[T any] struct {
	Items []T
	Next  string
}

// Follower is the events of an execution or a turn from one point on. It ends when the last event was yielded or ctx ended.
type Follower[E any] iter.Seq2[Numbered[E], error]

// Numbered is an event with its place in its stream. Seq begins with 1 and always grows; where it leaves out numbers a Gap says so.
type Numbered[E any] struct {
	Seq   int64
	At    time.Time // when the host got it
	Event E
	Gap   bool // Event is nil: what was emitted between the last Seq and this one is lost
}

// Event is what an execution emits.
type Event = kernel.Event

// TurnEvent is what a turn emits.
type TurnEvent = interpreter.Event

// New returns a hub; nothing is touched until Recover.
func New(o Options) *Hub { return &Hub{o: o} }

// Recover brings the records in line with the machine after a start: what a killed server left running is lost or taken back, executions
// without an end get one. Call it once, before anything else.
func (h *Hub) Recover(ctx context.Context) error { return errTodo }

// Run pauses, deletes and sweeps until ctx ends. Call it once.
func (h *Hub) Run(ctx context.Context) error { return errTodo }

// Drain refuses new work (problem.Unavailable, code "draining"), lets running work end until ctx ends, interrupts the rest and pauses every
// session. Nothing can be done with the hub afterwards.
func (h *Hub) Drain(ctx context.Context) error { return errTodo }

// Ready says whether the hub can serve; nil means that it can.
func (h *Hub) Ready(ctx context.Context) error { return errTodo }
