package template_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/sharedmem"
	"cove/internal/machine/snapshot"
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
	"cove/internal/testkit/testneeds"
)

// workshop makes templates whose sessions share their memory, and sessions.
type workshop struct {
	t       *testing.T
	options template.Options
	shared  string // the folder of the heaps
	said    *lines
}

func newWorkshop(t *testing.T, set pyenv.Set) *workshop {
	w := &workshop{t: t, shared: filepath.Join(t.TempDir(), "shared"), said: &lines{}}
	e := gvisor.New(gvisor.Options{State: t.TempDir(), Shared: w.shared, Executable: sandboxtest.Binary(t)})
	w.options = template.Options{Dir: filepath.Join(t.TempDir(), "templates"), Engine: e, Env: testneeds.Environment(t, set), Share: true, Progress: w.said}
	return w
}

func (w *workshop) template() *snapshot.Snapshot {
	w.t.Helper()
	s := ensure(w.t, w.options)
	if strings.Contains(w.said.String(), "sharing it failed") {
		w.t.Fatal(w.said)
	}
	return s
}

func (w *workshop) open(from sandbox.Checkpoint, pids map[string]int) *session.Live {
	w.t.Helper()
	s, err := session.Open(w.t.Context(), session.Options{Engine: w.options.Engine, Env: w.options.Env, Checkpoint: from, Kernels: pids, Reseed: pids == nil})
	if err != nil {
		w.t.Fatalf("open: %+v", err)
	}
	w.t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// run returns the result of code and how it ended.
func (w *workshop) run(s *session.Live, code string) (result string, done kernel.Done) {
	w.t.Helper()
	for e, err := range s.Execute(w.t.Context(), kernel.Request{Code: code}) {
		if err != nil {
			w.t.Fatalf("%s: %+v", code, err)
		}
		switch e := e.(type) {
		case kernel.Result:
			result, _ = e.Data["text/plain"].(string)
		case kernel.Error:
			result = strings.Join(e.Traceback, "\n")
		case kernel.Done:
			done = e
		}
	}
	return result, done
}

func (w *workshop) want(s *session.Live, code, want string) {
	w.t.Helper()
	if got, done := w.run(s, code); got != want || done.Outcome != kernel.OutcomeOK {
		w.t.Errorf("%s is %s (%s %s), want %s", code, got, done.Outcome, done.Message, want)
	}
}

// save writes a session to files as a new snapshot, and returns what the next one starts from.
func (w *workshop) save(s *session.Live, keep bool) (*snapshot.Snapshot, map[string]int) {
	w.t.Helper()
	pids := s.KernelPIDs()
	made, err := snapshot.Create(w.t.Context(), filepath.Join(w.t.TempDir(), "snp"), snapshot.Manifest{}, func(ctx context.Context, folder string) (sandbox.Checkpoint, error) {
		return s.Save(ctx, folder, keep)
	})
	if err != nil {
		w.t.Fatalf("save: %+v", err)
	}
	return made, pids
}

// heaps returns the files from which a snapshot's sessions have memory.
func (w *workshop) heaps(of *snapshot.Snapshot) (paths []string) {
	w.t.Helper()
	folder, _ := of.Checkpoint().HostFolder()
	names, err := sharedmem.Attached(folder)
	if err != nil || len(names) < 2 {
		w.t.Fatalf("the snapshot has these heaps: %q, %v", names, err)
	}
	for _, name := range names {
		paths = append(paths, filepath.Join(w.shared, name))
	}
	return paths
}

// heap returns one of them.
func (w *workshop) heap(of *snapshot.Snapshot) string {
	w.t.Helper()
	return w.heaps(of)[0]
}

// TestMemoryIsShared: sessions that have most of their memory from one file have values of their own all the same, also when they were saved and copied, copies of copies too.
func TestMemoryIsShared(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, pyenv.Minimal)
	tmpl := w.template()
	alone := w.options
	alone.Share = false
	if whole := ensure(t, alone); tmpl.Size()*2 > whole.Size() {
		t.Errorf("the snapshot has %d bytes, and %d without anything shared", tmpl.Size(), whole.Size())
	}
	var before [][]byte
	for _, file := range w.heaps(tmpl) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, content)
	}
	var group sync.WaitGroup
	for n := range 3 {
		group.Go(func() {
			secret := fmt.Sprintf("%d", 1000+n)
			s := w.open(tmpl.Checkpoint(), nil)
			w.want(s, "import sys, gc, json; secret = "+secret+"; words = [str(i) for i in range(20000)]; gc.collect(); secret", secret)
			for generation := range 3 {
				made, pids := w.save(s, generation == 0) // the first one goes on as well
				if made.Size() > tmpl.Size()*3 {
					t.Errorf("a snapshot of generation %d has %d bytes, the template %d", generation, made.Size(), tmpl.Size())
				}
				clone, err := made.Clone(t.Context(), filepath.Join(t.TempDir(), "clone"), "clone")
				if err != nil {
					t.Errorf("clone: %+v", err)
					return
				}
				if generation == 0 {
					w.want(s, "secret, sum(map(int, words))", "("+secret+", 199990000)")
				}
				s = w.open(clone.Checkpoint(), pids)
				w.want(s, "secret, len(words), sum(map(int, words))", "("+secret+", 20000, 199990000)")
			}
		})
	}
	group.Wait()
	for i, file := range w.heaps(tmpl) {
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before[i]) {
			t.Errorf("%s was written to: %v", file, err)
		}
	}
}

