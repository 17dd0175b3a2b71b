package e2b

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	defaultLife = 300 * time.Second
	// longestLife bounds the life of a sandbox, and how long one is kept that is paused.
	longestLife = 30 * 24 * time.Hour
	// version is that of the agent in E2B's sandboxes whose abilities this surface has; SDKs look at it to see what they can ask for.
	version = "0.6.13"
	// client is what E2B calls the machine that a sandbox is on, which old SDKs put behind its id.
	client = "cove"

	codeTemplate = "code-interpreter-v1"
	baseTemplate = "base"
)

// newSandbox is a request for a sandbox, of both versions of the operation.
type newSandbox struct {
	Template        string `json:"templateID"`
	Timeout         *int64 `json:"timeout"` // seconds
	AutoPause       bool   `json:"autoPause"`
	AutoPauseMemory *bool  `json:"autoPauseMemory"`
	AutoResume      *struct{ Enabled bool }
	Internet        *bool             `json:"allow_internet_access"`
	Network         json.RawMessage   `json:"network"`
	Metadata        map[string]string `json:"metadata"`
	Env             map[string]string `json:"envVars"`
	MCP             json.RawMessage   `json:"mcp"`
	IAM             json.RawMessage   `json:"iam"`
	Volumes         []mount           `json:"volumeMounts"`
}

// absent says what is asked for that cove does not have: it must not be left out in silence.
func (n newSandbox) absent() error {
	asked := func(text json.RawMessage) bool {
		return len(text) > 0 && string(text) != "null" && string(text) != "{}"
	}
	switch {
	case n.AutoPauseMemory != nil && !*n.AutoPauseMemory && n.AutoResume != nil && n.AutoResume.Enabled:
		return invalid("autoPauseMemory: a sandbox that was paused without its memory is not woken by requests; leave autoResume out, and connect to it")
	case asked(n.IAM):
		return invalid("iam: cove gives sandboxes no identity of their own")
	case len(n.Volumes) > 0 && !slices.Contains(standingTemplates, n.Template):
		return invalid("volumeMounts: a sandbox of a template that was built, or of a snapshot, cannot have volumes; make one of the template " + codeTemplate + " with them")
	}
	return nil
}

// shown is a sandbox as its maker sees it.
type shown struct {
	Template string  `json:"templateID"`
	Alias    string  `json:"alias,omitempty"`
	ID       string  `json:"sandboxID"`
	Client   string  `json:"clientID"`
	Version  string  `json:"envdVersion"`
	Token    string  `json:"envdAccessToken"`
	Traffic  string  `json:"trafficAccessToken"`
	Domain   *string `json:"domain"`
}

func (s *server) shown(session string, r record) shown {
	out := shown{Template: r.Template, Alias: r.Name, ID: sandboxID(session), Client: client, Version: version, Token: s.token(session), Traffic: s.trafficToken(session)}
	if d := s.domain(); d != "" {
		out.Domain = &d
	}
	return out
}

func (s *server) create(c *call) error {
	n := newSandbox{}
	if err := c.read(&n); err != nil {
		return err
	}
	if err := n.absent(); err != nil {
		return err
	}
	life := defaultLife
	if n.Timeout != nil {
		if *n.Timeout <= 0 {
			return invalid("Timeout must be greater than 0")
		}
		life = seconds(*n.Timeout)
	}
	asked, kept, err := readNetwork(n.Network)
	if err != nil {
		return err
	}
	network, err := s.network(c.Context(), c.who, asked, n.Internet)
	if err != nil {
		return err
	}
	r := record{
		Template: n.Template, AutoPause: n.AutoPause, AutoResume: n.AutoResume != nil && n.AutoResume.Enabled, Forgets: n.AutoPauseMemory != nil && !*n.AutoPauseMemory, Closed: asked.Public != nil && !*asked.Public, Network: kept, Mask: asked.Mask, Env: n.Env, Metadata: n.Metadata,
		Offline: n.Internet != nil && !*n.Internet,
	}
	made, err := s.make(c.Context(), c.who, r, life, network, n.Volumes)
	if err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, s.shown(made, r))
	return nil
}

