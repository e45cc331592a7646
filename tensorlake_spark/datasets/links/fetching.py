"""Links, looked up and fetched: one, or many at once by threads, in order and with bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from itertools import count, tee
from typing import Any, TypeVar

import pyarrow as pa

from tensorlake_spark.datasets.links.file_target import describe_file, read_file
from tensorlake_spark.datasets.links.http_target import describe_url, read_url
from tensorlake_spark.datasets.links.link_facts import LinkFacts
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.link_url import LinkUrl, parse_link
from tensorlake_spark.errors import (
    ChangedLinkError,
    CorruptDataError,
    ForbiddenLinkError,
    InvalidLinkError,
    InvalidOptionError,
    MissingLinkError,
    StorageError,
    TensorLakeError,
)
from tensorlake_spark.threads import IO_THREADS, io_threads

Task = TypeVar("Task")
Result = TypeVar("Result")
Check = Callable[[LinkFacts], None]

STORAGE = pa.struct([("url", pa.string()), ("size", pa.int64()), ("etag", pa.string())])
"""The Arrow type of a column of links."""

_OF_LINKS = (CorruptDataError, ForbiddenLinkError, InvalidLinkError, StorageError)

AT_ONCE = 256 << 20
"""Bytes of targets that are fetched ahead; one target more where it is larger."""


def describe_link(link: Any, rules: LinkRules, where: str = "") -> LinkFacts:
    """Look up what a link points to, as it is stored: its size and what changes with it.

    Parameters
    ----------
    link : str or path
        An absolute path, ``s3://bucket/key``, or a URL.
    rules : LinkRules
        What is allowed.
    where : str
        What errors begin with, such as ``"column 'image', sample 7"``.

    Raises
    ------
    InvalidLinkError
        If it is no link, or has credentials in it.
    ForbiddenLinkError
        If the rules do not allow it.
    MissingLinkError
        If nothing is there.
    StorageError
        If the store refuses or is too slow, or the target is larger than the rules allow.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"abc"), file.flush()
    ...     facts = describe_link(file.name, LinkRules())
    ...     facts.size, fetch_link(facts.url, facts.size, facts.etag, LinkRules())
    (3, b'abc')
    """
    with _Place(where):
        url = parse_link(link)
        if url.kind == "file":
            facts = describe_file(url, rules)
        elif url.kind == "s3":
            facts = _s3().describe_object(url, rules)
        else:
            facts = describe_url(url, rules)
        _check_size(url, facts.size, rules)
        return facts


def describe_links(
    links: Iterable[Any],
    rules: LinkRules,
    column: str = "link",
    first: int = 0,
    errors: str = "raise",
) -> Iterator[Any]:
    """Look up many links at once; yield `LinkFacts` in their order, None for None, and a list for a list.

    Parameters
    ----------
    links : iterable of str, path, None, or list of these
        One value a sample. Each link is as for `describe_link`.
    rules : LinkRules
        What is allowed.
    column : str
        Named by errors.
    first : int
        The number of the first sample in what the user gave.
    errors : {"raise", "return"}
        What becomes of a link that is wrong, forbidden, gone or out of reach: its error is raised, or yielded in its
        place, so that the caller can go on without it.
    """
    catch = _caught(errors)

    def describe(task: tuple[str, Any]) -> LinkFacts | TensorLakeError | None:
        where, link = task
        try:
            return None if link is None else describe_link(link, rules, where)
        except catch as error:
            return error

    return _of_samples(describe, links, lambda _: 0, column, first)


def fetch_link(
    url: str, size: int | None, etag: str | None, rules: LinkRules, where: str = ""
) -> bytes:
    """Return the bytes that a stored link points to, if they are still those that were linked.

    Parameters
    ----------
    url, size, etag
        The fields of the link in the table; None is not compared.
    rules : LinkRules
        What is allowed.
    where : str
        What errors begin with.

    Raises
    ------
    ChangedLinkError
        If size or ETag are others than those stored. The message has both.
    MissingLinkError
        If nothing is there any more.
    InvalidLinkError, ForbiddenLinkError, StorageError
        As for `describe_link`.
    """
    return read_link(url, size, etag, rules, 0, None, where)


def read_link(
    url: str,
    size: int | None,
    etag: str | None,
    rules: LinkRules,
    start: int,
    stop: int | None,
    where: str = "",
) -> bytes:
    """Return the bytes from `start` to `stop` of a stored link, compared as `fetch_link` does.

    A range past the end is cut. Only the range counts for ``rules.max_bytes``.
    """
    if start < 0 or (stop is not None and stop < start):
        raise ValueError(f"bytes {start} to {stop} are no range")
    with _Place(where):
        link = parse_link(url)
        stored = LinkFacts(url, size, etag)

        def check(now: LinkFacts) -> None:
            if rules.verify:
                stored.check(now.size, now.etag, link.shown)
            end = now.size if stop is None else min(stop, now.size or stop)
            _check_size(link, None if end is None else end - start, rules)

        try:
            data = _read(link, rules, start, stop, check, stored)
        except MissingLinkError as error:
            error.args = (f"{error}; {stored.told} when it was linked",)
            raise
        return _checked_length(link, stored, rules, start, stop, data)


def range_reader(
    url: str, size: int | None, etag: str | None, rules: LinkRules, where: str = ""
) -> Callable[[int, int], bytes]:
    """Return a function from start and stop to bytes of a stored link, for those who need parts of it."""

    def read(start: int, stop: int) -> bytes:
        return read_link(url, size, etag, rules, start, stop, where)

    return read


def fetched(
    batch: pa.Array | pa.ChunkedArray | Iterable[Any],
    rules: LinkRules,
    column: str = "link",
    first: int | Iterable[int] = 0,
    errors: str = "raise",
) -> Iterator[Any]:
    """Fetch the targets of many stored links at once, and yield them in order: bytes, None for null, a list for a list.

    At most `AT_ONCE` bytes, and one target, wait to be taken. Whoever stops taking leaves no work behind.

    Parameters
    ----------
    batch : pyarrow.Array or iterable of mapping, None, or list of these
        Links as they are stored, with the fields ``url``, ``size`` and ``etag``; or lists of links.
    rules : LinkRules
        What is allowed.
    column : str
        Named by errors.
    first : int, or iterable of int
        The number of the first sample in its column; or of each sample.
    errors : {"raise", "return"}
        As for `describe_links`; a target that has changed is such an error, too.
    """
    catch = _caught(errors)

    def fetch(task: tuple[str, Any]) -> bytes | TensorLakeError | None:
        where, link = task
        if link is None or link["url"] is None:
            return None
        try:
            return fetch_link(link["url"], link["size"], link["etag"], rules, where)
        except catch as error:
            return error

    def cost(task: tuple[str, Any]) -> int:
        if task[1] is None or task[1]["url"] is None:
            return 0
        size = task[1]["size"]
        # A size that is not compared need not be true.
        return int(size) if size is not None and rules.verify else rules.max_bytes

    return _of_samples(fetch, _items(batch), cost, column, first)


def _caught(errors: str) -> tuple[type[TensorLakeError], ...]:
    """Return the errors of links that are returned, and not raised. Rules that make no sense are none of them."""
    if errors not in ("raise", "return"):
        raise InvalidOptionError(f"errors={errors!r:.40} is neither 'raise' nor 'return'")
    return _OF_LINKS if errors == "return" else ()


def _items(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, (pa.Array, pa.ChunkedArray)):
        yield from batch
        return
    for start in range(0, len(batch), 1024):
        yield from batch.slice(start, 1024).to_pylist()


def _of_samples(
    work: Callable[[tuple[str, Any]], Any],
    samples: Iterable[Any],
    cost: Callable[[tuple[str, Any]], int],
    column: str,
    first: int | Iterable[int],
) -> Iterator[Any]:
    """Yield each sample with what `work` returns in the place of each of its links."""
    ahead, samples = tee(samples)
    numbers = count(first) if isinstance(first, int) else first
    links = (
        one
        for number, sample in zip(numbers, ahead)
        for one in _links(sample, f"column {column!r}, sample {number}")
    )
    with closing(_ahead(work, links, cost)) as found:
        for sample in samples:
            yield _refilled(sample, found)


def _links(sample: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the links of a sample, which is one or a list, with their places."""
    if not isinstance(sample, list):
        yield where, sample
        return
    for number, item in enumerate(sample):
        yield from _links(item, f"{where}: item {number}")


