package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// save saves a session.
func save(t *testing.T, s *session.Live, keep bool) sandbox.Checkpoint {
	t.Helper()
	saved, err := s.Save(t.Context(), t.TempDir(), keep)
	if err != nil {
		t.Fatalf("save: %+v", err)
	}
	return saved
}

// reopen starts a session from an image; it ends with the test.
func reopen(t *testing.T, e sandbox.Engine, image sandbox.Checkpoint, reseed bool) *session.Live {
	t.Helper()
	s, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Checkpoint: image, Reseed: reseed})
	if err != nil {
		t.Fatalf("reopen: %+v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// living is state of every kind that must outlast a save.
const living = `import threading, subprocess, queue, random, numpy, time, asyncio
x = {"a": [1, 2, 3]}
def f(n): return n + len(x["a"])
handle = open("log.txt", "w+"); handle.write("first\n"); handle.flush()
unlinked = open("gone.txt", "w+"); unlinked.write("still here"); unlinked.flush()
import os; os.unlink("gone.txt")
questions, answers = queue.Queue(), queue.Queue()
threading.Thread(target=lambda: [answers.put(questions.get() * 2) for _ in range(100)], daemon=True).start()
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def count():
    n = 0
    while True:
        n += 1
        yield n
counter = count(); next(counter)
random.seed(42); numpy.random.seed(42); random.random()
started = time.monotonic()
`

const stillLiving = `questions.put(21)
handle.write("second\n"); handle.flush(); handle.seek(0); unlinked.seek(0)
child.stdin.write("ping\n"); child.stdin.flush()
print(x, f(1), handle.read().split(), unlinked.read(), answers.get(timeout=20), child.stdout.readline().strip(), next(counter), round(random.random(), 6), round(numpy.random.random(), 6), time.monotonic() >= started)`

const expectedLife = `stdout "{'a': [1, 2, 3]} 4 ['first', 'second'] still here 42 ping 2 0.025011 0.37454 True\n"`

// TestSave lets a session with open files, threads, child processes and generators go on in another sandbox.
func TestSave(t *testing.T) {
	t.Parallel()
	e := newGVisor(t)
	s := open(t, e, sandbox.Limits{})
	runCell(t, s, code(living, "created log.txt 6\nok"))
	image := save(t, s, false)
	if _, err := s.Files(t.Context()); problem.Of(err) == nil || problem.Of(err).Code != "session_closed" {
		t.Errorf("the saved session answers with %v", err)
	}
	s = reopen(t, e, image, false)
	runCell(t, s, code(stillLiving, expectedLife+"\nchanged log.txt 13\nok"))
	// Once more, to see that what was restored can be saved, and kept.
	image = save(t, s, true)
	runCell(t, s, code("x['a'].append(4); open('more.txt', 'w').write('1')\nlen(x['a'])", "result 4\ncreated more.txt 1\nok"))
	other := reopen(t, e, image, false)
	runCell(t, other, code("next(counter), len(x['a'])", "result (3, 3)\nok"))
	runCell(t, s, code("next(counter)", "result 3\nok"))
}

// TestClones looks for anything that two sessions from one image have in common but what was in the image.
func TestClones(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := newGVisor(t)
	mold, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Mold: true})
	if err != nil {
		t.Fatal(err)
	}
	imports := "import random, numpy, uuid, os, tempfile, secrets, ssl, multiprocessing, time, pandas, sklearn.utils, scipy.stats\nrandom.seed(1); numpy.random.seed(1); tempfile.mkstemp(); uuid.uuid1(); inherited = 7"
	execute(t, mold, cell{req: kernel.Request{Code: imports}})
	image := save(t, mold, false)
	const draw = `import json
probe = dict(random=random.random(), numpy=float(numpy.random.random()), uuid1=str(uuid.uuid1()), node=uuid.getnode(), uuid4=str(uuid.uuid4()),
    urandom=os.urandom(8).hex(), temp=tempfile.mkdtemp(), named=tempfile.NamedTemporaryFile().name, secret=secrets.token_hex(8), ssl=ssl.RAND_bytes(8).hex(),
    authkey=bytes(multiprocessing.current_process().authkey).hex(), rng=float(numpy.random.default_rng().random()),
    shuffled=str(random.sample(range(10**6), 5)), sklearn=float(sklearn.utils.check_random_state(None).rand()), scipy=float(scipy.stats.norm.rvs()),
    kernel_uuid=open("/proc/sys/kernel/random/uuid").read() if os.path.exists("/proc/sys/kernel/random/uuid") else os.urandom(4).hex(),
    child=os.popen("python -c 'import random; print(random.random())'").read())
assert inherited == 7 and abs(time.time() - os.stat(probe["temp"]).st_mtime) < 5
print(json.dumps(probe))`
	seen := map[string]bool{}
	for range 3 {
		s := reopen(t, e, image, true)
		r := execute(t, s, cell{req: kernel.Request{Code: draw}})
		text := r.text["stdout"].String()
		if r.done.Outcome != kernel.OutcomeOK || !strings.HasPrefix(text, "{") {
			t.Fatalf("got %v", r.events)
		}
		var drawn map[string]any
		if err := json.Unmarshal([]byte(text), &drawn); err != nil {
			t.Fatal(err)
		}
		for name, value := range drawn {
			part := fmt.Sprint(name, " = ", value)
			if seen[part] {
				t.Errorf("two sessions share %s", part)
			}
			seen[part] = true
		}
		runCell(t, s, code("open('mine.txt', 'w').write('x'); len(os.listdir('.'))", "result 1\ncreated mine.txt 1\nok"))
	}
}

