package session

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// MaxKernels is how many kernels a session may have. Each is a Python of its own in the memory that they share.
const MaxKernels = 16

// everything is the whole of Live.running.
const everything = math.MaxInt64

// slot is what the session knows of one of its kernels, whether or not the kernel's interpreter runs.
type slot struct {
	name     string
	changing chan struct{} // holds a token while no goroutine starts or ends the interpreter; acquired before Live.mu

	// Guarded by Live.mu.
	kernel   *kernel.Kernel // nil: it is started when it is needed
	pid      int            // of the interpreter, also after it was released; 0: it has none
	pristine bool           // it has run no code of the user's
	parked   string         // the execution that waits in the interpreter, which is not attached to then; "": none does
	layers   []string       // those of Live.installed that the interpreter can import from
}

// run is what one execution runs in. When the execution ends, the session may have replaced the sandbox.
type run struct {
	slot    *slot
	kernel  *kernel.Kernel
	link    *guestlink.Link
	sandbox sandbox.Sandbox
	// shortages is what the sandbox had counted before the execution
	shortages int64
}

func nameOf(k string) string {
	if k == "" {
		return kernel.Main
	}
	return k
}

// slot returns the slot of a kernel, a new one where there is none. The caller holds mu.
func (s *Live) slot(name string) *slot {
	if s.slots[name] == nil {
		s.slots[name] = &slot{name: name, changing: make(chan struct{}, 1)}
		s.slots[name].changing <- struct{}{}
	}
	return s.slots[name]
}

func (s *Live) find(name string) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.slots[nameOf(name)]; k != nil {
		return k, nil
	}
	return nil, problem.New(problem.KernelNotFound, fmt.Sprintf("the session has no kernel %.80q", name)).
		WithHint("start it first, or use the kernel " + kernel.Main)
}

// share keeps the session from being saved or left until done is called.
func (s *Live) share(ctx context.Context) (done func(), err error) {
	if err := s.running.Acquire(ctx, 1); err != nil {
		return nil, problem.New(problem.GivenUp, "the request was canceled before it began").WithCause(err)
	}
	return func() { s.running.Release(1) }, nil
}

// KernelNames lists the session's kernels, the first of them kernel.Main.
func (s *Live) KernelNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.slots))
	names = slices.DeleteFunc(names, func(name string) bool { return name == kernel.Main })
	return append([]string{kernel.Main}, names...)
}

// KernelPIDs returns the process ids of the session's kernels by their names, 0 for one whose interpreter is to be started. They are
// the same in a sandbox that is restored from what Save wrote, and are for Options.Kernels.
func (s *Live) KernelPIDs() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := map[string]int{}
	for name, k := range s.slots {
		pids[name] = k.pid
		if k.kernel != nil && ended(k.kernel.Dead()) {
			pids[name] = 0
		}
	}
	return pids
}

// StartKernel adds a kernel to the session. It shares the sandbox, the files and the installed packages with the others, and runs code beside them.
func (s *Live) StartKernel(ctx context.Context, name string) error {
	done, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer done()
	k, err := s.add(name)
	if err != nil {
		return err
	}
	if _, err = s.occupy(ctx, k); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.slots[name] == k && k.kernel == nil {
			delete(s.slots, name)
		}
	}
	return err
}

