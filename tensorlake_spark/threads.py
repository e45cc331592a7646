"""The threads of this process that encode, read and decode: NumPy, zstd and Arrow let go of the interpreter."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

THREADS = max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
"""Threads of the pool."""

IO_THREADS = 32
"""Threads that wait for an object store: as many requests are on their way at once."""

_pools: dict[str, tuple[int, ThreadPoolExecutor]] = {}
_pool_lock = threading.Lock()


def threads() -> ThreadPoolExecutor:
    """Return this process's pool of worker threads; a forked child gets one of its own.

    What runs in the pool must not wait for the pool.
    """
    return _pool_of("tensorlake", THREADS)


def io_threads() -> ThreadPoolExecutor:
    """Return this process's pool of threads that wait for a store, and do nothing else."""
    return _pool_of("tensorlake-io", IO_THREADS)


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
    try:
        for task in islice(rest, 2 * THREADS):
            waiting.append(threads().submit(work, task))
        while waiting:
            yield waiting.popleft().result()
            for task in islice(rest, 1):
                waiting.append(threads().submit(work, task))
    finally:
        for future in waiting:
            future.cancel()
        for future in waiting:
            if not future.cancelled():
                future.exception()


def _pool_of(name: str, count: int) -> ThreadPoolExecutor:
    with _pool_lock:
        found = _pools.get(name)
        if found is None or found[0] != os.getpid():
            found = _pools[name] = os.getpid(), ThreadPoolExecutor(count, thread_name_prefix=name)
        return found[1]
