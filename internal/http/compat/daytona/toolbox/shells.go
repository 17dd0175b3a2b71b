package toolbox

import (
	"context"
	_ "embed" // shell.sh
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

//go:embed shell.sh
var shellProgram string

const (
	shellLabel = "daytona session " // begins the label of a session's shell
	entrypoint = "entrypoint"       // a session that every sandbox has, in which nothing runs
	mostQueued = 64                 // commands of a session that wait for their turn
	mostKnown  = 1000               // commands of a session that are remembered
	mostShells = 10_000             // shells that are remembered here, of all sandboxes

	longestCommand = 1 << 20  // bytes
	longestKnown   = 8 << 10  // bytes of a command that are remembered
	mostWaiting    = 64 << 20 // bytes of a project's commands that wait for their turn or run
)

var sessionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,79}$`) })

// shells are what is known here of the shells of sessions, by the ids of their processes. What is not known is read from what their processes have written.
type shells struct {
	mu  sync.Mutex
	all map[string]*shell
}

// shell is the process of a session.
type shell struct {
	process, mark string

	mu       sync.Mutex
	commands []*command
	scanned  int64         // how far its output was read for commands that are not known here
	tail     chan struct{} // closed when the last command has ended, or is not waited for any more
	queued   int
}

// command is one that a session was given.
type command struct {
	id, text string
	begun    bool
	from     int64 // before which nothing of it is
	exit     *int
	done     chan struct{} // closed when nobody waits for its end here any more
}

// shellOf returns the shell of a session by its name.
func (t *Toolbox) shellOf(c *call, name string) (*shell, error) {
	all, err := t.o.Hub.Processes(c.Context(), c.who, c.id())
	if err != nil {
		return nil, err
	}
	ended := false
	for _, i := range slices.Backward(all) {
		if i.Label != shellLabel+name || len(i.Args) == 0 {
			continue
		}
		if i.Exit == nil {
			return t.known(c, i), nil
		}
		ended = true
	}
	if ended {
		return nil, &fault{http.StatusGone, "SESSION_ENDED", "the session has ended, with its shell: " + name}
	}
	return nil, &fault{http.StatusNotFound, "NOT_FOUND", fmt.Sprintf("session not found: %.100s", name)}
}

// known returns what is known of a shell, whose process is i.
func (t *Toolbox) known(c *call, i process.Info) *shell {
	t.shells.mu.Lock()
	defer t.shells.mu.Unlock()
	if t.shells.all == nil || len(t.shells.all) > mostShells {
		t.shells.all = map[string]*shell{} // they are read anew
	}
	key := c.id() + " " + i.ID
	if t.shells.all[key] == nil {
		t.shells.all[key] = &shell{process: i.ID, mark: i.Args[len(i.Args)-1]}
	}
	return t.shells.all[key]
}

// makeShell starts the shell of a new session.
func (t *Toolbox) makeShell(c *call) error {
	var in struct {
		Session string `json:"sessionId"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if !sessionName().MatchString(in.Session) {
		return invalid("sessionId: a session's id has 1 to 80 letters, digits and signs of . _ : @ -, and begins with a letter or a digit")
	}
	if in.Session == entrypoint {
		return &fault{http.StatusConflict, "CONFLICT", "entrypoint is a session that every sandbox has, which only can be read"}
	}
	if _, err := t.shellOf(c, in.Session); err == nil {
		return &fault{http.StatusConflict, "CONFLICT", "session already exists"}
	} else if code, _, _ := said(err); code != http.StatusNotFound && code != http.StatusGone {
		return err
	}
	if err := t.o.Hub.CheckProgram(c.Context(), c.who, ""); err != nil {
		return err
	}
	mark, _ := auth.RandomCode()
	_, err := t.o.Hub.StartProcess(c.Context(), c.who, c.id(), process.Start{
		Args: []string{"bash", "--noprofile", "--norc", "-c", shellProgram, "bash", mark}, Dir: c.s.Work, Env: c.s.environment(nil), Label: shellLabel + in.Session, Input: true,
	})
	if err == nil {
		reply(c.w, http.StatusCreated, map[string]any{"sessionId": in.Session})
	}
	return err
}

