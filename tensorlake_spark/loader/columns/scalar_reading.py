"""Columns of whole numbers without nulls, such as labels: kept of whole files, taken without Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.plain_reading import PlainReading
from tensorlake_spark.loader.columns.stored_column import RowsOf, StoredColumn
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts

_NULL = np.iinfo(np.int64).min
_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")


class ScalarReading:
    """Whole numbers.

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
        self.names: tuple[str, ...] = (name,)
        self._dtype = dtype_of(whole_dtype(parts.schema[name]) or "int64")
        self._column = StoredColumn(parts, name, rows)
        self._plain = PlainReading(parts, (name,))
        self.n_random = 0

    def read(self, positions: Array) -> Any:
        found = self._column.numbers("", positions, _NULL)
        if found is None or bool((found == _NULL).any()):
            return self._plain.read(positions)
        return found

    def nbytes(self, read: Any) -> int:
        return len(read) * 8

    def values(
        self, read: Any, positions: Array, draws: Array | None, buffers: BatchBuffers
    ) -> dict[str, Values]:
        if not isinstance(read, np.ndarray):
            return self._plain.values(read, positions, draws, buffers)
        return {self.names[0]: read.astype(self._dtype)}


def whole_dtype(kind: Type | None) -> str | None:
    """Return the dtype of a column of whole numbers, None for another column."""
    name = (
        kind.dtype if isinstance(kind, Scalar) else "int64" if isinstance(kind, ClassLabel) else ""
    )
    return name if name in _DTYPES else None
