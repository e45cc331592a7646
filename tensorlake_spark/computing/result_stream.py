"""A large answer, computed region by region, so that it goes to the lake without being held in memory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.indexing import Box
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing.source import REGION_BYTES, bands

Array = np.ndarray[Any, Any]

Compute = Callable[[Fold[Any], Stored], Any]
"""Returns the answer of a fold of a selection, as `thread_runner.compute` does."""

_AGAIN = (
    1.5  # so much more than one pass may be read for regions: else the answer is held in memory
)
_WIDEST = 8  # times REGION_BYTES: a region that ends where stored blocks end may be so large


@dataclass(frozen=True, eq=False)
class ResultStream:
    """The answer of a fold as a source of regions, each of which is computed from the rows that it needs.

    Attributes
    ----------
    fold : Fold
        Whose answer can be cut.
    stored : Stored
        The selection.
    compute : callable
        Makes the answer of a part.
    dtype : dtype
        Of the answer.
    is_sparse : bool
        Whether the answer is.
    steps : tuple of int
        What of the answer a stored block goes into, for each axis.
    """

    fold: Fold[Any]
    stored: Stored
    compute: Compute
    dtype: np.dtype[Any]
    is_sparse: bool
    steps: tuple[int, ...]
    nbytes: None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the answer."""
        return self.fold.answer_shape or ()

    def density(self) -> float:
        """Return a guess at the share of elements that are not zero."""
        if not self.is_sparse:
            return 1.0
        return min(1.0, self.stored.meta.totals.nnz / max(1, math.prod(self.shape)))

    def sample(self, block: Sequence[int]) -> Array:
        """Return a block from the middle, from which a codec is chosen."""
        lo = tuple(max(0, (n - b) // 2) for n, b in zip(self.shape, block, strict=True))
        hi = tuple(min(a + b, n) for a, b, n in zip(lo, block, self.shape, strict=True))
        return np.asarray(self.part(Box(lo, hi)))

    def part(self, box: Box) -> Any:
        """Return the answer in a box."""
        key, fold = self.fold.part(box)
        found = self.compute(fold, self.stored.part(key))
        if isinstance(found, Elements):
            return SparseTensor._trusted(found.coords, found.values, found.shape)
        return np.asarray(found)

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield ``(offset, region)`` in C order, of whole blocks."""
        for box in self.boxes(tuple(block)):
            yield box.lo, self.part(box)

    def boxes(self, block: tuple[int, ...] = ()) -> Iterator[Box]:
        """Yield boxes of whole blocks that tile the answer and end with the stored ones, unless these are too large."""
        block = block or (1,) * len(self.shape)
        both = tuple(
            min(n, math.lcm(a, b)) for n, a, b in zip(self.shape, block, self.steps, strict=True)
        )
        cell = self.density() * (self.dtype.itemsize + 8 * len(self.shape) * self.is_sparse)
        fits = math.prod(both) * cell <= _WIDEST * REGION_BYTES
        yield from bands(self.shape, both if fits else block, cell)


def stream_of(fold: Fold[Any], stored: Stored, compute: Compute) -> ResultStream | None:
    """Return the answer of a fold as a stream; None if it is small, or if regions of it would need the same rows.

    Parameters
    ----------
    fold : Fold
        The operation.
    stored : Stored
        The selection.
    compute : callable
        Makes the answer of a part.
    """
    shape = fold.answer_shape
    if not shape or 0 in shape or not stored.has_blocks or stored.selection.is_empty:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        nothing = fold.part(Box((0,) * len(shape), (1,) * len(shape)))[1].finish(None)
    is_sparse = isinstance(nothing, Elements)
    out = ResultStream(fold, stored, compute, nothing.dtype, is_sparse, _steps(fold, stored))
    if out.density() * math.prod(shape) * nothing.dtype.itemsize <= REGION_BYTES:
        return None
    needed = 0
    for box in out.boxes():
        key, part = fold.part(box)
        needed += stored.part(key).plan().n_bytes + part.n_bytes
    return out if needed <= _AGAIN * (stored.plan().n_bytes + fold.n_bytes) else None


def _steps(fold: Fold[Any], stored: Stored) -> tuple[int, ...]:
    """Return how much of each axis of the answer a stored block has, 1 where that is not known."""
    shape, block = fold.answer_shape or (), stored.block
    out = []
    for axis in range(len(shape)):
        lo = tuple(0 for _ in shape)
        key, _ = fold.part(Box(lo, tuple(1 if k == axis else n for k, n in enumerate(shape))))
        cut = [
            k for k, side in enumerate(key) if len(range(stored.shape[k])[side]) < stored.shape[k]
        ]
        out.append(block[cut[0]] if len(cut) == 1 else 1)
    return tuple(out)
