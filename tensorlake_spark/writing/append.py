"""Appends: along an axis, or of elements where they lie in a sparse tensor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing import PointSelection
from tensorlake_spark.indexing.coords import check_rule
from tensorlake_spark.layouts import grid_of, layout_of, stored_layout
from tensorlake_spark.layouts.coding.chain import parted
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.layouts.ftsf import paper_block
from tensorlake_spark.layouts.quantization.kinds import agrees, quantization_in
from tensorlake_spark.reading.read import read
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.label_input import check_labels, labels_of
from tensorlake_spark.tensor.labels import Labels, Listed
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec, check_axes, fill_bytes
from tensorlake_spark.writing.options import WriteOptions, checked_block
from tensorlake_spark.writing.pipeline import commit_change, length_of, put, writer_of
from tensorlake_spark.writing.source import (
    ArraySource,
    SlabSource,
    Source,
    SparseSource,
    bands,
    native_dtype,
    suited,
)

logger = logging.getLogger("tensorlake_spark")


def append(
    snapshot: Snapshot,
    old: Meta,
    source: Source,
    axis: int,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    spec = old.spec
    check_kept(spec, options, axis)
    offset = check_append(spec, source.shape, source.dtype, axis)
    axis %= spec.ndim
    # What the iterator does not know yet does not matter for the grid: only where the new run begins.
    grid = grid_of(spec).extend(axis, source.shape[axis])
    spec = replace(spec, segments=grid.segments)
    layout = stored_layout(spec)
    source = suited(source, layout.is_sparse, layout.leading_axis(spec))
    with writer_of(snapshot, spec) as writer:
        seqs = count(old.seq + 1)
        totals = old.totals + put(writer, spec, source, offset, seqs, progress)
        added = length_of(source, source.shape)[axis]
        shape = (*old.spec.shape[:axis], old.spec.shape[axis] + added, *old.spec.shape[axis + 1 :])
        labels = longer_labels(spec, shape, options.labels)
        spec = replace(spec, shape=shape, attrs={**spec.attrs, **options.attrs}, labels=labels)
        writer.add_meta([spec], [next(seqs)], [totals])
        return commit_change(snapshot, spec.id, writer, [], "append", options.transaction)


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


def longer_labels(
    spec: TensorSpec, shape: Sequence[int], given: Mapping[str, Any]
) -> dict[str, Labels]:
    """Return the labels of a tensor that has grown to `shape`; `given` has those of the new indices.

    Raises
    ------
    InvalidTensorError
        If an axis that has a list of labels grows, and its new indices have none.
    """
    out = dict(spec.labels)
    for name, value in given.items():
        old, new = spec.labels.get(name), labels_of(value)
        out[name] = new
        if isinstance(old, Listed) and isinstance(new, Listed):
            known = new.values[: len(old.values)] == old.values
            out[name] = new if known else Listed((*old.values, *new.values))
    return check_labels(out, spec.axes, shape)


def unite(
    snapshot: Snapshot,
    old: Meta,
    source: Source,
    options: WriteOptions,
    progress: Callable[[int], None],
) -> Snapshot:
    """Add elements to a sparse tensor where they lie; the shape grows to hold them."""
    spec = old.spec
    layout = stored_layout(spec)
    if not layout.is_sparse:
        raise InvalidOptionError(
            f"axis=None adds elements to a sparse tensor; {spec.id!r} has layout {spec.layout}: append "
            "along an axis, or assign to a part of it"
        )
    check_kept(spec, options, None)
    if isinstance(source, SlabSource):
        raise InvalidTensorError(
            f"an iterator of slabs has a place along an axis only: append it to tensor {spec.id!r} with axis=0, "
            "or add arrays or sparse tensors with axis=None"
        )
    if len(source.shape) != spec.ndim or native_dtype(source.dtype) != spec.dtype:
        raise InvalidTensorError(
            f"elements of a tensor of shape {source.shape} and dtype {source.dtype} cannot be added to "
            f"tensor {spec.id!r} of shape {spec.shape} and dtype {spec.dtype}: both need {spec.ndim} axes, and "
            f".astype({spec.dtype.name!r}) converts values"
        )
    shape = tuple(max(a, b) for a, b in zip(spec.shape, source.shape, strict=True))
    spec = replace(spec, shape=shape, params=_united_params(spec, options.duplicates))
    labels = longer_labels(spec, shape, options.labels)
    spec = replace(spec, labels=labels, attrs={**spec.attrs, **options.attrs})
    source = suited(source, True, layout.leading_axis(spec))
    if spec.params.get("duplicates", "error") == "error":
        for lo, part in _sparse_parts(source, spec):
            _check_new(snapshot, old, part, lo)
    with writer_of(snapshot, spec) as writer:
        seqs = count(old.seq + 1)
        totals = old.totals + put(writer, spec, source, (0,) * spec.ndim, seqs, progress)
        writer.add_meta([spec], [next(seqs)], [totals])
        return commit_change(snapshot, spec.id, writer, [], "append", options.transaction)


def _united_params(spec: TensorSpec, duplicates: str) -> dict[str, Any]:
    """Return a tensor's parameters with the rule for duplicates that an append asks for."""
    have = spec.params.get("duplicates", "error")
    if duplicates != "error" and have not in ("error", duplicates):
        raise InvalidOptionError(
            f"tensor {spec.id!r} combines duplicates by {have!r}, and cannot by {duplicates!r} too"
        )
    rule = have if duplicates == "error" else duplicates
    return {**spec.params, **({} if rule == "error" else {"duplicates": rule})}


