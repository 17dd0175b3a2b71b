package kernel_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

func TestAKernelOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*world, *guestlink.Link, *kernel.Kernel) error{
		"closed": func(_ *world, l *guestlink.Link, _ *kernel.Kernel) error { return l.Close() },
		"broken": func(w *world, _ *guestlink.Link, _ *kernel.Kernel) error { return w.stream.Close() },
		"let go": func(_ *world, l *guestlink.Link, k *kernel.Kernel) error {
			return errors.Join(k.Detach(t.Context()), l.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l, k := begin(t)
			run(t, k, `import threading, os
x = 41
f = open("kept", "w+")
wake = threading.Event()
answer = []
thread = threading.Thread(target=lambda: (wake.wait(), answer.append(x)))
thread.start()`)
			if err := leave(w, l, k); err != nil {
				t.Fatal(err)
			}
			l = w.connect(t)
			if !slices.Equal(l.Kernels(), []int{k.PID()}) {
				t.Errorf("the guest knows the kernels %v, not %d", l.Kernels(), k.PID())
			}
			again := w.attach(t, l, k.PID())
			got := run(t, again, `x += 1
wake.set(); thread.join()
f.write("abc"); f.seek(0)
print(answer, f.read(), os.getpid())`)
			if want := "[42] abc "; !strings.HasPrefix(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if again.PID() != k.PID() || again.Version() != k.Version() {
				t.Errorf("kernel %d of version %q became %d of version %q", k.PID(), k.Version(), again.PID(), again.Version())
			}
			if err := again.Trim(t.Context()); err != nil {
				t.Errorf("trim: %v", err)
			}
		})
	}
}

// TestABusyKernelIsInterrupted has the owner vanish while code runs.
func TestABusyKernelIsInterrupted(t *testing.T) {
	t.Parallel()
	never := func(string, bool) (string, error) { select {} }
	for name, req := range map[string]kernel.Request{
		"sleeps": {Code: "import time\nx = 1\nprint('on')\ntime.sleep(3600)\nx = 2"},
		"awaits": {Code: "import asyncio\nx = 1\nprint('on')\nawait asyncio.sleep(3600)\nx = 2"},
		"spins":  {Code: "x = 1\nprint('on')\nwhile True: pass"},
		"floods": {Code: "x = 1\nwhile True: print('on')"},
		"asks":   {Code: "x = 1\nprint('on', flush=True)\ninput()\nx = 2", Input: never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, k := begin(t)
			end := underway(t, k, req)
			if err := w.stream.Close(); err != nil {
				t.Fatal(err)
			}
			if done := <-end; done.Outcome != kernel.OutcomeSandboxDied {
				t.Errorf("to its owner the execution ended as %+v", done)
			}
			again := w.attach(t, w.connect(t), k.PID())
			if got := run(t, again, "print(x)"); got != "1\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAStubbornKernelIsLost(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w, _, k := begin(t)
	end := underway(t, k, kernel.Request{Code: `import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("on")
time.sleep(3600)`})
	if err := w.stream.Close(); err != nil {
		t.Fatal(err)
	}
	<-end
	l := w.connect(t)
	_, err := kernel.Attach(t.Context(), l, w.config, k.PID())
	if p := problem.Of(err); p == nil || p.Code != "kernel_lost" || !strings.Contains(p.Message, "did not stop when interrupted") {
		t.Errorf("attach: %+v", err)
	}
	assertGone(t, l, k.PID(), "killed by signal 9")
}

// assertGone asserts how a dead kernel ended. The guest may still be about to notice; then it tells of the end itself.
func assertGone(t *testing.T, l *guestlink.Link, pid int, how string) {
	t.Helper()
	p, err := l.AttachKernel(t.Context(), pid)
	for err == nil {
		for err == nil {
			_, _, err = p.Receive()
		}
		p.Close()
		p, err = l.AttachKernel(t.Context(), pid)
	}
	if gone := problem.Of(err); gone == nil || gone.Kind != problem.NotFound || gone.Code != "kernel_not_found" || !strings.Contains(gone.Message, how) {
		t.Errorf("attach to %d: %+v, want %q", pid, err, how)
	}
}

func TestAClosedKernelIsKilled(t *testing.T) {
	t.Parallel()
	_, l, k := begin(t)
	k.Close()
	await(t, "the kernel's end", func() bool { return errors.Is(syscall.Kill(k.PID(), 0), syscall.ESRCH) })
	assertGone(t, l, k.PID(), "killed by signal 9")
}

func TestAttachToADeadKernel(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: "import os; os._exit(7)"}) {
		if done, ok := ev.(kernel.Done); err != nil || ok && done.Outcome != kernel.OutcomeDied {
			t.Errorf("%+v %v", ev, err)
		}
	}
	assertGone(t, l, k.PID(), "ended with exit status 7")
	assertGone(t, l, 1<<30, "there is no kernel with process id")

	k, err := kernel.Start(t.Context(), l, w.config)
	if err != nil {
		t.Fatal(err)
	}
	run(t, k, `import threading, os, time
def end():
    while not os.path.exists("go"): time.sleep(0.01)
    os._exit(9)
threading.Thread(target=end).start()`)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = w.connect(t)
	if _, err := l.WriteFile(t.Context(), "go", strings.NewReader(""), 0o644); err != nil {
		t.Fatal(err)
	}
	await(t, "the kernel's end", func() bool { return errors.Is(syscall.Kill(k.PID(), 0), syscall.ESRCH) })
	assertGone(t, l, k.PID(), "ended with exit status 9")
}

