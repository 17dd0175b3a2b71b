package deps

import (
	"context"
	"maps"
	"slices"
	"time"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

const (
	// nearPatience is how long the resolver may look for versions that go with what is installed. Where the newest ones do not, it can go back through all
	// of a project's history, one release at a time.
	nearPatience = 10 * time.Second
	// tooOld is by how much a version that goes with what is installed may be older than the newest one.
	tooOld = 2 * 365 * 24 * time.Hour
)

// settle finds versions that leave alone everything that is installed. The newest versions come first; in most cases they need nothing changed.
func (i *Installer) settle(ctx context.Context, o *outcome, j installOptions, told func(installation.Progress)) (bool, error) {
	firm, err := i.kernel()
	if err != nil {
		return false, err
	}
	have := i.versions(j.state)
	prefer := maps.Clone(have)
	maps.Copy(prefer, j.prefer)
	done, err := i.try(ctx, o, o.question(j.state, firm, prefer), told)
	if err != nil || !done || keeps(o.plan.Versions, have) {
		return done, err
	}
	o.newest = o.plan.Versions
	return i.near(ctx, o, o.question(j.state, have, j.prefer), told)
}

// keeps says whether versions leave alone what is installed.
func keeps(versions, have map[string]string) bool {
	for name, version := range versions {
		if old, there := have[name]; there && old != version {
			return false
		}
	}
	return true
}

// near tries a question that ties down what is installed. What it finds does not count when it is years older than the newest.
func (i *Installer) near(ctx context.Context, o *outcome, q question, told func(installation.Progress)) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, nearPatience)
	defer cancel()
	done, err := i.try(bounded, o, q, told)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		o.plan = plan{Made: i.now(), Conflict: "no recent versions work with the installed packages"}
		o.cached = false
		return false, i.remember(i.key(q), o.plan)
	}
	if err != nil || !done || o.cached || !i.aged(ctx, o) { // what is remembered was found recent enough
		return done, err
	}
	o.plan = plan{Made: i.now(), Conflict: "only versions that are years old work with the installed packages"}
	return false, i.remember(i.key(q), o.plan)
}

// aged says whether a plan has much older versions of what is wanted than there are.
func (i *Installer) aged(ctx context.Context, o *outcome) bool {
	for _, w := range o.wants {
		found, newest := o.plan.Versions[w.Name], o.newest[w.Name]
		if newest == "" || require.Compare(found, newest) >= 0 {
			continue
		}
		g, err := i.gateway(ctx)
		if err != nil {
			return false
		}
		project, err := g.Project(ctx, w.Name)
		if err != nil {
			return false // it was there a moment ago
		}
		if uploaded(project, newest).Sub(uploaded(project, found)) > tooOld {
			return true
		}
	}
	return false
}

// uploaded is when the first file of a version was uploaded, as far as the index says.
func uploaded(project gateway.Project, version string) time.Time {
	var times []time.Time
	for _, f := range project.Files {
		if f.Version == version && !f.Uploaded.IsZero() {
			times = append(times, f.Uploaded)
		}
	}
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}
