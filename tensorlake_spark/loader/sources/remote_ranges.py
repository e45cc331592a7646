"""Ranges of files in an object store, kept in bounded memory, and asked for once by however many threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from tensorlake_spark.delta.store.ranges import ANY_SIZE, Remote
from tensorlake_spark.loader.caching.range_cache import RangeCache
from tensorlake_spark.threads import io_threads

Key = tuple[str, str, int, int]
"""URI of the table, path of the file, where the range begins, and its bytes."""

_WIDER = 30_000
"""For so many ranges it is kept in which wider one they lie."""


@dataclass(eq=False, slots=True)
class _Range:
    """A range that is kept, or on its way; `asked` once a store was asked for it, `buffer` once it is there."""

    nbytes: int
    data: Future[pa.Buffer] = field(default_factory=Future)
    buffer: pa.Buffer | None = None
    holders: int = 0
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """How many ranges of a batch were kept, and for how many a store was asked."""

    hits: int
    misses: int


class RemoteRanges:
    """Ranges of remote files: what was used last stays in memory.

    Parameters
    ----------
    most : int
        Bytes that are kept. A batch may need more by itself; then nothing else is held meanwhile.
    cache : RangeCache, optional
        Keeps them on a local disk, too.

    Attributes
    ----------
    asked : int
        How often a store was asked.

    Examples
    --------
    >>> ranges = RemoteRanges(1 << 20)
    >>> ranges.nbytes
    0
    """

    def __init__(self, most: int, cache: RangeCache | None = None) -> None:
        self.most = most
        self.asked = 0
        self._cache = cache
        self._sizes: dict[str, int] = {}
        self._kept: OrderedDict[Key, _Range] = OrderedDict()
        self._of_file: dict[tuple[str, str], dict[tuple[int, int], None]] = {}
        self._wider: dict[Key, Key] = {}
        self._change = threading.Condition()
        self._total = 0
        self._held = 0

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, or on their way, now."""
        return self._total

    @property
    def is_mapped(self) -> bool:
        """Whether ranges lie in files of the cache, which are mapped; those of a tiny cache are in memory."""
        cache = self._cache
        return cache is not None and cache.is_on and cache.most_bytes >= self.most

    @property
    def stays(self) -> bool:
        """Whether what was read stays where it is: in mapped files, or in memory that has room for all files."""
        return self.is_mapped or sum(self._sizes.values()) <= self.most

    def over(self, remote: Remote) -> KeptRemote:
        """Return a way to read files of a table by what is kept of them."""
        sizes = [size for size in remote.sizes.values() if size < ANY_SIZE]
        self._sizes[remote.storage.uri] = sum(sizes)
        return KeptRemote(self, remote)

    @contextmanager
    def hold(self, wanted: Sequence[tuple[Remote, str, int, int]]) -> Iterator[Held]:
        """Fetch ranges, all at once, and keep them until the block is left.

        Whoever holds ranges must not hold others. It is waited for others while they and these are more than `most`.

        Parameters
        ----------
        wanted : sequence of (Remote, str, int, int)
            What reads, a file, where a range begins in it, and its bytes. What does not go by these ranges is left out.

        Raises
        ------
        OSError
            If the store refuses, or a file is gone.
        """
        keys = {
            (remote.storage.uri, name, start, nbytes): remote
            for remote, name, start, nbytes in wanted
            if isinstance(remote, KeptRemote)
        }
        with self._change:
            while self._held and self._held + self._unheld(keys) > self.most:
                self._change.wait()
            found = [self._taken(key, remote) for key, remote in keys.items()]
            self._evict()
        try:
            for one, _ in found:
                if one.buffer is None:
                    one.data.result()
            misses = sum(is_new and one.asked for one, is_new in found)
            yield Held(len(found) - misses, misses)
        finally:
            with self._change:
                for one, _ in found:
                    self._let_go(one)
                self._change.notify_all()
                self._evict()

    def read(self, remote: KeptRemote, name: str, start: int, nbytes: int) -> pa.Buffer:
        """Return a range: what is kept, or is on its way, is not asked for again."""
        key = (remote.storage.uri, name, start, nbytes)
        with self._change:
            key = self._around(key)
            one = self._kept.get(key)
            if one is not None and one.buffer is not None:
                self._kept.move_to_end(key)
                return one.buffer.slice(start - key[2], nbytes)
            is_new = one is None
            if one is None:
                one = self._added(key)
            self._kept.move_to_end(key)
            self._hold(one)
            self._evict()
        try:
            if is_new:  # in this thread: it may be one of those that wait for stores
                self._fetch(one, key, remote)
            return one.data.result().slice(start - key[2], nbytes)
        finally:
            with self._change:
                self._let_go(one)
                self._change.notify_all()
                self._evict()

    # ------------------------------------------------------------------ under the lock

    def _unheld(self, keys: dict[Key, KeptRemote]) -> int:
        return sum(key[3] for key in keys if key not in self._kept or not self._kept[key].holders)

    def _around(self, key: Key) -> Key:
        """Return a range that is kept, or in the cache, and has another one in it; that one itself if there is none."""
        if key in self._kept:
            return key
        known = self._wider.get(key)
        if known is not None and (known in self._kept or self._cache is not None):
            return known
        uri, name, start, nbytes = key
        for first, size in self._of_file.get((uri, name), ()):
            if first <= start and start + nbytes <= first + size:
                if len(self._wider) >= _WIDER:
                    self._wider.clear()
                found = self._wider[key] = uri, name, first, size
                return found
        return key

    def _taken(self, key: Key, remote: KeptRemote) -> tuple[_Range, bool]:
        one = self._kept.get(key)
        is_new = one is None
        if one is None:
            one = self._added(key)
            data = None if self._cache is None else self._cache.known(key)
            if data is not None:
                one.buffer = pa.py_buffer(data)
                one.data.set_result(one.buffer)
            else:
                # Under the lock: a thread of the pool may wait for it as soon as others see it.
                io_threads().submit(self._fetch, one, key, remote)
        self._kept.move_to_end(key)
        self._hold(one)
        return one, is_new

    def _added(self, key: Key) -> _Range:
        one = self._kept[key] = _Range(key[3])
        self._of_file.setdefault(key[:2], {})[key[2:]] = None
        self._total += one.nbytes
        return one

    def _forget(self, key: Key) -> None:
        self._total -= self._kept.pop(key).nbytes
        ranges = self._of_file[key[:2]]
        del ranges[key[2:]]
        if not ranges:
            del self._of_file[key[:2]]

    def _hold(self, one: _Range) -> None:
        if not one.holders:
            self._held += one.nbytes
        one.holders += 1

    def _let_go(self, one: _Range) -> None:
        one.holders -= 1
        if not one.holders:
            self._held -= one.nbytes

    def _evict(self) -> None:
        """Forget what was used longest ago while there is too much."""
        if self._total <= self.most:
            return
        for key in [key for key, one in self._kept.items() if not one.holders]:
            if self._total <= self.most:
                return
            self._forget(key)

    # ------------------------------------------------------------------ fetching

    def _fetch(self, one: _Range, key: Key, remote: KeptRemote) -> None:
        def ask() -> memoryview:
            one.asked = True
            self.asked += 1
            return memoryview(remote.ask(*key[1:])).cast("B")

        try:
            data = ask() if self._cache is None else self._cache.get(key, ask)
            one.buffer = pa.py_buffer(data)
            one.data.set_result(one.buffer)
        except BaseException as error:  # handed to who waits; the next one asks again
            with self._change:
                if self._kept.get(key) is one:
                    self._forget(key)
            one.data.set_exception(error)


class KeptRemote(Remote):
    """Files of a table in an object store, read by what `RemoteRanges` keeps of them.

    Parameters
    ----------
    ranges : RemoteRanges
        Keeps ranges.
    under : Remote
        Asks the store.
    """

    is_kept = True

    def __init__(self, ranges: RemoteRanges, under: Remote) -> None:
        super().__init__(under.storage, under.sizes)
        self._ranges, self._under = ranges, under

    @property
    def is_mapped(self) -> bool:  # type: ignore[override]
        """Whether what was read lies in mapped files."""
        return self._ranges.is_mapped

    @property
    def stays(self) -> bool:  # type: ignore[override]
        """Whether what was read stays where it is."""
        return self._ranges.stays

    def read(self, name: str, start: int, nbytes: int) -> pa.Buffer:
        """Return some bytes of a file."""
        return self._ranges.read(self, name, start, nbytes)

    def ask(self, name: str, start: int, nbytes: int) -> pa.Buffer:
        """Return some bytes of a file from the store itself."""
        return self._under.read(name, start, nbytes)
