"""A tensor of the lake as the source of another one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import Box, select
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.layouts.quantization.kinds import quantization_in
from tensorlake_spark.reading.read import read
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing.source import REGION_BYTES, bands, count_nonzero

_LOOKED_AT = 8  # regions of a dense tensor from which its density is taken
_MOST_REGIONS = 4096  # each is a slice that is read


class StoredSource:
    """A tensor of the lake, or a run of its regions, read slab by slab.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    meta : Meta
        The tensor in it.
    first, stop : int
        Which regions, by their numbers; all of them by default.
    dense : bool
        Whether regions of a sparse tensor are wanted as arrays: the blocks that hold an element, each by itself.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        meta: Meta,
        first: int = 0,
        stop: int | None = None,
        dense: bool = False,
    ) -> None:
        self._snapshot, self._meta = snapshot, meta
        self._first, self._stop, self._dense = first, stop, dense
        self.shape, self.dtype = meta.spec.shape, meta.spec.dtype
        self.by_elements = stored_layout(meta.spec).is_sparse
        self.quantization = quantization_in(meta.spec)
        self.nbytes = None

    def density(self) -> float:
        """Return the share of elements that are not zero; of a dense tensor that of some of its regions."""
        spec = self._meta.spec
        if stored_layout(spec).is_sparse:
            return self._meta.totals.nnz / max(1, spec.size)
        found = looked_at = 0
        every = max(1, self.count(spec.block_shape or ()) // _LOOKED_AT)
        for box in islice(self._bands(spec.block_shape or ()), 0, None, every):
            found += count_nonzero(self._read(box))
            looked_at += math.prod(box.shape)
        return found / max(1, looked_at)

    def _read(self, box: Box) -> Any:
        # Whether rows were lost is asked of the whole tensor before (`check_rows`): few regions could tell.
        selection = select(box.slices(), self.shape)
        return read(self._snapshot, self._meta, selection, verify=False)

    def sample(self, block: Sequence[int]) -> Any:
        """Return a block from the middle, from which a codec is chosen."""
        lo = tuple(max(0, (n - b) // 2) for n, b in zip(self.shape, block, strict=True))
        hi = tuple(min(a + b, n) for a, b, n in zip(lo, block, self.shape, strict=True))
        return np.asarray(self._read(Box(lo, hi)))

    def regions(self, block: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield ``(offset, region)``, whole blocks of about the size of other sources' regions."""
        for box in islice(self._bands(block), self._first, self._stop):
            region = self._read(box)
            if not (self._dense and isinstance(region, SparseTensor)):
                yield box.lo, region
                continue
            for lo, part in filled_blocks(region, block):
                yield tuple(a + d for a, d in zip(box.lo, lo, strict=True)), part

    def count(self, block: Sequence[int]) -> int:
        """Return how many regions the whole tensor has."""
        return sum(1 for _ in self._bands(block))

    def _bands(self, block: Sequence[int]) -> Iterator[Box]:
        return bands(self.shape, block or (1,) * len(self.shape), self._cell_bytes())

    def _cell_bytes(self) -> float:
        """Bytes that a cell takes in a region: of a sparse tensor a share of what an element takes.

        At least one, as elements may lie close together, but for a tensor that had too many regions then. All
        elements of a small tensor fit into one region, however few of its cells they are.
        """
        spec = self._meta.spec
        if not stored_layout(spec).is_sparse:
            return self.dtype.itemsize
        nbytes = max(1, self._meta.totals.nnz) * (8 * spec.ndim + self.dtype.itemsize)
        share = nbytes / max(1, spec.size)
        if nbytes <= REGION_BYTES:
            return share
        return max(share, min(1.0, _MOST_REGIONS * REGION_BYTES / max(1, spec.size)))


def filled_blocks(
    region: SparseTensor, block: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], np.ndarray[Any, Any]]]:
    """Yield ``(offset, array)`` of each block of a region that holds an element, in C order.

    Examples
    --------
    >>> region = SparseTensor([[0, 5], [3, 6]], [1, 2], (6, 7))
    >>> [(lo, part.tolist()) for lo, part in filled_blocks(region, (4, 4))]
    [((0, 0), [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]), ((4, 4), [[0, 0, 0], [0, 0, 2]])]
    """
    if not region.nnz:
        return
    sides = np.array(block, np.int64).reshape(-1, 1)
    counts = [-(-n // b) for n, b in zip(region.shape, block, strict=True)]
    cells = ravel(region.coords // sides, counts)
    order = np.argsort(cells, kind="stable")
    found, starts = np.unique(cells[order], return_index=True)
    for cell, chosen in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        index = np.unravel_index(cell, counts) if counts else ()
        lo = tuple(int(i) * b for i, b in zip(index, block, strict=True))
        shape = [min(b, n - a) for a, b, n in zip(lo, block, region.shape, strict=True)]
        part = np.zeros(shape, region.dtype)
        inside = region.coords[:, chosen] - np.array(lo, np.int64).reshape(-1, 1)
        part[tuple(inside)] = region.values[chosen]
        yield lo, part
