// Package lineedit edits entries of one or several lines on a terminal: with a history, completion, a search, and pastes that are text and not
// keys. Characters of East Asian scripts take the columns that they have.
//
// An Editor reads the terminal only while ReadLine or ReadPassword wait. What is typed in between stays with the terminal, which is in its usual
// mode then, and is what the next call reads first. Nothing is left behind when Close returns: the terminal has the mode that it had, and no
// goroutine waits for a key.
package lineedit

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInterrupt is what ReadLine returns for Ctrl-C. What was typed is dropped.
var ErrInterrupt = errors.New("interrupted")

// ErrClosed is what ReadLine returns when the editor is closed meanwhile.
var ErrClosed = errors.New("the editor is closed")

// completeTimeout bounds how long a person's terminal stands still for completions.
const completeTimeout = 2 * time.Second

// Options say how entries are edited.
type Options struct {
	In  *os.File  // a terminal
	Out io.Writer // the same or another terminal, where the entry is shown
	// Dumb says that Out understands no escape sequences (TERM=dumb): entries are shown on one row, and pastes are keys.
	Dumb bool
	// History is what the arrow keys and the search go through; nil is none. Entries get into it by Add alone.
	History *History
	// Complete returns what may stand from start up to the cursor, which counts runes of text; nil means that there are no completions.
	Complete func(ctx context.Context, text string, cursor int) (matches []string, start int)
	// Highlight returns the numbers of an SGR sequence for each rune of an entry, "" for none; nil: entries have no colours, and what the history has after them is not offered.
	Highlight func(text string) []string
	// More says whether an entry goes on in another line when Enter is pressed at its end, and what that line begins with; nil: it never does. Dumb
	// terminals are not asked.
	More func(ctx context.Context, text string) (indent string, more bool)
	// Edit has the person's own editor change an entry, for Ctrl-X Ctrl-E; nil: there is none. The terminal is as it was before ReadLine meanwhile. It reports its errors itself.
	Edit func(ctx context.Context, text string) (changed string, ok bool)
	// Continuation is the prompt of the lines of an entry after the first.
	Continuation string
}

// Editor reads entries from a terminal. One call of ReadLine or ReadPassword may wait at a time; the other methods may be called meanwhile.
type Editor struct {
	o     Options
	fd    int
	keys  decoder
	woken [2]int // a pipe: a byte in it ends a wait for keys
	lines sync.Mutex

	mu      sync.Mutex // for what follows
	prompt  string
	closed  bool
	normal  *unix.Termios // what the terminal's mode was before ReadLine, or nil
	entry   *entry        // what is being read, or nil
	screen  screen
	killed  []rune
	current context.CancelFunc // ends a completion
}

// New returns an editor. It changes nothing about the terminal before the first ReadLine.
func New(o Options) (*Editor, error) {
	e := &Editor{o: o, fd: int(o.In.Fd())}
	if err := unix.Pipe2(e.woken[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	e.screen = screen{out: o.Out, dumb: o.Dumb, size: e.size, more: o.Continuation, look: o.Highlight}
	return e, nil
}

// SetPrompt sets the prompt. An entry that is being read gets it at once.
func (e *Editor) SetPrompt(prompt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prompt = prompt
	if e.entry != nil {
		e.draw()
	}
}

// Refresh shows the entry that is being read again, where something else was written to the terminal.
func (e *Editor) Refresh() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.entry != nil {
		e.draw()
	}
}

// ReadLine returns the next entry, which may have several lines when some were pasted or come from the history. It returns ErrInterrupt for Ctrl-C,
// io.EOF for Ctrl-D in an empty entry and at the terminal's end, and ErrClosed.
func (e *Editor) ReadLine() (string, error) { return e.read(false) }

// ReadPassword returns the next entry, which is not shown, with this prompt.
func (e *Editor) ReadPassword(prompt string) (string, error) {
	e.SetPrompt(prompt)
	return e.read(true)
}

// Close ends a wait for an entry, and leaves the terminal as it was.
func (e *Editor) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	if e.current != nil {
		e.current()
	}
	e.wake()
	e.restore()
	e.mu.Unlock()
	e.lines.Lock() // nobody reads any more
	defer e.lines.Unlock()
	return errors.Join(unix.Close(e.woken[0]), unix.Close(e.woken[1]))
}

