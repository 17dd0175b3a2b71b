package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// Packages makes packages importable; *deps.Installer is one.
type Packages interface {
	// Mount is the folder of the layers, which is shown in the sandbox from its start, at layer.MountPoint.
	Mount() sandbox.Mount
	// Provided says whether a session with that state can import a root module.
	Provided(state installation.State) func(root string) bool
	// Provide installs what a report asks for.
	Provide(ctx context.Context, r deps.Request, told func(installation.Progress)) (installation.Provision, error)
	// Install installs what a person asks for by name.
	Install(ctx context.Context, requirements []require.Requirement, s installation.State, told func(installation.Progress)) (installation.Provision, error)
	// Module installs what provides one module that running code imports.
	Module(ctx context.Context, module string, loaded []string, s installation.State, told func(installation.Progress)) (installation.Provision, error)
}

// restartLine is the first line of a cell that asks for a new interpreter.
const restartLine = "%restart"

type yielder = func(kernel.Event, error) bool

// Installed returns what Options.Packages has installed for the session until now.
func (s *Live) Installed() installation.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installed
}

// begin makes sure that there is an interpreter for req, a new one if req asks for that.
func (s *Live) begin(ctx context.Context, req *kernel.Request) (*run, error) {
	if first, rest, _ := strings.Cut(req.Code, "\n"); req.Mode != kernel.Script && strings.TrimSpace(first) == restartLine {
		req.Restart, req.Code = true, rest
	}
	k, err := s.find(req.Kernel)
	if err != nil {
		return nil, err
	}
	if req.Restart {
		if err := s.vacate(ctx, k, false); err != nil {
			return nil, err
		}
	}
	t, err := s.occupy(ctx, k)
	if err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx, t); err != nil && !problem.Has(err, problem.KernelDied) {
		return nil, err
	}
	return t, nil // if it has died, the execution says so
}

// supply installs what the code is going to import. It returns false when the code is not to run: the consumer has left, or has been told why the code cannot run.
func (s *Live) supply(ctx context.Context, t *run, req *kernel.Request, yield yielder) bool {
	defer s.mark(t.slot)
	if s.opts.Packages == nil || s.opts.Mold {
		return true
	}
	req.Missing = s.missingIn(t)
	if !scan.Suspect(req.Code, s.provided(*req)) {
		return true
	}
	began := time.Now()
	provision, err := s.provide(ctx, t, *req, yield)
	switch {
	case errors.Is(err, errLeft):
		return false
	case ctx.Err() != nil:
		return true // the kernel reports that ctx has ended
	case err == nil:
		return s.apply(ctx, t, provision, began, yield)
	}
	return yield(kernel.Install{Failure: problem.Of(err)}, nil)
}

// provided says whether code need not have a root module installed.
func (s *Live) provided(req kernel.Request) func(root string) bool {
	installed := s.opts.Packages.Provided(s.Installed())
	return func(root string) bool { return req.Tools.Provides(root) || installed(root) }
}

// mark records that code of the user's is about to run.
func (s *Live) mark(k *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.pristine = false
}

