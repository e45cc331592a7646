"""Memory of batches that is used again when nobody holds an array in it any more."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np

from tensorlake_spark.own_memory import empty_bytes

Array = np.ndarray[Any, Any]

_LEAST = 1 << 20


def _references(kept: list[Array], number: int) -> int:
    """Return how often memory is referred to: by its list, by this call, and by all that is in use."""
    return sys.getrefcount(kept[number])


_IDLE = _references([np.empty(0, np.uint8)], 0)
"""References of memory that is not in use; versions of Python differ in what a call counts."""


class BatchBuffers:
    """Arrays that may lie in memory of earlier ones.

    New memory costs as much as filling it: the system hands it out page by page, each full of zeros. An array, and
    whatever is a view of it, keeps its memory from being used again.

    Parameters
    ----------
    most : int
        Bytes that are kept, in use or not; beyond them memory that is not in use is given back.
    least : int
        Bytes of the smallest array whose memory is kept: smaller ones are quick to make.

    Examples
    --------
    >>> buffers = BatchBuffers(8 << 20)
    >>> first = buffers.array((2, 1 << 20), np.uint8)
    >>> address = first.ctypes.data
    >>> del first
    >>> buffers.array((1 << 20, 2), np.uint8).ctypes.data == address
    True
    """

    def __init__(self, most: int, least: int = _LEAST) -> None:
        self._most, self._least = most, least
        self._kept: list[Array] = []
        self._lock = threading.Lock()

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array whose elements are not set."""
        kind = np.dtype(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        if nbytes < self._least or kind.hasobject:
            return np.empty(shape, kind)
        with self._lock:
            memory = self._idle(nbytes)
            if memory is None:
                memory = np.empty(nbytes + nbytes // 8, np.uint8)
                self._kept.append(memory)
                self._give_back()
        out: Array = memory[:nbytes].view(kind).reshape(shape)
        return out

    def bytes(self, nbytes: int) -> Array:
        """Return bytes that are not set; so many that half of `most` is too little go back to the system at once."""
        return empty_bytes(nbytes) if 2 * nbytes > self._most else self.array((nbytes,), np.uint8)

    def _idle(self, nbytes: int) -> Array | None:
        for number, size in enumerate([memory.nbytes for memory in self._kept]):
            fits = nbytes <= size <= 2 * nbytes + _LEAST
            if fits and _references(self._kept, number) == _IDLE:
                return self._kept[number]
        return None

    def _give_back(self) -> None:
        """Forget memory that is not in use, the oldest first, while there is too much; the newest stays."""
        sizes = [memory.nbytes for memory in self._kept]
        total = sum(sizes)
        kept: list[Array] = []
        last = len(sizes) - 1
        for number, size in enumerate(sizes):
            if total > self._most and number < last and _references(self._kept, number) == _IDLE:
                total -= size
            else:
                kept.append(self._kept[number])
        self._kept = kept
