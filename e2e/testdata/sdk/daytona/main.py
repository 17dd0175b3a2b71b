"""Drives a server by Daytona's own Python library, as it is published, the way that programs for Daytona do."""

import asyncio
import os
import sys
import time
import urllib.error
import urllib.request

from daytona import (
    AsyncDaytona,
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    CreateSnapshotParams,
    Daytona,
    DaytonaConflictError,
    DaytonaError,
    DaytonaNotFoundError,
    DaytonaTimeoutError,
    Image,
    ListSandboxesQuery,
    SessionExecuteRequest,
    VolumeMount,
)

daytona = Daytona()


def refused(kind, do, *words):
    """Wants an error that says some words."""
    try:
        do()
    except kind as e:
        for word in words:
            assert word in str(e), f"{e} does not say {word}"
        return
    raise SystemExit(f"nothing was refused for {words}")


box = daytona.create(CreateSandboxFromSnapshotParams(name="first", language="python", env_vars={"ALL": "everywhere"}, labels={"team": "today"}))
assert str(box.state.value) == "started" and box.name == "first" and box.cpu > 0 and box.memory > 0 and box.disk > 0 and box.created_at, box
run = box.process.code_run("import os\nprint(6 * 7, os.environ['ALL'])")
assert (run.exit_code, run.result) == (0, "42 everywhere\n"), run
assert "ZeroDivisionError" in box.process.code_run("1/0").result
chart = box.process.code_run("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2.5])\nplt.title('t')\nplt.show()").artifacts.charts[0]
assert (str(chart.type).split(".")[-1].lower(), chart.title, len(chart.elements)) == ("bar", "t", 2) and chart.png, chart
assert box.process.exec("echo a key AKIA''0123456789ABCDEF and more").result == "a key ******************** and more\n"
refused(DaytonaTimeoutError, lambda: box.process.exec("sleep 100", timeout=1))
said = []
done = box.code_interpreter.run_code("kept = 5\nprint(kept)", on_stdout=lambda m: said.append(m.output))
assert box.code_interpreter.run_code("print(kept + 1)").stdout == "6\n" and "".join(said) == "5\n"
assert box.code_interpreter.run_code("1/0").error.name == "ZeroDivisionError"
print("ok code")
if sys.argv[1:] == ["code"]:
    box.delete(wait=True)
    sys.exit()

box.fs.upload_file(b"at home", "/home/daytona/workspace/home.txt")  # as Daytona's own examples have it
at_home = box.process.exec("cat home.txt; pwd", cwd="/home/daytona/workspace")
assert at_home.exit_code == 0 and at_home.result.startswith("at home"), at_home
box.fs.delete_file("/home/daytona/workspace", recursive=True)
box.fs.create_folder("/app", "755")
box.fs.upload_file(b"print(6 * 7)", "/app/main.py")
assert box.process.exec("sh -lc 'python main.py'", cwd="/app").result.strip() == "42"
box.fs.upload_file(b"text", "a/b.txt")
assert box.fs.download_file("a/b.txt") == b"text" and [f.name for f in box.fs.list_files("a")] == ["b.txt"]
url = box.download_url("a/b.txt")
assert urllib.request.urlopen(url).read() == b"text"
box.rotate_signing_key()
try:
    urllib.request.urlopen(url)
    raise SystemExit("an address holds that was signed with another key")
except urllib.error.HTTPError as e:
    assert e.code == 401, e
box.process.create_session("shell")
box.process.execute_session_command("shell", SessionExecuteRequest(command="cd /tmp; export KEPT=7"))
assert box.process.execute_session_command("shell", SessionExecuteRequest(command="echo $KEPT; pwd")).stdout == "7\n/tmp\n"
print("ok files")

box.process.exec("nohup python3 -m http.server 8000 -d a >/dev/null 2>&1 &")
link = box.get_preview_link(8000)


def port(url, token=None, host=None):
    """Asks a port of the sandbox until something answers there. Not every machine finds names below localhost by itself."""
    for _ in range(300):
        server = os.environ["DAYTONA_API_URL"].removesuffix("/daytona")
        request = urllib.request.Request(server + "/b.txt" if host else url + "/b.txt", headers={"Host": host} if host else {})
        if token:
            request.add_header("X-Daytona-Preview-Token", token)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            if e.code != 502:
                return e.code, b""
        time.sleep(0.2)
    raise SystemExit("nothing listens at the port")


name = link.url.split("//")[1]
assert port(link.url, link.token, name) == (200, b"text")
assert port(link.url, None, name)[0] in (401, 403)
assert port(link.url, "0" * 32, name)[0] == 401
signed = box.create_signed_preview_url(8000, expires_in_seconds=300)
assert port(signed.url) == (200, b"text")
box.expire_signed_preview_url(8000, signed.token)
assert port(signed.url)[0] == 404
print("ok ports")

