"""Points crossed with runs: what is hit, where it lies, and views of the answer; loops and NumPy are the oracles."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import MixedSelection, PointSelection, Run, Selection, select


@st.composite
def mixed(draw):
    """A selection of points on some axes, and the indices that it picks one by one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(rng.integers(1, 6, rng.integers(2, 5)).tolist())
    count = int(rng.integers(1, len(shape)))
    axes = tuple(sorted(rng.choice(len(shape), count, replace=False).tolist()))
    lengths = tuple(shape[k] for k in axes)
    number = int(rng.integers(0, 5))
    points = PointSelection(
        lengths, np.array([rng.integers(0, n, number) for n in lengths]), (number,)
    )
    others = tuple(n for k, n in enumerate(shape) if k not in axes)
    starts = [int(rng.integers(0, n + 1)) for n in others]
    steps = [int(rng.integers(1, 3)) for _ in others]
    runs = tuple(Run(a, n, s) for a, n, s in zip(starts, others, steps, strict=True))
    selection = MixedSelection(shape, axes, points, Selection(others, runs), 0)
    picked = set()
    ranges = [range(run.start, run.stop, run.step) for run in runs]
    for point, rest in product(points.coords.T.tolist(), product(*ranges)):
        index = dict(zip((*axes, *selection.others), (*point, *rest), strict=True))
        picked.add(tuple(index[k] for k in range(len(shape))))
    return selection, picked


@given(mixed(), st.integers(0, 99))
def test_a_box_is_hit_where_something_in_it_is_picked(drawn, seed):
    selection, picked = drawn
    rng = np.random.default_rng(seed)
    corners = np.sort(
        [[rng.integers(0, n + 1, 20) for n in selection.shape] for _ in range(2)], axis=0
    )
    lo, hi = corners.transpose(0, 2, 1)
    inside = [
        any(all(a <= i < b for i, a, b in zip(index, low, high, strict=True)) for index in picked)
        for low, high in zip(lo.tolist(), hi.tolist(), strict=True)
    ]
    assert selection.hits(lo, hi).tolist() == inside


@given(mixed())
def test_the_box_is_the_smallest_one(drawn):
    selection, picked = drawn
    assert selection.is_empty == (not picked)
    if not picked:
        assert selection.box.is_empty
        return
    indices = np.array(sorted(picked))
    assert selection.box.lo == tuple(indices.min(axis=0))
    assert selection.box.hi == tuple(indices.max(axis=0) + 1)
    assert selection.ranges() == selection.box.ranges(selection.shape)


def test_points_lie_where_numpy_has_them_in_a_block():
    for key, shape in [
        (np.s_[:, [0, 1], [1, 2]], (9, 2)),
        (np.s_[[0, 1], :, [1, 2]], (2, 9)),
        (np.s_[[[0, 1]], [1, 2], :], (2, 9)),
    ]:
        selection = select(key, (9, 9, 9))
        assert selection.storage_shape == shape
        src, _ = selection.project((0, 0, 0), (9, 9, 9))
        assert np.zeros((9, 9, 9))[src].shape == shape


def test_answers_are_views_of_what_storage_returned_and_the_other_way_round():
    for key in [
        np.s_[::-1, None, [1, 2], [3, 4]],
        np.s_[[[0], [1]], :, [2, 0]],
        np.s_[[1], ..., [2, 0]],
    ]:
        selection = select(key, (3, 4, 5))
        out = np.zeros(selection.storage_shape)
        assert np.shares_memory(selection.finish(out), out)
        answer = np.zeros(selection.result_shape)
        stage = selection.staged(answer)
        if selection.points.result_shape == (2,):
            assert np.shares_memory(stage, answer)
            assert stage.shape == selection.storage_shape
        else:
            assert stage is None


def test_it_travels():
    selection = select(np.s_[[0, 2], ::2, [1, 3]], (3, 9, 4))
    _ = selection.hits(np.zeros((1, 3), int), np.array([[3, 9, 4]]))
    again = pickle.loads(pickle.dumps(selection))
    assert (again.shape, again.axes, again.storage_shape) == ((3, 9, 4), (0, 2), (2, 5))
    assert (again.points.coords == selection.points.coords).all()
    assert not again.is_scalar
    assert not again.is_box


def test_parts_that_make_up_no_tensor_are_refused():
    points, rest = PointSelection((3,), np.array([[0]]), (1,)), Selection((4,), (Run(0, 4),))
    assert MixedSelection((4, 3), (1,), points, rest, 0).result_shape == (1, 4)
    for shape, some in [
        ((4, 3), rest),
        ((3, 4, 5), rest),
        ((3, 4), Selection((4,), (Run(0, 1),), drops=(0,))),
    ]:
        with pytest.raises(
            InvalidKeyError, match=r"points on axes \(0,\) of shape \(3,\) and runs of"
        ):
            MixedSelection(shape, (0,), points, some, 0)
