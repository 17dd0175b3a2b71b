package deps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

// lock is a file of exact versions with the hashes of all their wheels, in the words of pip's files of requirements.
type lock struct {
	machine string // what it was made for
	entries []entry
}

type entry struct {
	name, version string
	hashes        []string // SHA-256, hex
}

const machinePrefix = "# environment: "

var (
	lockPin = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)==([A-Za-z0-9.!+_-]+)$`)
	})
	lockHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--hash=sha256:([0-9a-f]{64})$`) })
)

// String is the lock as it is written to its file.
func (l *lock) String() string {
	var b strings.Builder
	b.WriteString("# Written by `cove packages`: what " + StandingFile + " lists, with all that it needs. Do not edit.\n" + machinePrefix + l.machine + "\n")
	for _, e := range l.entries {
		b.WriteString(e.name + "==" + e.version)
		for _, hash := range e.hashes {
			b.WriteString(" \\\n    --hash=sha256:" + hash)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// readLock returns nil where there is no lock.
func readLock(path string) (*lock, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	invalid := func(why error) error {
		return problem.New(problem.LockInvalid, path+" is not a lock that cove wrote").WithHint("run \"cove packages lock\" to write it anew").WithCause(why)
	}
	if err != nil {
		return nil, invalid(err)
	}
	l := &lock{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if machine, ok := strings.CutPrefix(line, machinePrefix); ok {
			l.machine = machine
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		m := lockPin().FindStringSubmatch(words[0])
		if m == nil {
			return nil, invalid(fmt.Errorf("unexpected line %q", line))
		}
		e := entry{name: require.Normalize(m[1]), version: m[2]}
		for _, word := range words[1:] {
			hash := lockHash().FindStringSubmatch(word)
			if hash == nil {
				return nil, invalid(fmt.Errorf("unexpected %q", word))
			}
			e.hashes = append(e.hashes, hash[1])
		}
		l.entries = append(l.entries, e)
	}
	return l, nil
}

// machine says what a lock is for: the closure can be another one for another Python or processor.
func (i *Installer) machine() string {
	return fmt.Sprintf("Python %s, linux, %s", i.python, runtime.GOARCH)
}

// unfit says why a lock cannot be gone by, as a clause, or "".
func (i *Installer) unfit(s *Standing) (string, error) {
	if s.lock == nil {
		return "is not there", nil
	}
	if s.lock.machine != i.machine() {
		return "is for " + s.lock.machine, nil
	}
	for _, r := range s.Requirements {
		version, there := s.Locked[r.Name]
		if r.Marker == "" && (!there || !r.Allows(version)) {
			return "does not have " + r.String(), nil
		}
	}
	for _, e := range s.lock.entries {
		if len(e.hashes) == 0 && i.options.Env.Packages[e.name] != e.version {
			return "has " + e.name + ", which has no wheel", nil
		}
	}
	firm, err := i.kernel()
	if err != nil {
		return "", err
	}
	for _, name := range sortedKeys(firm) {
		if version, there := s.Locked[name]; there && version != firm[name] {
			return fmt.Sprintf("has %s %s, and the interpreter runs on %s", name, version, firm[name]), nil
		}
	}
	return "", nil
}

// lockOf returns the lock of versions, with the hashes of all their wheels, for every machine.
func (i *Installer) lockOf(ctx context.Context, versions map[string]string) (*lock, error) {
	l := &lock{machine: i.machine()}
	for _, name := range sortedKeys(versions) {
		e := entry{name: name, version: versions[name]}
		hashes, err := i.hashesOf(ctx, name, versions[name])
		if err != nil {
			return nil, err
		}
		e.hashes = hashes
		l.entries = append(l.entries, e)
	}
	return l, nil
}

// hashesOf returns none for what was built here, which has a hash of its own each time.
func (i *Installer) hashesOf(ctx context.Context, name, version string) ([]string, error) {
	g, err := i.gateway(ctx)
	if err != nil {
		return nil, err
	}
	project, err := g.Project(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	var hashes []string
	for _, f := range project.Files {
		if f.Wheel && f.SHA256 != "" && require.Compare(f.Version, version) == 0 {
			hashes = append(hashes, f.SHA256)
		}
	}
	slices.Sort(hashes)
	return slices.Compact(hashes), nil
}

// standing installs requirements where nothing runs yet, and returns the versions of their closure. again asks the index even if the answer is known.
func (i *Installer) standing(ctx context.Context, requirements []require.Requirement, prefer map[string]string, again bool, told func(installation.Progress)) (installation.Provision, map[string]string, error) {
	var wants []want
	for _, r := range requirements {
		wants = append(wants, want{Requirement: r, How: byPerson, Reason: byPerson})
	}
	j := installOptions{nothing: true, prefer: prefer, again: again}
	p, err := i.install(ctx, wants, j, told)
	return p, p.Versions, err
}

// fromLock installs exactly what a lock says.
func (i *Installer) fromLock(ctx context.Context, s *Standing, told func(installation.Progress)) (installation.Provision, error) {
	begun := time.Now()
	ctx, told, cancel := i.bounded(ctx, told)
	defer cancel()
	p, cached, err := i.lockedPlan(ctx, s, told)
	if err != nil {
		return installation.Provision{}, i.orEnded(ctx, err)
	}
	o := outcome{plan: p, cached: cached, scope: alone}
	for _, r := range s.Requirements {
		o.wants = append(o.wants, want{Requirement: r, How: byPerson, Reason: byPerson})
	}
	out, err := i.make(ctx, o, installation.Provision{Cached: cached}, told)
	out.Seconds = time.Since(begun).Seconds()
	return out, i.orEnded(ctx, err)
}

func (i *Installer) lockedPlan(ctx context.Context, s *Standing, told func(installation.Progress)) (p plan, cached bool, err error) {
	digest := sha256.Sum256([]byte(s.lock.String()))
	key := i.key(question{New: []string{"lock:" + hex.EncodeToString(digest[:])}})
	if p, ok := i.recall(key); ok {
		return p, true, nil
	}
	told(installation.Progress{Phase: "resolve"})
	g, err := i.gateway(ctx)
	if err != nil {
		return plan{}, false, err
	}
	chosen, err := i.choose(ctx, g, s.Locked)
	if err != nil {
		return plan{}, false, err
	}
	p = plan{Made: i.now(), Versions: maps.Clone(s.Locked), Wheels: chosen.wheels}
	for _, w := range p.Wheels {
		at := slices.IndexFunc(s.lock.entries, func(e entry) bool { return e.name == w.Name })
		if hashes := s.lock.entries[at].hashes; !slices.Contains(hashes, w.SHA256) {
			return plan{}, false, problem.New(problem.PackageHashMismatch, fmt.Sprintf("%s %s on the index is not the one that %s names", w.Name, w.Version, filepath.Join(s.Dir, LockFile))).
				WithHint("find out why it changed; \"cove packages lock\" takes the one that is there now").WithCause(fmt.Errorf("%s has the SHA-256 %s", w.File, w.SHA256))
		}
	}
	return p, false, i.remember(key, p)
}