// install changes what is installed, one change at a time.
func (s *Live) install(ctx context.Context, change func(installation.State) (installation.Provision, error), t *run) (installation.Provision, error) {
	select {
	case <-s.installing:
		defer func() { s.installing <- struct{}{} }()
	case <-ctx.Done():
		return installation.Provision{}, ctx.Err()
	}
	p, err := installing(ctx, change, s.Installed())
	if err == nil {
		err = s.show(ctx, p.Layer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p.State.Looked) > len(s.installed.Looked) { // also by an installation that failed
		s.installed.Looked = p.State.Looked
	}
	if err != nil {
		return p, err
	}
	if p.Restart == "" || t == nil || t.slot.pristine {
		s.installed = p.State
	}
	return p, nil
}

// show has a sandbox with a root see a new layer. Others see all of which they know the name.
func (s *Live) show(ctx context.Context, layer string) error {
	if layer == "" || s.opts.Limits.System == 0 {
		return nil
	}
	s.mu.Lock()
	sb := s.sandbox
	s.mu.Unlock()
	if sb, ok := sb.(sandbox.Shower); ok {
		return sb.Show(ctx, layer)
	}
	return nil // the next sandbox will see it from its start
}

// installing makes one change and reports its outcome to the metrics and the trace.
func installing(ctx context.Context, change func(installation.State) (installation.Provision, error), have installation.State) (installation.Provision, error) {
	ctx, over := telemetry.Step(ctx, telemetry.StageInstall)
	p, err := change(have)
	defer func() { over(err) }()
	switch {
	case err != nil:
		telemetry.Count(ctx, telemetry.Installs, 1, problem.Of(err).Code)
		return p, err
	case p.Layer == "":
		return p, nil // there was nothing to install
	case p.Cached:
		telemetry.Count(ctx, telemetry.Installs, 1, "cached")
	default:
		telemetry.Count(ctx, telemetry.Installs, 1, "ok")
	}
	telemetry.Note(ctx, slog.Int("packages", len(p.Installed)), slog.Bool("cached", p.Cached))
	return p, nil
}

// errLeft means that the consumer of an execution's events has left.
var errLeft = problem.New(problem.GivenUp, "the consumer of the events has left")

// provide finds out which packages the code needs and has them installed.
func (s *Live) provide(ctx context.Context, t *run, req kernel.Request, yield yielder) (installation.Provision, error) {
	wanted, err := s.survey(ctx, t, req)
	if err != nil {
		return installation.Provision{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		provision installation.Provision
		err       error
	}
	told, over := make(chan installation.Progress, 64), make(chan outcome, 1)
	go func() {
		p, err := s.install(ctx, func(have installation.State) (installation.Provision, error) {
			wanted.State = have
			return s.opts.Packages.Provide(ctx, wanted, func(p installation.Progress) {
				select {
				case told <- p:
				default: // the consumer has not taken the last one yet; a later one will do
				}
			})
		}, t)
		over <- outcome{p, err}
	}()
	for {
		select {
		case p := <-told:
			if !yield(kernel.Install{Progress: &p}, nil) {
				cancel()
				<-over
				return installation.Provision{}, errLeft
			}
		case o := <-over:
			return o.provision, o.err
		}
	}
}

// survey finds out what the code imports, and asks the kernel which of that is missing.
func (s *Live) survey(ctx context.Context, t *run, req kernel.Request) (r deps.Request, err error) {
	ctx, over := telemetry.Step(ctx, telemetry.StageScan)
	defer func() { over(err) }()
	report, plain := scan.Plain(req.Code, s.provided(req))
	var said kernel.Modules
	if plain {
		if said, err = t.kernel.Survey(ctx, roots(report), req.Code); err != nil {
			return r, err
		}
	}
	if !said.Valid {
		if report, err = s.scan(ctx, req); err != nil {
			return r, err
		}
		if said, err = t.kernel.Survey(ctx, roots(report), ""); err != nil {
			return r, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r = deps.Request{Report: report, Missing: said.Missing, Loaded: said.Loaded, Pristine: t.slot.pristine}
	r.Missing = slices.DeleteFunc(r.Missing, func(module string) bool {
		return req.Tools.Provides(module) || s.isOwn(module) || strings.Contains(req.Code, module+".py") // a file that the code is about to write
	})
	return r, nil
}

// scan has the code parsed beside the kernel, which takes a process of its own.
func (s *Live) scan(ctx context.Context, req kernel.Request) (scan.Report, error) {
	scanner, err := s.parser(ctx)
	if err != nil {
		return scan.Report{}, err
	}
	report, err := scanner.Scan(ctx, scan.Code{Text: req.Code, Script: req.Mode == kernel.Script})
	if report.Invalid {
		report.Imports = nil // invalid code does not run; if the scanner is mistaken, the kernel asks for missing modules while the code runs
	}
	return report, err
}

// isOwn says whether the workspace has a module or a folder of that name anywhere: the code may be about to add that folder to sys.path. If it does not, the
// kernel asks for the module while the code runs.
func (s *Live) isOwn(module string) bool {
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
func (s *Live) parser(ctx context.Context) (*scan.Scanner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scanner != nil && ended(s.scanner.Ended()) {
		s.dropScanner()
	}
	if s.scanner == nil {
		if err := s.awake(ctx); err != nil {
			return nil, err
		}
		var err error
		if s.scanner, err = scan.Start(ctx, s.link, s.opts.Env.Interpreter(s.sandbox.Layout())); err != nil {
			s.scanner = nil
			return nil, explain(s.sandbox, err)
		}
	}
	return s.scanner, nil
}

func (s *Live) dropScanner() {
	if s.scanner != nil {
		s.scanner.Close()
		s.scanner = nil
	}
}

// apply gives the interpreter what was installed, and yields the Install that says so. It returns false when the code is not to run.
func (s *Live) apply(ctx context.Context, t *run, p installation.Provision, began time.Time, yield yielder) bool {
	told := kernel.Install{Provision: p}
	var err error
	if p.Restart != "" {
		s.mu.Lock()
		pristine := t.slot.pristine
		s.mu.Unlock()
		if !pristine {
			if yield(told, nil) {
				yield(kernel.Done{Outcome: kernel.OutcomeRestart, ExitCode: 1, Wall: time.Since(began), Message: p.Restart + "; nothing was run"}, nil)
			}
			return false
		}
		told.Restarted = true
		err = s.renew(ctx, t)
	} else if p.Layer != "" {
		if err = t.kernel.AddPaths(ctx, s.pathsOf(p)); err == nil {
			s.given(t, p.Layer)
		}
	}
	if err != nil {
		yield(nil, explain(t.sandbox, err))
		return false
	}
	return p.Silent() || yield(told, nil)
}

// renew replaces the interpreter of a run.
func (s *Live) renew(ctx context.Context, t *run) error {
	if err := s.vacate(ctx, t.slot, false); err != nil {
		return err
	}
	next, err := s.occupy(ctx, t.slot)
	if err == nil {
		*t = *next
	}
	return err
}

// added returns the state of a session that has a provision's layer alone.
func added(p installation.Provision) installation.State {
	one := installation.State{Layers: []string{p.Layer}}
	if p.First {
		one.First = one.Layers
	}
	return one
}

// pathsOf says where a provision's layer is in the sandbox.
func (s *Live) pathsOf(p installation.Provision) kernel.Paths {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paths(added(p))
}

// paths says where the layers of a state are in the sandbox.
func (s *Live) paths(state installation.State) kernel.Paths {
	if s.sandbox == nil || len(state.Layers) == 0 {
		return kernel.Paths{}
	}
	first, last := state.Paths(s.sandbox.Layout().Path(layer.MountPoint))
	return kernel.Paths{First: first, Last: last}
}

// missingIn is what installs what the running code of t turns out to import; nil: nothing does.
func (s *Live) missingIn(t *run) kernel.Missing {
	if s.opts.Packages == nil || s.opts.Mold {
		return nil
	}
	return func(ctx context.Context, module string, loaded []string, tell func(kernel.Event)) (kernel.Paths, error) {
		return s.missing(ctx, t, module, loaded, tell)
	}
}

// missing installs what running code turns out to import.
func (s *Live) missing(ctx context.Context, t *run, module string, loaded []string, tell func(kernel.Event)) (kernel.Paths, error) {
	p, err := s.install(ctx, func(have installation.State) (installation.Provision, error) {
		return s.opts.Packages.Module(ctx, module, loaded, have, func(p installation.Progress) { tell(kernel.Install{Progress: &p}) })
	}, t)
	if err != nil {
		if ctx.Err() == nil {
			tell(kernel.Install{Failure: problem.Of(err)})
		}
		return kernel.Paths{}, err
	}
	if !p.Silent() {
		tell(kernel.Install{Provision: p})
	}
	if p.Layer == "" || p.Restart != "" {
		return kernel.Paths{}, nil
	}
	s.given(t, p.Layer)
	return s.pathsOf(p), nil
}

// Install makes packages importable in all of the session's kernels, in each from its next execution on. Where the Provision has a Restart,
// those that have run code already need a new interpreter for it.
func (s *Live) Install(ctx context.Context, requirements []require.Requirement, told func(installation.Progress)) (installation.Provision, error) {
	if s.opts.Packages == nil {
		return installation.Provision{}, problem.New(problem.PackagesOff, "packages cannot be installed here")
	}
	done, err := s.share(ctx)
	if err != nil {
		return installation.Provision{}, err
	}
	defer done()
	if _, _, err := s.connected(ctx); err != nil {
		return installation.Provision{}, err
	}
	p, err := s.install(ctx, func(have installation.State) (installation.Provision, error) {
		return s.opts.Packages.Install(ctx, requirements, have, told)
	}, nil)
	if err != nil {
		return p, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched.Store(true)
	for _, k := range s.slots {
		if p.First && p.Restart == "" && (k.kernel != nil || k.parked != "") && !k.pristine {
			p.Restart = "it replaces packages that kernels may have imported already"
		}
	}
	return p, nil
}
