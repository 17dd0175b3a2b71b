package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cove/internal/machine/wire"
)

// A runner passes on what one process writes: text on two pipes and, for a kernel or another driver, messages on a socket.
// One goroutine reads all three, because the order between them is the point: a driver flushes its text before it
// sends a message, so the pipes are emptied before a message is passed on.
type runner struct {
	hold
	watcher memoryWatch
	pid     int
	exit    <-chan syscall.WaitStatus
	out     [2]int // our ends of stdout and stderr; -1 when closed
	socket  int    // our end of the message socket; -1 for a plain process
	feeder  int    // the same, for as long as something may be written to it
	ack     int    // our end of the pipe that acknowledges syncs
	wake    [2]int // a byte here says that the process has ended
	epoll   int
	inbuf   []byte // bytes of messages not complete yet
	buf     []byte
	inbox   chan []byte
	reading sync.Mutex // held while the loop has something in hand that it has read

	left    atomic.Int64 // bytes of output still to pass on
	dropped atomic.Int64
	busy    atomic.Bool // an execution was begun and not ended
	memory  atomic.Bool // the guest killed the process for memory
	broken  string      // how the process broke the protocol
	hungUp  atomic.Bool // it closed its channel and had to be killed

	status syscall.WaitStatus // set before ended is closed
	ended  chan struct{}      // closed when the process has ended
	done   chan struct{}      // closed when all that it wrote is passed on
}

func newRunner(g *guest, p *plumbing, pid int, exit <-chan syscall.WaitStatus) *runner {
	r := &runner{
		pid: pid, exit: exit, out: p.out, socket: p.socket, feeder: p.socket, ack: p.ackWrite, wake: p.wake, epoll: p.epoll,
		buf: make([]byte, wire.MaxFrame-1024), inbox: make(chan []byte, 64), ended: make(chan struct{}), done: make(chan struct{}),
	}
	r.watcher = memoryWatch{guest: g, runner: r}
	r.left.Store(drainLimit) // until the host begins an execution
	return r
}

// The kinds of frames between the guest and a kernel driver: u32 length of the payload, u8 kind, payload.
const (
	frameMessage = 1
	frameSync    = 2
	frameStdout  = 3
	frameStderr  = 4
	frameHeader  = 5
)

// textInFrames is the argument that tells a kernel's driver that it may send text in frames.
const textInFrames = "text-in-frames"

// drainLimit bounds what is read from a pipe for the sake of order, and from a socket after its process's end; a child process may be writing
// without end.
const drainLimit = 1 << 20

// inbufKept bounds the memory that is kept for the next message after a large one.
const inbufKept = 256 << 10

// hangUpGrace is how long a kernel may live without its channel. The kernel of a dying process closes files before anyone can see its
// status, and dumping a large process takes time.
const hangUpGrace = 10 * time.Second

