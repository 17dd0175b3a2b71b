package deps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// plan is the answer to a question, as it is kept on disk.
type plan struct {
	Made     time.Time         `json:"made"`
	Versions map[string]string `json:"versions,omitempty"` // of all that New needs, the environment's packages included
	Wheels   []layer.Wheel     `json:"wheels,omitempty"`   // what of that the environment does not have
	Conflict string            `json:"conflict,omitempty"` // not "": there is no solution, and why
	Notes    []string          `json:"notes,omitempty"`    // what a person should know about it
	Built    string            `json:"built,omitempty"`    // folder with those that were built here
}

const (
	planVersion   = "1"                 // raised when plans are made differently
	planFresh     = 24 * time.Hour      // while newer versions are not looked for
	pinnedFresh   = 30 * 24 * time.Hour // the same, where all that was asked for are exact versions
	conflictFresh = time.Hour
	planKept      = 90 * 24 * time.Hour
)

func (p plan) fresh(q question, now time.Time) bool {
	limit := planFresh
	switch {
	case p.Conflict != "":
		limit = conflictFresh
	case !slices.ContainsFunc(q.New, func(text string) bool {
		r, err := require.Parse(text)
		_, exact := r.Pin()
		return err != nil || !exact
	}):
		limit = pinnedFresh
	}
	age := now.Sub(p.Made)
	return age >= 0 && age < limit
}

// key names a question and all else that its answer depends on.
func (i *Installer) key(q question) string {
	q.New, q.Old = slices.Sorted(slices.Values(q.New)), slices.Sorted(slices.Values(q.Old))
	text, err := json.Marshal(q)
	if err != nil {
		panic(err) // texts and maps of texts cannot fail
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n%s\n", planVersion, i.options.Env.Key, runtime.GOARCH, i.sources, text)
	return hex.EncodeToString(h.Sum(nil))[:40]
}

func (i *Installer) planPath(key string) string {
	return filepath.Join(i.dir, "plans", key+".json")
}

func (i *Installer) recall(key string) (plan, bool) {
	text, err := os.ReadFile(i.planPath(key))
	if err != nil {
		return plan{}, false
	}
	var p plan
	if json.Unmarshal(text, &p) != nil || p.Made.IsZero() {
		return plan{}, false
	}
	return p, true
}

var errUnknown = errors.New("the answer is not known")

// known answers a question from what is remembered, or with errUnknown.
func (i *Installer) known(q question) (plan, error) {
	p, ok := i.recall(i.key(q))
	if !ok || !i.options.Policy.Offline && !p.fresh(q, i.now()) {
		return plan{}, errUnknown
	}
	return p, nil
}

// remember keeps a plan, and once a day forgets those that are very old.
func (i *Installer) remember(key string, p plan) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write down a plan: %w", err)
	}
	if err := writeWhole(i.planPath(key), append(text, '\n')); err != nil {
		return err
	}
	swept := filepath.Join(i.dir, "plans", "swept")
	if info, err := os.Stat(swept); err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(swept))
	if err != nil {
		return fmt.Errorf("look through the plans: %w", err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > planKept {
			_ = os.Remove(filepath.Join(filepath.Dir(swept), entry.Name())) // another process may have been faster
		}
	}
	return writeWhole(swept, nil)
}

// solve answers a question from what is remembered, or by asking; cached says which. A caller with the same question waits for the answer to the first.
// When the index cannot be asked, an old answer does, and note says so. again asks even where the answer is known.
func (i *Installer) solve(ctx context.Context, q question, again bool, told func(installation.Progress)) (p plan, cached bool, note string, err error) {
	key := i.key(q)
	old, known := i.recall(key)
	if known && !again && (i.options.Policy.Offline || old.fresh(q, i.now())) {
		return old, true, "", nil
	}
	unlock, err := locked(ctx, filepath.Join(i.dir, "locks", key[:2]))
	if err != nil {
		return plan{}, false, "", err
	}
	defer unlock()
	if other, ok := i.recall(key); ok && !again && other.fresh(q, i.now()) {
		return other, true, "", nil
	}
	told(installation.Progress{Phase: "resolve"})
	p, note, err = i.resolve(ctx, q)
	if err != nil {
		if known && gateway.IndexFailed(err) && ctx.Err() == nil {
			return old, true, staleNote(err, old.Made), nil
		}
		return plan{}, false, "", err
	}
	return p, false, note, i.remember(key, p)
}

// resolve asks the resolver and chooses the wheels.
func (i *Installer) resolve(ctx context.Context, q question) (p plan, note string, err error) {
	g, err := i.gateway(ctx)
	if err != nil {
		return plan{}, "", err
	}
	s, chosen, err := i.work(ctx, g, q)
	if err != nil {
		return plan{}, "", err
	}
	if name := s.stranded(chosen.old); name != "" {
		why := s.builtForOne(name)
		if _, fixed := q.Pinned["numpy"]; fixed {
			return plan{Made: i.now(), Conflict: why}, "", nil
		}
		q.bounds = append(q.bounds, beforeNumpyTwo)
		if s, chosen, err = i.work(ctx, g, q); err != nil {
			return plan{}, "", err
		}
	}
	if s.Conflict != "" {
		return plan{Made: i.now(), Conflict: s.Conflict}, "", nil
	}
	p = plan{Made: i.now(), Versions: chosen.versions, Wheels: chosen.wheels, Notes: append(i.strained(chosen.versions), chosen.ended...)}
	if chosen.trouble != nil {
		p.Made = chosen.asOf
		note = staleNote(chosen.trouble, chosen.asOf)
	}
	return p, note, nil
}

// work has a question solved and the wheels of the solution chosen.
func (i *Installer) work(ctx context.Context, g *gateway.Gateway, q question) (solution, choice, error) {
	s, err := i.compile(ctx, g, q)
	if err != nil || s.Conflict != "" {
		return s, choice{}, err
	}
	var roots []string
	for _, text := range q.New {
		if r, err := require.Parse(text); err == nil {
			roots = append(roots, r.Name)
		}
	}
	versions := map[string]string{}
	needed := s.closure(roots)
	for name, version := range s.Versions {
		// What an earlier request brought may have had to move as well.
		if moved := q.current(name); needed[name] || moved != "" && moved != version {
			versions[name] = version
		}
	}
	chosen, err := i.choose(ctx, g, versions)
	chosen.versions = versions
	return s, chosen, err
}

func staleNote(err error, asOf time.Time) string {
	return fmt.Sprintf("the package index could not be asked (%s), so its answer of %s was used", headline(err), asOf.UTC().Format(time.DateOnly))
}

// current is the version that a distribution had before the question.
func (q question) current(name string) string {
	if v, ok := q.Prefer[name]; ok {
		return v
	}
	return q.Pinned[name]
}

// headline is what a person is told first of an error.
func headline(err error) string {
	text := err.Error()
	if p, ok := problemOf(err); ok {
		text = p.Message
	}
	return strings.TrimSpace(text)
}
