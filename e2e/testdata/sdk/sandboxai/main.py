"""A program for SandboxAI, by its published client, uses a server of cove's."""

import os

from sandboxai import Sandbox
from sandboxai.api.v1 import CreateSandboxRequest, RunIPythonCellRequest, RunShellCommandRequest, SandboxSpec
from sandboxai.client.v1 import HttpClient, SandboxNotFoundError

URL, KEY = os.environ["COVE_TEST_URL"], os.environ["COVE_TEST_KEY"]
BASE = URL.replace("://", "://cove:" + KEY + "@", 1) + "/v1"


def equal(got, want):
    if got != want:
        raise AssertionError(f"{got!r} is not {want!r}")


def fails(call, *says):
    try:
        call()
    except RuntimeError as e:
        for part in says:
            assert part in str(e), str(e)
        return
    raise AssertionError("it was not refused")


def client():
    c = HttpClient(base_url=BASE)
    c.wait_until_healthy()
    made = c.create_sandbox("default", CreateSandboxRequest(spec=SandboxSpec(env={"CITY": "Bern"})))
    assert made.name and made.uid, made
    equal(c.get_sandbox("default", made.name).model_dump(), made.model_dump())

    def cell(code, split=False):
        r = c.run_ipython_cell("default", made.name, RunIPythonCellRequest(code=code, split_output=split))
        return (r.stdout, r.stderr) if split else r.output

    def command(line, split=False):
        r = c.run_shell_command("default", made.name, RunShellCommandRequest(command=line, split_output=split))
        return (r.stdout, r.stderr) if split else r.output

    equal(cell("print('a')"), "a\n")
    equal(cell("x = 41"), "")
    equal(cell("x + 1"), "Out[1]: 42\n")
    equal(cell("import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr)"), "out\nerr\n")
    equal(cell("import sys\nprint('out')\nprint('err', file=sys.stderr)", split=True), ("out\n", "err\n"))
    assert "NameError: name 'nothing' is not defined" in cell("nothing")
    equal(cell("! echo $CITY"), "Bern\n")
    equal(cell("import os\nos.environ['CITY']"), "Out[1]: 'Bern'\n")
    equal(cell("open('kept.txt', 'w').write('kept')"), "Out[1]: 4\n")
    equal(command("echo $CITY; cat kept.txt"), "Bern\nkept")
    equal(command("echo out; echo err >&2; exit 3", split=True), ("out\n", "err\n"))
    assert "the output is longer" in cell("print('x' * 3_000_000)")
    c.delete_sandbox("default", made.name)
    try:
        c.get_sandbox("default", made.name)
    except SandboxNotFoundError:
        return
    raise AssertionError("a deleted sandbox is there")


def sandbox():
    with Sandbox(base_url=BASE, name="lab", space="one") as box:
        equal(box.run_ipython_cell("y = 2\nprint(y)").output, "2\n")
        fails(lambda: Sandbox(base_url=BASE, name="lab", space="one"), "409", "of this name")
        with Sandbox(base_url=BASE, name="lab", space="two") as other:
            assert "NameError" in other.run_ipython_cell("y").output
        equal(box.run_shell_command("echo $((6 * 7))").output, "42\n")


def refusals():
    fails(lambda: Sandbox(base_url=URL + "/v1"), "401", "http://cove:KEY@HOST/v1")
    fails(lambda: Sandbox(base_url=BASE, image="alpine"), "422", "there is no image alpine")
    fails(lambda: Sandbox(base_url=BASE, name="a/b"), "422", "names of spaces")
    fails(lambda: Sandbox(base_url=BASE, env={"A=B": "1"}), "A=B")


client()
sandbox()
refusals()
print("ok sandboxai-client")
