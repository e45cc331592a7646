"""Distances of many vectors to one, where they lie in files: by products of matrices, block by block, without a copy of all.

The distances are rounded, and only choose candidates: `neighbours` computes those that are close to the best again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from sqlglot import exp

from tensorlake_spark.datasets.types.tensors import Embedding, Tensor
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.planning.plan import Best, Computed
from tensorlake_spark.query.sources.source_columns import TensorLeaf
from tensorlake_spark.threads import in_order

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 20  # bytes of vectors that are computed at once: they stay in a processor's cache

_SHARE = 4  # where fewer than one of four samples are asked for, only those are read


_norms: WeakKeyDictionary[StoredSamples, dict[tuple[str, int, int], Array]] = WeakKeyDictionary()
"""Squares of the lengths of vectors, by the version they are of: they are the same for every question."""


@dataclass(frozen=True)
class VectorQuestion:
    """Which vectors are near to one.

    Attributes
    ----------
    leaf : TensorLeaf
        The column.
    function : str
        ``l2_distance``, ``dot`` or ``cosine_similarity``.
    vector : float32 ndarray
        What they are compared with.
    """

    leaf: TensorLeaf
    function: str
    vector: Array


def question_of(computed: Computed, parameters: Mapping[str, Any]) -> VectorQuestion | None:
    """Return what an expression asks of vectors, None if it is no distance to one vector."""
    node = computed.lazy.node
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 2:
        return None
    function = find(node.name)
    if function is None or function.users:
        return None
    if function.name not in ("l2_distance", "dot", "cosine_similarity"):
        return None
    sides = (
        node.expressions if isinstance(node.expressions[0], exp.Column) else node.expressions[::-1]
    )
    if not isinstance(sides[0], exp.Column) or not isinstance(sides[1], exp.Placeholder):
        return None
    leaf = computed.lazy.leaves.get(sides[0].name)
    if not isinstance(leaf, TensorLeaf) or leaf.source.stored is None:
        return None
    kind = leaf.source.dataset.schema[leaf.column]
    if kind.apart or not isinstance(kind, (Embedding, Tensor)) or getattr(kind, "quantize", None):
        return None
    try:
        vector = np.asarray(parameters[sides[1].name], np.float32)
    except (TypeError, ValueError):
        return None
    if (
        kind.fixed() != ("float32", vector.shape)
        or vector.ndim != 1
        or not np.isfinite(vector).all()
    ):
        return None
    local = leaf.source.stored.snapshot.storage.is_local
    return VectorQuestion(leaf, function.name, vector) if local else None


def candidates(question: VectorQuestion, sids: pa.Array, best: Best) -> Array | None:
    """Return the rows that may be among the best, None if the vectors cannot be read where they lie.

    Parameters
    ----------
    question : VectorQuestion
        What is asked.
    sids : pyarrow.Array
        Of the rows.
    best : Best
        How many, and of which end.
    """
    stored = question.leaf.source.stored
    numbers = np.asarray(sids.to_numpy(zero_copy_only=False))
    if stored is None or sids.null_count or len(numbers) * _SHARE < len(stored):
        return None
    whole = len(numbers) == len(stored) and np.array_equal(numbers, stored.sids)
    positions = None if whole else stored.positions_of(numbers)
    if stored._order is not None or any(stored.is_marked(n) for n in range(len(stored.files))):
        return None
    column = question.leaf.source.dataset.parts.path_of(question.leaf.column)
    leaf, named = stored.leaf((*column, "data")), stored.leaf((*column, "dtype"))
    tasks = [
        (number, group)
        for number, file in enumerate(stored.files)
        for group in range(file.metadata.num_row_groups)
    ]

    def work(task: tuple[int, int]) -> tuple[Array, Array] | None:
        return _group(question, stored, leaf, named, *task)

    found: list[Array] = []
    slack: list[Array] = []
    for part in in_order(work, tasks):
        if part is None:
            return None
        found.append(part[0])
        slack.append(part[1])
    values = np.concatenate(found) if found else np.zeros(0, np.float32)
    errors = np.concatenate(slack) if slack else values
    if positions is not None:
        values, errors = values[positions], errors[positions]
    return _chosen(values, errors, best, question.function == "l2_distance")


def _chosen(values: Array, errors: Array, best: Best, squared: bool) -> Array | None:
    """Return the rows whose values may be among the best, as each may be wrong by its error."""
    if len(values) <= best.count or not best.count:
        return np.arange(len(values) if best.count else 0)
    keys = -values if best.descending else values
    if not np.isfinite(keys).all():
        return None
    bound = np.partition(keys + errors, best.count - 1)[best.count - 1]
    found = np.flatnonzero(keys - errors <= bound)
    return found if len(found) <= max(64 * best.count, 65_536) else None


def _group(
    question: VectorQuestion,
    stored: StoredSamples,
    leaf: LeafColumn,
    named: LeafColumn,
    number: int,
    group: int,
) -> tuple[Array, Array] | None:
    """Return the values of the vectors of a row group, and how wrong they may be."""
    file = stored.files[number]
    chunk = file.chunk(group, leaf)
    if (
        chunk is None
        or not file.has(named)
        or not _is_float32(file.metadata.row_group(group), named)
    ):
        return None
    region = file.region(chunk)
    starts, lengths, _ = file.spans(group, leaf, chunk, region)
    size = len(question.vector) * 4
    if (lengths != size).any():
        return None
    raw = np.frombuffer(region, np.uint8)
    values = np.empty(len(starts), np.float32)
    known = _norms.setdefault(stored, {})
    norms = known.get((leaf.path, number, group))
    is_new = norms is None
    if norms is None:
        norms = np.empty(len(starts), np.float32)
    step = size + 4  # each has its length before it, and pages a head
    edges = [0, *(np.flatnonzero(np.diff(starts) != step) + 1).tolist(), len(starts)]
    rows = max(1, _BLOCK // step)
    buffer = np.empty((min(rows, len(starts)), size), np.uint8)
    with np.errstate(all="ignore"):
        for first, last in itertools.pairwise(edges):
            for at in range(first, last, rows):
                count = min(rows, last - at)
                view = np.lib.stride_tricks.as_strided(
                    raw[int(starts[at]) :], (count, size), (step, 1), writeable=False
                )
                block = buffer[:count]
                block[...] = view
                vectors = block.view("<f4")
                np.matmul(vectors, question.vector, out=values[at : at + count])
                if is_new:
                    np.einsum("ij,ij->i", vectors, vectors, out=norms[at : at + count])
    known[leaf.path, number, group] = norms
    return _finished(question, values, norms)


def _finished(question: VectorQuestion, values: Array, norms: Array) -> tuple[Array, Array]:
    """Return distances, of L2 their squares, from products with the vector and squares of lengths."""
    square = float(question.vector @ question.vector)
    # Sums of n products are wrong by about n units in the last place of the sum of their sizes, at most.
    unit = np.float32(np.finfo(np.float32).eps * (len(question.vector) + 8))
    with np.errstate(all="ignore"):
        if question.function == "dot":
            return values, unit * np.sqrt(norms * np.float32(square))
        if question.function == "l2_distance":
            return norms - 2 * values + np.float32(square), unit * (
                2 * norms + np.float32(2 * square)
            )
        found = values / np.sqrt(norms * np.float32(square))
    return found, np.full(len(found), 2 * unit, np.float32)


def _is_float32(group: Any, named: LeafColumn) -> bool:
    """Whether the footer says that every vector of a row group is float32."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == named.path:
            found = column.statistics
            return found is not None and found.has_min_max and found.min == found.max == "float32"
    return False
