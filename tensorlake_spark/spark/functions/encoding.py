"""Rows of a plain Delta table made of tensors, and the metadata rows that make tensors of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.layouts.quantization.kinds import (
    KEY,
    Quantization,
    quantization_of,
    quantization_of_codec,
)
from tensorlake_spark.rows.metadata import META_COLUMNS, meta_batch, read_meta
from tensorlake_spark.rows.row import SCHEMA, Totals, data_batch
from tensorlake_spark.spark.cluster.arguments import (
    COLUMN,
    EXPRESSION,
    FRAME,
    INTEGER,
    INTEGERS,
    MAPPING,
    NOTHING,
    TEXT,
    takes,
)
from tensorlake_spark.spark.functions.tensor_stacks import check_bytes
from tensorlake_spark.spark.functions.udfs import arrow_udf, longs
from tensorlake_spark.spark.source.schemas import TensorColumn, arrow_type
from tensorlake_spark.spark.source.write.grouping import usual_block
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec, check_id, dtype_of
from tensorlake_spark.writing.append import longer_labels
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.pipeline import encode
from tensorlake_spark.writing.source import ArraySource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

ROW = from_arrow_schema(SCHEMA)
"""A row of a tensor table as a value of Spark."""

_STEP = r"^(cast\(|error\(|int8\b|split\b)"

ROWS = t.ArrayType(ROW)


@takes(
    tensor=COLUMN,
    lo=INTEGERS | COLUMN,
    id=TEXT | EXPRESSION,
    seq=INTEGER | COLUMN,
    layout=TEXT,
    block_shape=INTEGERS | NOTHING,
    codec=TEXT,
    shape=INTEGERS | NOTHING,
    quantize=TEXT | MAPPING | NOTHING,
)
def tensor_encode(
    tensor: Any,
    lo: Any,
    id: Any,  # noqa: A002 -- as the option of format("tensor")
    seq: Any,
    layout: str = "ftsf",
    block_shape: Sequence[int] | None = None,
    codec: str = "auto",
    shape: Sequence[int] | None = None,
    quantize: str | Mapping[str, float] | None = None,
) -> Column:
    """Turn a part of a tensor into rows of a tensor table: an array of structs.

    This is the counterpart of `tensor_decode`. ``df.select(f.inline(tensor_encode(...)))`` has the columns of a
    tensor table, and you may append it to one. Chunks full of zeros have no row. The rows become a tensor when
    you append its metadata row too: see `metadata_rows`. In SQL, ``tensor_encode(tensor, lo, id, seq)`` may be
    followed by ``layout, block_shape, codec, shape, quantize``, each of which may be left out or null.

    Parameters
    ----------
    tensor : Column or str
        The part.
    lo : Column or str, or sequence of int
        Its lower corner in the tensor.
    id : str or Column
        The name of the tensor, or a column of names, ``f.col("name")``.
    seq : Column or str, or int
        Place of the first row in the tensor's storage order; further rows count up. Each part needs places of its
        own: it becomes at most as many rows as it touches blocks (``window``: as it has samples), or as it has
        elements.
    layout : str
        Any but ``"auto"``, because parts do not know each other.
    block_shape : sequence of int, optional
        Shape of the chunks or blocks. It is the same for all parts, and counts from the tensor's first element.
        By default it is chosen from `shape`, or from the shape of the part.
    codec : str
        How values are coded. ``"auto"`` and ``"smallest"`` try candidates on the first part of a batch.
    shape : sequence of int, optional
        Shape of the whole tensor. By default it ends where the parts end.
    quantize : str or mapping, optional
        How floats are stored in fewer bits, as `TensorLake.write` takes it; in SQL as a text, such as ``'int8'`` or
        ``'{"error": 0.001}'``. A codec of chunks tells `metadata_rows` of it. ``{"relative": r}`` and sparse layouts
        have no such codec: the values are rounded, but a new tensor does not say so.

    Raises
    ------
    InvalidOptionError
        If there is no such layout or codec, or the layout has no such quantisation.
    InvalidTensorError
        If `id` is not a valid id.

    Notes
    -----
    Where a task runs, it ends with an error for a part that does not lie in `shape`.

    Examples
    --------
    ::

        rows = df.select(f.inline(tensor_encode("tensor", [0, 0, 0, 0], "copy", 0)))
        rows.select("id", "seq", "lo", "nnz").collect()
    """
    known = layout_of(layout)
    if codec not in BY_TRYING:
        known.check_codec(codec)
    chosen = quantization_of(quantize)
    args = [
        tensor,
        longs(lo) if isinstance(lo, (list, tuple)) else lo,
        f.lit(check_id(id)) if isinstance(id, str) else id,
        f.lit(int(seq)) if isinstance(seq, (int, np.integer)) else seq,
        f.lit(layout),
        longs(block_shape) if block_shape is not None else f.lit(None).cast("array<bigint>"),
        f.lit(codec),
        longs(shape) if shape is not None else f.lit(None).cast("array<bigint>"),
        f.lit(None if chosen is None else _text_of(chosen)).cast("string"),
    ]
    return arrow_udf("tensor_encode", encoded_column, ROWS)(*args)


def encoded_column(
    tensors: pa.StructArray, los: pa.Array, ids: pa.Array, seqs: pa.Array, *options: pa.Array
) -> pa.ListArray:
    """Return the rows that each tensor becomes, null where an argument is null.

    Parameters
    ----------
    tensors, los, ids, seqs : pyarrow.Array
        The parts, and where they belong.
    *options : pyarrow.Array
        Layouts, block shapes, codecs, shapes and quantisations; what is null is chosen.
    """
    parts = TensorColumn(tensors)
    made: dict[Any, TensorSpec] = {}
    batches: list[pa.RecordBatch] = []
    ends: list[int | None] = []
    number = size = 0
    columns = [column.to_pylist() for column in (los, ids, seqs, *options)]
    for place, (lo, name, seq, *rest) in enumerate(zip(*columns, strict=True)):
        if None in (lo, name, seq) or not parts.valid[place]:
            ends.append(None)
            continue
        ends.append(number)
        part = parts.stack(np.array([place]))[0]
        spec = _spec(name, part, lo, rest, made)
        rows = [row for _, some in encode(spec, [(tuple(lo), part)]) for row in some]
        if rows:
            batches.append(data_batch(spec, range(seq, seq + len(rows)), rows))
        number += len(rows)
        size += sum(row.nbytes for row in rows)
        check_bytes(size, place + 1)
    kind = arrow_type(ROWS)
    fields = list(kind.value_type)
    found = pa.Table.from_batches(batches, SCHEMA).combine_chunks()
    values = pa.StructArray.from_arrays(
        [found.column(field.name).combine_chunks() for field in fields], fields=fields
    )
    return pa.ListArray.from_arrays(pa.array([*ends, number], pa.int32()), values, type=kind)


def _spec(
    name: str, part: Array, lo: list[int], options: Sequence[Any], made: dict[Any, TensorSpec]
) -> TensorSpec:
    """Return by what a part is encoded; `made` has what was chosen for parts like it."""
    layout, block, codec, shape, quantize = (*options, *[None] * 5)[:5]
    if len(lo) != part.ndim or None in lo or min(lo, default=0) < 0:
        raise InvalidTensorError(
            f"tensor_encode: a part of shape {part.shape} has lo = {lo}; it needs {part.ndim} non-negative numbers"
        )
    ends = tuple(a + n for a, n in zip(lo, part.shape, strict=True))
    whole = ends if shape is None else tuple(shape)
    if len(whole) != part.ndim or any(b > n for b, n in zip(ends, whole, strict=True)):
        raise InvalidTensorError(
            f"tensor_encode: a part of tensor {name!r} ends at {ends}, outside of the shape {whole}"
        )
    block = None if block is None else tuple(block)
    key = (name, layout, block, codec, shape is None or whole, part.shape, part.dtype, quantize)
    if key not in made:
        about = part.shape if shape is None else whole
        kind = layout_of(layout or "ftsf")
        if block is None and kind.has_blocks:
            block = usual_block(about) if kind.is_sparse else kind.default_block(about, part.dtype)
        chosen = WriteOptions(
            layout=kind.name, block_shape=block, codec=codec or "auto", quantize=quantize
        )
        made[key] = new_spec(name, ArraySource(part, part.shape, part.dtype), chosen)
    return replace(made[key], shape=whole, segments=())


def _text_of(chosen: Quantization) -> str:
    found = chosen.to_json()
    return found if isinstance(found, str) else json.dumps(found)


@takes(rows=FRAME)
def metadata_rows(rows: DataFrame) -> DataFrame:
    """Return the metadata rows of all tensors that have rows in a DataFrame, with totals counted anew.

    After rows of a tensor were added or removed with plain Delta, append its metadata row: then the totals fit, and
    full reads succeed. Axis names, attributes and labels stay as in the newest metadata row. A tensor without one
    gets one. Its shape is then the one given to `tensor_encode`, or ends where the rows end.

    Parameters
    ----------
    rows : DataFrame
        All rows of these tensors, including their metadata rows; not only those of a slice.

    Raises
    ------
    InvalidTensorError
        If a column is missing.

    Notes
    -----
    Such an append carries no Delta transaction of the tensor, so other writers do not notice it. None of them may
    change the tensor at the same time.

    Examples
    --------
    ::

        table = spark.read.format("delta").load(path)
        metadata_rows(table.where("id = 'photos'")).select("id", "attrs").collect()
    """
    missing = [name for name in SCHEMA.names if name not in rows.columns]
    if missing:
        raise InvalidTensorError(
            f"the DataFrame has no column {', '.join(missing)}; give whole rows of a tensor table"
        )
    is_data = f.col("nnz") > 0
    columns = f.struct(*META_COLUMNS)
    sizes = [f.coalesce(f.length(name), f.lit(0)) for name in ("index", "values")]
    counted = rows.groupBy("id").agg(
        f.count(f.when(is_data, 1)).alias("rows"),
        f.sum("nnz").alias("nnz"),
        f.sum(sizes[0] + sizes[1]).alias("bytes"),
        f.max("seq").alias("seq"),
        f.max_by(columns, f.when(~is_data, f.col("seq"))).alias("meta"),
        f.max_by(columns, f.when(is_data, f.col("seq"))).alias("data"),
        f.collect_set(f.when(is_data, f.col("shape"))).alias("shapes"),
        # A chunk that a step does not fit has a codec without it.
        f.max(f.when(is_data & f.col("codec").rlike(_STEP), f.col("codec"))).alias("stepped"),
        f.array(*(f.max(f"hi.d{k}") for k in range(STORED_AXES))).alias("hi"),
    )
    return counted.mapInArrow(_meta_batches, ROW)


def _meta_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            spec = _told(row) if row["meta"] is None else _longer(read_meta(row["meta"]).spec, row)
            totals = Totals(row["rows"], row["nnz"], row["bytes"])
            yield meta_batch([spec], [row["seq"] + 1], [totals])


def _told(row: dict[str, Any]) -> TensorSpec:
    """Return a tensor as its data rows tell of it."""
    data = row["data"]
    shape = tuple(map(max, zip(*row["shapes"], strict=True)))
    params = layout_of(data["layout"]).choose_params(len(shape), None, None)
    codec = row["stepped"] or data["codec"]
    known = quantization_of_codec(codec)
    if known is not None:
        params = {**params, KEY: known.to_json()}
    return TensorSpec(
        id=row["id"],
        shape=shape,
        dtype=dtype_of(data["dtype"]),
        layout=data["layout"],
        block_shape=data["block_shape"] or (),
        codec=codec,
        params=params,
    )


def _longer(spec: TensorSpec, row: dict[str, Any]) -> TensorSpec:
    """Return a tensor with a shape that holds all of its rows."""
    ends = [n or 0 for n in row["hi"]] + [0] * spec.ndim
    shape = tuple(map(max, zip(spec.shape, ends, strict=False)))
    return replace(spec, shape=shape, labels=longer_labels(spec, shape, {}))
