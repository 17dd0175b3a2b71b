// Package live has sessions and executions: which sessions are in memory, who uses them, what runs in them, and what becomes of them when they are idle, the memory is
// short or the server ends. It changes with the life of sessions and of code. Turns use it, and are known to it as TurnHooks alone.
package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/core/memory"
	"cove/internal/core/telemetry"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/tool"
	"cove/internal/server/hub/files"
	"cove/internal/server/hub/meter"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/work"
	"cove/internal/server/ownership"
	"cove/internal/server/stream"
	"cove/internal/sessions/ondisk"
)

// Options are what a Manager is made of; hub.Options says more of each.
type Options struct {
	Owner         *ownership.Owner
	Command       string
	Sessions      ondisk.Store
	Prepare       ondisk.Prepare
	Base          ondisk.Base
	Unsaved       bool
	ToolServers   ToolServers
	Limits        record.Limits
	Network       record.NetworkLimits
	System        int64
	Images        Images
	Telemetry     *telemetry.Telemetry
	SessionMemory int64
	Room          func() (memory.Room, error)
	Shed          func() bool
	Unstartable   func() error
	// Restarted is called when a session has begun an interpreter anew; nil: nobody asks.
	Restarted func(project, session string)
}

// Manager is safe for concurrent use.
//
// What it holds in memory, and under which lock:
//
//   - mu guards the maps and everything in a seat, a liveExecution and a line. It is held for moments: code that holds it neither waits nor calls a Live, the store or an emit function. Code that has to wait copies a channel and releases mu.
//   - A seat is a session in memory. seat.moving is not nil while one goroutine loads or evicts the session: only that goroutine uses the session then, and all others wait until the channel is closed. seat.users counts who has acquired the session; it is evicted at 0 only.
//   - A liveExecution waits or runs. It waits in its kernel's line, then for one of the server's slots; it keeps both until its end is stored, so that nothing new begins while the store does not answer.
//   - slots.mu and the locks of packages work, meter and files are leaves: no lock of this package is taken under them. Nothing of package stream is called while mu is held.
//
// Goroutines are begun with work.Core.RunInBackground and by streams alone, both of which Drain waits for. Three contexts bound them: a request's, which ends no work; working, which ends
// when a drain stops waiting and interrupts what runs; and ended, which ends when the hub does.
type Manager struct {
	work    *work.Core
	meter   *meter.Meter
	library *files.Library
	hooks   TurnHooks
	o       Options

	Streams *stream.Streams // the events of executions and turns
	Lost    atomic.Int64    // executions, turns and sessions that Recover found lost

	slots   *slots
	sockets *sockets
	echoes  echoes
	gauge   *gauge
	fetches *fetches
	calls   waitTable[tool.Word] // that wait for approval
	inputs  waitTable[string]    // requests of code that wait for a line

	working   context.Context
	interrupt context.CancelCauseFunc
	end       context.CancelCauseFunc

	mu         sync.Mutex
	draining   bool
	saveBy     time.Time     // until when a drain saves sessions; zero: as long as that takes
	busy       int           // work that has begun and not ended
	freed      chan struct{} // closed and made anew when room may have become free
	seats      map[string]*seat
	executions map[string]*liveExecution
	detached   map[string]*Detached // by execution
	flying     map[string]int       // executions whose code has not ended, by project and by key
	capacity   int                  // sessions in memory
}

// New returns a manager without sessions; nothing is touched until Recover. end ends what goes on in the background (core.Ended), after a drain.
func New(core *work.Core, quotas *meter.Meter, library *files.Library, hooks TurnHooks, end context.CancelCauseFunc, o Options) *Manager {
	m := &Manager{
		work: core, meter: quotas, library: library, hooks: hooks, end: end, o: o,
		slots: newSlots(o.Limits.Executions), sockets: newSockets(), gauge: &gauge{look: o.Room}, fetches: newFetches(o.Limits.Fetches),
		freed: make(chan struct{}), capacity: capacity(o.Limits.Sessions, o.SessionMemory),
		seats: map[string]*seat{}, executions: map[string]*liveExecution{}, detached: map[string]*Detached{}, flying: map[string]int{},
	}
	m.working, m.interrupt = context.WithCancelCause(context.Background())
	m.Streams = stream.New(core.Ended, core.Store, stream.Options{
		Limit: o.Limits.Stream, Now: core.Now, Log: core.Log, Last: isEnd, Fenced: core.LostOwnerError, Observe: observe, Hold: bodybudget.Recall,
	})
	m.calls = waitTable[tool.Word]{m: m, all: map[string]*waits[tool.Word]{}}
	m.inputs = waitTable[string]{m: m, all: map[string]*waits[string]{}}
	m.registerGauges(o.Telemetry)
	return m
}