// shownCommand is a command as clients see it.
type shownCommand struct {
	ID       string `json:"id"`
	Command  string `json:"command"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

type shownSession struct {
	ID       string         `json:"sessionId"`
	Commands []shownCommand `json:"commands"`
}

func (t *Toolbox) shown(c *call, name string, sh *shell) shownSession {
	t.scan(c, sh)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	out := shownSession{ID: name, Commands: []shownCommand{}}
	for _, one := range sh.commands {
		out.Commands = append(out.Commands, shownCommand{one.id, one.text, one.exit})
	}
	return out
}

func (t *Toolbox) listShells(c *call) error {
	all, err := t.o.Hub.Processes(c.Context(), c.who, c.id())
	if err != nil {
		return err
	}
	out := []shownSession{}
	for _, i := range all {
		if name, ok := strings.CutPrefix(i.Label, shellLabel); ok && i.Exit == nil && len(i.Args) > 0 {
			out = append(out, t.shown(c, name, t.known(c, i)))
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

func (t *Toolbox) showShell(c *call) error {
	sh, err := t.shellOf(c, c.PathValue("session"))
	if err == nil {
		reply(c.w, http.StatusOK, t.shown(c, c.PathValue("session"), sh))
	}
	return err
}

func (t *Toolbox) deleteShell(c *call) error {
	sh, err := t.shellOf(c, c.PathValue("session"))
	if err == nil {
		err = t.o.Hub.SignalProcess(c.Context(), c.who, c.id(), sh.process, "KILL", true)
	} else if code, _, _ := said(err); code == http.StatusGone {
		err = nil
	}
	if err == nil || problem.Has(err, problem.ProcessEnded) {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return err
}

// scan reads what a shell has written for commands, and ends of commands, that are not known here: it was made before the server started, or nobody followed it.
func (t *Toolbox) scan(c *call, sh *shell) {
	sh.mu.Lock()
	from, whole := sh.scanned, len(sh.commands) > 0 && sh.commands[len(sh.commands)-1].exit != nil
	sh.mu.Unlock()
	if whole {
		return
	}
	info, err := t.process(c, sh.process)
	if err != nil || info.Written <= from {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	events, err := t.o.Hub.FollowProcess(ctx, c.who, c.id(), sh.process, max(from, info.Kept))
	if err != nil {
		return
	}
	reader := shellReader{mark: sh.mark}
	for e, err := range events {
		if err != nil {
			return
		}
		reader.add(e, sh.note)
		if e.Next() >= info.Written || e.Kind == process.Ended {
			return
		}
	}
}

// process returns what is known of a process.
func (t *Toolbox) process(c *call, id string) (process.Info, error) {
	all, err := t.o.Hub.Processes(c.Context(), c.who, c.id())
	if err != nil {
		return process.Info{}, err
	}
	for _, i := range all {
		if i.ID == id {
			return i, nil
		}
	}
	return process.Info{}, &fault{http.StatusGone, "SESSION_ENDED", "the session has ended"}
}

// note remembers what a piece of a shell's output says of a command.
func (sh *shell) note(p piece) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at := slices.IndexFunc(sh.commands, func(one *command) bool { return one.id == p.command })
	switch {
	case p.kind == pieceBegin && at < 0:
		sh.append(&command{id: p.command, text: string(p.data), begun: true, from: p.at})
	case p.kind == pieceBegin && !sh.commands[at].begun:
		sh.commands[at].begun, sh.commands[at].from = true, p.at
	case p.kind == pieceDone && at >= 0 && p.stream == process.Stdout:
		sh.commands[at].exit = &p.status
	}
}

func (sh *shell) append(one *command) {
	sh.commands = append(sh.commands, one)
	if len(sh.commands) > mostKnown {
		sh.commands = slices.Delete(sh.commands, 0, len(sh.commands)-mostKnown)
	}
}

// enqueue gives a session a command, which runs behind those before it, whether or not its client waits. tell, if it is not nil, takes what the command writes.
func (t *Toolbox) enqueue(c *call, sh *shell, text string, tell func(kind process.Kind, data []byte)) (*command, error) {
	if len(text) > longestCommand {
		return nil, invalid(fmt.Sprintf("command: it is longer than %d KiB; upload it as a file, and run that", longestCommand>>10))
	}
	leave, err := t.wait(c.who.Project, len(text))
	if err != nil {
		return nil, err
	}
	id, _ := auth.RandomCode()
	one := &command{id: id, text: strings.ToValidUTF8(strings.Clone(text[:min(len(text), longestKnown)]), ""), done: make(chan struct{})}
	sh.mu.Lock()
	if sh.queued >= mostQueued {
		sh.mu.Unlock()
		leave()
		return nil, problem.New(problem.TooManyRequests, fmt.Sprintf("%d commands of the session wait for their turn", mostQueued)).WithHint("make another session, or wait until some have ended")
	}
	sh.queued++
	before := sh.tail
	sh.tail = one.done
	sh.append(one)
	sh.mu.Unlock()
	ctx := c.lasting()
	go func() {
		defer leave()
		defer func() {
			sh.mu.Lock()
			defer sh.mu.Unlock()
			sh.queued--
			close(one.done)
		}()
		if before != nil {
			<-before
		}
		if err := t.perform(ctx, c, sh, one, text, tell); err != nil && !problem.Has(err, problem.SessionTaken, problem.ProcessEnded, problem.ProcessNotFound, problem.SessionNotFound) {
			t.o.Log.WarnContext(ctx, "a session's command could not be followed to its end", "session", c.id(), "error", err)
		}
	}()
	return one, nil
}

// wait counts bytes of a project's commands, which are held here until they have ended.
func (t *Toolbox) wait(project string, bytes int) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[project]+bytes > mostWaiting {
		return nil, problem.New(problem.TooManyRequests, "the project has too many commands that wait for their turn, or run").WithHint("wait until some have ended")
	}
	t.waiting[project] += bytes
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waiting[project] -= bytes; t.waiting[project] == 0 {
			delete(t.waiting, project)
		}
	}, nil
}

// perform has a shell run a command, and follows it until its end. The shell is followed first, and says that it is ready: it keeps little of what it writes while nobody follows it.
func (t *Toolbox) perform(ctx context.Context, c *call, sh *shell, one *command, text string, tell func(kind process.Kind, data []byte)) error {
	info, err := t.settled(ctx, c, sh)
	if err != nil {
		return err
	}
	sh.mu.Lock()
	one.from = info.Written
	sh.mu.Unlock()
	say := func(request string) error { // a line end before: a command may have left a part of a line
		_, err := t.o.Hub.TellProcess(ctx, c.who, c.id(), sh.process, strings.NewReader("\n"+sh.mark+" "+request+"\n"), false)
		return err
	}
	if err := say("?"); err != nil {
		return err
	}
	return t.reading(ctx, c, sh, one, tell, func() error { return say(one.id + " " + base64.StdEncoding.EncodeToString([]byte(text))) })
}

// settled waits until no command runs in a shell, and returns what is known of its process then.
func (t *Toolbox) settled(ctx context.Context, c *call, sh *shell) (process.Info, error) {
	inner := *c
	inner.Request = c.WithContext(ctx)
	t.scan(&inner, sh)
	sh.mu.Lock()
	var running *command
	for _, one := range sh.commands {
		if one.begun && one.exit == nil {
			running = one
		}
	}
	sh.mu.Unlock()
	if running != nil {
		if err := t.output(ctx, c, sh, running, nil); err != nil {
			return process.Info{}, err
		}
	}
	return t.process(&inner, sh.process)
}

// errShellEnded says that a shell has ended with its command, as by exit.
var errShellEnded = errors.New("the shell has ended")

// output has tell take what a command has written and writes, until its end in both streams.
func (t *Toolbox) output(ctx context.Context, c *call, sh *shell, one *command, tell func(kind process.Kind, data []byte)) error {
	return t.reading(ctx, c, sh, one, tell, nil)
}

// reading is output that calls ready, where it is not nil, once the shell has said that it is.
func (t *Toolbox) reading(ctx context.Context, c *call, sh *shell, one *command, tell func(kind process.Kind, data []byte), ready func() error) error {
	sh.mu.Lock()
	from := one.from
	sh.mu.Unlock()
	events, err := t.o.Hub.FollowProcess(ctx, c.who, c.id(), sh.process, from)
	if err != nil {
		return err
	}
	reader, ended := shellReader{mark: sh.mark}, map[process.Kind]bool{}
	for e, err := range events {
		switch {
		case err != nil:
			return err
		case e.Kind == process.Ended:
			if e.Exit != nil {
				status := e.Exit.Status()
				sh.mu.Lock()
				one.exit = &status
				sh.mu.Unlock()
			}
			return nil
		case e.Kind == process.Gap && tell != nil:
			tell(process.Stdout, []byte("\n[what was written before is not kept any more]\n"))
			reader.stream(process.Stdout).command, reader.stream(process.Stderr).command = one.id, one.id
		}
		begins := false
		reader.add(e, func(p piece) {
			sh.note(p)
			switch {
			case p.kind == pieceReady:
				begins = true
			case p.command != one.id:
			case p.kind == pieceDone:
				ended[p.stream] = true
			case p.kind == pieceText && tell != nil && !ended[p.stream]:
				tell(p.stream, p.data)
			}
		})
		if begins && ready != nil {
			if err := ready(); err != nil {
				return err
			}
			ready = nil
		}
		if ended[process.Stdout] && ended[process.Stderr] {
			return nil
		}
	}
	return errShellEnded
}

// begun waits until a command has begun, for those that wait for their turn.
func (t *Toolbox) begun(ctx context.Context, c *call, sh *shell, one *command) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		sh.mu.Lock()
		begun := one.begun || one.exit != nil
		sh.mu.Unlock()
		if begun {
			return nil
		}
		select {
		case <-one.done:
			inner := *c
			inner.Request = c.WithContext(ctx)
			t.scan(&inner, sh)
			return nil
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
