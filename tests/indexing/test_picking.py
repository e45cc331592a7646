"""Sparse elements: NumPy on the dense array says which are picked and where they go."""

import math

import numpy as np
import pytest
from examples import times
from hypothesis import assume, given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing import (
    lift,
    locate,
    place,
    select,
    select_orthogonal,
    select_points,
)
from tensorlake_spark.indexing.coords import check_coords, check_shape, order, ravel
from tensorlake_spark.layouts.testing.strategies import mixed_keys


def numpy_orthogonal(x, key):
    """Every axis on its own, the last one first, so that the others keep their places."""
    for axis in reversed(range(len(key))):
        index = (*(slice(None),) * axis, key[axis])
        x = x[index]
    return x


def slices(n):
    """Slices of both directions; most of those that Hypothesis draws have a step of one."""
    bound = st.none() | st.integers(-n - 1, n + 1)
    return st.slices(n) | st.builds(slice, bound, bound, st.sampled_from([-3, -2, -1, 1, 2, 3]))


def index_arrays(n):
    """Index arrays of rank 1: unordered, with repetitions, negative, empty; or masks."""
    if n == 0:
        return st.just(np.zeros(0, np.int64))
    indices = st.lists(st.integers(-n, n - 1), max_size=6).map(lambda found: np.array(found, int))
    return indices | st.lists(st.booleans(), min_size=n, max_size=n).map(np.array)


@st.composite
def picks(draw, shape):
    """A selection of any kind, and the same pick by NumPy."""
    kind = draw(st.sampled_from(["basic", "array", "oindex", "vindex", "mask", "mixed", "mixed"]))
    if kind == "mixed":
        key = draw(mixed_keys(shape))
        try:
            return select(key, shape), lambda x: x[key]
        except InvalidKeyError:
            assume(False)
    if kind == "mask" and shape:
        mask = np.random.default_rng(draw(st.integers(0, 99))).random(shape) < 0.3
        return select_points(mask, shape), lambda x: x[mask]
    if kind == "vindex" and shape and 0 not in shape:
        grid = draw(st.sampled_from([(), (0,), (5,), (2, 3), (2, 0)]))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        key = tuple(rng.integers(-n, n, grid) for n in shape)
        return select_points(key, shape), lambda x: x[key]
    if kind == "oindex":
        key = tuple(
            draw(st.one_of(slices(n), index_arrays(n), *([st.integers(-n, n - 1)] if n else [])))
            for n in shape
        )
        return select_orthogonal(key, shape), lambda x: numpy_orthogonal(x, key)
    parts = [draw(slices(n) | st.integers(-n, n - 1)) if n else draw(slices(n)) for n in shape]
    if kind == "array" and shape:
        axis = draw(st.integers(0, len(shape) - 1))
        parts[axis] = draw(index_arrays(shape[axis]))
        if draw(st.booleans()) and parts[axis].dtype != bool:
            parts[axis] = np.stack([parts[axis], parts[axis][::-1]])
    if draw(st.booleans()):  # what an Ellipsis stands for, it may be nothing
        first = draw(st.integers(0, len(parts)))
        parts[first : draw(st.integers(first, len(parts)))] = [...]
    else:
        parts = parts[: draw(st.integers(0, len(parts)))]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    key = tuple(parts)
    return select(key, shape), lambda x: x[key]


@st.composite
def elements(draw):
    """A tensor, and its stored elements in any order: coordinates and values, all of them distinct."""
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = np.arange(1, math.prod(shape) + 1).reshape(shape)
    x[rng.random(shape) > draw(st.sampled_from([0, 0.2, 0.7, 1]))] = 0
    coords = rng.permutation(np.argwhere(x)).T
    return x, coords, x.reshape(-1)[ravel(coords, shape)]


def dense(shape, coords, values):
    """Put elements into an array, each of them once."""
    assert coords.dtype == np.int64
    assert coords.shape == (len(shape), len(values))
    places = ravel(coords, shape)
    assert len(np.unique(places)) == len(places), "no element goes where another one is"
    out = np.zeros(shape, int)
    out.reshape(-1)[places] = values
    return out


@times(4)
@given(st.data())
def test_what_numpy_picks_goes_where_numpy_puts_it(data):
    x, coords, values = data.draw(elements())
    selection, numpy_picks = data.draw(picks(x.shape))
    take, out = locate(selection, coords)
    assert take.dtype == np.int64
    assert (np.diff(take) >= 0).all(), "in the order in which they were given"
    stored = dense(selection.storage_shape, out, values[take])
    if hasattr(selection, "finish"):
        np.testing.assert_array_equal(selection.finish(stored), numpy_picks(x))
    coords_in_result = place(selection, out)
    result = dense(selection.result_shape, coords_in_result, values[take])
    np.testing.assert_array_equal(result, numpy_picks(x))
    kept, back = lift(selection, coords_in_result)
    np.testing.assert_array_equal(back, coords[:, take[kept]])
    assert sorted(set(take.tolist())) == sorted(take[kept].tolist()), "each element comes back once"


def test_the_whole_costs_no_copy():
    coords = np.array([[0, 2], [1, 0]])
    selection = select(..., (3, 2))
    take, out = locate(selection, coords)
    assert take.tolist() == [0, 1]
    assert out is coords
    assert place(selection, out) is out


def test_neither_changes_what_it_is_given():
    coords = np.array([[1, 4, 7], [0, 1, 2]])
    coords.flags.writeable = False
    for key in [np.s_[1:8:3, ::-1], np.s_[[7, 1, 7]], np.s_[4]]:
        selection = select(key, (9, 3))
        out = locate(selection, coords)[1]
        out.flags.writeable = False
        place(selection, out)


