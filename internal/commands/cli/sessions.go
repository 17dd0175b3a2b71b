package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/sessions/ondisk"
)

// sessions are those of this machine's command line, or of a server. One is named by its name, on a server also by its id.
type sessions interface {
	// List returns them, the one used last first.
	List(ctx context.Context) ([]sessionView, error)
	Show(ctx context.Context, name string) (sessionView, error)
	// Pause takes a session out of memory; was says whether it was there.
	Pause(ctx context.Context, name string) (s sessionView, was bool, err error)
	// Fork makes the session to, which goes on from from.
	Fork(ctx context.Context, from, to string) (sessionView, error)
	// Undo returns a session to its last point.
	Undo(ctx context.Context, name string) (sessionView, error)
	Remove(ctx context.Context, name string) error
	// Own are the names, or ids, of all sessions that the caller has made.
	Own(ctx context.Context) ([]string, error)
}

// sessionView is one as it is shown: what is known of sessions on this machine, as far as a server tells it too.
type sessionView struct {
	ondisk.Info
	server *api.Session // what the server says; nil: it is on this machine
	points bool         // with Head and Undo of a server's
	moment string       // that it is as it was at; "": Head says it
	extra  [][2]string  // that is shown of it besides
}

// onSessions has use work on the sessions that the flags name.
func (p *Program) onSessions(f serverFlags, use func(sessions) error) error {
	if p.ConfigErr != nil {
		return p.ConfigErr
	}
	base, key, err := f.remote(p.Config)
	if err != nil {
		return err
	}
	var from sessions = localSessions{store: p.store(p.Config)}
	if base != "" {
		c := client.New(base, key)
		defer c.Close()
		from = &remoteSessions{client: c}
	}
	return use(from)
}

// localSessions are on this machine.
type localSessions struct{ store ondisk.Store }

var _ sessions = localSessions{}

func here(info ondisk.Info, err error) (sessionView, error) { return sessionView{Info: info}, err }

func (l localSessions) List(context.Context) ([]sessionView, error) {
	all, err := l.store.List()
	out := make([]sessionView, 0, len(all))
	for _, info := range all {
		out = append(out, sessionView{Info: info})
	}
	return out, err
}

func (l localSessions) Show(ctx context.Context, name string) (sessionView, error) {
	return here(l.store.Show(ctx, name))
}

func (l localSessions) Pause(ctx context.Context, name string) (sessionView, bool, error) {
	info, was, err := l.store.Pause(ctx, name, "cove session pause")
	return sessionView{Info: info}, was, err
}

func (l localSessions) Fork(ctx context.Context, from, to string) (sessionView, error) {
	return here(l.store.Fork(ctx, from, to, "cove session fork", ""))
}

func (l localSessions) Undo(ctx context.Context, name string) (sessionView, error) {
	return here(l.store.Undo(ctx, name, "cove session undo"))
}

func (l localSessions) Remove(ctx context.Context, name string) error {
	return l.store.Remove(ctx, name, "cove session rm")
}

func (l localSessions) Own(context.Context) ([]string, error) {
	all, err := l.store.List()
	var names []string
	for _, info := range all {
		names = append(names, info.Name)
	}
	return names, err
}

// details is what people are shown of a session.
func details(s ondisk.Info) [][2]string {
	rows := [][2]string{{"name", s.Name}, {"state", stateWord(s.State)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{name, value})
		}
	}
	if s.State == ondisk.Lost && s.Reason == "" {
		add("reason", "what used it last ended before it saved; the next command goes on from what was saved before")
	}
	add("reason", s.Reason)
	if s.Running != nil && s.State == ondisk.Running {
		add("used by", s.Running.String())
	}
	if m := s.Memory; m != nil && s.State == ondisk.Running {
		add("in memory", fmt.Sprintf("since %s, process %d", dateTime(m.Since), m.PID))
		add("paused when", pausedWhen(m.Idle))
		if m.Unsaved && s.Running == nil {
			add("not saved", fmt.Sprintf("%d executions", s.Executions-s.Head.Executions))
		}
	}
	add("id", s.ID)
	if s.ID != "" {
		add("created", dateTime(s.Created))
		add("last used", dateTime(s.Used))
		add("executions", fmt.Sprint(s.Executions))
		add("engine", s.Engine)
		add("python", strings.TrimSpace(s.Python+" "+cmp.Or(s.Environment, s.Packages)))
		add("installed", strings.Join(s.Installed.Requirements, ", "))
		add("memory", humanSize(s.Limits.Memory))
		add("cores", fmt.Sprint(s.Limits.CPUs))
		if s.Limits.Processes > 0 { // a server does not say
			add("limits", fmt.Sprintf("%d processes, %d open files, %s in /tmp, %s in the workspace",
				s.Limits.Processes, s.Limits.OpenFiles, humanSize(s.Limits.Tmp), humanSize(s.Limits.Workspace)))
		}
	}
	if s.Head.Snapshot != "" {
		add("snapshot", fmt.Sprintf("%s, %s, %s", s.Head.Snapshot, s.Head, humanSize(s.Head.Size)))
	}
	for n := len(s.Undo) - 1; n >= 0; n-- {
		add(fmt.Sprintf("undo %d", len(s.Undo)-n), s.Undo[n].String())
	}
	add("size on disk", humanSize(s.Disk))
	if s.Notice != nil {
		add("last notice", dateTime(s.Notice.Time)+": "+s.Notice.Text)
	}
	add("folder", s.Path)
	return rows
}
