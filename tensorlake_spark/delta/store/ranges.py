"""Files in an object store, read by ranges: one request for each, and many of them at a time.

pyarrow asks for the size of a file before it reads any of it, which is a round trip. The log knows the
sizes, and deltalake's own client takes them for given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any, TypeVar

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler

from tensorlake_spark.delta.store.paths import inside
from tensorlake_spark.delta.store.storage import Storage, listed
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.threads import IO_THREADS, io_threads, threads

Job = TypeVar("Job")
Result = TypeVar("Result")

ANY_SIZE = 1 << 40
"""A size for files of which nobody knows it: what is there is read."""

_TAIL = 64 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of a file, at their place in it.

    Attributes
    ----------
    data : pyarrow.Buffer
        The bytes.
    start : int
        Where in the file they begin.
    """

    data: pa.Buffer
    start: int

    @property
    def size(self) -> int:
        """Where in the file they end."""
        return self.start + int(self.data.size)

    def has(self, start: int, stop: int) -> bool:
        """Whether it has these bytes of the file."""
        return self.start <= start <= stop <= self.size

    def slice(self, start: int, nbytes: int) -> pa.Buffer:
        """Return some bytes, `start` counted in the file."""
        if not self.has(start, start + nbytes):
            raise CorruptDataError(
                f"bytes {start} to {start + nbytes} lie outside of their row group, which has "
                f"{self.start} to {self.size}"
            )
        return self.data.slice(start - self.start, nbytes)


@dataclass(frozen=True, slots=True)
class Pieces(Part):
    """Several parts of a file, with gaps between them.

    Attributes
    ----------
    data, start
        Of the first part.
    rest : tuple of Part
        The others, in the order of the file.
    """

    rest: tuple[Part, ...] = ()

    @property
    def size(self) -> int:
        """Where in the file the last part ends."""
        return self.rest[-1].size

    def _holder(self, start: int, stop: int) -> Part | None:
        first = Part(self.data, self.start)
        return next((part for part in (first, *self.rest) if part.has(start, stop)), None)

    def has(self, start: int, stop: int) -> bool:
        """Whether one of them has these bytes of the file."""
        return self._holder(start, stop) is not None

    def slice(self, start: int, nbytes: int) -> pa.Buffer:
        """Return some bytes, `start` counted in the file."""
        part = self._holder(start, start + nbytes)
        return (part or Part(self.data, self.start)).slice(start, nbytes)


def joined(parts: Sequence[Part]) -> Part:
    """Return parts of a file, at least one, in its order, as one.

    Examples
    --------
    >>> some = joined([Part(pa.py_buffer(b"ab"), 0), Part(pa.py_buffer(b"xy"), 7)])
    >>> some.slice(7, 2).to_pybytes(), some.has(1, 8), some.size
    (b'xy', False, 9)
    """
    first, *rest = parts
    return Pieces(first.data, first.start, tuple(rest)) if rest else first


class PartFile:
    """A part of a file for those who read the whole of it, such as `pyarrow.parquet.ParquetFile`."""

    closed = False

    def __init__(self, part: Part) -> None:
        self._part = part
        self._place = 0

    def read(self, nbytes: int) -> pa.Buffer:
        """Return the next bytes."""
        found = self._part.slice(self._place, nbytes)
        self._place += nbytes
        return found

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place of the file."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._part.size}
        self._place = base[whence] + place
        return self._place

    def tell(self) -> int:
        """Return the place in the file."""
        return self._place

    def close(self) -> None:
        """Do nothing: there is nothing open."""


