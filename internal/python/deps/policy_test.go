package deps_test

import (
	"strings"
	"testing"
	"time"

	"cove/internal/python/deps"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/names"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/testkit/testneeds"
)

func TestTiers(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	old := func(name, version string) indextest.Wheel { return indextest.Wheel{Name: name, Version: version} }
	fresh := func(name, version string, age time.Duration) indextest.Wheel {
		return indextest.Wheel{Name: name, Version: version, Listed: indextest.Listed{Uploaded: ago(age)}}
	}
	releases := []indextest.Release{
		old("cowsay", "1.0"), old("humanize", "1.0"), fresh("humanize", "2.0", day),
		old("zzold-project", "1.0"), old("zzold-project", "1.1"), fresh("zznew-project", "1.0", 30*day), fresh("zznew-project", "1.1", 20*day), old("zzsingle-project", "1.0"),
		indextest.Sdist{Name: "zzsource-project", Version: "1.0"}, indextest.Sdist{Name: "zzsource-project", Version: "1.1"},
		old("zzbad-project", "1.0"), old("zzbad-project", "1.1"), old("reqeusts", "1.0"), old("reqeusts", "1.1"), old("emoji", "1.0"), old("peewee", "1.0"),
	}
	tests := []struct {
		name    string
		change  func(*deps.Policy)
		request func(t *testing.T) deps.Request
		brought string
		refused string
		says    string
	}{
		{name: "known", request: imports("cowsay"), brought: "cowsay 1.0"},
		{name: "too young", request: imports("humanize"), brought: "humanize 1.0"},
		{name: "young is fine", change: func(p *deps.Policy) { p.MinAge = 0 }, request: imports("humanize"), brought: "humanize 2.0"},
		{name: "young is fine for one", change: func(p *deps.Policy) { p.Exempt = []string{"human*"} }, request: imports("humanize"), brought: "humanize 2.0"},
		{name: "other and old", request: imports("zzold_project"), brought: "zzold-project 1.1"},
		{name: "other and new", request: imports("zznew_project"), refused: "package_needs_approval zznew_project", says: "exists only since"},
		{name: "other and approved", change: func(p *deps.Policy) { p.Allow = []string{"zznew_Project"} }, request: imports("zznew_project"), brought: "zznew-project 1.1"},
		{name: "other with one release", request: imports("zzsingle_project"), refused: "package_needs_approval zzsingle_project", says: "one release"},
		{name: "other without wheels", request: imports("zzsource_project"), refused: "package_needs_approval zzsource_project", says: "no wheel"},
		{name: "quarantined", request: imports("zzbad_project"), refused: "package_quarantined zzbad_project"},
		{name: "slip", request: asked("reqeusts"), refused: "package_needs_approval reqeusts", says: "requests"},
		{name: "unknown to all", request: imports("zznowhere_at_all"), refused: "package_unknown zznowhere_at_all"},
		{name: "asked for, unknown", request: asked("zznowhere-at-all"), refused: "package_unknown zznowhere-at-all", says: "no package"},
		{name: "never", request: imports("urllib2"), refused: "package_refused urllib2", says: "urllib"},
		{name: "denied", change: func(p *deps.Policy) { p.Deny = []string{"cow*"} }, request: imports("cowsay", "emoji"), brought: "emoji 1.0", refused: "package_denied cowsay"},
		{name: "allowed alone", change: func(p *deps.Policy) { p.AllowOnly, p.Allow = true, []string{"emoji"} }, request: imports("cowsay", "emoji"), brought: "emoji 1.0",
			refused: "package_needs_approval cowsay", says: "packages.allow"},
		{name: "off", change: func(p *deps.Policy) { p.Install = false }, request: imports("cowsay"), refused: "install_off cowsay", says: "packages.install"},
		{name: "not a name", request: func(t *testing.T) deps.Request {
			r := imports("peewee")(t)
			r.Report.Refused = []string{"git+ssh://x/y"}
			return r
		}, brought: "peewee 1.0", refused: "requirement_not_allowed git+ssh://x/y"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.index.Add(releases...)
			w.index.Status("zzbad-project", "quarantined")
			if tt.change != nil {
				tt.change(&w.options.Policy)
			}
			p := w.provide(tt.request(t))
			if brought(p) != tt.brought || refusals(p) != tt.refused {
				t.Errorf("brought %q, refused %q: %+v", brought(p), refusals(p), p)
			}
			text := ""
			for _, r := range p.Refused {
				text += r.Reason + "; " + r.Hint + "\n"
			}
			if !strings.Contains(text, tt.says) {
				t.Errorf("it does not say %q: %s", tt.says, text)
			}
		})
	}
}

func imports(modules ...string) func(*testing.T) deps.Request {
	return func(*testing.T) deps.Request { return code(modules...) }
}

func asked(requirements ...string) func(*testing.T) deps.Request {
	return func(t *testing.T) deps.Request { return asking(t, "pip", requirements...) }
}

func TestArchivedProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay"})
	w.index.Status("cowsay", "archived")
	for range 2 {
		if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "archived") {
			t.Errorf("got %+v", p)
		}
	}
}

func TestDeniedDependency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Require: []string{"humanize"}}, indextest.Wheel{Name: "humanize"})
	w.options.Policy.Deny = []string{"humanize"}
	p, err := w.installer().Provide(t.Context(), code("cowsay"), nil)
	if err == nil || !strings.Contains(err.Error(), "humanize") || p.Layer != "" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A person who names a package approves it, but not what looks like a slip.
func TestInstallByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.Policy.Install = false
	w.index.Add(indextest.Wheel{Name: "zznew-project", Listed: indextest.Listed{Uploaded: ago(5 * day)}}, indextest.Wheel{Name: "reqeusts"})
	p, err := w.installer().Install(t.Context(), []require.Requirement{{Name: "zznew-project"}, {Name: "reqeusts"}}, installation.State{}, nil)
	if err != nil || brought(p) != "zznew-project 1.0" || refusals(p) != "package_needs_approval reqeusts" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain("numpy", "2.0"))
	w.options.Policy.Allow, w.options.Policy.Deny = []string{"zzapproved*"}, []string{"cowsay"}
	i := w.installer()
	for module, want := range map[string]struct {
		tier   deps.Tier
		status names.Status
	}{
		"os": {deps.TierBase, names.Standard}, "numpy.linalg": {deps.TierBase, names.Found}, "yaml": {deps.TierTable, names.Found},
		"cowsay": {deps.TierRefused, names.Found}, "urllib2": {deps.TierRefused, names.Refused}, "zzsomething_else": {deps.TierOther, names.Found},
		"reqeusts":       {deps.TierRefused, names.Found},
		"zzapproved_one": {deps.TierAllowed, names.Found},
	} {
		if answer, tier := i.Explain(module); tier != want.tier || answer.Status != want.status {
			t.Errorf("%s: %s, %+v", module, tier, answer)
		}
	}
}

// TestIndexWithoutAKnownPackage has an index that lacks what the table names.
func TestIndexWithoutAKnownPackage(t *testing.T) {
	t.Parallel()
	p := newWorld(t).provide(code("cowsay"))
	if refusals(p) != "package_unknown cowsay" || !strings.HasPrefix(p.Refused[0].Reason, "cowsay provides the module cowsay") {
		t.Errorf("got %+v", p.Refused)
	}
}

// TestUnknownNamesAreFew has code ask for names that say something: an index hears of few, and of none that looks like data or that no list lets pass.
func TestUnknownNamesAreFew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.Policy.Unknown = 3
	w.index.Add(indextest.Wheel{Name: "cowsay"})
	i := w.installer()
	state := installation.State{}
	ask := func(r deps.Request) installation.Provision {
		t.Helper()
		r.State = state
		p, err := i.Provide(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		state = p.State
		return p
	}
	heard := func(names ...string) (all int) {
		for _, name := range names {
			all += w.index.Requests("/simple/" + name + "/")
		}
		return all
	}
	secret := "zz4f5a6b7c8d9e0f1a2b"
	for _, r := range []deps.Request{code(secret), asking(t, "pip", secret), asking(t, "pip", "zz-"+strings.Repeat("word-", 20)+"end")} {
		p := ask(r)
		if len(p.Refused) != 1 || !strings.Contains(p.Refused[0].Reason, "does not look like the name of one, so no index was asked") || len(state.Looked) > 0 {
			t.Errorf("got %+v", p)
		}
	}
	ask(code("zzone", "zztwo"))
	ask(code("zzone", "zztwo")) // no news to anybody
	p := ask(code("zzthree", "zzfour", "cowsay"))
	if brought(p) != "cowsay 1.0" || refusals(p) != "package_unknown zzthree, package_needs_approval zzfour" || !strings.Contains(p.Refused[1].Reason, "3 such names") {
		t.Errorf("brought %q, refused %q: %+v", brought(p), refusals(p), p.Refused)
	}
	if p := ask(code("zzfive")); refusals(p) != "package_needs_approval zzfive" {
		t.Errorf("refused %q", refusals(p))
	}
	p, err := i.Module(t.Context(), "zzsix", nil, state, nil)
	if err != nil || refusals(p) != "package_needs_approval zzsix" {
		t.Errorf("refused %q, %v", refusals(p), err)
	}
	if n := heard(secret, "zzfour", "zzfive", "zzsix"); n > 0 {
		t.Errorf("the index heard of %d names that it should not have", n)
	}
	if heard("zzone") == 0 || heard("zztwo") == 0 || heard("zzthree") == 0 || len(state.Looked) != 3 {
		t.Errorf("looked for were %q", state.Looked)
	}
	named, err := require.Parse("zzseven")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = i.Install(t.Context(), []require.Requirement{named}, state, nil) // there is none
	if heard("zzseven") == 0 {
		t.Error("what a person asks for was not looked up")
	}
}

// TestListsComeBeforeTheIndex wants the index not to hear of what a list excludes.
func TestListsComeBeforeTheIndex(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*deps.Policy){
		"denied":          func(p *deps.Policy) { p.Deny = []string{"zz*"} },
		"others allowed":  func(p *deps.Policy) { p.AllowOnly, p.Allow = true, []string{"cowsay"} },
		"none is unknown": func(p *deps.Policy) { p.Unknown = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			change(&w.options.Policy)
			for _, r := range []deps.Request{code("zzname"), asking(t, "pip", "zzname")} {
				if p := w.provide(r); len(p.Refused) != 1 || w.index.Requests("/simple/zzname/") > 0 {
					t.Errorf("the index was asked %d times: %+v", w.index.Requests("/simple/zzname/"), p)
				}
			}
		})
	}
}
