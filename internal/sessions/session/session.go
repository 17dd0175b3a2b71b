// Package session is a user's claim on a sandbox and its kernel: it starts
// them, puts files in, runs code, notices what changed, and goes on with a fresh kernel or
// sandbox when code has killed the old one.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// The longest times that it may take until a connection ends after one of its channels broke, until a sandbox ends after its connection, and to find the files
// that an execution has changed, which delays every other use of the session.
const (
	breakGrace  = time.Second
	deathGrace  = 10 * time.Second
	lookTimeout = 30 * time.Second
)

// addressSpace is what the interpreter may map beyond the memory limit. An absurd allocation then fails as a MemoryError,
// which keeps the kernel; libraries reserve far more than they use, hence the generous margin.
const addressSpace = 8 << 30

func awaitEnd(done <-chan struct{}, atMost time.Duration) {
	select {
	case <-done:
	case <-time.After(atMost):
	}
}

// Live is a session in memory: its sandbox, its kernels and its workspace. It is safe for concurrent use; executions run one at a time in each of its kernels.
type Live struct {
	opts Options
	// running is acquired in part by executions and by what starts and ends interpreters, and as a whole by what releases the sandbox.
	running *semaphore.Weighted
	// installing holds a token while no installation runs: each builds on the result of the one before.
	installing chan struct{}
	// previewing has room for one who looks at a file: each takes memory of the sandbox.
	previewing chan struct{}

	mu      sync.Mutex // guards what follows; held while a sandbox starts, not while code runs
	sandbox sandbox.Sandbox
	link    *guestlink.Link
	slots   map[string]*slot  // the kernels by name
	inputs  map[string]string // workspace path -> host file, put in again after a sandbox was lost
	known   map[string]string // workspace path -> stamp, as of the last look
	writing map[string]int    // workspace path -> how many write it for the host right now
	touched atomic.Bool       // see Touched
	refill  func(ctx context.Context, t Refiller) error
	closed  bool
	// endReported: an execution has reported the end of the present sandbox. endUnreported: the present sandbox replaces one whose end no execution has reported.
	endReported   bool
	endUnreported bool

	adopted     bool                    // the sandbox was Options.Running
	connections atomic.Int32            // to ports, that are open
	attached    atomic.Int32            // followers of processes and writers to them
	outward     atomic.Pointer[outward] // the network, or nil
	stopNetwork func()                  // nil while no link serves it
	// processes counts those that run, as far as the present link tells; nil without a link. It is read without mu.
	processes atomic.Pointer[atomic.Int32]
	meter     meter

	installed installation.State // what Packages has installed
	scanner   *scan.Scanner      // nil until code is suspected to need something
}

// Open starts a session's sandbox and its kernel.
func Open(ctx context.Context, o Options) (*Live, error) {
	o.Limits = o.Limits.OrDefault()
	s := &Live{
		opts: o, running: semaphore.NewWeighted(everything), installing: make(chan struct{}, 1), previewing: make(chan struct{}, 1), slots: map[string]*slot{},
		inputs: map[string]string{}, known: map[string]string{}, writing: map[string]int{}, installed: o.Installed,
	}
	s.installing <- struct{}{}
	s.slot(kernel.Main)
	if _, err := s.main(ctx); err != nil && !errors.Is(err, errParked) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, errors.Join(err, s.drop())
	}
	return s, nil
}

// awake makes sure that the session has a sandbox that runs. The caller holds mu.
func (s *Live) awake(ctx context.Context) error {
	if s.closed {
		return problem.New(problem.SessionClosed, "the session is closed")
	}
	switch {
	case s.sandbox == nil:
	case s.adopted && !ended(s.sandbox.Done()):
		if ended(s.link.Done()) {
			return s.rejoin(ctx)
		}
	case ended(s.sandbox.Done()) || ended(s.link.Done()):
		s.adopted, s.endUnreported = false, s.endUnreported || !s.endReported
		if err := s.drop(); err != nil {
			return err
		}
	}
	if s.sandbox == nil {
		s.endReported = false
		return s.startSandbox(ctx)
	}
	return nil
}

