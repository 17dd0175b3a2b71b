// Package template makes the checkpoint that sessions start from: an interpreter of the standard environment that has
// imported what code for data questions begins with and has drawn its first plot. It is made once for each snapshot.Key, everything that it depends on, and found again by
// that; a damaged one is reported and made anew.
package template

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/machine/wire"
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
)

//go:embed warm.py
var warmUp string

// firstCells is what most sessions do first, as far as its pages are worth being each session's own.
const firstCells = `try:
    import pandas as pd
except ImportError:  # the minimal environment
    pd = None
pd and pd.DataFrame({"a": [1, 2]}).sum()`

// warmUpTimeout bounds the code that warms an interpreter up; loaded machines take tens of seconds.
const warmUpTimeout = 3 * time.Minute

// Options are what a template is made of and kept in.
type Options struct {
	Dir      string // folder of the templates; made when missing
	Ahead    string // folder of templates that is only read, from which one that is wanted is copied; "": none
	Engine   sandbox.Saver
	Env      *pyenv.Environment
	Limits   sandbox.Limits
	Packages session.Packages // what its sessions install packages with; nil: they install none
	Share    bool             // whether its sessions have its memory in common
	Progress io.Writer        // called when a template is made; nil: nothing is called
}

// KeyOf returns what a snapshot of a session with these options depends on.
func KeyOf(o Options) (snapshot.Key, error) {
	fingerprint, err := o.Engine.Fingerprint()
	if err != nil {
		return snapshot.Key{}, fmt.Errorf("identify the engine: %w", err)
	}
	return snapshot.Key{Engine: fingerprint, Environment: o.Env.Key, Guest: strconv.Itoa(wire.Version), Limits: snapshot.LimitsOf(o.Limits), Layers: o.Packages != nil}, nil
}

