"""Memory that was freed, given back to the system: the C library and Arrow keep it, and it counts as the process's."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

import pyarrow as pa

_GROWN = 8 << 20
"""So many bytes the process has to have grown by before it is worth while to give memory back again."""


class UnusedMemory:
    """Gives back memory that was freed, if the process has grown since the last time.

    What is freed is mostly used again soon. Given back, it has to be asked for page by page, each full of zeros: that
    costs as much as filling it. So it is left where it is as long as it does not get more.

    Examples
    --------
    >>> UnusedMemory().give_back()
    True
    """

    def __init__(self) -> None:
        self._least: int | None = None

    def give_back(self) -> bool:
        """Give back what was freed if the process has grown, and say whether it had; it has where nobody knows."""
        now = resident_bytes()
        if now is not None and self._least is not None and now < self._least + _GROWN:
            self._least = min(self._least, now)
            return False
        give_back_unused()
        self._least = resident_bytes()
        return True


def resident_bytes() -> int | None:
    """Return the bytes of memory that this process has, without files that are mapped; None where it is not known.

    Examples
    --------
    >>> found = resident_bytes()
    >>> found is None or found > 1 << 20
    True
    """
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):  # no Linux, or its files are not to be seen
        return None
    return (resident - shared) * mmap.PAGESIZE


def give_back_unused() -> None:
    """Give memory that was freed back to the system, from the C library of Linux and from Arrow's pool.

    Arrays of up to 32 MiB come from parts of memory that the C library keeps. Where their sizes differ, what was freed
    between two others stays the process's until it is asked to give it back.

    Examples
    --------
    >>> give_back_unused()
    """
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library, such as musl
        return None
    found.argtypes = [ctypes.c_size_t]
    found.restype = ctypes.c_int
    return found
