"""Columns of all kinds, as the dataset itself decodes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts

_MEDIA_TIMES = 16
"""Sound and other media take up to so many times their bytes when they are decoded."""


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
        return sum(self._nbytes(name, whole(column_of(read, name))) for name in self.names)

    def _nbytes(self, name: str, array: pa.Array) -> int:
        kind = None if name == SID else self._parts.schema[name]
        if isinstance(kind, Image):
            pixels = field_numbers(array, "height") * field_numbers(array, "width")
            channels = np.maximum(1, field_numbers(array, "channels"))
            return int((pixels * channels).sum()) * dtype_of(kind.dtype).itemsize
        if isinstance(kind, ArrayType):
            shapes = field_of(array, "shape").to_pylist()
            count: int = sum(math.prod(shape or [0]) for shape in shapes)
            return count * dtype_of(kind.fixed()[0]).itemsize
        return int(array.nbytes) * (1 if pa.types.is_primitive(array.type) else _MEDIA_TIMES)

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
            found = values_of(self._parts, name, array, positions[order])
            is_array = isinstance(found, np.ndarray)
            out[name] = found[back] if is_array else [found[place] for place in back.tolist()]
        return out
