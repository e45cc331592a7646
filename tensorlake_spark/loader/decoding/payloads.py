"""Where the values of a binary column lie in memory, whatever kind of binary it is. Nothing is copied."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.base import Array, is_valid

_VIEW = np.dtype([("size", "<i4"), ("prefix", "<u4"), ("buffer", "<i4"), ("start", "<i4")])
_INLINE = 12  # bytes of a value that lies in its view


class Payloads:
    """The values of a binary column, where they lie.

    Parameters
    ----------
    array : pyarrow.Array
        Of binary, large_binary or binary_view.

    Attributes
    ----------
    buffers : list of uint8 ndarray
        What they lie in.
    which, starts, sizes : int64 ndarray, shape (values,)
        The buffer of each, where it begins there, and its bytes.
    valid : bool ndarray, shape (values,)
        Which are not null.

    Examples
    --------
    >>> found = Payloads(pa.array([b"ab", None, b"cde"]))
    >>> [value and bytes(value) for value in found.views], found.sizes.tolist()
    ([b'ab', None, b'cde'], [2, 0, 3])
    """

    def __init__(self, array: pa.Array) -> None:
        self.valid = is_valid(array)
        count = len(array)
        if array.type == pa.binary_view():
            raw = array.buffers()
            self.buffers = [_bytes(buffer) for buffer in raw[1:]]
            views = self.buffers[0][: 16 * (array.offset + count)].view(_VIEW)[array.offset :]
            self.sizes = np.where(self.valid, views["size"], 0).astype(np.int64)
            inline = self.sizes <= _INLINE
            places = 16 * (array.offset + np.arange(count)) + 4
            self.starts = np.where(inline, places, views["start"]).astype(np.int64)
            self.which = np.where(inline, 0, views["buffer"] + 1).astype(np.int64)
            return
        wide = array.cast(pa.large_binary())
        ends = np.zeros(count + 1, np.int64)
        if count:
            ends = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + count + 1]
        self.buffers = [_bytes(wide.buffers()[2])]
        self.starts, self.sizes = ends[:-1], np.diff(ends)
        self.which = np.zeros(count, np.int64)

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def views(self) -> list[Any]:
        """A memoryview of unsigned bytes for each value, None where it is null."""
        whole = [buffer.data for buffer in self.buffers]
        ends = (self.starts + self.sizes).tolist()
        out: list[Any] = [
            whole[which][start:end]
            for which, start, end in zip(self.which.tolist(), self.starts.tolist(), ends)
        ]
        for number in np.flatnonzero(~self.valid).tolist():
            out[number] = None
        return out


def _bytes(buffer: pa.Buffer | None) -> Array:
    return (
        np.frombuffer(buffer, np.uint8)
        if buffer is not None and buffer.size
        else np.empty(0, np.uint8)
    )
