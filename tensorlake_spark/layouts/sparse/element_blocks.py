"""The blocks in which elements lie: where they begin and end, and the elements in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.indexing import cells_along
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.layouts.coding.buffers import MAX_ELEMENTS

Array = np.ndarray[Any, Any]


class Blocks(NamedTuple):
    """Elements in the order of their blocks, and by offset in each.

    Attributes
    ----------
    offset, values : ndarray, shape (n,)
        What belongs to each element.
    starts, stops : int64 ndarray, shape (blocks,)
        Which elements are those of a block. One of very many elements is several blocks of one box.
    lo, hi : int64 ndarray, shape (blocks, ndim)
        The boxes.
    """

    offset: Array
    values: Array
    starts: Array
    stops: Array
    lo: Array
    hi: Array


def block_sides(block_shape: Sequence[int], hi: Sequence[int]) -> tuple[int, ...]:
    """Return the sides of a block, none of them longer than the tensor.

    Examples
    --------
    >>> block_sides((4, 10**30), (9, 5))
    (4, 5)
    """
    return tuple(min(b, max(1, h)) for b, h in zip(block_shape, hi, strict=True))


def widths(sides: Sequence[int]) -> list[int]:
    """Return how many bits the coordinates in a block take.

    Examples
    --------
    >>> widths((1, 2, 5, 128))
    [0, 1, 3, 7]
    """
    return [(side - 1).bit_length() for side in sides]


def gather(
    coords: Array,
    values: Array,
    sides: Sequence[int],
    segments: Sequence[Sequence[int]],
    order: Sequence[int],
    hi: Sequence[int],
) -> Blocks:
    """Sort elements by their blocks.

    Parameters
    ----------
    coords : int64 ndarray, shape (ndim, n)
        In the tensor, in any order; at least one.
    values : ndarray, shape (n,)
        What belongs to them.
    sides : sequence of int
        Of a whole block; no longer than the tensor.
    segments : sequence of sequence of int
        For every axis the positions at which a fresh run of blocks begins, the first of them 0.
    order : sequence of int
        The axes of an offset, the highest bits first.
    hi : sequence of int
        Upper corner of the tensor, which no box passes.
    """
    along = [cells_along(*axis) for axis in zip(coords, sides, segments, strict=True)]
    number = np.array([cells for cells, _ in along], np.int64).reshape(coords.shape)
    origin = [starts for _, starts in along]
    offset = np.zeros(coords.shape[1], np.int64)
    bits = widths(sides)
    for k in order:
        offset <<= bits[k]
        offset |= coords[k] - origin[k]
    by = _by_block(number, offset)
    number, offset, values = number[:, by], offset[by], values[by]
    fresh = (number[:, 1:] != number[:, :-1]).any(axis=0)
    starts = _cut(np.concatenate([[0], np.flatnonzero(fresh) + 1]), len(offset))
    lo = np.empty((len(starts), len(sides)), np.int64)
    for k, corner in enumerate(origin):
        lo[:, k] = corner[by[starts]]
    stops = np.append(starts[1:], len(offset))
    return Blocks(offset, values, starts, stops, lo, _ends(lo, sides, segments, hi))


def _cut(starts: Array, count: int) -> Array:
    """Return the starts of blocks, with further ones in those of more elements than a row may hold."""
    lengths = np.diff(starts, append=count)
    if int(lengths.max()) <= MAX_ELEMENTS:
        return starts
    parts = [
        np.arange(start, start + length, MAX_ELEMENTS)
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    return np.concatenate(parts)


def _ends(
    lo: Array, sides: Sequence[int], segments: Sequence[Sequence[int]], hi: Sequence[int]
) -> Array:
    """Return the upper corners of blocks: clipped to the next run of the grid, and to the tensor."""
    ends: Array = np.array(hi, np.int64) - lo
    for k, starts in enumerate(segments):
        if len(starts) > 1:
            following = np.array([*starts[1:], hi[k]])
            run = np.searchsorted(np.array(starts), lo[:, k], side="right") - 1
            ends[:, k] = np.minimum(ends[:, k], following[run] - lo[:, k])
    # Lengths first: near 2**63 a corner and a side do not add up.
    return np.asarray(lo + np.minimum(ends, np.array(sides, np.int64)))


def _by_block(number: Array, offset: Array) -> Array:
    """Return the order by block, and by offset in it: one sort of packed integers where they fit."""
    count = len(offset)
    if not len(number):
        return np.arange(count)
    lo, hi = number.min(axis=1), number.max(axis=1)
    sides = (hi - lo + 1).tolist()
    low_bits = int(offset.max()).bit_length()
    place_bits = (count - 1).bit_length()
    if math.prod(sides).bit_length() + low_bits + place_bits > 63:
        return np.lexsort((offset, *number[::-1]))
    key: Array = ravel(number - lo[:, None], sides)
    key <<= low_bits
    key |= offset
    key <<= place_bits
    key |= np.arange(count)
    key.sort()
    key &= (1 << place_bits) - 1
    return key
