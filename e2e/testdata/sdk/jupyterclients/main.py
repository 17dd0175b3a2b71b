"""Programs for Jupyter use a server of cove's: those of others as they are published."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import uuid

import requests
import websocket

URL, KEY = os.environ["COVE_TEST_URL"], os.environ["COVE_TEST_KEY"]
WS = URL.replace("http", "ws", 1)
PATIENCE = 120  # seconds


def equal(got, want):
    if got != want:
        raise AssertionError(f"{got!r} is not {want!r}")


# -- AutoGen's executor


async def autogen():
    from autogen_core import CancellationToken
    from autogen_core.code_executor import CodeBlock
    from autogen_ext.code_executors.docker_jupyter import DockerJupyterCodeExecutor
    from autogen_ext.code_executors.docker_jupyter._jupyter_server import JupyterConnectionInfo

    place = JupyterConnectionInfo(host=URL.split("://")[1], use_https=False, token=KEY)
    executor = DockerJupyterCodeExecutor(jupyter_server=place, output_dir=os.environ["HOME"])
    await executor.start()
    run = lambda code: executor.execute_code_blocks([CodeBlock(code=code, language="python")], CancellationToken())
    made = await run("x = 6\nprint('made')")
    equal((made.exit_code, made.output.strip()), (0, "made"))
    equal((await run("x * 7")).output.strip(), "42")
    failed = await run("1/0")
    equal((failed.exit_code, "ZeroDivisionError" in failed.output), (1, True))
    await executor.restart()
    equal((await run("'x' in globals()")).output.strip(), "False")
    await executor.stop()
    print("ok AutoGen")


# -- smolagents' functions for a gateway of kernels


def check_smolagents():
    from smolagents.monitoring import AgentLogger
    from smolagents.remote_executors import RemotePythonExecutor, _create_kernel_http, _websocket_run_code_raise_errors
    from smolagents.tools import Tool

    class Double(Tool):
        name, description, output_type = "double", "doubles", "integer"
        inputs = {"x": {"type": "integer", "description": "a number"}}

        def forward(self, x: int) -> int:
            return 2 * x

    class Executor(RemotePythonExecutor):
        def __init__(self, logger):
            super().__init__([], logger)
            self.kernel = _create_kernel_http(f"{URL}/api/kernels?token={KEY}", logger)

        def run_code_raise_errors(self, code):
            ws = websocket.create_connection(f"{WS}/api/kernels/{self.kernel}/channels?token={KEY}", timeout=PATIENCE)
            try:
                return _websocket_run_code_raise_errors(code, ws, self.logger)
            finally:
                ws.close()

    executor = Executor(AgentLogger(level=0))
    executor.send_variables({"given": [1, 2, 3]})
    out = executor("total = sum(given)\nprint('logged')\ntotal")
    equal((out.output, out.logs.strip(), out.is_final_answer), ("6", "logged", False))
    from smolagents.default_tools import FinalAnswerTool

    executor.send_tools({"double": Double(), "final_answer": FinalAnswerTool()})
    out = executor("final_answer(double(total))")
    equal((out.output, out.is_final_answer), (12, True))
    requests.delete(f"{URL}/api/kernels/{executor.kernel}?token={KEY}").raise_for_status()
    print("ok smolagents")


# -- jupyter_kernel_client, on which other programs build: the binary protocol


def check_kernel_client():
    from jupyter_kernel_client import JupyterKernelClient

    with JupyterKernelClient(server_url=URL, token=KEY) as kernel:
        reply = kernel.execute("x = 6\nprint('hello')\nx * 7")
        equal([o["output_type"] for o in reply["outputs"]], ["stream", "execute_result"])
        equal((reply["status"], reply["outputs"][1]["data"]["text/plain"]), ("ok", "42"))
        equal(kernel.execute("1/0")["status"], "error")
    print("ok jupyter_kernel_client")


# -- a Jupyter server that has cove as its gateway, as `jupyter lab --gateway-url` has


def ask(ws, channel, kind, content):
    mine = uuid.uuid4().hex
    ws.send(json.dumps({"channel": channel, "header": {"msg_id": mine, "msg_type": kind, "username": "", "session": "s", "date": "", "version": "5.3"},
                        "parent_header": {}, "metadata": {}, "content": content, "buffers": []}))
    answer, idle, replied = [], False, False
    while not (idle and replied):
        m = json.loads(ws.recv())
        if m["parent_header"].get("msg_id") != mine:
            continue
        answer.append(m)
        idle = idle or m["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
        replied = replied or m["msg_type"].endswith("_reply")
    return answer


def check_gateway():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, JUPYTER_GATEWAY_AUTH_TOKEN=KEY)
    program = [sys.executable, "-m", "jupyter_server", f"--gateway-url={URL}", f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=local",
               "--ServerApp.open_browser=False", "--allow-root", f"--ServerApp.root_dir={os.environ['HOME']}"]
    log = open(os.path.join(os.environ["HOME"], "server.log"), "w+")
    server = subprocess.Popen(program, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        base, own = f"http://127.0.0.1:{port}", {"Authorization": "token local"}
        until = time.monotonic() + PATIENCE
        while True:
            try:
                requests.get(base + "/api", timeout=5).raise_for_status()
                break
            except requests.RequestException:
                if server.poll() is not None or time.monotonic() > until:
                    raise
        equal(requests.get(base + "/api/kernelspecs", headers=own).json()["default"], "python3")
        made = requests.post(base + "/api/sessions", headers=own, json={"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}})
        equal(made.status_code, 201)
        kernel = made.json()["kernel"]["id"]
        ws = websocket.create_connection(f"ws://127.0.0.1:{port}/api/kernels/{kernel}/channels?session_id=one&token=local", timeout=PATIENCE)
        equal("kernel_info_reply" in [m["msg_type"] for m in ask(ws, "shell", "kernel_info_request", {})], True)
        run = {"silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
        ran = ask(ws, "shell", "execute_request", dict(run, code="x = 6\nprint('hello')\nx * 7"))
        equal([m["msg_type"] for m in ran if m["msg_type"] not in ("status", "execute_input")], ["stream", "execute_result", "execute_reply"])
        equal(requests.post(f"{base}/api/kernels/{kernel}/restart", headers=own).status_code, 200)
        ws.close()
        ws = websocket.create_connection(f"ws://127.0.0.1:{port}/api/kernels/{kernel}/channels?session_id=one&token=local", timeout=PATIENCE)
        ran = ask(ws, "shell", "execute_request", dict(run, code="'x' in globals()"))
        equal([m["content"]["data"]["text/plain"] for m in ran if m["msg_type"] == "execute_result"], ["False"])
        equal(requests.post(f"{base}/api/kernels/{kernel}/interrupt", headers=own).status_code, 204)
        ws.close()
        equal(requests.delete(f"{base}/api/sessions/{made.json()['id']}", headers=own).status_code, 204)
    except BaseException:
        log.seek(0)
        print(log.read()[-5000:])
        raise
    finally:
        server.terminate()
        server.wait(PATIENCE)
    print("ok jupyter_server as a gateway's client")


def check_sessions():
    own = {"Authorization": f"token {KEY}"}
    body = {"path": "n.ipynb", "name": "n.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
    made = requests.post(f"{URL}/api/sessions", headers=own, json=body)
    equal(made.status_code, 201)
    one = made.json()
    equal(bool(re.fullmatch(r"\w+-\w+-\w+-\w+-\w+", one["kernel"]["id"])), True)
    equal(requests.post(f"{URL}/api/sessions", headers=own, json=body).json()["id"], one["id"])
    at = f"{URL}/api/sessions/{one['id']}"
    equal(requests.patch(at, headers=own, json={"path": "m.ipynb"}).json()["path"], "m.ipynb")
    other = requests.patch(at, headers=own, json={"kernel": {"name": "python3"}}).json()
    equal((other["id"], other["path"], other["kernel"]["id"] != one["kernel"]["id"]), (one["id"], "m.ipynb", True))
    equal([s["id"] for s in requests.get(f"{URL}/api/sessions", headers=own).json()], [one["id"]])
    equal([k["id"] for k in requests.get(f"{URL}/api/kernels", headers=own).json()], [other["kernel"]["id"]])
    equal(requests.delete(at, headers=own).status_code, 204)
    equal(requests.get(at, headers=own).status_code, 404)
    equal(requests.post(f"{URL}/api/sessions", headers=own, json={"path": "x"}).status_code, 400)
    equal(requests.post(f"{URL}/api/sessions", headers=own, json=dict(body, kernel={"name": "julia"})).status_code, 501)
    equal(requests.get(f"{URL}/api/contents", headers=own).json()["type"], "directory")
    equal(requests.get(f"{URL}/api/kernels").status_code, 401)
    equal(requests.get(f"{URL}/api").json()["version"][:2], "2.")
    print("ok REST")


if sys.argv[1:] == ["kernel"]:
    check_kernel_client()
    sys.exit()
check_sessions()
asyncio.run(autogen())
check_smolagents()
check_kernel_client()
check_gateway()
