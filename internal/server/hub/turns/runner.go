// Package turns has conversations and their turns: questions, the queues in which they wait, the loop between a model and a session that answers them, approvals, tries
// and forks. It changes with what a question can be and how it is answered. It uses sessions through package live alone.
package turns

import (
	"context"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/files"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/meter"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/work"
	"cove/internal/sessions/ondisk"
)

// Options are what a Runner is made of; hub.Options says more of each.
type Options struct {
	Models Models
	// Private says that the callers are in this process, which shows widgets as text.
	Private bool
	// Instructions returns those of a project; nil: there are none.
	Instructions func(ctx context.Context, project string) (string, error)
	About        func(name string) model.About
	Asker        func(ctx context.Context, project, user, key string) (auth.Principal, error)
	Turns        loop.Limits
	Titles       bool
	Limits       record.Limits
	// Sessions and Command are those of live.Options: the tries of a question keep points of its session on the disk.
	Sessions ondisk.Store
	Command  string
}

// Runner is safe for concurrent use.
//
// Its locks: turnTable.mu guards the turns that run, oneEach.mu which conversations' queues are looked at, stepper.mu the ids of a turn's steps. None is taken under
// another, and no lock of another package under them.
type Runner struct {
	work    *work.Core
	meter   *meter.Meter
	library *files.Library
	live    *live.Manager
	o       Options
	table   turnTable
	asking  oneEach // by conversation, of what is asked out of queues
}

// New returns a runner that gets its sessions by UseSessions.
func New(core *work.Core, quotas *meter.Meter, library *files.Library, o Options) *Runner {
	return &Runner{work: core, meter: quotas, library: library, o: o}
}

// UseSessions gives the runner its sessions, before anything else is called: sessions know turns as live.TurnHooks, so that one of the two is made first.
func (r *Runner) UseSessions(sessions *live.Manager) { r.live = sessions }

// Hooks returns what package live calls of turns.
func (r *Runner) Hooks() live.TurnHooks { return turnHooks{r} }
