"""Memory for large arrays that goes back to the system as soon as the last of them is gone."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LEAST = 1 << 20
"""Smaller arrays are NumPy's: a map of its own for each would take longer than filling it."""

_HUGE = 4 << 20  # as NumPy does, from here on large pages are asked for


def empty_bytes(nbytes: int) -> Array:
    """Return bytes that are not set.

    The C library keeps what was freed of arrays of up to 32 MiB. A process that reads large samples of many sizes
    would grow by that, as no sample fits exactly where another one was.

    Raises
    ------
    MemoryError
        If the system has not as much.

    Examples
    --------
    >>> len(empty_bytes(1 << 20)), len(empty_bytes(10))
    (1048576, 10)
    """
    if nbytes < LEAST or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(nbytes, np.uint8)
    try:
        memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no memory for {nbytes} bytes: {error}") from error
    if nbytes >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def is_own(part: Array) -> bool:
    """Whether the memory of a part of an array is NumPy's or was made by `empty_bytes`, and nobody else's.

    Examples
    --------
    >>> is_own(empty_bytes(1 << 20)[3:]), is_own(np.frombuffer(b"kept", np.uint8)[1:])
    (True, False)
    """
    base: Any = part.base
    if base is None:
        return False
    return base.flags.owndata or isinstance(getattr(base.base, "obj", None), mmap.mmap)
