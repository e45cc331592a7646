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
from tensorlake_spark.delta.rewrite import live_batches
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
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import DUPLICATES
from tensorlake_spark.layouts import Layout, grid_of, layout_of
from tensorlake_spark.layouts.ftsf import paper_block
from tensorlake_spark.pool import THREADS, threads
from tensorlake_spark.row import Meta, Row, Totals
from tensorlake_spark.source import Source, native_dtype, suited
from tensorlake_spark.sparse import SparseTensor
from tensorlake_spark.spec import TensorSpec, check_axes, check_id

logger = logging.getLogger("tensorlake_spark")

Region = np.ndarray[Any, Any] | SparseTensor

MODES = ("error", "overwrite", "append")

DENSE_FROM = 0.1
"""Share of non-zeros from which ``layout="auto"`` stores chunks (Delta Tensor, section V)."""

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
    order: Sequence[int] | None = None
    row_axes: Sequence[int] | None = None
    duplicates: str = "error"
    threshold: float = DENSE_FROM


def check_mode(mode: str) -> None:
    """Raise InvalidOptionError unless `mode` is one of `MODES`."""
    if mode not in MODES:
        raise InvalidOptionError(
            f"unknown mode {mode!r}{did_you_mean(mode, MODES)}; known are {', '.join(MODES)}"
        )


def choose_layout(tensor_id: str, source: Source, options: WriteOptions, fill: bytes) -> str:
    """Return the layout that ``"auto"`` stands for: dense from a share of non-zeros on, else blocks.

    The share is that of the paper (Delta Tensor, section V): 10 %, or `WriteOptions.threshold`.
    """
    if options.layout != "auto":
        return options.layout
    density = source.density()
    if options.chunk_rank is not None:
        name, reason = "ftsf", "chunk_rank is an option of dense chunks"
    elif any(fill):
        name, reason = "ftsf", f"sparse layouts leave out zeros, not {options.fill_value!r}"
    elif density >= options.threshold:
        name, reason = (
            "ftsf",
            f"{density:.3g} of its elements are not zero, at least {options.threshold:g}",
        )
    else:
        name, reason = (
            "bsgs",
            f"{density:.3g} of its elements are not zero, below {options.threshold:g}",
        )
    logger.info("tensor %r: layout %s, because %s", tensor_id, name, reason)
    return name


def new_spec(tensor_id: str, source: Source, options: WriteOptions) -> TensorSpec:
    """Return the spec of a tensor that is written afresh; what the caller left open is chosen here.

    Raises
    ------
    InvalidTensorError, UnsupportedDtypeError
        If the id, shape, dtype, block shape or axis names will not do.
    InvalidOptionError
        If the layout or the codec is unknown, or an option is not one of the layout.
    """
    dtype = native_dtype(source.dtype)
    try:
        fill = np.asarray(options.fill_value).astype(dtype)
    except (TypeError, ValueError) as error:
        raise InvalidTensorError(f"fill value {options.fill_value!r} is no {dtype}") from error
    filled = fill.astype(dtype.newbyteorder("<")).tobytes()
    layout = layout_of(choose_layout(tensor_id, source, options, filled))
    check_options(layout, options, any(filled))
    if options.block_shape is not None:
        block = tuple(int(n) for n in options.block_shape)
        if len(block) != len(source.shape):
            raise InvalidTensorError(
                f"block shape {block} does not fit shape {source.shape}: one length for every axis"
            )
    elif options.chunk_rank is not None:
        block = paper_block(source.shape, options.chunk_rank)
    else:
        block = layout.default_block(
            source.shape, dtype, source.density() if layout.is_sparse else 1
        )
    spec = TensorSpec(
        id=check_id(tensor_id),
        shape=source.shape,
        dtype=dtype,
        layout=layout.name,
        block_shape=block,
        fill=filled,
        axes=None if options.axes is None else check_axes(options.axes, len(source.shape)),
        attrs=options.attrs,
        params=layout.choose_params(len(source.shape), options.order, options.row_axes),
    )
    if options.duplicates != "error":
        spec = replace(spec, params={**spec.params, "duplicates": options.duplicates})
    if options.codec == "auto":
        codec = layout.choose_codec(source.sample(block)) if not layout.is_sparse else "zstd"
    else:
        codec = layout.check_codec(options.codec)
    logger.debug("tensor %r: layout %s, block %s, codec %s", tensor_id, layout.name, block, codec)
    return replace(spec, codec=codec)


