package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps/require"
)

// listing is what the sources together say of a project, after the rules.
type listing struct {
	project string
	index   string
	status  string
	files   []*candidate
	remote  bool // some file is from an index
	dated   bool // some file of an index has a time
	undated bool // none has, and the rules want one
	stale   time.Time
	trouble error
	sum     string // tells the contents from others, the rules' judgement included
}

// candidate is a file with all that is needed to fetch it.
type candidate struct {
	File
	entry       entry
	from        source
	conflicting bool
}

var projectName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]+)*$`) })

// lookup returns a project from pages that are at most so old. It remembers for Reasons and Failures.
func (g *Gateway) lookup(ctx context.Context, name string, age time.Duration) (*listing, error) {
	project := require.Normalize(name)
	if len(project) > maxName-10 || !projectName().MatchString(project) {
		return nil, problem.New(problem.PackageUnknown, fmt.Sprintf("%.80q cannot be the name of a package", name)).
			WithHint("names have letters, digits, and single -, _ and . between them")
	}
	l, err := g.assemble(ctx, project, age)
	if err != nil {
		g.note(project, nil, err)
		return nil, wrapped(project, err)
	}
	g.note(project, l.reasons(), nil)
	return l, nil
}

func (g *Gateway) assemble(ctx context.Context, project string, age time.Duration) (*listing, error) {
	if why := g.rules.project(project); why != "" {
		return nil, problem.New(problem.PackageDenied, project+" may not be installed: "+why).
			WithHint("the operator of this machine decides that, in cove's configuration")
	}
	l := &listing{project: project}
	reason := ""
	for _, s := range g.listings {
		p, err := g.consult(ctx, l, s, project, age)
		if err != nil && (!g.offline || s.local()) && p == nil {
			return nil, err
		}
		if p != nil {
			l.add(s, p)
		}
	}
	for _, s := range g.indexes {
		p, err := g.consult(ctx, l, s, project, age)
		if err != nil {
			if len(l.files) == 0 || !passing(err) {
				return nil, err
			}
			l.trouble = err
			break
		}
		if l.add(s, p) || p.status != "" {
			reason, l.status = p.reason, p.status
			break
		}
	}
	if l.status == "quarantined" {
		return nil, quarantined(project, reason)
	}
	if len(l.files) == 0 {
		return nil, g.unknown(project)
	}
	l.judge(g.rules, g.now())
	return l, nil
}

func (g *Gateway) unknown(project string) error {
	var names []string
	for _, s := range slices.Concat(g.indexes, g.listings) {
		names = append(names, s.name())
	}
	if len(names) == 0 {
		return problem.New(problem.PackageUnknown, project+" cannot be looked up: no package index is set").
			WithHint("set UV_DEFAULT_INDEX, or remove no-index from the settings of pip or uv")
	}
	return problem.New(problem.PackageUnknown, "there is no package "+project+" on "+strings.Join(names, ", ")).
		WithHint("check the spelling: the name to install is not always the name to import")
}

func quarantined(project, reason string) error {
	message := project + " is quarantined by its index"
	if reason != "" {
		message += fmt.Sprintf(" (%.200s)", reason)
	}
	return problem.New(problem.PackageQuarantined, message).WithHint("indexes quarantine packages that may be malicious; use another package")
}

// consult returns a source's page, and tells the listing when it is an old one.
func (g *Gateway) consult(ctx context.Context, l *listing, s source, project string, age time.Duration) (*page, error) {
	p, err := g.page(ctx, s, project, age)
	if p == nil {
		return nil, err
	}
	if err != nil || g.offline && !s.local() {
		l.trouble = err
		if l.stale.IsZero() || p.fetched.Before(l.stale) {
			l.stale = p.fetched
		}
	}
	return p, nil
}

// page returns what a source says of a project: from memory, from the disk, or by asking. A page along with an error is an old one, and the error why
// no newer could be had.
func (g *Gateway) page(ctx context.Context, s source, project string, age time.Duration) (*page, error) {
	key := s.key() + "/" + s.pageOf(project)
	p := g.remembered(key)
	if g.usable(s, p, age) {
		return p, nil
	}
	if stored := g.shelf.load(s, project); stored != nil && (p == nil || stored.fetched.After(p.fetched)) {
		p = stored
		g.remember(key, p)
	}
	if g.usable(s, p, age) {
		return p, nil
	}
	if g.offline && !s.local() {
		if p != nil {
			return p, nil
		}
		return nil, offline(project)
	}
	fresh, err := g.refresh(ctx, s, project, age, p)
	if err == nil {
		return fresh, nil
	}
	if p != nil && passing(err) {
		return p, err
	}
	return nil, err
}

func offline(project string) error {
	return problem.New(problem.IndexOffline, "cove is offline and has no stored answer about "+project+" from before").
		WithHint("switch offline mode off, or name a folder with wheels (UV_FIND_LINKS)")
}

// usable tells whether a page is young enough. One from the future is not.
func (g *Gateway) usable(s source, p *page, age time.Duration) bool {
	if p == nil || s.local() {
		return false
	}
	if p.absent {
		age = freshAbsence
	}
	old := g.now().Sub(p.fetched)
	return old >= 0 && old < age
}

// refresh asks the source, once for all callers at the same time. A caller that gives up does not stop the request for the others.
func (g *Gateway) refresh(ctx context.Context, s source, project string, age time.Duration, old *page) (*page, error) {
	key := s.key() + "/" + s.pageOf(project)
	done := g.flights.DoChan(key, func() (any, error) {
		// Another asking may have ended since the caller looked.
		if p := g.remembered(key); g.usable(s, p, age) {
			return p, nil
		}
		p, err := s.refresh(context.WithoutCancel(ctx), project, old)
		if err != nil {
			return nil, err
		}
		if old != nil && p.sum != "" && p.sum == old.sum {
			g.shelf.touch(s, project, p)
		} else {
			p.inherit(old)
			p.seal(baseOf(s))
			g.shelf.save(s, project, p)
		}
		g.remember(key, p)
		return p, nil
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*page), nil
	case <-ctx.Done():
		return nil, ended(ctx, s.name())
	}
}

// ended says why a caller's context has ended.
func ended(ctx context.Context, index string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return problem.New(problem.IndexTimeout, "the package index "+index+" has not answered in time").WithHint(timeHint).WithCause(ctx.Err())
	}
	return problem.New(problem.GivenUp, "asking the package index "+index+" was canceled").WithCause(ctx.Err())
}

func (g *Gateway) remembered(key string) *page {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pages[key]
}

func (g *Gateway) remember(key string, p *page) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pages) >= maxRemember {
		clear(g.pages)
	}
	g.pages[key] = p
}

// maxRemember bounds the pages in memory.
const maxRemember = 512

// How long a page is believed without asking again: for lookups, when it says that there is nothing, and for fetching a file by its hash.
const (
	fresh        = 10 * time.Minute
	freshAbsence = time.Minute
	fetchWithin  = 24 * time.Hour
)

// seal computes the page's sum as reading it from the cache would.
func (p *page) seal(base *url.URL) {
	h := sha256.New()
	if p.write(h, base) == nil {
		p.sum = hex.EncodeToString(h.Sum(nil)[:16])
	}
}

// passing tells whether an index may be better soon, so that what it said before may serve. What it says now is no such case.
func passing(err error) bool {
	switch problem.Of(err).Code {
	case string(problem.IndexUnreachable), string(problem.IndexTimeout), string(problem.IndexOffline):
		return true
	}
	return false
}

// add adds a page's files, but for those whose names another source before has had. It tells whether the source has the project.
func (l *listing) add(s source, p *page) bool {
	byName := make(map[string]*candidate, len(l.files)+len(p.entries))
	for _, f := range l.files {
		byName[f.Name] = f
	}
	added := false
	names := p.parse(l.project)
	made := make([]candidate, 0, len(names))
	for i, e := range p.entries {
		if !names[i].ok {
			continue
		}
		added = true
		if prior := byName[e.name]; prior != nil {
			prior.conflicting = prior.conflicting || prior.from == s && prior.SHA256 != e.sha256
			continue
		}
		made = append(made, candidate{entry: e, from: s, File: File{Name: e.name, Version: names[i].version, SHA256: e.sha256, Size: e.size, Uploaded: e.uploaded,
			RequiresPython: e.requires, Yanked: e.yanked != "", Wheel: names[i].wheel}})
		c := &made[len(made)-1]
		byName[e.name] = c
		l.files = append(l.files, c)
		l.remote = l.remote || !s.trusted()
		l.dated = l.dated || !s.trusted() && !e.uploaded.IsZero()
	}
	if added {
		l.index = s.name()
		l.sum += p.sum
	}
	return added
}

// judge applies the rules.
func (l *listing) judge(r Rules, now time.Time) {
	h := sha256.New()
	fmt.Fprint(h, l.sum)
	for i, f := range l.files {
		f.Withheld = r.file(l.project, f, !l.dated, now)
		if f.Withheld != "" {
			fmt.Fprint(h, i, ",")
		}
	}
	l.undated = l.remote && !l.dated && r.MinAge > 0
	l.sum = hex.EncodeToString(h.Sum(nil)[:16])
}

// reasons explains what the rules withhold, the newest version first. Source distributions are only told of when there is nothing else.
func (l *listing) reasons() []string {
	const most = 8
	byVersion := map[string]string{}
	var versions []string
	wheels, plain := 0, false
	for _, f := range l.files {
		if !f.Wheel {
			continue
		}
		wheels++
		if f.Withheld == "" {
			plain = true
		} else if byVersion[f.Version] == "" {
			byVersion[f.Version] = f.Withheld
			versions = append(versions, f.Version)
		}
	}
	if wheels == 0 {
		for _, f := range l.files {
			plain = plain || f.Withheld == ""
		}
		if plain {
			return nil
		}
		return []string{"it has no wheels, only source distributions"}
	}
	slices.SortFunc(versions, func(a, b string) int { return require.Compare(b, a) })
	var clauses []string
	for _, v := range versions {
		if len(clauses) == most {
			clauses = append(clauses, fmt.Sprintf("and %d more versions are withheld", len(versions)-most))
			break
		}
		clauses = append(clauses, v+": "+byVersion[v])
	}
	return clauses
}

// find returns a file that may be fetched. A hash tells a file better than the page's age, so that an older page will do.
func (g *Gateway) find(ctx context.Context, project, file, sha256 string) (*candidate, error) {
	for _, age := range []time.Duration{fetchWithin, fresh} {
		l, err := g.lookup(ctx, project, age)
		if err != nil {
			return nil, err
		}
		for _, f := range l.files {
			if f.Name != file || !strings.EqualFold(f.SHA256, sha256) {
				continue
			}
			if f.Withheld != "" {
				return nil, problem.New(problem.FileWithheld, file+" may not be used: "+f.Withheld).
					WithHint("ask for another version, or for an exception from the operator of this machine")
			}
			return f, nil
		}
	}
	return nil, problem.New(problem.FileUnknown, fmt.Sprintf("the package index has no file %.255s with that hash", clean(file))).
		WithHint("it may have been removed or replaced since it was chosen; resolve again")
}
