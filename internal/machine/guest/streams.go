package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"

	"cove/internal/machine/wire"
)

// streams is what a process reads from and writes to.
type streams struct {
	taps     []*tap
	input    *os.File // nil: it has none; of a terminal the same file as its tap's
	terminal *os.File // nil: it has pipes
	gate     chan struct{}
	ends     []int // the process's descriptors, until it has started
}

// writersWaiting is how many may wait to write to one process: it may never read.
const writersWaiting = 16

// openStreams makes a terminal, or pipes.
func (g *guest) openStreams(s wire.ProcessStart) (*streams, error) {
	st := &streams{gate: make(chan struct{}, writersWaiting)}
	var err error
	if s.Terminal != nil {
		err = g.asUser(func() error { return st.openTerminal(*s.Terminal) })
	} else {
		err = st.openPipes(s.Input)
	}
	if err != nil {
		st.closeChild()
		st.close()
		return nil, fmt.Errorf("open the streams of a process: %w", err)
	}
	return st, nil
}

const pipeSize = 1 << 20 // bytes that a pipe of a process holds

func (st *streams) openPipes(input bool) error {
	if input {
		read, write, err := pipe()
		if err != nil {
			return err
		}
		st.ends = append(st.ends, read)
		if st.input, err = ours(write, "stdin"); err != nil {
			return err
		}
	} else {
		null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		st.ends = append(st.ends, null)
	}
	for _, kind := range []string{wire.FromStdout, wire.FromStderr} {
		read, write, err := pipe()
		if err != nil {
			return err
		}
		st.ends = append(st.ends, write)
		f, err := ours(read, kind)
		if err != nil {
			return err
		}
		// The larger, the fewer changes between the process and the guest. Where the system allows no more it is as it was.
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(read), syscall.F_SETPIPE_SZ, pipeSize)
		st.taps = append(st.taps, &tap{file: f, kind: kind})
	}
	return nil
}

// ours makes a file of our end of a stream, which waits without a thread of its own.
func ours(fd int, name string) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openTerminal makes a terminal, which belongs to the user that calls it; see pts(4).
func (st *streams) openTerminal(size wire.TerminalSize) error {
	master, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	st.terminal = os.NewFile(uintptr(master), "terminal")
	st.input = st.terminal
	st.taps = []*tap{{file: st.terminal, kind: wire.FromTerminal}}
	var number, unlocked uint32
	if err := ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked)); err != nil {
		return err
	}
	if err := ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		return err
	}
	if err := st.resize(size); err != nil {
		return err
	}
	end, err := syscall.Open(fmt.Sprintf("/dev/pts/%d", number), syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	st.ends = []int{end}
	return nil
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

// resize gives the terminal a size; programs in it hear of that.
func (st *streams) resize(size wire.TerminalSize) error {
	window := struct{ rows, columns, x, y uint16 }{rows: size.Rows, columns: size.Columns}
	raw, err := st.terminal.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = ioctl(int(fd), syscall.TIOCSWINSZ, unsafe.Pointer(&window)) })
	return errors.Join(failed, err)
}

// child lists the descriptors as the process gets them.
func (st *streams) child() []uintptr {
	if len(st.ends) == 1 {
		tty := uintptr(st.ends[0])
		return []uintptr{tty, tty, tty}
	}
	return []uintptr{uintptr(st.ends[0]), uintptr(st.ends[1]), uintptr(st.ends[2])}
}

func (st *streams) closeChild() {
	for _, fd := range st.ends {
		_ = syscall.Close(fd)
	}
	st.ends = nil
}

// close closes our ends. What the process has left behind cannot write any more.
func (st *streams) close() {
	st.closeInput()
	for _, t := range st.taps {
		t.close()
	}
	if st.terminal != nil {
		_ = st.terminal.Close()
	}
}

// closeInput is the end of the standard input. A terminal remains open for what the process has left behind, but takes nothing more: who waits to write to it would wait for ever.
func (st *streams) closeInput() {
	switch {
	case st.terminal != nil:
		_ = st.terminal.SetWriteDeadline(time.Unix(1, 0))
	case st.input != nil:
		_ = st.input.Close()
	}
}

func (st *streams) serve(o *output) {
	for _, t := range st.taps {
		go t.run(o)
	}
}

// drain passes on what is in the streams now. Something that the process left behind may be writing without end.
func (st *streams) drain(o *output) {
	for _, t := range st.taps {
		t.drain(o)
	}
}

// writeProcess passes on what the host sends until the end of that.
func (g *guest) writeProcess(ctx context.Context, ch *wire.Channel, req wire.Request) error {
	p, err := g.processes.find(req.ID)
	if err != nil {
		return err
	}
	st := p.streams
	if st.input == nil {
		return fault{wire.FaultEnded, "the process was started without an input"}
	}
	select {
	case st.gate <- struct{}{}:
		defer func() { <-st.gate }()
	default:
		return fault{wire.FaultMany, fmt.Sprintf("%d others wait to write to the process, which does not read", writersWaiting)}
	}
	n, err := st.write(ch)
	switch {
	case errors.Is(err, wire.ErrReset), errors.Is(err, wire.ErrClosed), ctx.Err() != nil:
		return nil // the writer has gone
	case err != nil || p.over():
		return fault{wire.FaultEnded, "the process has ended, or has closed its input"}
	}
	if req.End && st.terminal != nil {
		_, err = st.terminal.Write([]byte{endOfFile})
	} else if req.End {
		err = st.input.Close()
	}
	if err != nil {
		return fault{wire.FaultEnded, "the process has ended, or has closed its input"}
	}
	answer(ch, wire.Response{Size: n}, nil)
	return nil
}

// endOfFile is what ends the input on a terminal, Ctrl-D.
const endOfFile = 4

// write copies r to the process. Writes of several do not mix, but for those that wait for a process that does not read.
func (st *streams) write(r io.Reader) (int64, error) {
	return io.Copy(st.input, struct{ io.Reader }{r})
}

func (g *guest) resizeProcess(ch *wire.Channel, req wire.Request) error {
	p, err := g.processes.find(req.ID)
	switch {
	case err != nil:
		return err
	case req.Terminal == nil || p.streams.terminal == nil:
		return fault{wire.FaultInvalid, "the process has no terminal"}
	case p.over():
		return fault{wire.FaultEnded, "the process has ended"}
	}
	if err := p.streams.resize(*req.Terminal); err != nil {
		return err
	}
	p.mu.Lock()
	p.size = req.Terminal
	p.mu.Unlock()
	answer(ch, wire.Response{}, nil)
	return nil
}
