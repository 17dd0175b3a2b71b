package record

import (
	"context"
	"runtime"
	"time"

	"cove/internal/core/problem"
)

// Limits bound what the users of a server may hold at once and use up. 0 is no limit; those that must not be without one have to be above 0, and say so.
// Start from DefaultLimits.
type Limits struct {
	Sessions   int           // live sessions of the whole server; bounds those in memory, too
	Memory     int64         // bytes that a new session may ask for
	Executions int           // running executions of the whole server; further ones wait
	Queue      int           // executions that may wait for one kernel; above 0
	Project    Quota         // of a project that has none of its own
	Key        Quota         // of a key that has none of its own
	Idle       time.Duration // after which a session without work is paused
	Life       time.Duration // after which a session that nobody extended is deleted
	Execution  time.Duration // wall clock of one execution
	// An unused session in memory is saved after SaveAfter; a session in use is saved when it has had unsaved changes for SaveWithin, as soon as no code runs.
	// Both above 0.
	SaveAfter  time.Duration
	SaveWithin time.Duration
	Output     int64         // bytes of output of one execution; above 0
	File       int64         // bytes of one uploaded file; above 0
	Code       int           // bytes of one execution's code; above 0
	Volume     int64         // bytes in one volume
	Fetches    int           // images that are fetched at once, one for each key; above 0
	Fetch      time.Duration // that fetching an image may take, with the wait for its turn; above 0
	// Approval is how long a turn waits for its user's word about code that is to run; above 0.
	Approval time.Duration
	// Results is how long the code of a turn waits for its client to bring the results of calls; above 0.
	Results time.Duration
	Stream  int64 // bytes of events that are kept of one execution or turn, about
	// Points is how many points a session keeps, the newest ones, within PointRoom bytes; 0 keeps none, and is no limit of the room.
	Points    int
	PointRoom int64
}

// Quota is what a project or a key may use. 0 is no limit.
type Quota struct {
	Sessions   int        `json:"live_sessions,omitempty"`
	Executions int        `json:"concurrent_executions,omitempty"`
	CPUSeconds float64    `json:"cpu_seconds_per_day,omitempty"`
	Disk       int64      `json:"disk_bytes,omitempty"` // files and paused sessions
	Tokens     int64      `json:"tokens_per_day,omitempty"`
	Code       *CodeRules `json:"code,omitempty"`    // what becomes of code before it runs; of a project in the place of the server's rules, of a key besides
	Redact     *Redaction `json:"redact,omitempty"`  // what is taken out of what code emits; of a project in the place of the server's, of a key besides
	Network    *Reach     `json:"network,omitempty"` // where sessions may connect to, within what the operator allows; nil: all of that
}

// Reach is where sessions may connect to, as egress.ParseRules reads it. Without a rule that allows something it is nowhere.
type Reach struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// DefaultLimits are the limits of a server on this machine without settings.
func DefaultLimits() Limits {
	return Limits{
		Executions: 2 * runtime.NumCPU(), Queue: 16, Idle: 15 * time.Minute, Life: 30 * 24 * time.Hour, Execution: 5 * time.Minute,
		SaveAfter: 10 * time.Second, SaveWithin: 2 * time.Minute, Output: 16 << 20, File: 512 << 20, Code: 1 << 20, Points: 100, PointRoom: 1 << 30,
		Fetches: 2, Fetch: 15 * time.Minute, Approval: time.Hour, Results: 10 * time.Minute,
	}
}

// Check returns a problem for a limit that must be above 0 and is not, or is below 0.
func (l Limits) Check() error {
	for _, limit := range []struct {
		name  string
		holds bool
		rule  string
	}{
		{"Queue", l.Queue > 0, "above 0"}, {"Life", l.Life >= 0, "0 or more"}, {"SaveAfter", l.SaveAfter > 0, "above 0"},
		{"SaveWithin", l.SaveWithin > 0, "above 0"}, {"Output", l.Output > 0, "above 0"}, {"File", l.File > 0, "above 0"}, {"Code", l.Code > 0, "above 0"}, {"Fetches", l.Fetches > 0, "above 0"}, {"Fetch", l.Fetch > 0, "above 0"}, {"Approval", l.Approval > 0, "above 0"}, {"Results", l.Results > 0, "above 0"},
		{"Volume", l.Volume >= 0, "0 or more"}, {"Stream", l.Stream >= 0, "0 or more"}, {"Points", l.Points >= 0, "0 or more"}, {"PointRoom", l.PointRoom >= 0, "0 or more"},
		{"Sessions", l.Sessions >= 0, "0 or more"}, {"Memory", l.Memory >= 0, "0 or more"}, {"Executions", l.Executions >= 0, "0 or more"},
		{"Idle", l.Idle >= 0, "0 or more"}, {"Execution", l.Execution >= 0, "0 or more"},
	} {
		if !limit.holds {
			return problem.New(problem.ConfigInvalid, "the hub's limit "+limit.name+" must be "+limit.rule)
		}
	}
	return nil
}

// Tighter returns the smaller of a request's value and the limit; 0 is no value, or no limit.
func Tighter[T int | int64 | time.Duration](asked, limit T) T {
	if asked <= 0 || limit > 0 && limit < asked {
		return limit
	}
	return asked
}

// WithLimit bounds a context by a limit; 0 is no limit.
func WithLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}
