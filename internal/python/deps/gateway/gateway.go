// Package gateway stands between cove and the package indexes: it is the one place that reads them, and the one that enforces which of their files may
// be used. uv resolves through it, wheels are fetched through it, and so does a sandbox that builds from source.
//
// An index is believed in nothing that can be checked: its pages are bounded, its file names are parsed, every file is compared with the hash that its page
// gave, redirects never carry credentials to another host, and a public index cannot lead to an address inside of the user's network.
//
// The protocol is that of the simple repository API, https://packaging.python.org/en/latest/specifications/simple-repository-api/ (PEP 503, 592, 629,
// 658, 691, 700, 714, 792).
package gateway

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"cove/internal/core/problem"
	"cove/internal/python/pyindex"
)

// IndexURL is what clients of Handler are given as their index. It exists only behind the gateway, which is their HTTP proxy; it is
// the same in every process, so that uv's cache stays of use.
const IndexURL = "http://" + indexHost + "/simple/"

const indexHost = "index.cove.invalid"

// Options configure a Gateway.
type Options struct {
	Cache   string           // folder for what indexes said; made when missing
	Sources []pyindex.Source // in order: the first that has a project is the one it comes from; folders and flat pages add to it
	Access  pyindex.Access
	Rules   Rules
	Offline bool             // answer from the cache and from folders alone
	Now     func() time.Time // nil is time.Now
	Times   Times            // zero fields have defaults
}

// Times bound what an index may take.
type Times struct {
	Connect time.Duration // to a connection; 10 s
	Answer  time.Duration // from the request to the first byte; 20 s
	Stall   time.Duration // without a byte in the middle of an answer; 20 s
	Page    time.Duration // for a whole page, retry included; 60 s
	Pause   time.Duration // before the one retry, and at most ten times that when the index asks for more; 500 ms
}

func (t Times) filled() Times {
	for _, field := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&t.Connect, 10 * time.Second}, {&t.Answer, 20 * time.Second}, {&t.Stall, 20 * time.Second}, {&t.Page, time.Minute}, {&t.Pause, 500 * time.Millisecond},
	} {
		if *field.at == 0 {
			*field.at = field.value
		}
	}
	return t
}

// Gateway is safe for concurrent use.
type Gateway struct {
	now      func() time.Time
	rules    Rules
	offline  bool
	listings []source // folders and flat pages, which add to what an index has
	indexes  []source
	shelf    shelf
	flights  singleflight.Group

	mu       sync.Mutex
	pages    map[string]*page // by source and project
	reasons  map[string][]string
	failures map[string]error
}

// source is one place that projects are looked up in.
type source interface {
	// Name is for messages.
	name() string
	// Key tells the source from others in the cache.
	key() string
	// PageOf names the page that has a project, in the cache.
	pageOf(project string) string
	// Trusted says that the source is the user's own folder, whose files need no age.
	trusted() bool
	// Local says that the source needs no network.
	local() bool
	// Refresh asks for a project; old is what was known before, or nil.
	refresh(ctx context.Context, project string, old *page) (*page, error)
	// Open starts reading a file at an offset that the source may ignore; the transfer says where it begins.
	open(ctx context.Context, ask transferRequest) (*transfer, error)
}

// New returns a gateway; no index is asked before it is used.
func New(o Options) (*Gateway, error) {
	g := &Gateway{now: o.Now, rules: o.Rules.normalized(), offline: o.Offline, shelf: shelf{dir: o.Cache}, pages: map[string]*page{}, reasons: map[string][]string{}, failures: map[string]error{}}
	if g.now == nil {
		g.now = time.Now
	}
	if err := os.MkdirAll(o.Cache, 0o700); err != nil {
		return nil, problem.New(problem.DataFolderUnusable, "the folder for the answers of package indexes cannot be made").
			WithHint("make sure that cove's data folder can be written to").WithCause(err)
	}
	times := o.Times.filled()
	for _, s := range o.Sources {
		switch {
		case s.Folder != "":
			g.listings = append(g.listings, &folder{dir: s.Folder, shown: s.Name, now: g.now})
		default:
			u, err := newUpstream(s, o.Access, times, g.now)
			if err != nil {
				return nil, err
			}
			if s.Flat {
				g.listings = append(g.listings, u)
			} else {
				g.indexes = append(g.indexes, u)
			}
		}
	}
	return g, nil
}

