package session_test

import (
	"testing"

	"cove/internal/machine/sandbox"
)

// inProcesses uses functions and classes of cells in processes that are started in each way.
const inProcesses = `import multiprocessing as mp, threading
from concurrent.futures import ProcessPoolExecutor
factor, lock = 3, threading.Lock()
class P:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(other) is type(self) and other.x == self.x
def helper(x): return x * factor
def f(x): return helper(x)
def step(p): return P(p.x + 1)
def locked(x):
    with lock: return x
def put(q): q.put(f(2))
def each(how):
    context = mp.get_context(how)
    with context.Pool(2) as pool: mapped = pool.map(f, range(4)), pool.map(step, [P(1)]) == [P(2)]
    with ProcessPoolExecutor(2, mp_context=context) as pool: found = list(pool.map(f, range(3)))
    q = context.Queue(); child = context.Process(target=put, args=(q,)); child.start(); got = q.get(timeout=100); child.join()
    return *mapped, found, got, child.exitcode
`

// TestProcessesOfCells has processes that are started anew know what cells define, as it is by then, and say at once what they cannot know.
func TestProcessesOfCells(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		runCell(t, s, code(inProcesses, "ok"))
		for _, how := range []string{"fork", "spawn", "forkserver"} {
			runCell(t, s, code("each('"+how+"')", "result ([0, 3, 6, 9], True, [0, 3, 6], 6, 0)\nok"))
		}
		runCell(t, s, code("factor = 5\nwith mp.get_context('spawn').Pool(1) as pool: r = pool.map(f, [1])\nr", "result [5]\nok"))
		runCell(t, s, codeLike("with mp.get_context('spawn').Pool(1) as pool: pool.map(locked, [1])", `(?s).*error RuntimeError: .* does not have locked of the cells \(TypeError: cannot pickle '_thread.lock' object\): define it in a module.*`))
	})
}