def _refilled(sample: Any, found: Iterator[Any]) -> Any:
    """Return a sample with others in the place of its links."""
    if isinstance(sample, list):
        return [_refilled(item, found) for item in sample]
    return next(found)


def _ahead(
    work: Callable[[Task], Result], tasks: Iterable[Task], cost: Callable[[Task], int]
) -> Generator[Result, None, None]:
    """Yield what `work` returns of each task, in order; threads that wait for a store are ahead by bounded cost."""
    waiting: deque[tuple[Future[Result], int]] = deque()
    rest = iter(tasks)
    held: tuple[Task, int] | None = None
    taken = 0
    try:
        while True:
            while len(waiting) < 2 * IO_THREADS:
                if held is None:
                    task = next(rest, None)
                    if task is None:
                        break
                    held = task, cost(task)
                if waiting and taken + held[1] > AT_ONCE:
                    break
                waiting.append((io_threads().submit(work, held[0]), held[1]))
                taken, held = taken + held[1], None
            if not waiting:
                return
            future, price = waiting.popleft()
            result = future.result()
            yield result
            del result, future
            taken -= price
    finally:
        for future, _ in waiting:
            future.cancel()
        for future, _ in waiting:
            if not future.cancelled():
                future.exception()


def _read(
    link: LinkUrl, rules: LinkRules, start: int, stop: int | None, check: Check, stored: LinkFacts
) -> bytes:
    if link.kind == "file":
        return read_file(link, rules, start, stop, check)
    if link.kind == "s3":
        return bytes(_s3().read_object(link, rules, start, stop, check, stored))
    return read_url(link, rules, start, stop, check, stored)


def _s3() -> Any:
    # It brings deltalake and its clients, which files and http do not need.
    from tensorlake_spark.datasets.links import s3_target

    return s3_target


def _check_size(link: LinkUrl, size: int | None, rules: LinkRules) -> None:
    if size is not None and size > rules.max_bytes:
        raise StorageError(
            f"the target of the link {link.shown} has {size} bytes, more than max_bytes={rules.max_bytes}; "
            "LinkRules(max_bytes=) changes it"
        )


def _checked_length(
    link: LinkUrl, stored: LinkFacts, rules: LinkRules, start: int, stop: int | None, data: bytes
) -> bytes:
    """Return the bytes, if there are as many as the stored size says."""
    if rules.verify and stored.size is not None:
        end = stored.size if stop is None else min(stop, stored.size)
        if len(data) != max(0, end - start):
            raise ChangedLinkError(
                f"what the link {link.shown} points to has changed: {len(data)} bytes came from {start} on, and "
                f"{max(0, end - start)} were expected"
            )
    return data


class _Place:
    """Begins the message of an error with where it happened."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if (
            self._where
            and isinstance(error, TensorLakeError)
            and not str(error).startswith(self._where)
        ):
            error.args = (f"{self._where}: {error}", *error.args[1:])
