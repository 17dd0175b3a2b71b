package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/machine/image"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// remoteSessions are those of a server that the key's project has.
type remoteSessions struct{ client *client.Client }

var _ sessions = (*remoteSessions)(nil)

// sessionFrom is a server's session in the words of this machine's. What a server does not tell is left at zero, and not shown.
func sessionFrom(s api.Session) sessionView {
	info := ondisk.Info{Disk: s.Disk, Reason: s.Reason}
	info.ID, info.Name, info.Created, info.Used, info.Executions = s.ID, s.Name, s.Created, s.Used, s.Executions
	info.Packages, info.Limits.Memory, info.Limits.CPUs = s.Packages, s.Memory, s.CPUs
	switch s.State {
	case hub.SessionActive:
		info.State = ondisk.Running
	default: // paused and lost are the same words here
		info.State = ondisk.State(s.State)
	}
	return sessionView{Info: info, server: &s}
}

// find returns the session with that id or name.
func (r *remoteSessions) find(ctx context.Context, name string) (sessionView, error) {
	if ident.Valid(ident.Session, name) {
		s, err := r.client.Session(ctx, name)
		return sessionFrom(s), err
	}
	var found []api.Session
	for s, err := range r.client.Sessions(ctx, client.SessionFilter{Name: name}) {
		if err != nil {
			return sessionView{}, err
		}
		if s.Name == name {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return sessionView{}, problem.New(problem.SessionNotFound, fmt.Sprintf("the server has no session %q", name)).WithHint("`cove session ls` lists those that there are")
	case 1:
		return sessionFrom(found[0]), nil
	}
	ids := make([]string, 0, len(found))
	for _, s := range found[:min(len(found), 5)] {
		ids = append(ids, s.ID)
	}
	return sessionView{}, problem.New(problem.Usage, fmt.Sprintf("the server has %d sessions with the name %q", len(found), name)).WithHint("give the id of one: " + strings.Join(ids, ", "))
}

// List implements sessions.
func (r *remoteSessions) List(ctx context.Context) ([]sessionView, error) {
	all, err := collected(mapped(r.client.Sessions(ctx, client.SessionFilter{}), sessionFrom))
	slices.SortStableFunc(all, func(a, b sessionView) int { return b.Used.Compare(a.Used) })
	return all, err
}

// Show implements sessions.
func (r *remoteSessions) Show(ctx context.Context, name string) (sessionView, error) {
	s, err := r.find(ctx, name)
	if err != nil {
		return s, err
	}
	if points, err := r.client.Points(ctx, s.ID); err != nil {
		s.extra = append(s.extra, [2]string{"undo", "not known: " + message(err)}) // another server on the database may have the session
	} else {
		s.takePoints(points)
	}
	if s.State == ondisk.Running {
		kernels, err := r.client.Kernels(ctx, s.ID)
		var names []string
		for _, k := range kernels {
			names = append(names, k.Name)
		}
		if err == nil && len(names) > 0 {
			s.extra = append(s.extra, [2]string{"kernels", strings.Join(names, ", ")})
		}
	}
	return s, nil
}

// takePoints has the session show what it can be returned to.
func (s *sessionView) takePoints(points []api.SessionPoint) {
	s.points, s.Undo = true, []ondisk.Entry{}
	s.Head = ondisk.Entry{Saved: moment(s.server.Saved), Executions: s.Executions, Size: s.Disk}
	for _, p := range points {
		if p.Present {
			s.Head = entryOf(p)
		} else {
			s.Undo = append(s.Undo, entryOf(p))
		}
	}
}

func entryOf(p api.SessionPoint) ondisk.Entry {
	e := ondisk.Entry{Saved: moment(p.Saved), Executions: p.Executions, Size: p.Bytes, Before: p.Before}
	if p.Saved != nil {
		e.Snapshot = p.ID
	}
	return e
}

// Pause implements sessions.
func (r *remoteSessions) Pause(ctx context.Context, name string) (sessionView, bool, error) {
	before, err := r.find(ctx, name)
	if err != nil || before.State != ondisk.Running {
		return before, false, err
	}
	s, err := r.client.PauseSession(ctx, before.ID)
	return sessionFrom(s), true, err
}

// Fork implements sessions. Names are not unique on a server; one that is there already is refused, so that a name keeps its meaning.
func (r *remoteSessions) Fork(ctx context.Context, from, to string) (sessionView, error) {
	origin, err := r.find(ctx, from)
	if err != nil {
		return sessionView{}, err
	}
	there, err := namedSession(ctx, r.client, to)
	if err != nil {
		return sessionView{}, err
	}
	if there != "" {
		return sessionView{}, problem.New(problem.SessionExists, fmt.Sprintf("the server has a session %q already", to)).WithHint("choose another name, or remove it first: `cove session rm " + there + "`")
	}
	made, err := r.client.ForkSession(ctx, origin.ID, api.NewSession{Name: to})
	s := sessionFrom(made)
	s.moment = fmt.Sprintf("%s (after %d executions)", dateTime(origin.Used), origin.Executions)
	return s, err
}

// Undo implements sessions.
func (r *remoteSessions) Undo(ctx context.Context, name string) (sessionView, error) {
	found, err := r.find(ctx, name)
	if err != nil {
		return sessionView{}, err
	}
	found.takePoints(nil)
	if points, err := r.client.Points(ctx, found.ID); err == nil {
		found.takePoints(points)
	}
	returned, err := r.client.UndoSession(ctx, found.ID, "")
	if err != nil {
		if problem.Has(err, problem.NothingToUndo) {
			err = problem.Of(err).WithHint("a server keeps a point from before each question to a model")
		}
		return sessionView{}, err
	}
	s := sessionFrom(returned)
	points, err := r.client.Points(ctx, s.ID)
	if err != nil {
		return sessionView{}, err
	}
	s.takePoints(points)
	if n := len(found.Undo); n > 0 {
		s.Head = found.Undo[n-1]
	}
	return s, nil
}

// Remove implements sessions.
func (r *remoteSessions) Remove(ctx context.Context, name string) error {
	s, err := r.find(ctx, name)
	if err != nil {
		return err
	}
	return r.client.DeleteSession(ctx, s.ID)
}

// Own implements sessions.
func (r *remoteSessions) Own(ctx context.Context) ([]string, error) {
	me, err := r.client.Me(ctx)
	if err != nil {
		return nil, err
	}
	return collected(mapped(r.client.Sessions(ctx, client.SessionFilter{User: me.User}), func(s api.Session) string { return s.ID }))
}

// resume brings a server's session into memory, where it stays until it has not been used for so long; nil: as it was.
func (r *remoteSessions) resume(ctx context.Context, name string, idle *config.Duration) (s sessionView, fresh bool, err error) {
	if s, err = r.find(ctx, name); err != nil {
		return s, false, err
	}
	fresh = s.State != ondisk.Running
	resumed, err := r.client.ResumeSession(ctx, s.ID)
	if err == nil && idle != nil {
		resumed, err = r.client.ChangeSession(ctx, s.ID, api.SessionChange{Idle: new(wholeSeconds(time.Duration(*idle)))})
	}
	return sessionFrom(resumed), fresh, err
}

// shown is the session as JSON: that of ondisk.Info, without what a server does not tell, and with all that it does.
func (s sessionView) shown() any {
	if s.server == nil {
		return s.Info
	}
	text, err := json.Marshal(s.Info)
	out := map[string]any{}
	if err != nil || json.Unmarshal(text, &out) != nil {
		return s.server
	}
	for _, unknown := range []string{"version", "engine", "environment", "path"} {
		delete(out, unknown)
	}
	out["limits"] = map[string]any{"memory_bytes": s.Limits.Memory, "cpus": s.Limits.CPUs}
	if !s.points {
		delete(out, "head")
		delete(out, "undo")
	}
	out["server"] = s.server
	return out
}

// at says what the session's state is.
func (s sessionView) at() string {
	if s.moment != "" {
		return s.moment
	}
	return s.Head.String()
}

// python is what the list of sessions shows of the interpreter.
func (s sessionView) python() string {
	if s.Python == "" && s.server == nil {
		return ""
	}
	return strings.TrimSpace(s.Python + " " + s.Packages)
}

// onServer is what people are shown of a server's session besides.
func (s sessionView) onServer() [][2]string {
	if s.server == nil {
		return nil
	}
	rows := append([][2]string{}, s.extra...)
	add := func(name, value string) { rows = append(rows, [2]string{name, value}) }
	add("paused when", pausedWhen(float64(s.server.Idle)))
	if s.server.Expires != nil {
		add("deleted", dateTime(*s.server.Expires))
	}
	if i := s.server.Image; i != nil {
		add("image", i.Reference+" ("+image.ShortDigest(i.Digest)+")")
	}
	if s.server.Root {
		add("root", "its programs may run as root")
	}
	if n := s.server.Network; n != nil {
		add("connects to", strings.Join(n.Allow, ", "))
	}
	if from := s.server.ForkedFrom; from != "" {
		add("forked from", from)
	}
	if b := s.server.Rollback; b != nil {
		add("went back", dateTime(b.At)+": "+b.Reason)
	}
	add("made by", s.server.User)
	return rows
}
