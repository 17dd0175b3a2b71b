package work

import (
	"context"
	"fmt"

	"cove/internal/core/problem"
	"cove/internal/server/hub/record"
	"cove/internal/server/ownership"
)

// OwnerID returns the id of this process as an owner; "" where the hub is alone on its store.
func (c *Core) OwnerID() string {
	if c.o.Owner == nil {
		return ""
	}
	return c.o.Owner.ID
}

// HomeID returns the id of the home that has this hub's sessions on its disk; "" where the hub is alone on its store.
func (c *Core) HomeID() string {
	if c.o.Owner == nil {
		return ""
	}
	return c.o.Owner.Home
}

// IsFenced says that other processes count this one as dead: the database takes nothing more from it.
func (c *Core) IsFenced() bool { return c.o.Owner != nil && IsClosed(c.o.Owner.Lost()) }

// LostOwnerError is why nothing that this process does counts any more; nil while it counts.
func (c *Core) LostOwnerError() error {
	if c.IsFenced() {
		return ownership.ErrLost()
	}
	return nil
}

// CheckHere returns a problem when this hub cannot use a session, because it is on another home's disk or in another process's memory. abandoned says that a dead
// process had the session in memory, so that this hub first has to find out what was lost.
func (c *Core) CheckHere(ctx context.Context, row record.Session) (abandoned bool, err error) {
	switch {
	case row.Home != "" && row.Home != c.HomeID():
		return false, c.ElsewhereProblem(ctx, problem.SessionElsewhere, "session", row.Home)
	case row.Owner == "", row.Owner == c.OwnerID():
		return false, nil
	}
	other, err := c.Store.Owner(ctx, row.Owner)
	switch {
	case problem.Is(err, problem.NotFound):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, problem.New(problem.SessionInUse, fmt.Sprintf("the session is used by %s (process %d)", other.Command, other.PID)).
		WithHint("wait until that command has ended or has paused the session; one command at a time can use a session")
}

// ElsewhereProblem is the problem of a session or a file that is on the disk of another home, or in the memory of a process there.
func (c *Core) ElsewhereProblem(ctx context.Context, code problem.UnavailableCode, what, home string) error {
	at, served, err := c.Store.Home(ctx, home)
	if err != nil && !problem.Is(err, problem.NotFound) {
		return err
	}
	where, hint := "another server", "ask that server"
	switch {
	case err == nil && at.Epoch == 0: // no server was ever started there
		where, hint = "the command line in another folder or on another machine", "use it there"
	case !served:
		hint = "that server is not running; ask its operator to start it"
	}
	if at.Host != "" {
		where += " (" + at.Host + ")"
	}
	return problem.New(code, "the "+what+" is on "+where).WithHint(hint)
}

// RunsElsewhereProblem says why an execution or a turn that has not ended cannot be stopped here; nil where another process does not run it.
func (c *Core) RunsElsewhereProblem(ctx context.Context, code problem.UnavailableCode, what, by string) error {
	if by == "" || by == c.OwnerID() {
		return nil
	}
	other, err := c.Store.Owner(ctx, by)
	switch {
	case problem.Is(err, problem.NotFound):
		return nil // its process is dead, and recovery is about to end it
	case err != nil:
		return err
	case other.Home != c.HomeID():
		return c.ElsewhereProblem(ctx, code, what, other.Home)
	}
	return problem.New(code, fmt.Sprintf("the %s is run by %s (process %d)", what, other.Command, other.PID)).
		WithHint("interrupt that process")
}
