package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
	"cove/internal/python/deps/require"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

func in(name, code, want string) cell {
	return cell{req: kernel.Request{Code: code, Kernel: name}, want: want}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if p := problem.Of(err); p == nil && code != "" || p != nil && p.Code != code {
		t.Errorf("%s: got %v, want %q", what, err, code)
	}
}

// TestKernels has several kernels in one session: variables of their own, and one workspace.
func TestKernels(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		began := time.Now()
		wantCode(t, "start", s.StartKernel(t.Context(), "second"), "")
		t.Logf("a further kernel took %v", time.Since(began).Round(time.Millisecond))
		runCell(t, s, in("", "x = 'first'; open('shared.txt', 'w').write('1');", "created shared.txt 1\nok"))
		runCell(t, s, in("second", "'x' in globals(), open('shared.txt').read()", "result (False, '1')\nok"))
		runCell(t, s, in("second", "x = 'second'", "ok"))
		runCell(t, s, in("main", "x", "result 'first'\nok"))
		wantCode(t, "exists", s.StartKernel(t.Context(), "second"), "kernel_exists")
		wantCode(t, "main exists", s.StartKernel(t.Context(), "main"), "kernel_exists")
		for _, name := range []string{"", "a b", "../x", "-x", strings.Repeat("n", 64), "x\n"} {
			wantCode(t, fmt.Sprintf("%q", name), s.StartKernel(t.Context(), name), "kernel_name")
		}
		wantCode(t, "main stops", s.StopKernel(t.Context(), ""), "kernel_needed")
		wantCode(t, "unknown", s.RestartKernel(t.Context(), "third"), "kernel_not_found")
		for _, err := range s.Execute(t.Context(), kernel.Request{Code: "1", Kernel: "third"}) {
			wantCode(t, "unknown", err, "kernel_not_found")
		}
		// Death of one leaves the others alone; it comes back with the next execution.
		if r := execute(t, s, in("second", "import os; os._exit(3)", "")); r.done.Lost != kernel.LostKernel {
			t.Errorf("ended with %+v", r.done)
		}
		runCell(t, s, in("second", "'x' in globals()", "result False\nok"))
		runCell(t, s, in("", "x", "result 'first'\nok"))
		wantCode(t, "stop", s.StopKernel(t.Context(), "second"), "")
		if names := s.KernelNames(); !slices.Equal(names, []string{"main"}) {
			t.Errorf("there are %v", names)
		}
	})
}

// TestKernelsRunAtOnce has one kernel answer what another waits for, and ends one while it runs.
func TestKernelsRunAtOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		wantCode(t, "start", s.StartKernel(t.Context(), "b"), "")
		var both sync.WaitGroup
		both.Go(func() {
			runCell(t, s, cell{req: kernel.Request{Code: "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('went')", Timeout: time.Minute},
				like: `stdout "went\\n"` + "\n(.*\n)?ok"})
		})
		runCell(t, s, cell{req: kernel.Request{Code: "open('go', 'w').close()", Kernel: "b"}, like: "(created go 0\n)?ok"})
		both.Wait()

		running, ended := make(chan bool), make(chan kernel.Done)
		go func() {
			var done kernel.Done
			for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "print('on', flush=True); import time; time.sleep(600)", Kernel: "b"}) {
				if err != nil {
					t.Error(err)
				}
				if _, ok := ev.(kernel.Stream); ok {
					close(running)
				}
				if d, ok := ev.(kernel.Done); ok {
					done = d
				}
			}
			ended <- done
		}()
		<-running
		wantCode(t, "restart", s.RestartKernel(t.Context(), "b"), "")
		if done := <-ended; done.Outcome != kernel.OutcomeInterrupted || done.Lost != kernel.LostKernel {
			t.Errorf("the code of a kernel that was restarted ended with %+v", done)
		}
		runCell(t, s, in("b", "1 + 1", "result 2\nok"))
	})
}

func TestKernelLimit(t *testing.T) {
	t.Parallel()
	s := open(t, newLocal(t), sandbox.Limits{})
	var starting sync.WaitGroup
	errs := make(chan error, session.MaxKernels+3)
	for i := range session.MaxKernels + 3 {
		starting.Go(func() { errs <- s.StartKernel(t.Context(), fmt.Sprintf("k%d", i)) })
	}
	starting.Wait()
	close(errs)
	refused := 0
	for err := range errs {
		if err != nil {
			wantCode(t, "one too many", err, "too_many_kernels")
			refused++
		}
	}
	if names := s.KernelNames(); refused != 4 || len(names) != session.MaxKernels || names[0] != "main" {
		t.Errorf("%d were refused, there are %v", refused, names)
	}
}

