package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/builder"
)

// Statuses of a build.
const (
	statusWaiting  = "waiting" // until its steps come
	statusBuilding = "building"
	statusReady    = "ready"
	statusError    = "error"
)

// Bounds of builds.
const (
	mostBuilds    = 200 // of a project that are remembered
	mostRunning   = 4   // of a project
	mostLogged    = 20_000
	mostLogBytes  = 4 << 20
	mostLogPage   = 100 // lines of one answer, as at E2B
	longestBuild  = time.Hour
	buildMemory   = 2 * time.Hour // that a build is remembered when it has ended, or its steps have not come
	mostArchives  = 100           // of one build
	longestFailed = 4000          // bytes of why a build failed
)

// making is a build of this process: its log and how it goes. What it makes is a session, which the hub keeps.
type making struct {
	id, template, name string
	tags               []string
	who                auth.Principal
	cpus               float64
	memory             int64 // bytes; 0: as sessions have
	steps              int
	began              time.Time
	archives           map[string]string // codes of addresses for archives, by the archive's hash. builds.mu guards it

	mu     sync.Mutex
	status string
	ended  time.Time
	log    []logged
	size   int
	fault  *reason
	stop   context.CancelCauseFunc // of one that runs
}

// logged is a line of a build's log.
type logged struct {
	At    time.Time     `json:"timestamp"`
	Text  string        `json:"message"`
	Level builder.Level `json:"level"`
	Step  string        `json:"step,omitempty"`
}

// reason is why a build failed.
type reason struct {
	Message string   `json:"message"`
	Step    string   `json:"step,omitempty"`
	Log     []logged `json:"logEntries"`
}

// stepName is a step as clients know it: they look by it for the line of their program that the step is from.
func (m *making) stepName(step int) string {
	switch {
	case step <= 0:
		return "base"
	case step > m.steps:
		return "finalize"
	}
	return strconv.Itoa(step)
}

func (m *making) say(said builder.Said) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.log) > mostLogged || m.size > mostLogBytes {
		return
	}
	m.size += len(said.Text)
	if len(m.log) == mostLogged || m.size > mostLogBytes {
		said.Text, said.Level = "the log is too long: the rest is left out", builder.Warn
		m.size = mostLogBytes + 1
	}
	m.log = append(m.log, logged{said.At, said.Text, said.Level, m.stepName(said.Step)})
}

// end records how a build has ended.
func (m *making) end(status string, why *reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status, m.fault, m.ended, m.stop = status, why, time.Now(), nil
}

func (m *making) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stop != nil
}

// over says whether a build need not be remembered any more.
func (m *making) over(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stop == nil && now.Sub(cmp.Or(m.ended, m.began)) > buildMemory
}

// builds are those of this process.
type builds struct {
	mu  sync.Mutex
	all []*making // the oldest first
}

// add remembers a build that waits for its steps. Of a project's that do not run, the oldest are forgotten.
func (b *builds) add(m *making) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, count := time.Now(), 0
	b.all = slices.DeleteFunc(b.all, func(m *making) bool { return m.over(now) })
	for _, other := range b.all {
		if other.who.Project == m.who.Project {
			count++
		}
	}
	b.all = slices.DeleteFunc(b.all, func(other *making) bool {
		old := count >= mostBuilds && other.who.Project == m.who.Project && !other.running()
		if old {
			count--
		}
		return old
	})
	b.all = append(b.all, m)
}

// find returns a build of the caller's project; nil where there is none.
func (b *builds) find(who auth.Principal, template, build string) *making {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if m.who.Project == who.Project && m.id == build && (m.template == template || m.name == template) {
			return m
		}
	}
	return nil
}

