// Package session is a user's claim on a sandbox and its kernel: it starts
// them, puts files in, runs code, notices what changed, and goes on with a fresh kernel or
// sandbox when code has killed the old one.
package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"cove/internal/kernel"
	"cove/internal/link"
	"cove/internal/problem"
	"cove/internal/pydeps"
	"cove/internal/pydeps/layer"
	"cove/internal/pydeps/scan"
	"cove/internal/pyenv"
	"cove/internal/sandbox"
)

// How long a connection may take to end after a channel of it broke, and a sandbox after its connection ended.
const (
	breakGrace = time.Second
	deathGrace = 10 * time.Second
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

// Options say what a session is made of.
type Options struct {
	Engine sandbox.Engine
	Env    *pyenv.Environment
	Limits sandbox.Limits

	// Image is a folder of checkpoint files that the sandbox starts from, made by Save in a session with the same Env
	// and, but for Memory and CPUs, the same Limits. "" starts an interpreter from nothing. The Engine must be a sandbox.Saver.
	Image string
	// Reseed is for images that several sessions start from: each gets random generators of its own. Without it they
	// go on where they were saved.
	Reseed bool
	// Running is a sandbox that runs already, with a kernel in it or none, and is taken over instead of starting one. Image says
	// what to start from when it is lost.
	Running sandbox.Sandbox
	// Packages makes what code imports importable; nil leaves code with what Env has.
	Packages Packages
	// Installed is what Packages gave the session that Image or Running is of, or what a new session is to begin with.
	Installed pydeps.State
	// Mold is for a session that is only there to be saved as the image of others: what depends on the memory limit is
	// left to them.
	Mold bool
}

// Session is safe for concurrent use; executions run one at a time.
type Session struct {
	opts Options

	mu     sync.Mutex // guards what follows; held while things start, not while code runs
	box    sandbox.Sandbox
	link   *link.Link
	kernel *kernel.Kernel
	inputs map[string]string // workspace path -> host file, put in again after a sandbox was lost
	known  map[string]string // workspace path -> stamp, as of the last look
	closed bool

	adopted bool // the sandbox was Options.Running

	installed pydeps.State  // what Packages has given
	pristine  bool          // the kernel has run nothing of the user's
	scanner   *scan.Scanner // nil until code is suspected to need something
}

// Open starts a session's sandbox and its kernel.
func Open(ctx context.Context, o Options) (*Session, error) {
	o.Limits = o.Limits.OrDefault()
	s := &Session{opts: o, inputs: map[string]string{}, known: map[string]string{}, installed: o.Installed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	return s, nil
}

// ready makes sure that a sandbox and a kernel are there.
func (s *Session) ready(ctx context.Context) error {
	if s.closed {
		return problem.New(problem.Invalid, "session_closed", "the session is closed")
	}
	switch {
	case s.box == nil:
	case s.adopted && !ended(s.box.Done()):
		if ended(s.link.Done()) {
			if err := s.rejoin(ctx); err != nil {
				return err
			}
		}
	case ended(s.box.Done()) || ended(s.link.Done()):
		s.adopted = false
		if err := s.drop(); err != nil {
			return err
		}
	}
	if s.box == nil {
		if err := s.startSandbox(ctx); err != nil {
			return err
		}
	}
	if s.kernel != nil && ended(s.kernel.Dead()) {
		s.kernel.Close()
		s.kernel = nil
	}
	if s.kernel == nil {
		k, err := kernel.Start(ctx, s.link, s.kernelConfig(false))
		if err != nil {
			return s.explain(err)
		}
		s.kernel, s.pristine = k, true
	}
	return nil
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// startSandbox starts a sandbox, from the image if there is one, with the inputs in its workspace.
func (s *Session) startSandbox(ctx context.Context) error {
	if s.opts.Running != nil {
		return s.adopt(ctx)
	}
	spec := sandbox.Spec{ID: sandbox.NewID("sbx"), Mounts: s.opts.mounts(), Limits: s.opts.Limits}
	start := s.opts.Engine.Start
	if s.opts.Image != "" {
		start = s.restore
	}
	box, err := start(ctx, spec)
	if err != nil {
		return err
	}
	s.box = box
	if s.link, err = link.Dial(ctx, box); err != nil {
		return errors.Join(s.explain(err), s.drop())
	}
	clear(s.known)
	if s.opts.Image != "" {
		if err := s.takeOver(ctx, s.opts.Reseed); err != nil {
			return errors.Join(err, s.drop())
		}
	}
	for path, host := range s.inputs {
		if err := s.put(ctx, path, host); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) mounts() []sandbox.Mount {
	m := []sandbox.Mount{{Source: o.Env.Dir, Target: pyenv.MountPoint}}
	if base := o.Env.Base; base != "" && base != "/usr" {
		// The environment's interpreter is a link into its base, which must be found at the same path.
		m = append(m, sandbox.Mount{Source: base, Target: base})
	}
	if o.Packages != nil {
		m = append(m, sandbox.Mount{Source: o.Packages.Mount(), Target: layer.MountPoint})
	}
	return m
}

// kernelConfig says how to start a kernel, or how to take over one that was saved.
func (s *Session) kernelConfig(reseed bool) kernel.Config {
	layout := s.box.Layout()
	root := layout.Path(pyenv.MountPoint)
	env := map[string]string{
		"PATH":     root + "/bin:/usr/local/bin:/usr/bin:/bin",
		"HOME":     layout.Workspace,
		"USER":     "user",
		"LANG":     "C.UTF-8",
		"TMPDIR":   layout.Tmp,
		"TERM":     "dumb",
		"NO_COLOR": "1",
		// Nothing but the user's own files belongs in the workspace.
		"PYTHONDONTWRITEBYTECODE": "1",
		"XDG_CACHE_HOME":          layout.Tmp + "/.cache",
		"MPLCONFIGDIR":            layout.Tmp + "/.matplotlib",
		"IPYTHONDIR":              layout.Tmp + "/.ipython",
		"MPLBACKEND":              "module://matplotlib_inline.backend_inline",
	}
	maps.Copy(env, s.opts.Env.Variables(root))
	c := kernel.Config{Python: root + "/bin/python", Memory: s.opts.Limits.Memory, Reseed: reseed, Paths: s.paths(s.installed)}
	if !s.opts.Mold {
		c.AddressSpace = s.opts.Limits.Memory + addressSpace
	}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, k+"="+env[k])
	}
	return c
}

// explain replaces an error of talking to a sandbox by the reason why the sandbox is gone.
func (s *Session) explain(err error) error {
	if err != nil && s.box != nil && ended(s.box.Done()) && s.box.Cause() != nil {
		return s.box.Cause()
	}
	return err
}

// Execute runs code and yields its events: what the code emits, a File for each file that it created or changed, and a Done. A kernel or sandbox
// that an earlier execution lost is replaced first, and what the code imports and is not there is installed. Ending ctx interrupts the code and still
// yields the Done. A cell that begins with a line "%restart" has Request.Restart.
func (s *Session) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		k, err := s.begin(ctx, &req)
		if err != nil {
			yield(nil, err)
			return
		}
		if k = s.supply(ctx, k, &req, yield); k == nil {
			return
		}
		for ev, err := range k.Execute(ctx, req) {
			done, isDone := ev.(kernel.Done)
			if err == nil && !isDone {
				if !yield(ev, nil) {
					return
				}
				continue
			}
			if err != nil {
				yield(nil, s.explain(err))
				return
			}
			s.conclude(context.WithoutCancel(ctx), done, yield)
			return
		}
	}
}

