"""Columns of arrays that all have one shape."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.tensors import ArrayType
from tensorlake_spark.delta.samples.payload_places import PayloadPlaces
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.plain_reading import PlainReading
from tensorlake_spark.loader.columns.stored_column import RowsOf, StoredColumn
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.decoding.array_stacking import stacked
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts


class StackReading:
    """Arrays that all have one shape: each copied once, into its place in the batch.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    name : str
        The column.
    rows : callable
        Returns the `ScatteredRows` of a table.
    """

    def __init__(self, parts: StoredParts, name: str, rows: RowsOf) -> None:
        kind = parts.schema[name]
        assert isinstance(kind, ArrayType)  # nosec B101 # for mypy
        dtype, shape = kind.fixed()
        self.names: tuple[str, ...] = (name,)
        self._dtype = dtype_of(dtype)
        self._shape = tuple(int(length or 0) for length in shape or ())
        self._column = StoredColumn(parts, name, rows)
        self._plain = PlainReading(parts, (name,))
        self.n_random = 0

    @property
    def _nbytes(self) -> int:
        return math.prod(self._shape) * self._dtype.itemsize

    def read(self, positions: Array) -> Any:
        places = self._column.payload_places(positions)
        if places is not None:
            return places
        found = self._column.payloads(positions)
        if found is None or None in found:  # a null, tiles, or another writer's file
            return self._plain.read(positions)
        return found

    def nbytes(self, read: Any) -> int:
        return self._nbytes * (len(read[0]) if isinstance(read, pa.Table) else len(read))

    def values(
        self, read: Any, positions: Array, draws: Array | None, buffers: BatchBuffers
    ) -> dict[str, Values]:
        if isinstance(read, pa.Table):
            return self._plain.values(read, positions, draws, buffers)
        out = buffers.array((len(read), *self._shape), self._dtype)
        try:
            if isinstance(read, PayloadPlaces):
                return {self.names[0]: self._copied(read, out)}
            return {self.names[0]: stacked(read, self._shape, self._dtype, out)}
        except CorruptDataError as error:
            raise CorruptDataError(f"column {self.names[0]!r}: {error}") from error

    def _copied(self, places: PayloadPlaces, out: Array) -> Array:
        """Return the arrays, read from their files into the batch."""
        for length in places.lengths:
            if length != self._nbytes:
                raise CorruptDataError(
                    f"a sample has {length} bytes, and {self._dtype} of shape {self._shape} has {self._nbytes}; its "
                    "table was changed by others"
                )
        places.copy_to(out.reshape(len(places), -1).view(np.uint8))
        return out if sys.byteorder == "little" else out.byteswap(inplace=True)
