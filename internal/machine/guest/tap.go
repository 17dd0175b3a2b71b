package guest

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"cove/internal/machine/wire"
)

// tap reads one stream of a process. It waits for it as Go waits for files, in one thread for all, until the stream is fast. The kernel wakes that thread for each piece that the program
// writes, also while nobody waits for it, which takes longer than to move the piece. So a fast stream is taken out of what the thread watches, and looked at every millisecond, in which
// the program fills its pipe.
type tap struct {
	kind string

	end    sync.Mutex // guards our end; taken before mu
	file   *os.File   // while Go watches it
	fd     int        // while it does not
	closed bool       // who reads fd closes it

	mu sync.Mutex // held from a read until what was read is in the output, so that the end comes after it
}

const (
	much       = 4 << 10
	quickly    = 2 * time.Millisecond
	manyQuick  = 16 // readings of much that followed the one before at once make a stream a fast one
	streamRest = time.Millisecond
	manyEmpty  = 20        // looks at a fast stream in vain make it a slow one
	largePiece = 128 << 10 // bytes; a stream of which as much is read at a time needs no rest
)

// run reads until nobody has the other end of the stream any more.
func (t *tap) run(o *output) {
	defer func() {
		t.mu.Lock()
		o.shut(t.kind)
		t.mu.Unlock()
		if t.kind != wire.FromTerminal { // a terminal is written to as well
			t.close()
		}
	}()
	for t.watch(o) {
		if t.takeOut() && (!t.hurry(o) || !t.putBack()) {
			return
		}
	}
}

// watch reads whenever there is something, until the stream has become fast. It returns false at its end.
func (t *tap) watch(o *output) (goesOn bool) {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return false
	}
	last, quick := time.Time{}, 0
	for over := false; quick < manyQuick; {
		got := 0
		err := raw.Read(func(fd uintptr) bool {
			n, err := t.once(int(fd), o)
			got = n
			over = n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN)
			return n > 0 || over
		})
		if err != nil || over {
			return false
		}
		now := time.Now()
		if quick++; got < much || now.Sub(last) > quickly || t.kind == wire.FromTerminal {
			quick = 0
		}
		last = now
	}
	return true
}

// takeOut has Go no longer watch the stream. It returns false where it cannot, as when the stream has been closed.
func (t *tap) takeOut() bool {
	t.end.Lock()
	defer t.end.Unlock()
	raw, err := t.file.SyscallConn()
	if err != nil {
		return false
	}
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) {
		var own uintptr
		own, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0)
		t.fd = int(own)
	}); err != nil || errno != 0 {
		return false
	}
	_ = t.file.Close()
	t.file = nil
	return true
}

// hurry reads a fast stream until it has become slow. It returns false at its end.
func (t *tap) hurry(o *output) (goesOn bool) {
	for empty := 0; empty < manyEmpty; {
		t.end.Lock()
		closed := t.closed
		t.end.Unlock()
		n, err := 0, error(nil)
		if !closed {
			n, err = t.once(t.fd, o)
		}
		switch {
		case n > 0:
			empty = 0
		case errors.Is(err, syscall.EAGAIN):
			empty++
		default:
			t.end.Lock()
			defer t.end.Unlock()
			_ = syscall.Close(t.fd)
			t.closed = true
			return false
		}
		if n < largePiece {
			rest := syscall.NsecToTimespec(int64(streamRest))
			_ = syscall.Nanosleep(&rest, nil) // not time.Sleep, for which Go asks the kernel what has happened to its files
		}
	}
	return true
}

// putBack has Go watch the stream again.
func (t *tap) putBack() bool {
	t.end.Lock()
	defer t.end.Unlock()
	t.file = os.NewFile(uintptr(t.fd), t.kind)
	if t.closed {
		_ = t.file.Close()
	}
	return !t.closed
}

// close closes our end, at once or within some milliseconds.
func (t *tap) close() {
	t.end.Lock()
	defer t.end.Unlock()
	t.closed = true
	if t.file != nil {
		_ = t.file.Close()
	}
}

// once reads what there is. No bytes and no error are the end.
func (t *tap) once(fd int, o *output) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n, err := syscall.Read(fd, o.room(t.kind))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n > 0 {
			o.add(t.kind, n)
		}
		return max(n, 0), err
	}
}

// drain passes on what is in the stream now. An error says that it has ended.
func (t *tap) drain(o *output) {
	t.end.Lock()
	defer t.end.Unlock()
	read := func(fd int) {
		for total := 0; total < drainLimit; {
			n, err := t.once(fd, o)
			if n == 0 || err != nil {
				return
			}
			total += n
		}
	}
	if t.file == nil && !t.closed {
		read(t.fd)
	} else if t.file != nil {
		if raw, err := t.file.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { read(int(fd)) })
		}
	}
}
