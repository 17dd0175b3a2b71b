// Package hub is what a server has and does, before any protocol: sessions, executions, files, conversations and turns of many users.
// Surfaces (the native API, OpenAI's, the command line's own process) translate to its methods and back. It knows neither HTTP nor SQL.
//
// Every method takes the caller, asks it for the right to do what the method does, and sees nothing of other projects: what is not
// the caller's project's is not found (problem.NotFound). Every change leaves a row in the audit log.
package hub

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cove/internal/core/memory"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/core/telemetry"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/ownership"
	"cove/internal/server/stream"
	"cove/internal/sessions/ondisk"
)

// Options are what a hub is made of.
type Options struct {
	Store Store // as the owner writes to it (store.Store.By)
	// Owner is this process among those that share the store. nil: it is the only process that ever uses the store, and everything unfinished there is its own.
	Owner *ownership.Owner
	// Command names this process in messages of others that need one of its sessions; "": "cove serve".
	Command string
	// Sessions keeps paused sessions on the disk; without a Dir the hub has only sessions that callers attach. Prepare finds what sessions run on; a new
	// session that Prepare's Ground starts from the beginning may come from a pool.
	Sessions ondisk.Store
	Prepare  ondisk.Prepare
	Base     ondisk.Base  // what a new session is made of
	Unsaved  bool         // the engine cannot save sessions
	Contents string       // folder of file contents, by hash
	Sealer   *seal.Sealer // what the contents are sealed with; nil: they are not
	Models   Models
	// About returns what the operator says of a model by PROVIDER/NAME; nil: nothing.
	About func(name string) model.About
	// ToolServers are servers whose tools code may call; nil: none are set up.
	ToolServers ToolServers
	// Connector knows the connections of the settings, and tries others; nil: connections cannot be set.
	Connector Connector
	Limits    Limits
	Network   NetworkLimits
	Code      CodeRules     // for projects without their own
	Redaction Redaction     // for projects without their own
	System    int64         // bytes that root of a session may change in each part of its system; 0: no session has a root
	Volumes   VolumeFolders // nil: there are none
	NoVolumes string        // why
	Images    Images        // that callers may have sessions begin from; nil: none
	Audit     audit.Log
	// Quotas returns what a project and a key may use where that was set for them; nil quotas are those of Limits.
	Quotas func(ctx context.Context, project, key string) (ofProject, ofKey *Quota, err error)
	// Asker returns what the user of a project may now, by a key ("": by none), for questions that wait in queues; nil: the hub asks none of them.
	Asker  func(ctx context.Context, project, user, key string) (auth.Principal, error)
	Turns  loop.Limits // the server's bounds of one turn
	Titles bool        // models name the conversations of the page
	Log    *slog.Logger
	// Private says that the hub's callers are its operator: they get problems with all details, which clients of a server do not.
	Private bool
	// Telemetry gets what happens outside any request; the rest goes to the telemetry of the request's context. nil: it is dropped.
	Telemetry *telemetry.Telemetry
	Now       func() time.Time // nil: time.Now
	// SessionMemory is what a session in memory is expected to take, in bytes; 0: the constant SessionMemory.
	SessionMemory int64
	// Room returns how much memory is available; nil: what package memory measures. Shed ends a session of the pool to free memory, and says whether there was
	// one; nil: there never is.
	Room func() (memory.Room, error)
	Shed func() bool
	// Unstartable returns why no session can start now, as far as is known; nil: nobody knows.
	Unstartable func() error
}

// Models are the models that a server can ask.
type Models interface {
	// Open connects to a model by PROVIDER/NAME, or by NAME alone where one provider is the default. "" is the default model.
	Open(ctx context.Context, name string) (model.Model, error)
	// List returns the models that can be asked.
	List(ctx context.Context) ([]ModelInfo, error)
}

// ModelInfo describes a model.
type ModelInfo struct {
	ID       string // as Open takes it
	Provider string
	Default  bool
	About    model.About
}

// Live is a session in memory: *session.Live inside ondisk.Live.
type Live interface {
	ondisk.Live
	Kernels
	Tree
	Installer
	Inspector
	Programs
	PortDialer
	Networked
	FileSystem
}

// Networked is a session whose programs can be given a way to other machines. Problems: network_absent.
type Networked interface {
	SetNetwork(ctx context.Context, n guestlink.Network) error
}

