"""Read a selection of a tensor: plan, decode from several threads, hold what was found against the totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow.compute as pc

from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import CorruptDataError, InvalidKeyError
from tensorlake_spark.indexing import select
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.layouts.coding.chain import is_copied, is_packed
from tensorlake_spark.layouts.quantization.native_blocks import CODES, Codes, native_fill
from tensorlake_spark.progress import progress
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec

_SMALL_ROW = 256 << 10  # bytes, up to which Python takes as long for a row as copying does
_SPARED = 4  # times as much at a time, at the most: where files cannot be mapped, that is in memory
_SHORT_COPY, _SHORT_OF_SMALL_ROWS = 16 << 20, 128 << 20  # bytes that one thread copies
_SHORT = 32 << 20  # bytes of rows that one thread goes through


def is_full(meta: Meta) -> bool:
    """Whether stored rows cover the whole tensor, so that nothing is fill."""
    return meta.totals.nnz == meta.spec.size and not stored_layout(meta.spec).is_sparse


def read(
    snapshot: Snapshot, meta: Meta, selection: AnySelection, verify: bool = True, out: Any = None
) -> Any:
    """Return what NumPy would pick, as an ndarray or a `SparseTensor` by the layout.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    meta : Meta
        The tensor in it.
    selection : Selection, PointSelection or MixedSelection
        What is picked.
    verify : bool
        Whether lost rows are an error.
    out : ndarray, optional
        Array of the selection's storage shape, or a view of one, that a dense layout decodes into.

    Raises
    ------
    CorruptDataError
        If stored bytes are not what was written, or rows are missing.
    InvalidKeyError
        If there is no memory for the result.
    """
    spec = meta.spec
    layout = stored_layout(spec)
    full = is_full(meta) and verify
    if out is None:
        result = _new_result(meta, selection, full)
    else:
        result = out
        if not full:
            result[...] = spec.fill_value
    _decode(snapshot, meta, selection, verify, layout.columns, result)
    return layout.finish(spec, selection, result)


def read_native(
    snapshot: Snapshot,
    meta: Meta,
    selection: AnySelection,
    dtype: np.dtype[Any],
    verify: bool = True,
) -> Any:
    """Return what is stored of a quantised tensor, in the dtype that `native_dtype` named; see `read`."""
    spec = meta.spec
    layout = stored_layout(spec)
    with _memory(meta, selection, dtype):
        result = np.empty(selection.storage_shape, dtype)
    if not (is_full(meta) and verify):
        result[...] = native_fill(spec, dtype)
    _decode(snapshot, meta, selection, verify, native_columns(spec), result)
    found = layout.finish(spec, selection, result)
    return Codes(found["code"], found["scale"]) if dtype == CODES else found


def native_columns(spec: TensorSpec) -> tuple[str, ...]:
    """Return the columns of a native read: the upper halves of ``split`` are in `values`, what joins them is not."""
    return tuple(name for name in stored_layout(spec).columns if name != "index")


def _decode(
    snapshot: Snapshot,
    meta: Meta,
    selection: AnySelection,
    verify: bool,
    columns: Sequence[str],
    result: Any,
) -> None:
    """Decode what a selection needs into a result, and hold it against the totals."""
    spec = meta.spec
    layout = stored_layout(spec)
    if selection.is_empty:
        return
    read_plan = scan.plan(snapshot, spec.id, selection, columns)
    is_short = _is_short(snapshot, meta, selection, read_plan.n_bytes)
    job_bytes = _SHORT
    if not is_short:
        job_bytes = _job_bytes(read_plan.n_rows, layout.row_bound(spec, selection))
    with progress(f"read {spec.id}", read_plan.n_bytes) as done:
        found = scan.read(
            snapshot,
            read_plan,
            columns,
            lambda batch: layout.decode(batch, spec, selection, result),
            done,
            one_by_one=is_short,
            job_bytes=job_bytes,
        )
    if verify:
        check_totals(meta, selection, sum(found, Totals()))


def _job_bytes(there: int, wanted: int) -> int:
    """Return how much a thread takes at a time where so many rows are there, and so many are decoded at the most.

    Each time costs Python as much as a row.

    Examples
    --------
    >>> [_job_bytes(40, wanted) // scan.JOB_BYTES for wanted in (40, 20, 1)]
    [1, 2, 4]
    """
    return scan.JOB_BYTES * min(_SPARED, max(1, there // max(1, wanted)))


def _is_short(snapshot: Snapshot, meta: Meta, selection: AnySelection, nbytes: int) -> bool:
    """Whether one thread goes through so many bytes of rows sooner than several.

    Threads wait for each other at every turn of Python, and a short read has little else: rows that are only copied, or
    that their layout decodes in threads anyway.
    """
    codec, totals, layout = meta.spec.codec or "", meta.totals, stored_layout(meta.spec)
    if is_copied(codec):
        has_small_rows = totals.nbytes <= _SMALL_ROW * totals.rows
        return nbytes <= (_SHORT_OF_SMALL_ROWS if has_small_rows else _SHORT_COPY)
    if snapshot.remote is not None or not layout.has_threads:
        return False
    if is_packed(codec):
        nbytes = min(nbytes, selection.size * meta.spec.dtype.itemsize)
    return nbytes <= _SHORT


def _new_result(meta: Meta, selection: AnySelection, full: bool) -> Any:
    spec = meta.spec
    with _memory(meta, selection, spec.dtype):
        return stored_layout(spec).new_result(spec, selection, full)


@contextmanager
def _memory(meta: Meta, selection: AnySelection, dtype: np.dtype[Any]) -> Iterator[None]:
    """Raise InvalidKeyError where there is no memory for a result."""
    try:
        yield
    except (
        MemoryError,
        ValueError,
    ) as error:  # the latter of NumPy, where no memory could be enough
        raise InvalidKeyError(
            f"tensor {meta.spec.id!r}: what is selected has the shape {selection.storage_shape} and dtype "
            f"{dtype}, for which there is no memory ({error}); select less of it at once"
        ) from error


def check_totals(meta: Meta, selection: AnySelection, found: Totals) -> None:
    """Hold what was read against the totals: lost rows are an error, never zeros.

    Raises
    ------
    CorruptDataError
        If rows or elements are missing, or too many.
    """
    spec, want = meta.spec, meta.totals
    whole = selection.box.shape == spec.shape and selection.is_box
    if (whole and (found.rows, found.nnz) != (want.rows, want.nnz)) or (
        is_full(meta) and found.nnz != selection.size
    ):
        raise lost(meta, found, want.nnz if whole else selection.size)


def check_rows(snapshot: Snapshot, meta: Meta) -> None:
    """Hold all rows of a tensor against its totals, without reading a payload.

    Raises
    ------
    CorruptDataError
        If rows were lost: of what is not full, a slice alone cannot tell.
    """
    spec = meta.spec
    found = Totals()
    for piece in scan.pieces(snapshot, scan.plan(snapshot, spec.id, select(..., spec.shape))):
        keep = snapshot.kept(piece.path)
        for batch in scan.read_piece(snapshot.storage, piece, spec.id, ["nnz"], keep):
            found += Totals(batch.num_rows, int(pc.sum(batch.column("nnz")).as_py()), 0)
    if (found.rows, found.nnz) != (meta.totals.rows, meta.totals.nnz):
        raise lost(meta, found, meta.totals.nnz)


def lost(meta: Meta, found: Totals, expected: int) -> CorruptDataError:
    """Return the error for rows that are not there."""
    return CorruptDataError(
        f"tensor {meta.spec.id!r}: {found.rows} rows with {found.nnz} elements were found where "
        f"{expected} elements are stored; rows were lost, or somebody changed the table "
        "with plain Delta: tl.open(..., verify=False) reads what there is"
    )
