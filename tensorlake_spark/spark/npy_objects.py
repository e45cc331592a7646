"""The header of ``.npy`` files, and their arrays where they cannot be mapped: objects of S3, read by ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError

Array = np.ndarray[Any, Any]

PICKLED = (
    "it holds Python objects, which are pickles and never read; save it with a dtype of numbers"
)


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an ``.npy`` stream, whether it lies in Fortran's order, and its dtype; elements come next.

    Raises
    ------
    InvalidTensorError
        If it is no such stream, or holds pickles.
    """
    try:
        version = np.lib.format.read_magic(stream)
    except ValueError:
        raise InvalidTensorError(
            "it is no .npy file, as its name says; numpy.save makes one"
        ) from None
    old = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(stream)
    if dtype.hasobject:
        raise InvalidTensorError(PICKLED)
    return tuple(int(n) for n in shape), is_fortran, dtype


class Ranges:
    """The array of an ``.npy`` object, read by ranges of its bytes; see `tensorlake_spark.spark.array_files.Stored`."""

    def __init__(self, stream: IO[bytes]):
        self.shape, self._is_fortran, self.dtype = read_header(stream)
        self.chunks: tuple[int, ...] = ()
        self.is_whole = not self.shape
        self._stream, self._start = stream, stream.tell()

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        shape, first, stop = self.shape, tuple(lo), tuple(hi)
        if self._is_fortran:
            shape, first, stop = shape[::-1], first[::-1], stop[::-1]
        rows = range(first[0], stop[0]) if shape else range(1)
        step = math.prod(shape[1:]) * self.dtype.itemsize
        self._stream.seek(self._start + rows.start * step)
        data = self._stream.read(len(rows) * step)
        if len(data) < len(rows) * step:
            raise InvalidTensorError("it ends before its last element")
        if not shape:
            return np.frombuffer(data, self.dtype).reshape(())
        slab = np.frombuffer(data, self.dtype).reshape((len(rows), *shape[1:]))
        key = (slice(None), *(slice(a, b) for a, b in zip(first[1:], stop[1:])))
        box = slab[key]
        return box.T if self._is_fortran else box
