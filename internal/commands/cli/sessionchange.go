package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/sessions/ondisk"
)

type sessionPause struct {
	Name string `arg:"" complete:"session" help:"The session; on a server, its name or id."`
	serverFlags
	JSON bool `name:"json" help:"Print the session as one JSON object."`
}

// Help is the long help.
func (sessionPause) Help() string {
	return `Saves a session that cove session resume brought into memory, and ends the process that keeps it there. Any other session is
paused by itself when the command that uses it ends; then this only says so. It fails when a command uses the session at the moment;
a server waits for the code that runs.

Example:

    cove session pause lab`
}

func (c *sessionPause) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onSessions(c.serverFlags, func(from sessions) error {
		begun := time.Now()
		s, was, err := from.Pause(ctx, c.Name)
		if err != nil {
			return err
		}
		text := "session " + oneLine(c.Name) + " is paused already: it is files and no process"
		switch {
		case was:
			text = fmt.Sprintf("session %s is paused; that took %s", oneLine(c.Name), time.Since(begun).Round(time.Millisecond))
		case s.State == ondisk.New:
			text = "session " + c.Name + " has nothing to pause: nothing has run in it yet"
		case s.State == ondisk.Lost:
			text = s.Reason
		}
		return p.answer(c.JSON, s, text)
	})
}

// answer says what became of a session.
func (p *Program) answer(asJSON bool, s sessionView, text string) error {
	if asJSON {
		return p.printJSON(s.shown())
	}
	_, err := fmt.Fprintln(p.Out, lang.Text(text))
	return err
}

type sessionFork struct {
	From string `arg:"" complete:"session" help:"The session to go on from; on a server, its name or id."`
	To   string `arg:"" help:"The name of the new one."`
	serverFlags
	JSON bool `name:"json" help:"Print the new session as one JSON object."`
}

// Help is the long help.
func (sessionFork) Help() string {
	return `The new session has the same variables and files and is independent from then on. Their random generators are given
different seeds. Until one of the two is saved again, they share the room on the disk.

Example:

    cove session fork lab lab2`
}

func (c *sessionFork) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onSessions(c.serverFlags, func(from sessions) error {
		s, err := from.Fork(ctx, c.From, c.To)
		if err != nil {
			return err
		}
		return p.answer(c.JSON, s, fmt.Sprintf("session %s goes on from where %s is: %s", oneLine(c.To), oneLine(c.From), s.at()))
	})
}

type sessionUndo struct {
	Name string `arg:"" complete:"session" help:"The session; on a server, its name or id."`
	serverFlags
	JSON bool `name:"json" help:"Print the session as one JSON object."`
}

// Help is the long help.
func (sessionUndo) Help() string {
	return `Variables and files are again what they were. A snapshot to return to is kept from before each execution that is run with
--undoable; the setting session.undo_depth says how many. Executions that were run without it are undone together with the one before.
A session in memory is paused by this. On a server the session returns to before the last question to a model, of which a point is kept.

Example:

    cove run --session lab --undoable -c 'x.clear()'
    cove session undo lab`
}

func (c *sessionUndo) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onSessions(c.serverFlags, func(from sessions) error {
		s, err := from.Undo(ctx, c.Name)
		if err != nil {
			return err
		}
		return p.answer(c.JSON, s, fmt.Sprintf("session %s is as it was at %s; undos left: %d", oneLine(c.Name), s.at(), len(s.Undo)))
	})
}

type sessionRm struct {
	Names []string `arg:"" optional:"" name:"name" complete:"session" help:"The sessions; on a server, their names or ids."`
	serverFlags
	All  bool `help:"Delete every session; on a server, every one that the user of the key has made in the project."`
	Yes  bool `short:"y" help:"With --all: do not ask on a terminal."`
	JSON bool `name:"json" help:"Print what was deleted as one JSON object."`
}

// Help is the long help.
func (sessionRm) Help() string {
	return `Deletes for good; on a terminal, --all asks first. A session that a command uses is not deleted; on a server, what runs in it is interrupted.

Examples:

    cove session rm lab lab2
    cove session rm --all`
}

func (c *sessionRm) run(ctx context.Context, p *Program) (int, error) {
	return 0, p.onSessions(c.serverFlags, func(from sessions) error {
		if (len(c.Names) == 0) != c.All {
			return problem.New(problem.Usage, "give the names of sessions, or --all").WithHint("`cove session ls` lists them")
		}
		names := c.Names
		if c.All {
			all, err := from.Own(ctx)
			if err != nil {
				return err
			}
			names = all
			if len(names) > 0 && !c.Yes && !c.JSON && !p.agreed(lang.Sprintf("Delete for good: %s?", oneLine(strings.Join(names, ", ")))) {
				return problem.New(problem.GivenUp, "nothing was deleted")
			}
		}
		removed := []string{}
		var failed []error
		for _, name := range names {
			if err := from.Remove(ctx, name); err != nil {
				failed = append(failed, err)
				continue
			}
			removed = append(removed, name)
		}
		switch {
		case c.JSON:
			if err := p.printJSON(map[string]any{"removed": removed}); err != nil {
				return err
			}
		case len(removed) > 0:
			lang.Fprintf(p.Out, "deleted: %s\n", oneLine(strings.Join(removed, ", ")))
		case len(failed) == 0:
			notef(p.Err, "there are no sessions")
		}
		return errors.Join(failed...)
	})
}
