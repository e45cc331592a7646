"""Labels of axes as columns of the view ``cells``, in place of the indices that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t

from tensorlake_spark.spark.source.schemas import cell_schema
from tensorlake_spark.tensor.labels import Labels, Listed
from tensorlake_spark.tensor.spec import TensorSpec

_DAYS = ("Y", "M", "W", "D")


def label_type(labels: Labels) -> t.DataType:
    """Return the Spark type of an axis's labels.

    Bins of time are dates from the day up, and below it timestamps without a zone, which have microseconds.

    Examples
    --------
    >>> label_type(Listed(("AA", "UA"))), label_type(Listed((1, 2.5)))
    (StringType(), DoubleType())
    """
    if isinstance(labels, Listed):
        kinds = {type(value) for value in labels.values}
        if kinds == {bool}:
            return t.BooleanType()
        if kinds == {int} and all(-(2**63) <= value < 2**63 for value in labels.values):
            return t.LongType()
        if float in kinds and kinds <= {int, float} and all(map(_is_double, labels.values)):
            return t.DoubleType()
        return t.StringType()
    if labels.unit is not None:
        return t.DateType() if labels.unit in _DAYS else t.TimestampNTZType()
    whole = isinstance(labels.start, int) and isinstance(labels.step, int)
    return t.LongType() if whole else t.DoubleType()


def _is_double(value: Any) -> bool:
    """Whether a number is the same one as a double."""
    try:
        return isinstance(value, float) or float(value) == value
    except OverflowError:
        return False


def labelled_schema(spec: TensorSpec) -> t.StructType:
    """Return the schema of the view ``cells`` with labels where an axis has some.

    Examples
    --------
    >>> named = {"axes": ("k", "n"), "labels": {"k": Listed(("a",))}}
    >>> spec = TensorSpec("x", (1, 9), np.dtype("i4"), "coo", (), **named)
    >>> labelled_schema(spec).simpleString()
    'struct<k:string,n:bigint,value:int>'
    """
    fields = [
        t.StructField(
            f.name, label_type(spec.labels[f.name]) if f.name in spec.labels else f.dataType
        )
        for f in cell_schema(spec).fields
    ]
    return t.StructType(fields)


def with_labels(batch: pa.RecordBatch, spec: TensorSpec) -> pa.RecordBatch:
    """Return rows of the view ``cells`` with labels for the indices of axes that have some."""
    for name, labels in spec.labels.items():
        at = batch.schema.get_field_index(name)
        column = _shown(batch.column(at).to_numpy(), labels)
        batch = batch.set_column(at, name, column)
    return batch


def _shown(index: np.ndarray[tuple[int], np.dtype[np.int64]], labels: Labels) -> pa.Array:
    kind = label_type(labels)
    if isinstance(labels, Listed):
        values = list(labels.values)
        if isinstance(kind, t.StringType):
            values = [str(value) for value in values]
        return pa.array(values).take(pa.array(index))
    starts = labels.starts(index)
    if labels.unit is None:
        return pa.array(starts)
    return pa.array(
        starts.astype("datetime64[D]" if isinstance(kind, t.DateType) else "datetime64[us]")
    )