@pytest.mark.parametrize("indices", [[2**61, 5, 2**61], [5, 6]])
def test_axes_as_long_as_int64_counts(indices):
    """The search for an index takes no memory of the axis' length."""
    coords = np.array([[5, 2**61, 2**62 - 1]])
    take, out = locate(select((indices,), (2**62,)), coords)
    want = [(t, o) for t, c in enumerate([5, 2**61]) for o, i in enumerate(indices) if i == c]
    assert list(zip(take.tolist(), out[0].tolist())) == want
    corner = select_points(([0, 2**31 - 1], [1, 2**31 - 1]), (2**31, 2**31))
    take, out = locate(corner, np.array([[2**31 - 1, 7], [2**31 - 1, 7]]))
    assert (take.tolist(), out.tolist()) == ([0], [[1]])


def test_an_index_that_repeats_makes_every_pair():
    selection = select_orthogonal(([1, 1, 0], [2, 2]), (2, 3))
    take, out = locate(selection, np.array([[0, 1, 1], [2, 1, 2]]))
    assert take.tolist() == [0, 0, 2, 2, 2, 2]
    assert sorted(zip(*out[:, take == 2].tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1)]


@given(elements())
def test_order_is_c_order(drawn):
    x, coords, values = drawn
    coords, values = order(coords, values, x.shape)
    np.testing.assert_array_equal(coords, np.argwhere(x).T)
    np.testing.assert_array_equal(values, x[x != 0])
    again = order(coords, values, x.shape)
    assert again[0] is coords
    assert again[1] is values


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 9)), max_size=12))
def test_duplicates_are_combined_as_told(triples):
    coords = np.array([t[:2] for t in triples], np.int64).reshape(-1, 2).T
    values = np.array([t[2] for t in triples], np.int64)
    total, last = np.zeros((2, 3, 3), int)
    np.add.at(total, tuple(coords), values)
    for i, j, value in triples:
        last[i, j] = value
    for rule, want in [("sum", total), ("last", last)]:
        np.testing.assert_array_equal(dense((3, 3), *order(coords, values, (3, 3), rule)), want)
    repeats = len(triples) - len({t[:2] for t in triples})
    if repeats:
        with pytest.raises(InvalidTensorError, match=f"repeat a coordinate: {repeats}, the first"):
            order(coords, values, (3, 3))


def test_sums_keep_the_dtype():
    coords = np.zeros((1, 3), np.int64)
    for dtype, want in [("uint8", 2), ("bool", True), ("timedelta64[s]", 258), ("float32", 258)]:
        values = np.array([1, 2, 255]).astype(dtype)
        _, summed = order(coords, values, (1,), "sum")
        assert summed.dtype == values.dtype
        assert summed[0] == np.array(want).astype(dtype)
    with pytest.raises(InvalidTensorError, match=r"datetime64\[D\] cannot be summed"):
        order(coords, np.zeros(3, "datetime64[D]"), (1,), "sum")


def test_an_unknown_rule_is_an_error_without_duplicates_too():
    with pytest.raises(InvalidOptionError, match="'summ'; did you mean 'sum'"):
        order(np.zeros((1, 0), np.int64), np.zeros(0), (1,), "summ")


@pytest.mark.parametrize(
    ("coords", "shape", "match"),
    [
        ([[0.0, 1.0]], (3,), "coordinates are integers, not float64"),
        (np.zeros((1, 0)), (3,), "coordinates are integers, not float64"),
        ([[True]], (3,), "not bool"),
        ([["a"]], (3,), "not <U1"),
        ([0, 1], (3,), r"shape \(2,\) for a tensor of shape \(3,\)"),
        ([[0], [1]], (3,), r"shape \(2, 1\) for a tensor of shape \(3,\)"),
        ([[0, 1], [1]], (3, 3), "differ in number"),
        ([[0, 1], [0, -1]], (2, 2), "coordinate -1 is out of bounds for axis 1 with size 2"),
        ([[0, 1], [0, 2]], (2, 2), "coordinate 2 is out of bounds for axis 1 with size 2"),
        ([[0]], (0,), "coordinate 0 is out of bounds for axis 0 with size 0"),
        (np.array([[2**64 - 1]], np.uint64), (3,), "coordinate 18446744073709551615 is out"),
    ],
)
def test_coordinates_that_are_none(coords, shape, match):
    with pytest.raises(InvalidTensorError, match=match):
        check_coords(coords, shape)


def test_coordinates_of_any_integer_dtype():
    for dtype in ("uint8", "int32", "uint64", ">i8"):
        found = check_coords(np.array([[0, 2], [1, 1]], dtype, order="F"), (3, 2))
        assert found.dtype == np.int64
        assert found.flags.c_contiguous
        assert found.tolist() == [[0, 2], [1, 1]]
    assert check_coords([[], []], (3, 2)).shape == (2, 0)
    assert check_coords(np.zeros((0, 1), int), ()).shape == (0, 1)


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ((3, -1), "axis 1 has length -1"),
        ((2**32, 2**31), "9223372036854775808 elements; fewer than 2"),
        (3, "shape 3 is not a sequence of integers"),
        ((3.0,), "not a sequence of integers"),
    ],
)
def test_shapes_that_are_none(shape, match):
    with pytest.raises(InvalidTensorError, match=match):
        check_shape(shape)


def test_shapes_at_the_limit():
    assert check_shape((2**62, 1)) == (2**62, 1)
    assert check_shape((2**62, 2**62, 0)) == (2**62, 2**62, 0)
    assert check_shape(()) == ()
