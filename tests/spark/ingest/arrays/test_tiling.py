"""Bands of an array: every element in one of them, whole chunks, bounded bytes."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.spark.ingest.arrays.tiling import BAND_BYTES, Tiling, tiling

SIDES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=3)


@given(SIDES)
def test_every_element_lies_in_one_box(sides):
    tiles = Tiling(tuple(n for n, _ in sides), tuple(step for _, step in sides))
    seen = np.zeros(tiles.shape, int)
    for number in range(tiles.count):
        seen[tuple(map(slice, *tiles.box(number)))] += 1
    assert (seen == 1).all()


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4, 8, 16]),
)  # fmt: skip
def test_bands_have_whole_chunks_and_at_most_so_many_bytes(sides, itemsize):
    shape, chunks, block = (tuple(side) for side in zip(*sides))
    step = tiling(shape, itemsize, chunks, block).step
    nbytes = math.prod(step) * itemsize
    own = math.prod(min(c, max(1, n)) for c, n in zip(chunks, shape)) * itemsize
    assert nbytes <= max(BAND_BYTES, own)
    if own <= BAND_BYTES:
        assert all(s % c == 0 or s >= n for s, c, n in zip(step, chunks, shape))
    free = tiling(shape, itemsize).step
    assert math.prod(free) * itemsize <= BAND_BYTES