// Kernels are the interpreters of one session. The first is "main", is always there, and is what kernel.Request.Kernel "" means.
type Kernels interface {
	StartKernel(ctx context.Context, name string) error   // problems: kernel_name, kernel_exists, too_many_kernels
	RestartKernel(ctx context.Context, name string) error // a new interpreter in its place; running code is interrupted
	StopKernel(ctx context.Context, name string) error    // not "main"
	Reboot(ctx context.Context) error                     // all that runs ends, and files stay; it waits for code that runs
	KernelNames() []string
}

// Inspector looks at the variables of a session's kernels. It waits until the kernel is idle. Problems: kernel_not_found, variable_unknown, not_a_table.
type Inspector interface {
	Variables(ctx context.Context, kernel string) (kernel.Variables, error)
	Table(ctx context.Context, kernel string, q kernel.TableQuery) (kernel.Table, error)
	Profile(ctx context.Context, kernel, table string, column int) (kernel.Profile, error)
	Widgets(ctx context.Context, kernel string) (kernel.WidgetStates, error)
	// Describe says what the name at cursor (in characters) of code stands for: its signature and what is written of it; "" where that is nothing known.
	Describe(ctx context.Context, kernel, code string, cursor int) (string, error)
	// Preview looks at a file of the workspace; it does not wait for a kernel. Problems: not_shown.
	Preview(ctx context.Context, look workspace.Look) (workspace.Preview, error)
	// Tell says what a model is told of files of the workspace, in the order of the paths; it does not wait for a kernel.
	Tell(ctx context.Context, paths []string) ([]workspace.Told, error)
}

// Programs are the processes that one session has beside its kernels. Package session documents the methods.
type Programs interface {
	StartProcess(ctx context.Context, id string, start process.Start) (process.Info, error)
	Processes(ctx context.Context) ([]process.Info, error)
	WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (n int64, err error)
	ResizeProcess(ctx context.Context, id string, size process.Size) error
	SignalProcess(ctx context.Context, id string, signal syscall.Signal, all bool) error
	FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error]
}

// PortDialer reaches the TCP ports at which programs of one session listen. Package session documents the methods.
type PortDialer interface {
	Ports(ctx context.Context) ([]process.Port, error)
	DialPort(ctx context.Context, port int) (guestlink.Stream, error)
}

// Tree is a session's workspace as a file tree. Paths are relative and slash-separated; "" is the workspace itself. Symlinks are never
// followed. Errors are problems: file_not_found, file_denied, workspace_full, invalid_path, file_exists, not_empty.
type Tree interface {
	TreeReader
	ondisk.Changes
}

// TreeReader is the part of a Tree that changes nothing. The other part is the named session's, which keeps changes in its journal.
type TreeReader interface {
	List(ctx context.Context, dir string) (entries []workspace.Entry, more bool, err error) // one level, by name
	Stat(ctx context.Context, path string) (workspace.Entry, error)
	Read(ctx context.Context, path string, offset, limit int64, w io.Writer) (size int64, err error) // limit 0: to the end
	// Archive writes a folder as "tar.gz" or "zip".
	Archive(ctx context.Context, dir, format string, w io.Writer) error
}

// Installer makes packages importable in a session's kernels.
type Installer interface {
	Install(ctx context.Context, requirements []require.Requirement, told func(installation.Progress)) (installation.Provision, error)
}

