"""Memory for large results: from Arrow's pool, which hands out again what an earlier result has left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

LEAST = 32 << 20
"""The C library of Linux keeps smaller pieces of memory itself."""

LEAST_SHORT = 1 << 20
"""From here on for arrays that an operation needs for a moment: the C library gives back what many of them left."""

MOST = 256 << 20
"""Larger results return their memory to the system at once, so that a process does not stay large."""


_KEPT = 31 << 20
"""The largest piece of memory that the C library of Linux takes for a measure."""


@lru_cache(maxsize=1)
def keep_freed() -> None:
    """Have the C library of Linux keep some memory that many short arrays have left, for those of the next read.

    It gives memory back to the system at once, until a larger array has been freed: then it keeps twice as much as that
    (mallopt(3), ``M_MMAP_THRESHOLD``). A process that reads slices only has no such array. For this one no memory is
    taken, as nothing is written into it.
    """
    np.empty(_KEPT, np.uint8)


def empty(
    shape: Sequence[int], dtype: np.dtype[Any], least: int | None = None
) -> np.ndarray[Any, Any]:
    """Return an array whose elements are not set, as `numpy.empty` does.

    The system fills new memory with zeros, which takes two thirds of the time that writing a large result takes.
    Arrow's pool keeps some of the memory that is freed, also from one read to the next;
    `pyarrow.default_memory_pool().release_unused()` gives it back.

    Parameters
    ----------
    shape : sequence of int
        Of the array.
    dtype : numpy.dtype
        Any but that of Python's objects.
    least : int, optional
        Arrays of fewer bytes are NumPy's; `LEAST` by default.

    Examples
    --------
    >>> empty((2, 3), np.dtype("f8")).shape
    (2, 3)
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if not (LEAST if least is None else least) <= nbytes <= MOST:
        return np.empty(shape, dtype)
    out: np.ndarray[Any, Any] = np.ndarray(shape, dtype, pa.allocate_buffer(nbytes))
    return out


def scratch(shape: Sequence[int], dtype: np.dtype[Any], value: Any = None) -> np.ndarray[Any, Any]:
    """Return an array for the time of an operation, full of a value if there is one.

    Examples
    --------
    >>> scratch((2, 3), np.dtype("f8"), 0).sum()
    np.float64(0.0)
    """
    out = empty(shape, dtype, LEAST_SHORT)
    if value is not None:
        out.fill(value)
    return out
