package daytona

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	// seenEvery is how old what is recorded of a sandbox's last use may be. Between two records, this process knows better.
	seenEvery = time.Minute
	// spare is how much later than the clock here the hub pauses and deletes.
	spare = 2 * time.Minute
)

// lifeOf is the life of a sandbox now: what its record says, what the hub saw of it, and what this process did.
func (s *Server) lifeOf(b sandbox) life {
	r := b.record
	if why := s.failure(b.id, r); why != "" {
		r.Building, r.Failed = false, why
	}
	return r.at(time.Now(), s.usedLast(b))
}

// hubTimes are after how long the hub pauses and deletes the session of a sandbox by itself.
func (r record) hubTimes(l life, now time.Time) (idle, until time.Duration) {
	switch l.state {
	case buildingState:
		return longestBuild, longestBuild + failedLife
	case buildFailed:
		return failedLife, failedLife
	}
	idle, until = longestLife, longestLife
	if q := r.quiet(); q > 0 {
		idle = min(idle, minutes(q)+spare)
	}
	if !l.ends.IsZero() {
		left := l.ends.Sub(now)
		if !l.ends.Equal(r.Dies) && r.Stopped.IsZero() {
			left += spare // uses are recorded late
		}
		until = min(until, max(left, time.Second))
	}
	return idle, until
}

// change changes a sandbox's record, and has the hub and the clock follow what it then says.
func (s *Server) change(ctx context.Context, who auth.Principal, session string, edit func(*record) error) (sandbox, error) {
	defer s.clocks.Alone(session)()
	row, err := s.Hub.Session(ctx, who, session)
	if err != nil {
		return sandbox{}, err
	}
	r, ok := recordOf(row, kindSandbox)
	if !ok {
		return sandbox{}, absent(sandboxID(session))
	}
	if err := edit(&r); err != nil {
		return sandbox{}, err
	}
	if err := r.check(); err != nil {
		return sandbox{}, err
	}
	all, err := r.entries(kindSandbox, row.Metadata)
	if err != nil {
		return sandbox{}, err
	}
	l := s.lifeOf(sandbox{id: session, record: r, session: row})
	idle, life := r.hubTimes(l, time.Now())
	if row, err = s.Hub.ChangeSession(ctx, who, session, hub.SessionChange{Metadata: all, Life: &life, Idle: &idle}); err != nil {
		return sandbox{}, err
	}
	s.clocks.Set(session, l.next(time.Now()))
	return sandbox{id: session, who: who, record: r, session: row}, nil
}

// edit changes the record of the sandbox that a request's path names, and answers with the sandbox.
func (s *Server) edit(c *call, edit func(*record) error) error {
	b, err := s.of(c)
	if err == nil {
		b, err = s.change(c.Context(), c.who, b.id, func(r *record) error {
			r.Changed = time.Now().UTC()
			return edit(r)
		})
	}
	if err == nil {
		reply(c.w, http.StatusOK, s.shown(c.Request, b))
	}
	return err
}

// noteSeen records beside a request that a sandbox is used.
func (s *Server) noteSeen(b sandbox) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.change(ctx, b.who, b.id, func(r *record) error {
			if now := time.Now().UTC(); now.Sub(r.Seen) > seenEvery {
				r.Seen = now
			}
			return nil
		})
		if err != nil && !problem.Is(err, problem.NotFound) {
			s.Log.DebugContext(ctx, "that a sandbox was used was not recorded", "session", b.id, "error", err)
		}
	}()
}

// atEnd stops or deletes a sandbox whose time has come, unless it was used meanwhile.
func (s *Server) atEnd(session string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, who, err := s.Hub.LinkOf(ctx, s.token(session))
	row := hub.Session{}
	if err == nil {
		row, err = s.Hub.Session(ctx, who, session)
	}
	r, ok := recordOf(row, kindSandbox)
	if err != nil || !ok { // it is gone, or the hub deletes it by its own clock
		s.clocks.Stop(session, errDeleted)
		return
	}
	b := sandbox{id: session, who: who, record: r, session: row}
	now := time.Now()
	switch l := s.lifeOf(b); {
	case l.over(now):
		s.clocks.Stop(session, errDeleted)
		err = s.Hub.DeleteSession(ctx, who, session)
	case l.state != started && !l.stops.IsZero() && r.Stopped.IsZero():
		_, err = s.sleep(ctx, b, func(r *record) { r.Paused = r.AutoPause > 0 })
	default:
		s.clocks.Set(session, l.next(now))
	}
	if err != nil && !problem.Is(err, problem.NotFound) {
		s.Log.WarnContext(ctx, "a sandbox has reached its end and could not be ended", "session", session, "error", err)
	}
}

// sleep saves a sandbox on the disk: its requests end first, which would keep it in memory. One that is to be deleted when it stops is deleted.
func (s *Server) sleep(ctx context.Context, b sandbox, how func(*record)) (sandbox, error) {
	if b.record.AutoDelete == 0 {
		s.clocks.Stop(b.id, errStopped)
		b.record.Stopped = time.Now().UTC()
		return b, s.Hub.DeleteSession(ctx, b.who, b.id)
	}
	changed, err := s.change(ctx, b.who, b.id, func(r *record) error {
		r.Stopped, r.Archived = time.Now().UTC(), false
		how(r)
		return nil
	})
	if err != nil {
		return b, err
	}
	s.clocks.Stop(b.id, errStopped)
	row, err := s.Hub.PauseSession(ctx, b.who, b.id)
	if err == nil {
		changed.session = row
	}
	s.clocks.Set(b.id, s.lifeOf(changed).next(time.Now()))
	return changed, err
}

