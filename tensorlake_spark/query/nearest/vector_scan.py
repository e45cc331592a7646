"""Vectors that are near to one, found where they lie in files: by products of matrices, block by block.

The distances are rounded, and only choose candidates: `neighbours` computes those that are close to the best again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from tensorlake_spark.datasets.types.tensors import Embedding, Tensor
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.query.functions.registry import find
from tensorlake_spark.query.functions.tree_names import parameter_value
from tensorlake_spark.query.nearest.vector_blocks import VectorBlock, blocks_of, buffers, is_kept
from tensorlake_spark.query.planning.plan import Best, Computed
from tensorlake_spark.query.sources.source_columns import TensorLeaf
from tensorlake_spark.threads import THREADS, in_order

Array = np.ndarray[Any, Any]

_MOST = 1 << 16
"""So many candidates may be left; of each row that is asked for, 64 may."""

_LEAST_SQUARE, _MOST_SQUARE = 1e-30, 1e37
"""Between them squares of lengths are neither rounded to less than their last places nor infinite in float32."""


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
    if function is None or function.name not in ("l2_distance", "dot", "cosine_similarity"):
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
    name = sides[1].name
    given = np.asarray(parameter_value(name, parameters[name]))
    if given.dtype.kind not in "biuf":
        return None
    with np.errstate(over="ignore"):  # what is infinite then goes the plain way
        vector = given.astype(np.float32)
    if kind.fixed() != ("float32", vector.shape) or vector.ndim != 1:
        return None
    square = float(vector.astype(np.float64) @ vector.astype(np.float64))
    least = _LEAST_SQUARE if function.name == "cosine_similarity" else 0.0
    if not least <= square <= _MOST_SQUARE:
        return None
    local = leaf.source.stored.snapshot.storage.is_local
    whole = np.ascontiguousarray(vector)
    return VectorQuestion(leaf, function.name, whole) if local else None


def candidates(question: VectorQuestion, wanted: Array | None, best: Best) -> Array | None:
    """Return the positions of samples that may be among the best, in order; None if they are too many to say.

    Parameters
    ----------
    question : VectorQuestion
        What is asked.
    wanted : bool ndarray, or None
        For each sample of the dataset whether it may be chosen; None for all.
    best : Best
        How many, and of which end.
    """
    stored = question.leaf.source.stored
    if stored is None or best.count > _MOST:
        return None
    if not best.count or not len(stored):
        return np.zeros(0, np.int64)
    column = question.leaf.source.dataset.parts.path_of(question.leaf.column)
    search = _Search(question, stored, wanted, best)
    memory = buffers(THREADS)
    keep = is_kept(stored)

    def work(block: VectorBlock) -> None:
        buffer = memory.pop()
        try:
            search.look(block, block.products(question.vector, buffer, keep))
        finally:
            memory.append(buffer)

    for _ in in_order(work, blocks_of(stored, column, len(question.vector))):
        if search.is_lost:
            return None
    return search.found()


class _Search:
    """What is known of the best so far; several threads tell it of their blocks.

    Each key may be wrong by its error. The bound is the greatest of the `count` least sums of a key and its error: no
    row whose key is further above it than its error is among the best. It only falls, so what was left out stays out.
    """

    def __init__(
        self, question: VectorQuestion, stored: StoredSamples, wanted: Array | None, best: Best
    ) -> None:
        self._question, self._stored, self._wanted, self._best = question, stored, wanted, best
        self._square = float(
            question.vector.astype(np.float64) @ question.vector.astype(np.float64)
        )
        size = len(question.vector)
        # Sums of n products are wrong by about n units in the last place of the sum of their sizes, at most; so are
        # those of the exact function. What is too small for float32 is lost.
        self._unit = float(np.finfo(np.float32).eps) * (size + 8)
        self._lost = 8 * float(np.finfo(np.float32).tiny) * (size + 8)
        self._bound = np.inf
        self._uppers: Array = np.zeros(0)
        self._parts: list[tuple[Array, Array]] = []
        self._unknown = 0
        self._lock = threading.Lock()

    @property
    def is_lost(self) -> bool:
        """Whether so many rows are without a key that all had better be computed."""
        return self._unknown > _MOST

    def look(self, block: VectorBlock, found: tuple[Array, Array] | None) -> None:
        """Take in the products and squares of a block, None if it has none."""
        if found is None:
            self._add_unknown(self._positions(block, np.arange(len(block))))
            return
        values, norms = found
        least, most = float(norms.min()), float(norms.max())
        lowest = _LEAST_SQUARE if self._question.function == "cosine_similarity" else 0.0
        keys = self._keys(values, norms)
        if not (lowest <= least and most <= _MOST_SQUARE):  # NaN among them, too
            odd = ~((norms >= lowest) & (norms <= _MOST_SQUARE))
            self._add_unknown(self._positions(block, np.flatnonzero(odd)))
            keys[odd] = np.inf
            most = float(norms[~odd].max(initial=0))
        if self._wanted is not None:
            positions = self._positions(block, np.arange(len(block)))
            keys[~self._is_wanted(positions)] = np.inf
        elif self._stored.is_marked(block.number):
            keys[self._positions(block, np.arange(len(block))) < 0] = np.inf
        limit = np.float32(self._bound + self._error(most))
        near = np.flatnonzero(
            keys <= np.nextafter(limit, np.float32(np.inf)) if np.isfinite(limit) else keys < np.inf
        )
        if len(near):
            errors = self._errors(norms[near])
            self._add(self._positions(block, near), keys[near].astype(np.float64), errors)

    def found(self) -> Array | None:
        """Return the positions of the candidates in order, None if they are too many."""
        chosen = [at[lowers <= self._bound] for at, lowers in self._parts]
        out: Array = np.sort(np.concatenate([np.zeros(0, np.int64), *chosen]))
        return out if len(out) <= max(64 * self._best.count, _MOST) else None

    def _positions(self, block: VectorBlock, rows: Array) -> Array:
        return self._stored.positions_at(block.number, rows + block.first)

    def _is_wanted(self, positions: Array) -> Array:
        there = positions >= 0
        if self._wanted is not None:
            there[there] = self._wanted[positions[there]]
        return there

    def _add(self, positions: Array, keys: Array, errors: Array) -> None:
        with self._lock:
            lowers, uppers = keys - errors, keys + errors
            near = lowers <= self._bound
            self._parts.append((positions[near], lowers[near]))
            both = np.concatenate([self._uppers, uppers[near]])
            count = self._best.count
            self._uppers = both if len(both) <= count else np.partition(both, count - 1)[:count]
            if len(self._uppers) == count:
                self._bound = float(self._uppers.max())

    def _add_unknown(self, positions: Array) -> None:
        """Let rows be candidates that have no key: nulls, and what is not finite."""
        positions = positions[self._is_wanted(positions)]
        with self._lock:
            self._unknown += len(positions)
            self._parts.append((positions, np.full(len(positions), -np.inf)))

    def _keys(self, values: Array, norms: Array) -> Array:
        """Return what is small where a vector is near; of L2 the square, without the part that all have."""
        with np.errstate(all="ignore"):
            if self._question.function == "l2_distance":
                values *= np.float32(-2)
                values += norms
            elif self._question.function == "cosine_similarity":
                values /= np.sqrt(norms)
                values /= np.float32(np.sqrt(self._square))
        return np.negative(values, out=values) if self._best.descending else values

    def _error(self, norm: float) -> float:
        """Return how wrong a key may be at most, of a vector with this square of its length or a smaller one."""
        return float(self._errors(np.array([norm]))[0])

    def _errors(self, norms: Array) -> Array:
        norms = norms.astype(np.float64)
        if self._question.function == "dot":
            return self._unit * np.sqrt(norms * self._square) + self._lost
        if self._question.function == "l2_distance":
            return self._unit * (2 * norms + 2 * self._square) + self._lost
        return np.full(len(norms), 3 * self._unit)
