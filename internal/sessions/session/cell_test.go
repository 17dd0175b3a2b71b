package session_test

import (
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/python/kernel"
)

// TestCells runs what does not harm a session, all in one.
func TestCells(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		for _, group := range []struct {
			name string
			rows []row
		}{
			{"values", valueRows()}, {"output", outputRows()}, {"input", inputRows()}, {"magics", magicRows()},
			{"tasks", taskRows()}, {"exits", exitRows()}, {"errors", errorRows()}, {"abuse", abuseRows()},
		} {
			t.Run(group.name, func(t *testing.T) { runRows(t, s, group.rows) })
		}
	})
}

func valueRows() []row {
	return []row{
		{"last expression", []cell{code("x = 41\nx + 1", "result 42\nok")}},
		{"names stay", []cell{code("kept = 5", "ok"), code("kept", "result 5\nok")}},
		{"semicolon hides", []cell{code("1 + 1;", "ok")}},
		{"nothing to show", []cell{code("None", "ok"), code("", "ok"), code("# only a comment", "ok")}},
		{"out history", []cell{code("6 * 7", "result 42\nok"), code("_ + 1", "result 43\nok")}},
		{"unicode", []cell{code("变量 = '你好'\n变量", "result '你好'\nok")}},
		{"lone surrogate", []cell{code(`'\ud800'`, `result '\ud800'`+"\nok")}},
		{"__main__", []cell{code("class A: pass\nimport pickle\npickle.loads(pickle.dumps(A())).__class__ is A, __name__", "result (True, '__main__')\nok")}},
		{"windows line ends", []cell{code("a = 1\r\nif a:\r\n    a = 2\r\na", "result 2\nok")}},
	}
}

func outputRows() []row {
	return []row{
		{"streams in order", []cell{code(`import sys
print("a"); print("b", file=sys.stderr); print("c"); sys.stdout.write("d"); sys.stderr.write("e"); print("f");`,
			"stdout \"a\\n\"\nstderr \"b\\n\"\nstdout \"c\\nd\"\nstderr \"e\"\nstdout \"f\\n\"\nok")}},
		{"streams and displays in order", []cell{code(`from IPython.display import display, HTML
print(1); display(HTML("x")); print(2, end=""); display(3); display(4); print(5)
6`, "stdout \"1\\n\"\ndisplay [text/html text/plain]\nstdout \"2\"\ndisplay 3\ndisplay 4\nstdout \"5\\n\"\nresult 6\nok")}},
		{"child processes in order", []cell{code(`import os, subprocess, sys
from IPython.display import display
for i in range(20):
    print("a", i, end=";")
    os.system("printf b")
    os.system("printf c >&2")
    print("d", end=";")
    subprocess.run(["printf", "e"])
    display(i)
    os.system("printf f")
    print("g", file=sys.stderr)`, repeated(20, func(i string) string {
			return `stdout "a ` + i + `;b"` + "\nstderr \"c\"\nstdout \"d;e\"\ndisplay " + i + "\nstdout \"f\"\nstderr \"g\\n\""
		})+"\nok")}},
		{"C-level output", []cell{code(`import ctypes, os
libc = ctypes.CDLL(None)
print("a"); os.write(1, b"b\n"); print("c"); libc.puts(b"d"); libc.fflush(None); print("e"); libc.puts(b"f");`,
			`stdout "a\nb\nc\nd\ne\nf\n"`+"\nok")}},
		{"bytes that are not UTF-8", []cell{code(`import sys
sys.stdout.buffer.write(b"\xff\xfe\x80a\n");`, `stdout "\xff\xfe\x80a\n"`+"\nok"),
			code(`import os; os.write(1, "好".encode()[:2]);`, `stdout "\xe5\xa5"`+"\nok")}},
		{"characters cut by writes", []cell{code(`import os
for b in "你好😀".encode(): os.write(1, bytes([b]));`, `stdout "你好😀"`+"\nok")}},
		{"lone surrogates", []cell{code(`print("\ud800!")`, `stdout "\\ud800!\n"`+"\nok")}},
		{"thread's late output", lateOutput()},
		{"import this", []cell{codeLike("import this", `stdout "The Zen of Python.*more of those!\\n"\nok`)}},
		{"closed stdout", []cell{code("import sys\nsys.stdout.close()\nprint('still')", "stdout \"still\\n\"\nok")}},
		{"redirected stdout", []cell{code("import io, contextlib\nb = io.StringIO()\nwith contextlib.redirect_stdout(b): print('in')\nb.getvalue()", `result 'in\n'`+"\nok")}},
		{"logging", []cell{code("import logging\nlogging.warning('w')", `stderr "WARNING:root:w\n"`+"\nok")}},
	}
}

