package session_test

import (
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// endless is code that prints "ready" and then does not end by itself.
type endless struct {
	name string
	code string
	// hard code does not hear SIGINT: its kernel must go, for the reason that is here, because that takes its time.
	hard string
}

func endlessCode() []endless {
	return []endless{
		{"busy loop", "print('ready')\nwhile True: pass", ""},
		{"time.sleep", "import time\nprint('ready')\ntime.sleep(1000)", ""},
		{"await", "import asyncio\nprint('ready')\nawait asyncio.sleep(1000)", ""},
		{"asyncio.run", "import asyncio\nprint('ready')\nasyncio.run(asyncio.sleep(1000))", ""},
		{"subprocess", "import subprocess\nprint('ready')\nsubprocess.run(['sleep', '1000'])", ""},
		{"shell", "print('ready')\n!sleep 1000", ""},
		{"bash cell", "%%bash\necho ready\nsleep 1000", ""},
		{"input", "print('ready')\ninput('never answered')", ""},
		{"queue", "import queue\nprint('ready')\nqueue.Queue().get()", ""},
		{"thread join", "import threading\nprint('ready')\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\nthreading.Event().wait()", ""},
		{"regular expression", "import re\nprint('ready')\nre.match('(a*)*b', 'a' * 100)", ""},
		{"big number", "print('ready')\nx = 10**10**8", ""},
		// Its workers leave SIGINT to the parent, as Python's documents show it: workers that it ends may take a lock of the pool along, whose end hangs then.
		{"pool", `import multiprocessing as mp, os, signal, time
r, w = os.pipe()
def work(n):
    os.write(w, b"x")
    time.sleep(n)
with mp.get_context("fork").Pool(2, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
    result = pool.map_async(work, [1000, 1000], 1)
    for _ in range(2): os.read(r, 1)  # a pool that is interrupted before its workers work may hang in its own end
    print("ready")
    result.get()`, ""},
		// Another process says that it is time: the loop itself lets no Python code run any more, and before it, Python would still hear a signal.
		{"loop in C", "import itertools, collections, subprocess\nsubprocess.Popen('sleep 1; echo ready', shell=True)\ncollections.deque(itertools.repeat(0), maxlen=0)", "timeout"},
		{"ignores SIGINT", "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready')\nwhile True: signal.pause()", "cancel"},
		{"catches everything", "import time\nwhile True:\n    try:\n        print('ready')\n        time.sleep(1000)\n    except BaseException: pass", "timeout"},
		{"shells in a loop", "import os\nwhile True: os.system('echo ready; sleep 1000')", "cancel"},
	}
}

// TestInterrupt ends code from outside, by cancelling it and by its time limit.
func TestInterrupt(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		never := make(chan struct{})
		t.Cleanup(func() { close(never) })
		input := func(string, bool) (string, error) { <-never; return "", nil }
		for name, c := range map[string]struct {
			outcome kernel.Outcome
			make    func(e endless) cell
		}{
			"cancel": {kernel.OutcomeInterrupted, func(e endless) cell {
				return cell{req: kernel.Request{Code: e.code, Input: input}, cancel: "ready\n"}
			}},
			"timeout": {kernel.OutcomeTimeout, func(e endless) cell {
				limit := 300 * time.Millisecond
				if e.hard != "" || e.name == "pool" {
					limit = 2 * time.Second // it must have come as far as being hard, and workers as far as working
				}
				return cell{req: kernel.Request{Code: e.code, Input: input, Timeout: limit}}
			}},
		} {
			t.Run(name, func(t *testing.T) {
				s := open(t, e, sandbox.Limits{})
				for _, row := range endlessCode() {
					if name == "timeout" && row.name == "input" {
						continue // the time of code that waits for input stands still
					}
					if row.hard == "" || row.hard == name {
						t.Run(row.name, func(t *testing.T) { interrupt(t, s, c.make(row), c.outcome, row.hard != "") })
					}
				}
			})
		}
	})
}

func interrupt(t *testing.T, s *session.Live, c cell, outcome kernel.Outcome, hard bool) {
	if r := execute(t, s, cell{req: kernel.Request{Code: "survivor = 1"}}); r.done.Outcome != kernel.OutcomeOK {
		t.Fatalf("before: %s", r.transcript())
	}
	r := execute(t, s, c)
	lost, left := kernel.LostNothing, "result True\nok"
	if hard {
		lost, left = kernel.LostKernel, "result False\nok"
	}
	if r.done.Outcome != outcome || r.done.Lost != lost || r.done.Message == "" {
		t.Errorf("ended as %q, lost %q, with %q; want %q, lost %q\n%s", r.done.Outcome, r.done.Lost, r.done.Message, outcome, lost, r.transcript())
	}
	runCell(t, s, code("'survivor' in globals()", left))
}
