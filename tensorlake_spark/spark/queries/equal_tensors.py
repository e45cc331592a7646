"""Tensors whose bytes are the same if they are equal: Spark compares bytes, and SQL's NaN and zeros are equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.spark.source.schemas import TENSOR
from tensorlake_spark.tensor.spec import dtype_of


def equal_tensors(column: pa.Array) -> pa.Array:
    """Return tensors, or lists of tensors, in which every NaN has the same bits, and -0.0 is 0.0.

    Examples
    --------
    >>> from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
    >>> some = tensors_with_nulls("x", [np.array([0.0, np.nan]), np.array([-0.0, -np.nan]), None])
    >>> first, second, third = equal_tensors(some).to_pylist()
    >>> first == second, third
    (True, None)
    """
    if pa.types.is_list(column.type):
        counts = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        inner = equal_tensors(column.flatten())
        return pa.ListArray.from_arrays(pa.array(ends), inner, mask=column.is_null())
    parts = [column.field(name) for name in column.type.names]
    place = column.type.names.index("data")
    names = column.field("dtype").to_pylist()
    data = parts[place]
    new: list[Any] = [
        None if whole is None or name is None else _equal(name, whole.as_buffer())
        for name, whole in zip(names, data, strict=True)
    ]
    if any(one is not None for one in new):
        kept = zip(new, data, strict=True)
        parts[place] = pa.array(
            [old.as_py() if one is None else one for one, old in kept], data.type
        )
    return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=column.is_null())


def _equal(name: str, data: pa.Buffer) -> bytes | None:
    """Return the bytes of an array with one NaN and one zero, None if they are so already."""
    dtype = dtype_of(name)
    if dtype.kind == "c":
        dtype = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
    if dtype.kind not in "fV" or (dtype.kind == "V" and dtype.names):
        return None
    values = np.frombuffer(data, dtype)
    missing = np.isnan(values)
    if not missing.any() and not (np.signbit(values) & (values == 0)).any():
        return None
    out: bytes = (
        np.where(missing, dtype.type(np.nan), values + dtype.type(0)).astype(dtype).tobytes()
    )
    return out


def equal_udf(collected: bool) -> Any:
    """Return `equal_tensors` as an Arrow UDF: of tensors, or of the lists that a group has."""

    def equal(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from map(equal_tensors, batches)

    spark: Any = f  # whose own type hints leave it out
    return spark.arrow_udf(equal, t.ArrayType(TENSOR) if collected else TENSOR)