// lateOutput is output that comes between or beside executions: it arrives sooner or later and harms nothing.
func lateOutput() []cell {
	var first string
	return []cell{
		codeCheck(`import threading
t = threading.Thread(target=lambda: print("late"))
t.start()`, func(_ *testing.T, r *run) { first = r.text["stdout"].String() }),
		codeCheck("t.join()\nprint('next')", func(t *testing.T, r *run) {
			if got := first + r.text["stdout"].String(); got != "late\nnext\n" || r.done.Outcome != kernel.OutcomeOK {
				t.Errorf("got %q, %v", got, r.done)
			}
		}),
	}
}

func inputRows() []row {
	asking := func(code, want string, answers ...string) []cell {
		return []cell{{req: kernel.Request{Code: code}, answers: append([]string{}, answers...), want: want}}
	}
	return []row{
		{"answer", asking(`input("name? ") + "!"`, "result 'Ann!'\nasked \"name? \" false\nok", "Ann")},
		{"Chinese", asking(`input("名字? ")`, "result '小明'\nasked \"名字? \" false\nok", "小明")},
		{"two", asking(`input("a"), input("b")`, "result ('1', '2')\nasked \"a\" false\nasked \"b\" false\nok", "1", "2")},
		{"empty", asking(`input()`, "result ''\nasked \"\" false\nok", "")},
		{"after a print", asking("print('x', end='')\ninput('y')", "stdout \"x\"\nresult '1'\nasked \"y\" false\nok", "1")},
		{"password", asking("import getpass\ngetpass.getpass('pw: ')", "result 'secret'\nasked \"pw: \" true\nok", "secret")},
		{"stdin", asking("import sys\nsys.stdin.readline()", `result 'line\n'`+"\nasked \"\" false\nok", "line")},
		{"end of file", asking("input('x')", "error EOFError: EOF when reading a line\nasked \"x\" false\nerror 1")},
		{"end of stdin", asking("import sys\nsys.stdin.read()", "result 'a\\n'\nasked \"\" false\nasked \"\" false\nok", "a")},
		{"nobody there", []cell{codeLike("input('x')", "error EOFError: .+\nerror 1")}},
		{"child's stdin", []cell{code("!cat", "ok")}},
	}
}

func magicRows() []row {
	return []row{
		{"shell", []cell{code("!echo out; echo err >&2; exit 3", "stdout \"out\\n\"\nstderr \"err\\n\"\nok"), code("_exit_code", "result 3\nok")}},
		{"shell captured", []cell{code("lines = !printf 'a\\nb\\n'\nlines", "result ['a', 'b']\nok")}},
		{"shell with variables", []cell{code("word = '世界'\n!echo {word} $word", "stdout \"世界 世界\\n\"\nok")}},
		{"timeit", []cell{codeLike("%timeit -n1 -r1 pass", `stdout ".* per loop .*"\nok`)}},
		{"writefile", []cell{code("%%writefile w.txt\nhello", "stdout \"Writing w.txt\\n\"\ncreated w.txt 6\nok")}},
		{"bash", []cell{code("%%bash\necho $((1+1))", "stdout \"2\\n\"\nok")}},
		{"cd and pwd", []cell{codeLike("import os\n%cd /tmp\n%cd -", "stdout .*ok")}},
		{"unknown", []cell{codeLike("%nonesuch", "(stderr|error UsageError).*nonesuch.*")}},
		{"capture", []cell{code("%%capture c\nprint('hidden')", "ok"), code("c.stdout", `result 'hidden\n'`+"\nok")}},
		{"help", []cell{codeLike("len?", `(stdout|display).*`)}},
		{"matplotlib inline", []cell{code("%matplotlib inline", "ok")}},
	}
}

