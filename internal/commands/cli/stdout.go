package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"cove/internal/commands/terminal"
	"cove/internal/core/problem"
)

// watchedOutput is standard output that notes the first failure to write to it, so that no command has to look at each of its writes.
type watchedOutput struct {
	to io.Writer

	mu     sync.Mutex
	failed error
}

// Write implements io.Writer.
func (w *watchedOutput) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.failed == nil {
			w.failed = err
		}
	}
	return n, err
}

// Underlying is the file that is written to, or nil.
func (w *watchedOutput) Underlying() *os.File { return terminal.OpenFile(w.to) }

// watchOutput has the failures to write to Out noted. What is written to a terminal is seen or not seen.
func (p *Program) watchOutput() *watchedOutput {
	w := &watchedOutput{to: p.Out}
	if _, tty := terminal.Descriptor(p.Out); !tty {
		p.Out = w
	}
	return w
}

// exitCode is the exit code of a command that itself ended with code, which stays where it is no success. What a command that knows of no failure could not write is reported here.
func (w *watchedOutput) exitCode(p *Program, code int) int {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	switch {
	case failed == nil, code != 0:
		return code
	case errors.Is(failed, syscall.EPIPE):
		return exitBrokenPipe
	}
	if at, ok := errors.AsType[*fs.PathError](failed); ok { // which says /dev/stdout, whatever that is
		failed = at.Err
	}
	p.report(problem.New(problem.OutputUnwritten, "not everything was written to standard output").WithCause(failed))
	return exitFailure
}

// unwatched is what w writes to.
func unwatched(w io.Writer) io.Writer {
	if o, ok := w.(*watchedOutput); ok {
		return o.to
	}
	return w
}
