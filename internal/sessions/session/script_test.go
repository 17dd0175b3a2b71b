package session_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// TestScripts compares scripts with what Python itself makes of the same file.
func TestScripts(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		dir := t.TempDir()
		for name, code := range map[string]string{
			"main":                "import sys\nprint(__name__, sys.argv, __file__)\n1 + 1\n'no echo'",
			"nested":              "def f(x):\n    return g(x)\n\ndef g(x):\n    return 1 / x  # 除以零\n\nprint('first')\nf(0)\n",
			"chained":             "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('second') from e",
			"while handling":      "try:\n    1/0\nexcept ZeroDivisionError:\n    undefined_name",
			"syntax":              "print('never')\nif True print('x')\n",
			"unclosed":            "x = (1,\ny = 2\n",
			"recursion":           "def r(n): return r(n + 1)\nr(0)\n",
			"group":               "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [TypeError(2)])])",
			"library":             "import json\njson.loads('{bad')",
			"note":                "e = ValueError('x')\ne.add_note('look here')\nraise e",
			"multi-line value":    "raise ValueError('one\\ntwo')",
			"exit":                "import sys\nsys.exit()",
			"exit code":           "import sys\nprint('x')\nsys.exit(3)",
			"exit text":           "import sys\nsys.exit('goodbye')",
			"exit in a function":  "def f(): exit(5)\nf()",
			"streams":             "import sys\nprint('o')\nprint('e', file=sys.stderr)",
			"unicode":             "变量 = '值'\nprint(变量, '😀')",
			"pool":                "from multiprocessing import Pool\ndef f(x): return x * x\nif __name__ == '__main__':\n    with Pool(2) as p: print(p.map(f, range(5)))",
			"process":             "import multiprocessing as mp\ndef f(q): q.put('from child')\nif __name__ == '__main__':\n    q = mp.Queue()\n    p = mp.Process(target=f, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)",
			"dataclass":           "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1), P.__module__)",
			"pickle":              "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__class__ is A)",
			"atexit":              "import atexit\natexit.register(print, 'bye')\nprint('body')",
			"thread":              "import threading, time\ndone = threading.Event()\ndef f():\n    done.wait(); time.sleep(0.05); print('thread')\nthreading.Thread(target=f).start()\nprint('body')\ndone.set()",
			"unittest":            "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\nunittest.main(argv=['x'], exit=False)",
			"argparse":            "import argparse\np = argparse.ArgumentParser()\np.add_argument('n', type=int)\nprint(p.parse_args())",
			"asyncio":             "import asyncio\nasync def main(): await asyncio.sleep(0); print('ran')\nasyncio.run(main())",
			"magic is not Python": "%time 1",
			"empty":               "",
		} {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(dir, "script_"+strings.ReplaceAll(name, " ", "_")+".py")
				if err := os.WriteFile(path, []byte(code), 0o644); err != nil {
					t.Fatal(err)
				}
				want := runPython(t, path, "7", "世界")
				r := execute(t, s, cell{req: kernel.Request{Code: code, Mode: kernel.Script, Filename: path, Args: []string{"7", "世界"}}})
				stderr := r.text["stderr"].String()
				for _, ev := range r.events {
					switch ev := ev.(type) {
					case kernel.Error:
						stderr += strings.Join(ev.Traceback, "\n") + "\n"
					case kernel.Result, kernel.Display:
						t.Errorf("a script echoed %s", describe(ev))
					}
				}
				got := plain{r.text["stdout"].String(), varying.ReplaceAllString(stderr, "N"), r.done.ExitCode}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-python +cove)\n%s", diff)
				}
			})
		}
		t.Run("input", func(t *testing.T) {
			c := script("x.py", "print(input('n? ') + input())", "stdout \"ab\\n\"\nasked \"n? \" false\nasked \"\" false\nok")
			c.answers = []string{"a", "b"}
			runCell(t, s, c)
		})
		t.Run("leaves the session's names alone", func(t *testing.T) {
			runCell(t, s, code("mine = 1", "ok"))
			runCell(t, s, script("x.py", "print('mine' in globals())\nmine = 2", "stdout \"False\\n\"\nok"))
			runCell(t, s, code("mine, __name__", "result (1, '__main__')\nok"))
		})
		t.Run("figures", func(t *testing.T) {
			runCell(t, s, script("x.py", "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nprint('after')", figure+"\nstdout \"after\\n\"\nok"))
		})
	})
}

// plain is what a process leaves.
type plain struct {
	Stdout, Stderr string
	Code           int
}

// varying is what differs from run to run, and with the depth of the stack that code starts from.
var varying = regexp.MustCompile(`\d+\.\d+s|repeated \d+ more times`)

func runPython(t *testing.T, path string, args ...string) plain {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), standard(t).Python, append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8", "LANG=C.UTF-8", "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return plain{out.String(), varying.ReplaceAllString(errs.String(), "N"), cmd.ProcessState.ExitCode()}
}
