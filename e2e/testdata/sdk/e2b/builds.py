"""Builds templates by E2B's own Python library, and makes sandboxes from them."""

import datetime
import json
import os
import pathlib
import tempfile
import time
import urllib.request

from e2b import BuildException, CommandExitException, Sandbox, Template, wait_for_port

HOST = os.environ["INDEX_HOST"]


def fails(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("%s was expected" % kind.__name__)


def build(template, name, **options):
    told = []
    made = Template.build(template, name, on_build_logs=lambda entry: told.append(entry.message), **options)
    return made, "\n".join(told)


context = pathlib.Path(tempfile.mkdtemp())
(context / "app.py").write_text("import os, left_pad\nprint(left_pad.pad(os.environ['GREETING']))\n")
(context / "data" / "deep").mkdir(parents=True)
(context / "data" / "deep" / "file").write_text("deep")
(context / "data" / "link").symlink_to("deep/file")


def steps(last):
    return (
        Template(file_context_path=str(context))
        .from_python_image("3")
        .set_envs({"PIP_INDEX_URL": "http://%s/simple/" % HOST, "PIP_TRUSTED_HOST": HOST.split(":")[0], "GREETING": "hello", "PATH": "/srv/app/bin:$PATH"})
        .pip_install("left-pad")
        .set_workdir("/srv/app")
        .copy("app.py", "bin/")
        .copy("data", "/srv/data", mode=0o750, user="root")
        .run_cmd("test $(whoami) = user && echo $RANDOM$RANDOM > made && " + last)
    )


made, told = build(steps("true").set_start_cmd("python -m http.server 8123", wait_for_port(8123)), "app:v1", tags=["stable"], cpu_count=1, memory_mb=512)
assert made.tags == ["v1", "stable"] and "[6/6] RUN" in told and "CACHED" not in told, told
again, told = build(steps("true").set_start_cmd("python -m http.server 8123", wait_for_port(8123)), "app:v2", cpu_count=1, memory_mb=512)
assert again.template_id == made.template_id and again.build_id != made.build_id and told.count("CACHED") == 6, told
assert sorted((t.tag, t.build_id == made.build_id) for t in Template.get_tags("app")) == [("stable", True), ("v1", True), ("v2", False)]
assert Template.exists("app") and Template.exists("app:stable") and not Template.exists("app:none") and not Template.exists("other")
assert Template.assign_tags("app:v2", ["default", "stable"]).build_id == again.build_id
Template.remove_tags("app", ["v1"])  # the build's last
assert {t.build_id for t in Template.get_tags("app")} == {again.build_id}

box = Sandbox.create("app", timeout=300, envs={"OWN": "own"})
info = box.get_info()
assert info.template_id == made.template_id and info.name == "app" and info.memory_mb == 512, info
assert box.commands.run("pwd; whoami; echo $OWN; python bin/app.py").stdout == "/srv/app\nuser\nown\n  hello\n"
assert box.commands.run("stat -c '%U %a' /srv/data; sudo cat /srv/data/link; curl -s localhost:8123/made | wc -l").stdout == "root 750\ndeep1\n"
box.files.write("/etc/of-root", "1", user="root")
box.files.make_dir("~/made", user="root")
box.files.rename("/etc/of-root", "/root/made/moved", user="root")
assert box.files.read("/root/made/moved", user="root") == "1" and box.files.get_info("~/made/moved", user="root").owner == "root"
box.files.write("/home/user/mine", "1")
box.files.write("/home/user/mine", "2", user="root")
assert (box.files.get_info("/home/user/mine").owner, box.files.read("/home/user/mine")) == ("user", "2")
box.files.write("/app/own/file", "1")  # where the user may make no folder
box.files.make_dir("/data")
assert box.commands.run("touch /app/own/more /data/more && stat -c %U /app/own/file").stdout == "user\n"
fails(Exception, lambda: box.files.write("/root/made/moved", "2", user="user"))
twin = Sandbox.create(made.template_id + ":stable", timeout=300)
assert twin.commands.run("cat made").stdout == box.commands.run("cat made").stdout
box.kill()

started = time.monotonic()
slow = Template.build_in_background(Template().from_template("app").run_cmd("cat made; sleep 600"), "slow")
while not any("sleep" in e.message for e in Template.get_build_status(slow).log_entries):
    time.sleep(0.2)
assert Template.get_build_status(slow).status.value == "building"
request = urllib.request.Request(os.environ["E2B_API_URL"] + "/templates/slow", method="DELETE", headers={"X-API-KEY": os.environ["E2B_API_KEY"]})
assert urllib.request.urlopen(request).status == 204
while Template.get_build_status(slow).status.value == "building":
    time.sleep(0.2)
assert Template.get_build_status(slow).status.value == "error" and time.monotonic() - started < 500

failed = fails(BuildException, lambda: build(Template(file_context_path=str(context)).from_python_image().run_cmd("echo why >&2; exit 3"), "bad"))
assert "exit status 3: why" in str(failed), failed
failed = fails(BuildException, lambda: build(Template().from_python_image().run_cmd("whoami", user="nobody"), "bad"))
assert "invalid username: 'nobody'" in str(failed), failed
failed = fails(BuildException, lambda: build(Template().from_base_image().run_cmd("true").set_start_cmd("exit 4", "false"), "bad"))
assert "ended with status 4" in str(failed), failed
docker = Template(file_context_path=str(context)).from_dockerfile("FROM python:3.12-slim\nARG N=7\nENV N=$N\nWORKDIR /code\nCOPY app.py .\nRUN test $(whoami) = root && ls app.py && echo $N > n\nCMD [\"sleep\", \"600\"]\n")
docker._template._ready_cmd = "pgrep sleep"  # the library waits 20 seconds
build(docker, "docker")
box = Sandbox.create("docker", timeout=300)
assert box.commands.run("cat n; pgrep -c sleep; stat -c %U .").stdout == "7\n1\nroot\n"
box.kill()

point = twin.get_metrics()[0]
assert point.cpu_count >= 1 and 0 <= point.cpu_used_pct <= 100 and 0 < point.mem_used <= point.mem_total == 512 << 20, point
assert twin.get_metrics(end=datetime.datetime.now() - datetime.timedelta(hours=1)) == []
reach = "curl -s -o /dev/null -w '%%{http_code}' http://%s/simple/left-pad/" % HOST
assert twin.commands.run(reach).stdout == "200"
twin.update_network({"allow_internet_access": False})
assert fails(CommandExitException, lambda: twin.commands.run(reach)) and twin.get_info().allow_internet_access is False
twin.update_network({})
assert twin.commands.run(reach).stdout == "200"
closed = Sandbox.create("app", timeout=300, allow_internet_access=False)  # which its template was not
fails(CommandExitException, lambda: closed.commands.run(reach))
closed.kill()
logs = json.load(urllib.request.urlopen(urllib.request.Request("%s/v2/sandboxes/%s/logs" % (os.environ["E2B_API_URL"], twin.sandbox_id), headers={"X-API-KEY": os.environ["E2B_API_KEY"]})))["logs"]
assert any("http.server" in entry["message"] for entry in logs), logs
twin.kill()
print("ok builds")
