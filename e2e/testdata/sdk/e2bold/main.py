"""Drives a server by e2b-code-interpreter 2.6, as it is published, with examples/e2b/by_address.py."""

import asyncio
import os
import sys

sys.path.insert(0, os.environ["BY_ADDRESS"])
import by_address  # noqa: E402, F401
from e2b_code_interpreter import AsyncSandbox, Sandbox  # noqa: E402

with Sandbox.create(envs={"ALL": "everywhere"}) as box:
    lines = []
    done = box.run_code("import os\nprint('out', os.environ['ALL'])\nx = 6\nx * 7", on_stdout=lambda m: lines.append(m.line))
    assert (done.text, lines) == ("42", ["out everywhere\n"]), (done, lines)
    assert box.run_code("x + 1").text == "7" and box.run_code("1/0").error.name == "ZeroDivisionError"
    context = box.create_code_context(cwd="/tmp")
    there = box.run_code("import os; os.getcwd()", context=context)
    assert there.text == "/tmp", there
    assert box.commands.run("echo hi").stdout == "hi\n"
    box.files.write("a.txt", "text")
    assert box.run_code("open('a.txt').read()").text == "text"
    box.kill()


async def both():
    box = await AsyncSandbox.create()
    assert (await box.run_code("6 * 7")).text == "42"
    await box.kill()


asyncio.run(both())
print("ok code")
