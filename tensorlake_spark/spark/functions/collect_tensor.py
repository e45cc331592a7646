"""Blocks of a DataFrame as one tensor."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import check_shape, order
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.ops.elements import nonzero_bits
from tensorlake_spark.spark.cluster.arguments import FLAG, FRAME, INTEGERS, NOTHING, TEXT, takes
from tensorlake_spark.spark.source.schemas import tensors_of
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")
Array = np.ndarray[Any, Any]
Blocks = Iterable[tuple[tuple[int, ...], Array]]
"""Each with its place in the tensor."""

NOTE = "tensorlake"
"""In the metadata of the column ``tensor``: what the blocks make up, as JSON."""


@takes(
    df=FRAME, shape=INTEGERS | NOTHING, dtype=TEXT | NOTHING, partial=FLAG, sparse=FLAG | NOTHING
)
def collect_tensor(
    df: DataFrame,
    shape: Sequence[int] | None = None,
    dtype: str | None = None,
    partial: bool = False,
    sparse: bool | None = None,
) -> Array | SparseTensor:
    """Return a DataFrame of blocks as one tensor on the driver: an array, or a `SparseTensor`.

    Parameters
    ----------
    df : DataFrame
        Blocks, with the columns ``offset`` and ``tensor``: from `read_tensor`, perhaps filtered, or from the view
        ``blocks`` of ``format("tensor")``.
    shape : sequence of int, optional
        Shape of the result. A DataFrame from `read_tensor` knows it.
    dtype : str, optional
        Dtype of the blocks, for a DataFrame that may be empty. A DataFrame from `read_tensor` knows it.
    partial : bool
        Whether blocks may be missing from a tensor of which all elements are stored. Missing elements become the
        fill value.
    sparse : bool, optional
        Whether to return a `SparseTensor` of the elements that are not zero. By default a sparse layout read by
        `read_tensor` gives a `SparseTensor`, and everything else an array.

    Raises
    ------
    InvalidTensorError
        If the shape is not known, a block lies outside of it or has another dtype, an element is stored twice, or
        the driver has no memory for the array.
    CorruptDataError
        If blocks are missing.

    Examples
    --------
    ::

        collect_tensor(read_tensor(spark, path, "photos", "3"))
    """
    missing = [name for name in ("offset", "tensor") if name not in df.columns]
    if missing:
        raise InvalidTensorError(
            f"the DataFrame has no column {missing[0]!r}; read_tensor() gives the blocks of a tensor, and "
            "tensor_block() those of rows"
        )
    note = json.loads(df.schema["tensor"].metadata.get(NOTE, "{}"))
    known = tuple(note["shape"]) if note else None
    lengths = _same("shape", None if shape is None else check_shape(shape), known)
    if lengths is None:
        raise InvalidTensorError(
            "the DataFrame does not know the shape of its tensor; give shape=..."
        )
    name = _same("dtype", dtype, note.get("dtype"))
    table = df.select("offset", "tensor").toArrow()
    if name is None:
        first = table.column("tensor")
        if not len(first):
            raise InvalidTensorError("there is no block, so no dtype either; give dtype=...")
        name = first[0]["dtype"].as_py()
    kind = dtype_of(name)
    fill = bytes.fromhex(note.get("fill", "00" * kind.itemsize))
    blocks = [
        (tuple(offset), block)
        for batch in table.to_batches()
        for offset, block in zip(
            batch.column("offset").to_pylist(), tensors_of(batch.column("tensor")), strict=True
        )
    ]
    for offset, block in blocks:
        _check(offset, block, lengths, kind)
    count, size = sum(block.size for _, block in blocks), math.prod(lengths)
    if note.get("is_full") and count != size and not (partial and count < size):
        raise CorruptDataError(
            f"the blocks have {count} elements, {size} are stored: rows were lost, or the DataFrame was "
            "filtered; partial=True leaves out what is missing"
        )
    is_sparse = bool(note.get("is_sparse"))
    if not (is_sparse if sparse is None else sparse):
        return _dense(blocks, lengths, kind, fill, is_sparse)
    if any(fill):
        raise InvalidTensorError(
            "what is not stored of the tensor is not zero, so no SparseTensor holds it; leave out sparse=True"
        )
    return _sparse(blocks, lengths, kind)


def _same(what: str, given: T | None, known: T | None) -> T | None:
    """Return what the caller says of a tensor, or what its DataFrame knows, which is not another one."""
    if given is not None and known is not None and given != known:
        raise InvalidTensorError(
            f"the DataFrame is that of a tensor of {what} {known}, not {given}; leave out {what}=..., and "
            "change the result"
        )
    return known if given is None else given


def _check(offset: tuple[int, ...], block: Array, shape: tuple[int, ...], kind: Any) -> None:
    """Raise InvalidTensorError unless a block lies in a tensor and has its dtype."""
    ends = tuple(a + n for a, n in zip(offset, block.shape, strict=False))
    if (
        len(offset) != len(shape)
        or block.ndim != len(shape)
        or any(not 0 <= a <= b <= n for a, b, n in zip(offset, ends, shape, strict=True))
    ):
        raise InvalidTensorError(
            f"a block of shape {block.shape} at {offset} does not lie in a tensor of shape {shape}"
        )
    if block.dtype != kind:
        raise InvalidTensorError(f"a block at {offset} has dtype {block.dtype}, not {kind}")


def _dense(
    blocks: Blocks, shape: tuple[int, ...], kind: np.dtype[Any], fill: bytes, is_sparse: bool
) -> Array:
    try:
        out = np.full(shape, np.frombuffer(fill, kind.newbyteorder("<"))[0], kind)
    except (MemoryError, ValueError) as error:  # the latter where no memory could be enough
        size = math.prod(shape) * kind.itemsize
        raise InvalidTensorError(
            f"an array of shape {shape} and dtype {kind} takes {size_text(size)}, for which there is no memory "
            "on the driver; collect a smaller slice, or with sparse=True a SparseTensor"
        ) from error
    for offset, block in blocks:
        ends = tuple(a + n for a, n in zip(offset, block.shape, strict=True))
        where: tuple[Any, ...] = (*Box(offset, ends).slices(), ...)  # a view, of rank 0 too
        part = out[where]
        if not is_sparse:
            part[...] = block
            continue
        # Boxes of sparse rows may overlap, elements do not.
        stored = nonzero_bits(block)
        if (nonzero_bits(part) & stored).any():
            raise _twice()
        np.copyto(part, block, where=stored)
    return out


def _sparse(blocks: Blocks, shape: tuple[int, ...], kind: np.dtype[Any]) -> SparseTensor:
    coords, values = [np.zeros((len(shape), 0), np.int64)], [np.zeros(0, kind)]
    for offset, block in blocks:
        part = SparseTensor.from_dense(block)
        coords.append(part.coords + np.array(offset, np.int64)[:, None])
        values.append(part.values)
    try:
        found = order(np.concatenate(coords, axis=1), np.concatenate(values), shape)
    except InvalidTensorError as error:
        raise _twice() from error
    return SparseTensor(*found, shape)


def _twice() -> InvalidTensorError:
    return InvalidTensorError(
        "an element of the blocks is stored twice; spark.read.format('tensor') says why"
    )
