"""``option("pushFilters", "true")``: filters on the coordinates of ``cells`` narrow the slice before it is planned.

Spark gives every filter that it pushes to all DataFrames of one ``load()``: after ``base.filter("i0 = 3")``
even ``base.count()`` is 1. So only readers that were asked for it take filters, and one ``load()`` is good for one
filter. Spark evaluates each filter again on what it gets, so a filter that is not understood costs time only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tensorlake_spark.indexing import Box, Selection
from tensorlake_spark.spark.source.read.overlapping_rows import within
from tensorlake_spark.spark.source.read.reader import TensorReader
from tensorlake_spark.spark.source.read.sparse_reader import SparseReader
from tensorlake_spark.spark.source.schemas import cell_schema


class FilteredReader(TensorReader):
    """The view ``cells`` of a dense tensor, narrowed by filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Narrow the slice; all filters go back to Spark, which evaluates them on the cells."""
        shown = self.spec.labels if self.options.labels else ()
        names = cell_schema(self.spec).names[: self.spec.ndim]
        # A column of labels is compared with labels, which are no indices.
        axes = {name: k for k, name in enumerate(names) if name not in shown}
        self.selection = narrowed(self.selection, filters, axes)
        return filters


class FilteredSparseReader(FilteredReader, SparseReader):
    """The view ``cells`` of a sparse tensor, narrowed by filters."""


def narrowed(selection: Selection, filters: Iterable[Filter], axes: Mapping[str, int]) -> Selection:
    """Return the part of a selection that comparisons of coordinates with integers leave.

    Parameters
    ----------
    selection : Selection
        The slice.
    filters : iterable of Filter
        All of them hold; others than ``=``, ``<``, ``<=``, ``>``, ``>=`` and ``IN`` are passed over.
    axes : mapping of str to int
        The axis by the name of its column.

    Examples
    --------
    >>> from tensorlake_spark.indexing import Run
    >>> line = Selection((40,), (Run(0, 40),))
    >>> narrowed(line, [GreaterThan(("i0",), 30), LessThan(("i0",), 35.5)], {"i0": 0}).axes
    (Run(start=31, stop=40, step=1),)
    """
    lo, hi = [0] * len(selection.shape), list(selection.shape)
    for found in filters:
        axis = axes.get(found.attribute[0]) if hasattr(found, "attribute") else None
        if axis is None:
            continue
        first, last = _range(found)
        lo[axis] = max(lo[axis], lo[axis] if first is None else first)
        hi[axis] = min(hi[axis], hi[axis] if last is None else last + 1)
    box = Box(tuple(min(a, max(b, 0)) for a, b in zip(lo, hi)), tuple(max(b, 0) for b in hi))
    return within(selection, box)


def _range(found: Filter) -> tuple[int | None, int | None]:
    """Return the first and the last index that a filter lets through; None where it bounds nothing."""
    values = found.value if isinstance(found, In) else (getattr(found, "value", None),)
    if not values or not all(type(value) is int for value in values):
        return None, None
    if isinstance(found, (EqualTo, In)):
        return min(values), max(values)
    (value,) = values
    if isinstance(found, (GreaterThan, GreaterThanOrEqual)):
        return value + isinstance(found, GreaterThan), None
    if isinstance(found, (LessThan, LessThanOrEqual)):
        return None, value - isinstance(found, LessThan)
    return None, None