func (e *Editor) read(secret bool) (string, error) {
	e.lines.Lock()
	defer e.lines.Unlock()
	if err := e.begin(secret); err != nil {
		return "", err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-resized:
				e.mu.Lock()
				e.wake()
				e.mu.Unlock()
			case <-stop:
				return
			}
		}
	}()
	text, err := e.edit()
	signal.Stop(resized)
	close(stop)
	<-over
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(text, err)
	return text, err
}

// begin takes the terminal over.
func (e *Editor) begin(secret bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	normal, err := unix.IoctlGetTermios(e.fd, unix.TCGETS)
	if err != nil {
		return io.EOF // the terminal was closed
	}
	if err := unix.IoctlSetTermios(e.fd, unix.TCSETS, rawMode(*normal)); err != nil {
		return io.EOF
	}
	e.normal = normal
	e.entry = &entry{secret: secret, at: e.o.History.len()}
	e.screen.begin()
	e.draw()
	return nil
}

// end gives the terminal back.
func (e *Editor) end(_ string, err error) {
	last := ""
	if errors.Is(err, ErrInterrupt) {
		last = "^C"
	}
	e.entry.search = nil
	e.screen.finish(e.prompt, e.entry.shown(), last)
	e.entry = nil
	e.restore()
}

func (e *Editor) restore() {
	if e.normal == nil {
		return
	}
	e.screen.end()
	_ = unix.IoctlSetTermios(e.fd, unix.TCSETS, e.normal) // a terminal that is gone has no mode
	e.normal = nil
}

// edit takes keys until there is an entry.
func (e *Editor) edit() (string, error) {
	for {
		e.mu.Lock()
		for {
			k, ok := e.keys.next()
			if !ok {
				break
			}
			if text, done, err := e.press(k); done {
				e.mu.Unlock()
				return text, err
			}
		}
		if !e.keys.pasting {
			e.draw()
		}
		e.mu.Unlock()
		if err := e.wait(); err != nil {
			return "", err
		}
	}
}

// wait reads more keys, or returns because it was woken.
func (e *Editor) wait() error {
	fds := []unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}, {Fd: int32(e.woken[0]), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	var b [4096]byte
	if fds[1].Revents != 0 {
		_, _ = unix.Read(e.woken[0], b[:]) // how often it was woken does not matter
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.closed {
			return ErrClosed
		}
		return nil
	}
	if fds[0].Revents == 0 {
		return nil
	}
	n, err := unix.Read(e.fd, b[:])
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return nil
	case err != nil || n <= 0:
		return io.EOF // a terminal that was closed
	}
	e.keys.add(b[:n])
	return nil
}

// wake ends a wait for keys.
func (e *Editor) wake() { _, _ = unix.Write(e.woken[1], []byte{0}) } // a pipe that is full wakes as well

func (e *Editor) draw() {
	if e.normal == nil {
		return // the terminal is somebody else's at the moment
	}
	if s := e.entry.search; s != nil {
		e.screen.draw("("+s.label()+" '"+string(s.query)+"'): ", string(e.entry.text), e.entry.pos, "")
		return
	}
	text := e.entry.shown()
	e.screen.draw(e.prompt, text, min(e.entry.pos, len([]rune(text))), string(e.offer()))
}

// size is the terminal's, in columns and rows.
func (e *Editor) size() (columns, rows int) {
	ws, err := unix.IoctlGetWinsize(e.fd, unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}

// rawMode is a terminal's mode in which each key comes as it is typed and is not shown. What is written is treated as before, because others write
// to the terminal, too.
func rawMode(t unix.Termios) *unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return &t
}