// Ensure returns the template that o asks for, and makes it when it is missing, damaged or does not fit any more. Processes
// that ask at the same time make it once.
func Ensure(ctx context.Context, o Options) (*snapshot.Snapshot, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	o.Share = o.Share && o.Limits.System == 0 // a sandbox with a root has no memory in common with others
	key, err := KeyOf(o)
	if err != nil {
		return nil, err
	}
	cove, err := o.Engine.Build()
	if err != nil {
		return nil, fmt.Errorf("identify cove: %w", err)
	}
	dir := filepath.Join(o.Dir, name(o, key, cove))
	if s, err := snapshot.Open(ctx, dir); err == nil {
		return s, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, problem.New(problem.DataFolderUnusable, "cove cannot write to "+o.Dir).
			WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
	}
	lock, err := lockFolder(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	// Another process may have made it while this one waited.
	s, err := snapshot.Open(ctx, dir)
	if err == nil {
		return s, nil
	}
	p := problem.Of(err)
	if p.Kind == problem.Canceled {
		return nil, err
	}
	if !problem.Has(p, problem.SnapshotMissing) {
		_, _ = fmt.Fprintf(o.Progress, "The warm interpreter cannot be used (%s) and is made again.\n", p.Message)
		if err := snapshot.Remove(dir); err != nil {
			return nil, err
		}
	}
	if s := take(ctx, o.Ahead, dir); s != nil {
		return s, nil
	}
	if s, err = build(ctx, o, key, dir); !errors.Is(err, errUnshared) || ctx.Err() != nil {
		return s, err
	}
	_, _ = fmt.Fprintf(o.Progress, "Each session gets a copy of the warm interpreter's memory, because sharing it failed: %s\n", problem.Of(err).Message)
	o.Share = false
	return build(ctx, o, key, dir)
}

// take copies the template that belongs into dir from the folder ahead; nil when it is not there, or cannot be copied: then it is made.
func take(ctx context.Context, ahead, dir string) *snapshot.Snapshot {
	if ahead == "" {
		return nil
	}
	s, err := snapshot.Import(ctx, filepath.Join(ahead, filepath.Base(dir)), dir)
	if err != nil {
		return nil
	}
	return s
}

// errUnshared says that the memory of a template could not be made memory that sessions have in common, without which it can still be made.
var errUnshared = errors.New("make the warm interpreter")

// Remove deletes a template that turned out not to work, so that Ensure makes it again.
func Remove(s *snapshot.Snapshot) error { return snapshot.Remove(s.Dir) }

// name returns the folder of the template with that key. Unlike the key it contains the build of cove: a session that another build saved can go on, but a new
// session gets the guest and the driver of this build.
func name(o Options, key snapshot.Key, cove string) string {
	text, _ := json.Marshal(key) // strings and numbers
	sum := sha256.Sum256(append(text, warmUp+firstCells+cove+strconv.FormatBool(o.Share)+strconv.FormatBool(o.Env.Plain)...))
	return o.Env.Family() + "-" + hex.EncodeToString(sum[:8])
}

func build(ctx context.Context, o Options, key snapshot.Key, dir string) (*snapshot.Snapshot, error) {
	began := time.Now()
	if o.Env.Image == nil {
		_, _ = fmt.Fprintf(o.Progress, "Preparing a warm interpreter from the %s environment, once (some seconds) ...\n", o.Env.Set)
	} else {
		_, _ = fmt.Fprintln(o.Progress, "Preparing a warm interpreter from the image, once (some seconds) ...")
	}
	mold, err := session.Open(ctx, session.Options{Engine: o.Engine, Env: o.Env, Limits: o.Limits, Packages: o.Packages, Mold: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = mold.Close(context.WithoutCancel(ctx)) }()
	if err := Warm(ctx, mold); err != nil {
		return nil, err
	}
	if o.Share {
		if err := mold.ShareMemory(ctx, func(ctx context.Context) error { return rehearse(ctx, mold) }); err != nil {
			return nil, fmt.Errorf("%w: %w", errUnshared, err)
		}
		if err := mold.Rehearse(ctx); err != nil {
			return nil, err
		}
	}
	s, err := snapshot.Create(ctx, dir, snapshot.Manifest{ID: filepath.Base(dir), Created: time.Now(), Key: key}, func(ctx context.Context, folder string) (sandbox.Checkpoint, error) {
		return mold.Save(ctx, folder, false)
	})
	if err != nil {
		return nil, fmt.Errorf("make the warm interpreter: %w", err)
	}
	prune(o, dir)
	_, _ = fmt.Fprintf(o.Progress, "Ready: %s (%d MB, %.1f s).\n", s.Dir, s.Size()>>20, time.Since(began).Seconds())
	return s, nil
}

// Warm runs the code that warms an interpreter up and removes its traces: only the imported modules stay.
func Warm(ctx context.Context, mold *session.Live) error {
	for e, err := range mold.Execute(ctx, kernel.Request{Mode: kernel.Script, Filename: "warm.py", Code: warmUp, Timeout: warmUpTimeout}) {
		if err != nil {
			return fmt.Errorf("warm the interpreter up: %w", err)
		}
		switch e := e.(type) {
		case kernel.Error:
			return problem.New(problem.WarmUpFailed, "the interpreter could not be warmed up").
				WithCause(errors.New(strings.Join(e.Traceback, "\n")))
		case kernel.Done:
			if e.Outcome != kernel.OutcomeOK {
				return problem.New(problem.WarmUpFailed, "the interpreter could not be warmed up: "+string(e.Outcome)+" "+e.Message)
			}
		}
	}
	if err := mold.Rehearse(ctx); err != nil {
		return err
	}
	return mold.Trim(ctx)
}

// rehearse does in an interpreter what most sessions do first.
func rehearse(ctx context.Context, mold *session.Live) error {
	if err := mold.RehearseResume(ctx); err != nil {
		return err
	}
	if err := mold.Rehearse(ctx); err != nil {
		return err
	}
	return RehearseFirst(ctx, mold)
}

// RehearseFirst runs the operations of packages in a session that most sessions begin with, and discards their effects. In a session that has just been restored the first of
// them takes several times as long as later ones.
func RehearseFirst(ctx context.Context, s *session.Live) error {
	return s.RehearseCode(ctx, firstCells)
}

// spareTemplates is how many older templates of an environment set are kept, for other builds of cove and other limits.
const spareTemplates = 2

// prune removes the oldest other templates of the same environment set. A process that has just found one of them makes its own
// again.
func prune(o Options, keep string) {
	type old struct {
		dir  string
		made time.Time
	}
	var others []old
	entries, _ := os.ReadDir(o.Dir)
	for _, e := range entries {
		dir := filepath.Join(o.Dir, e.Name())
		info, err := os.Stat(dir)
		if err == nil && dir != keep && strings.HasPrefix(e.Name(), o.Env.Family()+"-") {
			others = append(others, old{dir, info.ModTime()})
		}
	}
	slices.SortFunc(others, func(a, b old) int { return b.made.Compare(a.made) })
	for _, one := range others[min(spareTemplates, len(others)):] {
		_ = snapshot.Remove(one.dir) // what cannot be removed now is tried again next time
	}
}

// lockFolder waits until this process alone may make templates.
func lockFolder(ctx context.Context, o Options) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(o.Dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the templates: %w", err)
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the templates: %w", err), f.Close())
		}
		if !told {
			_, _ = fmt.Fprintln(o.Progress, "Another cove is preparing the warm interpreter: waiting for it.")
			told = true
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(problem.New(problem.GivenUp, "canceled").WithCause(ctx.Err()), f.Close())
		}
	}
}
