"""Columns made of the rows of a plain Delta table: which rows a slice needs, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from tensorlake_spark.indexing import format_key
from tensorlake_spark.spark.cluster.arguments import (
    ANY_KEY,
    COLUMN,
    FLAG,
    INTEGERS,
    NAMES,
    NOTHING,
    TEXT,
    takes,
)
from tensorlake_spark.spark.functions.decoding import Group, check_runs, groups
from tensorlake_spark.spark.functions.slice_predicate import parts_of, rows_sql, select_parts
from tensorlake_spark.spark.functions.tensor_stacks import check_bytes, spread
from tensorlake_spark.spark.functions.udfs import arrow_udf
from tensorlake_spark.spark.source.schemas import BLOCKS, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column

Array = np.ndarray[Any, Any]

_STRUCT = arrow_type(BLOCKS)


@overload
def slice_filter(
    key: Any, id: str | None = ..., sql: Literal[False] = ...,
    shape: Sequence[int] | None = ..., axes: Sequence[str] | None = ...,
) -> Column: ...  # fmt: skip
@overload
def slice_filter(
    key: Any, id: str | None = ..., *, sql: Literal[True],
    shape: Sequence[int] | None = ..., axes: Sequence[str] | None = ...,
) -> str: ...  # fmt: skip
@takes(key=ANY_KEY, id=TEXT | NOTHING, sql=FLAG, shape=INTEGERS | NOTHING, axes=NAMES | NOTHING)
def slice_filter(
    key: Any,
    id: str | None = None,  # noqa: A002 -- as the option of format("tensor")
    sql: bool = False,
    shape: Sequence[int] | None = None,
    axes: Sequence[str] | None = None,
) -> Column | str:
    """Return the condition that keeps the rows of a plain Delta table that a slice needs.

    It compares ``id``, ``nnz``, ``lo`` and ``hi``. Delta skips files by the statistics of these columns, and
    Parquet skips row groups. It keeps too many rows, never too few: a step counts as the range from its first to
    its last index, and axes after the eighth are not compared. Metadata rows do not pass.

    Parameters
    ----------
    key : object
        A NumPy key, such as ``np.s_[30:40, ..., 5]``, or its text, ``"30:40, :, 5"``. An index list counts
        as the range that it spans.
    id : str, optional
        The tensor. Without it, the rows of all tensors pass whose boxes overlap the slice.
    sql : bool
        Whether to return SQL text in place of a Column.
    shape : sequence of int, optional
        Shape of the tensor. A key that counts from the end of an axis needs it: negative numbers and steps,
        masks, and an Ellipsis that is not the last part. With a shape, an index out of bounds is an error.
        Without one, it finds nothing.
    axes : sequence of str, optional
        Names of the axes, for a text such as ``"y=5:9"``.

    Raises
    ------
    InvalidKeyError
        If the key does not fit the shape, or needs a shape that is not given.
    InvalidSliceError
        If the text cannot be read, or names an unknown axis.
    InvalidTensorError
        If `id` is not a valid id.

    Examples
    --------
    >>> slice_filter("30:40, :, 5:", "photos", sql=True)
    "id = 'photos' AND nnz > 0 AND lo.d0 < 40 AND hi.d0 > 30 AND hi.d2 > 5"
    """
    text = rows_sql(key, id, shape, axes)
    return text if sql else f.expr(text)


@takes(row=COLUMN, key=ANY_KEY, shape=INTEGERS | NOTHING, axes=NAMES | NOTHING)
def tensor_decode(
    row: Any, key: Any = "", shape: Sequence[int] | None = None, axes: Sequence[str] | None = None
) -> Column:
    """Return what a row of a tensor table holds of a slice, as a value of type TENSOR.

    Each row is decoded alone. It gives its block, trimmed to the slice and in the form that NumPy gives it:
    integers drop axes, negative steps reverse them. A row of a sparse tensor gives its block as an array. The
    result is null for rows that hold nothing of the slice, for metadata rows, and for nulls.

    In SQL, after `register`: ``tensor_decode(struct(*), '30:34, :', array(100, 64))``. The last two arguments
    are optional.

    Parameters
    ----------
    row : Column or str
        The row as a struct, ``f.struct("*")``. Your own columns do no harm.
    key : object
        As for `slice_filter`, without index lists. The key does not choose rows: filter by `slice_filter` with
        the same key too.
    shape, axes
        As for `slice_filter`.

    Raises
    ------
    InvalidKeyError, InvalidSliceError
        As `slice_filter`; also for an index list.

    Notes
    -----
    Where a task runs, it ends with an error for a row that fails its checksum, for a block of a sparse
    tensor above 64 MiB, and for a batch whose tensors take 2 GiB or more.

    Examples
    --------
    ::

        df.where(slice_filter("3:5", "photos")).select(tensor_decode(f.struct("*"), "3:5"))
    """
    return _decoded(row, key, shape, axes).getField("tensor")


@takes(row=COLUMN, key=ANY_KEY, shape=INTEGERS | NOTHING, axes=NAMES | NOTHING)
def tensor_block(
    row: Any, key: Any = "", shape: Sequence[int] | None = None, axes: Sequence[str] | None = None
) -> Column:
    """Return what a row of a tensor table holds of a slice, and where: a struct ``id, lo, offset, tensor``.

    ``lo`` is the lower corner of the trimmed block in the tensor. ``offset`` is its place in the result of the
    slice. These are the columns of the view ``blocks`` of ``format("tensor")``. See also `tensor_decode`.

    Examples
    --------
    ::

        df.select(tensor_block(f.struct("*"), "3:5").alias("b")).where("b.offset[0] = 0")
    """
    return _decoded(row, key, shape, axes)


def _decoded(row: Any, key: Any, shape: Sequence[int] | None, axes: Sequence[str] | None) -> Column:
    parts = parts_of(key, axes)
    check_runs(select_parts(parts, shape))
    lengths = None if shape is None else f.array(*(f.lit(int(n)).cast("long") for n in shape))
    args = [row, f.lit(format_key(parts)), *([] if lengths is None else [lengths])]
    return arrow_udf("tensor_block", block_column, BLOCKS)(*args)


def decoded_column(
    rows: pa.StructArray, keys: pa.Array | None = None, shapes: pa.Array | None = None
) -> pa.StructArray:
    """Return the tensor of every row; the arguments are those of `block_column`."""
    return block_column(rows, keys, shapes).flatten()[BLOCKS.names.index("tensor")]


def block_column(
    rows: pa.StructArray, keys: pa.Array | None = None, shapes: pa.Array | None = None
) -> pa.StructArray:
    """Return the block of every row, null where there is none.

    Parameters
    ----------
    rows : pyarrow.StructArray
        Rows of a table.
    keys : pyarrow.Array of string, optional
        For every row the slice; a null gives a null. Without it blocks are whole.
    shapes : pyarrow.Array of list, optional
        For every row the tensor's shape, or null.
    """
    count = len(rows)
    texts = [""] * count if keys is None else keys.to_pylist()
    lengths = [None] * count if shapes is None else shapes.to_pylist()
    wanted: dict[tuple[Any, ...], list[int]] = {}
    for number, (text, shape) in enumerate(zip(texts, lengths, strict=True)):
        if text is not None:
            wanted.setdefault((text, None if shape is None else tuple(shape)), []).append(number)
    found: list[tuple[Array, Group]] = []
    for (text, shape), some in wanted.items():
        part = rows if len(some) == count else rows.take(pa.array(some))
        found += [(np.array(some)[g.numbers], g) for g in groups(part, parts_of(text), shape)]
    check_bytes(sum(int(g.nbytes.sum()) for _, g in found), count)
    return spread([(at, g.decode().to_struct_array()) for at, g in found], count, _STRUCT)
