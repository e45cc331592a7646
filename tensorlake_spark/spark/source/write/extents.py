"""Whether the boxes of slabs make up a tensor: no gap, no overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.overlaps import meeting


def extent(tensor_id: str, boxes: Sequence[Box], axis: int) -> tuple[int, ...]:
    """Return the shape that slabs make up, which without option shape follow each other along one axis."""
    if not boxes or not boxes[0].ndim:
        return ()
    ordered = sorted(boxes, key=lambda b: b.lo[axis])
    trailing = {tuple(n for k, n in enumerate(b.hi) if k != axis) for b in ordered}
    if len(trailing) > 1:
        raise InvalidTensorError(
            f"the slabs of tensor {tensor_id!r} have different shapes beside axis {axis}: {sorted(trailing)}; give "
            "option('shape', ...), the shape of all slabs together, if they are meant to be parts of it"
        )
    end = 0
    for box in ordered:
        if box.lo[axis] > end:
            raise InvalidTensorError(
                f"the slabs of tensor {tensor_id!r} leave {end}:{box.lo[axis]} of axis {axis} open; give "
                "option('shape', ...) if it is meant to be full of the fill value"
            )
        end = max(end, box.hi[axis])
    return tuple(end if k == axis else n for k, n in enumerate(ordered[0].hi))


def check_disjoint(tensor_id: str, boxes: Sequence[Box]) -> None:
    """Raise InvalidTensorError if two slabs overlap: one of them would win by chance."""
    filled = [box for box in boxes if not box.is_empty]
    if len(filled) < 2:
        return
    if not filled[0].ndim:
        raise InvalidTensorError(f"tensor {tensor_id!r} has no axis, and more than one slab")
    lo, hi = np.array([b.lo for b in filled], np.int64), np.array([b.hi for b in filled], np.int64)
    for one, other in meeting(lo, hi, 1):
        a, b = filled[one], filled[other]
        raise InvalidTensorError(
            f"two slabs of tensor {tensor_id!r} overlap: {a.lo}..{a.hi} and {b.lo}..{b.hi}"
        )


def check_full(tensor_id: str, boxes: Sequence[Box], shape: Sequence[int]) -> None:
    """Raise InvalidTensorError if slabs that do not overlap leave a part of a shape open."""
    have, want = sum(box.size for box in boxes), math.prod(shape)
    if have != want:
        raise InvalidTensorError(
            f"the slabs of tensor {tensor_id!r} have {have} of its {want} elements; run the job without --resume"
        )