func (r *runner) watch(fd int) error {
	return syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// serve stays with the process until it has ended. ch is the first to hold it.
func (r *runner) serve(ch *wire.Channel) {
	r.take(ch)
	var err error
	for _, fd := range []int{r.out[0], r.out[1], r.wake[0], r.socket} {
		if fd >= 0 {
			err = errors.Join(err, r.watch(fd))
		}
	}
	go r.control(ch)
	var feeding sync.WaitGroup
	feeding.Go(r.feed)
	if err = errors.Join(err, r.loop()); err != nil {
		// The host is gone or the guest is broken: nobody listens to the process any more.
		r.signal(syscall.SIGKILL)
	}
	<-r.ended
	r.release()
	r.watcher.stop()
	close(r.done)
	if r.feeder >= 0 {
		_ = syscall.Shutdown(r.feeder, syscall.SHUT_RDWR) // unblocks the goroutine that writes to it
	}
	feeding.Wait()
}

// loop runs until the process has ended and all it wrote is passed on, or the host of a plain process is gone.
func (r *runner) loop() error {
	go func() {
		r.status = <-r.exit
		// The write comes first: once ended is closed the descriptor may be closed too, and its number be another's.
		_, _ = syscall.Write(r.wake[1], []byte{1})
		close(r.ended)
	}()
	events := make([]syscall.EpollEvent, 4)
	for {
		n, err := syscall.EpollWait(r.epoll, events, -1)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, ev := range events[:n] {
			if int(ev.Fd) == r.wake[0] {
				return r.finish()
			}
			if err := r.read(int(ev.Fd)); err != nil {
				return err
			}
		}
	}
}

// read reads once from a descriptor and passes on what it got, unless the process is held back.
func (r *runner) read(fd int) (err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.heldBack() {
		return nil
	}
	switch fd {
	case r.socket:
		_, err = r.receive()
	case r.out[0]:
		_, err = r.pass(0)
	case r.out[1]:
		_, err = r.pass(1)
	}
	return err
}

// finish passes on what is left after the process's end. Children of it may hold the pipes open, so it does not wait for EOF.
func (r *runner) finish() error {
	<-r.ended
	r.readAgain()
	if r.hungUp.Load() && r.broken == "" {
		r.broken = "it closed its channel"
	}
	for total := 0; r.socket >= 0 && total < drainLimit; {
		n, err := r.receive()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		total += n
	}
	if err := r.drain(); err != nil {
		return err
	}
	if r.busy.Load() { // else it does not matter what is held
		r.watcher.conclude()
	}
	h := wire.FromProcess{Kind: wire.FromExit, Code: r.status.ExitStatus(), Memory: r.memory.Load(), Dropped: r.dropped.Load(), Fault: r.broken}
	if r.status.Signaled() {
		h.Code, h.Signal = 0, int(r.status.Signal())
	}
	r.retire()
	return r.tell(h, nil)
}

// how says how the process ended.
func (r *runner) how() string {
	switch {
	case r.memory.Load():
		return "it used more memory than it may and was ended"
	case r.broken != "":
		return "it did not follow the protocol: " + r.broken
	case r.status.Signaled():
		return fmt.Sprintf("it was killed by signal %d (%s)", r.status.Signal(), r.status.Signal())
	default:
		return fmt.Sprintf("it ended with exit status %d", r.status.ExitStatus())
	}
}

// tell sends a message to the host. Of a kernel that nobody listens to, output is dropped.
func (r *runner) tell(h wire.FromProcess, body []byte) error {
	if ch := r.listener(); ch != nil {
		err := wire.WriteMessage(ch, h, body)
		if err == nil || !r.kernel {
			return err
		}
		r.mute(ch)
	}
	r.dropped.Add(int64(len(body)))
	return nil
}

// pass reads once from a pipe and passes on what it got; it returns the number of bytes read, 0 when there is nothing now.
func (r *runner) pass(i int) (int, error) {
	if r.out[i] < 0 {
		return 0, nil
	}
	n, err := syscall.Read(r.out[i], r.buf)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	if n <= 0 {
		_ = syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_DEL, r.out[i], nil)
		_ = syscall.Close(r.out[i])
		r.out[i] = -1
		return 0, nil
	}
	return n, r.text(i, r.buf[:n])
}

// text passes on text of stdout (0) or stderr (1) as far as there is room for it.
func (r *runner) text(i int, text []byte) error {
	kind, n := wire.FromStdout, int64(len(text))
	if i == 1 {
		kind = wire.FromStderr
	}
	keep := min(n, max(r.left.Add(-n)+n, 0))
	r.dropped.Add(n - keep)
	if keep == 0 {
		return nil
	}
	return r.tell(wire.FromProcess{Kind: kind}, text[:keep])
}

func (r *runner) drain() error {
	for i := range r.out {
		for total := 0; total < drainLimit; {
			n, err := r.pass(i)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			total += n
		}
	}
	return nil
}

// receive reads once from the kernel's socket and passes on the messages that are complete; it returns the number of bytes read, 0 when there is
// nothing now.
func (r *runner) receive() (int, error) {
	n, _, err := syscall.Recvfrom(r.socket, r.buf, syscall.MSG_DONTWAIT)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	if n <= 0 {
		r.ignoreSocket()
		go r.awaitEnd()
		return 0, nil
	}
	r.inbuf = append(r.inbuf, r.buf[:n]...)
	return n, r.messages()
}

// messages passes on the frames that are complete, and before them what was in the pipes when they came.
func (r *runner) messages() error {
	rest, drained := r.inbuf, false
	for len(rest) >= frameHeader {
		size := int(binary.BigEndian.Uint32(rest))
		if size > wire.MessageLimit-1024 {
			r.breakOff(fmt.Sprintf("it announced a message of %d bytes", size))
			return nil
		}
		if len(rest) < frameHeader+size {
			break
		}
		kind, payload := rest[4], rest[frameHeader:frameHeader+size]
		rest = rest[frameHeader+size:]
		syncs := 1
		for kind == frameSync && len(rest) >= frameHeader && binary.BigEndian.Uint32(rest) == 0 && rest[4] == frameSync {
			rest, syncs = rest[frameHeader:], syncs+1 // one look answers all that came before it
		}
		if !drained {
			if err := r.drain(); err != nil {
				return err
			}
			drained = true
		}
		switch kind {
		case frameMessage:
			if err := r.tell(wire.FromProcess{Kind: wire.FromMessage, Dropped: r.dropped.Load()}, payload); err != nil {
				return err
			}
		case frameStdout, frameStderr:
			if err := r.text(int(kind-frameStdout), payload); err != nil {
				return err
			}
		case frameSync:
			// A driver waits for each answer, so the pipe for them is never full.
			if n, err := syscall.Write(r.ack, bytes.Repeat([]byte{1}, syncs)); errors.Is(err, syscall.EAGAIN) || err == nil && n < syncs {
				r.breakOff("it asked for more output to be passed on than it waited for")
				return nil
			}
		default:
			r.breakOff(fmt.Sprintf("it sent a message of unknown kind %d", kind))
			return nil
		}
	}
	if len(rest) == len(r.inbuf) { // a long message, of which this was one more part
		return nil
	}
	if cap(r.inbuf) > inbufKept && len(rest) < inbufKept {
		r.inbuf = nil
	}
	r.inbuf = append(r.inbuf[:0], rest...)
	return nil
}

