"""The normal form: its invariants, what it asks of storage, what it does with the answer."""

import pickle

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import (
    Box,
    Points,
    PointSelection,
    Predicate,
    Run,
    Selection,
    select,
    select_orthogonal,
    select_points,
)


def kinds(n):
    """Strategies for the pick of one axis; most of them pick something."""
    strided = st.builds(slice, st.none(), st.none(), st.sampled_from([1, 2, 3, -1, -2]))
    points = st.lists(st.integers(0, n - 1), min_size=1, max_size=3)
    some = [st.integers(0, n - 1), st.slices(n), strided, strided, points, points]
    return [*some, *some, st.just([])]


@st.composite
def selections(draw):
    """A selection of any kind, and the elements that it picks, marked in an array."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6]), min_size=1, max_size=4)))
    if draw(st.integers(0, 3)) == 0:
        count = draw(st.integers(0, 4))
        coords = [
            draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)) for n in shape
        ]
        picked = np.zeros(shape, bool)
        picked[tuple(np.array(c, int) for c in coords)] = True
        return select_points(tuple(coords), shape), picked
    key = tuple(draw(st.sampled_from(kinds(n)).flatmap(lambda kind: kind)) for n in shape)
    index = [np.atleast_1d(np.arange(n)[k]) for n, k in zip(shape, key)]
    picked = np.zeros(shape, bool)
    picked[np.ix_(*index)] = True
    return select_orthogonal(key, shape), picked


@st.composite
def loose_boxes(draw, shape):
    """Boxes that lie on no grid: they overlap one another, and some are empty."""
    corner = st.tuples(*(st.tuples(st.integers(0, n), st.integers(0, n)) for n in shape))
    sides = np.array(draw(st.lists(corner, max_size=8)), np.int64).reshape(-1, len(shape), 2)
    return sides.min(axis=2), sides.max(axis=2)


@times(6)
@given(st.data())
def test_hits_and_project_find_just_what_is_picked(data):
    selection, picked = data.draw(selections())
    lo, hi = data.draw(loose_boxes(picked.shape))
    boxes = [Box(tuple(a), tuple(b)) for a, b in zip(lo.tolist(), hi.tolist())]
    hits = selection.hits(lo, hi)
    assert hits.tolist() == [bool(picked[box.slices()].any()) for box in boxes]
    assert not (hits & ~Predicate.of("x", selection).matches(lo, hi)).any(), "inclusive"
    for box in boxes:
        src, dst = selection.project(box.lo, box.hi)
        mark = np.zeros(box.shape, bool)
        mark[src] = True
        np.testing.assert_array_equal(mark, picked[box.slices()])
        place = np.zeros(selection.storage_shape, int)
        place[dst] += 1
        assert place.max(initial=0) <= 1


@given(selections())
def test_the_box_is_the_smallest_and_ranges_are_its_sides(drawn):
    selection, picked = drawn
    where = np.argwhere(picked)
    assert selection.is_empty == (len(where) == 0)
    if selection.is_empty:
        assert selection.box.is_empty
        everywhere = np.zeros((1, picked.ndim), np.int64), np.array([picked.shape])
        assert not Predicate.of("x", selection).matches(*everywhere).any()
        return
    assert selection.box == Box(tuple(where.min(axis=0)), tuple(where.max(axis=0) + 1))
    sides = dict(enumerate(zip(selection.box.lo, selection.box.hi)))
    for axis, lo, hi in selection.ranges():
        assert sides.pop(axis) == (lo, hi) != (0, picked.shape[axis])
    assert all(side == (0, picked.shape[axis]) for axis, side in sides.items())
    if selection.is_box:
        assert picked[selection.box.slices()].all()


@given(selections())
def test_selections_travel_to_executors(drawn):
    selection, picked = drawn
    assert selection.is_empty == (selection.box.size == 0)  # fills what is cached
    there = pickle.loads(pickle.dumps(selection))
    assert (there.box, there.ranges()) == (selection.box, selection.ranges())
    assert there.result_shape == selection.result_shape
    lo, hi = np.zeros((1, picked.ndim), np.int64), np.array([picked.shape])
    assert there.hits(lo, hi).tolist() == selection.hits(lo, hi).tolist() == [picked.any()]
    assert len(pickle.dumps(selection)) < 800, "what is cached stays here"


@given(st.integers(0, 9), st.integers(0, 20), st.integers(1, 25))
def test_a_run_in_normal_form_picks_the_same(start, stop, step):
    run = Run(start, stop, step)
    assert list(range(run.start, run.stop, run.step)) == list(range(start, stop, step))
    assert run.count == len(range(start, stop, step))
    if run.count == 0:
        assert run == Run(0, 0, 1)
    if run.count == 1:
        assert run == Run(start, start + 1, 1)


@pytest.mark.parametrize(("start", "stop", "step"), [(-3, 2, 1), (0, 4, 0), (0, 4, -1)])
def test_a_run_that_does_not_ascend_from_0_is_refused(start, stop, step):
    with pytest.raises(InvalidKeyError, match=f"{start}:{stop}:{step}"):
        Run(start, stop, step)


@times(2)
@given(st.data())
def test_of_an_element_given_twice_the_last_value_stays(data):
    """As NumPy assigns: partial writes go through `project` the other way round."""
    shape = (6, 5)
    count = data.draw(st.sampled_from([1, 2, 8, 40]))
    index = [
        data.draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)) for n in shape
    ]
    if data.draw(st.booleans()):
        selection, key = select_points(tuple(index), shape), tuple(index)
    else:
        selection, key = select_orthogonal(tuple(index), shape), np.ix_(*index)
    values = np.arange(1, np.prod(selection.storage_shape) + 1).reshape(selection.storage_shape)
    want, got = np.zeros(shape, int), np.zeros(shape, int)
    want[key] = values
    for corner in np.ndindex(2, 2):
        box = Box(
            tuple(3 * c for c in corner), tuple(min(3 * c + 3, n) for c, n in zip(corner, shape))
        )
        src, dst = selection.project(box.lo, box.hi)
        got[box.slices()][src] = values[dst]
    np.testing.assert_array_equal(got, want)


@times(2)
@given(st.data())
def test_many_points_against_many_boxes(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shape = tuple(rng.integers(1, 20, data.draw(st.integers(1, 4))).tolist())
    points = tuple(rng.integers(0, n, 60) for n in shape)
    sides = np.sort([[rng.integers(0, n + 3, 2) for n in shape] for _ in range(40)])
    lo, hi = sides[..., 0], sides[..., 1]
    coords = np.array(points)[None]
    want = ((coords >= lo[..., None]) & (coords < hi[..., None])).all(axis=1).any(axis=1)
    assert select_points(points, shape).hits(lo, hi).tolist() == want.tolist()


def test_many_points_and_rows_take_no_square_of_time_or_memory():
    """A mask of a tensor picks millions; 1e5 points against 5e4 rows were 5e9 comparisons."""
    shape, rng = (100_000, 64), np.random.default_rng(0)
    selection = select_points(tuple(rng.integers(0, n, 100_000) for n in shape), shape)
    lo = np.stack([np.arange(0, 100_000, 2), np.zeros(50_000, int)], axis=1)
    hi = lo + np.array((2, 64))
    assert selection.hits(lo, hi).mean() == pytest.approx(1 - np.exp(-2), abs=0.01)


def test_a_key_may_pick_more_than_numpy_can_hold():
    """Planning counts only."""
    selection = select((None, ..., [[1], [2]]), (2**50, 2**50, 4))
    assert selection.result_shape == (1, 2**50, 2**50, 2, 1)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Points(np.array([3, -1])), "the least is -1"),
        (lambda: Points(np.array([1.0])), "float64"),
        (lambda: Points(np.array([[1]])), "rank 2"),
        (lambda: Selection((3, 4), (Run(0, 3),)), "1 picks for a tensor of shape"),
        (
            lambda: Selection((3, 4), (Run(0, 3), Run(0, 7, 3))),
            "index 6 is out of bounds for axis 1",
        ),
        (
            lambda: Selection((3,), (Points(np.array([3, 0])),)),
            "index 3 is out of bounds for axis 0",
        ),
        (lambda: PointSelection((3, 4), np.zeros((1, 2), int), (2,)), "for a tensor of shape"),
        (lambda: PointSelection((3,), np.array([[0, 3]]), (2,)), "index 3 is out of bounds"),
        (lambda: PointSelection((3,), np.array([[0, -1]]), (2,)), "index -1 is out of bounds"),
    ],
)
def test_what_is_no_normal_form_is_refused(build, says):
    with pytest.raises(InvalidKeyError, match=says):
        build()


def test_one_index_array_stands_among_slices():
    """NumPy copies slices much faster than it gathers: a shuffled batch of images must not pay."""
    src, dst = select((slice(None), [5, 1, 5]), (3, 8, 4)).project((0, 4, 0), (3, 8, 4))
    assert [type(part) for part in src] == [slice, np.ndarray, slice]
    assert src[1].tolist() == [1, 1]
    assert dst[1].tolist() == [0, 2]


def test_answers_are_views_of_what_storage_returned():
    """Assignment writes through them."""
    for key in [np.s_[::-1, None, 2], np.s_[1:, ...], np.s_[2, :, [[0, 1]]], np.s_[[[0], [1]], 1]]:
        selection = select(key, (3, 4, 5))
        out = np.zeros(selection.storage_shape)
        assert np.shares_memory(selection.finish(out), out)


def test_selections_of_tensors_without_axes():
    lo = hi = np.zeros((2, 0), np.int64)
    for selection in (Selection((), ()), select((), ()), select_points((), ())):
        assert selection.hits(lo, hi).tolist() == [True, True]
        assert not selection.is_empty
        assert selection.ranges() == ()
    assert not select_points(np.array(False), ()).hits(lo, hi).any()
    assert isinstance(select_points((), ()), PointSelection)
    assert Points(np.array([], np.int64)).bounds == (0, 0)
