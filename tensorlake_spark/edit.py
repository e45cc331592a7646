"""Changes of a tensor: what is encoded, which files it takes, and the one commit that makes it true."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta import catalog
from tensorlake_spark.delta.commit import Change, StaleChange, app_of, commit, transaction_done
from tensorlake_spark.delta.rewrite import boxes, live_batches, rewrite
from tensorlake_spark.delta.scan import THREADS, threads
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.delta.write import FileWriter
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    TensorExistsError,
    did_you_mean,
)
from tensorlake_spark.indexing import Box, Run, Selection
from tensorlake_spark.layouts import AnySelection, grid_of, layout_of
from tensorlake_spark.layouts.ftsf import paper_block
from tensorlake_spark.row import Meta, Row, Totals, corners, data_batch
from tensorlake_spark.source import Source, native_dtype
from tensorlake_spark.spec import TensorSpec, check_axes, check_id

logger = logging.getLogger("tensorlake_spark")

MODES = ("error", "overwrite", "append")
_RECOMPUTE = 20


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a tensor is written; see `TensorLake.write`, whose arguments these are."""

    layout: str = "auto"
    block_shape: Sequence[int] | None = None
    chunk_rank: int | None = None
    codec: str = "auto"
    fill_value: Any = 0
    axes: Sequence[str] | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    transaction: tuple[str, int] | None = None


def check_mode(mode: str) -> None:
    """Raise InvalidOptionError unless `mode` is one of `MODES`."""
    if mode not in MODES:
        raise InvalidOptionError(
            f"unknown mode {mode!r}{did_you_mean(mode, MODES)}; known are {', '.join(MODES)}"
        )


def new_spec(tensor_id: str, source: Source, options: WriteOptions) -> TensorSpec:
    """Return the spec of a tensor that is written afresh; what the caller left open is chosen here.

    Raises
    ------
    InvalidTensorError, UnsupportedDtypeError
        If the id, shape, dtype, block shape or axis names will not do.
    InvalidOptionError
        If the layout or the codec is unknown.
    """
    dtype = native_dtype(source.dtype)
    name = "ftsf" if options.layout == "auto" else options.layout
    layout = layout_of(name)
    if options.block_shape is not None and options.chunk_rank is not None:
        raise InvalidOptionError("block_shape and chunk_rank exclude each other; give one of them")
    if options.block_shape is not None:
        block = tuple(int(n) for n in options.block_shape)
    elif options.chunk_rank is not None:
        block = paper_block(source.shape, options.chunk_rank)
    else:
        block = layout.default_block(source.shape, dtype)
    try:
        fill = np.asarray(options.fill_value).astype(dtype)
    except (TypeError, ValueError) as error:
        raise InvalidTensorError(f"fill value {options.fill_value!r} is no {dtype}") from error
    spec = TensorSpec(
        id=check_id(tensor_id),
        shape=source.shape,
        dtype=dtype,
        layout=name,
        block_shape=block,
        fill=fill.astype(dtype.newbyteorder("<")).tobytes(),
        axes=None if options.axes is None else check_axes(options.axes, len(source.shape)),
        attrs=options.attrs,
    )
    if options.codec == "auto":
        codec = layout.choose_codec(source.sample(block))
    else:
        codec = layout.check_codec(options.codec)
    logger.debug("tensor %r: layout %s, block %s, codec %s", tensor_id, name, block, codec)
    return replace(spec, codec=codec)