// make makes a session for a sandbox from its template, whose life begins when it is ready.
func (s *server) make(ctx context.Context, who auth.Principal, r record, life time.Duration, network *hub.Network, volumes []mount) (string, error) {
	n := hub.NewSession{Idle: life + time.Minute, Life: life, Network: network, Root: s.Root && len(volumes) == 0, Volumes: mountsOf(volumes)}
	if r.AutoPause {
		n.Life = longestLife
	}
	r.Started = time.Now().UTC()
	r.End = r.Started.Add(life)
	var err error
	if n.Metadata, err = r.entries(kindSandbox, nil); err != nil {
		return "", err
	}
	var made hub.Session
	switch snapshot, ok := snapshotSession(r.Template); {
	case ok:
		made, err = s.fromSnapshot(ctx, who, snapshot, &r, forked(n))
	case slices.Contains(standingTemplates, r.Template):
		made, err = s.Hub.CreateSession(ctx, who, n)
	default:
		made, err = s.fromTemplate(ctx, who, &r, forked(n))
	}
	if err != nil {
		return "", err
	}
	if _, _, err = s.Hub.AddLink(ctx, who, hub.NewLink{Session: made.ID, Purpose: hub.LinkMachine, Wakes: true, Code: s.token(made.ID)}); err == nil {
		if took := time.Since(r.Started); took > longCreation { // the life begins when the sandbox is ready
			r, err = s.prolong(ctx, who, made.ID, func(r *record) { r.Started, r.End = r.Started.Add(took), r.End.Add(took) })
		}
	}
	if err != nil {
		s.discard(ctx, who, made.ID)
		return "", err
	}
	s.clocks.Set(made.ID, r.rings())
	return made.ID, nil
}

// forked is a session that is forked rather than made: without a network of its own it has none, where a fork would have its origin's.
func forked(n hub.NewSession) hub.NewSession {
	if n.Network == nil {
		n.Network = &hub.Network{}
	}
	return n
}

// longCreation is what a sandbox may take to be made without its life being told anew.
const longCreation = time.Second

// discard deletes a session that could not be made a sandbox.
func (s *server) discard(ctx context.Context, who auth.Principal, session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.Hub.DeleteSession(ctx, who, session); err != nil {
		s.Log.WarnContext(ctx, "the remains of a sandbox that could not be made were not removed", "session", session, "error", err)
	}
}

// prolong changes a sandbox's record, and has the hub delete the session, and the clock end the sandbox, at the end that the record then says.
func (s *server) prolong(ctx context.Context, who auth.Principal, session string, change func(*record)) (record, error) {
	defer s.clocks.Alone(session)()
	row, err := s.Hub.Session(ctx, who, session)
	if err != nil {
		return record{}, err
	}
	r, ok := recordOf(row, kindSandbox)
	if !ok {
		return record{}, absent(sandboxID(session))
	}
	change(&r)
	all, err := r.entries(kindSandbox, row.Metadata)
	if err != nil {
		return record{}, err
	}
	left := max(time.Until(r.End), time.Second)
	idle, life := left+time.Minute, longestLife
	if !r.AutoPause && !r.Paused {
		life = left
	}
	if _, err = s.Hub.ChangeSession(ctx, who, session, hub.SessionChange{Metadata: all, Life: &life, Idle: &idle}); err != nil {
		return record{}, err
	}
	s.clocks.Set(session, r.rings())
	return r, nil
}

// find returns the caller's sandbox with an id, which may be paused.
func (s *server) find(c *call) (sandbox, error) {
	id := sessionOf(c.PathValue("id"))
	if !ident.Valid(ident.Session, id) {
		return sandbox{}, absent(c.PathValue("id"))
	}
	row, err := s.Hub.Session(c.Context(), c.who, id)
	if problem.Is(err, problem.NotFound) {
		err = absent(c.PathValue("id"))
	}
	if err != nil {
		return sandbox{}, err
	}
	r, ok := recordOf(row, kindSandbox)
	if !ok || r.over(time.Now()) {
		return sandbox{}, absent(c.PathValue("id"))
	}
	return sandbox{id: id, who: c.who, record: r, session: row}, nil
}