// begin has a build run, unless it has been told to before or too many run.
func (b *builds) begin(m *making, who auth.Principal, steps int, stop context.CancelCauseFunc) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	running := 0
	for _, other := range b.all {
		if other != m && other.who.Project == m.who.Project && other.running() {
			running++
		}
	}
	if running >= mostRunning {
		return &fault{http.StatusTooManyRequests, fmt.Sprintf("%d builds of the project run already; wait until one has ended", mostRunning)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status != statusWaiting {
		return &fault{http.StatusBadRequest, "the build has begun already; ask for a new one"}
	}
	m.status, m.who, m.steps, m.stop = statusBuilding, who, steps, stop
	return nil
}

var errBuildStopped = errors.New("the template was deleted while it was built")

// stop ends the builds of a template, and says whether there were any.
func (b *builds) stop(who auth.Principal, template string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := false
	for _, m := range b.all {
		if m.who.Project != who.Project || m.template != template && m.name != template {
			continue
		}
		m.mu.Lock()
		if m.stop != nil {
			found = true
			m.stop(errBuildStopped)
		}
		m.mu.Unlock()
	}
	return found
}

// uuid is a random one, which clients want builds to have.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// requestBuild takes the name of what is to be built. Its archives and its steps come then.
func (s *server) requestBuild(c *call) error {
	var in struct {
		Name   string   `json:"name"`
		Alias  string   `json:"alias"` // as the name was called
		Tags   []string `json:"tags"`
		CPUs   float64  `json:"cpuCount"`
		Memory int64    `json:"memoryMB"`
		Disk   int64    `json:"minFreeDiskMb"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	name, tag, err := parseName(cmp.Or(in.Name, in.Alias))
	if err == nil {
		err = mayName(name)
	}
	if err != nil {
		return err
	}
	if tag != "" {
		in.Tags = append([]string{tag}, in.Tags...)
	}
	tags, err := parseTags(in.Tags, name)
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		tags = []string{defaultTag}
	}
	switch {
	case in.CPUs < 0 || in.Memory < 0 || in.Memory > 1<<20:
		return invalid("cpuCount and memoryMB are what a sandbox has, so more than 0")
	case in.Disk > s.Disk>>20:
		return invalid(fmt.Sprintf("minFreeDiskMb: a sandbox has %d MiB for files", s.Disk>>20))
	}
	m := &making{
		id: uuid(), template: templateID(c.who.Project, name), name: name, tags: tags, who: c.who, cpus: in.CPUs, memory: in.Memory << 20, began: time.Now().UTC(), status: statusWaiting,
		archives: map[string]string{},
	}
	s.builds.add(m)
	reply(c.w, http.StatusAccepted, map[string]any{"templateID": m.template, "buildID": m.id, "public": false, "names": []string{name}, "aliases": []string{name}, "tags": tags})
	return nil
}

// made finds a build of the caller's: one of this process, or one that has become a template.
func (s *server) made(c *call) (*making, error) {
	name, build := c.PathValue("id"), c.PathValue("build")
	if m := s.builds.find(c.who, name, build); m != nil {
		return m, nil
	}
	all, err := s.templates(c.Context(), c.who, name)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.record.Built.Build == build {
			return &making{id: build, template: t.record.Built.Template, name: t.record.Name, status: statusReady}, nil
		}
	}
	return nil, &fault{http.StatusNotFound, fmt.Sprintf("build '%.100s' of template '%.100s' not found: it never was, has failed some time ago, or ran when the server was stopped", build, name)}
}

// page returns lines of a log that begin at a place.
func page(all []logged, from, most int) []logged {
	from = min(max(from, 0), len(all))
	return append([]logged{}, all[from:min(len(all), from+most)]...)
}

func (s *server) buildStatus(c *call) error {
	m, err := s.made(c)
	if err != nil {
		return err
	}
	from, err := strconv.Atoi(cmp.Or(c.URL.Query().Get("logsOffset"), "0"))
	if err != nil || from < 0 {
		return invalid("logsOffset is a number from 0 on")
	}
	m.mu.Lock()
	out := map[string]any{"templateID": m.template, "buildID": m.id, "status": m.status, "logs": []string{}, "logEntries": page(m.log, from, mostLogPage)}
	if m.fault != nil {
		out["reason"] = m.fault
	}
	m.mu.Unlock()
	reply(c.w, http.StatusOK, out)
	return nil
}

// buildLogs answers with lines of a log from a time on: cursor, in milliseconds.
func (s *server) buildLogs(c *call) error {
	m, err := s.made(c)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "100"))
	cursor, err2 := strconv.ParseInt(cmp.Or(q.Get("cursor"), "0"), 10, 64)
	if err != nil || err2 != nil || limit < 1 || limit > mostLogPage || q.Get("direction") == "backward" || q.Get("level") != "" {
		return invalid("limit is from 1 to 100 and cursor is a time in milliseconds; cove has neither direction=backward nor level")
	}
	m.mu.Lock()
	from := slices.IndexFunc(m.log, func(l logged) bool { return l.At.UnixMilli() >= cursor })
	if from < 0 {
		from = len(m.log)
	}
	out := page(m.log, from, limit)
	m.mu.Unlock()
	reply(c.w, http.StatusOK, map[string]any{"logs": out})
	return nil
}
