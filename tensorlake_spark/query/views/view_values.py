"""Columns of a view for some of its rows, here or with executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.query.engine.evaluation import Evaluation
from tensorlake_spark.query.engine.leaf_values import stored_values
from tensorlake_spark.query.engine.row_batches import tiled_bytes
from tensorlake_spark.query.sources.source_columns import Lazy, Output

_LOOKED_AT = 64  # rows, before all others

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ViewValues:
    """Values of columns that are in no dataset as they are; `Selection.computed` takes it.

    Attributes
    ----------
    outputs : dict of str to Output
        The columns.
    table : pyarrow.Table
        The rows that were found.
    parameters : dict of str to object
        Values of ``:name``.
    """

    outputs: Mapping[str, Output]
    table: pa.Table
    parameters: Mapping[str, Any]

    def __call__(self, start: int, stop: int) -> dict[str, Any]:
        """Return the values of some rows."""
        rows = self.table.slice(start, stop - start)
        return output_values(self.outputs, rows, Evaluation(self.parameters))

    def tiled_bytes(self, start: int, stop: int) -> Array:
        """Return for each of some rows how many bytes of tiles are read for it, about."""
        lazies = [output for output in self.outputs.values() if isinstance(output, Lazy)]
        return tiled_bytes(lazies, self.table.slice(start, stop - start), self.parameters)


def output_values(
    outputs: Mapping[str, Output], table: pa.Table, evaluation: Evaluation
) -> dict[str, Any]:
    """Return columns for the rows of a table: an array each, or a list with a value a row."""
    return {
        name: evaluation.values(output, table)
        if isinstance(output, Lazy)
        else stored_values(table.column(output.ref[1]), output.type)
        for name, output in outputs.items()
    }


def first_values(lazy: Lazy, table: pa.Table, evaluation: Evaluation) -> list[Any]:
    """Return values of the first rows that are not all null, with arrays of zeros that take no memory as their arrays.

    Without such rows there are none.
    """
    rest = evaluation.batches([lazy], table.slice(_LOOKED_AT))
    for part in chain([table.slice(0, _LOOKED_AT)], rest):
        values = [
            _without_elements(value)
            for some in evaluation.batches([lazy], part)
            for value in evaluation.values(lazy, some)
        ]
        if any(value is not None for value in values):
            return values
    return []


def _without_elements(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_elements(one) for one in value]
    if isinstance(value, np.ndarray) and value.ndim:
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return value
