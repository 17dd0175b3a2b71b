package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/problem"
)

// Bounds of what a kernel may say about modules.
const (
	longestModule = 200  // bytes of a dotted name
	mostLoaded    = 5000 // root modules
	mostAsked     = 20   // modules that one execution may ask for; packages.py has the same number
)

func (p Paths) empty() bool { return len(p.First)+len(p.Last) == 0 }

// message returns the paths as the kernel is sent them: its lists are never null.
func (p Paths) message(m map[string]any) map[string]any {
	m["first"], m["last"] = append([]string{}, p.First...), append([]string{}, p.Last...)
	return m
}

// AddPaths has the interpreter and the processes that it starts find packages in more folders. Of folders of one kind, those added last are looked at first.
// Folders that the interpreter has already are moved. It waits until the kernel is idle.
func (k *Kernel) AddPaths(ctx context.Context, p Paths) error {
	var reply struct{ Error string }
	if err := k.ask(ctx, p.message(map[string]any{"type": "add_paths"}), "add_paths_reply", &reply); err != nil {
		return err
	}
	if reply.Error != "" {
		return problem.New(problem.KernelPathsFailed, "the Python interpreter could not be given more packages").
			WithHint("start a new interpreter").WithCause(errors.New(reply.Error))
	}
	return nil
}

// Modules is what a kernel says about imports: its word, which is hostile.
type Modules struct {
	Missing []string // of those asked for, which an import would not find
	Loaded  []string // root modules that have been imported from the environment or from added folders
	Valid   bool     // the code is Python without errors of syntax and without magics
}

// Survey asks the interpreter which modules an import would not find, and about code, which may be "". Of a dotted name, the parts below a regular package are not
// checked, and nothing is imported.
func (k *Kernel) Survey(ctx context.Context, modules []string, code string) (Modules, error) {
	var reply Modules
	question := map[string]any{"type": "survey", "modules": append([]string{}, modules...), "code": code}
	if err := k.ask(ctx, question, "survey_reply", &reply); err != nil {
		return Modules{}, err
	}
	reply.Missing = slices.DeleteFunc(slices.Clone(modules), func(name string) bool { return !slices.Contains(reply.Missing, name) })
	reply.Loaded = loadedModules(reply.Loaded)
	return reply, nil
}

// loadedModules keeps the root modules of what a kernel says it has loaded.
func loadedModules(said []string) []string {
	said = said[:min(len(said), mostLoaded)]
	return slices.DeleteFunc(slices.Clone(said), func(name string) bool { return !isModule(name) || strings.Contains(name, ".") })
}

// isModule says whether a name is a dotted name of ASCII identifiers; distributions provide no other modules.
func isModule(name string) bool {
	if len(name) > longestModule {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' {
			return false
		}
		for _, c := range []byte(part) {
			if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				return false
			}
		}
	}
	return true
}

// modules are an execution's requests for missing modules, of which one is answered at a time.
type modules struct {
	ctx     context.Context
	cancel  context.CancelFunc
	told    chan Event
	replies chan map[string]any
	asked   int
	busy    bool
	running sync.WaitGroup
}

func (m *modules) open(ctx context.Context) {
	m.ctx, m.cancel = context.WithCancel(ctx)
	m.told, m.replies = make(chan Event), make(chan map[string]any, 1)
}

// close waits for the request that is being answered, so that it never overlaps with one of the next execution.
func (m *modules) close() {
	m.cancel()
	m.running.Wait()
}

// askFor answers a kernel that lacks a module. An error is a violation of the protocol.
func (x *execution) askFor(s spoken) error {
	m := &x.modules
	m.asked++
	switch {
	case s.ID != x.id || x.req.Missing == nil:
		return errors.New("it asked for a module, which was not offered")
	case !isModule(s.Module):
		return errors.New("it asked for a module that can have no such name")
	case m.asked > mostAsked:
		return fmt.Errorf("it asked for more than %d modules", mostAsked)
	}
	reply := map[string]any{"type": "module_reply", "id": x.id, "number": s.Number}
	if m.busy || m.ctx.Err() != nil {
		// The kernel has stopped waiting for another module, which is still being installed, or is about to be interrupted.
		_ = x.kernel.send(Paths{}.message(reply))
		return nil
	}
	loaded, err := texts(s.Loaded, mostLoaded)
	if err != nil {
		return err
	}
	m.busy = true
	tell := func(e Event) {
		select {
		case m.told <- e:
		case <-m.ctx.Done():
		}
	}
	m.running.Go(func() {
		paths, err := x.req.Missing(m.ctx, s.Module, loadedModules(loaded), tell)
		if err != nil {
			paths = Paths{}
		}
		m.replies <- paths.message(reply)
	})
	return nil
}
