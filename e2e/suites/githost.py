"""Serves the Git repositories of a folder over HTTPS, as a stand-in for a public host that a test clones from.

githost.py FOLDER ADDRESS:PORT CERTIFICATE KEY
"""

import http.server
import os
import socketserver
import ssl
import subprocess
import sys

FOLDER, ADDRESS, CERTIFICATE, KEY = sys.argv[1:]
MOST = 64 << 20  # bytes of a request


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), MOST))
        env = dict(os.environ, GIT_PROJECT_ROOT=FOLDER, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_USER="", REMOTE_ADDR="")
        env.update(CONTENT_TYPE=self.headers.get("Content-Type") or "", CONTENT_LENGTH=str(len(body)), HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding") or "")
        env.update(GIT_PROTOCOL=self.headers.get("Git-Protocol") or "", GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
        said = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False).stdout
        head, _, content = said.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = serve


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


host, port = ADDRESS.rsplit(":", 1)
server = Server((host, int(port)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
