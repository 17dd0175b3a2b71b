package guest

import (
	"net"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// How a guest without a host looks for one: often at first, because a host that saved or restored the sandbox is
// coming back at once, then seldom, because it may take days.
const (
	dialInterval     = 2 * time.Millisecond
	dialIntervalIdle = 50 * time.Millisecond
	dialsBeforeIdle  = 5000
)

// checkpointFile tells a sandbox in gVisor about its checkpoints. An open file waits for one checkpoint, the next after it was opened;
// reading it blocks until then.
const checkpointFile = "/proc/gvisor/checkpoint"

// uplink keeps a guest connected to the process that listens on the host's socket. There is no limit to how long a connection
// may wait for its handshake: the next host may be hours away.
type uplink struct {
	socket string
	nudge  chan struct{} // holds a token when there is a reason to dial at once

	mu     sync.Mutex
	stream *net.UnixConn // the connection in use, or nil
}

// stayConnected serves one connection after the other; it never returns.
func (g *guest) stayConnected(socket string) {
	u := &uplink{socket: socket, nudge: make(chan struct{}, 1)}
	go u.watchCheckpoints()
	for failures := 0; ; {
		if stream, err := u.connect(); err == nil {
			served, _ := g.converse(stream) // nobody is left to tell how it ended
			u.disconnect()
			if served {
				failures = 0
				// A checkpoint is likely to come next, and every page that is not in use makes it smaller.
				go debug.FreeOSMemory()
				continue
			}
		}
		if failures++; u.pause(failures) {
			failures = 0
		}
	}
}

func (u *uplink) connect() (net.Conn, error) {
	stream, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: u.socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	u.stream = stream
	u.mu.Unlock()
	// A checkpoint may have come before the connection was known here.
	u.closeSevered()
	return stream, nil
}

func (u *uplink) disconnect() {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.stream.Close()
	u.stream = nil
}

// pause waits before the next attempt; it returns true when it was cut short for a reason to be quick again.
func (u *uplink) pause(failures int) bool {
	wait := dialInterval
	if failures > dialsBeforeIdle {
		wait = dialIntervalIdle
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-u.nudge:
		return true
	case <-timer.C:
		return false
	}
}

// watchCheckpoints looks at the connection after every checkpoint. gVisor severs connections to the host then, on both sides of it,
// but wakes nobody who waits for one. It returns at once where there is no gVisor.
func (u *uplink) watchCheckpoints() {
	fd, err := syscall.Open(checkpointFile, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	for err == nil {
		var report [16]byte
		n, readErr := syscall.Read(fd, report[:])
		if readErr == syscall.EINTR {
			continue
		}
		if n <= 0 {
			time.Sleep(dialIntervalIdle)
		}
		_ = syscall.Close(fd)
		// Opened before the connection is looked at, so that no checkpoint falls between the two.
		for fd, err = syscall.Open(checkpointFile, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil; {
			time.Sleep(dialIntervalIdle)
			fd, err = syscall.Open(checkpointFile, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		}
		u.closeSevered()
		select {
		case u.nudge <- struct{}{}:
		default:
		}
	}
}

// closeSevered closes the connection if it belongs to a world that is gone. One that was made since stays.
func (u *uplink) closeSevered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stream != nil && severed(u.stream) {
		// Wakes readers and writers: Go does that without the system's help.
		_ = u.stream.Close()
	}
}

// severed reports whether a stream has nothing more to read, ever.
func severed(stream *net.UnixConn) bool {
	raw, err := stream.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		over = n <= 0 && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return over || err != nil
}
