package scan

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"sync"
	"syscall"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

//go:embed calls.py
var callsSource []byte

//go:embed finder.py
var finderSource []byte

//go:embed cell.py
var cellSource []byte

//go:embed scan.py
var scanSource []byte

// Driver returns the parser's source, one Python program.
func Driver() []byte {
	return bytes.Join([][]byte{callsSource, finderSource, cellSource, scanSource}, []byte("\n\n"))
}

const (
	// scanTimeout bounds one scan, the interpreter's start included. The parser bounds its own processor time to 10 seconds, and more than that passes where
	// its processors are shared.
	scanTimeout = time.Minute
	// closeTimeout bounds the wait for the parser's end.
	closeTimeout = time.Second
	// longestReply bounds what is decoded, in bytes.
	longestReply = 16 << 20
)

// Scanner is a running parser in a sandbox. Its methods may be called from several goroutines; scans run one at a time. It ends with the link
// it was started through, and must be closed before the sandbox is saved: in a copy of it there is no use for one.
type Scanner struct {
	process *guestlink.Process
	idle    chan struct{} // holds one token while no scan runs
	replies chan []byte
	ended   chan struct{}
	close   sync.Once
}

// Start starts a parser: python is the interpreter's path inside the sandbox. It does not wait until the interpreter is ready, so that the
// caller can do something else meanwhile; the first Scan waits. An engine without isolation runs the parser as it runs code, so
// that there code can tell it what to say.
func Start(ctx context.Context, l *guestlink.Link, python string) (*Scanner, error) {
	// Isolated (-I), so that no variable and no file of the user's has a say, and without site (-S), so that no package has.
	spec := wire.ProcessSpec{Args: []string{python, "-I", "-S", "-B"}, Env: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}}
	p, err := l.StartApart(ctx, spec, Driver())
	if err != nil {
		return nil, fmt.Errorf("start the scanner: %w", err)
	}
	s := &Scanner{process: p, idle: make(chan struct{}, 1), replies: make(chan []byte, 1), ended: make(chan struct{})}
	s.idle <- struct{}{}
	go s.receive()
	return s, nil
}

// receive passes replies on until the parser has ended.
func (s *Scanner) receive() {
	defer close(s.ended)
	defer s.process.Close()
	for {
		h, body, err := s.process.Receive()
		if err != nil || h.Kind == wire.FromExit {
			return
		}
		if h.Kind != wire.FromMessage {
			continue // what it prints is of no interest
		}
		select {
		case s.replies <- body:
		default: // nobody has asked
		}
	}
}

// Ended is closed when the scanner can do no more.
func (s *Scanner) Ended() <-chan struct{} { return s.ended }

// Close ends the parser and waits until it has ended. It is safe to call twice.
func (s *Scanner) Close() {
	s.close.Do(func() { _ = s.process.Send(wire.ToKernel{Kind: wire.ToSignal, Signal: int(syscall.SIGKILL)}, nil) })
	select {
	case <-s.ended:
	case <-time.After(closeTimeout):
		s.process.Close()
	}
}

// Scan parses code. Problems: scan_failed and scan_timeout, after which the scanner has ended and Start makes another; canceled, after which it
// has if it had begun; scan_too_large (see MaxCode), after which it has not.
func (s *Scanner) Scan(ctx context.Context, code Code) (Report, error) {
	if len(code.Text) > MaxCode {
		return Report{}, problem.New(problem.ScanTooLarge, fmt.Sprintf("code of more than %d bytes is not searched for imports", MaxCode))
	}
	if ctx.Err() != nil {
		return Report{}, canceled(ctx)
	}
	question, err := request(code)
	if err != nil {
		return Report{}, err
	}
	select {
	case <-s.idle:
	case <-s.ended:
		return Report{}, failed(nil)
	case <-ctx.Done():
		return Report{}, canceled(ctx)
	}
	r, err := s.ask(ctx, question)
	if err != nil {
		s.Close()
		return Report{}, err
	}
	s.idle <- struct{}{}
	readMetadata(code.Text, &r)
	return r, nil
}

func (s *Scanner) ask(ctx context.Context, question []byte) (Report, error) {
	select {
	case <-s.replies: // to no question
	default:
	}
	if err := s.process.Send(wire.ToKernel{Kind: wire.ToMessage}, question); err != nil {
		return Report{}, failed(err)
	}
	timer := time.NewTimer(scanTimeout)
	defer timer.Stop()
	select {
	case body := <-s.replies:
		if len(body) > longestReply {
			return Report{}, failed(fmt.Errorf("a reply of %d bytes", len(body)))
		}
		r, err := decode(body)
		if err != nil {
			return Report{}, failed(err)
		}
		return r, nil
	case <-s.ended:
		return Report{}, failed(nil)
	case <-timer.C:
		return Report{}, problem.New(problem.ScanTimeout, "the code could not be searched for imports in time")
	case <-ctx.Done():
		return Report{}, canceled(ctx)
	}
}

func failed(cause error) error {
	return problem.New(problem.ScanFailed, "the code could not be searched for imports").WithCause(cause)
}

func canceled(ctx context.Context) error {
	return problem.New(problem.GivenUp, "the search for imports was canceled").WithCause(ctx.Err())
}