func taskRows() []row {
	return []row{
		{"await", []cell{code("import asyncio\nawait asyncio.sleep(0, 'done')", "result 'done'\nok")}},
		{"asyncio.run", []cell{code("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\nasyncio.run(f())", "result 5\nok")}},
		{"async for and with", []cell{code("async def g():\n    yield 1\n    yield 2\n[i async for i in g()]", "result [1, 2]\nok")}},
		{"background task goes on", []cell{
			code("ticks = []\nasync def tick():\n    while True:\n        ticks.append(1)\n        await asyncio.sleep(0.001)\ntask = asyncio.create_task(tick())", "ok"),
			code("n = len(ticks)\nwhile len(ticks) < n + 3: await asyncio.sleep(0.001)\ntask.cancel()", "result True\nok"),
		}},
		{"threads and queues", []cell{code("import concurrent.futures as f\nwith f.ThreadPoolExecutor(4) as p: r = list(p.map(lambda i: i * i, range(5)))\nr", "result [0, 1, 4, 9, 16]\nok")}},
		{"process pool", []cell{code("import multiprocessing as mp\ndef sq(i): return i * i\nwith mp.get_context('fork').Pool(2) as p: r = p.map(sq, range(4))\ndel p\nr", "result [0, 1, 4, 9]\nok")}},
	}
}

func exitRows() []row {
	return []row{
		{"sys.exit keeps state", []cell{code("import sys\nheld = 1\nsys.exit(3)", "error 3"), code("held", "result 1\nok")}},
		{"sys.exit with text", []cell{code("sys.exit('bye')", "stderr \"bye\\n\"\nerror 1")}},
		{"exit", []cell{code("exit()", "ok"), code("held", "result 1\nok")}},
		{"quit", []cell{code("quit()", "ok"), code("held", "result 1\nok")}},
		{"exit without call", []cell{codeLike("exit", ".*ok"), code("held", "result 1\nok")}},
		{"exit code wraps", []cell{code("sys.exit(256 + 7)", "error 7")}},
		{"raise SystemExit", []cell{code("raise SystemExit", "ok")}},
	}
}

