"""One column where it lies: in the samples' table, or in one of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import read_column
from tensorlake_spark.datasets.types.base import field_of
from tensorlake_spark.delta.samples.scattered.payload_places import PayloadPlaces
from tensorlake_spark.delta.samples.scattered.scattered_rows import ScatteredRows
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.loader.columns.values import Array

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts

RowsOf = Callable[[StoredSamples], ScatteredRows]


class StoredColumn:
    """The fields of one column where they lie: in the samples' table, or apart.

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
        self._parts, self.name = parts, name
        table = parts.table_of(name) if parts.is_apart(name) else parts.stored
        self._is_apart = parts.is_apart(name)
        self._rows = None if table is None else rows(table)
        self._table, self._path = table, parts.path_of(name)

    def _places(self, positions: Array) -> Array | None:
        if not self._is_apart:
            return positions
        found = self._parts.rows_of(self.name, positions)
        return None if (found < 0).any() else found

    def payloads(self, positions: Array) -> list[Any] | None:
        """Return the payloads of samples, None if they do not lie as they are."""
        places = self._places(positions)
        if self._rows is None or self._table is None or places is None:
            return None
        return self._rows.payloads(self._table.leaf((*self._path, "data")), places)

    def payload_places(self, positions: Array) -> PayloadPlaces | None:
        """Return where the payloads of samples lie in local files, None if they do not lie as they are."""
        places = self._places(positions)
        if self._rows is None or self._table is None or places is None:
            return None
        return self._rows.places(self._table.leaf((*self._path, "data")), places)

    def numbers(self, field: str, positions: Array, null: int = 0) -> Array | None:
        """Return a field of samples, the column itself for ``""``; None if it is not kept as numbers."""
        places = self._places(positions)
        if self._rows is None or self._table is None or places is None:
            return None
        return self._rows.numbers(
            self._table.leaf((*self._path, field) if field else self._path), places, null
        )

    def array(self, positions: Array) -> pa.Array:
        """Return the whole column of samples, in the order of `positions`."""
        return read_column(self._parts, self.name, positions)


def sorted_order(positions: Array) -> tuple[Array, Array]:
    """Return what sorts positions, and what brings back their order.

    Examples
    --------
    >>> order, back = sorted_order(np.array([7, 3, 5]))
    >>> order.tolist(), back.tolist()
    ([1, 2, 0], [2, 0, 1])
    """
    order = np.argsort(positions, kind="stable")
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return order, back


def field_numbers(array: pa.Array, name: str, null: int = 0) -> Array:
    """Return a field of a struct as whole numbers, with another number in the place of nulls."""
    found = field_of(array, name)
    if found.null_count:
        found = found.fill_null(null)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
