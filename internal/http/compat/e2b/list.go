package e2b

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	longestList = 100
	// mostListed bounds the sessions that are looked at for one listing.
	mostListed = 10_000
)

// listed is a sandbox in a listing; the fields after State are those of one alone.
type listed struct {
	Template string            `json:"templateID"`
	Alias    string            `json:"alias,omitempty"`
	ID       string            `json:"sandboxID"`
	Client   string            `json:"clientID"`
	Started  time.Time         `json:"startedAt"`
	End      time.Time         `json:"endAt"`
	CPUs     int               `json:"cpuCount"`
	Memory   int64             `json:"memoryMB"`
	Disk     int64             `json:"diskSizeMB"`
	Version  string            `json:"envdVersion"`
	Metadata map[string]string `json:"metadata"`
	State    string            `json:"state"`

	Token     string         `json:"envdAccessToken,omitempty"`
	Domain    *string        `json:"domain,omitempty"`
	Internet  *bool          `json:"allowInternetAccess,omitempty"`
	Lifecycle map[string]any `json:"lifecycle,omitempty"`
	Network   any            `json:"network,omitempty"`
	Volumes   []mount        `json:"volumeMounts,omitempty"`
}

func (s *server) listed(row hub.Session, r record) listed {
	out := listed{
		Template: r.Template, Alias: r.Name, ID: sandboxID(row.ID), Client: client, Started: r.Started, End: r.End, CPUs: max(1, int(row.CPUs)), Memory: row.Memory >> 20, Disk: s.Disk >> 20, Version: version,
		Metadata: nonNil(r.Metadata), State: "running",
	}
	if r.asleep(time.Now()) {
		out.State = "paused"
	}
	return out
}