def check_kept(spec: TensorSpec, options: WriteOptions, axis: int | None) -> None:
    """Raise InvalidOptionError if an append asks for what it cannot change; what agrees may be said again.

    Blocks, codec and order may have been changed since by `lake.convert`, as a scheduled optimisation does it,
    and no element depends on them: a job that still names the old ones is warned and goes on.

    Parameters
    ----------
    spec : TensorSpec
        The tensor as it is.
    options : WriteOptions
        What is asked for; what nobody gave agrees with everything.
    axis : int, or None
        Where the append continues; with None, where elements are added, `duplicates` may change.
    """
    check_rule(options.duplicates, spec.dtype)
    layout = stored_layout(spec)
    if options.layout != "auto" and layout_of(options.layout).name != spec.layout:
        raise _not_kept(spec, "layout", spec.layout, options.layout)
    if (
        options.codec not in BY_TRYING
        and layout.check_codec(options.codec) != parted(spec.codec)[1]
    ):
        _warn(spec, "codec", spec.codec, options.codec)
    known = quantization_in(spec)
    if options.quantize is not None and not agrees(known, options.quantization):
        was = "none" if known is None else known.to_json()
        asked = options.quantize.to_json()
        raise InvalidOptionError(
            f"tensor {spec.id!r} has quantize={was!r}, and an append keeps it; leave out quantize={asked!r}, or "
            f"change it by lake.convert({spec.id!r}, quantize={asked!r})"
        )
    given = options.block_shape
    if given is not None and checked_block(given) != spec.block_shape:
        _warn(spec, "block_shape", spec.block_shape, given)
    if options.chunk_rank is not None and not _has_rank(spec, options.chunk_rank, axis):
        _warn(spec, "block_shape", spec.block_shape, options.chunk_rank, "chunk_rank")
    if options.order is not None or options.row_axes is not None:
        asked = layout.choose_params(spec.ndim, options.order, options.row_axes)
        for name, want in asked.items():
            have = list(spec.params.get(name, range(spec.ndim)))
            if list(want) != have:
                _warn(spec, name, have, want)
    fill = fill_bytes(options.fill_value, spec.dtype)
    if any(fill) and fill != spec.fill:
        raise _not_kept(spec, "fill_value", spec.fill_value, options.fill_value)
    if options.axes is not None and check_axes(options.axes, spec.ndim) != spec.axes:
        raise _not_kept(spec, "axes", spec.axes, options.axes)
    rule = spec.params.get("duplicates", "error")
    if axis is not None and options.duplicates not in ("error", rule):
        raise _not_kept(spec, "duplicates", rule, options.duplicates)


def _has_rank(spec: TensorSpec, chunk_rank: int, axis: int | None) -> bool:
    """Return whether a tensor has the paper's chunks; the axis that grows was shorter when they were chosen."""
    block = list(paper_block(spec.shape, chunk_rank))
    if axis is not None and spec.block_shape:
        axis %= spec.ndim
        block[axis] = min(block[axis], spec.block_shape[axis])
    return tuple(block) == spec.block_shape


def _warn(spec: TensorSpec, name: str, have: Any, given: Any, option: str = "") -> None:
    logger.warning(
        "tensor %r has %s %s, and an append keeps it, whatever %s=%r says; lake.convert changes it",
        spec.id, name, have, option or name, given,
    )  # fmt: skip


def _not_kept(spec: TensorSpec, name: str, have: Any, given: Any) -> InvalidOptionError:
    hint = f", or change it by lake.convert({spec.id!r}, ...)" if name == "layout" else ""
    return InvalidOptionError(
        f"tensor {spec.id!r} has {name} {have}, and an append keeps it; leave out {name}={given!r}{hint}"
    )


def _sparse_parts(
    source: Source, spec: TensorSpec
) -> Iterator[tuple[tuple[int, ...], SparseTensor]]:
    """Yield ``(offset, elements)`` of what is added; of an array a part of it at a time."""
    if isinstance(source, SparseSource):
        yield (0,) * spec.ndim, source.data
    elif isinstance(source, ArraySource):
        block = spec.block_shape or (1,) * spec.ndim
        for box in bands(source.shape, block, source.dtype.itemsize):
            yield box.lo, SparseTensor.from_dense(source.part(box))


def _check_new(snapshot: Snapshot, old: Meta, data: SparseTensor, lo: Sequence[int]) -> None:
    """Raise InvalidTensorError if an element, moved by `lo`, is stored already."""
    coords = data.coords + np.array(lo, np.int64)[:, None]
    inside = (coords < np.array(old.spec.shape, np.int64)[:, None]).all(axis=0)
    coords = np.ascontiguousarray(coords[:, inside])
    found = read(snapshot, old, PointSelection(old.spec.shape, coords, (coords.shape[1],)))
    if found.nnz:
        at = tuple(coords[:, found.coords[0, 0]].tolist())
        raise InvalidTensorError(
            f"{found.nnz} elements are in tensor {old.spec.id!r} already, the first of them {at}; "
            "duplicates='sum' or duplicates='last' combines them, ref[key] = values replaces them"
        )
