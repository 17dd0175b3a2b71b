package deps

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
	"cove/internal/python/deps/scan"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/python/pyindex"
)

// Installer makes packages importable. It is safe for concurrent use.
type Installer struct {
	options Options
	dir     string // all of the installer's files
	python  string // "3.11"
	environ []string
	sources string // names what plans and looks depend on besides the question
	store   *layer.Store
	base    func() (*inventory, error)
	kernel  func() (map[string]string, error) // what the kernel itself runs on
	now     func() time.Time

	mu     sync.Mutex
	layers map[string]seen
	tried  map[string]attempt
	looks  int // at unknown names, since looksSince
	gate   *gateway.Gateway
	uv     string

	looksSince time.Time
}

// attempt is the outcome of asking for a module that nothing can be done about.
type attempt struct {
	refused []installation.Refusal
	at      time.Time
}

// attemptFresh is how long a module that was refused is not tried again.
const attemptFresh = 10 * time.Minute

// New returns an installer; no index is asked before it is used.
func New(o Options) (*Installer, error) {
	parts := strings.SplitN(o.Env.Version, ".", 3)
	if len(parts) < 2 {
		return nil, problem.New(problem.EnvironmentDamaged, fmt.Sprintf("the environment's Python has no version: %q", o.Env.Version))
	}
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return nil, fmt.Errorf("locate data folder: %w", err)
	}
	i := &Installer{options: o, dir: filepath.Join(data, "packages"), python: parts[0] + "." + parts[1], environ: os.Environ(), now: time.Now,
		layers: map[string]seen{}, tried: map[string]attempt{}}
	if o.Index != "" {
		i.environ = append(slices.DeleteFunc(i.environ, namesIndex), "UV_DEFAULT_INDEX="+o.Index)
	}
	if i.store, err = layer.Open(filepath.Join(i.dir, "store"), o.Policy.Limits); err != nil {
		return nil, fmt.Errorf("open the package store: %w", err)
	}
	i.base = sync.OnceValues(i.environmentInventory)
	i.kernel = sync.OnceValues(i.kernelNeeds)
	digest := sha256.Sum256([]byte(o.Policy.digest() + "\n" + settingsDigest(i.environ, o.Env.Base)))
	i.sources = fmt.Sprintf("%x", digest[:12])
	return i, nil
}

