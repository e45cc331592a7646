"""Computed columns of a view for some of its rows, here or with executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tensorlake_spark.query.engine.evaluation import Evaluation
from tensorlake_spark.query.engine.leaf_values import stored_values
from tensorlake_spark.query.sources.columns import Lazy, Output


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
        evaluation = Evaluation(self.parameters)
        out: dict[str, Any] = {}
        for name, output in self.outputs.items():
            if isinstance(output, Lazy):
                out[name] = evaluation.values(output, rows)
            else:
                out[name] = stored_values(rows.column(output.ref[1]), output.type)
        return out
