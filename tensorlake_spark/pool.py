"""The threads of this process that encode, read and decode: NumPy, zstd and Arrow let go of the interpreter."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

THREADS = max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
"""Threads of the pool."""

_pool: tuple[int, ThreadPoolExecutor] | None = None
_pool_lock = threading.Lock()


def threads() -> ThreadPoolExecutor:
    """Return this process's pool of worker threads; a forked child gets one of its own.

    What runs in the pool must not wait for the pool.
    """
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid():
            _pool = (os.getpid(), ThreadPoolExecutor(THREADS, thread_name_prefix="tensorlake"))
        return _pool[1]