// conclude reports changed files and completes a Done with what the host knows.
func (s *Session) conclude(ctx context.Context, done kernel.Done, yield func(kernel.Event, error) bool) {
	done, files := s.settle(ctx, done)
	// Without the lock: whoever receives an event may ask the session something.
	for _, f := range files {
		if !yield(f, nil) {
			return
		}
	}
	yield(done, nil)
}

// settle finds out what an execution's end means for the session, and which files it has made or changed.
func (s *Session) settle(ctx context.Context, done kernel.Done) (kernel.Done, []kernel.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if done.Outcome == kernel.OutcomeSandboxDied {
			done.Outcome, done.Message = kernel.OutcomeInterrupted, "the session was closed while the code ran"
		}
		done.Lost = kernel.LostSession
		return done, nil
	}
	if done.Outcome == kernel.OutcomeSandboxDied {
		done = s.inquest(ctx, done)
	}
	if done.Lost == kernel.LostSession {
		return done, nil
	}
	files, err := s.changes(ctx)
	if err != nil && done.Message == "" {
		done.Message = "the workspace could not be listed: " + problem.Of(err).Message
	}
	return done, files
}

// inquest waits for the host's own findings about a sandbox that went silent.
func (s *Session) inquest(ctx context.Context, done kernel.Done) kernel.Done {
	// A sandbox that hangs has no cause of death; one whose connection breaks is about to have one. A kernel's channel breaks a
	// moment before the connection counts as ended.
	awaitEnd(s.link.Done(), breakGrace)
	if ended(s.link.Done()) {
		awaitEnd(s.box.Done(), deathGrace)
	}
	if !ended(s.box.Done()) {
		_ = s.box.Stop(ctx)
	}
	if p := problem.Of(s.box.Cause()); p != nil {
		done.Message = p.Message
		if p.Code == "session_oom" {
			done.Outcome, done.ExitCode = kernel.OutcomeMemory, 137
		}
	}
	done.Message += "; variables and files are lost"
	return done
}

