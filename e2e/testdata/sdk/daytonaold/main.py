"""Drives a server by daytona_sdk 0.20, as it is published, the way that programs of its time do."""

from daytona_sdk import CreateSandboxParams, Daytona, DaytonaError, Image, SandboxResources, SandboxState, SessionExecuteRequest

daytona = Daytona()
box = daytona.create(CreateSandboxParams(language="python", env_vars={"ALL": "everywhere"}, labels={"team": "a b"}, auto_stop_interval=30))
run = box.process.code_run("import os\nprint(6 * 7, os.environ['ALL'])")
assert (run.exit_code, run.result) == (0, "42 everywhere\n"), run
failed = box.process.code_run("1/0")
assert failed.exit_code == 1 and "ZeroDivisionError" in failed.result, failed
assert box.process.exec("echo $ALL; pwd").result == "everywhere\n/home/user\n"
print("ok code")

box.fs.upload_file(b"text", "a.txt")
assert box.fs.download_file("a.txt") == b"text"
assert [f.name for f in box.fs.list_files(".") if f.name == "a.txt"]
box.process.create_session("shell")
box.process.execute_session_command("shell", SessionExecuteRequest(command="cd /tmp; export KEPT=7"))
assert box.process.execute_session_command("shell", SessionExecuteRequest(command="echo $KEPT; pwd")).output == "7\n/tmp\n"
box.process.delete_session("shell")
print("ok files")

info = box.info()
assert info.state == SandboxState.STARTED and info.labels["team"] == "a b" and info.auto_stop_interval == 30, info
assert [one.id for one in daytona.list({"team": "a b"})] == [box.id]
assert daytona.list({"team": "other"}) == []
box.set_labels({"team": "c"})
assert daytona.get_current_sandbox(box.id).instance.labels == {"team": "c"}
box.stop()
assert box.info().state == SandboxState.STOPPED
try:
    box.process.exec("true")
    raise SystemExit("a sandbox that is stopped runs a command")
except DaytonaError as e:
    assert "stopped" in str(e), e
box.start()
assert box.fs.download_file("a.txt") == b"text"
daytona.remove(box)
try:
    daytona.get_current_sandbox(box.id)
    raise SystemExit("it was not removed")
except DaytonaError as e:
    assert "not found" in str(e), e

plain = daytona.create(CreateSandboxParams(image=Image.debian_slim("3.12"), resources=SandboxResources(cpu=1, memory=1)))
assert plain.process.code_run("print('plain')").result == "plain\n"
daytona.remove(plain)
try:
    daytona.create(CreateSandboxParams(image="alpine:3.20"))
    raise SystemExit("there is an image that cove does not have")
except DaytonaError as e:
    assert "alpine:3.20" in str(e), e
print("ok lives")