refused(DaytonaConflictError, lambda: daytona.create(CreateSandboxFromSnapshotParams(name="first")), "first")
assert daytona.get("first").id == box.id
assert [one.id for one in daytona.list(ListSandboxesQuery(labels={"team": "today"}))] == [box.id]
assert list(daytona.list(ListSandboxesQuery(labels={"team": "other"}))) == []
box.set_labels({"team": "c"})
box.set_autostop_interval(7)
box.refresh_data()
assert (box.labels, box.auto_stop_interval) == ({"team": "c"}, 7)
box.refresh_activity()
kid = box.fork("kid")
assert kid.fs.download_file("a/b.txt") == b"text"
kid.fs.upload_file(b"other", "a/b.txt")
assert box.fs.download_file("a/b.txt") == b"text"
kid.delete(wait=True)
box.create_snapshot("kept")
assert "kept" in [one.name for one in daytona.snapshot.list().items] and daytona.snapshot.get("kept").state.value == "active"
again = daytona.create(CreateSandboxFromSnapshotParams(snapshot="kept", ephemeral=True))
assert again.fs.download_file("a/b.txt") == b"text"
again.stop()
refused(DaytonaNotFoundError, lambda: daytona.get(again.id))
daytona.snapshot.delete(daytona.snapshot.get("kept"))
box.stop()
assert box.state.value == "stopped"
refused(DaytonaError, lambda: box.process.exec("true"), "stopped")
box.archive()
box.refresh_data()
assert box.state.value == "archived"
box.start()
assert box.fs.download_file("a/b.txt") == b"text"
plain = daytona.create(CreateSandboxFromImageParams(image=Image.debian_slim("3.12")))
plain.delete()
built = Image.base("python:3.12").env({"CITY": "Bern"}).workdir("/home/user/app").run_commands("echo $CITY > city.txt")
logged = []
made = daytona.create(CreateSandboxFromImageParams(image=built, env_vars={"RIVER": "Aare"}), on_snapshot_create_logs=logged.append)
assert made.state.value == "started" and any("RUN echo $CITY > city.txt" in line for line in logged), logged
shown = made.process.exec("echo $CITY $RIVER; cat city.txt; pwd").result
assert shown == "Bern Aare\nBern\n/home/user/app\n", shown
daytona.delete(made)
failed = Image.base("python:3.12").run_commands("echo said > /dev/stderr; apt-get install -y cowsay")
refused(DaytonaError, lambda: daytona.create(CreateSandboxFromImageParams(name="failed", image=failed), on_snapshot_create_logs=logged.append), "line 2", "cowsay")
assert any("the build has failed" in line for line in logged) and any("said" in line for line in logged), logged
refused(DaytonaError, lambda: daytona.get("failed").start(), "could not be built")
daytona.delete(daytona.get("failed"))
shot = daytona.snapshot.create(CreateSnapshotParams(name="image", image=built.run_commands("echo more >> city.txt")), on_logs=logged.append)
assert shot.state.value == "active" and any("RUN echo more" in line for line in logged), logged
made = daytona.create(CreateSandboxFromSnapshotParams(snapshot="image"))
assert made.process.exec("cat city.txt").result == "Bern\nmore\n"
daytona.delete(made)
daytona.snapshot.delete(shot)
box.delete(wait=True)
refused(DaytonaNotFoundError, lambda: daytona.get("first"), "first")

print("ok lives")

if os.geteuid() == 0:
    data = daytona.volume.get("data", create=True)
    assert daytona.volume.get("data").id == data.id and [v.name for v in daytona.volume.list()] == ["data"]
    refused(DaytonaConflictError, lambda: daytona.volume.create("data"))
    refused(DaytonaError, lambda: daytona.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id=data.id, mount_path="/usr/data")])), "/usr")
    refused(DaytonaError, lambda: daytona.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id="no-such", mount_path="/data")])))
    whole = daytona.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id=data.id, mount_path="/data")]))
    part = daytona.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id=data.id, mount_path="/home/user/in/part", subpath="a/b")]))
    assert (whole.volumes[0].volume_id, whole.volumes[0].mount_path) == (data.id, "/data"), whole.volumes
    part.fs.upload_file(b"of part", "in/part/c.txt")
    assert whole.process.exec("cat /data/a/b/c.txt; stat -c %U /data/a/b/c.txt").result == "of partuser\n"
    assert whole.process.code_run("open('/data/a/b/d.txt', 'w').write('of whole')\nprint(1)").result == "1\n"
    assert part.fs.download_file("in/part/d.txt") == b"of whole"
    assert whole.code_interpreter.run_code("kept = open('/data/a/b/open.txt', 'w')").error is None
    whole.stop()
    part.fs.delete_file("in/part/open.txt")
    refused(DaytonaError, whole.start, "open.txt", "not there any more")
    part.fs.upload_file(b"", "in/part/open.txt")
    whole.start()
    assert whole.code_interpreter.run_code("kept.write('after'); kept.close(); print(open('/data/a/b/open.txt').read())").stdout == "after\n"
    part.fs.delete_file("in/part/open.txt")
    whole.stop()
    assert part.process.exec("rm in/part/d.txt; echo later > in/part/e.txt; git init -q in/part/r && ls in/part").result == "c.txt\ne.txt\nr\n"
    whole.start()
    assert whole.process.exec("ls /data/a/b; cat /data/a/b/e.txt").result == "c.txt\ne.txt\nr\nlater\n"
    kid = part.fork("kid")
    assert kid.process.exec("echo of kid > in/part/f.txt; ls in/part").result == "c.txt\ne.txt\nf.txt\nr\n"
    assert whole.process.exec("cat /data/a/b/f.txt").result == "of kid\n"
    refused(DaytonaError, lambda: daytona.volume.delete(data), "sessions have")
    for one in (whole, part, kid):
        one.delete(wait=True)
    again = daytona.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id=data.id, mount_path="/tmp/data")]))
    assert again.process.exec("cat /tmp/data/a/b/f.txt").result == "of kid\n"
    again.delete(wait=True)
    daytona.volume.delete(data)
    assert daytona.volume.list() == []
else:
    refused(DaytonaError, lambda: daytona.volume.create("data"), "root")
print("ok volumes")


async def together():
    async with AsyncDaytona() as client:
        boxes = await asyncio.gather(*(client.create() for _ in range(3)))
        runs = await asyncio.gather(*(one.process.code_run(f"print({n} * 2)") for n, one in enumerate(boxes)))
        assert [run.result for run in runs] == ["0\n", "2\n", "4\n"], runs
        await asyncio.gather(*(one.delete() for one in boxes))


asyncio.run(together())
print("ok together")