// Project is what an index says of a project, after the rules.
type Project struct {
	Name        string
	Files       []File // all of them, the withheld included
	Status      string // PEP 792: "active", "archived", "deprecated", "quarantined"; "" when the index does not say
	FirstUpload time.Time
	Releases    int    // versions with at least one file
	Index       string // the source's name, without credentials

	Undated bool      // no file that an index has for it has a time of upload, so that its age is not known
	Stale   time.Time // not zero: the index was not asked, and this is what it said then
	Trouble error     // why the index could not be asked, when there are files nevertheless: stale ones or those of folders
}

// File is one file of a project.
type File struct {
	Name           string // of the file
	Version        string
	SHA256         string // hex; "" when the index gives none, and then the file is withheld
	Size           int64  // bytes; 0 when the index does not say
	Uploaded       time.Time
	RequiresPython string
	Yanked         bool
	Wheel          bool
	Withheld       string // why the rules keep it back, a clause; "" when they do not
}

// Project asks for what the index says, from the cache when that is fresh. Problems: package_unknown, package_denied, package_quarantined, index_unreachable,
// index_timeout, index_untrusted (certificate), index_denied (credentials), index_malformed, index_offline.
func (g *Gateway) Project(ctx context.Context, name string) (Project, error) {
	return g.project(ctx, name, fresh)
}

// Ask is Project that asks the index in any case, and fails when it does not answer.
func (g *Gateway) Ask(ctx context.Context, name string) (Project, error) {
	p, err := g.project(ctx, name, 0)
	if err == nil && !p.Stale.IsZero() {
		if err = p.Trouble; err == nil {
			err = offline(name)
		}
	}
	return p, err
}

func (g *Gateway) project(ctx context.Context, name string, age time.Duration) (Project, error) {
	l, err := g.lookup(ctx, name, age)
	if err != nil {
		return Project{}, err
	}
	p := Project{Name: l.project, Status: l.status, Index: l.index, Undated: l.undated, Stale: l.stale, Trouble: l.trouble, Files: make([]File, len(l.files))}
	versions := map[string]bool{}
	for i, f := range l.files {
		p.Files[i] = f.File
		versions[f.Version] = true
		if up := f.Uploaded; !up.IsZero() && !f.from.trusted() && (p.FirstUpload.IsZero() || up.Before(p.FirstUpload)) {
			p.FirstUpload = up
		}
	}
	p.Releases = len(versions)
	return p, nil
}

// Fetch writes a file's bytes to w, unless the rules withhold it, and verifies size and SHA-256. told hears how many bytes have come of how many (0:
// unknown); it may be nil. What has been written when Fetch fails is of no use. Problems as of Project, and package_hash_mismatch, package_too_big, file_withheld, file_unknown.
func (g *Gateway) Fetch(ctx context.Context, project, file, sha256 string, w io.Writer, told func(received, total int64)) error {
	f, err := g.find(ctx, project, file, sha256)
	if err != nil {
		return err
	}
	return g.copyFile(ctx, f, w, told)
}

// Reasons returns why files of a project were withheld since the gateway was made, for explaining a resolution that failed:
// project to clauses.
func (g *Gateway) Reasons() map[string][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string][]string{}
	for project, clauses := range g.reasons {
		out[project] = slices.Clone(clauses)
	}
	return out
}

// Failures returns why projects could not be looked up when they were last asked for, by a client or by Project: the problems that a client of
// Handler has only seen as HTTP statuses.
func (g *Gateway) Failures() map[string]error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.failures)
}

func (g *Gateway) note(project string, clauses []string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.reasons, project)
	delete(g.failures, project)
	if len(clauses) > 0 {
		g.reasons[project] = clauses
	}
	if err != nil {
		g.failures[project] = err
	}
}

func wrapped(project string, err error) error {
	return fmt.Errorf("look up %s: %w", project, err)
}
