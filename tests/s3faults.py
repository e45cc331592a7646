"""A road to an S3 server on which answers get lost, in a process of its own; it counts requests too.

In a process of its own because deltalake holds the interpreter lock while it waits for some answers.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

_CONTROL = "/--control/"
_REFUSED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class S3Road:
    """Forwards requests to a server on this machine; a context manager.

    Parameters
    ----------
    port : int
        The server's.

    Attributes
    ----------
    endpoint : str
        URL to use instead of the server's.
    """

    def __init__(self, port: int) -> None:
        self.upstream = port
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> S3Road:
        command = [sys.executable, __file__, str(self.upstream), str(self.port)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.requests()
                return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise RuntimeError(f"no road on port {self.port}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)

    def fault(self, verdict: str, where: str = "^PUT .*_delta_log") -> None:
        """Choose what becomes of the requests whose "METHOD path" matches a regular expression.

        ``"refuse"`` answers 403 and forwards nothing; ``"error"`` forwards and answers 500; ``"drop"``
        forwards and breaks the connection; ``"cut"`` does so once and lets nothing through afterwards;
        ``""`` forwards.
        """
        self._ask(f"{verdict}/{quote(where, safe='')}")

    def requests(self) -> list[str]:
        """Return the requests since the last call, each as "METHOD path"."""
        found: list[str] = json.loads(self._ask("requests/"))
        return found

    def _ask(self, text: str) -> bytes:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as client:
            client.request("GET", _CONTROL + text)
            return client.getresponse().read()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def _serve(self) -> None:
        if self.path.startswith(_CONTROL):
            self._control(*self.path[len(_CONTROL) :].split("/", 1))
            return
        body = self._body()
        line = f"{self.command} {self.path}"
        self.server.seen.append(line)
        verdict = self.server.verdict if self.server.where.search(line) else ""
        if verdict == "refuse":
            self._answer(403, {}, _REFUSED)
            return
        if verdict != "gone":
            status, headers, data = self._forward(body)
        if verdict == "cut":
            self.server.verdict, self.server.where = "gone", re.compile("")
        if verdict in ("drop", "cut", "gone"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._answer(500 if verdict == "error" else status, headers, data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # GET, PUT, ...: all alike
            return self._serve
        raise AttributeError(name)

    def _control(self, verdict: str, where: str) -> None:
        data = b""
        if verdict == "requests":
            data = json.dumps(self.server.seen).encode()
            self.server.seen = []
        else:
            self.server.verdict, self.server.where = verdict, re.compile(unquote(where))
        self._answer(200, {}, data)

    def _body(self) -> bytes:
        """Return the body as it came, with the frames of a chunked one."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        out = []
        size = 1
        while size:
            line = self.rfile.readline()
            size = int(line.split(b";")[0], 16)
            out += [line, self.rfile.read(size + 2)]
        return b"".join(out)

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=30)
        ) as client:
            # The headers go on as they are: the signature covers the host.
            client.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                client.putheader(name, value)
            client.endheaders(body)
            answer = client.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    verdict, where = "", re.compile("$^")

    def __init__(self, upstream: int, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.upstream = upstream
        self.seen: list[str] = []


if __name__ == "__main__":
    _Server(int(sys.argv[1]), int(sys.argv[2])).serve_forever()
