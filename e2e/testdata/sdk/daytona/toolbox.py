"""Drives what a sandbox has by Daytona's own Python library, as it is published, the way that programs for Daytona do."""

import asyncio
import os
import sys
import time
import urllib.error
import urllib.request

from daytona import CodeRunParams, CreateSandboxFromSnapshotParams, Daytona, DaytonaError, FileDownloadRequest, FileUpload, SessionExecuteRequest
from daytona.common.errors import DaytonaNotFoundError, DaytonaTimeoutError
from daytona.common.pty import PtySize


def fails(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("%s was expected" % kind.__name__)


def until(what, come):
    for _ in range(1200):
        if come():
            return
        time.sleep(0.1)
    raise AssertionError("%s does not come" % what)


def code(box):
    run = box.process.code_run("import os, sys\nprint(1); print(2, file=sys.stderr); print(3)\nprint(sys.argv[1:], os.environ['ONE'])", params=CodeRunParams(argv=["a b", "$(id)"], env={"ONE": "it's"}))
    assert run.exit_code == 0 and run.result == "1\n2\n3\n['a b', '$(id)'] it's\n" and run.artifacts.charts == [], run
    run = box.process.code_run("x = 1\nraise ValueError('so')")
    assert run.exit_code == 1 and "ValueError: so" in run.result and "line 2" in run.result, run
    assert box.process.code_run("print('x' in globals())").result == "False\n"
    assert box.process.code_run("import sys; sys.exit(7)").exit_code == 7
    assert fails(Exception, lambda: box.process.code_run("import time; time.sleep(600)", timeout=1)).status == 408  # the library makes no error of its own of this one


def charts(box):
    text = """
import datetime
import matplotlib.pyplot as plt
plt.bar(['a', 'b'], [1, 2.5], label='g'); plt.title('T'); plt.xlabel('x'); plt.show()
plt.plot([datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)], [3, 4]); plt.show()
fig, (left, right) = plt.subplots(1, 2); left.pie([1, 1], labels=['p', 'q']); right.boxplot([1, 2, 3, 9]); fig.suptitle('both'); plt.show()
"""
    run = box.process.code_run(text)
    assert run.exit_code == 0 and len(run.artifacts.charts) == 3, run
    bar, line, both = run.artifacts.charts
    assert bar.type == "bar" and bar.title == "T" and bar.png and [(e.label, e.group, e.value) for e in bar.elements] == [("a", "g", "1"), ("b", "g", "2.5")], bar.elements
    assert line.type == "line" and [tuple(p) for p in line.elements[0].points] == [(1767225600.0, 3.0), (1767312000.0, 4.0)] and line.png, line
    assert both.type == "composite_chart" and both.png and [e.type for e in both.elements] == ["pie", "box_and_whisker"], both


def execute(box):
    run = box.process.exec("echo out; echo err >&2; pwd; echo $ONE", cwd="/tmp", env={"ONE": "1"})
    assert run.exit_code == 0 and run.result == "out\nerr\n/tmp\n1\n", run
    assert box.process.exec("exit 3").exit_code == 3
    assert box.process.exec("printf %s '" + "x" * 200_000 + "' | wc -c").result == "200000\n"
    assert box.process.exec("cat").result == ""
    fails(DaytonaTimeoutError, lambda: box.process.exec("sleep 600", timeout=1))
    fails(DaytonaError, lambda: box.process.exec("  "))
    assert box.get_work_dir() == box.get_user_home_dir() == "/home/user"


def sessions(box):
    p = box.process
    p.create_session("s1")
    fails(DaytonaError, lambda: p.create_session("s1"))
    p.execute_session_command("s1", SessionExecuteRequest(command="cd /tmp; export HERE=there; f() { echo called $1; }"))
    run = p.execute_session_command("s1", SessionExecuteRequest(command="pwd; echo $HERE; f x; echo bad >&2; (exit 4)"))
    assert run.exit_code == 4 and run.stdout == "/tmp\nthere\ncalled x\n" and run.stderr == "bad\n", run
    logs = p.get_session_command_logs("s1", run.cmd_id)
    assert logs.stdout == run.stdout and logs.stderr == "bad\n", logs
    later = p.execute_session_command("s1", SessionExecuteRequest(command="echo first; read line; echo got $line; sleep 0.2; echo last >&2", run_async=True))
    assert later.exit_code is None, later
    after = p.execute_session_command("s1", SessionExecuteRequest(command="echo behind", run_async=True))
    until("the first line", lambda: p.get_session_command_logs("s1", later.cmd_id).stdout == "first\n")
    assert p.get_session_command("s1", later.cmd_id).exit_code is None
    p.send_session_command_input("s1", later.cmd_id, "word")
    out, err = [], []
    asyncio.run(p.get_session_command_logs_async("s1", later.cmd_id, out.append, err.append))
    assert "".join(out) == "first\ngot word\n" and "".join(err) == "last\n", (out, err)
    assert p.get_session_command("s1", later.cmd_id).exit_code == 0
    fails(DaytonaError, lambda: p.send_session_command_input("s1", later.cmd_id, "more"))
    until("the command behind", lambda: p.get_session_command("s1", after.cmd_id).exit_code == 0)
    assert [c.id for c in p.get_session("s1").commands][-2:] == [later.cmd_id, after.cmd_id]
    assert [s.session_id for s in p.list_sessions()] == ["s1"]
    assert p.execute_session_command("s1", SessionExecuteRequest(command="exit 9")).exit_code == 9
    p.delete_session("s1")
    p.create_session("s2")
    much = p.execute_session_command("s2", SessionExecuteRequest(command="head -c 3000000 /dev/zero | tr '\\0' x"))
    assert much.stdout == "x" * 3_000_000, (len(much.stdout), much.stdout[:100])
    p.delete_session("s2")
    assert p.list_sessions() == []
    fails(DaytonaNotFoundError, lambda: p.get_session("s0"))


def interpreter(box):
    ci = box.code_interpreter
    out, err = [], []
    run = ci.run_code("import sys\nx = 20\nprint('é'); print('bad', file=sys.stderr)\nx + 1", on_stdout=lambda m: out.append(m.output), on_stderr=lambda m: err.append(m.output))
    assert run.stdout == "é\n" and run.stderr == "bad\n" and run.error is None and "".join(out) == "é\n", run
    assert ci.run_code("print(x)").stdout == "20\n"
    run = ci.run_code("1/0")
    assert run.error.name == "ZeroDivisionError" and "1/0" in run.error.traceback, run
    show = "import os\nprint(os.environ.get('OWN'), os.environ.get('ALL'))"
    assert ci.run_code(show, envs={"OWN": "1", "ALL": "mine"}).stdout == "1 mine\n"
    assert ci.run_code(show).stdout == "None everywhere\n"
    other = ci.create_context(cwd="/tmp")
    assert ci.run_code("import os; print(os.getcwd(), 'x' in globals())", context=other).stdout == "/tmp False\n"
    assert [c.id for c in ci.list_contexts()] == [other.id]
    ci.delete_context(other)
    assert ci.list_contexts() == []
    fails(DaytonaError, lambda: ci.run_code("1", context=other))
    fails(DaytonaTimeoutError, lambda: ci.run_code("import time; time.sleep(600)", timeout=1))
    assert ci.run_code("print(x)").stdout == "20\n"


def terminals(box):
    seen = bytearray()
    pty = box.process.create_pty_session(id="t1", pty_size=PtySize(rows=30, cols=100), envs={"OWN": "of the terminal"})
    pty.wait_for_connection()
    pty.send_input("stty size; echo \"<$OWN>\"; exit 5\n")
    result = pty.wait(on_data=seen.extend, timeout=120)
    assert result.exit_code == 5 and b"30 100" in seen and b"<of the terminal>" in seen, (result, bytes(seen))
    pty = box.process.create_pty_session(id="t2")
    info = box.process.resize_pty_session("t2", PtySize(rows=40, cols=120))
    assert (info.rows, info.cols) == (40, 120) and [i.id for i in box.process.list_pty_sessions()] == ["t2"], info
    again = box.process.connect_pty_session("t2")
    again.send_input("stty size\n")
    for data in again:
        seen.extend(data)
        if b"40 120" in seen:
            break
    box.process.kill_pty_session("t2")
    assert box.process.list_pty_sessions() == []


def files(box):
    fs = box.fs
    fs.create_folder("d/e", "750")
    assert fs.get_file_info("d/e").permissions == "0750" and fs.get_file_info("d/e").is_dir
    whole = os.urandom(3_000_000)
    fs.upload_files([FileUpload(source=whole, destination="d/whole"), FileUpload(source="one\ntwo x\n".encode(), destination="d/e/t.txt"), FileUpload(source=b"", destination="d/empty")])
    assert fs.download_file("d/whole") == whole and fs.download_file("d/empty") == b""
    got = fs.download_files([FileDownloadRequest(source="d/e/t.txt"), FileDownloadRequest(source="none"), FileDownloadRequest(source="d/whole")])
    assert [g.error is None for g in got] == [True, False, True] and got[0].result == b"one\ntwo x\n", got
    fails(DaytonaNotFoundError, lambda: fs.download_file("none"))
    box.process.exec("python3 -c \"import os; os.mkdir('odd'); open(b'odd/caf\\\\xe9.txt', 'w').write('odd')\"")
    assert [f.name for f in fs.list_files("odd")] == ["caf%E9.txt"] and fs.download_file("odd/caf%E9.txt") == b"odd"
    for name in "数据.csv", "é ü.txt", "😀.txt", 'a "b" \\ c%41+.txt', "a\nb.txt", "none 数据":
        if not name.startswith("none"):
            fs.upload_file(name.encode(), "names/" + name)
        try:
            assert fs.download_file("names/" + name) == name.encode() and b"".join(fs.download_file_stream("names/" + name)) == name.encode(), name
        except DaytonaNotFoundError:
            assert name.startswith("none"), name
    assert sorted(f.name for f in fs.list_files("d")) == ["e", "empty", "whole"]
    assert any(f.path.endswith("/d/e/t.txt") for f in fs.list_files("d", depth=2))
    match, = fs.find_files("d", "two")
    assert match.file == "/home/user/d/e/t.txt" and match.line == 2 and match.content == "two x", match
    assert fs.search_files("d", "*.txt").files == ["/home/user/d/e/t.txt"]
    done = fs.replace_in_files(["d/e/t.txt", "none"], "two", "2")
    assert [r.success for r in done] == [True, False] and fs.download_file("d/e/t.txt") == b"one\n2 x\n", done
    fs.set_file_permissions("d/e/t.txt", mode="600")
    assert fs.get_file_info("d/e/t.txt").permissions == "0600"
    fs.move_files("d/e/t.txt", "d/moved.txt")
    fails(DaytonaError, lambda: fs.move_files("d/moved.txt", "d/empty"))
    fails(DaytonaError, lambda: fs.delete_file("d"))
    fs.delete_file("d/moved.txt")
    fs.delete_file("d", recursive=True)
    fails(DaytonaNotFoundError, lambda: fs.get_file_info("d"))


def git(box):
    def sh(line):
        run = box.process.exec(line)
        assert run.exit_code == 0, run
        return run.result

    sh("git init -q --bare -b main /home/user/origin.git && git init -q -b main /home/user/first && cd /home/user/first && git remote add origin /home/user/origin.git")
    g = box.git
    box.fs.upload_file(b"1\n", "first/a b.txt")
    assert [(f.name, f.staging.value) for f in g.status("first").file_status] == [("a b.txt", "Untracked")]
    g.add("first", ["a b.txt"])
    assert g.status("first").file_status[0].staging.value == "Added"
    sha = g.commit("first", "the first\n\nwith a body", "Ada", "ada@example.com").sha
    assert len(sha) == 40
    assert sh("cd first && git log --format='%an|%ae|%B'").strip() == "Ada|ada@example.com|the first\n\nwith a body"
    g.push("first")
    g.create_branch("first", "other")
    g.checkout_branch("first", "other")
    assert g.branches("first").branches == ["main", "other"] and g.status("first").current_branch == "other"
    g.checkout_branch("first", "main")
    g.delete_branch("first", "other")
    fails(DaytonaError, lambda: g.checkout_branch("first", "other"))
    g.clone("/home/user/origin.git", "second", branch="main", username="u", password="secret")
    status = g.status("second")
    assert status.current_branch == "main" and status.branch_published and (status.ahead, status.behind) == (0, 0), status
    box.fs.upload_file(b"2\n", "second/a b.txt")
    g.add("second", ["."])
    g.commit("second", "-m is no option", "Bob", "bob@example.com")
    assert g.status("second").ahead == 1
    g.push("second", username="u", password="secret")
    g.pull("first")
    assert box.fs.download_file("first/a b.txt") == b"2\n"
    assert "secret" not in sh("cat second/.git/config; env; ls -A; cat .git-credentials 2>/dev/null || true")
    fails(DaytonaError, lambda: g.status("none"))
    fails(DaytonaError, lambda: g.clone("--upload-pack=touch /tmp/x", "third"))


def lsp(box):
    box.fs.upload_file(b"class Dog:\n    def bark(self):\n        return 1\n\nDog().ba\n", "project/m.py")
    server = box.create_lsp_server("python", "project")
    server.start()
    server.did_open("project/m.py")
    assert {"Dog", "bark"} <= {s.name for s in server.document_symbols("project/m.py")}
    assert [s.name for s in server.sandbox_symbols("dog")] == ["Dog"]
    from daytona import LspCompletionPosition
    found = server.completions("project/m.py", LspCompletionPosition(line=4, character=8))
    assert any(i.label.startswith("bark") for i in found.items), found
    server.did_close("project/m.py")
    server.stop()
    fails(DaytonaError, lambda: server.document_symbols("project/m.py"))


def system(box):
    p = box.process
    p.create_session("web")
    p.execute_session_command("web", SessionExecuteRequest(command="python3 -m http.server 8123", run_async=True))

    def ask(path):
        request = urllib.request.Request(box.toolbox_proxy_url.rstrip("/") + "/" + box.id + path, headers={"Authorization": "Bearer " + os.environ["DAYTONA_API_KEY"]})
        return urllib.request.urlopen(request).read().decode()

    until("the port", lambda: '"isInUse":true' in ask("/port/8123/in-use"))
    assert "8123" in ask("/port")
    metrics = ask("/system/metrics")
    assert '"diskTotal"' in metrics and '"memTotal"' in metrics, metrics
    try:
        ask("/computeruse/status")
        raise AssertionError("there is a desktop")
    except urllib.error.HTTPError as error:
        text = error.read()
        assert error.code == 503 and b"desktop" in text, text


parts = [code, charts, execute, sessions, interpreter, terminals, files, git, lsp, system]
box = Daytona().create(CreateSandboxFromSnapshotParams(env_vars={"ALL": "everywhere"}))
for part in parts:
    if len(sys.argv) == 1 or part.__name__ in sys.argv[1:]:
        part(box)
        print("ok %s" % part.__name__, flush=True)
box.delete()
