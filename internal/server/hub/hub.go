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
	"log/slog"
	"time"

	"cove/internal/core/memory"
	"cove/internal/core/seal"
	"cove/internal/core/telemetry"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub/changes"
	"cove/internal/server/hub/files"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/meter"
	"cove/internal/server/hub/turns"
	"cove/internal/server/hub/work"
	"cove/internal/server/ownership"
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
	// Instructions returns what models are asked to do in a project's conversations; nil: nothing.
	Instructions func(ctx context.Context, project string) (string, error)
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

// Hub puts the packages below it together. A method of a package's type that it embeds is a method of the Hub, too. It is safe for concurrent use, and has no lock of
// its own: each package has those of what it holds.
//
// Which locks may be taken under which: those of packages turns and live under none; those of packages files, meter, changes and work under all. No lock is held while a session, the store or an emit function is called.
type Hub struct {
	*changes.Feed
	*files.Library
	*meter.Meter
	*live.Manager
	*turns.Runner

	o    Options
	work *work.Core
}

// New returns a hub; nothing is touched until Recover. Limits that are not valid are a problem with code config_invalid.
func New(o Options) (*Hub, error) {
	if err := errors.Join(o.Limits.Check(), o.Turns.Check()); err != nil {
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
	ended, end := context.WithCancelCause(telemetry.With(context.Background(), o.Telemetry))
	owner := ""
	if o.Owner != nil {
		owner = o.Owner.ID
	}
	h := &Hub{}
	h.Feed, o.Store = changes.New(ended, o.Store, owner)
	h.o = o
	h.work = work.New(ended, work.Options{Store: o.Store, Owner: o.Owner, Audit: o.Audit, Private: o.Private, Log: o.Log, Now: o.Now})
	h.Meter = meter.New(h.work, meter.Options{Limits: o.Limits, Code: o.Code, Redaction: o.Redaction, Quotas: o.Quotas})
	h.Library = files.New(h.work, h.Meter, files.Options{
		Contents: o.Contents, Sealer: o.Sealer, Volumes: o.Volumes, NoVolumes: o.NoVolumes, MostFile: o.Limits.File, MostVolume: o.Limits.Volume,
	})
	h.Runner = turns.New(h.work, h.Meter, h.Library, turns.Options{
		Models: o.Models, Private: o.Private, Instructions: o.Instructions, About: o.About, Asker: o.Asker, Turns: o.Turns, Titles: o.Titles, Limits: o.Limits, Sessions: o.Sessions, Command: o.Command,
	})
	h.Manager = live.New(h.work, h.Meter, h.Library, h.Hooks(), end, live.Options{
		Owner: o.Owner, Command: o.Command, Sessions: o.Sessions, Prepare: o.Prepare, Base: o.Base, Unsaved: o.Unsaved, ToolServers: o.ToolServers, Limits: o.Limits,
		Network: o.Network, System: o.System, Images: o.Images, Telemetry: o.Telemetry, SessionMemory: o.SessionMemory, Room: o.Room, Shed: o.Shed, Unstartable: o.Unstartable,
		Restarted: h.NotifyRestart,
	})
	h.UseSessions(h.Manager)
	return h, nil
}
