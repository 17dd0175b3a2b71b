package e2b

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/machine/process"
	"cove/internal/server/hub"
)

const (
	// measuredFor is how long the use of processors is measured.
	measuredFor = 250 * time.Millisecond
	// metricSlack is how far a moment may be from the time that a client asks for: it says that in whole seconds.
	metricSlack = 5
)

// metrics answers with what a sandbox uses now: one point, since none are kept. A sandbox that is not in memory uses nothing, and has no point.
func (s *server) metrics(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	from, err := strconv.ParseInt(cmp.Or(q.Get("start"), "0"), 10, 64)
	until, err2 := strconv.ParseInt(cmp.Or(q.Get("end"), "0"), 10, 64)
	if err != nil || err2 != nil {
		return invalid("start and end are times in seconds since 1970")
	}
	out, now := []map[string]any{}, time.Now().UTC()
	if now.Unix() < from-metricSlack || until != 0 && now.Unix() > until+metricSlack {
		reply(c.w, http.StatusOK, out)
		return nil
	}
	before, err := s.Hub.Used(c.Context(), c.who, b.id)
	if err != nil {
		return err
	}
	if before.Known && !b.record.asleep(now) {
		began := time.Now()
		select {
		case <-time.After(measuredFor):
		case <-c.Context().Done():
			return c.Context().Err()
		}
		after, err := s.Hub.Used(c.Context(), c.who, b.id)
		if err != nil {
			return err
		}
		if after.Known {
			out = append(out, s.metric(b.session, now, before, after, time.Since(began)))
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// metric is one point. The disk is what the session has there when it is saved, which is all that is known from outside; there is no cache of the sandbox's own.
func (s *server) metric(row hub.Session, at time.Time, before, after hub.Used, took time.Duration) map[string]any {
	used := float64(after.CPU-before.CPU) / float64(took) / max(row.CPUs, 0.01) * 100
	return map[string]any{
		"timestamp": at, "timestampUnix": at.Unix(), "cpuCount": max(1, int(row.CPUs)), "cpuUsedPct": min(max(used, 0), 100), "memUsed": after.Memory, "memTotal": row.Memory, "memCache": 0,
		"diskUsed": row.Disk, "diskTotal": s.Disk,
	}
}

// logs answers with when the processes of a sandbox began and ended, the oldest first: what cove has for a log. Those that have ended are known for a while.
func (s *server) logs(c *call) error {
	b, err := s.find(c)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	if !b.record.asleep(time.Now()) {
		all, err := s.Hub.Processes(c.Context(), c.who, b.id)
		if err != nil {
			return err
		}
		out = entriesOf(all)
	}
	if strings.HasPrefix(c.URL.Path, "/v2/") {
		reply(c.w, http.StatusOK, map[string]any{"logs": out})
		return nil
	}
	lines := []map[string]any{}
	for _, e := range out {
		lines = append(lines, map[string]any{"timestamp": e["timestamp"], "line": e["message"]})
	}
	reply(c.w, http.StatusOK, map[string]any{"logs": lines, "logEntries": out})
	return nil
}

// mostEntries bounds a log.
const mostEntries = 1000

func entriesOf(all []process.Info) []map[string]any {
	out := []map[string]any{}
	for _, p := range all {
		if len(out) >= mostEntries {
			break
		}
		fields := map[string]string{"pid": strconv.Itoa(p.PID), "cwd": p.Dir}
		out = append(out, map[string]any{"timestamp": p.Started, "level": "info", "message": fmt.Sprintf("process %d started: %.300s", p.PID, strings.Join(p.Args, " ")), "fields": fields})
		if p.Exit != nil {
			out = append(out, map[string]any{"timestamp": p.Exit.At, "level": "info", "message": fmt.Sprintf("process %d ended: %s", p.PID, endOf(p.Exit).GetStatus()), "fields": fields})
		}
	}
	return out
}
