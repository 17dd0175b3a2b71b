package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/pydeps"
	"cove/internal/pydeps/layer"
	"cove/internal/pydeps/scan"
	"cove/internal/pyenv"
)

// Packages makes packages importable; *pydeps.Installer is one.
type Packages interface {
	// Mount is the host folder of the layers, which is shown in the sandbox from its start.
	Mount() string
	// Provided says whether a root module is there for a session that was given state.
	Provided(state pydeps.State) func(root string) bool
	// Provide installs what a report asks for.
	Provide(ctx context.Context, r pydeps.Request, told func(pydeps.Progress)) (pydeps.Provision, error)
	// Module installs what provides one module that running code imports.
	Module(ctx context.Context, module string, loaded []string, s pydeps.State, told func(pydeps.Progress)) (pydeps.Provision, error)
}

// restartLine is the first line of a cell that wants a new interpreter.
const restartLine = "%restart"

type yielder = func(kernel.Event, error) bool

// Installed is what Options.Packages has given the session until now.
func (s *Session) Installed() pydeps.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installed
}

// begin makes sure that there is a kernel for req, a new one if it wants that.
func (s *Session) begin(ctx context.Context, req *kernel.Request) (*kernel.Kernel, error) {
	if first, rest, _ := strings.Cut(req.Code, "\n"); req.Mode != kernel.Script && strings.TrimSpace(first) == restartLine {
		req.Restart, req.Code = true, rest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Restart {
		s.endKernel()
	}
	err := s.ready(ctx)
	return s.kernel, err
}

func (s *Session) endKernel() {
	if s.kernel != nil {
		s.kernel.Close()
		s.kernel = nil
	}
}

// supply makes importable what the code is going to import. It returns the kernel to run it in, or nil when there is nothing to run any more:
// the consumer has left, or was told why.
func (s *Session) supply(ctx context.Context, k *kernel.Kernel, req *kernel.Request, yield yielder) *kernel.Kernel {
	defer s.mark()
	if s.opts.Packages == nil || s.opts.Mold {
		return k
	}
	req.Missing = s.missing
	if !scan.Suspect(req.Code, s.opts.Packages.Provided(s.Installed())) {
		return k
	}
	began := time.Now()
	provision, err := s.provide(ctx, k, *req, yield)
	switch {
	case errors.Is(err, errLeft):
		return nil
	case ctx.Err() != nil:
		return k // which says so
	case err == nil:
		return s.apply(ctx, k, provision, began, yield)
	}
	if !yield(kernel.Install{Failure: problem.Of(err)}, nil) {
		return nil
	}
	return k
}

// mark notes that something of the user's is about to run.
func (s *Session) mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pristine = false
}

// errLeft means that the consumer of an execution's events has left.
var errLeft = problem.New(problem.Canceled, "canceled", "nobody listens any more")

