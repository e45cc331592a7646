"""Single elements as a selection: NumPy is the oracle."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from work import calls, peak_bytes

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


@given(st.integers(0, 2**32), st.sampled_from([0, 9, 1 << 16]))
def test_boxes_of_any_corners_are_hit_where_a_point_lies(seed, cells):
    """Also where so small a table is made that the boxes have to be parted, and beyond the tensor."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 12, rng.integers(1, 4)).tolist())
    count = int(rng.choice([1, 3, 40, 400]))
    coords = np.array([rng.integers(0, n, count) for n in shape])
    corners = np.sort([[rng.integers(0, n + 3, 30) for n in shape] for _ in range(2)], axis=0)
    lo, hi = corners.transpose(0, 2, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tensorlake_spark.indexing.point_selection._CELLS", cells)
        got = PointSelection(shape, coords, (count,)).hits(lo, hi)
    points = coords.T
    inside = (points >= lo[:, None]) & (points < hi[:, None])
    assert got.tolist() == inside.all(axis=2).any(axis=1).tolist()


def test_a_point_that_is_given_twice_comes_in_the_order_of_the_caller():
    coords = np.array([[5, 2, 5, 2, 5], [1, 1, 1, 1, 1]])
    _, dst = PointSelection((9, 3), coords, (5,)).project((0, 0), (9, 3))
    assert dst[0].tolist() == [1, 3, 0, 2, 4]


def test_a_million_points_are_held_against_all_boxes_at_once():
    rng = np.random.default_rng(0)
    shape = (256, 256, 256)
    points = PointSelection(
        shape, np.array([rng.integers(0, 64, 1 << 20) for _ in shape]), (1 << 20,)
    )

    def hits(side):
        steps = np.meshgrid(*[np.arange(0, 256, side)] * 3, indexing="ij")
        lo = np.stack(steps, axis=-1).reshape(-1, 3)
        return points.hits(lo, lo + side), (lo < 64).all(axis=1)

    got, want = hits(25)
    assert (got == want).all()
    assert calls(lambda: hits(12)) == calls(lambda: hits(50)), "10,648 boxes as well as 216"
    assert peak_bytes(lambda: hits(12)) < 4 * points.coords.nbytes


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
