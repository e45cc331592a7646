"""Pages of mapped files, given back when nobody needs them soon."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

_DONT_NEED = 4  # MADV_DONTNEED, the same on all architectures of Linux


def give_back_pages(address: int, nbytes: int) -> None:
    """Tell the system that bytes of a mapped file are not needed now: they no longer count as memory of this process.

    They stay what they are. Who reads them again gets them from the system's cache, or from the file. Nothing is done
    where the system knows no such thing.

    Parameters
    ----------
    address : int
        Where they begin in memory. It has to be a file that is mapped for reading only: other memory would be lost.
    nbytes : int
        How many they are; pages that are not whole are left alone.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"kept" * 10_000)
    ...     file.flush()
    ...     mapped = pa.memory_map(file.name).read_buffer()
    ...     give_back_pages(mapped.address, mapped.size)
    ...     mapped.to_pybytes() == b"kept" * 10_000
    True
    """
    advise = _advise()
    first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (address + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if advise is not None and last > first:
        advise(first, last - first, _DONT_NEED)


@cache
def _advise() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None, use_errno=True).madvise
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    found.restype = ctypes.c_int
    return found