// changes returns what was created or changed since the last look.
func (s *Session) changes(ctx context.Context) ([]kernel.File, error) {
	listed, _, err := s.link.ListFiles(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	var changed []kernel.File
	now := make(map[string]string, len(listed))
	for _, f := range listed {
		now[f.Path] = f.Stamp
		if before, ok := s.known[f.Path]; !ok || before != f.Stamp {
			changed = append(changed, kernel.File{Path: f.Path, Size: f.Size, Created: !ok})
		}
	}
	s.known = now
	return changed, nil
}

// Put writes r's bytes to a workspace path (relative, slash-separated). They are lost with the sandbox; see PutFile.
func (s *Session) Put(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.write(ctx, path, r, mode)
}

// PutFile copies a host file to a workspace path. When a sandbox is lost, it is copied again into the next one.
func (s *Session) PutFile(ctx context.Context, path, host string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.put(ctx, path, host); err != nil {
		return err
	}
	s.inputs[path] = host
	return nil
}

func (s *Session) put(ctx context.Context, path, host string) error {
	f, err := os.Open(host)
	if err != nil {
		return problem.New(problem.NotFound, "input_unreadable", "cannot read "+host).WithCause(err)
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return s.write(ctx, path, f, fi.Mode().Perm())
}

// write puts a file in that then counts as known, so that no execution is said to have made it.
func (s *Session) write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error {
	stamp, err := s.link.WriteFile(ctx, path, r, mode)
	if err != nil {
		return s.explain(err)
	}
	s.known[path] = stamp
	return nil
}

// Files lists the workspace.
func (s *Session) Files(ctx context.Context) ([]kernel.File, error) {
	l, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	listed, _, err := l.ListFiles(ctx)
	if err != nil {
		return nil, err
	}
	files := make([]kernel.File, 0, len(listed))
	for _, f := range listed {
		files = append(files, kernel.File{Path: f.Path, Size: f.Size})
	}
	return files, nil
}

func (s *Session) connection(ctx context.Context) (*link.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.link, nil
}

// ReadFile returns at most the first limit bytes of a workspace file.
func (s *Session) ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	l, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := l.ReadFile(ctx, path, limit, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Fetch copies a workspace file to w.
func (s *Session) Fetch(ctx context.Context, path string, w io.Writer) error {
	l, err := s.connection(ctx)
	if err != nil {
		return err
	}
	_, err = l.ReadFile(ctx, path, 0, w)
	return err
}

// IsComplete says whether code is "complete", "incomplete" or "invalid".
func (s *Session) IsComplete(ctx context.Context, code string) (string, error) {
	s.mu.Lock()
	err := s.ready(ctx)
	k := s.kernel
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	return k.IsComplete(ctx, code)
}

// Complete returns the completions of code at cursor (in characters) and the span they replace.
func (s *Session) Complete(ctx context.Context, code string, cursor int) (matches []string, start, end int, err error) {
	s.mu.Lock()
	err = s.ready(ctx)
	k := s.kernel
	s.mu.Unlock()
	if err != nil {
		return nil, 0, 0, err
	}
	return k.Complete(ctx, code, cursor)
}

// Python returns the interpreter's version and the distributions installed for it.
func (s *Session) Python() (version string, packages map[string]string) {
	return s.opts.Env.Version, s.opts.Env.Packages
}

// Close ends the session and all it runs; an execution under way ends as interrupted. It is safe to call twice.
func (s *Session) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.drop()
}

// drop lets go of the kernel and the sandbox.
func (s *Session) drop() error {
	s.dropScanner()
	if s.kernel != nil {
		s.kernel.Close()
		s.kernel = nil
	}
	if s.link != nil {
		_ = s.link.Close()
		s.link = nil
	}
	if s.box == nil {
		return nil
	}
	box := s.box
	s.box = nil
	if err := box.Stop(context.Background()); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", box.ID(), err)
	}
	return nil
}