def encode(
    spec: TensorSpec, regions: Iterable[tuple[Sequence[int], np.ndarray[Any, Any]]]
) -> Iterator[tuple[int, list[Row]]]:
    """Encode regions of a tensor in several threads; yield ``(bytes read, rows)`` in storage order.

    Only a few parts are under way at a time, so memory does not grow with the tensor.
    """
    layout = layout_of(spec.layout)

    def parts() -> Iterator[tuple[np.ndarray[Any, Any], tuple[int, ...]]]:
        for offset, region in regions:
            box = Box(
                tuple(offset), tuple(o + n for o, n in zip(offset, region.shape, strict=True))
            )
            grown = replace(
                spec, shape=tuple(max(a, b) for a, b in zip(spec.shape, box.hi, strict=True))
            )
            for part in layout.pieces(grown, box):
                yield region[part.shift([-o for o in offset]).slices()], part.lo

    waiting: deque[tuple[int, Any]] = deque()
    pool = threads()
    for values, lo in parts():
        waiting.append((values.nbytes, pool.submit(layout.encode, values, lo, spec)))
        del values
        if len(waiting) > 2 * THREADS:
            nbytes, done = waiting.popleft()
            yield nbytes, done.result()
    while waiting:
        nbytes, done = waiting.popleft()
        yield nbytes, done.result()


