"""A selection region by region, in C order: for what needs its elements in order, or those of two tensors at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.indexing import Box
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.writing.source import REGION_BYTES, bands

_MOST_REGIONS = 4096  # of a sparse tensor: each is a slice that is read


def region_boxes(
    stored: Stored, block: tuple[int, ...] | None = None, itemsize: int = 0
) -> Iterator[Box]:
    """Yield boxes of the answer that tile it in C order, each a few MiB of stored elements.

    Parameters
    ----------
    stored : Stored
        The selection.
    block : tuple of int, optional
        Regions have whole blocks of this shape; by default they fit the stored ones where axes are the tensor's.
    itemsize : int
        Bytes of an element of the result, where that is larger.
    """
    shape = stored.shape
    if 0 in shape:
        return
    steps = block or stored.block
    yield from bands(
        shape, [min(n, b) for n, b in zip(shape, steps, strict=True)], _cell_bytes(stored, itemsize)
    )


def element_regions(stored: Stored) -> Iterator[Elements]:
    """Yield the elements of a sparse tensor, region by region, with their coordinates in the whole selection."""
    for box in region_boxes(stored):
        yield element_region(stored, box)


def element_region(stored: Stored, box: Box) -> Elements:
    """Return the elements of a sparse tensor in a box, with their coordinates in the whole selection."""
    part = stored.box(box.lo, box.hi).read()
    if not isinstance(part, Elements):
        return Elements._trusted(np.zeros((0, 1), np.int64), np.asarray(part).reshape(1), ())
    coords = part.coords + np.array(box.lo, np.int64).reshape(-1, 1)
    return Elements._trusted(coords, part.values, stored.shape)


def _cell_bytes(stored: Stored, itemsize: int) -> float:
    """Return the bytes that a cell takes in a region; of a sparse tensor it is a share of what an element takes."""
    spec = stored.meta.spec
    if not stored.is_sparse:
        return max(itemsize, spec.dtype.itemsize)
    size = max(1, math.prod(stored.shape))
    nbytes = max(1, stored.meta.totals.nnz) * (8 * spec.ndim + max(itemsize, spec.dtype.itemsize))
    share = nbytes / max(1, spec.size)
    return (
        max(share, min(1.0, _MOST_REGIONS * REGION_BYTES / size))
        if nbytes > REGION_BYTES
        else share
    )
