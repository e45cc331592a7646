"""Single elements as a selection: NumPy is the oracle."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import PointSelection


@st.composite
def cases(draw):
    """A shape, points in it, and boxes that tile it."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    count = draw(st.integers(0, 12))
    coords = np.array([rng.integers(0, n, count) for n in shape])
    block = [draw(st.integers(1, n)) for n in shape]
    steps = [np.arange(0, n, b) for n, b in zip(shape, block)]
    lo = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, len(shape))
    return shape, coords, lo, np.minimum(lo + block, shape)


@given(cases())
def test_what_is_put_together_from_blocks_is_what_numpy_picks(case):
    shape, coords, lo, hi = case
    x = np.arange(math.prod(shape)).reshape(shape)
    points = PointSelection(shape, coords, (coords.shape[1],))
    out = np.full(points.storage_shape, -1)
    hits = points.hits(lo, hi)
    for a, b, hit in zip(lo, hi, hits):
        src, dst = points.project(a, b)
        assert hit == (len(dst[0]) > 0)
        out[dst] = x[tuple(map(slice, a, b))][src]
    assert (points.finish(out) == x[tuple(coords)]).all()


@given(cases())
def test_the_box_is_the_smallest_one(case):
    shape, coords, *_ = case
    points = PointSelection(shape, coords, (coords.shape[1],))
    if points.is_empty:
        assert points.box.is_empty
        return
    assert points.box.lo == tuple(coords.min(axis=1))
    assert points.box.hi == tuple(coords.max(axis=1) + 1)
    named = {axis: (a, b) for axis, a, b in points.ranges()}
    for axis, (a, b) in enumerate(zip(points.box.lo, points.box.hi)):
        assert named.get(axis, (0, shape[axis])) == (a, b)


def test_one_point_is_a_scalar_and_travels():
    points = PointSelection((4, 3), np.array([[2], [1]]), ())
    assert points.is_scalar
    assert points.finish(np.array([7])) == 7
    again = pickle.loads(pickle.dumps(points))
    assert (again.coords == points.coords).all()


def test_points_outside_are_refused():
    with pytest.raises(InvalidKeyError, match="index 4 is out of bounds for axis 0 with size 4"):
        PointSelection((4, 3), np.array([[4], [1]]), ())
    with pytest.raises(InvalidKeyError, match="index -1 is out of bounds for axis 1 with size 3"):
        PointSelection((4, 3), np.array([[0], [-1]]), ())
    with pytest.raises(InvalidKeyError, match=r"shape \(1, 1\) for a tensor of shape \(4, 3\)"):
        PointSelection((4, 3), np.array([[0]]), ())
