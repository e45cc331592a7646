"""Threads that fetch and make batches ahead of who takes them, in order, within a bound of memory."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from tensorlake_spark.errors import InvalidOptionError, LoaderClosedError
from tensorlake_spark.fork_gate import FORK_GATE, check_process
from tensorlake_spark.loader.pipeline.loader_stats import LoaderStats
from tensorlake_spark.loader.pipeline.unused_memory import UnusedMemory


class Fetched(Protocol):
    """What lies in memory, or is mapped, of the samples of a batch."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the batch takes when it is made."""

    @property
    def raw_nbytes(self) -> int:
        """Bytes that it takes until then; 0 where files are mapped."""

    @property
    def waited(self) -> bool:
        """Whether a store may have been waited for."""


_RAW = 4
"""What was read and waits may take one in so many bytes of the memory of batches."""

_BATCHES = 2
"""Batches have one in so many bytes of the memory. The rest is for mapped files, for what decoding takes besides, for
what is known of files, and for what the C library keeps. A batch that is alone may have all."""

_GIVE_BACK, _SCARCE = 32, 4
"""Memory that nobody uses is given back whenever batches of one in so many bytes of `memory` were begun, if batches
have one in so many bytes of it."""

_WAITS_STAY = 16
"""So many batches after one for which a store was asked, others are still fetched beside those that are made. Later
nobody waits for a store: what is fetched then only takes processors from what is made."""

_PATIENCE = 1.0
"""Seconds for all threads that still wait or work; they are daemons, and end by themselves."""


class _Failure:
    """What a fetch raised, in the place of what it should have fetched."""

    nbytes = raw_nbytes = 0
    waited = True

    def __init__(self, error: BaseException) -> None:
        self.error = error


Raw = TypeVar("Raw", bound=Fetched)
Made = TypeVar("Made")


