"""The threads of this process that encode, read and decode: NumPy, zstd and Arrow let go of the interpreter."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import ParamSpec, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Given = ParamSpec("Given")

THREADS = max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
"""Threads of the pool."""

IO_THREADS = 32
"""Threads that wait for an object store: as many requests are on their way at once."""

_PAUSE_S = 0.05  # before work that should end is told so again

QUERY_THREADS = 1024
"""Queries that run at the same time: each has a thread, for one may wait for a query that is asked inside it."""


class Pool(ThreadPoolExecutor):
    """A pool of threads that ends if Ctrl-C comes while it starts one of them.

    Python would not know of that thread, and could not tell it to stop: the process would wait for it and never end.
    """

    has_ended = False

    def submit(
        self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Future[Result]:
        """Do some work; what is interrupted here begins in no thread, or ends with the pool."""
        try:
            return super().submit(fn, *args, **kwargs)
        except BaseException:
            self.has_ended = True
            self.shutdown(wait=False)
            raise


_pools: dict[str, tuple[int, Pool]] = {}
_pool_lock = threading.Lock()


class CopiedLock:
    """A lock whose copy, also in another process, is a free one: what has it can be pickled.

    Examples
    --------
    >>> import pickle
    >>> with CopiedLock() as lock:
    ...     with pickle.loads(pickle.dumps(lock)):
    ...         pass
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> CopiedLock:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[CopiedLock], tuple[()]]:
        return type(self), ()


def threads() -> Pool:
    """Return this process's pool of worker threads; a forked child gets one of its own.

    What runs in the pool must not wait for the pool.
    """
    return _pool_of("tensorlake", THREADS)


def io_threads() -> Pool:
    """Return this process's pool of threads that wait for a store, and do nothing else."""
    return _pool_of("tensorlake-io", IO_THREADS)


def query_threads() -> Pool:
    """Return this process's pool of threads that run queries while their callers wait, and hear of Ctrl-C.

    A thread that has run a query before is faster than a new one: it has its memory already.
    """
    return _pool_of("tensorlake-query", QUERY_THREADS)


def kernel_thread() -> Pool:
    """Return this process's pool of one thread, which loads compiled loops while NumPy does their work."""
    return _pool_of("tensorlake-kernels", 1)


