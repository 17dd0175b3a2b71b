package daytona

import (
	"errors"
	"net/http"
	"time"

	"cove/internal/server/hub"
)

// fork makes a sandbox that goes on from the present state of one, with its processes and variables.
func (s *Server) fork(c *call) error {
	b, err := s.ready(c)
	if err != nil {
		return err
	}
	var in struct{ Name string }
	if err := c.read(&in); err != nil {
		return err
	}
	r := b.record
	now := time.Now().UTC()
	r.Name, r.Of, r.Stopped, r.Paused, r.Archived, r.Rotated = in.Name, b.id, time.Time{}, false, false, 0
	r.live(now)
	if err := r.check(); err != nil {
		return err
	}
	free, err := s.takeName(c.Context(), c.who, kindSandbox, r.Name)
	if err != nil {
		return err
	}
	defer free()
	entries, err := r.entries(kindSandbox, nil)
	if err != nil {
		return err
	}
	idle, until := r.hubTimes(r.at(now, now), now)
	made, err := s.Hub.ForkSession(c.Context(), c.who, b.id, hub.NewSession{Metadata: entries, Idle: idle, Life: until})
	if err != nil {
		return err
	}
	forked, err := s.begin(c.Context(), c.who, made)
	if err == nil {
		reply(c.w, http.StatusOK, s.shown(c.Request, forked))
	}
	return err
}

func (s *Server) forks(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for row, err := range s.each(c.Context(), c.who, kindSandbox) {
		if err != nil {
			return err
		}
		one := sandbox{id: row.ID, who: c.who, session: row}
		ok := false
		if one.record, ok = recordOf(row, kindSandbox); ok && one.record.Of == b.id && !s.lifeOf(one).over(time.Now()) {
			out = append(out, s.shown(c.Request, one))
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// parentOf returns the sandbox that one was forked from.
func (s *Server) parentOf(c *call, b sandbox) (sandbox, error) {
	if b.record.Of == "" {
		return sandbox{}, &fault{http.StatusNotFound, "the sandbox is no fork"}
	}
	return s.find(c.Context(), c.who, sandboxID(b.record.Of))
}

func (s *Server) parent(c *call) error {
	b, err := s.of(c)
	if err == nil {
		b, err = s.parentOf(c, b)
	}
	if err == nil {
		reply(c.w, http.StatusOK, s.shown(c.Request, b))
	}
	return err
}

// mostAncestors bounds how far back forks are followed.
const mostAncestors = 100

func (s *Server) ancestors(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for range mostAncestors {
		if b, err = s.parentOf(c, b); err != nil {
			break
		}
		out = append(out, s.shown(c.Request, b))
	}
	if _, own := errors.AsType[*fault](err); err != nil && !own {
		return err
	}
	reply(c.w, http.StatusOK, out)
	return nil
}