class BatchThreads(Generic[Raw, Made]):
    """Batches by number, made ahead.

    Each thread takes what is late: a batch that was fetched is made if fewer threads than `makers` do so already,
    the lowest number first; otherwise another one is fetched. Memory is given to batches in the order of their
    numbers, so that the one which is wanted next never waits for a later one. Threads beyond the makers wait for
    stores: where nothing comes from a store, they rest.

    Parameters
    ----------
    numbers : range
        The batches.
    fetch, make : callable
        ``fetch(number)`` reads, ``make(number, fetched)`` decodes and puts together. Both run in threads.
    threads : int
        How many there are.
    makers : int
        How many of them make batches at a time: as there are cores.
    memory : int
        Bytes. Those of batches that are being made, wait, or were handed out last are half of it, or one batch.
    ahead : int
        Batches that are begun before the one which is wanted was taken.
    stats : LoaderStats
        Counts.
    stop : callable, optional
        Is called by `close`: batches that are being made may end early, since nobody takes them.

    Raises
    ------
    InvalidOptionError
        When a batch is taken that alone needs more memory.
    LoaderClosedError
        When a batch is taken after `close`, or in a process that was forked since.

    Examples
    --------
    >>> class Text(str):
    ...     nbytes, raw_nbytes, waited = 10, 0, False
    >>> make = lambda k, text: text * 2
    >>> with BatchThreads(range(3), lambda k: Text(k), make, 2, 2, 100, 4, LoaderStats()) as batches:
    ...     list(batches)
    ['00', '11', '22']
    """

    def __init__(
        self,
        numbers: range,
        fetch: Callable[[int], Raw],
        make: Callable[[int, Raw], Made],
        threads: int,
        makers: int,
        memory: int,
        ahead: int,
        stats: LoaderStats,
        stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._numbers = numbers
        self._fetch, self._make = fetch, make
        self._makers, self._memory, self._ahead = makers, memory, ahead
        self._stats, self._stop = stats, stop
        # One thread is woken for one job, and who takes only for its batch: of a remote store many threads wait.
        self._lock = threading.Lock()
        self._job_there = threading.Condition(self._lock)
        self._batch_there = threading.Condition(self._lock)
        self._to_fetch = 0  # numbers are counted from 0 here, whatever the range begins with
        self._to_admit = 0
        self._taken = 0
        self._making = 0
        self._used = 0
        self._held = 0
        self._most = memory // _BATCHES
        self._waits = False
        self._since_given = 0  # bytes of batches that were begun since unused memory was given back
        self._unused = UnusedMemory()
        self._raw = self._fetching = self._last_raw = 0
        self._since_store = 0  # batches that were fetched since a store was asked
        self._fetched: list[tuple[int, Any]] = []
        self._admitted: dict[int, int] = {}
        self._results: dict[int, Any] = {}
        self._stopped = False
        self._pid = os.getpid()
        self._threads = [
            threading.Thread(target=self._work, name=f"tensorlake-loader-{n}", daemon=True)
            for n in range(min(threads, max(1, len(numbers))))
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # Ctrl-C, while the first of them is at work
            self._threads = [thread for thread in self._threads if thread.ident is not None]
            self.close()
            raise

    # ------------------------------------------------------------------ who takes

    def __iter__(self) -> Iterator[Made]:
        for place in range(len(self._numbers)):
            yield self._take(place)

    def _take(self, place: int) -> Made:
        check_process(self._pid)
        began = time.perf_counter()
        with self._lock:
            self._taken = place
            self._waits = True
            self._wake()
            while place not in self._results:
                if self._stopped:
                    raise LoaderClosedError("the loader was closed; iterate over it anew")
                self._batch_there.wait()
            self._waits = False
            result, failed = self._results.pop(place)
            # A loop has its last batch until it gets the next one.
            self._used -= self._held
            self._held = self._admitted.pop(place, 0)
            self._taken = place + 1
            self._wake()
        self._stats.add(wait_seconds=time.perf_counter() - began)
        if failed:
            self.close()
            raise result
        made: Made = result
        return made

    def close(self) -> None:
        """End the threads: nothing begins any more, and what has begun is told to `stop`, and has a second to do so."""
        if (
            os.getpid() != self._pid
        ):  # forked since: the threads are not here, and one of them may have the lock
            self._stopped = True
            return
        self._stop()
        with self._lock:
            if self._stopped:
                return  # they were waited for
            self._stopped = True
            self._fetched.clear()
            self._results.clear()
            self._job_there.notify_all()
            self._batch_there.notify_all()
        end = time.monotonic() + _PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    @property
    def is_stopped(self) -> bool:
        """Whether `close` was called."""
        return self._stopped

    def __enter__(self) -> BatchThreads[Raw, Made]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ the threads

    def _work(self) -> None:
        while (job := self._job()) is not None:
            place, raw = job
            with FORK_GATE:
                if raw is None:
                    self._fetch_one(place)
                else:
                    self._make_one(place, raw)
            del job, raw  # or a thread that waits would keep them

    def _fetch_one(self, place: int) -> None:
        began = time.perf_counter()
        found: Any
        try:
            found = self._fetch(self._numbers[place])
            raw: int = found.raw_nbytes
            waited: bool = found.waited
            _ = found.nbytes  # worked out here, where an error has a place to go
        except BaseException as error:  # handed to who takes the batch
            found, raw, waited = _Failure(error), 0, True
        self._stats.add(fetch_seconds=time.perf_counter() - began)
        with self._lock:
            self._fetching -= 1
            if not self._stopped:
                self._last_raw = max(self._last_raw, raw)
                self._raw += raw
                self._since_store = 0 if waited else self._since_store + 1
                heapq.heappush(self._fetched, (place, found))

    def _make_one(self, place: int, raw: Any) -> None:
        result: Any
        try:
            self._give_back(raw.nbytes)
            if isinstance(raw, _Failure):
                raise raw.error
            result = self._make(self._numbers[place], raw), False
        except BaseException as error:  # handed to who takes the batch
            result = error, True
        with self._lock:
            self._making -= 1
            if not self._stopped:
                self._results[place] = result
                if place == self._taken:
                    self._batch_there.notify_all()

    def _give_back(self, nbytes: int) -> None:
        """Give unused memory back to the system now and then, where batches need much of what there is."""
        with self._lock:
            self._since_given += nbytes
            is_due = (
                self._since_given >= self._memory // _GIVE_BACK
                and self._used >= self._memory // _SCARCE
            )
            if is_due:
                self._since_given = 0
        if is_due:
            self._unused.give_back()

    def _job(self) -> tuple[int, Any] | None:
        """Return the next job of this thread, None at the end; every job that one finds wakes a thread for the next."""
        with self._lock:
            while not self._stopped:
                self._refuse()
                if self._may_make() and self._admit():
                    self._making += 1
                    job = heapq.heappop(self._fetched)[:2]
                    self._wake()
                    return job
                if self._may_fetch():
                    self._to_fetch += 1
                    self._fetching += 1
                    self._wake()
                    return self._to_fetch - 1, None
                if self._taken >= len(self._numbers):
                    return None
                self._job_there.wait()
        return None

    def _wake(self) -> None:
        """Wake a thread if there is a job; all at the end."""
        if self._taken >= len(self._numbers):
            self._job_there.notify_all()
        elif self._may_make() or self._may_fetch():
            self._job_there.notify()

    def _may_make(self) -> bool:
        """Whether the batch that is next was fetched, and fewer are made than may be at a time."""
        is_next = bool(self._fetched) and self._fetched[0][0] == self._to_admit
        return is_next and self._making < self._makers

    def _may_fetch(self) -> bool:
        """Whether there is a batch to fetch, and memory for what is read."""
        if self._to_fetch >= min(len(self._numbers), self._taken + self._ahead):
            return False
        if self._making >= self._makers and self._since_store >= _WAITS_STAY:
            return False
        raw = self._raw + (self._fetching + 1) * self._last_raw
        return raw <= self._memory // _RAW or self._to_fetch == self._to_admit

    def _refuse(self) -> None:
        """Hand on an error for batches that alone need more than all memory."""
        while self._may_make() and self._fetched[0][1].nbytes > self._memory:
            place, raw = heapq.heappop(self._fetched)
            self._raw -= raw.raw_nbytes
            self._to_admit += 1
            error = InvalidOptionError(
                f"memory= leaves {self._memory} bytes for batches, too few for one batch: batch "
                f"{self._numbers[place]} needs {raw.nbytes}; give the loader more memory, or a smaller batch_size"
            )
            self._results[place] = error, True
            self._batch_there.notify_all()

    def _admit(self) -> bool:
        """Give memory to the lowest batch that was fetched, whose turn it is, if there is enough.

        A batch for which somebody waits is also made where it and the last one need more.
        """
        place, raw = self._fetched[0]
        nbytes = raw.nbytes
        is_alone = self._used == 0 or (self._waits and self._used == self._held)
        if self._used + nbytes > self._most and not is_alone:
            return False
        self._used += nbytes
        self._raw -= raw.raw_nbytes
        self._stats.in_use(self._used)
        self._admitted[place] = nbytes
        self._to_admit += 1
        return True
