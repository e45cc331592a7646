"""A web server on this machine that does what a test says: ranges, redirects, silence, answers that break off."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebServer:
    """Serves `pages` on a free port of 127.0.0.1; a context manager.

    Attributes
    ----------
    pages : dict of str to bytes
        What is at a path.
    moved : dict of str to str
        Where a path sends to.
    odd : dict of str to str
        What is odd about a path, words of ``no-head no-etag no-size no-range drip hang short gzip busy``.
    asked : list of tuple
        Every request: method, path and headers.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.moved: dict[str, str] = {}
        self.odd: dict[str, str] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.busy = 0
        self.ended = threading.Event()

    @property
    def host(self) -> str:
        """Its address and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{self.host}{path}"

    def __enter__(self) -> WebServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                server._answer(self)

            do_GET = do_HEAD  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = (
                128  # with 5, as it is else, clients that come at once wait a second
            )

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, to: BaseHTTPRequestHandler) -> None:
        path = to.path.partition("?")[0]
        odd = self.odd.get(path, "").split()
        self.asked.append((to.command, to.path, dict(to.headers.items())))
        if "hang" in odd:
            self.ended.wait(20)
            return
        if "no-head" in odd and to.command == "HEAD":
            to.send_error(405)
            return
        if "busy" in odd and self.busy:
            self.busy -= 1
            to.send_error(503)
            return
        if path in self.moved:
            to.send_response(302)
            to.send_header("Location", self.moved[path])
            to.end_headers()
            return
        if path not in self.pages:
            to.send_error(404)
            return
        self._send(to, self.pages[path], odd)

    def _send(self, to: BaseHTTPRequestHandler, data: bytes, odd: list[str]) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", to.headers.get("Range", ""))
        if asked and "no-range" not in odd:
            start, stop = int(asked[1]), int(asked[2] or len(data) - 1) + 1
            if start >= len(data):
                to.send_response(416)
                to.send_header("Content-Range", f"bytes */{len(data)}")
                part = b""
            else:
                part = data[start:stop]
                to.send_response(206)
                to.send_header(
                    "Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}"
                )
        else:
            to.send_response(200)
            part = data
        if "no-size" not in odd:
            to.send_header("Content-Length", str(len(part)))
        if "no-etag" not in odd:
            to.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()[:8]}"')
        if "dated" in odd:
            to.send_header("Last-Modified", "Tue, 15 Nov 1994 12:45:26 GMT")
        if "gzip" in odd:
            to.send_header("Content-Encoding", "gzip")
        to.end_headers()
        if to.command == "HEAD":
            return
        if "short" in odd:
            part = part[: len(part) // 2]
        if "drip" in odd:
            for byte in part:
                try:
                    to.wfile.write(bytes([byte]))
                    time.sleep(0.05)
                except OSError:
                    return
            return
        to.wfile.write(part)