// TestImageLimits gives sessions from one image limits of their own.
func TestImageLimits(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	e := newGVisor(t)
	mold, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Mold: true})
	if err != nil {
		t.Fatal(err)
	}
	execute(t, mold, cell{req: kernel.Request{Code: "import numpy"}})
	image := save(t, mold, false)
	s, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Checkpoint: image, Reseed: true, Limits: sandbox.Limits{Memory: 512 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	runCell(t, s, code("[l.split()[1] for l in open('/proc/meminfo') if 'MemTotal' in l]", "result ['524288']\nok"))
	r := execute(t, s, cell{req: kernel.Request{Code: "b = numpy.zeros(10 << 30, dtype='u1')"}})
	if r.done.Outcome != kernel.OutcomeError {
		t.Errorf("10 GiB of address space: %v", r.done)
	}
	r = execute(t, s, cell{req: kernel.Request{Code: "b = numpy.ones(900 << 20, dtype='u1'); b.sum()"}})
	if r.done.Outcome != kernel.OutcomeMemory {
		t.Errorf("900 MB in a sandbox of 512 MiB: %v", r.done)
	}
}

// TestSaveRefuses says why something cannot be saved, and keeps the session.
func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		s := open(t, newLocal(t), sandbox.Limits{})
		if _, err := s.Save(t.Context(), t.TempDir(), true); problem.Of(err) == nil || problem.Of(err).Code != "engine_cannot_save" {
			t.Errorf("local: %v", err)
		}
		runCell(t, s, code("1", "result 1\nok"))
	})
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		s := open(t, newGVisor(t), sandbox.Limits{})
		runCell(t, s, code("x = 1", "ok"))
		if _, err := s.Save(t.Context(), t.TempDir()+"/missing", true); err == nil {
			t.Error("saved into a folder that is not there")
		}
		runCell(t, s, code("x", "result 1\nok"))
	})
}

// TestLostImage starts again from the image when a sandbox is lost, and says so once.
func TestLostImage(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	s := open(t, e, sandbox.Limits{})
	runCell(t, s, code("x = 'saved'", "ok"))
	s = reopen(t, e, save(t, s, false), false)
	runCell(t, s, code("x = 'later'", "ok"))
	sentries := sandboxtest.Processes(t, "runsc-sandbox", state)
	if len(sentries) != 1 {
		t.Fatalf("sentries: %v", sentries)
	}
	if err := syscall.Kill(sentries[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Lost()
	runCell(t, s, code("x", "kernel.Rollback\nresult 'saved'\nok"))
	runCell(t, s, code("x", "result 'saved'\nok"))
}

// TestPreparedBefore has sessions go on in a sandbox that waits for them, and in one of their own where that one has ended or none waits.
func TestPreparedBefore(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	e := gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)})
	s := open(t, e, sandbox.Limits{})
	runCell(t, s, code("x = 6 * 7;", "ok"))
	image := save(t, s, true)
	o := session.Options{Engine: e, Env: standard(t), Checkpoint: image}
	for name, prepare := range map[string]func(*testing.T, sandbox.Spec) sandbox.Prepared{
		"none": func(*testing.T, sandbox.Spec) sandbox.Prepared { return nil },
		"one":  func(t *testing.T, spec sandbox.Spec) sandbox.Prepared { return prepared(t, e, spec) },
		"one that has ended": func(t *testing.T, spec sandbox.Spec) sandbox.Prepared {
			p := prepared(t, e, spec)
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			return p
		},
	} {
		spec := o.SandboxSpec()
		spec.ID = sandbox.NewID("sbx")
		waiting := prepare(t, spec)
		o.Prepared = func(context.Context, sandbox.Spec) sandbox.Prepared { return waiting }
		other, err := session.Open(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %+v", name, err)
		}
		runCell(t, other, code("x", "result 42\nok"))
		boxes, err := filepath.Glob(filepath.Join(state, "sbx-*"))
		if err != nil || len(boxes) != 2 || slices.Contains(boxes, filepath.Join(state, spec.ID)) != (name == "one") {
			t.Errorf("%s: there are these sandboxes beside %s: %q, %v", name, spec.ID, boxes, err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

func prepared(t *testing.T, e sandbox.Engine, spec sandbox.Spec) sandbox.Prepared {
	t.Helper()
	saver, err := sandbox.SaverOf(e)
	if err != nil {
		t.Fatal(err)
	}
	p, err := saver.Prepare(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
