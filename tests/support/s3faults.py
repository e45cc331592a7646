"""A road to an S3 server on which things go wrong, in a process of its own; it counts requests too.

In a process of its own because deltalake holds the interpreter lock while it waits for some answers.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

_CONTROL = "/--control/"

_ANSWERS = {
    "refuse": (403, "AccessDenied", "Access Denied"),
    "fail": (500, "InternalError", "We encountered an internal error. Please try again."),
    "slow down": (503, "SlowDown", "Please reduce your request rate."),
    "unknown": (
        501,
        "NotImplemented",
        "A header you provided implies functionality that is not implemented.",
    ),
    "expired": (400, "ExpiredToken", "The provided token has expired."),
    "expired, 403": (403, "ExpiredToken", "The provided token has expired."),
}
"""What answers instead of the server: status, code, message."""

TOKEN = "a-session-token-that-nobody-may-print"
PATIENCE = {
    "timeout": "1s",
    "connect_timeout": "1s",
    "max_retries": "1",
    "backoff_config.init_backoff": "20ms",
}
"""Options of those who take the road, and who soon give up."""


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

    def fault(
        self,
        verdict: str,
        where: str = "^PUT .*_delta_log",
        *,
        times: int | None = None,
        after: int = 0,
        wait: float = 0,
        then: str = "",
    ) -> None:
        """Choose what becomes of the requests whose "METHOD path" matches a regular expression.

        ========================  ==================================================================
        ``""``                    forwards
        ``"fail"``                answers 500 and forwards nothing
        ``"slow down"``           answers 503
        ``"unknown"``             answers 501, as a store that does not know such a request
        ``"refuse"``              answers 403; as all that answer an error of S3, with the credentials that came
        ``"expired"``             answers 400 ExpiredToken; ``"expired, 403"`` with the other status
        ``"silent"``              never answers, until the next call of this method
        ``"late"``                forwards, and answers after `wait` seconds
        ``"held"``                waits so long before it forwards
        ``"reset"``               forwards, and resets the connection in the middle of the body
        ``"short"``               forwards; half of the body comes, and the connection ends
        ``"trimmed"``             forwards; half of the body comes, and the header says that it is all
        ``"error"``               forwards and answers 500
        ``"drop"``                forwards and breaks the connection
        ``"cut"``                 does so once and lets nothing through afterwards
        ========================  ==================================================================

        Parameters
        ----------
        verdict, where : str
            What, and for which requests.
        times : int, optional
            For how many requests; all from then on by default.
        after : int
            How many requests that match pass before.
        wait : float
            Seconds, for ``"late"`` and ``"held"``.
        then : str
            What becomes of those that match after the first `times`.
        """
        rule = {
            "verdict": verdict,
            "where": where,
            "times": times,
            "after": after,
            "wait": wait,
            "then": then,
        }
        self._ask(f"fault/{quote(json.dumps(rule), safe='')}")

    def requests(self) -> list[str]:
        """Return the requests since the last call, each as "METHOD path"."""
        found: list[str] = json.loads(self._ask("requests/"))
        return found

    def settle(self) -> None:
        """Wait until no request is under way."""
        for _ in range(600):
            if self._ask("under%20way/") == b"0":
                return
            time.sleep(0.05)
        raise RuntimeError("requests are still under way on the road")

    def _ask(self, text: str) -> bytes:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as client:
            client.request("GET", _CONTROL + text)
            return client.getresponse().read()


class _Rule:
    """What goes wrong, and how often it still does."""

    def __init__(
        self,
        verdict: str = "",
        where: str = "$^",
        times: int | None = None,
        after: int = 0,
        wait: float = 0,
        then: str = "",
    ) -> None:
        self.where, self.wait, self.then = re.compile(where), wait, then
        self._verdict, self._times, self._after = verdict, times, after
        self._lock = threading.Lock()
        self.over = threading.Event()

    def of(self, line: str) -> str:
        """Return the verdict on one request."""
        with self._lock:
            if not self.where.search(line):
                return ""
            if self._after:
                self._after -= 1
                return ""
            if self._times is not None:
                if not self._times:
                    return self.then
                self._times -= 1
            return self._verdict


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def _serve(self) -> None:
        if self.path.startswith(_CONTROL):
            self._control(*self.path[len(_CONTROL) :].split("/", 1))
            return
        self.server.count(1)
        try:
            self._pass(f"{self.command} {self.path}")
        finally:
            self.server.count(-1)

    def _pass(self, line: str) -> None:
        """Forward one request, or do what the rule says of it."""
        body = self._body()
        self.server.seen.append(line)
        rule = self.server.rule
        verdict = rule.of(line)
        if verdict in _ANSWERS:
            status, code, said = _ANSWERS[verdict]
            text = f"<Error><Code>{code}</Code><Message>{said}</Message>{self._repeated()}</Error>"
            self._answer(status, {"Content-Type": "application/xml"}, text.encode())
            return
        if verdict == "silent":
            rule.over.wait()
        if verdict in ("silent", "gone"):
            self._break()
            return
        if verdict == "held":
            time.sleep(rule.wait)
        status, headers, data = self._forward(body)
        if verdict == "cut":
            self._follow(_Rule("gone", ""))
        if verdict in ("drop", "cut"):
            self._break()
            return
        if verdict == "late":
            rule.over.wait(rule.wait)
        if verdict == "trimmed":
            data = data[: len(data) // 2]
        self._answer(500 if verdict == "error" else status, headers, data, verdict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):  # GET, PUT, ...: all alike
            return self._serve
        raise AttributeError(name)

    def _control(self, verb: str, argument: str) -> None:
        data = b""
        verb = unquote(verb)
        if verb == "requests":
            data = json.dumps(self.server.seen).encode()
            self.server.seen = []
        elif verb == "under way":
            data = str(self.server.under_way).encode()
        else:
            self._follow(_Rule(**json.loads(unquote(argument))))
        self._answer(200, {}, data)

    def _repeated(self) -> str:
        """Return what AWS repeats of the credentials of a request that it refuses."""
        out = ""
        if key := re.search("Credential=([^/]*)", self.headers.get("Authorization", "")):
            out += f"<AWSAccessKeyId>{key[1]}</AWSAccessKeyId>"
        if token := self.headers.get("X-Amz-Security-Token"):
            out += f"<Token-0>{token}</Token-0><CanonicalRequest>x-amz-security-token:{token}</CanonicalRequest>"
        return out

    def _follow(self, rule: _Rule) -> None:
        self.server.rule.over.set()
        self.server.rule = rule

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

    def _answer(self, status: int, headers: dict[str, str], data: bytes, verdict: str = "") -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if verdict in ("reset", "short"):
            data = data[: len(data) // 2]
        if self.command != "HEAD":
            self.wfile.write(data)
        if verdict == "reset":  # closing with nothing to linger for sends RST
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        elif verdict == "short":
            self._break()

    def _break(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream: int, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.upstream = upstream
        self.rule = _Rule()
        self.seen: list[str] = []
        self.under_way = 0
        self._lock = threading.Lock()

    def count(self, more: int) -> None:
        """Note that requests begin or end."""
        with self._lock:
            self.under_way += more


if __name__ == "__main__":
    _Server(int(sys.argv[1]), int(sys.argv[2])).serve_forever()
