"""The rows of a DataFrame as Arrow batches, whatever its columns are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]


def in_arrow(frame: DataFrame, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """Return what `work` makes of each partition, as `DataFrame.mapInArrow` does.

    That one looks for each column by its name: ``a.b`` is a field of a column ``a`` then, and ``A`` and ``a`` are one.
    So the columns have numbers on their way.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    work : callable
        Takes and yields batches; runs on executors.
    schema : str
        Of what it yields.
    """
    names = tuple(frame.columns)
    numbered = frame.toDF(*(f"c{k}" for k in range(len(names))))
    return numbered.mapInArrow(_Named(work, names), schema)


@dataclass(frozen=True)
class _Named:
    """Gives batches the names of their columns back."""

    work: Callable[[Batches], Batches]
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        return self.work(batch.rename_columns([*self.names]) for batch in batches)