func TestTheLastToAttachHoldsTheKernel(t *testing.T) {
	t.Parallel()
	w, l, first := begin(t)
	run(t, first, "x = 1")
	second := w.attach(t, l, first.PID())
	for ev, err := range first.Execute(t.Context(), kernel.Request{Code: "x = 2"}) {
		if done, ok := ev.(kernel.Done); err == nil && (!ok || done.Outcome == kernel.OutcomeOK) {
			t.Errorf("the former owner's code gave %+v", ev)
		}
	}
	first.Close()
	if got := run(t, second, "print(x)"); got != "1\n" {
		t.Errorf("got %q", got)
	}
}

// TestNobodyListens has a kernel print and display far more than any buffer holds while it belongs to nobody.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	w, l, k := begin(t)
	run(t, k, `import threading, os, time, sys, subprocess
from IPython.display import display
def talk():
    while not os.path.exists("go"): time.sleep(0.01)
    for i in range(16):
        print("x" * (1 << 20))
        display({"text/plain": "y" * 1000}, raw=True)
    sys.stdout.flush()
    subprocess.run(["head", "-c", "1000000", "/dev/zero"])
    open("done", "w").close()
thread = threading.Thread(target=talk)
thread.start()`)
	if err := errors.Join(k.Detach(t.Context()), l.Close(), os.WriteFile(filepath.Join(w.workspace, "go"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.appears(t, "done")
	p, err := w.connect(t).AttachKernel(t.Context(), k.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Busy {
		t.Error("the kernel is called busy")
	}
	if err := p.Send(wire.ToKernel{Kind: wire.ToMessage}, []byte(`{"type":"trim","id":"a"}`)); err != nil {
		t.Fatal(err)
	}
	for {
		h, _, err := p.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if h.Kind == wire.FromMessage {
			if h.Dropped < size {
				t.Errorf("%d bytes were counted as dropped, there were more than %d", h.Dropped, size)
			}
			return
		}
	}
}

func TestResumed(t *testing.T) {
	t.Parallel()
	// What is drawn next from generators that were seeded with 42.
	const next = "0.6394267984578837 0.3745401188473625\n"
	for name, reseed := range map[string]bool{"session goes on": false, "copy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l, k := begin(t)
			draw := "print(random.random(), np.random.random())"
			secrets := `import hashlib, tempfile, multiprocessing.process as mp
print(hashlib.sha256(mp.current_process().authkey).hexdigest(), id(tempfile._get_candidate_names()))`
			run(t, k, "import random, ssl, sqlite3, uuid, multiprocessing, sympy.core.random as sr, numpy as np\nuuid.uuid1()")
			before := run(t, k, secrets+"\nkept = tempfile._get_candidate_names()")
			run(t, k, "random.seed(42); np.random.seed(42); sr.seed(42); s = sr.random(); sr.seed(42)")
			if err := errors.Join(k.Detach(t.Context()), l.Close()); err != nil {
				t.Fatal(err)
			}
			w.config.Reseed, w.config.AddressSpace = reseed, 8<<30
			k = w.attach(t, w.connect(t), k.PID())
			if got := run(t, k, draw); (got == next) == reseed {
				t.Errorf("drew %q", got)
			}
			if got := run(t, k, "print(sr.random() == s)"); (got == "True\n") == reseed {
				t.Errorf("sympy drew the same again: %q", got)
			}
			if got := run(t, k, "import resource; print(resource.getrlimit(resource.RLIMIT_AS))"); got != "(8589934592, -1)\n" {
				t.Errorf("the limit is %q", got)
			}
			after := run(t, k, secrets)
			for i, part := range strings.Fields(before) {
				if strings.Fields(after)[i] == part {
					t.Errorf("%q stayed what it was", part)
				}
			}
			run(t, k, "assert uuid.uuid1() != uuid.uuid1() and ssl.RAND_bytes(8) and sqlite3.connect(':memory:').execute('select random()').fetchone()")
		})
	}
}

func TestStartLimitsTheAddressSpace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen(t)
	w.config.AddressSpace = 2 << 30
	k, err := kernel.Start(t.Context(), w.connect(t), w.config)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, k, `try:
    bytearray(3 << 30)
except MemoryError:
    print("refused")`)
	if got != "refused\n" {
		t.Errorf("got %q", got)
	}
}

func TestDetachWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed := make(chan bool, 1)
	ended := make(chan kernel.Done, 1)
	go func() {
		for ev, err := range k.Execute(ctx, kernel.Request{Code: "print('on'); import time; time.sleep(3600)"}) {
			if err != nil {
				t.Error(err)
			}
			switch ev := ev.(type) {
			case kernel.Stream:
				printed <- true
			case kernel.Done:
				ended <- ev
			}
		}
	}()
	<-printed
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Detach(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("detach while code runs: %v", err)
	}
	stop()
	if done := <-ended; done.Outcome != kernel.OutcomeInterrupted || done.Lost != kernel.LostNothing {
		t.Errorf("%+v", done)
	}
	if err := k.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, err := range k.Execute(t.Context(), kernel.Request{Code: "1"}) {
		if err == nil {
			t.Error("a detached kernel ran code")
		}
	}
	if err := k.Detach(t.Context()); err == nil {
		t.Error("a kernel was detached twice")
	}
	if got := run(t, w.attach(t, l, k.PID()), "print('here')"); got != "here\n" {
		t.Errorf("got %q", got)
	}
}

// TestTheGuestWaitsForItsHost has nobody listen, then somebody who does not accept, for as long as code in the sandbox takes to notice.
func TestTheGuestWaitsForItsHost(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	run(t, k, `import threading, time
def count():
    for i in range(3):
        time.sleep(0.1)
        open("tick%d" % i, "w").close()
threading.Thread(target=count).start()`)
	if err := errors.Join(w.listener.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	w.appears(t, "tick0")
	w.listen(t)
	w.appears(t, "tick2")
	if got := run(t, w.attach(t, w.connect(t), k.PID()), "print('here')"); got != "here\n" {
		t.Errorf("got %q", got)
	}
}

// TestGivingUpToAttachKillsNothing has attaching end at every point that a canceled context may hit.
func TestGivingUpToAttachKillsNothing(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	run(t, k, "x = 1")
	if err := k.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
		k, err := kernel.Attach(ctx, l, w.config, k.PID())
		cancel()
		if err == nil {
			err = k.Detach(t.Context())
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		if err != nil {
			t.Errorf("attach: %+v", err)
		}
	}
	if got := run(t, w.attach(t, l, k.PID()), "print(x)"); got != "1\n" {
		t.Errorf("got %q", got)
	}
}

// TestProcessesEndWithTheirConnection is for programs that are no kernels: nobody can come back for them.
func TestProcessesEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen(t)
	l := w.connect(t)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Run(t.Context(), wire.ProcessSpec{Args: []string{"/bin/sh", "-c", "echo $$ > part; mv part pid; exec sleep 1000"}}, io.Discard, io.Discard)
		ended <- err
	}()
	w.appears(t, "pid")
	text, err := os.ReadFile(filepath.Join(w.workspace, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := <-ended; err == nil {
		t.Error("the program is said to have ended well")
	}
	await(t, "the program's end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if l = w.connect(t); len(l.Kernels()) != 0 {
		t.Errorf("the guest knows the kernels %v", l.Kernels())
	}
}
