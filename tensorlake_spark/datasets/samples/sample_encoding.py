"""Columns as a user gives them -> the table's columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.errors import InvalidOptionError


def encoded(
    columns: dict[str, Any], schema: SampleSchema, first: int, count: int | None = None
) -> dict[str, pa.Array]:
    """Return all columns of a batch, checked and in the types that are stored; null where one is not there, or apart.

    They are only to be written: bytes of media may be views of those of the user.

    Parameters
    ----------
    columns : dict
        The values of each column that is given, one a sample.
    schema : SampleSchema
        The dataset's columns.
    first : int
        The number of the first sample in what the user gave, for messages.
    count : int, optional
        How many samples there are, where `columns` may be empty.

    Raises
    ------
    InvalidSampleError
        If a value does not fit its column, or is missing where the column takes no null.
    InvalidOptionError
        If an apart column is given: its values are not rows of this table.
    """
    for name in columns:
        if schema[name].apart:
            raise InvalidOptionError(
                f"column {name!r} is kept apart, in a table of its own, which this way of writing does not reach; "
                "extend the dataset in Python, or declare the column without apart"
            )
    if count is None:
        count = len(next(iter(columns.values()), ()))
    return {
        name: pa.nulls(count, kind.storage())
        if kind.apart
        else kind.encode(columns.get(name, [None] * count), name, first, views=True)
        for name, kind in schema.items()
    }


def numbered(columns: dict[str, pa.Array], schema: SampleSchema, first: int) -> pa.Table:
    """Return encoded columns as rows of the table, whose numbers begin with `first`."""
    count = len(next(iter(columns.values()), ()))
    sids = pa.array(np.arange(first, first + count))
    return pa.Table.from_batches([schema.to_batch(columns, sids)])
