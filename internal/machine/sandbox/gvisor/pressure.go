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
// 1), or is slowed down ahead of it until it all but stands (version 2, memory.high). The guest needs next to no memory for ending the code, so it has the
// sandbox's processors for itself. The sentry may need some, and everything waits when it does, also the end of code that is in the midst of taking memory: so
// the limit rises in small steps, each after the sandbox has had some processor time, from a reserve that code cannot take at once. When the reserve is used
// up, the sandbox is ended.
const (
	reserveMemory = 512 << 20
	reserveStep   = 8 << 20
	// reserveLeft is the room below the limit with which processes that wait there can go on.
	reserveLeft = 1 << 20
	// After which processor time of the sandbox a step is due, and after which time of the clock when it does not get that, or waits for memory itself.
	reserveCPU  = 50 * time.Millisecond
	reserveWall = 200 * time.Millisecond
	reserveLook = 10 * time.Millisecond
)

// threshold is where the processes of a group wait for memory, or all but stand.
type threshold interface {
	// alarm returns what tells that the group has come here. It is called once.
	alarm() (*alarm, error)
	// waits says whether processes of the group are held here.
	waits() bool
	// place returns where it is, in bytes.
	place() int64
	raise(to int64) error
	// lower fails when more than that is in use.
	lower(to int64) error
}

// alarm is a file descriptor that is ready to read when the group may have come to its threshold.
type alarm struct {
	file    *os.File
	watched *os.File // stays open for it; may be nil
	sure    bool     // whenever it is ready something has waited, also when nothing does any more
	// mute makes the descriptor unready until the next time.
	mute func(fd int)
}

// wait returns nil at the next alarm, and an error when the alarm is closed.
func (a *alarm) wait() error {
	conn, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if n > 0 {
			a.mute(int(fd))
		}
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

func (a *alarm) close() {
	_ = a.file.Close()
	if a.watched != nil {
		_ = a.watched.Close()
	}
}

// thresholdV1 is the threshold of version 1: the limit, where processes sleep rather than be killed. It is the group's folder.
type thresholdV1 string

func (dir thresholdV1) control() string { return filepath.Join(string(dir), "memory.oom_control") }

func (dir thresholdV1) alarm() (*alarm, error) {
	control, err := os.Open(dir.control())
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close() }()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "pressure"), sure: true, mute: func(fd int) { _, _ = unix.Read(fd, make([]byte, 8)) }}
	order := fmt.Sprintf("%d %d", fd, control.Fd())
	err = os.WriteFile(filepath.Join(string(dir), "cgroup.event_control"), []byte(order), 0o600)
	if err == nil {
		err = os.WriteFile(dir.control(), []byte("1"), 0o600) // sleep rather than be killed
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// waits is false for processes that were given room and have not been run since, as on a busy machine: they need no more.
func (dir thresholdV1) waits() bool {
	text, err := os.ReadFile(dir.control())
	return err == nil && bytes.Contains(text, []byte("under_oom 1")) && dir.place()-number(filepath.Join(string(dir), "memory.usage_in_bytes")) < reserveLeft
}

func (dir thresholdV1) limit() string { return filepath.Join(string(dir), "memory.limit_in_bytes") }

func (dir thresholdV1) place() int64 { return number(dir.limit()) }

func (dir thresholdV1) raise(to int64) error {
	return os.WriteFile(dir.limit(), []byte(strconv.FormatInt(to, 10)), 0o600)
}

func (dir thresholdV1) lower(to int64) error { return dir.raise(to) } // the kernel looks itself

// thresholdV2 is the threshold of version 2: from memory.high on, processes are slowed down. It is the group's folder.
type thresholdV2 string

// alarm watches the counts of the group's events, which change each time that the group was at its threshold. Often giving up file caches has helped then.
func (dir thresholdV2) alarm() (*alarm, error) {
	events, err := os.Open(filepath.Join(string(dir), "memory.events"))
	if err != nil {
		return nil, err
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = errors.Join(unix.SetNonblock(fd, true),
			unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, int(events.Fd()), &unix.EpollEvent{Events: unix.EPOLLPRI | unix.EPOLLET, Fd: int32(events.Fd())}))
	}
	a := &alarm{watched: events, mute: func(fd int) { _, _ = unix.EpollWait(fd, make([]unix.EpollEvent, 1), 0) }}
	if fd >= 0 {
		a.file = os.NewFile(uintptr(fd), "pressure")
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (dir thresholdV2) high() string { return filepath.Join(string(dir), "memory.high") }

func (dir thresholdV2) used() int64 { return number(filepath.Join(string(dir), "memory.current")) }

// waits is true when more is in use than should be and none of it can be taken back.
func (dir thresholdV2) waits() bool {
	high := dir.place()
	return high > 0 && dir.used() > high
}

// place is 0 where nothing is slowed down, which the kernel calls "max".
func (dir thresholdV2) place() int64 { return number(dir.high()) }

func (dir thresholdV2) raise(to int64) error {
	return os.WriteFile(dir.high(), []byte(strconv.FormatInt(to, 10)), 0o600)
}

func (dir thresholdV2) lower(to int64) error {
	if dir.used() > to {
		return unix.EBUSY
	}
	return dir.raise(to)
}

// holdMemory stays with a sandbox whose group may come to its threshold.
func (s *running) holdMemory(g *group, a *alarm) {
	go func() {
		<-s.done
		a.close()
	}()
	for a.wait() == nil {
		if !a.sure && !g.threshold.waits() {
			continue
		}
		if !s.lend(g) {
			s.overuse.Store(true)
			_ = unix.Kill(s.sentry, unix.SIGKILL)
			return
		}
	}
}

// lend gives out the reserve until nothing in the group waits for memory, and takes it back. It returns false when that does not come about.
func (s *running) lend(g *group) bool {
	s.waited.Add(1)
	s.lending.Store(true)
	defer func() {
		s.fed.Store(time.Now().UnixNano())
		s.lending.Store(false)
	}()
	base := g.threshold.place()
	lent := int64(0)
	pace := newPace(g)
	tick := time.NewTicker(reserveLook)
	defer tick.Stop()
	for g.threshold.waits() || g.threshold.lower(base) != nil {
		if g.threshold.waits() && pace.due() {
			if lent == reserveMemory {
				return false
			}
			lent += reserveStep
			_ = g.threshold.raise(base + lent)
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
