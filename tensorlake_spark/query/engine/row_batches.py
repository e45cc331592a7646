"""Rows in batches whose tensors fit in memory, and which parts of tensors expressions need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, pinned
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.samples.sample_reading import BATCH_BYTES
from tensorlake_spark.datasets.samples.sample_reading import row_bytes as sample_bytes
from tensorlake_spark.datasets.types.media.images import Picture
from tensorlake_spark.delta.files.runner import parcels
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.query.engine.shape_values import shape_fields, stand_ins
from tensorlake_spark.query.functions.needed_parts import SHAPE, Key, box_of, boxes_needed
from tensorlake_spark.query.sources.source_columns import (
    BranchLeaf,
    CollectedLeaf,
    ItemLeaf,
    Lazy,
    TensorLeaf,
)

Array = np.ndarray[Any, Any]

MOST_ROWS = 1 << 16
"""Rows of a batch, at most."""

_LOOKED_AT = 16  # images, for their sizes

_PAGE = 4096  # bytes of memory that is written at once


def row_batches(
    lazies: list[Lazy], table: pa.Table, parameters: Mapping[str, Any] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of a table in batches of which tensors take about `BATCH_BYTES`.

    Parameters
    ----------
    lazies : list of Lazy
        The expressions that are computed of each batch.
    table : pyarrow.Table
        The rows.
    parameters : mapping of str to object, optional
        Values of ``:name``, which may be bounds of slices.
    """
    needs = [
        (leaf, key)
        for lazy in lazies
        for leaf, key in parts_needed(lazy, parameters)
        if not is_beside(leaf, key)
    ]
    each = 1 + sum(row_bytes(leaf, table) for leaf, _ in needs)
    step = max(1, min(MOST_ROWS, BATCH_BYTES // each, max(64, table.num_rows)))
    large = [(leaf, key) for leaf, key in needs if _has_tiles(leaf)]
    for start in range(0, table.num_rows, step):
        some = table.slice(start, step)
        if not large:
            yield some
            continue
        sizes = _sizes_of(large, some)
        for first, stop in parcels(sizes.tolist(), BATCH_BYTES, 0):
            yield some.slice(first, stop - first)


def tiled_bytes(
    lazies: list[Lazy], table: pa.Table, parameters: Mapping[str, Any] | None = None
) -> Array:
    """Return for each row how many bytes are needed of columns that may have tiles; 0 where none has.

    Parameters
    ----------
    lazies, table, parameters
        As for `row_batches`.
    """
    needs = [need for lazy in lazies for need in parts_needed(lazy, parameters)]
    large = [(leaf, key) for leaf, key in needs if _has_tiles(leaf) and not is_beside(leaf, key)]
    return _sizes_of(large, table)


def _sizes_of(needs: list[tuple[TensorLeaf, Key | str | None]], table: pa.Table) -> Array:
    """Return for each row how many bytes are needed: files do not tell what tiles have, samples do by their shapes."""
    out = np.zeros(table.num_rows, np.int64)
    for leaf, key in needs:
        out += _sizes(leaf, key, table)
    return out


def _has_tiles(leaf: TensorLeaf) -> bool:
    """Whether samples of a column may be tiles whose shapes are stored beside them."""
    parts = leaf.source.dataset.parts
    if not (is_tileable(parts.schema[leaf.column]) and shape_fields(parts, leaf.column)):
        return False
    return pinned(parts.stored.snapshot, TENSORS_FOLDER) is not None


def _sizes(leaf: TensorLeaf, key: Key | str | None, table: pa.Table) -> Array:
    """Return how many bytes are needed of the samples of each row."""
    out = np.zeros(table.num_rows, np.int64)
    if leaf.key[1] not in table.column_names or leaf.source.stored is None:
        return out
    rows, positions = _samples_in(table, leaf, leaf.source.stored)
    chosen, back = np.unique(positions, return_inverse=True)
    there = chosen >= 0
    known = stand_ins(leaf.source.dataset.parts, leaf.column, chosen[there])
    nbytes = np.zeros(len(chosen), np.int64)
    nbytes[there] = [_bytes_of(one, key) for one in known[0]] if known else 0
    np.add.at(out, rows, nbytes[back])
    return out


def _samples_in(table: pa.Table, leaf: TensorLeaf, stored: StoredSamples) -> tuple[Array, Array]:
    """Return rows, and the positions of the samples that a column has there: of a group many, -1 for none."""
    sids = table.column(leaf.key[1]).combine_chunks()
    rows = np.arange(table.num_rows)
    if isinstance(sids, pa.ChunkedArray):
        sids = pa.concat_arrays(sids.chunks)
    if pa.types.is_list(sids.type):  # of the samples of a group
        rows, sids = pc.list_parent_indices(sids).to_numpy(), sids.flatten()
    numbers = np.asarray(sids.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    return rows, stored.positions_of(numbers)


def _bytes_of(sample: Array | None, key: Key | str | None) -> int:
    """Return how much memory is written for what is needed of a sample: of an array that has a box, its pages."""
    if sample is None:
        return 0
    box = box_of(key, sample.shape) if isinstance(key, tuple) else None
    if not box:
        return int(sample.nbytes)
    *lines, last = [part.stop - part.start for part in box]
    written: int = math.prod(lines) * (last * sample.itemsize + _PAGE)
    return min(int(sample.nbytes), written)


def parts_needed(
    lazy: Lazy, parameters: Mapping[str, Any] | None = None
) -> list[tuple[TensorLeaf, Key | str | None]]:
    """Return the columns of datasets that an expression reads, and for each what part, as `boxes_needed` says it."""
    bare = isinstance(lazy.node, exp.Column)
    keys = {} if bare else boxes_needed([lazy.node], parameters)
    out: list[tuple[TensorLeaf, Key | str | None]] = []
    for name, leaf in lazy.leaves.items():
        if isinstance(leaf, TensorLeaf):
            out.append((leaf, keys.get(name)))
        elif isinstance(leaf, (CollectedLeaf, ItemLeaf)):
            out += parts_needed(leaf.lazy, parameters)
        elif isinstance(leaf, BranchLeaf):
            out += [part for branch in leaf.branches for part in parts_needed(branch, parameters)]
    return out


def is_beside(leaf: TensorLeaf, key: Key | str | None) -> bool:
    """Whether only shapes and dtypes of a column are needed, and these are stored beside its values."""
    return key == SHAPE and bool(shape_fields(leaf.source.dataset.parts, leaf.column))


def row_bytes(leaf: TensorLeaf, table: pa.Table) -> int:
    """Return about how many bytes a sample of a column has, by the first rows; of images those of their pixels."""
    parts = leaf.source.dataset.parts
    stored, path = parts.stored, parts.path_of(leaf.column)
    some = np.arange(min(len(stored), _LOOKED_AT))
    if leaf.key[1] in table.column_names:
        some = _samples_in(table.slice(0, _LOOKED_AT), leaf, stored)[1]
        some = some[some >= 0][:_LOOKED_AT]
    if isinstance(parts.schema[leaf.column], Picture) and stored.under([(*path, "height")]):
        # Memory that is used again is in a cache: so batches of images are not as long as their files are small.
        return max(1, _pixel_bytes(stored, path, some))
    return sample_bytes(parts, [leaf.column], some)


def _pixel_bytes(stored: StoredSamples, path: tuple[str, ...], positions: Array) -> int:
    """Return about how many bytes the pixels of an image have, by some of them."""
    sizes = [(*path, name) for name in ("height", "width", "channels")]
    some = stored.rows(sizes, positions)
    found = some.column(path[0])
    for part in path[1:]:
        found = pc.struct_field(found, part)
    each = [
        pc.struct_field(found, name).fill_null(0).to_numpy()
        for name in ("height", "width", "channels")
    ]
    pixels = np.prod(np.array(each, np.int64), axis=0)
    return int(pixels[pixels > 0].mean()) if (pixels > 0).any() else 1
