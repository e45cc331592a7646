"""Links to web servers: one request for each, to an address that was checked.

`http.client` of the standard library, and neither urllib nor fsspec. Both look up the host and connect in one step, so
that what was checked need not be what is connected to; urllib follows proxies of the environment and redirects by
itself; fsspec would need aiohttp. Here the addresses of a host are looked up once, those that are allowed are connected
to by number, and every redirect begins anew. A proxy is not used.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from tensorlake_spark.datasets.links.link_facts import LinkFacts, is_etag
from tensorlake_spark.datasets.links.link_rules import LinkRules, host_of
from tensorlake_spark.datasets.types.link_url import LinkUrl, shown
from tensorlake_spark.errors import (
    ForbiddenLinkError,
    MissingLinkError,
    StorageError,
)

Result = TypeVar("Result")
Check = Callable[[LinkFacts], None]

_REDIRECTS = (301, 302, 303, 307, 308)
_GONE = (404, 410)
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_NO_HEAD = (400, 403, 405, 406, 501)
_PIECE = 1 << 16


class _AgainError(Exception):
    """What may succeed when it is tried once more."""


def describe_url(link: LinkUrl, rules: LinkRules) -> LinkFacts:
    """Return size and ETag that a server says, without reading the target.

    Raises
    ------
    MissingLinkError
        If the server says that there is nothing.
    ForbiddenLinkError
        If the host, its address, or a host that the server sends to is not allowed.
    StorageError
        If the server refuses, is too slow, or does not say what would show a change.
    """

    def asked(method: str, headers: dict[str, str]) -> LinkFacts | None:
        with _answer(link, rules, method, headers) as answer:
            if answer.status in _NO_HEAD and method == "HEAD":
                return None
            _check_status(link, answer, (200, 206))
            return _facts(link, answer)

    found = _repeated(rules, lambda: asked("HEAD", {}))
    if found is None:  # some servers know no HEAD
        found = _repeated(rules, lambda: asked("GET", {"Range": "bytes=0-0"}))
    assert found is not None  # nosec B101  # only HEAD gives None
    if found.size is None and found.etag is None:
        raise StorageError(
            f"the server of the link {link.shown} says neither size nor ETag nor date, so that a change could not be "
            "noticed; store the data itself"
        )
    return found


def read_url(
    link: LinkUrl, rules: LinkRules, start: int, stop: int | None, check: Check, stored: LinkFacts
) -> bytes:
    """Return some bytes of a target, to its end without `stop`; `check` may refuse what it has become.

    `stored` says whether an ETag or a date is compared, and how many bytes there can be.
    """
    if stop is not None and stop <= start:
        check(describe_url(link, rules))
        return b""
    whole = start == 0 and stop is None
    most = rules.max_bytes
    if rules.verify and stored.size is not None:
        most = min(most, max(0, stored.size - start))
    headers = {} if whole else {"Range": f"bytes={start}-{'' if stop is None else stop - 1}"}

    def read() -> bytes:
        with _answer(link, rules, "GET", headers) as answer:
            _check_status(link, answer, (200, 206, 416))
            facts = _facts(link, answer, stored.etag)
            check(facts)
            if answer.status == 416:
                return b""
            skip = 0
            if answer.status == 206:
                if answer.range_start != start:
                    raise StorageError(
                        f"the server of the link {link.shown} sends other bytes than asked for"
                    )
            elif not whole:
                skip = start  # it knows no ranges, and sends all
                if skip > rules.max_bytes:
                    raise StorageError(
                        f"the server of the link {link.shown} knows no ranges, and {skip} bytes would be read in vain"
                    )
            return answer.read(skip, None if stop is None else stop - start, most)

    return _repeated(rules, read)


def _repeated(rules: LinkRules, work: Callable[[], Result]) -> Result:
    for count in range(rules.retries + 1):
        try:
            return work()
        except _AgainError as error:
            if count == rules.retries:
                raise StorageError(str(error)) from error.__cause__
        time.sleep(min(0.2 * 2**count, rules.stall_timeout))
    raise AssertionError


class _Raw(io.RawIOBase):
    """What comes from a socket until a deadline, however slowly it drips."""

    def __init__(self, sock: socket.socket, until: float, stall: float) -> None:
        self._sock, self._until, self._stall = sock, until, stall

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        rest = self._until - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        self._sock.settimeout(min(rest, self._stall))
        return self._sock.recv_into(buffer)


class _Socket:
    """What `http.client` needs of a socket, with a deadline."""

    def __init__(self, sock: socket.socket, until: float, stall: float) -> None:
        self._sock, self._until, self._stall = sock, until, stall

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Raw(self._sock, self._until, self._stall), _PIECE)

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(max(1e-3, min(self._until - time.monotonic(), self._stall)))
        self._sock.sendall(data)

    def close(self) -> None:
        """Do nothing: an answer is read after its connection was let go of. Who connected closes."""


class _Answer:
    """The answer of a server that does not send elsewhere."""

    def __init__(self, url: str, response: http.client.HTTPResponse) -> None:
        self.url = url
        self.status = response.status
        self._response = response
        said = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", self.header("Content-Range") or "")
        self.range_start = int(said[1]) if said and said[1] else None
        self._total = int(said[2]) if said and said[2] != "*" else None

    def header(self, name: str) -> str | None:
        return self._response.getheader(name)

    @property
    def size(self) -> int | None:
        """The size of the whole target."""
        if self.status in (206, 416):
            return self._total
        length = self.header("Content-Length") or ""
        return int(length) if re.fullmatch(r"\d{1,18}", length) else None

    def read(self, skip: int, nbytes: int | None, most: int) -> bytes:
        """Return `nbytes` after `skip`, or all; StorageError if they are more than `most`."""
        out = bytearray()
        while nbytes is None or len(out) < nbytes:
            piece = self._response.read1(_PIECE)
            if not piece:
                break
            dropped = min(skip, len(piece))
            skip -= dropped
            out += piece[dropped:]
            if len(out) > most:
                raise StorageError(
                    f"the server of the link {shown(self.url)} sends more than {most} bytes, which its stored size, or "
                    "max_bytes, allows"
                )
        if self._response.length and (nbytes is None or len(out) < nbytes):
            raise _AgainError(
                f"the answer of the link {shown(self.url)} broke off after {len(out)} bytes"
            )
        return bytes(out if nbytes is None else out[:nbytes])


def _facts(link: LinkUrl, answer: _Answer, like: str | None = None) -> LinkFacts:
    """Return size and ETag, or the date where there is no ETag, or where what is stored is a date."""
    if (coding := answer.header("Content-Encoding") or "identity").lower() != "identity":
        raise StorageError(
            f"the server of the link {link.shown} sends its bytes coded as {coding!r:.40}, which was not asked for"
        )
    names = (
        ("ETag", "Last-Modified") if like is None or is_etag(like) else ("Last-Modified", "ETag")
    )
    etag = next((text for name in names if (text := answer.header(name))), "").strip()[:1024]
    return LinkFacts(link.text, answer.size, etag or None)


def _check_status(link: LinkUrl, answer: _Answer, good: tuple[int, ...]) -> None:
    status = answer.status
    if status in good:
        return
    if status in _GONE:
        raise MissingLinkError(
            f"there is nothing at the link {link.shown}: the server says {status}"
        )
    if status in _AGAIN:
        raise _AgainError(f"the server of the link {link.shown} answers {status}, again and again")
    remedy = "; name a variable with its token in `tokens`" if status in (401, 403) else ""
    raise StorageError(f"the server of the link {link.shown} refuses: it answers {status}{remedy}")


@contextmanager
def _answer(
    link: LinkUrl, rules: LinkRules, method: str, headers: dict[str, str]
) -> Iterator[_Answer]:
    """Ask, follow redirects by the rules, and close the connection afterwards."""
    until = time.monotonic() + rules.timeout
    url = link.text
    try:
        for _ in range(rules.redirects + 1):
            with _asked(url, rules, method, headers, until) as response:
                place = response.getheader("Location")
                if response.status not in _REDIRECTS or place is None:
                    yield _Answer(url, response)
                    return
            url = _redirected(link, url, place)
    except ssl.SSLCertVerificationError as error:
        raise StorageError(
            f"the certificate of the server of the link {link.shown} is not valid: {error.verify_message}"
        ) from None
    except TimeoutError:
        raise StorageError(
            f"the server of the link {link.shown} is too slow: nothing for {rules.stall_timeout:g} seconds, or not all "
            f"in {rules.timeout:g}; LinkRules(stall_timeout=, timeout=) change it"
        ) from None
    except (http.client.HTTPException, ConnectionError, ssl.SSLError, socket.gaierror) as error:
        # A server that closes before it answers raises an OSError without text of the system.
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise _AgainError(f"the server of the link {link.shown} does not answer: {said}") from None
    raise StorageError(f"the link {link.shown} is redirected more than {rules.redirects} times")


def _redirected(link: LinkUrl, url: str, place: str) -> str:
    """Return where a server sends to; the hosts' rules are asked by who connects."""
    try:
        new = urljoin(url, place)
        scheme = urlsplit(new).scheme.lower()
        urlsplit(new).port  # noqa: B018  # raises where it is no number
    except ValueError:
        scheme = new = ""
    if scheme not in ("http", "https") or not urlsplit(new).hostname or "@" in urlsplit(new).netloc:
        raise ForbiddenLinkError(
            f"the link {link.shown} is redirected to something that is not a plain URL of http"
        )
    if scheme == "http" and urlsplit(url).scheme.lower() == "https":
        raise ForbiddenLinkError(
            f"the link {link.shown} is redirected from https to http: {shown(new)}"
        )
    return new


