"""A road to an S3 server on which every request takes longer, and is written down; a process of its own.

What is sent goes on as it comes, in pieces, so that the road costs little beside the time that it adds.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from typing import NamedTuple

_CONTROL = b"/--requests/"
_PIECE = 1 << 20
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Request(NamedTuple):
    """A request that went over the road.

    Attributes
    ----------
    method, path, span : str
        What was asked for: ``GET``, the path with its query, and the range of bytes if there was one.
    start, end : float
        Seconds of one clock: when it had come, and when the last byte of the answer had gone.
    status, nbytes : int
        The answer's status, and the bytes of its body.
    """

    method: str
    path: str
    span: str
    start: float
    end: float
    status: int
    nbytes: int


def round_trips(requests: Sequence[Request]) -> int:
    """Return how many requests at most came one after the other: each after the end of the one before."""
    count, free = 0, float("-inf")
    for request in sorted(requests, key=lambda r: r.end):
        if request.start >= free:
            count, free = count + 1, request.end
    return count


class S3Road:
    """Forwards requests to a server on this machine; a context manager.

    Parameters
    ----------
    port : int
        The server's.
    delay : float
        Seconds that are added to every request.
    bandwidth : float
        Bytes per second that all answers share.

    Attributes
    ----------
    endpoint : str
        URL to use instead of the server's.
    """

    def __init__(self, port: int, delay: float, bandwidth: float = math.inf) -> None:
        self.upstream, self.delay, self.bandwidth = port, delay, bandwidth
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> S3Road:
        numbers = (self.upstream, self.port, self.delay, self.bandwidth)
        command = [sys.executable, __file__, *map(str, numbers)]
        self._process = subprocess.Popen(command)
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

    def requests(self) -> list[Request]:
        """Return the requests since the last call."""
        return requests(self.endpoint)


def requests(endpoint: str) -> list[Request]:
    """Return the requests that went over the road with this URL since the last call."""
    with closing(http.client.HTTPConnection(endpoint.split("//")[1], timeout=20)) as client:
        client.request("GET", _CONTROL.decode())
        return [Request(*found) for found in json.loads(client.getresponse().read())]


class _Road:
    """Answers on one port what a server says on another."""

    def __init__(self, upstream: int, delay: float, bandwidth: float) -> None:
        self.upstream, self.delay, self.bandwidth = upstream, delay, bandwidth
        self.busy = 0.0  # until when the link is
        self.seen: list[Request] = []
        self.free: list[_Streams] = []  # connections to the server that wait for another request

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the requests of one connection until it ends."""
        try:
            while head := await _head(reader):
                await self._forward(head, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _forward(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        start = time.monotonic()
        method, path, _ = head.split(b"\r\n", 1)[0].split(b" ")
        if path == _CONTROL:
            data, self.seen = json.dumps(self.seen).encode(), []
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            await writer.drain()
            return
        await asyncio.sleep(self.delay)
        if _value(head, b"expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            head = _without(head, b"expect")
        streams = await self._connect()
        streams[1].write(head)
        await _body(head, reader, streams[1])
        answer = await _head(streams[0])
        writer.write(answer)
        status = int(answer.split(b" ", 2)[1])
        empty = method == b"HEAD" or status in (204, 304)
        nbytes = 0 if empty else await _body(answer, streams[0], writer, self._pass)
        # Written down before the client can know that the answer has ended.
        self.seen.append(
            Request(method.decode(), path.decode(), _value(head, b"range").decode(), start,
                    time.monotonic(), status, nbytes)
        )  # fmt: skip
        await writer.drain()
        if _value(answer, b"connection").lower() == b"close":
            streams[1].close()
        else:
            self.free.append(streams)

    async def _pass(self, nbytes: int) -> None:
        """Wait until these bytes have gone through the link."""
        self.busy = max(self.busy, time.monotonic()) + nbytes / self.bandwidth
        if math.isfinite(self.bandwidth):
            await asyncio.sleep(self.busy - time.monotonic())

    async def _connect(self) -> _Streams:
        while self.free:
            streams = self.free.pop()
            if not streams[0].at_eof():  # the server ends connections that nobody uses
                return streams
            streams[1].close()
        return await asyncio.open_connection("127.0.0.1", self.upstream, limit=_PIECE)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Return the lines before a body, empty where the connection has ended."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return b""


def _value(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _without(head: bytes, name: bytes) -> bytes:
    lines = head.split(b"\r\n")
    return b"\r\n".join(n for n in lines if n.split(b":")[0].lower() != name)


async def _body(
    head: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    wait: Callable[[int], Awaitable[None]] | None = None,
) -> int:
    """Hand a body on; return its bytes."""
    if b"chunked" in _value(head, b"transfer-encoding").lower():
        return await _chunks(reader, writer)
    size = left = int(_value(head, b"content-length") or 0)
    while left:
        data = await reader.read(min(left, _PIECE))
        if not data:
            raise ConnectionError("the body ends early")
        left -= len(data)
        if wait is not None:
            await wait(len(data))
        writer.write(data)
        await writer.drain()
    return size


async def _chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    total, size = 0, 1
    while size:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        writer.write(line + await reader.readexactly(size + 2))
        await writer.drain()
        total += size
    return total


async def _main(upstream: int, port: int, delay: float, bandwidth: float) -> None:
    road = _Road(upstream, delay, bandwidth)
    server = await asyncio.start_server(road.serve, "127.0.0.1", port, limit=_PIECE, backlog=512)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2]), *map(float, sys.argv[3:])))
