package deps

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// installOptions is what an installation goes by besides what is wanted.
type installOptions struct {
	state   installation.State
	loaded  []string          // root modules
	nothing bool              // no interpreter runs yet, so that none has to be begun anew
	prefer  map[string]string // versions to stay with
	again   bool              // ask the index even where the answer is known
	single  bool              // wants are added one by one, so that the last is to blame
	refused []installation.Refusal
	notes   []string
}

// install brings wants into a session.
func (i *Installer) install(ctx context.Context, wants []want, j installOptions, told func(installation.Progress)) (installation.Provision, error) {
	begun := time.Now()
	p := installation.Provision{State: j.state, Refused: j.refused, Notes: j.notes, Cached: true}
	if len(wants) == 0 {
		return p, nil
	}
	ctx, told, cancel := i.bounded(ctx, told)
	defer cancel()
	p, err := i.bring(ctx, wants, j, p, told)
	p.Seconds = time.Since(begun).Seconds()
	return p, i.orEnded(ctx, err)
}

// slowest is how many bytes a second a download has to bring at least, so that large packages are no matter of the time limit alone.
const slowest = 1_000_000

// bounded gives an installation its time limit. What it downloads earns it more time: a second for as many bytes as slowest says. tell is what is to be called in place of told, from
// any goroutine.
func (i *Installer) bounded(ctx context.Context, told func(installation.Progress)) (bound context.Context, tell func(installation.Progress), cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	begun, limit, most := time.Now(), i.options.Policy.Timeout, int64(0)
	timer := time.AfterFunc(max(limit, 0), func() {
		if limit > 0 {
			end(tooLong("installing packages"))
		}
	})
	var mu sync.Mutex
	tell = func(p installation.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Received > most && timer.Stop() {
			most = p.Received
			timer.Reset(time.Until(begun.Add(limit + time.Duration(most)*time.Second/slowest)))
		}
		if told != nil {
			told(p)
		}
	}
	return ctx, tell, func() {
		timer.Stop()
		end(nil)
	}
}

// orEnded is err, or what ended the context where err is only a consequence of that.
func (i *Installer) orEnded(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || problem.Has(err, problem.ResolveTimeout) {
		return err
	}
	return fmt.Errorf("%w (%w)", ended(ctx, "installing packages"), err)
}

// bring decides, plans and makes the layer. With an error the Provision is p with what was refused so far.
func (i *Installer) bring(ctx context.Context, wants []want, j installOptions, p installation.Provision, told func(installation.Progress)) (installation.Provision, error) {
	wants, refused, err := i.admit(ctx, wants, &p.State)
	p.Refused = append(p.Refused, refused...)
	if err != nil || len(wants) == 0 {
		return p, err
	}
	o, err := i.plan(ctx, wants, j, told)
	p.Refused, p.Notes = append(p.Refused, o.refused...), append(p.Notes, o.notes...)
	if err != nil || len(o.wants) == 0 {
		return p, err
	}
	return i.make(ctx, o, p, told)
}

// make has the layer of a plan made, and completes the Provision.
func (i *Installer) make(ctx context.Context, o outcome, p installation.Provision, told func(installation.Progress)) (installation.Provision, error) {
	p.Versions = o.plan.Versions
	if len(o.plan.Wheels) == 0 {
		return p, nil
	}
	l, made, err := i.store.Ensure(ctx, i.closure(o.plan.Wheels), i.fetch(o.plan.Built), i.telling(o, told))
	if err != nil {
		return p, fmt.Errorf("install %s: %w", strings.Join(namesOf(o.wants), ", "), err)
	}
	if o.restart == "" && slices.Contains(p.State.Layers, l.Name) && !keepsOthers(o.plan.Wheels, p.State) {
		return p, nil
	}
	p.Layer, p.Restart, p.Cached = l.Name, o.restart, o.cached && !made
	p.First = i.replaces(o.plan.Wheels)
	p.Installed = installed(o, l, p.State)
	p.State = o.next(p.State, l.Name, p.First)
	return p, nil
}

// keepsOthers says whether a session has other versions of wheels than these.
func keepsOthers(wheels []layer.Wheel, s installation.State) bool {
	return slices.ContainsFunc(wheels, func(w layer.Wheel) bool { return s.Packages[w.Name] != w.Version })
}

func (i *Installer) closure(wheels []layer.Wheel) layer.Closure {
	return layer.Closure{Environment: i.options.Env.Key, Python: i.options.Env.Python, Wheels: wheels}
}

// replaces says whether wheels bring other versions of what the environment has.
func (i *Installer) replaces(wheels []layer.Wheel) bool {
	return slices.ContainsFunc(wheels, func(w layer.Wheel) bool {
		version, there := i.options.Env.Packages[w.Name]
		return there && version != w.Version
	})
}