def write(
    storage: Storage,
    tensor_id: str,
    source: Source,
    mode: str,
    axis: int,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    """Write a tensor and return the version that has it; see `TensorLake.write`."""
    for _ in range(_RECOMPUTE):
        snapshot = Snapshot.open(storage)
        snapshot.check_writable()
        if transaction_done(snapshot, options.transaction):
            logger.info(
                "transaction %s is committed already; nothing is written", options.transaction
            )
            return snapshot
        old = catalog.find(snapshot, check_id(tensor_id))
        if old is not None and mode == "error":
            raise TensorExistsError(
                f"tensor {tensor_id!r} exists in {storage.uri}; write with mode='overwrite' or "
                "mode='append', or under another id"
            )
        appending = old is not None and mode == "append"
        try:
            if appending and old is not None:
                return _append(snapshot, old, source, axis, options, progress)
            return _write_new(snapshot, tensor_id, old, source, options, progress)
        except StaleChange as stale:
            if not appending or not hasattr(source, "data"):
                raise ConcurrentWriteError(
                    f"another writer changed tensor {tensor_id!r} in version {stale.snapshot.version} of "
                    f"{storage.uri}; nothing of this write was committed, run it again if it still holds"
                ) from stale
    raise ConcurrentWriteError(
        f"tensor {tensor_id!r} changed during each of {_RECOMPUTE} attempts to append to it; nothing was "
        "committed"
    )


def _write_new(
    snapshot: Snapshot,
    tensor_id: str,
    old: Meta | None,
    source: Source,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    spec = new_spec(tensor_id, source, options)
    writer = FileWriter(snapshot.storage, schema=snapshot.schema)
    try:
        seqs = count()
        totals = _put(writer, spec, source, (0,) * spec.ndim, seqs, progress)
        spec = replace(spec, shape=_length(source, spec.shape))
        removes = drop_tensors(snapshot, [tensor_id], writer) if old is not None else []
        writer.add_meta([spec], [next(seqs)], [totals])
        return _commit(snapshot, tensor_id, writer, removes, "write", options.transaction)
    except BaseException:
        writer.abort()
        raise


def _append(
    snapshot: Snapshot,
    old: Meta,
    source: Source,
    axis: int,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    spec = old.spec
    offset = check_append(spec, source.shape, source.dtype, axis)
    axis %= spec.ndim
    # What the iterator does not know yet does not matter for the grid: only where the new run begins.
    grid = grid_of(spec).extend(axis, source.shape[axis])
    spec = replace(spec, segments=grid.segments)
    writer = FileWriter(snapshot.storage, schema=snapshot.schema)
    try:
        seqs = count(old.seq + 1)
        totals = old.totals + _put(writer, spec, source, offset, seqs, progress)
        added = _length(source, source.shape)[axis]
        shape = (*old.spec.shape[:axis], old.spec.shape[axis] + added, *old.spec.shape[axis + 1 :])
        spec = replace(spec, shape=shape, attrs={**spec.attrs, **options.attrs})
        writer.add_meta([spec], [next(seqs)], [totals])
        return _commit(snapshot, spec.id, writer, [], "append", options.transaction)
    except BaseException:
        writer.abort()
        raise


def check_append(
    spec: TensorSpec, shape: Sequence[int], dtype: np.dtype[Any], axis: int
) -> tuple[int, ...]:
    """Return where an append begins, if an array of `shape` and `dtype` continues a tensor.

    Raises
    ------
    InvalidTensorError
        If the rank, another axis or the dtype does not fit.
    """
    if not -spec.ndim <= axis < spec.ndim:
        raise InvalidTensorError(
            f"tensor {spec.id!r} has {spec.ndim} axes; there is no axis {axis} to append along"
        )
    axis %= spec.ndim
    if len(shape) != spec.ndim:
        raise InvalidTensorError(
            f"an array of shape {tuple(shape)} cannot be appended to tensor {spec.id!r} of shape "
            f"{spec.shape}: both need {spec.ndim} axes"
        )
    for k, (have, want) in enumerate(zip(shape, spec.shape, strict=True)):
        if k != axis and have != want:
            raise InvalidTensorError(
                f"an array of shape {tuple(shape)} cannot be appended along axis {axis} to tensor "
                f"{spec.id!r} of shape {spec.shape}: axis {k} has length {have}, not {want}"
            )
    if native_dtype(dtype) != spec.dtype:
        raise InvalidTensorError(
            f"an array of dtype {dtype} cannot be appended to tensor {spec.id!r} of dtype {spec.dtype}; "
            f"convert it with .astype({spec.dtype.name!r})"
        )
    return tuple(n if k == axis else 0 for k, n in enumerate(spec.shape))


def _put(
    writer: FileWriter,
    spec: TensorSpec,
    source: Source,
    offset: Sequence[int],
    seqs: Iterator[int],
    progress: Callable[[int], None],
) -> Totals:
    """Encode a source at `offset` of the tensor into the writer's files; return what it adds up to."""
    moved = (
        (tuple(o + d for o, d in zip(lo, offset, strict=True)), region)
        for lo, region in source.regions(spec.block_shape)
    )
    rows = nnz = size = 0
    for nbytes, encoded in encode(spec, moved):
        for row in encoded:
            writer.add(spec, next(seqs), row)
            rows, nnz, size = rows + 1, nnz + row.nnz, size + row.nbytes
        progress(nbytes)
    return Totals(rows, nnz, size)


def _length(source: Source, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a source, with the length of a stream that has ended."""
    length = getattr(source, "length", None)
    if length is None:
        return tuple(shape)
    axis = source.axis  # type: ignore[union-attr]
    return tuple(length if k == axis else n for k, n in enumerate(shape))


def drop_tensors(snapshot: Snapshot, ids: Sequence[str], writer: FileWriter) -> list[str]:
    """Return the files that hold rows of these tensors; what else is in them goes to `writer`."""
    files = snapshot.files
    held = np.zeros(len(files.path), bool)
    for tensor_id in ids:
        held |= files.may_hold(tensor_id, data=True) | files.may_hold(tensor_id, data=False)
    removes = []
    doomed = pa.array(list(ids), pa.string())
    for i in np.flatnonzero(held).tolist():
        removes.append(files.path[i])
        if files.first_id[i] == files.last_id[i] and files.first_id[i] in ids:
            continue
        for batch in live_batches(snapshot, files.path[i]):
            rest = batch.filter(pc.invert(pc.is_in(batch.column("id"), doomed)))
            if rest.num_rows:
                writer.add_batch(rest)
    return removes


def delete(storage: Storage, tensor_id: str) -> Snapshot:
    """Remove a tensor from the newest version; older versions keep it until VACUUM."""
    snapshot = Snapshot.open(storage)
    snapshot.check_writable()
    catalog.get(snapshot, tensor_id)
    writer = FileWriter(storage, schema=snapshot.schema)
    try:
        removes = drop_tensors(snapshot, [tensor_id], writer)
        return _commit(snapshot, tensor_id, writer, removes, "delete", None)
    except StaleChange as stale:
        writer.abort()
        raise ConcurrentWriteError(
            f"another writer changed tensor {tensor_id!r} in version {stale.snapshot.version}; it was not "
            "deleted"
        ) from stale
    except BaseException:
        writer.abort()
        raise


def describe(
    storage: Storage, tensor_id: str, change: Callable[[TensorSpec], TensorSpec]
) -> Snapshot:
    """Change what the metadata row says; writes no data."""
    for _ in range(_RECOMPUTE):
        snapshot = Snapshot.open(storage)
        snapshot.check_writable()
        meta = catalog.get(snapshot, tensor_id)
        writer = FileWriter(storage, schema=snapshot.schema)
        try:
            writer.add_meta([change(meta.spec)], [meta.seq + 1], [meta.totals])
            return _commit(snapshot, tensor_id, writer, [], "describe", None)
        except StaleChange:
            writer.abort()
        except BaseException:
            writer.abort()
            raise
    raise ConcurrentWriteError(f"tensor {tensor_id!r} changed during each of {_RECOMPUTE} attempts")


def assign(
    snapshot: Snapshot,
    meta: Meta,
    selection: AnySelection,
    values: np.ndarray[Any, Any],
) -> Snapshot:
    """Write values into a part of a tensor: only the chunks it touches, only their files, one commit.

    Parameters
    ----------
    snapshot : Snapshot
        The version that the caller saw; the tensor must not have changed since.
    meta : Meta
        The tensor in it.
    selection : Selection or PointSelection
        Which elements.
    values : ndarray
        Of the selection's storage shape.

    Raises
    ------
    ConcurrentWriteError
        If another writer changed the tensor since `snapshot`.
    """
    spec, app = meta.spec, app_of(meta.spec.id)
    newest = Snapshot.open(snapshot.storage)
    newest.check_writable()
    stale = ConcurrentWriteError(
        f"tensor {spec.id!r} changed after version {snapshot.version}, which this reference shows; nothing "
        "was committed, take a new reference with lake[id] and assign again"
    )
    if newest.transaction(app) != snapshot.transaction(app):
        raise stale
    if selection.is_empty:
        return newest
    writer = FileWriter(newest.storage, schema=newest.schema)
    try:
        seqs = count(meta.seq + 1)
        removes, totals = _assign_rows(newest, meta, selection, values, writer, seqs)
        writer.add_meta([spec], [next(seqs)], [totals])
        return _commit(newest, spec.id, writer, removes, "assign", None)
    except StaleChange as error:
        writer.abort()
        raise stale from error
    except BaseException:
        writer.abort()
        raise


def _assign_rows(
    snapshot: Snapshot,
    meta: Meta,
    selection: AnySelection,
    values: np.ndarray[Any, Any],
    writer: FileWriter,
    seqs: Iterator[int],
) -> tuple[list[str], Totals]:
    """Write the touched rows anew; return the files they were in, and the tensor's totals afterwards."""
    spec = meta.spec
    layout = layout_of(spec.layout)
    totals = meta.totals

    def merged(part: np.ndarray[Any, Any], box: Box) -> list[Row]:
        src, dst = selection.project(box.lo, box.hi)
        part[src] = values[dst]
        return layout.encode(part, box.lo, spec)

    def edit(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal totals
        ours = np.asarray(pc.equal(batch.column("id"), spec.id))
        nnz = np.asarray(batch.column("nnz"))
        data = np.flatnonzero(ours & (nnz > 0))
        lo, hi = corners(batch.take(pa.array(data)), spec.ndim)
        hit = selection.hits(lo, hi)
        out = []
        boxes_of = {
            int(i): (tuple(a), tuple(b))
            for i, a, b in zip(data[hit], lo[hit].tolist(), hi[hit].tolist(), strict=True)
        }
        for i in range(batch.num_rows):
            row = batch.slice(i, 1)
            if ours[i] and nnz[i] == 0:
                continue  # superseded by the metadata row of this commit
            if i not in boxes_of:
                out.append(row)
                continue
            box = Box(*boxes_of[i])
            whole = box_selection(spec.shape, box)
            part = layout.new_result(spec, whole, True)
            old = layout.decode(row, spec, whole, part)
            totals -= Totals(1, old.nnz, old.nbytes)
            for new in merged(part, box):
                out.append(with_extras(data_batch(spec, row.column("seq").to_pylist(), [new]), row))
                totals += Totals(1, new.nnz, new.nbytes)
        table = pa.Table.from_batches(out, schema=batch.schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else batch.slice(0, 0)

    cells, lo, hi = touched_cells(spec, selection)
    region = Box(tuple(lo.min(axis=0).tolist()), tuple(hi.max(axis=0).tolist()))
    stored = boxes(snapshot, spec.id, box_selection(spec.shape, region))
    removes = []
    for path in dict.fromkeys(path for path, _, _ in stored):
        if any(selection.hits(a, b).any() for other, a, b in stored if other == path):
            removes.append(path)
            rewrite(snapshot, path, writer, edit)
    row_lo = np.concatenate([a for _, a, _ in stored] or [lo[:0]])
    row_hi = np.concatenate([b for _, _, b in stored] or [hi[:0]])
    for box in uncovered(cells, row_lo, row_hi):
        if selection.hits(np.array([box.lo]), np.array([box.hi]))[0]:
            for row in merged(np.full(box.shape, spec.fill_value), box):
                writer.add(spec, next(seqs), row)
                totals += Totals(1, row.nnz, row.nbytes)
    return removes, totals


def touched_cells(
    spec: TensorSpec, selection: AnySelection
) -> tuple[list[Box], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the grid cells that hold a selected element, and their corners as arrays."""
    cells = list(grid_of(spec).cells(selection.box))
    lo = np.array([c.lo for c in cells], np.int64).reshape(len(cells), spec.ndim)
    hi = np.array([c.hi for c in cells], np.int64).reshape(len(cells), spec.ndim)
    hit = selection.hits(lo, hi)
    return [c for c, h in zip(cells, hit.tolist(), strict=True) if h], lo[hit], hi[hit]


def uncovered(
    cells: Sequence[Box], lo: np.ndarray[Any, Any], hi: np.ndarray[Any, Any]
) -> Iterator[Box]:
    """Yield what of the cells no stored row covers: whole cells of fill, mostly."""
    whole = {(tuple(a), tuple(b)) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)}
    for cell in cells:
        if (cell.lo, cell.hi) in whole:
            continue
        near = ((lo < cell.hi) & (hi > cell.lo)).all(axis=1) if len(lo) else np.zeros(0, bool)
        missing = [cell]
        for a, b in zip(lo[near].tolist(), hi[near].tolist(), strict=True):
            missing = [rest for box in missing for rest in box.subtract(Box(tuple(a), tuple(b)))]
        yield from missing


def box_selection(shape: Sequence[int], box: Box) -> Selection:
    """Return the selection of all elements of a box."""
    return Selection(tuple(shape), tuple(Run(a, b) for a, b in zip(box.lo, box.hi, strict=True)))


def with_extras(batch: pa.RecordBatch, old: pa.RecordBatch) -> pa.RecordBatch:
    """Return a new row with the columns that users added to the one that it replaces."""
    have = set(batch.schema.names)
    columns = [batch.column(n) if n in have else old.column(n) for n in old.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=old.schema)


def _commit(
    snapshot: Snapshot,
    tensor_id: str,
    writer: FileWriter,
    removes: Sequence[str],
    operation: str,
    transaction: tuple[str, int] | None,
) -> Snapshot:
    number = snapshot.transaction(app_of(tensor_id))
    change = Change({tensor_id: number}, writer.finish(), removes, operation, transaction)
    return commit(snapshot.storage, change)