@contextmanager
def _asked(
    url: str, rules: LinkRules, method: str, headers: dict[str, str], until: float
) -> Iterator[http.client.HTTPResponse]:
    """Send one request to a host that the rules allow."""
    rules.check_host(url)
    host, port = host_of(url)
    parts = urlsplit(url)
    sock, address = _connected(host, port, rules, until)
    try:
        if parts.scheme.lower() == "https":
            sock.settimeout(max(1e-3, min(until - time.monotonic(), rules.stall_timeout)))
            sock = _tls().wrap_socket(sock, server_hostname=_ascii(host))
        token = rules.token_of(url, address)
        client = http.client.HTTPConnection(_ascii(host), port)
        client.sock = _Socket(sock, until, rules.stall_timeout)
        client.putrequest(
            method, _target(parts.path, parts.query), skip_host=True, skip_accept_encoding=True
        )
        netloc = f"[{host}]" if ":" in host else _ascii(host)
        default = {"http": 80, "https": 443}[parts.scheme.lower()]
        client.putheader("Host", netloc if port == default else f"{netloc}:{port}")
        for name, value in {
            "Accept-Encoding": "identity", "User-Agent": "tensorlake-spark", "Connection": "close",
            "Accept": "*/*", **headers,
        }.items():  # fmt: skip
            client.putheader(name, value)
        if token is not None:
            client.putheader("Authorization", f"Bearer {token}")
        client.endheaders()
        response = client.getresponse()
        try:
            yield response
        finally:
            response.close()
    finally:
        sock.close()