// connect lets a client go on with a sandbox that runs, whose life is prolonged, or that is paused.
func (s *server) connect(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	var in struct {
		Timeout   *int64 `json:"timeout"`
		AutoPause *bool  `json:"autoPause"`
		Memory    *bool  `json:"memory"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if in.Memory != nil && !*in.Memory {
		return invalid("memory: a sandbox is begun anew from its files by pausing it without its memory, before it is connected to")
	}
	life := defaultLife
	if in.Timeout != nil {
		if *in.Timeout <= 0 {
			return invalid("Timeout must be greater than 0")
		}
		life = seconds(*in.Timeout)
	}
	code, asleep := http.StatusOK, b.record.asleep(time.Now())
	if asleep {
		code = http.StatusCreated
		if err := s.wake(c.Context(), b); err != nil {
			return err
		}
	}
	r, err := s.prolong(c.Context(), c.who, b.id, func(r *record) {
		if until := time.Now().UTC().Add(life); asleep || until.After(r.End) {
			r.End = until
		}
		r.Paused, r.Memory = false, ""
		if in.AutoPause != nil {
			r.AutoPause = *in.AutoPause
		}
	})
	if err != nil {
		return err
	}
	reply(c.w, code, s.shown(b.id, r))
	return nil
}

func (s *server) setTimeout(c *call) error {
	var in struct {
		Timeout int64 `json:"timeout"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if in.Timeout < 0 {
		return invalid("Timeout must not be negative")
	}
	return s.endIn(c, seconds(in.Timeout), false)
}

func (s *server) refresh(c *call) error {
	var in struct {
		Duration int64 `json:"duration"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	return s.endIn(c, seconds(cmp.Or(max(in.Duration, 0), 15)), true)
}

// endIn sets when a sandbox that runs ends, or with only has it end later alone.
func (s *server) endIn(c *call, life time.Duration, later bool) error {
	b, err := s.find(c)
	if err == nil && b.record.asleep(time.Now()) {
		err = absent(c.PathValue("id"))
	}
	if err != nil {
		return err
	}
	_, err = s.prolong(c.Context(), c.who, b.id, func(r *record) {
		if until := time.Now().UTC().Add(life); !later || until.After(r.End) {
			r.End = until
		}
	})
	if err == nil && life == 0 {
		s.clocks.Ring(b.id)
	}
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *server) kill(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	if err := s.remove(c.Context(), c.who, b.id, errKilled); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// fork makes sandboxes that go on from the present state of one.
func (s *server) fork(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	in := struct {
		Timeout *int64 `json:"timeout"`
		Count   int    `json:"count"`
	}{Count: 1}
	if err := c.read(&in); err != nil {
		return err
	}
	if in.Count < 1 || in.Count > mostForks {
		return invalid(fmt.Sprintf("count is from 1 to %d", mostForks))
	}
	if b.record.asleep(time.Now()) {
		return &fault{http.StatusConflict, "the sandbox is paused: connect to it first"}
	}
	life := defaultLife
	if in.Timeout != nil {
		life = seconds(max(*in.Timeout, 1))
	}
	all := make([]map[string]any, 0, in.Count)
	for range in.Count {
		made, err := s.forkOne(c.Context(), c.who, b, life)
		if err != nil {
			p, _ := problem.Public(err)
			all = append(all, map[string]any{"error": map[string]any{"code": http.StatusInternalServerError, "message": sentence(p)}})
			continue
		}
		all = append(all, map[string]any{"sandbox": s.shown(made, b.record)})
	}
	reply(c.w, http.StatusCreated, all)
	return nil
}

// mostForks is how many forks one request may ask for.
const mostForks = 100

func (s *server) forkOne(ctx context.Context, who auth.Principal, b sandbox, life time.Duration) (string, error) {
	r := b.record
	all, err := r.entries(kindSandbox, nil)
	if err != nil {
		return "", err
	}
	made, err := s.Hub.ForkSession(ctx, who, b.id, hub.NewSession{Metadata: all})
	if err != nil {
		return "", err
	}
	return made.ID, s.begin(ctx, who, made.ID, life)
}

// begin gives a session that was forked its link and its end.
func (s *server) begin(ctx context.Context, who auth.Principal, session string, life time.Duration) error {
	_, _, err := s.Hub.AddLink(ctx, who, hub.NewLink{Session: session, Purpose: hub.LinkMachine, Wakes: true, Code: s.token(session)})
	if err == nil {
		_, err = s.prolong(ctx, who, session, func(r *record) { r.Started = time.Now().UTC(); r.End = r.Started.Add(life) })
	}
	if err != nil {
		s.discard(ctx, who, session)
	}
	return err
}
