package daytona

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// newSandbox is a request for a sandbox, also of clients that call it a workspace. Memory and disk are GiB. What is not here is passed over, as at Daytona.
type newSandbox struct {
	Name        string            `json:"name"`
	Snapshot    string            `json:"snapshot"`
	Image       string            `json:"image"` // of clients before 0.21
	User        string            `json:"user"`
	Env         map[string]string `json:"env"`
	Labels      map[string]string `json:"labels"`
	Public      bool              `json:"public"`
	Target      string            `json:"target"`
	CPU         int64             `json:"cpu"`
	Memory      int64             `json:"memory"`
	Disk        int64             `json:"disk"`
	GPU         int64             `json:"gpu"`
	GPUType     json.RawMessage   `json:"gpuType"`
	KVM         bool              `json:"kvm"`
	AutoStop    *int64            `json:"autoStopInterval"`
	AutoPause   *int64            `json:"autoPauseInterval"`
	AutoArchive *int64            `json:"autoArchiveInterval"`
	AutoDelete  *int64            `json:"autoDeleteInterval"`
	TTL         *int64            `json:"ttlMinutes"`
	Volumes     []mount           `json:"volumes"`
	Secrets     []json.RawMessage `json:"secrets"`
	Linked      string            `json:"linkedSandbox"`
	Proxy       string            `json:"outboundProxyUrl"`
	Telemetry   string            `json:"otelEndpointOverride"`
	Build       *buildInfo        `json:"buildInfo"`
	networkWish
}

type buildInfo struct {
	Dockerfile string   `json:"dockerfileContent"`
	Contexts   []string `json:"contextHashes"`
}

// absent says what is asked for that cove does not have: it must not be left out in silence.
func (n newSandbox) absent(root bool, disk int64) error {
	given := func(text json.RawMessage) bool {
		return len(text) > 0 && string(text) != "null" && string(text) != "[]"
	}
	switch {
	case n.User != "" && n.User != sandboxUser && n.User != "daytona":
		hint := "; there is " + sandboxUser
		if root {
			hint += ", which has sudo"
		}
		return invalid(fmt.Sprintf("user: cove has no user %q in a sandbox%s", bounded(n.User), hint))
	case n.GPU != 0, given(n.GPUType):
		return invalid("gpu: cove gives sandboxes no GPU")
	case n.KVM:
		return invalid("kvm: cove gives sandboxes no /dev/kvm")
	case len(n.Secrets) > 0:
		return lacking("secrets: " + missing["secret"])
	case n.Linked != "":
		return invalid("linkedSandbox: cove cannot link sandboxes")
	case n.Proxy != "":
		return invalid("outboundProxyUrl: cove sends what a sandbox sends by itself; the operator can set a proxy")
	case n.Telemetry != "":
		return invalid("otelEndpointOverride: cove sends no telemetry of a sandbox")
	case n.CPU < 0, n.Memory < 0, n.Disk < 0, n.Memory > 1<<20:
		return invalid("cpu, memory and disk are numbers from 1; memory and disk are GiB")
	case n.Disk > gibibytes(disk):
		return invalid(fmt.Sprintf("disk: a sandbox of this server has %d GiB for files", gibibytes(disk)))
	}
	return nil
}

// gibibytes are the GiB that some bytes begin: clients take nothing but whole numbers from 1.
func gibibytes(n int64) int64 { return max(1, (n+1<<30-1)>>30) }

// recordFor is what is recorded of a new sandbox.
func (n newSandbox) recordFor(now time.Time) (record, error) {
	or := func(given *int64, otherwise int64) int64 {
		if given == nil {
			return otherwise
		}
		return *given
	}
	r := record{
		Name: n.Name, Labels: n.Labels, Env: n.Env, Snapshot: n.Snapshot, Image: n.Image, Target: cmp.Or(n.Target, "local"), Public: n.Public,
		BlockAll: n.BlockAll != nil && *n.BlockAll, AutoStop: or(n.AutoStop, defaultAutoStop), AutoPause: or(n.AutoPause, 0), AutoArchive: or(n.AutoArchive, defaultAutoArchive), AutoDelete: or(n.AutoDelete, -1),
		TTL: or(n.TTL, 0),
	}
	if n.Networks != nil {
		r.Networks = *n.Networks
	}
	if n.Domains != nil {
		r.Domains = *n.Domains
	}
	if n.Build != nil {
		r.Build = n.Build.Dockerfile
	}
	r.live(now)
	if n.AutoStop == nil && r.AutoPause > 0 {
		r.AutoStop = 0
	}
	return r, r.check()
}