// breakOff ends a kernel that broke the protocol. The loop goes on until the process is gone.
func (r *runner) breakOff(how string) {
	if r.broken == "" {
		r.broken = how
	}
	r.ignoreSocket()
	r.signal(syscall.SIGKILL)
}

func (r *runner) ignoreSocket() {
	_ = syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_DEL, r.socket, nil)
	_ = syscall.Shutdown(r.socket, syscall.SHUT_RDWR)
	r.socket = -1
}

// awaitEnd is for a kernel whose channel has closed. Nearly always it is dying, and its status says how; one that
// closed its channel and lives on is killed.
func (r *runner) awaitEnd() {
	timer := time.NewTimer(hangUpGrace)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		r.hungUp.Store(true)
		r.signal(syscall.SIGKILL)
	}
}

func (r *runner) signal(s syscall.Signal) {
	select {
	case <-r.ended:
		return // another process may have its number by now
	default:
	}
	if s == syscall.SIGKILL {
		// What the process started may be in sessions of its own, as a driver's shell commands are.
		for _, pid := range descendants(r.pid) {
			_ = syscall.Kill(pid, s)
		}
	}
	err := syscall.Kill(-r.pid, s)
	if err != nil || s == syscall.SIGKILL {
		_ = syscall.Kill(r.pid, s)
	}
}

// control obeys the host until the channel ends. The process dies with its channel, but a kernel lives on when the host did not
// close it: then the connection is gone, and the next host may come for the kernel.
func (r *runner) control(ch *wire.Channel) {
	for {
		var h wire.ToKernel
		body, err := wire.ReadMessage(ch, wire.MessageLimit, &h)
		if err != nil {
			if !r.kernel || closedByHost(err) {
				r.end(ch)
			}
			if !errors.Is(err, io.EOF) {
				r.letGo(ch)
				_ = ch.Close()
			}
			return
		}
		if !r.heldBy(ch) {
			return
		}
		switch h.Kind {
		case wire.ToMessage:
			select {
			case r.inbox <- body:
			default: // the kernel reads nothing; the host's deadline deals with it
			}
		case wire.ToSignal:
			r.signal(syscall.Signal(h.Signal))
		case wire.ToBegin:
			r.left.Store(h.Output)
			r.dropped.Store(0)
			r.busy.Store(true)
			r.watcher.start(h.Memory)
		case wire.ToEnd:
			r.watcher.stop()
			r.busy.Store(false)
		case wire.ToPark:
			if r.kernel {
				r.park(ch)
				_ = ch.Close()
				return
			}
		case wire.ToDetach:
			if !r.kernel {
				r.end(ch)
			}
			r.letGo(ch)
			_ = ch.Close()
			return
		}
	}
}

// end kills the process for the host that holds it.
func (r *runner) end(ch *wire.Channel) {
	if r.heldBy(ch) {
		r.signal(syscall.SIGKILL)
	}
}

// closedByHost tells the end of a channel that the host wanted from that of a whole connection.
func closedByHost(err error) bool {
	if errors.Is(err, wire.ErrClosed) {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, wire.ErrReset) || errors.Is(err, wire.ErrProtocol)
}

// feed writes the host's messages to the kernel. It is apart from control, which must hear signals while a kernel does not read.
func (r *runner) feed() {
	for {
		select {
		case body := <-r.inbox:
			r.write(body)
		case <-r.done:
			return
		}
	}
}

func (r *runner) write(body []byte) {
	frame := make([]byte, frameHeader, frameHeader+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	frame[4] = frameMessage
	frame = append(frame, body...)
	for len(frame) > 0 {
		n, err := syscall.Write(r.feeder, frame)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return // the kernel is gone; loop reports it
		}
		frame = frame[n:]
	}
}
