"""Keys mean what they mean in NumPy, over any chunk grid."""

import contextlib
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidSliceError,
)
from tensorlake_spark.indexing import (
    Box,
    Grid,
    select,
    select_orthogonal,
    select_points,
)

SHAPES = st.lists(st.integers(0, 6), max_size=6).map(tuple)


def assemble(x, selection, data):
    """Read a selection the way the lake does: cell by cell of a random grid."""
    chunk = tuple(data.draw(st.integers(1, 4)) for _ in x.shape)
    out = np.full(selection.storage_shape, -1, x.dtype)
    wanted = 0
    cells = list(Grid(x.shape, chunk).cells(Box.whole(x.shape)))
    lo = np.array([c.lo for c in cells], np.int64).reshape(len(cells), x.ndim)
    hi = np.array([c.hi for c in cells], np.int64).reshape(len(cells), x.ndim)
    hits = selection.hits(lo, hi)
    for cell, hit in zip(cells, hits):
        src, dst = selection.project(cell.lo, cell.hi)
        part = x[cell.slices()][src]
        assert hit == (part.size > 0), "rows asked for = rows that overlap, no more and no less"
        if hit:
            out[dst] = part
            wanted += part.size
    if out.size:
        assert wanted == out.size, "every element is delivered once"
    return selection.finish(out)


def one(size):
    integers = st.integers(-size - 1, size)
    slices = st.slices(size)
    wild = st.builds(
        slice,
        st.none() | st.integers(-9, 9),
        st.none() | st.integers(-9, 9),
        st.none() | st.sampled_from([1, 2, 3, -1, -2, -4, 2**70, -(2**70)]),
    )
    return integers | integers.map(Index) | integers.map(np.int16) | slices | wild


