"""Columns of all kinds, as the dataset itself decodes them."""

from __future__ import annotations

import math
import threading
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import read_table, values_of, whole
from tensorlake_spark.datasets.types.base import field_of
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.schema import SID, column_of
from tensorlake_spark.datasets.types.tensors import ArrayType
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.stored_column import field_numbers, sorted_order
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.own_memory import empty_bytes
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts
    from tensorlake_spark.lake.ref import TensorRef

_MEDIA_TIMES = 16
"""Sound and other media take up to so many times their bytes when they are decoded."""

_AT_ONCE = 8 << 20
"""Bytes of large samples that are decoded at once. Then the pages of the files that they came from are given back."""

_ONE_AT_A_TIME = 16 << 20
"""A sample of so many bytes is decoded while no other thread does that, or their files' pages would add up."""

_large = threading.Lock()


class PlainReading:
    """Values as the dataset itself decodes them.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    names : tuple of str
        Columns, and ``sid``.
    """

    def __init__(self, parts: StoredParts, names: tuple[str, ...]) -> None:
        self.names, self._parts = names, parts
        self.n_random = 0

    def read(self, positions: Array) -> pa.Table:
        """Return columns in the order of the files, which are read from front to back."""
        # Of what is remote copies, or whole row groups would stay in memory for a few of their values.
        views = self._parts.stored.snapshot.remote is None
        return read_table(self._parts, self.names, positions[sorted_order(positions)[0]], views)

    def nbytes(self, read: pa.Table) -> int:
        return sum(int(self._each(name, whole(column_of(read, name))).sum()) for name in self.names)

    def _each(self, name: str, array: pa.Array) -> Array:
        """Return the bytes of each value when it is decoded, about."""
        kind = None if name == SID else self._parts.schema[name]
        if isinstance(kind, Image):
            pixels = field_numbers(array, "height") * field_numbers(array, "width")
            channels = np.maximum(1, field_numbers(array, "channels"))
            return pixels * channels * dtype_of(kind.dtype).itemsize
        if isinstance(kind, ArrayType):
            shapes = field_of(array, "shape").to_pylist()
            counts = np.array([math.prod(shape or [0]) for shape in shapes], np.int64)
            return counts * dtype_of(kind.fixed()[0]).itemsize
        nbytes = int(array.nbytes) * (1 if pa.types.is_primitive(array.type) else _MEDIA_TIMES)
        return np.full(len(array), -(-nbytes // max(1, len(array))), np.int64)

    def values(
        self, read: pa.Table, positions: Array, draws: Array | None, buffers: BatchBuffers
    ) -> dict[str, Values]:
        order, back = sorted_order(positions)
        out: dict[str, Values] = {}
        for name in self.names:
            array = whole(column_of(read, name))
            if name == SID:
                out[name] = np.asarray(array)[back]
                continue
            found = self._decoded(name, array, positions[order])
            is_array = isinstance(found, np.ndarray)
            out[name] = found[back] if is_array else [found[place] for place in back.tolist()]
        return out

    def _decoded(self, name: str, array: pa.Array, positions: Array) -> Any:
        """Return the values of a column; of large ones few at a time, and the pages that they lie on are given back."""
        sizes = self._each(name, array)
        steps = np.cumsum(sizes) // _AT_ONCE
        cuts = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(array)]
        if len(cuts) == 2 and steps[-1] == 0:
            return values_of(self._parts, name, array, positions)
        parts = []
        for start, stop in pairwise(cuts):
            some = array.slice(start, stop - start)
            with _large if sizes[start:stop].max() >= _ONE_AT_A_TIME else nullcontext():
                parts.append(values_of(self._parts, name, some, positions[start:stop], tiles=_new))
                self._parts.give_back_pages()
        if all(isinstance(part, np.ndarray) for part in parts):
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        return [value for part in parts for value in part]


def _new(tensor: TensorRef) -> Any:
    """Return all of a tensor in new memory: a read takes that of a large one from what Arrow keeps, and keeps it."""
    return tensor.read(out=empty_bytes(tensor.nbytes).view(tensor.dtype).reshape(tensor.shape))