// fetch returns where wheels come from: built ones from their folder, all others through the gateway.
func (i *Installer) fetch(built string) layer.Fetch {
	return func(ctx context.Context, w layer.Wheel, out io.Writer, told func(received, total int64)) error {
		if built != "" {
			if f, err := os.Open(filepath.Join(built, filepath.Base(w.File))); err == nil {
				defer f.Close()
				_, err := io.Copy(out, f)
				return err
			}
		}
		g, err := i.gateway(ctx)
		if err != nil {
			return err
		}
		return fetchThrough(g)(ctx, w, out, told)
	}
}

func fetchThrough(g *gateway.Gateway) layer.Fetch {
	return func(ctx context.Context, w layer.Wheel, out io.Writer, told func(received, total int64)) error {
		return g.Fetch(ctx, w.Name, w.File, w.SHA256, out, told)
	}
}

// telling passes on how far the making of a layer is.
func (i *Installer) telling(o outcome, told func(installation.Progress)) func(layer.Progress) {
	packages := o.packages(o.plan.Wheels)
	return func(p layer.Progress) {
		told(installation.Progress{Phase: p.Phase, Packages: packages, Received: p.Received, Total: p.Total})
	}
}

// outcome is a plan that works, and what it means for the session.
type outcome struct {
	plan    plan
	wants   []want // those that the plan is for
	asks    asking
	cached  bool // no answer so far came from an index
	scope   scope
	newest  map[string]string // what there would be if nothing were installed, where that is known
	restart string
	refused []installation.Refusal
	notes   []string
}

// asking says which answers to a question count.
type asking int

const (
	anyhow     asking = iota // what is remembered while it is fresh, else what the index says
	anew                     // what the index says now
	remembered               // what is remembered, and nothing else
)

// scope says what a plan is for.
type scope int

const (
	beside scope = iota // what is wanted; its layer goes with those that the session has
	alone               // all that the session has asked for; its layer replaces those that the session has
)

// next is the session's state with the plan's layer.
func (o outcome) next(s installation.State, name string, first bool) installation.State {
	out := s.Clone()
	if o.scope == alone {
		out.Layers, out.First, out.Packages = nil, nil, map[string]string{}
	}
	for _, w := range o.wants {
		text := w.String()
		out.Requirements = append(slices.DeleteFunc(out.Requirements, func(old string) bool {
			r, err := require.Parse(old)
			return err != nil || r.Name == w.Name && r.Marker == w.Marker
		}), text)
	}
	out.Layers = slices.Insert(slices.DeleteFunc(out.Layers, func(other string) bool { return other == name }), 0, name)
	if first {
		out.First = slices.Insert(slices.DeleteFunc(out.First, func(other string) bool { return other == name }), 0, name)
	}
	for _, w := range o.plan.Wheels {
		out.Packages[w.Name] = w.Version
	}
	return out
}

// packages describes wheels, those that were asked for first.
func (o outcome) packages(wheels []layer.Wheel) []installation.Package {
	var asked, others []installation.Package
	for _, wheel := range wheels {
		p := installation.Package{Name: wheel.Name, Version: wheel.Version, Size: wheel.Size}
		at := slices.IndexFunc(o.wants, func(w want) bool { return w.Name == wheel.Name })
		if at < 0 {
			others = append(others, p)
			continue
		}
		p.Asked, p.Module, p.Reason = true, o.wants[at].Module, o.wants[at].Reason
		asked = append(asked, p)
	}
	return append(asked, others...)
}

// installed is what a layer brings that the session did not have.
func installed(o outcome, l *layer.Layer, before installation.State) []installation.Package {
	var news []layer.Wheel
	for _, w := range o.plan.Wheels {
		if o.scope == beside && before.Packages[w.Name] == w.Version {
			continue
		}
		if at := slices.IndexFunc(l.Wheels, func(made layer.Wheel) bool { return made.Name == w.Name }); at >= 0 && l.Wheels[at].Size > 0 {
			w.Size = l.Wheels[at].Size
		}
		news = append(news, w)
	}
	return o.packages(news)
}

// living is a state without the layers that are not there any more. What they brought is then missing again, and still asked for.
func (i *Installer) living(s installation.State) installation.State {
	gone := func(name string) bool { return i.layer(name) == nil }
	if !slices.ContainsFunc(s.Layers, gone) {
		return s
	}
	out := s.Clone()
	out.Layers, out.First, out.Packages = slices.DeleteFunc(out.Layers, gone), slices.DeleteFunc(out.First, gone), map[string]string{}
	for _, name := range slices.Backward(out.Layers) {
		for _, w := range i.layer(name).Wheels {
			out.Packages[w.Name] = w.Version
		}
	}
	return out
}

func namesOf(wants []want) []string {
	var out []string
	for _, w := range wants {
		out = append(out, w.String())
	}
	return out
}

func problemOf(err error) (*problem.Error, bool) {
	if err == nil {
		return nil, false
	}
	p := problem.Of(err)
	return p, !problem.Has(p, problem.Fault)
}