def check_options(layout: Layout, options: WriteOptions, filled: bool) -> None:
    """Raise InvalidOptionError if an option does not go with the layout."""
    if options.block_shape is not None and options.chunk_rank is not None:
        raise InvalidOptionError("block_shape and chunk_rank exclude each other; give one of them")
    if options.duplicates not in DUPLICATES:
        raise InvalidOptionError(
            f"unknown duplicates {options.duplicates!r}{did_you_mean(str(options.duplicates), DUPLICATES)}; "
            f"known are {', '.join(DUPLICATES)}"
        )
    if not 0 <= options.threshold <= 1:
        raise InvalidOptionError(f"threshold {options.threshold} is no share between 0 and 1")
    wrong = {
        "chunk_rank": options.chunk_rank is not None and layout.name != "ftsf",
        "block_shape": options.block_shape is not None and not layout.has_blocks,
        "duplicates": options.duplicates != "error" and not layout.is_sparse,
        "fill_value": filled and layout.is_sparse,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise InvalidOptionError(f"layout {layout.name} has no {name}")


def encode(
    spec: TensorSpec, regions: Iterable[tuple[Sequence[int], Region]]
) -> Iterator[tuple[int, list[Row]]]:
    """Encode regions of a tensor in several threads; yield ``(bytes read, rows)`` in storage order.

    Only a few parts are under way at a time, so memory does not grow with the tensor.
    """
    layout = layout_of(spec.layout)

    def parts() -> Iterator[tuple[Region, tuple[int, ...]]]:
        for offset, region in regions:
            box = Box(
                tuple(offset), tuple(o + n for o, n in zip(offset, region.shape, strict=True))
            )
            if isinstance(region, SparseTensor):
                yield region, box.lo
                continue
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
    layout = layout_of(spec.layout)
    source = suited(source, layout.is_sparse, layout.leading_axis(spec))
    writer = writer_of(snapshot, spec)
    try:
        seqs = count()
        totals = _put(writer, spec, source, (0,) * spec.ndim, seqs, progress)
        spec = replace(spec, shape=_length(source, spec.shape))
        removes = drop_tensors(snapshot, [tensor_id], writer) if old is not None else []
        writer.add_meta([spec], [next(seqs)], [totals])
        return commit_change(snapshot, tensor_id, writer, removes, "write", options.transaction)
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
    layout = layout_of(spec.layout)
    source = suited(source, layout.is_sparse, layout.leading_axis(spec))
    writer = writer_of(snapshot, spec)
    try:
        seqs = count(old.seq + 1)
        totals = old.totals + _put(writer, spec, source, offset, seqs, progress)
        added = _length(source, source.shape)[axis]
        shape = (*old.spec.shape[:axis], old.spec.shape[axis] + added, *old.spec.shape[axis + 1 :])
        spec = replace(spec, shape=shape, attrs={**spec.attrs, **options.attrs})
        writer.add_meta([spec], [next(seqs)], [totals])
        return commit_change(snapshot, spec.id, writer, [], "append", options.transaction)
    except BaseException:
        writer.abort()
        raise


def writer_of(snapshot: Snapshot, spec: TensorSpec) -> FileWriter:
    """Return a writer of files with row groups as large as a tensor's layout wants them."""
    size = layout_of(spec.layout).row_group_bytes
    return FileWriter(snapshot.storage, row_group_bytes=size, schema=snapshot.schema)


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
        return commit_change(snapshot, tensor_id, writer, removes, "delete", None)
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
            return commit_change(snapshot, tensor_id, writer, [], "describe", None)
        except StaleChange:
            writer.abort()
        except BaseException:
            writer.abort()
            raise
    raise ConcurrentWriteError(f"tensor {tensor_id!r} changed during each of {_RECOMPUTE} attempts")


def commit_change(
    snapshot: Snapshot,
    tensor_id: str,
    writer: FileWriter,
    removes: Sequence[str],
    operation: str,
    transaction: tuple[str, int] | None,
) -> Snapshot:
    """Commit what a writer has written, from the tensor's number in `snapshot`."""
    number = snapshot.transaction(app_of(tensor_id))
    change = Change({tensor_id: number}, writer.finish(), removes, operation, transaction)
    return commit(snapshot.storage, change)