// namesIndex tells whether a variable names an index.
func namesIndex(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	return slices.Contains([]string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"}, name)
}

// settingsDigest names what a person has told uv and pip, without reading more than a few small files and without starting uv.
func settingsDigest(environ []string, base string) string {
	h := sha256.New()
	set := map[string]string{}
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
		if strings.HasPrefix(name, "UV_") || strings.HasPrefix(name, "PIP_") {
			fmt.Fprintf(h, "%q\n", pair)
		}
	}
	config := set["XDG_CONFIG_HOME"]
	if config == "" {
		config = filepath.Join(set["HOME"], ".config")
	}
	for _, path := range []string{set["UV_CONFIG_FILE"], filepath.Join(config, "uv", "uv.toml"), "/etc/uv/uv.toml", "/etc/xdg/pip/pip.conf", "/etc/pip.conf",
		filepath.Join(set["HOME"], ".pip", "pip.conf"), filepath.Join(config, "pip", "pip.conf"), filepath.Join(base, "pip.conf"), set["PIP_CONFIG_FILE"]} {
		text, _ := os.ReadFile(path) // one that cannot be read says nothing
		fmt.Fprintf(h, "%q %q\n", path, text)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// kernelNeeds returns the distributions that the kernel itself runs on, with their versions in the environment.
func (i *Installer) kernelNeeds() (map[string]string, error) {
	f, err := pyenv.Locks().Open(string(pyenv.Minimal) + ".txt")
	if err != nil {
		return nil, fmt.Errorf("read what the kernel needs: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read what the kernel needs: %w", err)
	}
	needs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, _, pinned := strings.Cut(line, "==")
		if version, there := i.options.Env.Packages[require.Normalize(name)]; pinned && there {
			needs[require.Normalize(name)] = version
		}
	}
	return needs, nil
}

// Mount has to be among the mounts of every sandbox.
func (i *Installer) Mount() sandbox.Mount { return i.store.Mount() }

// Store is the store of layers, for listing and sweeping them.
func (i *Installer) Store() *layer.Store { return i.store }

// Provided says whether a root module is part of the standard library or of what a session with that state has installed. Of roots that several distributions
// share (google) it says no, since more of them may be missing.
func (i *Installer) Provided(state installation.State) func(root string) bool {
	return func(root string) bool {
		return names.IsStandard(root, i.python) || i.provides(state, root)
	}
}

// provides says whether the base environment or a layer of the state has a dotted module.
func (i *Installer) provides(s installation.State, module string) bool {
	if base, err := i.base(); err == nil && base.provides(module) {
		return true
	}
	root, _, _ := strings.Cut(module, ".")
	return slices.ContainsFunc(s.Layers, func(name string) bool {
		l := i.layer(name)
		return l != nil && slices.Contains(l.Modules, root) && inFolder(filepath.Join(i.store.Folder(), name), module)
	})
}

// shared says whether a root module is a namespace that the base environment or a layer has a part of.
func (i *Installer) shared(s installation.State, root string) bool {
	if base, err := i.base(); err == nil && base.Namespaces[root] {
		return true
	}
	return slices.ContainsFunc(s.Layers, func(name string) bool {
		l := i.layer(name)
		return l != nil && slices.Contains(l.Modules, root)
	})
}

// inFolder says whether a folder of packages has a dotted module, or a package that it belongs to.
func inFolder(dir, module string) bool {
	for _, part := range strings.Split(module, ".") {
		dir = filepath.Join(dir, part)
		if exists(filepath.Join(dir, "__init__.py")) || exists(dir+".py") {
			return true
		}
		if !exists(dir) {
			found, _ := filepath.Glob(dir + ".*so") // the pattern is fine
			return len(found) > 0
		}
	}
	return false
}

// spans says whether a dotted module is a namespace that is there: importing it alone takes nothing more.
func (i *Installer) spans(s installation.State, module string) bool {
	if base, err := i.base(); err == nil && base.Namespaces[module] {
		return true
	}
	path := filepath.Join(strings.Split(module, ".")...)
	return slices.ContainsFunc(s.Layers, func(name string) bool {
		info, err := os.Stat(filepath.Join(i.store.Folder(), name, path))
		return err == nil && info.IsDir()
	})
}

// seen is a layer that was there at a time.
type seen struct {
	*layer.Layer
	at time.Time
}

// seenFor is how long a layer is believed to be there. Looking again also tells the store that it is in use.
const seenFor = time.Hour

// layer returns a layer by its name, or nil when it is not there any more.
func (i *Installer) layer(name string) *layer.Layer {
	i.mu.Lock()
	l, known := i.layers[name]
	i.mu.Unlock()
	if known && i.now().Sub(l.at) < seenFor {
		return l.Layer
	}
	found, err := i.store.Get(name)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		delete(i.layers, name)
		return nil
	}
	i.layers[name] = seen{found, i.now()}
	return found
}

// gateway returns the gateway to the indexes, which it makes when it is needed first.
func (i *Installer) gateway(ctx context.Context) (*gateway.Gateway, error) {
	i.mu.Lock()
	g := i.gate
	i.mu.Unlock()
	if g != nil {
		return g, nil
	}
	g, err := i.openGateway(ctx, i.options.Policy.rules(i.options.Env.Packages))
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gate == nil {
		i.gate = g
	}
	return i.gate, nil
}

// openGateway makes a gateway to the indexes, with rules for what may be taken from them.
func (i *Installer) openGateway(ctx context.Context, rules gateway.Rules) (*gateway.Gateway, error) {
	uv, err := i.findUV(ctx)
	if err != nil {
		return nil, err
	}
	find := i.options.Sources
	if find == nil {
		find = func(ctx context.Context, uv string) ([]pyindex.Source, pyindex.Access, error) {
			return pyindex.Sources(ctx, i.environ, i.options.Env.Base, uv)
		}
	}
	sources, access, err := find(ctx, uv)
	if err != nil {
		return nil, fmt.Errorf("find out where packages come from: %w", err)
	}
	g, err := gateway.New(gateway.Options{
		Cache: filepath.Join(i.dir, "index"), Sources: sources, Access: access, Rules: rules, Offline: i.options.Policy.Offline,
	})
	if err != nil {
		return nil, fmt.Errorf("open the way to the package index: %w", err)
	}
	return g, nil
}

