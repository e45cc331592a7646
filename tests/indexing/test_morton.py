"""Morton order: a sequence in which aligned cubes are runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.indexing import morton_order


def interleaved(point):
    """The plain reading: bit by bit, the first axis above the second."""
    bits = max(int(c).bit_length() for c in point)
    text = "".join(str(int(c) >> b & 1) for b in reversed(range(bits)) for c in point)
    return int(text or "0", 2)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.tuples(*[st.integers(0, 2**20)] * n), min_size=1, max_size=40)
    )
)
def test_bits_are_interleaved_and_equal_points_keep_their_order(points):
    order = morton_order(np.array(points, np.int64)).tolist()
    assert sorted(order) == list(range(len(points)))
    keys = [interleaved(points[i]) for i in order]
    assert all(a < b or (a == b and i < j) for a, b, i, j in
               zip(keys, keys[1:], order, order[1:], strict=False))  # fmt: skip


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_aligned_cubes_are_runs(axes):
    side = 8
    places = np.stack(np.unravel_index(np.arange(side**axes), (side,) * axes), axis=1)
    sequence = places[morton_order(places)]
    for power in (1, 2):
        cube = 2**power
        for run in sequence.reshape(-1, cube**axes, axes):
            assert (run.max(axis=0) - run.min(axis=0) == cube - 1).all()
            assert (run.min(axis=0) % cube == 0).all()


def test_nothing_has_an_order():
    assert morton_order(np.zeros((0, 2), np.int64)).tolist() == []
