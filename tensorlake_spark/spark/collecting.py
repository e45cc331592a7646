"""Blocks of a DataFrame as one array."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.spark.views import tensors_of
from tensorlake_spark.sparse import nonzero
from tensorlake_spark.spec import dtype_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Array = np.ndarray[Any, Any]

NOTE = "tensorlake"
"""In the metadata of the column ``tensor``: what the blocks make up, as JSON."""


def collect_tensor(
    df: DataFrame,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
    partial: bool = False,
) -> Array:
    """Return a DataFrame of blocks as one array on the driver.

    Parameters
    ----------
    df : DataFrame
        With the columns ``offset`` and ``tensor``: of `read_tensor`, perhaps filtered, or of the view
        ``blocks`` of ``format("tensor")``.
    shape : sequence of int, optional
        Of the result; a DataFrame of `read_tensor` knows it.
    dtype : str, optional
        Of the result; by default that of the blocks.
    partial : bool
        Whether elements that no block brings may be missing where all of them are stored; they become the
        fill value.

    Raises
    ------
    InvalidTensorError
        If the DataFrame does not know its shape and none is given, a block lies outside of it or has
        another dtype, or an element is stored twice.
    CorruptDataError
        If blocks are missing.

    Examples
    --------
    ::

        collect_tensor(read_tensor(spark, path, "photos", "3"))
    """
    note = json.loads(df.schema["tensor"].metadata.get(NOTE, "{}"))
    lengths = note.get("shape") if shape is None else shape
    if lengths is None:
        raise InvalidTensorError(
            "the DataFrame does not know the shape of its tensor; give shape=..."
        )
    table = df.select("offset", "tensor").toArrow()
    name = dtype or note.get("dtype")
    if name is None:
        first = table.column("tensor")
        if not len(first):
            raise InvalidTensorError("there is no block, so no dtype either; give dtype=...")
        name = first[0]["dtype"].as_py()
    kind = dtype_of(name)
    fill = bytes.fromhex(note.get("fill", "00" * kind.itemsize))
    out = np.full(tuple(lengths), np.frombuffer(fill, kind.newbyteorder("<"))[0], kind)
    count = 0
    for batch in table.to_batches():
        offsets = batch.column("offset").to_pylist()
        for offset, block in zip(offsets, tensors_of(batch.column("tensor")), strict=True):
            _put(out, tuple(offset), block, bool(note.get("is_sparse")))
            count += block.size
    if note.get("is_full") and count != out.size and not (partial and count < out.size):
        raise CorruptDataError(
            f"the blocks have {count} elements, {out.size} are stored: rows were lost, or the DataFrame was "
            "filtered; partial=True leaves out what is missing"
        )
    return out


def _put(out: Array, offset: tuple[int, ...], block: Array, is_sparse: bool) -> None:
    ends = tuple(a + n for a, n in zip(offset, block.shape, strict=False))
    if (
        len(offset) != out.ndim
        or block.ndim != out.ndim
        or any(not 0 <= a <= b <= n for a, b, n in zip(offset, ends, out.shape, strict=True))
    ):
        raise InvalidTensorError(
            f"a block of shape {block.shape} at {offset} does not lie in a tensor of shape {out.shape}"
        )
    if block.dtype != out.dtype:
        raise InvalidTensorError(f"a block at {offset} has dtype {block.dtype}, not {out.dtype}")
    where: tuple[Any, ...] = (*Box(offset, ends).slices(), ...)  # a view, of rank 0 too
    part = out[where]
    if not is_sparse:
        part[...] = block
        return
    # Boxes of sparse rows may overlap, elements do not.
    stored = nonzero(block)
    if (nonzero(part) & stored).any():
        raise InvalidTensorError(
            f"an element of the block at {offset} is stored twice; spark.read.format('tensor') says why"
        )
    np.copyto(part, block, where=stored)