class Remote:
    """Some files of a table in an object store.

    Parameters
    ----------
    storage : Storage
        The table.
    sizes : mapping of str to int
        Their sizes, or `ANY_SIZE`, by path in the table.
    pid : int, optional
        The process that uses deltalake; this one by default. In a child that was forked from it deltalake
        panics, so pyarrow takes its place.

    Attributes
    ----------
    is_kept : bool
        Whether row groups are kept in memory once they were read.
    is_mapped : bool
        Whether what was read lies in mapped files of this machine.
    stays : bool
        Whether what was read stays where it is, mapped or in memory that has room for all files: a part of it does not
        hold the rest for nothing.
    """

    is_kept = is_mapped = stays = False

    def __init__(self, storage: Storage, sizes: Mapping[str, int], pid: int | None = None) -> None:
        self.storage = storage
        self.sizes = sizes
        self._pid = os.getpid() if pid is None else pid

    @cached_property
    def _handler(self) -> DeltaStorageHandler:
        return DeltaStorageHandler(self.storage.uri, self.storage.log_options, dict(self.sizes))

    def _open(self, name: str) -> pa.NativeFile:
        if self._pid == os.getpid():
            return self._handler.open_input_file(inside(name))
        return self.storage.open_input(name)

    def read(self, name: str, start: int, nbytes: int) -> pa.Buffer:
        """Return some bytes of a file."""
        try:
            found = self._read(name, start, nbytes)
        except OSError as error:
            if "416 Range" not in str(error):
                raise
            raise CorruptDataError(f"it ends before byte {start}") from error
        if found.size != nbytes:
            raise CorruptDataError(f"it ends after {start + found.size} bytes")
        return found

    def _read(self, name: str, start: int, nbytes: int) -> pa.Buffer:
        """Return some bytes, fewer where the file ends."""

        def once() -> pa.Buffer:
            with self._open(name) as file:
                file.seek(start)
                return file.read_buffer(nbytes)

        return listed(once)  # deltalake repeats no answer that breaks off

    def tail(self, name: str, nbytes: int) -> pa.Buffer:
        """Return the last bytes of a file: as many as asked for, or as its footer is likely to need."""
        size = self.sizes[name]
        least, most = _TAIL
        nbytes = min(size, max(nbytes, least, min(size // 256, most)))
        return self.read(name, size - nbytes, nbytes)

    def beginnings(
        self, names: Sequence[str], nbytes: int = ANY_SIZE, first: int | None = None
    ) -> list[bytes | None]:
        """Return the first bytes of some files, all at once, and None for those that are not there.

        Parameters
        ----------
        names : sequence of str
            Their paths in the table.
        nbytes : int
            How many bytes of each, fewer where it is shorter.
        first : int, optional
            How many of the first file, where that is another number.
        """

        def read(name: str, count: int) -> bytes | None:
            try:
                return bytes(self._read(name, 0, count).to_pybytes())
            except FileNotFoundError:
                return None

        counts = chain([nbytes if first is None else first], repeat(nbytes))
        return list(io_threads().map(read, names, counts))


def overlapped(
    jobs: Sequence[Job], fetch: Callable[[Job], Part], work: Callable[[Job, Part], Result]
) -> Iterator[Result]:
    """Fetch for some jobs, as many at a time as there are threads for it, and work on what has come.

    Parameters
    ----------
    jobs : sequence
        What there is to do.
    fetch : callable
        Waits for the store, and returns what a job needs.
    work : callable
        Does a job with what was fetched for it, in a thread of those that decode.

    Returns
    -------
    iterator
        What `work` returned, in any order.
    """
    if len(jobs) == 1:
        yield work(jobs[0], fetch(jobs[0]))
        return
    waiting = iter(jobs)
    fetching: dict[Future[Part], Job] = {}
    working: set[Future[Result]] = set()

    def begin(count: int) -> None:
        for job in islice(waiting, count):
            fetching[io_threads().submit(fetch, job)] = job

    begin(IO_THREADS)
    while fetching or working:
        either: set[Future[Any]] = {*fetching, *working}
        done, _ = wait(either, return_when=FIRST_COMPLETED)
        for came in [f for f in fetching if f in done]:
            working.add(threads().submit(work, fetching.pop(came), came.result()))
        for ended in working & done:
            working.remove(ended)
            yield ended.result()
            begin(1)  # only now: what has come and waits takes memory, too
