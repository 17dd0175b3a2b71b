// Package ownership says which process works on which records of a database that several processes share.
//
// An owner is one process. While it lives it has a record in the database with a lease, which it renews, and every execution, turn and session
// that it has not ended yet carries its id. An owner is dead as soon as its record is gone, which is what all others go by, and which fences it: the
// database takes nothing more from it. A record is removed by
//
//   - its own process, at its end (Release);
//   - a process that registers alone for the same home: there can be one of these at a time, and their number is the home's epoch;
//   - another process on the same machine that finds the owner's lock file unlocked, which the kernel does as soon as a process is gone;
//   - another process that finds that the lease has run out, and that the database could be reached all the while.
//
// A home is a place whose disk keeps sessions: a folder with an id of its own. Sessions of a home can be brought into memory there and nowhere else.
// All times are those of the database's clock, so that the clocks of several machines need not agree.
package ownership

import (
	"context"
	"time"

	"cove/internal/core/problem"
)

// How owners live. A process that is killed is found dead by others on its machine at once, and by those on other machines within Lease + Round.
const (
	// Lease is how long an owner counts as alive without renewing its record.
	Lease = 20 * time.Second
	// Round is how often it renews it, and looks for others whose lease has run out.
	Round = 5 * time.Second
	// retry is how soon it tries again when the database did not answer.
	retry = time.Second
	// blind is between two looks at the database the time in which it may have been away: what others did not do meanwhile says nothing of them.
	blind = 2 * Round
)

// Record is an owner as the database has it.
type Record struct {
	ID    string // ident.Owner
	Home  string // ident.Home
	Epoch int64  // of an owner that is alone in its home: how many there were, itself included; 0 of one of several
	Since time.Time
	Until time.Time // the end of its lease
	About
}

// About says for people, and for proofs of death on one machine, what process an owner is.
type About struct {
	Command string // such as "cove serve"
	PID     int
	Host    string // the machine's name
	Boot    string // the id of the machine's start; "" where the system does not say
}

// Home is a place whose disk keeps sessions.
type Home struct {
	ID    string
	Epoch int64  // how many owners have been alone in it
	Host  string // the machine of the last one that registered for it
}

// Store keeps owners and homes. Package store implements it. Its errors are problems; of kind Unavailable when the database cannot be reached.
type Store interface {
	// AddOwner writes the record of an owner, and its home's, and removes those of the dead, in one transaction. alone removes the former owners that
	// were alone in the home, and fills in the epoch. The lease begins.
	AddOwner(ctx context.Context, r Record, alone bool, dead []string) (Record, error)
	// RenewOwner begins the lease anew and returns the time. A problem with code "owner_lost" where the record is gone.
	RenewOwner(ctx context.Context, id string) (now time.Time, err error)
	// Owners returns the owners that live.
	Owners(ctx context.Context) ([]Record, error)
	// RemoveOwners removes dead owners whose leases are still the ones given, unless the one that says so is dead itself.
	RemoveOwners(ctx context.Context, by string, dead []Record) (removed int, err error)
	// RemoveOwner removes an owner's record, if it is there.
	RemoveOwner(ctx context.Context, id string) error
}

// ErrLost is what a dead owner gets for everything that it would write.
func ErrLost() error {
	return problem.New(problem.OwnerLost, "other cove processes took this one for dead, because it did not renew its lease in the database in time").
		WithHint("what it had not ended was ended as lost; try again when it was started anew")
}

// IsLost says whether err is what a dead owner gets.
func IsLost(err error) bool {
	p := problem.Of(err)
	return problem.Has(p, problem.OwnerLost)
}

// watch is what a process has seen of the database, by the database's clock.
type watch struct {
	since time.Time // it could be reached since then
	last  time.Time
}

// saw notes that the database answered. After a time in which it may have been away, or its clock was set, the watch begins anew.
func (w watch) saw(now time.Time) watch {
	if w.last.IsZero() || now.Before(w.last) || now.Sub(w.last) > blind {
		w.since = now
	}
	w.last = now
	return w
}

// dead says whether another owner has died: it has not renewed its lease although the database could have been reached for as long as a lease lasts.
func (w watch) dead(r Record) bool {
	return !r.Until.After(w.last) && w.last.Sub(w.since) >= Lease
}
