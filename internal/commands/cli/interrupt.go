package cli

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// ownSignals is embedded by a command that gives signals a meaning of its own, by interruptible or ending. Any other one ends with the first.
type ownSignals struct{}

func (ownSignals) handlesSignals() {}

// signalHandler is a command that embeds ownSignals.
type signalHandler interface{ handlesSignals() }

// lastWords is how long a command that was told to end at once may take to do so. It may hang in a read that nothing can interrupt.
const lastWords = 2 * time.Second

// carryOut runs a command and returns its exit code when there is no error.
func carryOut(ctx context.Context, p *Program, c command) (int, error) {
	if _, own := c.(signalHandler); own {
		return c.run(ctx, p)
	}
	return p.stoppable(ctx, func(ctx context.Context) (int, error) { return c.run(ctx, p) })
}

// stoppable does work that ends with the first signal, and returns what it returns or the exit code that the signal asks for.
func (p *Program) stoppable(ctx context.Context, work func(context.Context) (int, error)) (int, error) {
	i := p.interruptible(ctx)
	defer i.stop()
	var code int
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code, err = work(i.soft)
	}()
	select {
	case <-ended:
	case <-i.leave.Done():
		select {
		case <-ended:
		case <-time.After(lastWords):
			return i.exitCode(), nil
		}
	}
	if signalled := i.exitCode(); signalled != 0 && err != nil {
		return signalled, nil
	}
	return code, err
}

// lastFiles is how long a command that was asked to end may take to have its code stop and to save what that has made. Service managers often kill
// ten seconds later.
const lastFiles = 8 * time.Second

// interruption gives one piece of work the usual meaning of Ctrl-C: the first asks the code to stop, the second ends
// everything at once. A request to end the program (SIGTERM, SIGHUP) asks the code to stop, and ends everything when its results are saved.
type interruption struct {
	soft  context.Context // ends with the first signal
	leave context.Context // ends with the second, or with a request to end: nothing new begins
	hard  context.Context // ends with the second, or lastFiles after a request to end, or when that is repeated
	stop  func()          // must be called when the work is over

	mu   sync.Mutex
	code int
}

func (p *Program) interruptible(ctx context.Context) *interruption {
	hard, kill := context.WithCancel(ctx)
	leave, end := context.WithCancel(hard)
	soft, interrupt := context.WithCancel(leave)
	i := &interruption{soft: soft, leave: leave, hard: hard}
	over := make(chan struct{})
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		late := time.NewTimer(time.Hour)
		late.Stop()
		defer late.Stop()
		asked := false // by SIGTERM; a terminal that is closed tells of it more than once
		for {
			select {
			case <-over:
				return
			case <-late.C:
				kill()
			case s := <-p.Signals:
				again := soft.Err() != nil
				i.note(s)
				interrupt()
				switch {
				case s == os.Interrupt && again, s == syscall.SIGTERM && asked:
					kill()
				case s != os.Interrupt && leave.Err() == nil:
					end()
					late.Reset(lastFiles)
				}
				asked = asked || s == syscall.SIGTERM
			}
		}
	}()
	i.stop = func() {
		close(over)
		<-joined
		interrupt()
		end()
		kill()
	}
	return i
}

// runningCode knows whether code runs in this process, and says of code that goes on although it was interrupted how that ends. A nil runningCode says nothing.
type runningCode struct {
	to   io.Writer
	runs atomic.Bool
}

// watchCode says of code that is interrupted and goes on, to w, until over is called.
func (i *interruption) watchCode(w io.Writer) (c *runningCode, over func()) {
	c = &runningCode{to: w}
	ended, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		select {
		case <-ended:
			return
		case <-i.soft.Done():
		}
		late := time.NewTimer(kernel.InterruptGrace)
		defer late.Stop()
		select {
		case <-ended:
		case <-i.leave.Done(): // it is ended anyway
		case <-late.C:
			c.tellLate()
		}
	}()
	return c, sync.OnceFunc(func() {
		close(ended)
		<-joined
	})
}

// begins is called when code begins to run, and ends when it has ended.
func (c *runningCode) begins() { c.set(true) }
func (c *runningCode) ends()   { c.set(false) }

func (c *runningCode) set(runs bool) {
	if c != nil {
		c.runs.Store(runs)
	}
}

// event notes what an event of a question says of its code.
func (c *runningCode) event(e loop.Event) {
	switch e := e.(type) {
	case loop.Start:
		c.begins()
	case loop.Output:
		if _, over := e.Event.(kernel.Done); over {
			c.ends()
		}
	}
}

// tellLate says, some time after the code was interrupted, how it ends where it still runs: on a line of its own, whatever stands on the terminal.
func (c *runningCode) tellLate() {
	if !c.runs.Load() {
		return
	}
	text := "cove: " + lang.Text("the code does not stop: its Python is ended in a few seconds and its variables are lost; Ctrl-C again ends it at once") + "\n"
	if f, ok := c.to.(*terminal.File); ok {
		_, _ = f.WriteLine([]byte(text)) // a terminal that is gone shows nothing
		return
	}
	_, _ = io.WriteString(c.to, text)
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

// ifUnsignalled is err, unless a signal is why there is one: the exit code says that.
func ifUnsignalled(i *interruption, err error) error {
	if i.exitCode() != 0 {
		return nil
	}
	return err
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
		return problem.New(problem.GivenUp, "stopped before the input was read")
	}
}

// prompted has read wait for a person, or for a pipe. A signal ends the command meanwhile, and signalled is the exit code that it asks for; but a
// Ctrl-C that comes to a terminal outside of its editor was meant for what ran before.
func (p *Program) prompted(ctx context.Context, read func() (string, error)) (text string, signalled int, err error) {
	i := p.interruptible(ctx)
	defer i.stop()
	until := i.soft
	if _, tty := terminal.Descriptor(p.In); tty {
		until = i.leave
	}
	var typed string
	err = await(until, func() (err error) {
		typed, err = read()
		return err
	})
	if problem.Is(err, problem.Canceled) {
		return "", i.exitCode(), ctx.Err()
	}
	return typed, 0, err
}