func errorRows() []row {
	return []row{
		{"exception", []cell{
			code("print('before')\n1/0", "stdout \"before\\n\"\nerror ZeroDivisionError: division by zero\nerror 1"),
			code("def f():\n    return g()\ndef g():\n    raise KeyError('k')", "ok"),
			traceback("f()", "Traceback (most recent call last):", `  File "<cell N>", line 1, in <module>`, "    f()",
				`  File "<cell N>", line 2, in f`, "    return g()", "           ^^^", `  File "<cell N>", line 4, in g`, "    raise KeyError('k')", "KeyError: 'k'"),
		}},
		{"carets in a last line without an end", []cell{
			traceback("v = 1 + 2 / 0", "Traceback (most recent call last):", `  File "<cell N>", line 1, in <module>`, "    v = 1 + 2 / 0", "            ~~^~~", "ZeroDivisionError: division by zero"),
		}},
		{"after empty lines", []cell{
			traceback("\n  \n1/0", "Traceback (most recent call last):", `  File "<cell N>", line 3, in <module>`, "    1/0", "    ~^~", "ZeroDivisionError: division by zero"),
			traceback("\nx = 1\nif x\n    y", `  File "<cell N>", line 3`, "    if x", "        ^", "SyntaxError: expected ':'"),
			codeLike("\n\n%%bash\necho ok", "stdout .ok.*ok"), code("\n\n", "ok"),
		}},
		{"library frames stay", []cell{codeCheck("import json\njson.loads('{')", func(t *testing.T, r *run) {
			wantInTraceback(t, r, "json/__init__.py", "json/decoder.py", "JSONDecodeError")
		})}},
		{"syntax", []cell{traceback("x = 1\nif x\n    y", `  File "<cell N>", line 2`, "    if x", "        ^", "SyntaxError: expected ':'")}},
		{"indentation", []cell{codeLike("if 1:\nx = 1", "error IndentationError: .*\nerror 1")}},
		{"str raises", []cell{codeLike("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "error E: .*\nerror 1")}},
		{"repr raises", []cell{codeLike("class R:\n    def __repr__(self): raise ValueError('no')\nR()", ".*ValueError.*"), code("1", "result 1\nok")}},
		{"chained", []cell{codeCheck("try:\n    1/0\nexcept Exception as e:\n    raise RuntimeError('b') from e", func(t *testing.T, r *run) {
			wantInTraceback(t, r, "ZeroDivisionError: division by zero", "direct cause", "RuntimeError: b")
		})}},
		{"group", []cell{codeCheck("raise ExceptionGroup('g', [ValueError('a'), TypeError('b')])", func(t *testing.T, r *run) {
			wantInTraceback(t, r, "ExceptionGroup: g (2 sub-exceptions)", "ValueError: a", "TypeError: b")
		})}},
		{"recursion", []cell{codeLike("def r(): r()\nr()", "error RecursionError: .*\nerror 1"), code("1", "result 1\nok")}},
		{"huge message", []cell{codeLike("raise ValueError('x' * 50_000_000)", "error ValueError: x.*\nerror 1"), code("1", "result 1\nok")}},
		{"keyboard interrupt raised by code", []cell{codeLike("raise KeyboardInterrupt", "error KeyboardInterrupt: \n(interrupted|error).*")}},
		{"unprintable type", []cell{codeLike("class M(type):\n    def __repr__(c): raise ValueError\nclass X(Exception, metaclass=M): pass\nraise X('y')", "error X: y\nerror 1")}},
		{"in a task", []cell{codeLike("async def boom(): raise ValueError('t')\nawait boom()", "error ValueError: t\nerror 1")}},
	}
}

// abuseRows do to the kernel what a session must survive with its state.
func abuseRows() []row {
	return []row{
		{"fork falls off the end", []cell{
			code("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child')", "stdout \"child\\nparent\\n\"\nok"),
			code("1", "result 1\nok")}},
		{"fork raises", []cell{codeLike("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: 1/0", "stderr .*ZeroDivisionError.*\nok")}},
		{"fork exits", []cell{code("import os, sys\npid = os.fork()\nif not pid: sys.exit(4)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])", "result 4\nok")}},
		{"replaced open", []cell{code("from unittest import mock\nwith mock.patch('builtins.open', mock.mock_open(read_data='mocked')):\n    print(open('nothing').read())", "stdout \"mocked\\n\"\nok"),
			code("with open(0, closefd=False) as stdin, open(os.dup(1), 'w') as out:\n    out.write(repr(stdin.read()))", "stdout \"''\"\nok")}},
		{"closerange", []cell{code("import os\nalive = 1\nos.closerange(3, 256)", "ok"), code("print(alive)\n!echo sub\nawait asyncio.sleep(0)", "stdout \"1\\nsub\\n\"\nok")}},
		{"closes 0, 1 and 2", []cell{code("import os\nfor fd in range(3): os.close(fd)\nprint('x')", "stdout \"x\\n\"\nok"), code("print('y')\n!echo z", "stdout \"y\\nz\\n\"\nok")}},
		{"removed folder", []cell{code("import os, shutil\nos.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')", "ok"),
			code("open('after.txt', 'w').write('x');", "created after.txt 1\nok")}},
		{"emptied workspace", []cell{code("import os\n!rm -rf ./* .[!.]*\nos.listdir()", "result []\nok"), code("open('new.txt', 'w').close()", "created new.txt 0\nok")}},
		{"patched modules", []cell{code("import os, time, json\nsaved = os.read, os.write, time.monotonic, json.dumps\nos.read = os.write = time.monotonic = json.dumps = None\nprint('p')", "stdout \"p\\n\"\nok"),
			code("os.read, os.write, time.monotonic, json.dumps = saved", "ok")}},
		{"deleted builtins", []cell{code("import builtins\noriginal = builtins.print\nbuiltins.print = None", "ok"), code("builtins.print = original\nprint('q')", "stdout \"q\\n\"\nok")}},
		{"%reset", []cell{code("%reset -f", "ok"), code("open is __builtins__.open", "result True\nok"), code("'alive' in globals()", "result False\nok")}},
		{"replaced sys.stdout", []cell{code("import sys, io\nsys.stdout = io.StringIO()\nprint('lost')", "ok"), codeLike("sys.stdout = sys.__stdout__\nprint('back')", `stdout "back\\n"\nok`)}},
		{"alarm", []cell{codeLike("import signal, asyncio\ndef onalarm(*a): raise TimeoutError('rang')\nsignal.signal(signal.SIGALRM, onalarm)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nwhile True: pass", "error TimeoutError: rang\nerror 1"), code("1", "result 1\nok")}},
	}
}
