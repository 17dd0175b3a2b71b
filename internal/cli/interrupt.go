package cli

import (
	"context"
	"os"
	"sync"
	"syscall"

	"cove/internal/problem"
)

// interruption gives one piece of work the usual meaning of Ctrl-C: the first asks the code to stop, the second ends
// everything at once. A request to end the program (SIGTERM, SIGHUP) is both.
type interruption struct {
	soft context.Context // ends with the first Ctrl-C
	hard context.Context // ends with the second
	stop func()          // must be called when the work is over

	mu   sync.Mutex
	code int
}

func (p *Program) interruptible(ctx context.Context) *interruption {
	hard, kill := context.WithCancel(ctx)
	soft, interrupt := context.WithCancel(hard)
	i := &interruption{soft: soft, hard: hard}
	over := make(chan struct{})
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		for {
			select {
			case <-over:
				return
			case s := <-p.Signals:
				again := soft.Err() != nil
				i.note(s)
				interrupt()
				if again || s != os.Interrupt {
					kill()
				}
			}
		}
	}()
	i.stop = func() {
		close(over)
		<-joined
		interrupt()
		kill()
	}
	return i
}

func (i *interruption) note(s os.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.code != 0 {
		return
	}
	i.code = exitInterrupted
	if n, ok := s.(syscall.Signal); ok && s != os.Interrupt {
		i.code = 128 + int(n)
	}
}

// exitCode is the exit code that the first signal asks for, or 0 when none came.
func (i *interruption) exitCode() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.code
}

// await runs work that cannot be interrupted, such as reading a terminal, and returns early when ctx ends; the work is
// then left behind, and what it writes must not be used.
func await(ctx context.Context, work func() error) error {
	result := make(chan error, 1)
	go func() { result <- work() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return problem.New(problem.Canceled, "canceled", "stopped before the input was read")
	}
}