func (s *server) show(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	out, r := s.listed(b.session, b.record), b.record
	internet, after := !r.Offline && b.session.Network != nil && len(b.session.Network.Allow) > 0, "kill"
	if r.AutoPause {
		after = "pause"
	}
	out.Internet, out.Volumes = &internet, s.mounts(c.Context(), c.who, b.session)
	if c.who.May(auth.SessionsExecute) { // who has the token runs code
		out.Token = s.token(b.id)
	}
	out.Lifecycle = map[string]any{"autoResume": r.AutoResume, "onTimeout": after}
	if d := s.domain(); d != "" {
		out.Domain = &d
	}
	if len(r.Network) > 0 {
		out.Network = r.Network
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// wanted is what a listing is to have.
type wanted struct {
	metadata map[string]string
	states   []string
	after    time.Time
	template string
	oldest   bool
	limit    int
	token    string // the last id of the page before
}

func wantedOf(q url.Values) (w wanted, err error) {
	w = wanted{metadata: map[string]string{}, states: []string{"running", "paused"}, limit: longestList, template: q.Get("template"), oldest: q.Get("order") == "asc", token: q.Get("nextToken")}
	// SDKs escape names and values of the metadata once more than the address has it.
	pairs, err := url.QueryUnescape(q.Get("metadata"))
	if err != nil {
		return w, invalid("metadata is not escaped as E2B's clients do")
	}
	for _, pair := range strings.Split(pairs, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err = url.QueryUnescape(name); err != nil {
			return w, invalid("metadata is not escaped as E2B's clients do")
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return w, invalid("metadata is not escaped as E2B's clients do")
		}
		if name != "" {
			w.metadata[name] = value
		}
	}
	if states := strings.Join(q["state"], ","); states != "" {
		w.states = strings.Split(states, ",")
	}
	if text := q.Get("limit"); text != "" {
		if w.limit, err = strconv.Atoi(text); err != nil || w.limit < 1 {
			return w, invalid("limit is a number from 1 to 100")
		}
		w.limit = min(w.limit, longestList)
	}
	if text := q.Get("startedAfter"); text != "" {
		if w.after, err = time.Parse(time.RFC3339, text); err != nil {
			return w, invalid("startedAfter is a time as in RFC 3339")
		}
	}
	return w, nil
}

func (w wanted) has(l listed) bool {
	for name, value := range w.metadata {
		if got, ok := l.Metadata[name]; !ok || got != value {
			return false
		}
	}
	return slices.Contains(w.states, l.State) && !l.Started.Before(w.after) && (w.template == "" || w.template == l.Template || w.template == l.Alias)
}

func (s *server) list(c *call) error {
	q := c.URL.Query()
	w, err := wantedOf(q)
	if err != nil {
		return err
	}
	if c.URL.Path == "/sandboxes" && q.Get("state") == "" {
		w.states, w.limit = []string{"running"}, mostListed // the first version has no pages, and no paused ones
	}
	out, next := []listed{}, ""
	waiting := w.token != ""
	for row, err := range s.each(c.Context(), c.who, kindSandbox, w.oldest) {
		if err != nil {
			return err
		}
		r, ok := recordOf(row, kindSandbox)
		if waiting {
			waiting = sandboxID(row.ID) != w.token
			continue
		}
		if !ok || r.over(time.Now()) {
			continue
		}
		if l := s.listed(row, r); w.has(l) {
			l.Volumes = s.mounts(c.Context(), c.who, row)
			if len(out) == w.limit {
				next = out[len(out)-1].ID
				break
			}
			out = append(out, l)
		}
	}
	if next != "" {
		c.w.Header().Set("X-Next-Token", next)
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// each yields the caller's sessions of a kind, the newest first.
func (s *server) each(ctx context.Context, who auth.Principal, kind string, oldest bool) func(func(hub.Session, error) bool) {
	return func(yield func(hub.Session, error) bool) {
		p := hub.Page{Limit: longestList, Oldest: oldest}
		for seen := 0; seen < mostListed; {
			list, err := s.Hub.Sessions(ctx, who, hub.SessionFilter{Meta: map[string]string{kindEntry: kind}}, p)
			if err != nil {
				yield(hub.Session{}, err)
				return
			}
			for _, row := range list.Items {
				seen++
				if !yield(row, nil) {
					return
				}
			}
			if p.After = list.Next; p.After == "" {
				return
			}
		}
	}
}

// snapshotTag is the version of a snapshot, of which there is one.
const snapshotTag = ":default"

// snapshotSession returns the session behind the id of a snapshot.
func snapshotSession(template string) (string, bool) {
	id := sessionOf(strings.TrimSuffix(template, snapshotTag))
	return id, ident.Valid(ident.Session, id)
}

func shownSnapshot(session string, r record) map[string]any {
	names := []string{}
	if r.Name != "" {
		names = append(names, r.Name)
	}
	return map[string]any{"snapshotID": sandboxID(session) + snapshotTag, "names": names}
}

// snapshot keeps the present state of a sandbox, from which others can be made: a session that is forked and never used.
func (s *server) snapshot(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	var in struct {
		Name string `json:"name"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	r := record{Template: b.record.Template, Name: in.Name, Of: b.id, Started: time.Now().UTC(), Env: b.record.Env, Contexts: b.record.Contexts, User: b.record.User, Dir: b.record.Dir}
	all, err := r.entries(kindSnapshot, nil)
	if err != nil {
		return err
	}
	made, err := s.Hub.ForkSession(c.Context(), c.who, b.id, hub.NewSession{Metadata: all})
	if err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, shownSnapshot(made.ID, r))
	return nil
}

// fromSnapshot makes a session that goes on from a snapshot.
func (s *server) fromSnapshot(ctx context.Context, who auth.Principal, snapshot string, r *record, n hub.NewSession) (hub.Session, error) {
	row, err := s.Hub.Session(ctx, who, snapshot)
	kept, ok := recordOf(row, kindSnapshot)
	if problem.Is(err, problem.NotFound) || err == nil && !ok {
		return hub.Session{}, &fault{http.StatusNotFound, fmt.Sprintf("template '%s' not found", sandboxID(snapshot))}
	}
	if err != nil {
		return hub.Session{}, err
	}
	r.Contexts, r.User, r.Dir = kept.Contexts, kept.User, kept.Dir
	if len(r.Env) == 0 {
		r.Env = kept.Env
	}
	if n.Metadata, err = r.entries(kindSandbox, nil); err != nil {
		return hub.Session{}, err
	}
	return s.Hub.ForkSession(ctx, who, snapshot, n)
}

func (s *server) listSnapshots(c *call) error {
	q := c.URL.Query()
	w, err := wantedOf(q)
	if err != nil {
		return err
	}
	out, last, next := []map[string]any{}, "", ""
	waiting := w.token != ""
	for row, err := range s.each(c.Context(), c.who, kindSnapshot, w.oldest) {
		if err != nil {
			return err
		}
		if waiting {
			waiting = sandboxID(row.ID) != w.token
			continue
		}
		r, ok := recordOf(row, kindSnapshot)
		if of := q.Get("sandboxID"); !ok || of != "" && r.Of != sessionOf(of) || q.Get("name") != "" && r.Name != q.Get("name") {
			continue
		}
		if len(out) == w.limit {
			next = last
			break
		}
		out, last = append(out, shownSnapshot(row.ID, r)), sandboxID(row.ID)
	}
	if next != "" {
		c.w.Header().Set("X-Next-Token", next)
	}
	reply(c.w, http.StatusOK, out)
	return nil
}
