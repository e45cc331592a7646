"""Rows of a plain Delta table, in any order and of any tensors, to blocks trimmed to a slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    InvalidSliceError,
    InvalidTensorError,
)
from tensorlake_spark.indexing import Run, Selection
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.layouts import Layout, layout_of
from tensorlake_spark.layouts.verification import box_text, boxes
from tensorlake_spark.spark.functions.slice_predicate import OPEN, select_parts
from tensorlake_spark.spark.functions.tensor_stacks import check_bytes
from tensorlake_spark.spark.source.read.reader import runs_of
from tensorlake_spark.spark.source.read.sparse_reader import BLOCK_BYTES
from tensorlake_spark.spark.source.schemas import BLOCKS, arrow_schema, conform
from tensorlake_spark.spark.source.sparse_blocks import (
    Elements,
    Parts,
    Scattered,
    blank,
    block_batch,
    dense_batch,
)
from tensorlake_spark.tensor.spec import TensorSpec, dtype_of

Array = np.ndarray[Any, Any]

COLUMNS = (
    "id", "seq", "lo", "hi", "nnz", "layout", "params", "dtype", "shape", "codec", "index", "values", "crc",
)  # fmt: skip
"""Columns of a row that its block is made of."""

_SCHEMA = arrow_schema(BLOCKS)


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one tensor that hold something of a slice.

    Attributes
    ----------
    spec : TensorSpec
        As much of the tensor as its rows say.
    selection : Selection
        The slice.
    rows : pyarrow.RecordBatch
        The rows, in the order of their places in the tensor.
    numbers : int64 ndarray
        Where each row stood in the batch that it came in.
    lo, hi : int64 ndarray, shape (rows, ndim)
        Their boxes.
    """

    spec: TensorSpec
    selection: Selection
    rows: pa.RecordBatch
    numbers: Array
    lo: Array
    hi: Array

    @property
    def layout(self) -> Layout:
        """The layout of the rows."""
        return layout_of(self.spec.layout)

    @cached_property
    def parts(self) -> Parts:
        """What the slice picks of each row."""
        return Parts.of(self.selection, self.lo, self.hi)

    @property
    def nbytes(self) -> Array:
        """Bytes of each block as an array; floats, for the box of a sparse row may be of any size."""
        sides = (self.parts.end - self.parts.begin).astype(np.float64)
        return np.asarray(sides.prod(axis=1) * self.spec.dtype.itemsize)

    def check_blocks(self) -> None:
        """Raise InvalidOptionError if a block of a sparse tensor is too large for an array."""
        if not self.layout.is_sparse:
            return
        sizes = self.nbytes
        most = int(np.argmax(sizes))
        if sizes[most] > BLOCK_BYTES:
            raise InvalidOptionError(
                f"a block of tensor {self.spec.id!r}, {box_text(self.lo[most], self.hi[most])}, layout "
                f"{self.spec.layout}, takes {size_text(int(sizes[most]))} as an array, the limit is "
                f"{size_text(BLOCK_BYTES)}; take a smaller slice, or read the stored elements: "
                "spark.read.format('tensor').option('view', 'cells')"
            )

    def take(self, some: slice) -> Group:
        """Return some of the rows."""
        rows = self.rows.slice(some.start, some.stop - some.start)
        return Group(
            self.spec, self.selection, rows, self.numbers[some], self.lo[some], self.hi[some]
        )

    def decode(self) -> pa.RecordBatch:
        """Return the blocks of all rows, with the columns of the view ``blocks``.

        Raises
        ------
        InvalidOptionError
            If all blocks are too large for a column.
        CorruptDataError
            If a row fails its checksum, or its payload does not fit its box.
        """
        check_bytes(int(self.nbytes.sum()), len(self.rows))
        if len(self.rows) > 1 and self._is_mixed():
            alone = [self.take(slice(i, i + 1)).decode() for i in range(len(self.rows))]
            return pa.concat_batches(alone)
        return conform(self._sparse() if self.layout.is_sparse else self._dense(), _SCHEMA)

    def _is_mixed(self) -> bool:
        """Whether rows cannot be told apart, because they come from several versions of the tensor."""
        seqs = self.rows.column("seq").to_numpy()
        corners = {tuple(corner) for corner in self.parts.begin.tolist()}
        return len(np.unique(seqs)) < len(seqs) or (
            not self.layout.is_sparse and len(corners) < len(seqs)
        )

    def _dense(self) -> pa.RecordBatch:
        data, arrays = blank(self.parts, self.spec.dtype)
        result: Any = Scattered.of(self.parts, arrays)
        self.layout.decode(self.rows, self.spec, self.selection, result)
        return dense_batch(data, arrays, self.parts, self.spec, self.selection)

    def _sparse(self) -> pa.RecordBatch:
        elements = Elements.of(self.rows, self.spec, self.selection)
        owner = np.searchsorted(self.rows.column("seq").to_numpy(), elements.seqs)
        return block_batch(elements, owner, self.parts, self.spec, self.selection)