// takeUnreported returns true once after the session has gone on in another sandbox and no execution has reported that.
func (s *Live) takeUnreported() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.endUnreported
	s.endUnreported = false
	return was
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// startSandbox starts a sandbox, from the checkpoint if there is one, with the inputs in its workspace.
func (s *Live) startSandbox(ctx context.Context) error {
	if s.opts.Running != nil {
		return s.adopt(ctx)
	}
	start := s.opts.Engine.Start
	if s.opts.Checkpoint != (sandbox.Checkpoint{}) {
		start = s.restore
	}
	sb, err := start(ctx, s.spec())
	if err != nil {
		return err
	}
	s.sandbox = sb
	if s.link, err = guestlink.Dial(ctx, sb, s.about()); err != nil {
		return errors.Join(explain(sb, err), s.drop())
	}
	s.expectProcesses()
	if err := s.beginNetwork(ctx); err != nil {
		return errors.Join(err, s.drop())
	}
	clear(s.known)
	if s.opts.Checkpoint != (sandbox.Checkpoint{}) {
		if err := s.takeOver(ctx, s.opts.Kernels, s.opts.Reseed); err != nil {
			return errors.Join(err, s.drop())
		}
	}
	for path, host := range s.inputs {
		err := opened(host, func(f *os.File, mode fs.FileMode) error {
			stamp, err := s.link.WriteFile(ctx, path, f, mode)
			s.known[path] = stamp
			return explain(sb, err)
		})
		if err != nil {
			return err
		}
	}
	if s.refill == nil {
		return nil
	}
	if err := s.refill(ctx, direct{s.link}); err != nil {
		return explain(sb, err)
	}
	_, err = s.changes(ctx)
	return err
}

// about says what the guest is to know of the session.
func (s *Live) about() guestlink.Session {
	return guestlink.Session{Processors: int(math.Ceil(s.opts.Limits.CPUs))}
}

func (s *Live) spec() sandbox.Spec {
	spec := s.opts.SandboxSpec()
	spec.ID, spec.Checkpoint, spec.Shown = sandbox.NewID("sbx"), s.opts.Checkpoint, s.installed.Layers
	return spec
}

// kernelConfig says how to start a kernel, or how to take over one that was saved.
func (s *Live) kernelConfig(reseed bool) kernel.Config {
	layout := s.sandbox.Layout()
	env := s.kernelEnvironment(layout)
	c := kernel.Config{Python: s.opts.Env.Interpreter(layout), Memory: s.opts.Limits.Memory, Reseed: reseed, Paths: s.paths(s.installed)}
	if !s.opts.Mold {
		c.AddressSpace = s.opts.Limits.Memory + addressSpace
	}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, k+"="+env[k])
	}
	return c
}

// explain replaces an error of the connection to a sandbox by the reason why the sandbox has ended, if it has.
func explain(sb sandbox.Sandbox, err error) error {
	if err != nil && sb != nil && ended(sb.Done()) && sb.Cause() != nil {
		return sb.Cause()
	}
	return err
}

// Execute runs code and yields its events: what the code emits, a File for each file that it created or changed, and a Done. A kernel or sandbox
// that an earlier execution lost is replaced first, and what the code imports and is not there is installed. When the sandbox was lost and no execution has
// reported that, a Rollback comes first; the caller, which knows what the next sandbox starts from, fills it in. Ending ctx interrupts the code and still
// yields the Done. A cell that begins with a line "%restart" has Request.Restart.
func (s *Live) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		over, err := s.share(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer over()
		t, last, err := s.attempt(ctx, &req, yield)
		if t != nil && err != nil && !errors.Is(err, errLeft) && ctx.Err() == nil && t.died(err) {
			t, last, err = s.attempt(ctx, &req, yield) // the code could not be sent: the sandbox had ended
		}
		s.ends(ctx, t, last, err, yield)
	}
}

// ends yields the end of what Execute or Resume yield, after the last event of the kernel's, or an error.
func (s *Live) ends(ctx context.Context, t *run, last kernel.Event, err error, yield yielder) {
	switch e := last.(type) {
	case kernel.Done:
		s.conclude(context.WithoutCancel(ctx), t, e, yield)
		return
	case kernel.Parked:
		s.park(context.WithoutCancel(ctx), t, e, yield)
		return
	}
	switch {
	case errors.Is(err, errLeft):
	case t != nil:
		yield(nil, explain(t.sandbox, err))
	default:
		yield(nil, err)
	}
}