// TestSavedKernels brings several kernels back from an image, and from a sandbox that was left.
func TestSavedKernels(t *testing.T) {
	t.Parallel()
	e := newGVisor(t)
	s := open(t, e, sandbox.Limits{})
	for _, name := range []string{"b", "dead", "gone"} {
		wantCode(t, name, s.StartKernel(t.Context(), name), "")
	}
	runCell(t, s, in("", "x = 'in main'", "ok"))
	runCell(t, s, in("b", "x = 'in b'", "ok"))
	runCell(t, s, cell{req: kernel.Request{Code: "import os; os._exit(1)", Kernel: "dead"}, want: "kernel_died 1 lost=kernel"})
	wantCode(t, "stop", s.StopKernel(t.Context(), "gone"), "")
	if !s.Touched() {
		t.Error("nothing is said to have changed")
	}
	image := save(t, s, true)
	if s.Touched() {
		t.Error("there is something to save, which was saved just now")
	}
	runCell(t, s, in("b", "x", "result 'in b'\nok"))
	check := func(t *testing.T, s *session.Live) {
		if names := s.KernelNames(); !slices.Equal(names, []string{"main", "b", "dead"}) {
			t.Errorf("there are %v", names)
		}
		runCell(t, s, in("", "x", "result 'in main'\nok"))
		runCell(t, s, in("b", "x", "result 'in b'\nok"))
		runCell(t, s, in("dead", "'x' in globals()", "result False\nok"))
	}
	pids := s.KernelPIDs()
	restored := func(t *testing.T, o session.Options) *session.Live {
		o.Engine, o.Env, o.Kernels = e, standard(t), pids
		s, err := session.Open(t.Context(), o)
		if err != nil {
			t.Fatalf("open: %+v", err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	}
	t.Run("restored", func(t *testing.T) { check(t, restored(t, session.Options{Checkpoint: image})) })
	t.Run("forked", func(t *testing.T) { check(t, restored(t, session.Options{Checkpoint: image, Reseed: true})) })
	t.Run("left", func(t *testing.T) {
		sb := leave(t, s)
		t.Cleanup(func() { _ = sb.Stop(context.Background()) })
		check(t, restored(t, session.Options{Running: sb}))
	})
	t.Run("killed by another", func(t *testing.T) {
		s := restored(t, session.Options{Checkpoint: image})
		runCell(t, s, in("b", "import os\nos.kill(-1, 9)", "ok"))
		runCell(t, s, in("", "1", "kernel_died SIGKILL lost=kernel"))
		runCell(t, s, in("", "'x' in globals()", "result False\nok"))
	})
}

// TestSaveWaits saves while code runs in two kernels.
func TestSaveWaits(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := open(t, newGVisor(t), sandbox.Limits{})
	wantCode(t, "start", s.StartKernel(t.Context(), "b"), "")
	began := make(chan bool, 2)
	var running sync.WaitGroup
	for _, name := range []string{"", "b"} {
		running.Go(func() {
			r := 0
			for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "print('on', flush=True); import time; time.sleep(1); y = 7", Kernel: name}) {
				if err != nil {
					t.Error(err)
				}
				if _, ok := ev.(kernel.Stream); ok {
					began <- true
				}
				if d, ok := ev.(kernel.Done); ok && d.Outcome != kernel.OutcomeOK {
					t.Errorf("interrupted by saving: %+v", d)
				}
				r++
			}
		})
	}
	<-began
	<-began
	save(t, s, true)
	running.Wait()
	runCell(t, s, in("", "y", "result 7\nok"))
	runCell(t, s, in("b", "y", "result 7\nok"))
}

// TestInstall makes packages importable in kernels that live already and in later ones.
func TestInstall(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		shelf := newShelf(t, map[string]string{"moo": "sound = 'moo'", "oink": "sound = 'oink'"})
		s := supplied(t, e, shelf, sandbox.Checkpoint{})
		wantCode(t, "start", s.StartKernel(t.Context(), "b"), "")
		runCell(t, s, in("b", "1", "result 1\nok"))
		asked, err := require.Parse("moo")
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Install(t.Context(), []require.Requirement{asked}, nil)
		if err != nil || p.Layer == "" || p.Restart != "" {
			t.Fatalf("got %+v, %v", p, err)
		}
		wantCode(t, "start", s.StartKernel(t.Context(), "c"), "")
		for _, name := range []string{"", "b", "c"} {
			runCell(t, s, in(name, "__import__('importlib').import_module('moo').sound", "result 'moo'\nok"))
		}
		runCell(t, s, in("b", "import oink\noink.sound", "installed oink\nresult 'oink'\nok"))
		runCell(t, s, in("c", "__import__('importlib').import_module('oink').sound", "result 'oink'\nok"))
		if have := s.Installed(); len(have.Layers) != 2 {
			t.Errorf("the session has %v", have.Layers)
		}
	})
}

// TestReboot has all that runs in a session end, and the files stay.
func TestReboot(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		wantCode(t, "start", s.StartKernel(t.Context(), "second"), "")
		const look = "boot = lambda: open('/proc/sys/kernel/random/boot_id').read()\n"
		runCell(t, s, in("", "import subprocess\n"+look+"pid = subprocess.Popen(['sleep', '1000'], start_new_session=True).pid\nopen('kept', 'w').write(f'{pid:9} {boot():.30}');", "created kept 40\nok"))
		info := begin(t, s, process.Start{Args: []string{"sleep", "1000"}})
		if err := s.Reboot(t.Context()); err != nil {
			t.Fatalf("reboot: %+v", err)
		}
		if names := s.KernelNames(); !slices.Equal(names, []string{"main"}) {
			t.Errorf("there are %v", names)
		}
		_, boots := e.(sandbox.Saver) // others have the kernel of this machine, which is not booted
		another := map[bool]string{true: "True", false: "False"}[boots]
		runCell(t, s, in("", "import os\n"+look+"pid, was = open('kept').read().rsplit(' ', 1)\n'subprocess' in globals(), os.path.exists('/proc/' + pid.strip()), boot()[:30] != was", "result (False, False, "+another+")\nok"))
		if h := follow(t, s, info.ID, 0, nil); h.exit == nil || h.exit.Signal != "SIGKILL" {
			t.Errorf("a process ended with %+v", h.exit)
		}
	})
}
