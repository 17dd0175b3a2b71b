"""Builds the template that E2B's tests of added headers connect to: a server at port 8080 that says which headers it got.

httpbin.py URL KEY
"""

import json
import sys
import time
import urllib.request

URL, KEY = sys.argv[1:]

SERVER = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = json.dumps({"headers": {name: self.headers.get_all(name) for name in self.headers}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
"""


def call(method, path, body=None):
    request = urllib.request.Request(URL + path, json.dumps(body).encode() if body is not None else None, {"X-API-KEY": KEY, "Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
        return json.loads(text) if text else None


made = call("POST", "/v3/templates", {"name": "httpbin", "cpuCount": 1, "memoryMB": 512})
at = f"/templates/{made['templateID']}/builds/{made['buildID']}"
step = {"type": "RUN", "args": [f"cat >/home/user/server.py <<'END'\n{SERVER}\nEND"]}
call("POST", "/v2" + at, {"fromImage": "python:3", "steps": [step], "startCmd": "python3 /home/user/server.py", "readyCmd": "curl -sS http://localhost:8080/"})
while (status := call("GET", at + "/status?logsOffset=0"))["status"] not in ("ready", "error"):
    time.sleep(0.5)
if status["status"] == "error":
    sys.exit(json.dumps(status))