// attempt has the code run in the present sandbox, or in a new one. After an error none of the code has run.
func (s *Live) attempt(ctx context.Context, req *kernel.Request, yield yielder) (t *run, last kernel.Event, err error) {
	if t, err = s.begin(ctx, req); err != nil {
		return nil, nil, err
	}
	if s.takeUnreported() && !yield(kernel.Rollback{At: time.Now(), Reason: "its sandbox was lost"}, nil) {
		return t, nil, errLeft
	}
	if !s.supply(ctx, t, req, yield) {
		return t, nil, errLeft
	}
	last, err = s.runs(ctx, t, func(ctx context.Context) iter.Seq2[kernel.Event, error] { return t.kernel.Execute(ctx, *req) }, yield)
	return t, last, err
}

// died says whether err comes from the end of the sandbox. An err with a problem in it does not come from a broken connection.
func (t *run) died(err error) bool {
	if _, inWords := errors.AsType[*problem.Error](err); !inWords {
		t.awaitDeath()
	}
	return ended(t.sandbox.Done())
}

// awaitDeath waits, for some seconds at most, for the end of a sandbox that does not answer any more. A kernel's channel breaks a moment before the connection counts as ended, and that a moment
// before the sandbox does.
func (t *run) awaitDeath() {
	awaitEnd(t.link.Done(), breakGrace)
	if ended(t.link.Done()) {
		awaitEnd(t.sandbox.Done(), deathGrace)
	}
}

// runs has the kernel run code, yields the events, and returns the last: a Done, or a Parked.
func (s *Live) runs(ctx context.Context, t *run, code func(context.Context) iter.Seq2[kernel.Event, error], yield yielder) (last kernel.Event, err error) {
	ctx, over := telemetry.Step(ctx, telemetry.StageKernel)
	defer func() { over(err) }()
	t.shortages = shortagesIn(t.sandbox)
	for ev, err := range code(ctx) {
		if err != nil {
			return nil, err
		}
		if err := memoryIntact(t.sandbox); err != nil {
			_ = t.sandbox.Stop(ctx)
			return kernel.Done{Outcome: kernel.OutcomeSandboxDied, Lost: kernel.LostSession, Message: problem.Of(err).Message}, nil
		}
		switch ev.(type) {
		case kernel.Done, kernel.Parked:
			return ev, nil
		}
		if !yield(ev, nil) {
			return nil, errLeft
		}
	}
	return nil, errLeft
}

// conclude reports changed files and completes a Done with what the host knows.
func (s *Live) conclude(ctx context.Context, t *run, done kernel.Done, yield func(kernel.Event, error) bool) {
	done, files := s.settle(ctx, t, done)
	// Without the lock: the consumer of an event may call the session.
	for _, f := range files {
		if !yield(f, nil) {
			return
		}
	}
	yield(done, nil)
}

// settle finds out what an execution's end means for the session, and which files it has made or changed. When several executions run at the same time, a
// change counts for the one that ends first: which of them made it cannot be seen.
func (s *Live) settle(ctx context.Context, t *run, done kernel.Done) (kernel.Done, []kernel.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if done.Outcome == kernel.OutcomeSandboxDied {
			done.Outcome, done.Message = kernel.OutcomeInterrupted, "the session was closed while the code ran"
		}
		done.Lost = kernel.LostSession
		return done, nil
	}
	if done.Outcome == kernel.OutcomeInterrupted && done.Lost == kernel.LostSession {
		done = s.interrupted(t, done)
	}
	if done.Outcome == kernel.OutcomeSandboxDied {
		done = explainDeath(ctx, t, done)
	}
	if done.Outcome == kernel.OutcomeDied && slices.Contains(memorySignals, done.Signal) && shortagesIn(t.sandbox) > t.shortages {
		done.Outcome, done.ExitCode, done.Signal = kernel.OutcomeMemory, 137, ""
		done.Message = "memory ran out while the code ran, and its kernel was ended; variables are lost, files are kept"
	}
	if done.Lost == kernel.LostSession {
		s.endReported = s.endReported || s.sandbox == t.sandbox
		return done, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	files, err := s.changes(ctx)
	if err != nil && done.Message == "" {
		done.Message = "the workspace could not be listed: " + problem.Of(err).Message
	}
	return done, files
}