class Index:
    """An integer by its ``__index__`` alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


@st.composite
def index_arrays(draw, n):
    """An index array of rank 2 or 3, or a list."""
    shape = draw(st.lists(st.integers(0, 3 if n else 0), min_size=2, max_size=3))
    size = int(np.prod(shape))
    values = draw(st.lists(st.integers(-n, max(0, n - 1)), min_size=size, max_size=size))
    array = np.array(values, np.int64).reshape(shape)
    return draw(st.sampled_from([array, array.astype(np.int8), array.tolist()]))


@st.composite
def keys(draw, shape):
    key = [draw(one(n)) for n in shape[: draw(st.integers(0, len(shape)))]]
    if key and draw(st.integers(0, 2)) == 0:
        axis = draw(st.integers(0, len(key) - 1))
        n = shape[axis]
        kind = draw(st.sampled_from(["list", "mask", "array"]))
        if kind == "array":
            key[axis] = draw(index_arrays(n))
        elif kind == "list":
            key[axis] = draw(st.lists(st.integers(-n, max(0, n - 1)), max_size=5))
        else:
            key[axis] = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    if draw(st.integers(0, 2)) == 0:
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@settings(max_examples=2500)
@given(st.data())
def test_every_key_means_what_numpy_means(data):
    shape = data.draw(SHAPES, label="shape")
    x = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    key = data.draw(keys(shape), label="key")
    try:
        want = x[key]
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            select(key, shape)
        return
    if x.size == 0 and any(isinstance(part, np.ndarray) for part in key):
        # NumPy lets a mask of the wrong length pass where the tensor is empty; we may not.
        with contextlib.suppress(InvalidKeyError):
            select(key, shape)
        return
    selection = select(key, shape)
    got = assemble(x, selection, data)
    assert type(got) is type(want)
    assert np.shape(got) == np.shape(want) == selection.result_shape
    np.testing.assert_array_equal(got, want)


@settings(max_examples=600)
@given(st.data())
def test_oindex_picks_every_axis_on_its_own(data):
    shape = data.draw(st.lists(st.integers(0, 5), max_size=4).map(tuple))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    key, index, drops = [], [], []
    for axis, n in enumerate(shape):
        kind = data.draw(st.sampled_from(["slice", "list", "mask", "int"])) if n else "slice"
        if kind == "slice":
            part = data.draw(st.slices(n))
            index.append(np.arange(n)[part])
        elif kind == "list":
            part = data.draw(st.lists(st.integers(-n, n - 1), max_size=4))
            index.append(np.array(part, int) % n)
        elif kind == "mask":
            part = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
            index.append(np.flatnonzero(part))
        else:
            part = data.draw(st.integers(-n, n - 1))
            index.append(np.array([part % n]))
            drops.append(axis)
        key.append(part)
    want = x[np.ix_(*index)] if shape else x
    want = want.reshape([n for k, n in enumerate(want.shape) if k not in drops])
    got = assemble(x, select_orthogonal(tuple(key), shape), data)
    np.testing.assert_array_equal(got, want)


@settings(max_examples=600)
@given(st.data())
def test_vindex_picks_single_elements(data):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    if data.draw(st.booleans()):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=x.size, max_size=x.size)))
        key = mask.reshape(shape)
    else:
        count = data.draw(st.integers(0, 4))
        key = tuple(
            np.array(
                data.draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count)), int
            )
            if data.draw(st.booleans())
            else data.draw(st.integers(-n, n - 1))
            for n in shape
        )
    got = assemble(x, select_points(key, shape), data)
    np.testing.assert_array_equal(got, x[key])


@pytest.mark.parametrize("size", range(5))
def test_all_slices_of_one_axis(size):
    x = np.arange(size)
    bounds = [None, *range(-size - 2, size + 3)]
    for start, stop, step in itertools.product(bounds, bounds, [None, 1, 2, 3, -1, -2, -3]):
        key = slice(start, stop, step)
        selection = select(key, x.shape)
        out = x[[i for run in selection.axes for i in range(run.start, run.stop, run.step)]]
        np.testing.assert_array_equal(selection.finish(out), x[key])


@pytest.mark.parametrize(
    ("key", "shape", "error", "says"),
    [
        (40, (32,), InvalidKeyError, "index 40 is out of bounds for axis 0 with size 32"),
        ((0, -9), (3, 4), InvalidKeyError, "index -9 is out of bounds for axis 1 with size 4"),
        ((0, 0), (3,), InvalidKeyError, "1 axes, but 2 were indexed"),
        ((..., ...), (3,), InvalidKeyError, "single Ellipsis"),
        (slice(None, None, 0), (3,), InvalidSliceError, "step cannot be zero"),
        (slice("a", None), (3,), InvalidKeyTypeError, "bounds are integers"),
        (1.5, (3,), InvalidKeyError, "1.5 is no index"),
        ("0", (3,), InvalidKeyError, "ref.slice"),
        (True, (3,), InvalidKeyError, "True is no index"),
        (([0], [1]), (3, 3), InvalidKeyError, "oindex"),
        (np.array([True, False]), (3,), InvalidKeyError, "does not match axis 0 with size 3"),
        ([0, 7], (3,), InvalidKeyError, "index 7 is out of bounds for axis 0"),
        (np.ones((3, 4), bool), (3, 4), InvalidKeyError, "ref.vindex[mask]"),
    ],
)
def test_errors_name_value_axis_and_bound(key, shape, error, says):
    with pytest.raises(error, match=re.escape(says)):
        select(key, shape)


@pytest.mark.parametrize(
    ("choose", "key", "says"),
    [
        (select_orthogonal, (None,), "no newaxis"),
        (select_orthogonal, ([[0, 1]],), "rank 1"),
        (select_points, (0,), "each of the 2 axes"),
        (select_points, (slice(None), 0), "integers and arrays only"),
        (select_points, ([0, 1], [0, 1, 2]), "do not broadcast"),
        (select_points, np.ones((2, 2), bool), "mask of shape"),
        (select_points, ([True, False, True], 0), "one mask of shape"),
        (select_points, ([0.5], [0]), "dtype float64"),
    ],
)
def test_errors_of_oindex_and_vindex(choose, key, says):
    with pytest.raises(InvalidKeyError, match=says):
        choose(key, (3, 4))


def test_empty_lists_name_no_element():
    for shape, key in [((3, 4), ([], [])), ((3,), ([],)), ((3, 4), ([], 1))]:
        assert select_points(key, shape).result_shape == (0,) == np.zeros(shape)[key].shape


def test_a_step_that_no_int64_holds_picks_one_element():
    lo, hi = np.array([[0], [4]]), np.array([[4], [9]])
    assert select(slice(5, None, 2**70), (9,)).hits(lo, hi).tolist() == [False, True]
    assert select(slice(5, None, -(2**70)), (9,)).hits(lo, hi).tolist() == [False, True]