// check returns why a record is not one of a sandbox, or nil.
func (r record) check() error {
	for name, value := range map[string]int64{"autoStopInterval": r.AutoStop, "autoPauseInterval": r.AutoPause, "autoArchiveInterval": r.AutoArchive, "ttlMinutes": r.TTL, "autoDeleteInterval": max(r.AutoDelete, 0)} {
		if value < 0 || value > longestInterval {
			return invalid(name + fmt.Sprintf(" is a number of minutes from 0 to %d", int64(longestInterval)))
		}
	}
	switch {
	case r.AutoStop > 0 && r.AutoPause > 0:
		return invalid("autoStopInterval and autoPauseInterval cannot both be set")
	case r.AutoPause > 0 && r.AutoDelete == 0:
		return invalid("a sandbox that is deleted when it stops cannot be paused (autoPauseInterval with autoDeleteInterval 0)")
	case len(r.Name) > 200 || strings.ContainsAny(r.Name, "/\x00"):
		return invalid("name has at most 200 bytes, and no slash")
	case len(r.Target) > 100:
		return invalid("target is longer than 100 bytes")
	}
	for name := range r.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return invalid(fmt.Sprintf("env: %q is not a name of a variable", bounded(name)))
		}
	}
	return nil
}

func (s *Server) create(c *call) error {
	n := newSandbox{}
	if err := c.read(&n); err != nil {
		return err
	}
	if err := n.absent(s.Root, s.Disk); err != nil {
		return err
	}
	r, err := n.recordFor(time.Now().UTC())
	if err != nil {
		return err
	}
	network, err := s.network(c.Context(), c.who, r)
	if err != nil {
		return err
	}
	free, err := s.takeName(c.Context(), c.who, kindSandbox, r.Name)
	if err != nil {
		return err
	}
	defer free()
	b, built, err := s.make(c.Context(), c.who, n, r, network)
	if err != nil {
		return err
	}
	out := s.shown(c.Request, b)
	switch {
	case built != nil && strings.HasPrefix(c.URL.Path, Prefix+"/workspace"): // old clients ask for no state
		return s.awaited(c, b, built)
	case built != nil:
		out["state"] = pendingBuild
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// awaited answers with a sandbox when its image is built.
func (s *Server) awaited(c *call, b sandbox, built <-chan struct{}) error {
	select {
	case <-built:
	case <-c.Context().Done():
		s.discard(c.Context(), c.who, b.id)
		return c.Context().Err()
	}
	b, err := s.find(c.Context(), c.who, sandboxID(b.id))
	if err != nil {
		return err
	}
	if why := s.failure(b.id, b.record); why != "" {
		s.discard(c.Context(), c.who, b.id)
		return invalid(why)
	}
	reply(c.w, http.StatusOK, s.shown(c.Request, b))
	return nil
}

// make makes a session for a sandbox from the base or a snapshot, whose life begins when it is ready; built is not nil where its image is being built, and closed then.
func (s *Server) make(ctx context.Context, who auth.Principal, n newSandbox, r record, network *hub.Network) (b sandbox, built <-chan struct{}, err error) {
	wanted := hub.NewSession{CPUs: float64(n.CPU), Memory: n.Memory << 30, Network: network, Root: s.Root && len(n.Volumes) == 0, Volumes: mountsOf(n.Volumes)}
	origin, err := s.originOf(ctx, who, n)
	if err != nil {
		return sandbox{}, nil, err
	}
	if len(n.Volumes) > 0 && (origin.id != "" || origin.unbuilt != nil) {
		return sandbox{}, nil, lacking("volumes: a sandbox of a snapshot or an image that was built cannot have volumes; make one of the snapshot " + ownSnapshot + " with them")
	}
	if origin.unbuilt != nil {
		return s.makeBuilding(ctx, who, r, *origin.unbuilt, wanted)
	}
	if origin.id != "" {
		r.Env, r.Dir = merged(origin.record.Env, r.Env), origin.record.Dir
		if network == nil {
			wanted.Network = &hub.Network{}
		}
	}
	if wanted.Metadata, err = r.entries(kindSandbox, nil); err != nil {
		return sandbox{}, nil, err
	}
	wanted.Idle, wanted.Life = r.hubTimes(r.at(r.Seen, r.Seen), r.Seen)
	var made hub.Session
	if origin.id != "" {
		made, err = s.Hub.ForkSession(ctx, who, origin.id, wanted)
	} else {
		made, err = s.Hub.CreateSession(ctx, who, wanted)
	}
	if err != nil {
		return sandbox{}, nil, err
	}
	b, err = s.begin(ctx, who, made)
	return b, nil, err
}

// merged are the variables of a snapshot with those of a sandbox.
func merged(of, with map[string]string) map[string]string {
	if len(of) == 0 {
		return with
	}
	all := map[string]string{}
	for _, m := range []map[string]string{of, with} {
		for name, value := range m {
			all[name] = value
		}
	}
	return all
}

// begin gives a session that was just made its link and its clock. The life of the sandbox begins now.
func (s *Server) begin(ctx context.Context, who auth.Principal, made hub.Session) (sandbox, error) {
	_, _, err := s.Hub.AddLink(ctx, who, hub.NewLink{Session: made.ID, Purpose: hub.LinkMachine, Wakes: true, Code: s.token(made.ID)})
	b := sandbox{id: made.ID, who: who, session: made}
	b.record, _ = recordOf(made, kindSandbox)
	if err == nil && time.Since(b.record.Created) > longCreation { // the life begins when the sandbox is ready
		b, err = s.change(ctx, who, made.ID, func(r *record) error {
			r.live(time.Now().UTC())
			return nil
		})
	} else if err == nil {
		s.clocks.Set(made.ID, s.lifeOf(b).next(time.Now()))
	}
	if err != nil {
		s.discard(ctx, who, made.ID)
	}
	return b, err
}

// longCreation is what a sandbox may take to be made without its life being told anew.
const longCreation = time.Second

// discard deletes a session that could not be made a sandbox.
func (s *Server) discard(ctx context.Context, who auth.Principal, session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.Hub.DeleteSession(ctx, who, session); err != nil {
		s.Log.WarnContext(ctx, "the remains of a sandbox that could not be made were not removed", "session", session, "error", err)
	}
}

// takeName keeps a name for a sandbox or a snapshot that is about to be made; free gives it back. "" is any name.
func (s *Server) takeName(ctx context.Context, who auth.Principal, kind, name string) (free func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	taken := &fault{http.StatusConflict, fmt.Sprintf("there is a %s with the name %q already", kind, bounded(name))}
	key := who.Project + " " + kind + " " + name
	s.mu.Lock()
	making := s.naming[key]
	s.naming[key] = true
	s.mu.Unlock()
	if making {
		return nil, taken
	}
	free = func() {
		s.mu.Lock()
		delete(s.naming, key)
		s.mu.Unlock()
	}
	if _, err = s.named(ctx, who, kind, name); err == nil {
		err = taken
	} else if problem.Is(err, problem.NotFound) {
		err = nil
	}
	if err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// named returns the caller's session of a kind with a name, or with an id. Problems: session_not_found.
func (s *Server) named(ctx context.Context, who auth.Principal, kind, name string) (hub.Session, error) {
	missing := problem.New(problem.SessionNotFound, "there is none with this name")
	if session, ok := sessionOf(name); ok {
		row, err := s.Hub.Session(ctx, who, session)
		if err == nil && row.Metadata[kindEntry] == kind || err != nil && !problem.Is(err, problem.NotFound) {
			return row, err
		}
	}
	list, err := s.Hub.Sessions(ctx, who, hub.SessionFilter{Meta: map[string]string{kindEntry: kind, nameEntry: name}}, hub.Page{Limit: 100})
	if err != nil {
		return hub.Session{}, err
	}
	for _, row := range list.Items {
		r, ok := recordOf(row, kind)
		if ok && (kind != kindSandbox || !s.lifeOf(sandbox{id: row.ID, record: r, session: row}).over(time.Now())) {
			return row, nil
		}
	}
	return hub.Session{}, missing
}

// find returns the caller's sandbox with an id or a name, whether or not it runs.
func (s *Server) find(ctx context.Context, who auth.Principal, id string) (sandbox, error) {
	row, err := s.named(ctx, who, kindSandbox, id)
	if problem.Is(err, problem.NotFound) {
		err = absent(id)
	}
	if err != nil {
		return sandbox{}, err
	}
	r, ok := recordOf(row, kindSandbox)
	b := sandbox{id: row.ID, who: who, record: r, session: row}
	if !ok || s.lifeOf(b).over(time.Now()) {
		return sandbox{}, absent(id)
	}
	return b, nil
}

// of returns the sandbox that a request's path names.
func (s *Server) of(c *call) (sandbox, error) { return s.find(c.Context(), c.who, c.PathValue("id")) }
