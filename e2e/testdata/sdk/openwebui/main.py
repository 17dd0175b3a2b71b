"""Drives cove with Open WebUI's own code, as its Run button and its code interpreter call it."""

import asyncio
import os

os.environ["WEBUI_SECRET_KEY"] = "of no account here"
os.environ["ENABLE_DB_MIGRATIONS"] = "false"

from open_webui.utils.code_interpreter import execute_code_jupyter  # noqa: E402

URL, KEY = os.environ["COVE_TEST_URL"], os.environ["COVE_TEST_KEY"]


async def main():
    run = lambda code, timeout=60: execute_code_jupyter(URL, code, KEY, "", timeout)
    out = await run("print('hello')\n6 * 7")
    assert out == {"stdout": "hello", "stderr": "", "result": "42"}, out
    out = await run("from IPython.display import Image\nImage(data=b'\\x89PNG\\r\\n\\x1a\\n', format='png')")
    assert out["result"].startswith("data:image/png;base64,"), out
    out = await run("import sys\nprint('err', file=sys.stderr)")
    assert out["stderr"] == "err", out
    out = await run("print('x' * 3_000_000)")  # no message is larger than the client takes
    assert len(out["stdout"]) == 3_000_000, len(out["stdout"])
    out = await run("1 / 0")
    assert "ZeroDivisionError" in out["stderr"], out
    out = await run("import time\nprint('before', flush=True)\ntime.sleep(600)", 5)
    assert out["stdout"] == "before" and "timed out" in out["stderr"], out
    out = await run("input()")
    assert "EOFError" in out["stderr"] or "StdinNotImplemented" in out["stderr"], out
    # The key as a password, with a login and its cookies.
    out = await execute_code_jupyter(URL, "print('by password')", "", KEY, 60)
    assert out["stdout"] == "by password", out
    out = await execute_code_jupyter(URL, "1", "no key", "", 60)
    assert "Error" in out["stderr"], out
    # Several people at once.
    many = await asyncio.gather(*(run("print(%d)" % n) for n in range(8)))
    assert [one["stdout"] for one in many] == [str(n) for n in range(8)], many
    print("ok open-webui")


asyncio.run(main())