// TestSharedMemoryOutlivesItsTemplate: a session goes on, is saved and comes back after its template was removed with the file.
func TestSharedMemoryOutlivesItsTemplate(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, pyenv.Minimal)
	tmpl := w.template()
	file := w.heap(tmpl)
	s := w.open(tmpl.Checkpoint(), nil)
	w.want(s, "x = 6 * 7; x", "42")
	if err := template.Remove(tmpl); err != nil {
		t.Fatal(err)
	}
	sharedmem.Sweep(w.shared, 0)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the file of no snapshot is still there: %v", err)
	}
	w.want(s, "x", "42")
	made, pids := w.save(s, false)
	w.want(w.open(made.Checkpoint(), pids), "x, sum(range(10))", "(42, 45)")
	sharedmem.Sweep(w.shared, 0)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file of a snapshot is gone: %v", err)
	}
}

// TestSharedMemoryChanged: when somebody changes the file, sessions that use it end and say so, show nothing that was computed with it, and the template is made again.
func TestSharedMemoryChanged(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, harm := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 1<<20) },
		"flipped": func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			all, err := os.ReadFile(path)
			for i := range all {
				all[i] ^= 0xff
			}
			_, werr := f.WriteAt(all, 0)
			return errors.Join(err, werr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t, pyenv.Minimal)
			tmpl := w.template()
			s := w.open(tmpl.Checkpoint(), nil)
			w.want(s, "x = 6 * 7; x", "42")
			file := w.heap(tmpl)
			if err := errors.Join(os.Chmod(file, 0o600), harm(file)); err != nil {
				t.Fatal(err)
			}
			result, done := w.run(s, "import decimal, fractions; x, decimal.Decimal(1) / 7")
			if result != "" || done.Outcome != kernel.OutcomeSandboxDied || done.Lost != kernel.LostSession || !strings.Contains(done.Message, "was changed on the disk") {
				t.Errorf("it ended with %q, %+v", result, done)
			}
			told := len(w.said.String())
			again := w.template()
			if news := w.said.String()[told:]; !strings.Contains(news, "is made again") {
				t.Errorf("said %q", news)
			}
			w.want(w.open(again.Checkpoint(), nil), "6 * 7", "42")
		})
	}
}

// TestSharedMemoryOfThreads: threads may be doing anything while the memory is replaced below them, and go on.
func TestSharedMemoryOfThreads(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorkshop(t, pyenv.Standard)
	mold, err := session.Open(t.Context(), session.Options{Engine: w.options.Engine, Env: w.options.Env, Mold: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mold.Close(context.Background()) })
	// In a module, since a rehearsal takes names back.
	const threads = `
import sys, types
sys.modules["workers"] = types.ModuleType("workers")
exec("""
import threading, time, hashlib, zlib
import numpy as np
import pyarrow as pa, pyarrow.compute as pc
counts, faults, go = [0] * 6, [], True
def work(n):
    a = np.arange(200.0 * 200).reshape(200, 200) / 1e4
    want = (a @ a).sum()
    table = pa.table({"a": list(range(5000))})
    text = bytes(range(256)) * 400
    digest = hashlib.sha256(text).hexdigest()
    while go:
        if n == 0 and (a @ a).sum() != want: faults.append("BLAS")
        if n == 1 and pc.sum(table["a"]).as_py() != 12497500: faults.append("Arrow")
        if n == 2 and zlib.decompress(zlib.compress(text)) != text: faults.append("zlib")
        if n == 3 and hashlib.sha256(text).hexdigest() != digest: faults.append("hash")
        if n == 4 and sum({i: str(i) for i in range(500)}) != 124750: faults.append("objects")
        if n == 5: time.sleep(0.01)
        counts[n] += 1
pool = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
for one in pool: one.start()
while not all(counts): time.sleep(0.01)
""", sys.modules["workers"].__dict__)`
	if got, done := w.run(mold, threads); done.Outcome != kernel.OutcomeOK {
		t.Fatalf("%s: %+v", got, done)
	}
	if err := mold.ShareMemory(t.Context(), func(ctx context.Context) error { return mold.Rehearse(ctx) }); err != nil {
		t.Fatalf("%+v", err)
	}
	const check = `
import time, workers as w
before = list(w.counts)
while any(now < was + 3 for now, was in zip(w.counts, before)) and not w.faults and all(one.is_alive() for one in w.pool): time.sleep(0.01)
w.faults, [one.is_alive() for one in w.pool].count(True)`
	made, pids := w.save(mold, false)
	for range 2 {
		s := w.open(made.Checkpoint(), pids)
		deadline := time.Now().Add(5 * time.Minute)
		got, done := w.run(s, check)
		if got != "([], 6)" || done.Outcome != kernel.OutcomeOK || time.Now().After(deadline) {
			t.Errorf("threads of a restored session: %s, %+v", got, done)
		}
	}
}
