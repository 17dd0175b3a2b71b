package e2b

import (
	"context"
	"errors"
	"net/http"
	"time"

	"cove/internal/server/auth"
)

// What became of the memory of a sandbox that is paused; "": it is kept.
const (
	memoryEnds = "ends" // it is to be left behind before the sandbox is used again
	memoryGone = "gone" // the sandbox begins anew with its files
)

// pause saves a sandbox, which then sleeps until somebody connects. That it is paused already is a conflict, of which SDKs make false.
func (s *server) pause(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	var in struct {
		Memory *bool `json:"memory"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if b.record.asleep(time.Now()) {
		return &fault{http.StatusConflict, "the sandbox is paused already"}
	}
	if err := s.sleep(c.Context(), c.who, b.id, in.Memory == nil || *in.Memory); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// sleep pauses a sandbox, with its memory or without: its requests end first, which would keep it awake.
func (s *server) sleep(ctx context.Context, who auth.Principal, session string, memory bool) error {
	_, err := s.prolong(ctx, who, session, func(r *record) {
		if r.Paused = true; !memory {
			r.Memory = memoryEnds
		}
	})
	if err != nil {
		return err
	}
	s.clocks.Stop(session, errPaused)
	if !memory {
		if err := s.reboot(ctx, who, session); err != nil {
			_, failed := s.prolong(context.WithoutCancel(ctx), who, session, func(r *record) { r.Paused, r.Memory = false, "" })
			return errors.Join(err, failed)
		}
	}
	if _, err = s.Hub.PauseSession(ctx, who, session); err != nil || memory {
		return err
	}
	_, err = s.prolong(ctx, who, session, func(r *record) { // only now is the memory left behind on the disk, too
		if r.Memory == memoryEnds {
			r.Memory = memoryGone
		}
	})
	return err
}

// reboot ends all that runs in a sandbox, and its contexts.
func (s *server) reboot(ctx context.Context, who auth.Principal, session string) error {
	if err := s.Hub.RebootSession(ctx, who, session); err != nil {
		return err
	}
	s.contexts.forgetAll(session)
	_, err := s.prolong(ctx, who, session, func(r *record) { r.Contexts = nil })
	return err
}

// wake loads a sandbox that is paused. One whose memory was to be left behind, when the server ended, leaves it behind now.
func (s *server) wake(ctx context.Context, b sandbox) error {
	if b.record.Memory == memoryEnds || b.record.Forgets && !b.record.Paused {
		return s.reboot(ctx, b.who, b.id)
	}
	_, err := s.Hub.ResumeSession(ctx, b.who, b.id)
	return err
}