// Reach asks an index for a project that most have, and returns where that came from. Problems: as gateway's Project has them.
func (i *Installer) Reach(ctx context.Context) (index string, err error) {
	g, err := i.gateway(ctx)
	if err != nil {
		return "", err
	}
	p, err := g.Ask(ctx, "pip")
	if err != nil && !problem.Has(err, problem.PackageUnknown) {
		return "", err
	}
	return p.Index, nil
}

func (i *Installer) findUV(ctx context.Context) (string, error) {
	i.mu.Lock()
	uv := i.uv
	i.mu.Unlock()
	if uv != "" {
		return uv, nil
	}
	find := i.options.UV
	if find == nil {
		find = func(ctx context.Context) (string, error) { return pyenv.UV(ctx, i.options.Data, nil) }
	}
	uv, err := find(ctx)
	if err != nil {
		return "", fmt.Errorf("find uv: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.uv = uv
	return uv, nil
}

// Provide makes importable what a report asks for. What policy refuses and what cannot be found is told in the Provision; an error means that the
// installation itself failed (problems: index_*, package_*, resolve_failed, resolve_timeout, disk_full, canceled, ...), and the session goes on without.
// told may be nil; it is called from several goroutines, never at the same time.
func (i *Installer) Provide(ctx context.Context, r Request, told func(installation.Progress)) (installation.Provision, error) {
	r.State = i.living(r.State)
	wants, refused := i.wants(r)
	var notes []string
	if spec := r.Report.RequiresPython; spec != "" && !(require.Requirement{Name: "python", Specifier: spec}).Allows(i.options.Env.Version) {
		notes = append(notes, fmt.Sprintf("the script asks for Python %s, and this is Python %s", spec, i.options.Env.Version))
	}
	return i.install(ctx, wants, installOptions{state: r.State, loaded: r.Loaded, refused: refused, notes: notes}, told)
}

// Module makes one module importable that running code has asked for, as Provide would. A module that was refused is not tried again for a while.
func (i *Installer) Module(ctx context.Context, module string, loaded []string, s installation.State, told func(installation.Progress)) (installation.Provision, error) {
	i.mu.Lock()
	before, tried := i.tried[module]
	i.mu.Unlock()
	if tried && i.now().Sub(before.at) < attemptFresh {
		return installation.Provision{State: s, Refused: before.refused, Cached: true}, nil
	}
	root, _, _ := strings.Cut(module, ".")
	report := scan.Report{Imports: []scan.Import{{Module: module}}}
	p, err := i.Provide(ctx, Request{Report: report, Missing: []string{root}, Loaded: loaded, State: s}, told)
	if err == nil && len(p.Refused) > 0 {
		i.mu.Lock()
		defer i.mu.Unlock()
		if len(i.tried) > 10_000 {
			clear(i.tried) // names come from hostile code
		}
		i.tried[module] = attempt{refused: p.Refused, at: i.now()}
	}
	return p, err
}

// Install makes requirements importable that a person has asked for by name, as `cove packages add` does.
func (i *Installer) Install(ctx context.Context, asked []require.Requirement, s installation.State, told func(installation.Progress)) (installation.Provision, error) {
	s = i.living(s)
	have := i.versions(s)
	var wants []want
	for _, r := range asked {
		if !satisfied(r, have, s) {
			wants = append(wants, want{Requirement: r, How: byPerson, Reason: byPerson})
		}
	}
	return i.install(ctx, merge(wants), installOptions{state: s}, told)
}

// Explain says what a module means here: the answer of the table, whether the base environment has it, and the tier.
func (i *Installer) Explain(module string) (names.Answer, Tier) {
	answer := names.Resolve(module, i.python)
	if base, err := i.base(); answer.Status == names.Standard || err == nil && base.provides(module) {
		return answer, TierBase
	}
	if answer.Status != names.Found {
		return answer, TierRefused
	}
	tier := i.options.Policy.tier(answer.Distribution, answer.Reason == names.ByOverride || answer.Reason == names.ByTable)
	if _, slip := names.TypoOf(answer.Distribution); slip && tier == TierOther {
		tier = TierRefused
	}
	return answer, tier
}