def check_runs(selection: Selection) -> None:
    """Raise InvalidSliceError if a selection has an index list, whose elements make up no block."""
    if not all(isinstance(axis, Run) for axis in selection.axes):
        raise InvalidSliceError(
            "the slice has an index list, which makes up no block; take a range and filter it, or use plain "
            "Python: tl.open(path)[id][...]"
        )


def groups(
    rows: pa.StructArray, key: Sequence[Any], shape: Sequence[int] | None
) -> Iterator[Group]:
    """Yield what a slice picks of some rows, tensor by tensor.

    Parameters
    ----------
    rows : pyarrow.StructArray
        Rows of a table, with `COLUMNS` at least; nulls and metadata rows are left out.
    key : sequence
        Parts of the slice; empty for whole blocks.
    shape : sequence of int, or None
        The tensor's, for keys that need it.

    Raises
    ------
    InvalidTensorError
        If a column is missing.
    InvalidSliceError, InvalidKeyError
        If the slice picks no box, or does not fit the tensor.
    InvalidOptionError
        If a block of a sparse tensor is too large for an array.
    """
    names = [field.name for field in rows.type]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InvalidTensorError(
            f"a row has no column {', '.join(missing)}; give the whole row of a tensor table, struct(*), "
            f"or a struct of {', '.join(COLUMNS)}"
        )
    columns = dict(zip(names, rows.flatten(), strict=True))
    batch = pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], names=list(COLUMNS))
    # A null nnz is that of a row which is null.
    stored = np.flatnonzero(pc.greater(batch.column("nnz"), 0).fill_null(False).to_numpy(False))
    if not len(stored):
        return
    heads = [batch.column(name).take(pa.array(stored)) for name in ("id", "layout", "dtype")]
    ranks = pc.list_value_length(batch.column("shape")).take(pa.array(stored))
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for number, *kind in zip(
        stored.tolist(), *(c.to_pylist() for c in (*heads, ranks)), strict=True
    ):
        kinds.setdefault(tuple(kind), []).append(number)
    seqs = batch.column("seq").to_numpy(zero_copy_only=False)
    for (tensor_id, layout, dtype, ndim), found in kinds.items():
        if None in (layout, dtype, ndim):
            raise CorruptDataError(
                f"tensor {tensor_id!r}: a row has no layout, no dtype or no shape, so it cannot be decoded"
            )
        numbers = np.array(found)[np.argsort(seqs[found], kind="stable")]
        group = _group(batch, numbers, tensor_id, layout, dtype, select_parts(key, shape, ndim))
        if group is not None:
            yield group


def _group(
    batch: pa.RecordBatch,
    numbers: Array,
    tensor_id: str,
    layout: str,
    dtype: str,
    selection: Selection,
) -> Group | None:
    check_runs(selection)
    ndim = len(selection.axes)
    whole = np.array_equal(numbers, np.arange(batch.num_rows))
    rows = batch if whole else batch.take(pa.array(numbers))
    lo, hi = boxes(rows, ndim)
    hits = selection.hits(lo, hi)
    if not hits.any():
        return None
    if not hits.all():
        rows, numbers, lo, hi = rows.filter(pa.array(hits)), numbers[hits], lo[hits], hi[hits]
    # The shape in a row is that of its time; decoding needs one that holds the boxes.
    shape = tuple(hi.max(axis=0).tolist())
    spec = TensorSpec(tensor_id, shape, dtype_of(dtype), layout, ())
    if selection.shape == (OPEN,) * ndim:
        runs = zip(runs_of(selection), shape, strict=True)
        ends = tuple(Run(run.start, min(run.stop, n), run.step) for run, n in runs)
        selection = replace(selection, shape=shape, axes=ends)
    group = Group(spec, selection, rows, numbers, lo, hi)
    group.check_blocks()
    return group
