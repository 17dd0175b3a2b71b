"""Has jupyter_server's tests of its services ask cove. e2e/suites/jupyter.sh puts it into tests/services of a copy of the tests.

The fixtures jp_fetch and jp_ws_fetch call cove. Tests of contents make and look for files in a folder of this machine: it is copied to the personal session before each request, and back behind those that change
something.
"""
import asyncio
import base64
import json
import os
import shutil
import urllib.parse
import urllib.request

import pytest
import tornado.httpclient
import tornado.websocket
from jupyter_server.utils import url_path_join
from tornado.escape import url_escape

URL, KEY = os.environ["COVE_TEST_URL"], os.environ["COVE_TEST_KEY"]

TREE = '''
import base64, json, os, shutil
def tree(root="."):
    out = {}
    for folder, folders, files in os.walk(root):
        for name in folders:
            out[os.path.relpath(os.path.join(folder, name), root)] = None
        for name in files:
            with open(os.path.join(folder, name), "rb") as f:
                out[os.path.relpath(os.path.join(folder, name), root)] = base64.b64encode(f.read()).decode()
    return out
def put(want, root="."):
    have = tree(root)
    for path in sorted(have, reverse=True):
        if path not in want:
            at = os.path.join(root, path)
            shutil.rmtree(at) if have[path] is None else os.remove(at)
    for path in sorted(want):
        at = os.path.join(root, path)
        if want[path] is None:
            os.makedirs(at, exist_ok=True)
        elif have.get(path, 0) != want[path]:
            os.makedirs(os.path.dirname(at), exist_ok=True)
            with open(at, "wb") as f:
                f.write(base64.b64decode(want[path]))
'''
here = {}
exec(TREE, here)


def call(method, path, body=None):
    request = urllib.request.Request(URL + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def personal():
    for session in call("GET", "/api/v1/sessions?limit=100")["items"]:
        if "jupyter.personal" in (session.get("metadata") or {}):
            return session["id"]
    call("POST", "/jupyter/api/contents", {})
    return personal()


class Mirror:
    def __init__(self, root):
        self.root, self.session, self.last = root, personal(), None

    def run(self, code):
        done = call("POST", f"/api/v1/sessions/{self.session}/executions", {"code": TREE + code})
        assert done["state"] == "ok", done
        return "".join(e.get("text", "") or e.get("data", {}).get("text", "") for e in done["events"] if "stdout" in json.dumps(e))

    def there(self):
        have = here["tree"](self.root)
        if have != self.last:
            self.run(f"put(json.loads({json.dumps(json.dumps(have))}))\n")
            self.last = have

    def back(self):
        here["put"](json.loads(self.run("print(json.dumps(tree()))\n")), self.root)
        self.last = here["tree"](self.root)


@pytest.fixture
def jp_base_url():
    return "/jupyter/"


@pytest.fixture(autouse=True)
def no_kernels_left():
    yield
    for kernel in call("GET", "/jupyter/api/kernels"):
        call("DELETE", "/jupyter/api/kernels/" + kernel["id"])


@pytest.fixture
def jp_fetch(jp_serverapp, jp_root_dir, request):
    files = "contents" in str(request.node.fspath) or "resolve" in request.node.name
    mirror = Mirror(str(jp_root_dir)) if files else None

    async def fetch(*parts, headers=None, params=None, **kwargs):
        headers = {"Authorization": "token " + KEY, **(headers or {})}
        url = URL + url_path_join("/jupyter", url_escape(url_path_join(*parts), plus=False)) + "?" + urllib.parse.urlencode(params or {})
        if mirror:
            await asyncio.to_thread(mirror.there)
        try:
            return await tornado.httpclient.AsyncHTTPClient().fetch(url, headers=headers, request_timeout=60, **kwargs)
        finally:
            if mirror and kwargs.get("method", "GET") != "GET":
                await asyncio.to_thread(mirror.back)

    return fetch


@pytest.fixture
def jp_ws_fetch(jp_serverapp):
    def fetch(*parts, params=None, **_):
        url = URL.replace("http", "ws", 1) + url_path_join("/jupyter", url_escape(url_path_join(*parts), plus=False)) + "?" + urllib.parse.urlencode(params or {})
        return tornado.websocket.websocket_connect(tornado.httpclient.HTTPRequest(url, headers={"Authorization": "token " + KEY}, connect_timeout=120))

    return fetch