func (s *Live) add(name string) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`).MatchString(name):
		return nil, problem.New(problem.KernelName, fmt.Sprintf("%.80q cannot be the name of a kernel", name)).
			WithHint("a name has 1 to 63 letters, digits, dots, dashes and underscores, and begins with a letter or a digit")
	case s.slots[name] != nil || name == kernel.Main:
		return nil, problem.New(problem.KernelExists, "the session has a kernel "+name+" already")
	case len(s.slots) >= MaxKernels:
		return nil, problem.New(problem.TooManyKernels, fmt.Sprintf("a session has at most %d kernels", MaxKernels)).
			WithHint("stop one that is not needed any more, or use another session")
	}
	s.touched.Store(true)
	return s.slot(name), nil
}

// RestartKernel begins a new interpreter in a kernel's place. Code that runs there is interrupted.
func (s *Live) RestartKernel(ctx context.Context, name string) error {
	done, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer done()
	k, err := s.find(name)
	if err == nil {
		err = s.vacate(ctx, k, false)
	}
	if err == nil {
		_, err = s.occupy(ctx, k)
	}
	return err
}

// StopKernel ends a kernel, which is not kernel.Main, and whatever runs in it.
func (s *Live) StopKernel(ctx context.Context, name string) error {
	if nameOf(name) == kernel.Main {
		return problem.New(problem.KernelNeeded, "the kernel "+kernel.Main+" is always there").WithHint("restart it instead")
	}
	done, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer done()
	k, err := s.find(name)
	if err == nil {
		err = s.vacate(ctx, k, true)
	}
	return err
}

func (k *slot) take(ctx context.Context) error {
	select {
	case <-k.changing:
		return nil
	case <-ctx.Done():
		return problem.New(problem.GivenUp, "the request was canceled before it began").WithCause(ctx.Err())
	}
}

func (k *slot) give() { k.changing <- struct{}{} }

// vacate ends a kernel's interpreter; with forGood it removes the kernel too.
func (s *Live) vacate(ctx context.Context, k *slot, forGood bool) error {
	if err := k.take(ctx); err != nil {
		return err
	}
	defer k.give()
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.parked != "" {
		s.kill(ctx, k.pid)
	}
	k.end()
	if forGood && s.slots[k.name] == k {
		delete(s.slots, k.name)
	}
	s.touched.Store(true)
	return nil
}

// end ends the interpreter. The caller holds Live.mu.
func (k *slot) end() {
	if k.kernel != nil {
		k.kernel.Close()
	}
	k.kernel, k.pid, k.layers, k.parked = nil, 0, nil, ""
}

// kill ends an interpreter that is not attached to. The caller holds mu.
func (s *Live) kill(ctx context.Context, pid int) {
	if p, err := s.link.AttachKernel(ctx, pid); err == nil {
		p.Close()
	}
}

// hold records the interpreter that a slot has from now on. The caller holds mu.
func (s *Live) hold(k *slot, i *kernel.Kernel, pristine bool) {
	k.kernel, k.pid, k.pristine, k.layers = i, i.PID(), pristine, slices.Clone(s.installed.Layers)
}

// occupy makes sure that a kernel has an interpreter. When the sandbox that was there ends while the interpreter starts, for example because memory ran
// out in it just before, the interpreter starts in a new one.
func (s *Live) occupy(ctx context.Context, k *slot) (*run, error) {
	if err := k.take(ctx); err != nil {
		return nil, err
	}
	defer k.give()
	s.mu.Lock()
	former := s.sandbox
	s.mu.Unlock()
	for {
		t, config, err := s.look(ctx, k)
		if err != nil {
			return nil, err
		}
		if t.kernel != nil {
			return t, nil
		}
		// Without mu: starting takes a while, and executions of other kernels must be able to end meanwhile.
		if t.kernel, err = kernel.Start(ctx, t.link, config); err != nil {
			if t.sandbox == former && ctx.Err() == nil && t.died(err) {
				continue
			}
			return nil, explain(t.sandbox, err)
		}
		if s.seated(t, config) {
			return t, nil
		}
		t.kernel.Close() // meanwhile the sandbox was replaced, or packages were installed
	}
}

// look returns the sandbox and the interpreter to run code in. The run's kernel is nil where one has to be started, with the Config that is returned.
func (s *Live) look(ctx context.Context, k *slot) (*run, kernel.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.awake(ctx); err != nil {
		return nil, kernel.Config{}, err
	}
	if s.slots[k.name] != k {
		return nil, kernel.Config{}, problem.New(problem.KernelNotFound, "the kernel "+k.name+" was stopped")
	}
	if k.parked != "" {
		return nil, kernel.Config{}, errParked
	}
	if k.kernel != nil && (ended(k.kernel.Dead()) || k.pristine && s.lacksFirst(k)) {
		k.end()
	}
	return &run{slot: k, kernel: k.kernel, link: s.link, sandbox: s.sandbox}, s.kernelConfig(false), nil
}

// seated puts a new interpreter into its slot, and returns false when the session's sandbox, kernels or packages have changed since it was started.
func (s *Live) seated(t *run, config kernel.Config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.paths(s.installed)
	if s.closed || s.link != t.link || s.slots[t.slot.name] != t.slot ||
		!slices.Equal(now.First, config.Paths.First) || !slices.Equal(now.Last, config.Paths.Last) {
		return false
	}
	s.hold(t.slot, t.kernel, true)
	return true
}

// lacksFirst says whether packages were installed that only a new interpreter can be given. The caller holds mu.
func (s *Live) lacksFirst(k *slot) bool {
	return slices.ContainsFunc(s.installed.First, func(layer string) bool { return !slices.Contains(k.layers, layer) })
}

// catchUp gives an interpreter the packages that were installed for other kernels since it last ran code. It waits until the interpreter is idle.
func (s *Live) catchUp(ctx context.Context, t *run) error {
	s.mu.Lock()
	var fresh installation.State
	for _, layer := range s.installed.Layers {
		if !slices.Contains(t.slot.layers, layer) && !slices.Contains(s.installed.First, layer) {
			fresh.Layers = append(fresh.Layers, layer)
		}
	}
	paths := s.paths(fresh)
	s.mu.Unlock()
	if len(fresh.Layers) == 0 {
		return nil
	}
	if err := t.kernel.AddPaths(ctx, paths); err != nil {
		return explain(t.sandbox, err)
	}
	s.given(t, fresh.Layers...)
	return nil
}

// given records that an interpreter can import from layers now.
func (s *Live) given(t *run, layers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.slot.kernel == t.kernel {
		t.slot.layers = append(t.slot.layers, layers...)
	}
}

// forget drops all interpreters, without ending one that was detached. The caller holds mu.
func (s *Live) forget() {
	for _, k := range s.slots {
		if k.kernel != nil {
			k.kernel.Close()
			k.kernel = nil
		}
	}
}

// detach releases all interpreters, for the session that uses the sandbox next. After an error it goes on with the others. The caller holds mu and, unless ctx
// has ended, all of running.
func (s *Live) detach(ctx context.Context) error {
	var failed error
	for _, k := range s.slots {
		if k.kernel == nil {
			continue
		}
		dead := ended(k.kernel.Dead())
		err := k.kernel.Detach(ctx)
		switch {
		case err == nil:
		case dead || problem.Has(err, problem.KernelDied):
			k.pid = 0 // the next session starts another
		case failed == nil:
			failed = err
		}
	}
	return failed
}

// attach takes over the interpreters that run in the sandbox: those that have a name, and, where kernel.Main has none, one without a name as kernel.Main. It
// ends the others: nothing refers to them any more. The caller holds mu.
func (s *Live) attach(ctx context.Context, names map[string]int, reseed bool) error {
	living := s.link.Kernels()
	for _, k := range s.slots {
		k.pid = 0
	}
	for name, pid := range names {
		k := s.slot(name)
		if i := slices.Index(living, pid); i >= 0 {
			k.pid, living = pid, slices.Delete(slices.Clone(living), i, i+1)
			if id := s.opts.Parked[name]; id != "" {
				k.parked = id
			}
		}
	}
	s.opts.Parked = nil // another sandbox has none of them
	if main := s.slot(kernel.Main); main.pid == 0 && len(living) > 0 {
		main.pid, living = living[0], living[1:]
	}
	for name, k := range s.slots {
		if k.pid == 0 {
			k.parked = ""
		}
		if k.pid == 0 || k.parked != "" {
			continue
		}
		i, err := kernel.Attach(ctx, s.link, s.kernelConfig(reseed), k.pid)
		if lost := s.opts.Running == nil && problem.Has(err, problem.KernelLost); err != nil && !lost && (name == kernel.Main || ended(s.link.Done()) || ctx.Err() != nil) {
			return explain(s.sandbox, err)
		}
		if err != nil {
			k.pid = 0 // it is started again when it is needed
			continue
		}
		// Kernels with names are from the checkpoint of a session, whose user has run code in them.
		s.hold(k, i, reseed && len(names) == 0)
		if err := s.equip(ctx, k); err != nil {
			return explain(s.sandbox, err)
		}
	}
	for _, pid := range living {
		s.kill(ctx, pid)
	}
	return nil
}

// equip gives an interpreter that was taken over the packages that are installed for the session. Packages that go before the environment's own can only be
// given to a new interpreter.
func (s *Live) equip(ctx context.Context, k *slot) error {
	if len(s.installed.Layers) == 0 {
		return nil
	}
	if k.pristine && len(s.installed.First) > 0 {
		k.end()
		return nil
	}
	return k.kernel.AddPaths(ctx, s.paths(s.installed))
}
