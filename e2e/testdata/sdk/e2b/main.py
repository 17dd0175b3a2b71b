"""Drives a server by E2B's own Python library, as it is published, the way that programs for E2B do."""

import asyncio
import datetime
import os
import shutil
import sys
import time
import urllib.error
import urllib.request

from e2b import BuildException, CommandExitException, FileType, FilesystemEventType, NotFoundException, SandboxException, Template, TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox


def fails(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("%s was expected" % kind.__name__)


def code(box):
    run = box.run_code("x = 20\nprint('é'); print(1)\nx + 1")
    assert run.text == "21" and "".join(run.logs.stdout) == "é\n1\n" and run.execution_count == 1, run
    assert box.run_code("x += 1; x").text == "21"
    told = []
    run = box.run_code("import sys\nprint('out'); print('err', file=sys.stderr)\n1/0", on_stdout=lambda m: told.append(m.line), on_stderr=lambda m: told.append(m.line),
                       on_error=lambda e: told.append(e.name))
    assert sorted(told) == ["ZeroDivisionError", "err\n", "out\n"] and "1/0" in run.error.traceback, (told, run.error)
    show = "import os\n(os.environ.get('OWN'), os.environ.get('ALL'))"
    assert box.run_code(show, envs={"OWN": "it's", "ALL": "mine"}).text == '("it\'s", \'mine\')'
    assert box.run_code(show).text == "(None, 'everywhere')"
    run = box.run_code("import pandas as pd\npd.DataFrame({'n': [1, 2.5], 'when': pd.to_datetime(['2026-01-01', '2026-01-02'])})")
    assert run.results[0].data == {"n": [1.0, 2.5], "when": ["2026-01-01T00:00:00", "2026-01-02T00:00:00"]} and "<table" in run.results[0].html, run.results
    run = box.run_code("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2], label='g')\nplt.title('T')\nplt.xlabel('way (m)')\nplt.show()")
    chart = run.results[0].chart
    assert run.results[0].png and chart.type.value == "bar" and chart.title == "T" and chart.x_unit == "m", run.results
    assert [(e.label, e.group, e.value) for e in chart.elements] == [("a", "g", 1), ("b", "g", 2)], chart.elements
    chart = box.run_code("import pandas as pd\npd.DataFrame({'p': [1, 2], 'q': [3, 4]}, index=['甲', '乙']).plot.bar()\nplt.show()").results[0].chart
    assert [(e.label, e.group, e.value) for e in chart.elements] == [("甲", "p", 1), ("乙", "p", 2), ("甲", "q", 3), ("乙", "q", 4)], chart.elements
    run = box.run_code("import numpy\nfrom PIL import Image\nImage.fromarray(numpy.zeros((4, 4, 3), 'uint8')).save('black.png')")
    assert run.results[0].png and box.files.exists("black.png"), run
    other = box.create_code_context(cwd="/tmp")
    assert box.run_code("import os\nos.getcwd(), 'x' in globals()", context=other).text == "('/tmp', False)"
    contexts = [c.language for c in box.list_code_contexts()]
    assert contexts[0] == contexts[-1] == "python" and len(contexts) > 3 and {"bash", "javascript"} < set(contexts), contexts
    box.restart_code_context(other)
    box.remove_code_context(other)
    assert len(box.list_code_contexts()) == len(contexts) - 1
    run = box.run_code("import numpy\n%pip install 'numpy<2.3'\nimport numpy; print('ran')")
    assert run.error.name == "RestartRequired" and "numpy" in run.error.value and not run.logs.stdout, run
    fails(TimeoutException, lambda: box.run_code("import time\ntime.sleep(600)", timeout=2))
    assert box.run_code("x", timeout=60).text == "21"  # the code before was interrupted
    fails(Exception, lambda: box.run_code("1", language="cobol"))


def languages(box):
    assert box.run_code("const n = 41\nconsole.log('é')", language="js").logs.stdout == ["é\n"]
    run = box.run_code("import { join } from 'node:path'\nconst m = await Promise.resolve(n + 1);\n[m, join('a', 'b'), process.env.OWN]", language="javascript", envs={"OWN": "own"})
    assert run.text == "[ 42, 'a/b', 'own' ]" and run.execution_count == 2, run
    assert box.run_code("process.env.OWN ?? process.env.ALL", language="js").text == "everywhere"
    run = box.run_code("throw new TypeError('bad')", language="js")
    assert (run.error.name, run.error.value) == ("TypeError", "bad") and "cell:1" in run.error.traceback, run.error
    fails(TimeoutException, lambda: box.run_code("await new Promise(() => setTimeout(() => {}, 1e6))", language="js", timeout=2))
    assert box.run_code("m", language="js", timeout=120).text == "42"
    fails(TimeoutException, lambda: box.run_code("for (;;) {}", language="js", timeout=2))  # which hears of no interrupt
    assert box.run_code("typeof m", language="js", timeout=120).text == "undefined"
    run = box.run_code("cd /tmp; x=5; echo $OWN-$ALL; echo err >&2", language="bash", envs={"OWN": "it's"})
    assert (run.logs.stdout, run.logs.stderr, run.error) == (["it's-everywhere\n"], ["err\n"], None), run
    run = box.run_code("echo $x-${OWN:-none}; pwd; cat; false", language="bash")
    assert "".join(run.logs.stdout) == "5-none\n/tmp\n" and run.error.value.endswith("status 1"), run
    fails(TimeoutException, lambda: box.run_code("sleep 600", language="bash", timeout=2))
    assert box.run_code("echo $x", language="bash", timeout=120).logs.stdout == ["5\n"]
    assert box.run_code("exit 3", language="bash").error.name == "ContextEnded"
    assert box.run_code("echo ${x:-new}", language="bash").logs.stdout == ["new\n"]
    own = box.create_code_context(language="bash", cwd="/tmp")
    assert "".join(box.run_code("pwd; head -c 3000000 /dev/zero | tr '\\0' x | fold", context=own).logs.stdout).count("x") == 3_000_000
    box.remove_code_context(own)


def hosts(box):
    """What runs by programs that the host may have: who asks for another is told its name."""
    for program, language in (("Rscript", "r"), ("jshell", "java")):
        if not shutil.which(program):
            assert f"there is no {program} " in str(fails(SandboxException, lambda: box.run_code("1", language=language)))
            print(f"without {language}: the host has no {program}")
    if shutil.which("Rscript"):
        run = box.run_code("f <- function(a) stop('bad ', a)\nn <- 41; message('to é'); print(Sys.getenv('OWN')); n + 1", language="r", envs={"OWN": "it's"})
        assert (run.text, run.logs.stdout, run.logs.stderr, run.error) == ("[1] 42", ['[1] "it\'s"\n'], ["to é\n"], None), run
        run = box.run_code("Sys.getenv('OWN', 'none'); f(n)", language="r")
        assert run.logs.stdout == ['[1] "none"\n'] and run.error.value == "bad 41" and "f(n)" in run.error.traceback, run
        run = box.run_code("hist(c(1, 2, 2))", language="r")
        assert [r.png[:4] for r in run.results if r.png] == ["iVBO"], run
        fails(TimeoutException, lambda: box.run_code("repeat {}", language="r", timeout=2))
        assert box.run_code("n", language="r", timeout=120).text == "[1] 41"
    if shutil.which("jshell"):
        run = box.run_code('int n = 41;\nint f(int a) { return n + a; }\nSystem.out.println("é");\nf(1)', language="java", timeout=120)
        assert (run.text, run.logs.stdout, run.error) == ("42", ["é", "\n"], None), run
        assert box.run_code('System.getProperty("OWN") + System.getProperty("ALL")', language="java", envs={"OWN": "own"}).text == "owneverywhere"
        assert box.run_code('int bad = "x";', language="java").error.name == "CompilationException"
        run = box.run_code('throw new IllegalStateException("bad");', language="java")
        assert (run.error.name, run.error.value) == ("java.lang.IllegalStateException", "bad"), run
        fails(TimeoutException, lambda: box.run_code("while (true) {}", language="java", timeout=2))
        assert box.run_code("n", language="java", timeout=120).text == "41"
    if box.run_code("1 as number", language="ts").error is None:
        run = box.run_code("import { join } from 'node:path'\nimport type { Stats } from 'node:fs'\nenum E { A = 7 }\nconst m: number = await Promise.resolve(E.A as number)", language="ts")
        assert run.error is None and box.run_code("join('a', `${m}`)", language="js").text == "a/7", run
        assert box.run_code("const x: = 1", language="ts").error.name == "SyntaxError"
    else:
        print("without typescript: the host has neither Node.js 22.13 nor TypeScript")


def commands(box):
    assert box.commands.run("python -c 'print(6 * 7)'").stdout == "42\n"
    done = box.commands.run("echo $ALL-$OWN; pwd; whoami; echo err >&2", envs={"OWN": "own"}, cwd="/tmp")
    assert done.stdout == "everywhere-own\n/tmp\nuser\n" and done.stderr == "err\n", done
    key = box.commands.run("echo a key AKIA''0123456789ABCDEF and more").stdout
    assert key == "a key ******************** and more\n", key
    failed = fails(CommandExitException, lambda: box.commands.run("echo before; exit 3"))
    assert failed.exit_code == 3 and failed.stdout == "before\n"
    fails(TimeoutException, lambda: box.commands.run("sleep 600", timeout=2))
    one = box.commands.run("cat; echo over", background=True, stdin=True)
    assert one.pid in [p.pid for p in box.commands.list()]
    box.commands.send_stdin(one.pid, "told\n")
    box.commands.close_stdin(one.pid)
    assert one.wait().stdout == "told\nover\n"
    two = box.commands.run("sleep 600", background=True, timeout=0)
    assert box.commands.connect(two.pid).pid == two.pid and two.kill() and not box.commands.kill(two.pid)
    fails(NotFoundException, lambda: box.commands.connect(999_999))
    shell = box.pty.create(size=__import__("e2b").PtySize(rows=24, cols=80), timeout=60)
    box.pty.resize(shell.pid, __import__("e2b").PtySize(rows=30, cols=100))
    box.pty.send_stdin(shell.pid, b"stty size; exit 7\n")
    text = []
    fails(CommandExitException, lambda: shell.wait(on_pty=lambda data: text.append(data)))
    assert b"30 100" in b"".join(text), text


def files(box):
    box.files.write("/workspace/agents.txt", "in the usual place")  # of agents that bring their own
    assert box.files.read("agents.txt") == "in the usual place" and box.commands.run("cat agents.txt", cwd="/workspace").stdout == "in the usual place"
    box.files.remove("/workspace/agents.txt")
    box.files.write("/code/src/main.py", "print(6 * 7)")  # no root is needed for a folder of one's own
    box.commands.run("mkdir -p -- /repo && cp /code/src/main.py /repo", cwd="/")
    assert box.commands.run("sh -lc 'python main.py'", cwd="/repo").stdout == "42\n"
    made = box.files.write("a/b/c.txt", "text")
    assert made.path == "/home/user/a/b/c.txt" and box.files.read("a/b/c.txt") == "text" and box.files.read("~/a/b/c.txt", format="bytes") == b"text"
    box.files.write_files([{"path": "one", "data": "1"}, {"path": "two", "data": b"\x00\xff"}])
    assert bytes(box.files.read("two", format="bytes")) == b"\x00\xff"
    big = os.urandom(3 << 20)
    box.files.write("big", big)
    assert b"".join(box.files.read("big", format="stream")) == big
    box.run_code("import os\nos.makedirs('odd'); open(b'odd/caf\\xe9.txt', 'w').write('odd'); os.symlink(b'caf\\xe9.txt', 'odd/link')")
    seen = [e.name for e in box.files.list("odd")], box.files.read("odd/caf%E9.txt"), box.files.read("odd/link")
    assert seen == (["caf%E9.txt", "link"], "odd", "odd"), seen
    box.files.write("odd/caf%E9.txt", "written")
    assert box.run_code("os.listdir(b'odd').count(b'caf\\xe9.txt'), open(b'odd/caf\\xe9.txt').read()").text == "(1, 'written')"
    box.files.remove("odd")
    assert [(e.name, e.type) for e in box.files.list("a", depth=2)] == [("b", FileType.DIR), ("c.txt", FileType.FILE)]
    info = box.files.get_info("a/b/c.txt")
    assert (info.size, info.permissions, info.owner) == (4, "-rw-r--r--", "user") and info.modified_time.date() >= datetime.date(2026, 1, 1), info
    assert box.files.make_dir("d/e") and not box.files.make_dir("d/e")
    assert box.files.rename("one", "d/e/uno").path == "/home/user/d/e/uno" and not box.files.exists("one")
    fails(NotFoundException, lambda: box.files.read("one"))
    fails(NotFoundException, lambda: box.files.rename("one", "un"))
    box.files.remove("d")
    assert not box.files.exists("d/e/uno")
    watch = box.files.watch_dir("a", recursive=True)
    box.commands.run("mkdir a/new && sleep 0.5; echo x > a/new/file && mv a/new/file a/new/moved && rm a/new/moved")
    seen = []
    while not any(e.type == FilesystemEventType.REMOVE for e in seen):
        seen += watch.get_new_events()
    assert {"new", "new/file", "new/moved"} <= {e.name for e in seen}, seen
    watch.stop()
    watch = box.files.watch_dir("a")
    box.files.write("a/fresh", "1")
    seen = []
    while not any(e.type == FilesystemEventType.WRITE for e in seen):
        seen += watch.get_new_events()
    assert [(e.name, e.type.value) for e in seen] == [("fresh", "create"), ("fresh", "chmod"), ("fresh", "write")], seen
    assert box.files.get_info("a").size > 0
    watch.stop()
    with urllib.request.urlopen(box.download_url("a/b/c.txt", use_signature_expiration=60)) as answer:
        assert answer.read() == b"text"
    wrong = box.download_url("a/b/c.txt").replace("c.txt", "d.txt")
    assert fails(Exception, lambda: urllib.request.urlopen(wrong)).code == 401


def ports(_):
    """A port by its name takes the sandbox's token, where its maker wants that, and the server there sees the host that its maker says."""
    server = "import http.server as h; h.BaseHTTPRequestHandler.do_GET = lambda r: (r.send_response(200), r.end_headers(), r.wfile.write(r.headers['Host'].encode())); h.HTTPServer(('', 8123), h.BaseHTTPRequestHandler).serve_forever()"
    with_token = Sandbox.create(timeout=300, network={"allow_public_traffic": False, "mask_request_host": "inner.example:${PORT}"})
    with_token.commands.run(f'python3 -c "{server}"', background=True, timeout=0)
    name = with_token.get_host(8123).split(":")[0]

    def ask(**headers):
        request = urllib.request.Request(os.environ["E2B_API_URL"], headers={"Host": name, **headers})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    assert ask()[0] == 403 and ask(**{"E2b-Traffic-Access-Token": "wrong"})[0] == 403
    while (said := ask(**{"E2b-Traffic-Access-Token": with_token.traffic_access_token}))[0] == 502:  # until it listens
        time.sleep(0.1)
    assert said == (200, b"inner.example:8123"), said
    with_token.kill()


def lives(box):
    assert [b.sandbox_id for b in Sandbox.list(query=__import__("e2b").SandboxQuery(metadata={"who": "a & b"})).next_items()] == [box.sandbox_id]
    box.run_code("kept = 7")
    counter = box.commands.run("i=0; while :; do i=$((i+1)); echo $i > ticks; sleep 0.1; done", background=True, timeout=0)
    box.pause()
    assert box.get_info().state.value == "paused" and not box.is_running()
    box = Sandbox.connect(box.sandbox_id, timeout=300)
    assert box.run_code("kept").text == "7" and counter.pid in [p.pid for p in box.commands.list()]
    boot, temporary = "/proc/sys/kernel/random/boot_id", "/tmp/kept"
    before = box.files.read(boot)
    box.files.write(temporary, "on the disk")
    box.pause(keep_memory=False)
    assert not box.is_running()
    box.connect(timeout=300)
    assert box.files.read(temporary) == "on the disk" and box.files.read(boot) != before
    assert box.commands.list() == [] and box.run_code("kept").error.name == "NameError"
    box.run_code("kept = 7")
    shot = box.create_snapshot()
    box.run_code("kept = 8")
    copy = Sandbox.create(shot.snapshot_id, timeout=120)
    assert copy.run_code("kept").text == "7"
    assert copy.kill() and Sandbox.delete_snapshot(shot.snapshot_id)
    box.set_timeout(0)
    assert not box.is_running() and not Sandbox.kill(box.sandbox_id)
    fails(NotFoundException, lambda: Sandbox.connect(box.sandbox_id))


def builds(box):
    """What a server without a root and without a network builds, and what it says of the rest."""
    told = []
    made = Template.build(Template().from_base_image().set_envs({"WHO": "me"}).run_cmd("echo kept-$WHO > kept", user="root"), "plain", on_build_logs=lambda entry: told.append(entry.message))
    assert made.tags == ["default"] and any("no root" in line for line in told), told
    one = Sandbox.create("plain", timeout=120)
    assert one.commands.run("cat kept; echo $WHO").stdout == "kept-me\nme\n" and one.get_info().name == "plain"
    one.kill()
    failed = fails(BuildException, lambda: Template.build(Template().from_python_image().pip_install("absent-from-here"), "failing"))
    assert "exit status" in str(failed) and "the build has no network" in str(failed), failed
    assert "step base" in str(fails(BuildException, lambda: Template.build(Template().from_alpine_image(), "failing"))) and not Template.exists("failing")


async def many():
    async def one(number):
        box = await AsyncSandbox.create(timeout=300)
        run = await box.run_code("print(%d * 2)" % number)
        assert run.logs.stdout == ["%d\n" % (number * 2)], run
        assert await box.kill()

    await asyncio.gather(*(one(n) for n in range(6)))


box = Sandbox.create(timeout=600, metadata={"who": "a & b"}, envs={"ALL": "everywhere"})
if sys.argv[1:] == ["code"]:
    code(box)
    print("ok code")
    box.kill()
    sys.exit()
for part in (code, languages, hosts, commands, files, ports, builds, lives):
    part(box)
    print("ok", part.__name__)
asyncio.run(many())
print("ok many")
