"""The header of ``.npy`` files, and their arrays where they cannot be mapped: objects of S3 and members of ``.npz``."""

from __future__ import annotations

import math
import struct
import zipfile
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
            "it is not a .npy file, as its name says; numpy.save makes one"
        ) from None
    old = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(stream)
    if dtype.hasobject:
        raise InvalidTensorError(PICKLED)
    return tuple(int(n) for n in shape), is_fortran, dtype


class Ranges:
    """The array of an ``.npy`` stream, read by ranges of its bytes; a `Stored` of ``spark.ingest.arrays``."""

    def __init__(self, stream: IO[bytes]):
        self.shape, self.is_fortran, self.dtype = read_header(stream)
        self.chunks: tuple[int, ...] = ()
        self.is_whole = not self.shape
        self._stream, self._start = stream, stream.tell()

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        shape, first, stop = self.shape, tuple(lo), tuple(hi)
        if self.is_fortran:
            shape, first, stop = shape[::-1], first[::-1], stop[::-1]
        sides = tuple(b - a for a, b in zip(first, stop, strict=True))
        # Up to this axis the box has one index of each: what it has of this one lies in one range.
        axis = next((k for k, side in enumerate(sides) if side != 1), max(0, len(shape) - 1))
        inner = shape[axis + 1 :]
        step = math.prod(inner) * self.dtype.itemsize
        begin = 0
        for index, length in zip(first[: axis + 1], shape):
            begin = begin * length + index
        self._stream.seek(self._start + begin * step)
        count = math.prod(sides[axis : axis + 1])
        data = self._stream.read(count * step)
        if len(data) < count * step:
            raise InvalidTensorError("it ends before its last element")
        slab = np.frombuffer(data, self.dtype).reshape((count, *inner) if shape else ())
        key = (slice(None), *(slice(a, b) for a, b in zip(first[axis + 1 :], stop[axis + 1 :])))
        box = slab[key if shape else ()].reshape(sides)
        return box.T if self.is_fortran else box


class Member(Ranges):
    """An array of an ``.npz`` file: of one that is stored as it is any range, of a packed one what comes next.

    Whoever reads the last element checks the checksum of all.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str):
        info = archive.getinfo(name)
        self._archive, self._name = archive, name
        self._is_plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
        stream: Any = archive.open(name)  # which looks at the member's own head
        if self._is_plain:
            stream.close()
            stream = archive.fp
            stream.seek(info.header_offset + 26)
            stream.seek(sum(struct.unpack("<HH", stream.read(4))), 1)
        begin = stream.tell()
        super().__init__(stream)
        self.is_whole = self.is_whole or not self._is_plain
        size = math.prod(self.shape) * self.dtype.itemsize
        there = info.file_size - (self._start - begin)
        if size > there:
            raise InvalidTensorError(
                f"it was cut off: its header promises {size} bytes of elements, and the archive has {there}"
            )

    def close(self) -> None:
        """Give back what was opened."""
        if not self._is_plain:
            self._stream.close()

    def read(self, lo: Sequence[int], hi: Sequence[int]) -> Array:
        """Return the elements of a box."""
        box = super().read(lo, hi)
        if self._is_plain and tuple(hi) == self.shape:
            with self._archive.open(self._name) as stream:
                while stream.read(1 << 20):
                    pass
        return box