def _connected(host: str, port: int, rules: LinkRules, until: float) -> tuple[socket.socket, str]:
    """Return a connection to the first address of a host that is allowed and answers, and the address."""
    found = socket.getaddrinfo(_ascii(host), port, type=socket.SOCK_STREAM)
    allowed = [one for one in found if rules.allows_address(str(one[4][0]), port)]
    if not allowed:
        addresses = ", ".join(sorted({str(one[4][0]) for one in found})[:3])
        raise ForbiddenLinkError(
            f"the host {host} has an address that is not public, {addresses}; name the address, with its port if that "
            "is neither 80 nor 443, in allow_http beside the host if you trust what answers there"
        )
    error: OSError = ConnectionRefusedError()
    for family, kind, protocol, _, place in allowed:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(1e-3, min(until - time.monotonic(), rules.stall_timeout)))
            sock.connect(place)
            return sock, str(place[0])
        except OSError as each:
            sock.close()
            error = each
    if isinstance(error, (TimeoutError, ConnectionError)):
        raise error
    raise ConnectionError(error.errno, error.strerror) from error


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _ascii(host: str) -> str:
    """Return the name of a host, or its address, as it is looked up."""
    try:
        return host if ":" in host else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ForbiddenLinkError(f"the host {host!r:.100} is not the name of a host") from None


def _target(path: str, query: str) -> str:
    """Return path and query as they stand in a request: other characters than those of URLs are coded."""
    safe = "/%:@!$&'()*+,;=~-._?[]"
    return quote(path or "/", safe=safe) + (f"?{quote(query, safe=safe)}" if query else "")
