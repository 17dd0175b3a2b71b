package daytona

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// ownSnapshot is the snapshot of which sandboxes are made whose client names none: cove's base.
const ownSnapshot = "cove"

// ownNames are what clients call it.
var ownNames = []string{"", ownSnapshot, "default"}

// basis is the snapshot or the image that a sandbox is made from; its id is "" for cove's base, and for what has to be built first.
type basis struct {
	id      string
	record  record
	unbuilt *unbuilt // an image that is not there yet
}

// originOf finds what a sandbox is to be made from.
func (s *Server) originOf(ctx context.Context, who auth.Principal, n newSandbox) (basis, error) {
	switch {
	case n.Build != nil:
		return s.imageOf(ctx, who, *n.Build, n.CPU, n.Memory)
	case n.Image != "":
		row, err := s.named(ctx, who, kindSnapshot, n.Image)
		if err == nil {
			r, _ := recordOf(row, kindSnapshot)
			return basis{id: row.ID, record: r}, nil
		}
		return s.imageOf(ctx, who, image(n.Image), n.CPU, n.Memory)
	case slices.Contains(ownNames, n.Snapshot):
		return basis{}, nil
	}
	row, err := s.named(ctx, who, kindSnapshot, n.Snapshot)
	if problem.Is(err, problem.NotFound) {
		err = invalid(fmt.Sprintf("Snapshot %s not found; cove has %s, and those that are made of sandboxes", bounded(n.Snapshot), ownSnapshot))
	}
	if err != nil {
		return basis{}, err
	}
	r, _ := recordOf(row, kindSnapshot)
	if r.Building || r.Failed != "" {
		return basis{}, invalid(fmt.Sprintf("Snapshot %s is %s, and not active", bounded(n.Snapshot), s.snapshotState(row.ID, r)))
	}
	return basis{id: row.ID, record: r}, nil
}

// snapshotState is the state of a snapshot that clients are told.
func (s *Server) snapshotState(session string, r record) string {
	switch {
	case s.failure(session, r) != "":
		return buildFailed
	case r.Building:
		return "building"
	}
	return "active"
}

// shownSnapshot is a snapshot as clients read it: what is null has to be there.
func (s *Server) shownSnapshot(row hub.Session, r record) map[string]any {
	var of any
	if r.Of != "" {
		of = sandboxID(r.Of)
	}
	var why any
	if reason := s.failure(row.ID, r); reason != "" {
		why = reason
	}
	return map[string]any{
		"id": sandboxID(row.ID), "organizationId": row.Project, "general": false, "name": r.Name, "imageName": r.Image, "state": s.snapshotState(row.ID, r), "size": float64(row.Disk) / (1 << 30), "entrypoint": nil,
		"cpu": max(1, int64(math.Ceil(row.CPUs))), "gpu": int64(0), "mem": gibibytes(row.Memory), "disk": gibibytes(s.Disk), "errorReason": why, "createdAt": stamp(r.Created), "updatedAt": stamp(r.Changed), "lastUsedAt": nil,
		"sourceSandboxId": of, "sandboxClass": "container",
	}
}

// base is cove's own as a snapshot.
func (s *Server) base() map[string]any {
	out := s.shownSnapshot(hub.Session{CPUs: 1, Memory: 1 << 30}, record{Name: ownSnapshot, Created: time.Unix(0, 0), Changed: time.Unix(0, 0)})
	out["id"], out["general"] = ownSnapshot, true
	delete(out, "organizationId")
	return out
}

// keep makes a snapshot of the present state of a sandbox: a session that is forked and never used.
func (s *Server) keep(ctx context.Context, b sandbox, name string) (hub.Session, record, error) {
	if name == "" {
		return hub.Session{}, record{}, invalid("name: a snapshot has a name")
	}
	now := time.Now().UTC()
	r := record{Name: name, Of: b.id, Env: b.record.Env, Dir: b.record.Dir, Created: now, Changed: now, Seen: now, AutoDelete: -1}
	if err := r.check(); err != nil {
		return hub.Session{}, r, err
	}
	free, err := s.takeName(ctx, b.who, kindSnapshot, name)
	if err != nil {
		return hub.Session{}, r, err
	}
	defer free()
	entries, err := r.entries(kindSnapshot, nil)
	if err != nil {
		return hub.Session{}, r, err
	}
	row, err := s.Hub.ForkSession(ctx, b.who, b.id, hub.NewSession{Metadata: entries, Life: longestSnapshot})
	return row, r, err
}

// longestSnapshot is how long a snapshot is kept that nobody deletes.
const longestSnapshot = 10 * 365 * 24 * time.Hour

func (s *Server) snapshot(c *call) error {
	b, err := s.ready(c)
	if err != nil {
		return err
	}
	var in struct{ Name string }
	if err := c.read(&in); err != nil {
		return err
	}
	if _, _, err := s.keep(c.Context(), b, in.Name); err != nil {
		return err
	}
	reply(c.w, http.StatusOK, s.shown(c.Request, b))
	return nil
}