// Hub is safe for concurrent use.
//
// What it holds in memory, and under which lock:
//
//   - mu guards the maps and everything in a seat, a liveExecution and a line. It is held for moments: code that holds it neither waits nor calls a Live, the store or an emit function. Code that has to wait copies a channel and releases mu.
//   - A seat is a session in memory. seat.moving is not nil while one goroutine loads or evicts the session: only that goroutine uses the session then, and all others wait until the channel is closed. seat.users counts who has acquired the session; it is evicted at 0 only.
//   - A liveExecution waits or runs. It waits in its kernel's line, then for one of the server's slots; it keeps both until its end is stored, so that nothing new begins while the store does not answer.
//   - slots.mu, crew.mu and uploads.mu are leaves: no lock is taken under them. Nothing of package stream is called while mu is held.
//
// Goroutines are begun with spawn and by streams alone, both of which Drain waits for. Three contexts bound them: a request's, which ends no work; working, which ends
// when a drain stops waiting and interrupts what runs; and ended, which ends when the hub does.
type Hub struct {
	o        Options
	log      *slog.Logger
	streams  *stream.Streams // the events of executions and turns
	slots    *slots
	meter    *meter
	sockets  *sockets
	contents *contents
	uploads  *uploads
	gauge    *gauge
	fetches  *fetches
	changes  *changes
	turns    turnTable
	calls    waitTable[tool.Word] // that wait for approval
	inputs   waitTable[string]    // requests of code that wait for a line
	asking   oneEach              // by conversation, of what is asked out of queues

	mounted map[[2]string]bool // projects and volumes that sessions in memory had when volumes were counted last; mu guards it

	working   context.Context
	interrupt context.CancelCauseFunc
	ended     context.Context
	end       context.CancelCauseFunc
	crew      crew         // of spawn
	lost      atomic.Int64 // executions, turns and sessions that Recover found lost
	rowsLate  atomic.Int64 // audit rows that are still to be written after their requests have ended

	mu         sync.Mutex
	draining   bool
	saveBy     time.Time      // until when a drain saves sessions; zero: as long as that takes
	away       time.Time      // since when the store accepts no record, but not before the drain; zero while it accepts them
	lacks      *problem.Error // the store's error then
	owing      int            // records that are not written because the store does not answer
	busy       int            // work that has begun and not ended
	freed      chan struct{}  // closed and made anew when room may have become free
	seats      map[string]*seat
	executions map[string]*liveExecution
	detached   map[string]*detached // by execution
	flying     map[string]int       // executions whose code has not ended, by project and by key
	promises   map[string]*promise
	capacity   int // sessions in memory
}

// Page says which part of a list is wanted: Limit entries (1 to 100; 0 means 20) after the cursor that the last page gave.
type Page struct {
	After string
	Limit int
	// Oldest lists the oldest first.
	Oldest bool
}

// Listing is one page. Next is the cursor of the next one, "" at the end.
type Listing[T any] struct {
	Items []T
	Next  string
}

// Event is what an execution emits.
type Event = kernel.Event

// TurnEvent is what a turn emits.
type TurnEvent = loop.Event

// New returns a hub; nothing is touched until Recover. Limits that are not valid are a problem with code config_invalid.
func New(o Options) (*Hub, error) {
	if err := errors.Join(o.Limits.check(), o.Turns.Check()); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Room == nil {
		o.Room = memory.Machine{}.Look
	}
	o.Command = cmp.Or(o.Command, "cove serve")
	o.SessionMemory = cmp.Or(o.SessionMemory, SessionMemory)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	heard := &changes{}
	o.Store = telling{Store: o.Store, to: heard}
	h := &Hub{
		o: o, changes: heard, log: o.Log, slots: newSlots(o.Limits.Executions), freed: make(chan struct{}), capacity: capacity(o.Limits.Sessions, o.SessionMemory),
		seats: map[string]*seat{}, executions: map[string]*liveExecution{}, detached: map[string]*detached{}, flying: map[string]int{}, promises: map[string]*promise{},
	}
	h.working, h.interrupt = context.WithCancelCause(context.Background())
	h.ended, h.end = context.WithCancelCause(telemetry.With(context.Background(), o.Telemetry))
	h.streams = stream.New(h.ended, o.Store, stream.Options{
		Limit: o.Limits.Stream, Now: h.now, Log: o.Log, Last: isEnd, Fenced: h.lostOwner, Observe: observe, Hold: bodybudget.Recall,
	})
	h.calls = waitTable[tool.Word]{h: h, all: map[string]*waits[tool.Word]{}}
	h.inputs = waitTable[string]{h: h, all: map[string]*waits[string]{}}
	h.meter = newMeter(h)
	h.sockets = newSockets()
	h.contents = newContents(o.Contents, o.Sealer)
	h.uploads = &uploads{writers: map[string]*writer{}}
	h.gauge = &gauge{look: o.Room}
	h.fetches = newFetches(o.Limits.Fetches)
	h.show(o.Telemetry)
	return h, nil
}

func (h *Hub) now() time.Time { return h.o.Now().Truncate(time.Microsecond) } // the store's precision

// spawn runs f in a goroutine. ctx ends with the hub.
func (h *Hub) spawn(f func(ctx context.Context)) {
	h.crew.run(func() { f(h.ended) })
}

// crew counts goroutines. Unlike with a sync.WaitGroup more may be begun during a wait: requests come until the very end.
type crew struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n becomes 0; nil while no goroutine waits
}

func (c *crew) run(f func()) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		f()
	}()
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// wait returns as soon as none runs.
func (c *crew) wait() {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	<-idle
}
