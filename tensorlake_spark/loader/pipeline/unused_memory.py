"""Memory that was freed, given back to the system: the C library and Arrow keep it, and it counts as the process's."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import pyarrow as pa


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
