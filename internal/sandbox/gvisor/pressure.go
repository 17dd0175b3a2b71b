package gvisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The line between a kernel that used too much memory and a sandbox that is lost for it is held by the host, because on a busy machine code may take
// memory faster than the guest, which would end it, gets to look. What reaches the limit of the sandbox's cgroup sleeps there instead of being killed (version
// 1), or is slowed down ahead of it (version 2, memory.high). The guest needs next to no memory for ending the code, so it has the sandbox's processors for
// itself. The sentry may need some, and everything waits when it does: so the limit rises in small steps, each after the sandbox has had some
// processor time, from a reserve that code cannot take at once. When the reserve is used up, the sandbox is ended.
const (
	reserveMemory = 512 << 20
	reserveStep   = 8 << 20
	// After which processor time of the sandbox a step is due, and after which time of the clock when it does not get that, or waits for memory itself.
	reserveCPU  = 50 * time.Millisecond
	reserveWall = 200 * time.Millisecond
	reserveLook = 10 * time.Millisecond
)

// watchPressure returns a file that gives something to read when the group has reached its limit. It is nil where the kernel itself slows down its processes, and
// where this cannot be had, so that it kills them.
func (g *group) watchPressure() *os.File {
	if g.pressure == "" {
		return nil
	}
	events, err := g.pressureEvents()
	if err == nil {
		if err = os.WriteFile(g.pressure, []byte("1"), 0); err == nil { // sleep rather than be killed
			return events
		}
		_ = events.Close()
	}
	return nil
}

func (g *group) pressureEvents() (*os.File, error) {
	control, err := os.Open(g.pressure)
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close() }()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	events := os.NewFile(uintptr(fd), "pressure")
	order := fmt.Sprintf("%d %d", fd, control.Fd())
	if err := os.WriteFile(filepath.Join(filepath.Dir(g.pressure), "cgroup.event_control"), []byte(order), 0); err != nil {
		return nil, errors.Join(err, events.Close())
	}
	return events, nil
}

// waits says whether processes of the group sleep at its limit.
func (g *group) waits() bool {
	text, err := os.ReadFile(g.pressure)
	return err == nil && bytes.Contains(text, []byte("under_oom 1"))
}

// slowed says whether the kernel slows the group's processes down because they have more memory than they should, and none of it can be taken back.
func (g *group) slowed() bool {
	high := number(g.high) // 0 where it is "max", or not there
	return high > 0 && number(g.usage) > high
}

// limit returns the group's memory limit.
func (g *group) limit() int64 {
	n, _ := strconv.ParseInt(readTrimmed(g.limitFile()), 10, 64)
	return n
}

func (g *group) setLimit(n int64) error {
	return os.WriteFile(g.limitFile(), []byte(strconv.FormatInt(n, 10)), 0)
}

func (g *group) limitFile() string {
	return filepath.Join(filepath.Dir(g.pressure), "memory.limit_in_bytes")
}

// holdMemory stays with a sandbox whose group waits at its limit.
func (s *box) holdMemory(g *group, events *os.File) {
	go func() {
		<-s.done
		_ = events.Close()
	}()
	var count [8]byte
	for {
		if _, err := events.Read(count[:]); err != nil {
			return
		}
		if !s.lend(g) {
			s.overuse.Store(true)
			_ = unix.Kill(s.sentry, unix.SIGKILL)
			return
		}
	}
}

// lend gives out the reserve until nothing in the group waits for memory, and takes it back. It returns false when that does not come about.
func (s *box) lend(g *group) bool {
	s.waited.Add(1)
	s.lending.Store(true)
	defer func() {
		s.fed.Store(time.Now().UnixNano())
		s.lending.Store(false)
	}()
	base := g.limit()
	lent := int64(0)
	pace := newPace(g)
	tick := time.NewTicker(reserveLook)
	defer tick.Stop()
	for g.waits() || g.setLimit(base) != nil { // it cannot be set below what is in use
		if g.waits() && pace.due() {
			if lent == reserveMemory {
				return false
			}
			lent += reserveStep
			_ = g.setLimit(base + lent)
		}
		select {
		case <-s.done:
			return true
		case <-tick.C:
		}
	}
	return true
}

// pace tells when the next step of the reserve is due.
type pace struct {
	group *group
	spent time.Duration
	since time.Time
}

func newPace(g *group) *pace {
	p := &pace{group: g, since: time.Now()}
	p.spent, _ = g.cpu()
	return p
}

func (p *pace) due() bool {
	spent, err := p.group.cpu()
	if wall := time.Since(p.since); wall < reserveWall && (err != nil || spent-p.spent < reserveCPU) {
		return false
	}
	p.spent, p.since = spent, time.Now()
	return true
}

// slowFrom is where version 2 begins to slow a group down: a part of what is left to the sentry beyond the user's limit is still free then.
func slowFrom(limit int64) string { return strconv.FormatInt(limit+sentryMemory/2, 10) }