def beside(
    work: Callable[[Task], Result], tasks: Iterable[Task], what: str = "columns"
) -> list[Result]:
    """Return what `work` returns of each task, all of which wait for a store at the same time.

    All have ended when it returns; the error of the first task that has one is raised. In a thread of a pool the tasks
    are done one after the other, because they may wait for the pools themselves: only ``"columns"`` may wait for
    ``"samples"``.

    Examples
    --------
    >>> beside(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    mine = threading.current_thread().name
    above = "tensorlake-columns" if what == "samples" else "-"
    if mine.startswith("tensorlake") and not mine.startswith(above):
        return [work(task) for task in tasks]
    pool = _pool_of(f"tensorlake-{what}", IO_THREADS)
    futures = [pool.submit(work, task) for task in tasks]
    wait(futures)
    return [future.result() for future in futures]


def at_once(work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Return what `work` returns of each task, which only computes: all at the same time, by the caller and `threads`.

    A thread that has to be woken may come late. So the caller does the first task, and those that nobody has begun when
    it needs them, unless there are more tasks than processors. In a thread of a pool the tasks are done one after the
    other, because it must not wait for the pool. All have ended when it returns.

    Examples
    --------
    >>> at_once(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    if len(tasks) < 2 or threading.current_thread().name.startswith("tensorlake"):
        return [work(task) for task in tasks]
    if len(tasks) > THREADS:
        return [*in_order(work, tasks)]
    begun = Begun()
    futures: list[Future[Result]] = []
    try:
        for task in tasks[1:]:
            futures.append(threads().submit(begun.done, work, task))
        out = [work(tasks[0])]
        for task, future in zip(tasks[1:], futures, strict=True):
            out.append(work(task) if future.cancel() else future.result())
        return out
    finally:
        for future in futures:
            future.cancel()
        begun.stop()


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Yield what `work` returns of each task, in the order of the tasks; a few at a time are done or wait to be taken.

    Whoever stops taking leaves no work behind: what has begun is waited for, and nothing else begins.

    Examples
    --------
    >>> list(in_order(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    rest = iter(tasks)
    waiting: deque[Future[Result]] = deque()
    begun = Begun()
    try:
        for task in islice(rest, 2 * THREADS):
            waiting.append(threads().submit(begun.done, work, task))
        while waiting:
            yield waiting.popleft().result()
            for task in islice(rest, 1):
                waiting.append(threads().submit(begun.done, work, task))
    finally:
        for future in waiting:
            future.cancel()
        begun.stop()


class Begun:
    """Counts work that has begun, inside of ``with``. Ctrl-C may come before a future is kept: futures alone miss some.

    Examples
    --------
    >>> begun = Begun()
    >>> with begun:
    ...     begun.is_stopped
    False
    >>> begun.stop()
    >>> begun.is_stopped
    True
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._stopped = False

    def __enter__(self) -> None:
        with self._changed:
            if self._stopped:
                raise CancelledError
            self._count += 1
        _here.begun = self

    def __exit__(self, *error: object) -> None:
        _here.begun = None
        with self._changed:
            self._count -= 1
            if not self._count:
                self._changed.notify_all()

    def done(self, work: Callable[[Task], Result], task: Task) -> Result:
        """Return what `work` returns of a task, which is counted."""
        with self:
            return work(task)

    def stop(self, end: Callable[[], None] | None = None) -> None:
        """Let nothing else begin, and wait for what has begun; `end` is called again and again until it has ended."""
        with self._changed:
            self._stopped = True
            while self._count:
                if end is not None:
                    end()
                self._changed.wait(None if end is None else _PAUSE_S)

    @property
    def is_stopped(self) -> bool:
        """Whether nobody waits for results any more."""
        return self._stopped


_here = threading.local()


def go_on() -> None:
    """Let long work of `in_order` end early if nobody takes its results any more; called now and then.

    Raises
    ------
    CancelledError
        If so.

    Examples
    --------
    >>> go_on()
    """
    begun: Begun | None = getattr(_here, "begun", None)
    if begun is not None and begun.is_stopped:
        raise CancelledError


class Behind:
    """Does work in a thread of its own, in the order in which it was given, while the caller goes on.

    Parameters
    ----------
    most : int
        How much may wait, in the sizes that `do` is told; then the caller waits.

    Examples
    --------
    >>> done = []
    >>> behind = Behind(2)
    >>> for number in range(4):
    ...     behind.do(lambda number=number: done.append(number), 1)
    >>> behind.finish()
    >>> done
    [0, 1, 2, 3]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[tuple[Future[None], int]] = deque()
        self._size = 0  # of all that waits
        self._pool: ThreadPoolExecutor | None = None

    def do(self, work: Callable[[], None], size: int) -> None:
        """Do some work later; raises what earlier work raised."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="tensorlake-behind")
        self._waiting.append((self._pool.submit(work), size))
        self._size += size
        while self._size > self._most:
            self._wait()

    def finish(self) -> None:
        """Wait until all is done; raises what work raised."""
        while self._waiting:
            self._wait()
        self.stop()

    def _wait(self) -> None:
        """Wait for what was given first."""
        first, size = self._waiting.popleft()
        self._size -= size
        first.result()

    def stop(self) -> None:
        """Wait for the work that has begun, and leave the rest."""
        self._waiting.clear()
        self._size = 0
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _pool_of(name: str, count: int) -> Pool:
    with _pool_lock:
        found = _pools.get(name)
        if found is None or found[0] != os.getpid() or found[1].has_ended:
            found = _pools[name] = os.getpid(), Pool(count, thread_name_prefix=name)
        return found[1]