// memorySignals are those that end a process when memory runs out: the system kills it, or cannot give it a page.
var memorySignals = []string{"SIGKILL", "SIGSEGV", "SIGBUS"}

// shortagesIn returns how often a sandbox has run out of memory, as far as that is known.
func shortagesIn(sb sandbox.Sandbox) int64 {
	if c, ok := sb.(sandbox.MemoryReporter); ok {
		return c.Shortages()
	}
	return 0
}

// interrupted completes the Done of an execution whose kernel the session itself has ended or released.
func (s *Live) interrupted(t *run, done kernel.Done) kernel.Done {
	switch {
	case s.sandbox != t.sandbox:
		done.Outcome, done.Message = kernel.OutcomeSandboxDied, "the sandbox ended during the execution"
	case s.link != t.link:
		done.Lost, done.Message = kernel.LostNothing, "the connection to the sandbox broke while the code ran, which was interrupted"
	default:
		done.Lost, done.Message = kernel.LostKernel, "the kernel was ended while the code ran; variables are lost, files are kept"
	}
	return done
}

// explainDeath waits until the host knows why a sandbox does not answer any more, and completes the Done with that.
func explainDeath(ctx context.Context, t *run, done kernel.Done) kernel.Done {
	t.awaitDeath()
	if !ended(t.sandbox.Done()) { // one that hangs has no cause of its own
		if c, ok := t.sandbox.(sandbox.MemoryReporter); ok && (c.WaitsForMemory() || c.Shortages() > t.shortages) {
			done.Outcome, done.ExitCode, done.Message = kernel.OutcomeMemory, 137, "the sandbox waited for memory beyond its limit and was ended"
		}
		_ = t.sandbox.Stop(ctx)
	}
	if p := problem.Of(t.sandbox.Cause()); p != nil {
		done.Message = p.Message
		if problem.Has(p, problem.SessionOOM) {
			done.Outcome, done.ExitCode = kernel.OutcomeMemory, 137
		}
	}
	done.Message += "; variables and files are lost"
	return done
}

// IsComplete has a kernel say whether code is "complete", "incomplete" or "invalid".
func (s *Live) IsComplete(ctx context.Context, name, code string) (status string, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		status, err = k.IsComplete(ctx, code)
		return err
	})
	return status, err
}

// Complete returns a kernel's completions of code at cursor (in characters) and the span they replace.
func (s *Live) Complete(ctx context.Context, name, code string, cursor int) (matches []string, start, end int, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		matches, start, end, err = k.Complete(ctx, code, cursor)
		return err
	})
	return matches, start, end, err
}

// asked calls ask with the interpreter of a kernel.
func (s *Live) asked(ctx context.Context, name string, ask func(*kernel.Kernel) error) error {
	done, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer done()
	k, err := s.find(name)
	if err != nil {
		return err
	}
	t, err := s.occupy(ctx, k)
	if err != nil {
		return err
	}
	return explain(t.sandbox, ask(t.kernel))
}

// Python returns the interpreter's version and the distributions installed for it.
func (s *Live) Python() (version string, packages map[string]string) {
	return s.opts.Env.Version, s.opts.Env.Packages
}

// Close ends the session with everything that runs in it; an execution that runs ends as interrupted. It is safe to call twice.
func (s *Live) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.drop()
}

// drop forgets the kernels and ends the sandbox.
func (s *Live) drop() error {
	s.dropScanner()
	s.endNetwork()
	for _, k := range s.slots {
		k.end()
	}
	if s.link != nil {
		_ = s.link.Close()
		s.link = nil
		s.processes.Store(nil)
	}
	if s.sandbox == nil {
		return nil
	}
	sb := s.sandbox
	s.sandbox = nil
	s.meter.next(sb)
	if err := sb.Stop(context.Background()); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", sb.ID(), err)
	}
	return nil
}