// createSnapshot makes a snapshot of an image: of cove's base, or of one that is built now, which clients wait for.
func (s *Server) createSnapshot(c *call) error {
	var in struct {
		Name        string
		ImageName   string
		Build       *buildInfo `json:"buildInfo"`
		Entrypoint  []string
		CPU, Memory int64
		Disk, GPU   int64
	}
	if err := c.read(&in); err != nil {
		return err
	}
	n := newSandbox{CPU: in.CPU, Memory: in.Memory, Disk: in.Disk, GPU: in.GPU}
	err := n.absent(s.Root, s.Disk)
	of := basis{}
	switch {
	case err != nil:
	case in.Name == "":
		err = invalid("name: a snapshot has a name")
	case len(in.Entrypoint) > 0:
		err = invalid("entrypoint: nothing runs by itself in a sandbox of cove; start it when the sandbox is made")
	case in.Build != nil:
		of, err = s.imageOf(c.Context(), c.who, *in.Build, in.CPU, in.Memory)
	default:
		of, err = s.imageOf(c.Context(), c.who, image(in.ImageName), in.CPU, in.Memory)
	}
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	r := record{Name: in.Name, Image: in.ImageName, Env: of.record.Env, Dir: of.record.Dir, Created: now, Changed: now, Seen: now, AutoDelete: -1}
	r.Building = of.unbuilt != nil
	row, err := s.makeSnapshot(c.Context(), c.who, r, of, hub.NewSession{CPUs: float64(in.CPU), Memory: in.Memory << 30, Root: s.Root, Life: longestSnapshot})
	if err == nil {
		reply(c.w, http.StatusOK, s.shownSnapshot(row, r))
	}
	return err
}

func (s *Server) makeSnapshot(ctx context.Context, who auth.Principal, r record, of basis, n hub.NewSession) (hub.Session, error) {
	if err := r.check(); err != nil {
		return hub.Session{}, err
	}
	free, err := s.takeName(ctx, who, kindSnapshot, r.Name)
	if err != nil {
		return hub.Session{}, err
	}
	defer free()
	if of.unbuilt != nil {
		return s.makeBuiltSnapshot(ctx, who, r, *of.unbuilt, n)
	}
	if n.Metadata, err = r.entries(kindSnapshot, nil); err != nil {
		return hub.Session{}, err
	}
	if of.id != "" {
		return s.Hub.ForkSession(ctx, who, of.id, hub.NewSession{Metadata: n.Metadata, Life: n.Life})
	}
	row, err := s.Hub.CreateSession(ctx, who, n)
	if err != nil {
		return hub.Session{}, err
	}
	if _, err = s.Hub.PauseSession(ctx, who, row.ID); err != nil {
		s.discard(ctx, who, row.ID)
	}
	return row, err
}

func (s *Server) listSnapshots(c *call) error {
	q := c.URL.Query()
	name, of := q.Get("name"), q.Get("sourceSandboxId")
	q.Del("sort") // by other fields than sandboxes; the newest are first
	w, err := wantedOf(q)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	if strings.Contains(ownSnapshot, name) && of == "" {
		out = append(out, s.base())
	}
	for row, err := range s.each(c.Context(), c.who, kindSnapshot) {
		if err != nil {
			return err
		}
		if r, ok := recordOf(row, kindSnapshot); ok && strings.Contains(r.Name, name) && (of == "" || sandboxID(r.Of) == of) {
			out = append(out, s.shownSnapshot(row, r))
		}
	}
	reply(c.w, http.StatusOK, paged(out, w))
	return nil
}

// snapshotOf finds the snapshot that a request's path names.
func (s *Server) snapshotOf(c *call) (hub.Session, record, error) {
	row, err := s.named(c.Context(), c.who, kindSnapshot, c.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = &fault{http.StatusNotFound, fmt.Sprintf("Snapshot with ID or name %q not found", bounded(c.PathValue("id")))}
	}
	r, _ := recordOf(row, kindSnapshot)
	return row, r, err
}

func (s *Server) showSnapshot(c *call) error {
	if slices.Contains(ownNames, c.PathValue("id")) {
		reply(c.w, http.StatusOK, s.base())
		return nil
	}
	row, r, err := s.snapshotOf(c)
	if err == nil {
		reply(c.w, http.StatusOK, s.shownSnapshot(row, r))
	}
	return err
}

func (s *Server) deleteSnapshot(c *call) error {
	if slices.Contains(ownNames, c.PathValue("id")) {
		return &fault{http.StatusForbidden, "the snapshot " + ownSnapshot + " is everybody's, and cannot be deleted"}
	}
	row, _, err := s.snapshotOf(c)
	if err == nil {
		err = s.Hub.DeleteSession(c.Context(), c.who, row.ID)
	}
	if err == nil {
		c.w.WriteHeader(http.StatusOK)
	}
	return err
}