// provide finds out what the code needs and has it installed.
func (s *Session) provide(ctx context.Context, k *kernel.Kernel, req kernel.Request, yield yielder) (pydeps.Provision, error) {
	wanted, err := s.survey(ctx, k, req)
	if err != nil {
		return pydeps.Provision{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		provision pydeps.Provision
		err       error
	}
	told, over := make(chan pydeps.Progress, 64), make(chan outcome, 1)
	go func() {
		p, err := s.opts.Packages.Provide(ctx, wanted, func(p pydeps.Progress) {
			select {
			case told <- p:
			default: // whoever shows it is behind; there will be more
			}
		})
		over <- outcome{p, err}
	}()
	for {
		select {
		case p := <-told:
			if !yield(kernel.Install{Progress: &p}, nil) {
				cancel()
				<-over
				return pydeps.Provision{}, errLeft
			}
		case o := <-over:
			return o.provision, o.err
		}
	}
}

// survey parses the code and asks the kernel what of it is missing.
func (s *Session) survey(ctx context.Context, k *kernel.Kernel, req kernel.Request) (pydeps.Request, error) {
	scanner, err := s.parser(ctx)
	if err != nil {
		return pydeps.Request{}, err
	}
	report, err := scanner.Scan(ctx, scan.Code{Text: req.Code, Script: req.Mode == kernel.Script})
	if err != nil {
		return pydeps.Request{}, err
	}
	if report.Invalid {
		report.Imports = nil // it will not run; where the scanner is mistaken, the kernel asks for what it imports
	}
	r := pydeps.Request{Report: report}
	r.Missing, r.Loaded, err = k.Survey(ctx, roots(report))
	if err != nil {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.State, r.Pristine = s.installed, s.pristine
	r.Missing = slices.DeleteFunc(r.Missing, func(module string) bool {
		return s.isOwn(module) || strings.Contains(req.Code, module+".py") // a file that the code is about to write
	})
	return r, nil
}

// isOwn says whether the workspace has a module or a folder of that name anywhere: the code may be about to add its place to sys.path. The kernel asks
// when it does not.
func (s *Session) isOwn(module string) bool {
	for path := range s.known {
		if strings.HasPrefix(path, module+"/") || strings.Contains(path, "/"+module+"/") {
			return true
		}
		if file := path[strings.LastIndexByte(path, '/')+1:]; strings.HasPrefix(file, module+".") && (strings.HasSuffix(file, ".py") || strings.HasSuffix(file, ".so")) {
			return true
		}
	}
	return false
}

// roots lists the root modules of a report.
func roots(report scan.Report) []string {
	seen := map[string]bool{}
	var out []string
	for _, i := range report.Imports {
		for _, module := range append([]string{i.Module}, i.Unless...) {
			if root, _, _ := strings.Cut(module, "."); root != "" && !seen[root] {
				seen[root] = true
				out = append(out, root)
			}
		}
	}
	return out
}

// parser returns the scanner, starting one where there is none.
func (s *Session) parser(ctx context.Context) (*scan.Scanner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scanner != nil && ended(s.scanner.Ended()) {
		s.dropScanner()
	}
	if s.scanner == nil {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		var err error
		if s.scanner, err = scan.Start(ctx, s.link, s.box.Layout().Path(pyenv.MountPoint)+"/bin/python"); err != nil {
			s.scanner = nil
			return nil, s.explain(err)
		}
	}
	return s.scanner, nil
}

func (s *Session) dropScanner() {
	if s.scanner != nil {
		s.scanner.Close()
		s.scanner = nil
	}
}

// apply gives the kernel what was installed, and says so. It returns the kernel to go on with, or nil.
func (s *Session) apply(ctx context.Context, k *kernel.Kernel, p pydeps.Provision, began time.Time, yield yielder) *kernel.Kernel {
	told := kernel.Install{Provision: p}
	if p.Restart != "" {
		s.mu.Lock()
		pristine := s.pristine
		s.mu.Unlock()
		if !pristine {
			if yield(told, nil) {
				yield(kernel.Done{Outcome: kernel.OutcomeRestart, ExitCode: 1, Wall: time.Since(began), Message: p.Restart + "; nothing was run"}, nil)
			}
			return nil
		}
		told.Restarted = true
	}
	k, err := s.equipWith(ctx, k, p)
	if err != nil {
		yield(nil, s.explain(err))
		return nil
	}
	if !p.Silent() && !yield(told, nil) {
		return nil
	}
	return k
}

// equipWith adds a provision's layer to the kernel, which is a new one when the provision needs that.
func (s *Session) equipWith(ctx context.Context, k *kernel.Kernel, p pydeps.Provision) (*kernel.Kernel, error) {
	s.mu.Lock()
	s.installed = p.State
	paths := s.paths(added(p))
	if p.Restart != "" {
		s.endKernel()
		err := s.ready(ctx)
		k = s.kernel
		s.mu.Unlock()
		return k, err
	}
	// Without the lock: the kernel may have to end another execution first, which takes it.
	s.mu.Unlock()
	if p.Layer == "" {
		return k, nil
	}
	return k, k.AddPaths(ctx, paths)
}

// added is the state of a session that has a provision's layer alone.
func added(p pydeps.Provision) pydeps.State {
	one := pydeps.State{Layers: []string{p.Layer}}
	if p.First {
		one.First = one.Layers
	}
	return one
}

// equip gives a kernel that was taken over what the session has been given. What goes before the environment's own packages can only
// be given to a new one.
func (s *Session) equip(ctx context.Context) error {
	if len(s.installed.Layers) == 0 {
		return nil
	}
	if s.pristine && len(s.installed.First) > 0 {
		s.endKernel()
		return nil
	}
	return s.kernel.AddPaths(ctx, s.paths(s.installed))
}

// paths says where the layers of a state are in the sandbox.
func (s *Session) paths(state pydeps.State) kernel.Paths {
	if s.box == nil || len(state.Layers) == 0 {
		return kernel.Paths{}
	}
	first, last := state.Paths(s.box.Layout().Path(layer.MountPoint))
	return kernel.Paths{First: first, Last: last}
}

// missing installs what running code turns out to import.
func (s *Session) missing(ctx context.Context, module string, loaded []string, tell func(kernel.Event)) (kernel.Paths, error) {
	p, err := s.opts.Packages.Module(ctx, module, loaded, s.Installed(), func(p pydeps.Progress) { tell(kernel.Install{Progress: &p}) })
	if err != nil {
		if ctx.Err() == nil {
			tell(kernel.Install{Failure: problem.Of(err)})
		}
		return kernel.Paths{}, err
	}
	if !p.Silent() {
		tell(kernel.Install{Provision: p})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Layer == "" || p.Restart != "" {
		return kernel.Paths{}, nil
	}
	s.installed = p.State
	return s.paths(added(p)), nil
}