// halt answers a request that stops or pauses a sandbox.
func (s *Server) halt(c *call, how func(*record)) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	if s.lifeOf(b).state == started {
		if b, err = s.sleep(c.Context(), b, how); err != nil {
			return err
		}
	}
	reply(c.w, http.StatusOK, s.shown(c.Request, b))
	return nil
}

func (s *Server) stop(c *call) error {
	return s.halt(c, func(r *record) { r.Paused = false })
}

func (s *Server) pause(c *call) error {
	return s.halt(c, func(r *record) { r.Paused = true })
}

// archive has a sandbox that is stopped count as archived. It is on the disk already.
func (s *Server) archive(c *call) error {
	b, err := s.of(c)
	if err == nil && s.lifeOf(b).state == started {
		err = invalid("Sandbox is not stopped: stop it before it is archived")
	}
	if err != nil {
		return err
	}
	return s.edit(c, func(r *record) error {
		if r.Stopped.IsZero() { // by its clock
			r.Stopped = s.lifeOf(b).stops
		}
		r.Archived, r.Paused = true, false
		return nil
	})
}

func (s *Server) start(c *call) error {
	b, err := s.ready(c)
	if err != nil {
		return err
	}
	if s.lifeOf(b).state != started {
		if _, err := s.Hub.ResumeSession(c.Context(), c.who, b.id); err != nil {
			return err
		}
		b, err = s.change(c.Context(), c.who, b.id, func(r *record) error {
			now := time.Now().UTC()
			r.Stopped, r.Paused, r.Archived, r.Seen, r.Changed = time.Time{}, false, false, now, now
			return nil
		})
		if err != nil {
			return err
		}
	}
	reply(c.w, http.StatusOK, s.shown(c.Request, b))
	return nil
}

func (s *Server) recover(c *call) error {
	b, err := s.of(c)
	if err == nil {
		err = invalid("the sandbox is " + s.lifeOf(b).state + ", and not in a state of error that it could be recovered from")
	}
	return err
}

func (s *Server) remove(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	out := s.shown(c.Request, b)
	s.clocks.Stop(b.id, errDeleted)
	if err := s.Hub.DeleteSession(c.Context(), c.who, b.id); err != nil {
		return err
	}
	out["state"], out["desiredState"] = destroyed, destroyed
	if c.URL.Query().Has("force") && strings.HasPrefix(c.URL.Path, Prefix+"/sandbox/") {
		s.gone.add(c.who, sandboxID(b.id), out)
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// resize takes what a sandbox has: the hub cannot change memory and CPUs of a session that there is.
func (s *Server) resize(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	var in struct{ CPU, Memory, Disk int64 }
	if err := c.read(&in); err != nil {
		return err
	}
	out := s.shown(c.Request, b)
	for name, wanted := range map[string]int64{"cpu": in.CPU, "memory": in.Memory, "disk": in.Disk} {
		if wanted != 0 && wanted != out[name] {
			return lacking(fmt.Sprintf("resize: cove cannot change %s of a sandbox that there is (it has %v); make a new one from a snapshot of it, with the resources that it is to have", name, out[name]))
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// interval is the number of minutes at the end of a request's path.
func (c *call) interval() (int64, error) {
	n, err := strconv.ParseFloat(c.PathValue("minutes"), 64)
	if err != nil || !(n >= -longestInterval && n <= longestInterval) {
		return 0, invalid(fmt.Sprintf("the interval is a number of minutes to %d", int64(longestInterval)))
	}
	return int64(n), nil
}

func (s *Server) setInterval(c *call, set func(r *record, n int64)) error {
	n, err := c.interval()
	if err != nil {
		return err
	}
	return s.edit(c, func(r *record) error {
		set(r, n)
		return nil
	})
}

func (s *Server) setAutoStop(c *call) error {
	return s.setInterval(c, func(r *record, n int64) { r.AutoStop = n })
}

func (s *Server) setAutoPause(c *call) error {
	return s.setInterval(c, func(r *record, n int64) { r.AutoPause = n })
}

func (s *Server) setAutoArchive(c *call) error {
	return s.setInterval(c, func(r *record, n int64) { r.AutoArchive = n })
}

func (s *Server) setAutoDelete(c *call) error {
	return s.setInterval(c, func(r *record, n int64) { r.AutoDelete = max(n, -1) })
}

// setTTL counts from now on.
func (s *Server) setTTL(c *call) error {
	return s.setInterval(c, func(r *record, n int64) { r.setTTL(n, time.Now().UTC()) })
}

func (s *Server) setLabels(c *call) error {
	var in struct {
		Labels map[string]string `json:"labels"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	b, err := s.of(c)
	if err == nil {
		_, err = s.change(c.Context(), c.who, b.id, func(r *record) error {
			r.Labels, r.Changed = maps.Clone(in.Labels), time.Now().UTC()
			return nil
		})
	}
	if err == nil {
		reply(c.w, http.StatusOK, map[string]any{"labels": nonNil(in.Labels)})
	}
	return err
}

func (s *Server) setPublic(c *call) error {
	public, err := strconv.ParseBool(c.PathValue("public"))
	if err != nil {
		return invalid("public is true or false")
	}
	return s.edit(c, func(r *record) error {
		r.Public = public
		return nil
	})
}

// touch has the time without use begin anew.
func (s *Server) touch(c *call) error {
	b, err := s.of(c)
	if err == nil {
		_, err = s.change(c.Context(), c.who, b.id, func(r *record) error {
			r.Seen = time.Now().UTC()
			return nil
		})
	}
	if err == nil {
		c.w.WriteHeader(http.StatusCreated)
	}
	return err
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
