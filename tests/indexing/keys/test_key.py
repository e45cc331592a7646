"""Keys mean what they mean in NumPy, over any chunk grid."""

import contextlib
import itertools
import re
from functools import cache

import numpy as np
import pytest
import scipy.sparse
import zarr
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    basic_indices,
    integer_array_indices,
    mutually_broadcastable_shapes,
)

from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidSliceError,
)
from tensorlake_spark.indexing import (
    Box,
    Grid,
    Selection,
    select,
    select_blocks,
    select_orthogonal,
    select_points,
    select_simple,
)
from tensorlake_spark.layouts.testing.strategies import mixed_keys


@st.composite
def shapes(draw):
    """A shape of rank 0 to 6, one in a few without elements; of few cells, so that many are tried."""
    rank = draw(st.sampled_from([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6]))
    longest = (0, 6, 6, 5, 4, 3, 2)[rank]
    lengths = st.sampled_from([0, 1] + 4 * list(range(2, longest + 1)))
    return tuple(draw(st.lists(lengths, min_size=rank, max_size=rank)))


SHAPES = shapes()
slices = cache(st.slices)


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
        count = np.size(out[dst])
        assert hit == (count > 0), "rows asked for = rows that overlap, no more and no less"
        if hit:
            out[dst] = x[cell.slices()][src]
            wanted += count
    if out.size:
        assert wanted == out.size, "every element is delivered once"
    answer = selection.finish(out)
    if not selection.is_scalar:
        given = np.full(selection.result_shape, -2, x.dtype)
        stage = selection.staged(given)
        if isinstance(selection, Selection):
            assert (stage is None) == (selection.points_shape is not None)
        if stage is not None:
            stage[...] = out
            np.testing.assert_array_equal(given, answer)
    return answer


@cache  # to build a strategy takes longer than to draw from it
def one(size):
    """An integer or a slice for an axis; most of them pick something."""
    inside = st.integers(-size, size - 1) if size else st.integers(-1, 0)
    wide = st.builds(
        slice,
        st.sampled_from([None, None, 0, 1, -1, size]),
        st.sampled_from([None, None, size, -1, -size - 1]),
        st.sampled_from([None, 1, 2, 3, -1, -2]),
    )
    walks = st.sampled_from([slice(None), slice(None, None, -1), slice(None, None, 2)])
    back = st.builds(slice, st.sampled_from([None, -1, size]), st.none(), st.sampled_from([-1, -2]))
    wild = st.builds(
        slice,
        st.none() | st.integers(-9, 9),
        st.none() | st.integers(-9, 9),
        st.none() | st.sampled_from([1, 2, 3, -1, -2, -4, 2**70, -(2**70)]),
    )
    outside = st.sampled_from([-size - 1, size])
    integers = [inside, inside.map(Index), inside.map(np.int16)]
    weights = [*integers, *3 * [wide, walks, back], wild, st.slices(size)]
    return st.sampled_from(10 * weights + [outside]).flatmap(lambda kind: kind)


class Index:
    """An integer by its ``__index__`` alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


@st.composite
def index_arrays(draw, n, ranks):
    """An index array or a nested list, of one of these ranks."""
    sides = st.sampled_from([1, 2, 2, 3, 3, 0]) if n else st.just(0)
    rank = draw(ranks)
    shape = draw(st.lists(sides, min_size=rank, max_size=rank))
    size = int(np.prod(shape))
    values = draw(st.lists(st.integers(-n, max(0, n - 1)), min_size=size, max_size=size))
    array = np.array(values, np.int64).reshape(shape)
    return draw(st.sampled_from([array, array.astype(np.int8), array.tolist()]))


@st.composite
def keys(draw, shape):
    count = len(shape) - draw(st.sampled_from([0, 0, 0, 1, 2]))
    key = [draw(one(n)) for n in shape[: max(0, count)]]
    if key and draw(st.booleans()):
        axis = draw(st.integers(0, len(key) - 1))
        n = shape[axis]
        if draw(st.integers(0, 3)):
            key[axis] = draw(index_arrays(n, st.sampled_from([1, 1, 2, 3])))
        else:
            key[axis] = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    if draw(st.integers(0, 2)) == 0:
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@times(20)
@given(st.data())
def test_every_key_means_what_numpy_means(data):
    shape = data.draw(SHAPES, label="shape")
    x = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    key = data.draw(keys(shape), label="key")
    try:
        want = x[key]
    except DeprecationWarning:  # NumPy 2.0, of an index out of bounds of an empty array
        with pytest.raises(IndexError):
            select(key, shape)
        return
    except (IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            select(key, shape)
        return
    if x.size == 0 and any(np.asarray(part).dtype == bool for part in key if np.ndim(part)):
        # NumPy lets a mask of the wrong length pass where the tensor is empty; we do not.
        with contextlib.suppress(InvalidKeyError):
            assert select(key, shape).result_shape == want.shape
        return
    selection = select(key, shape)
    got = assemble(x, selection, data)
    assert type(got) is type(want)
    assert np.shape(got) == np.shape(want) == selection.result_shape
    np.testing.assert_array_equal(got, want)


def numpy_says(x, key):
    """Return what NumPy picks, or the type of error that it raises."""
    try:
        return x[key]
    except (IndexError, ValueError) as error:
        return type(error)
    except DeprecationWarning:  # NumPy 2.0, of an index out of bounds of an empty array
        return IndexError


@times(12)
@given(st.data())
def test_arrays_and_masks_pair_and_stand_where_numpy_puts_them(data):
    shape = data.draw(SHAPES, label="shape")
    x = np.arange(int(np.prod(shape))).reshape(shape)
    key = data.draw(mixed_keys(shape), label="key")
    want = numpy_says(x, key)
    if isinstance(want, type):
        with pytest.raises(want):
            select(key, shape)
        return
    selection = select(key, shape)
    got = assemble(x, selection, data)
    assert type(got) is type(want)
    assert np.shape(got) == want.shape == selection.result_shape
    np.testing.assert_array_equal(got, want)
    lo, hi = np.array([selection.box.lo]), np.array([selection.box.hi])
    assert selection.hits(lo, hi)[0] == (want.size > 0)


@times(4)
@given(st.data())
def test_the_keys_of_hypothesis(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    points = integer_array_indices(shape, result_shape=array_shapes(max_dims=2, max_side=4))
    basic = basic_indices(shape, allow_newaxis=True)
    key = data.draw(points | basic, label="key")
    want = x[key]
    got = assemble(x, select(key, shape), data)
    np.testing.assert_array_equal(got, want, strict=True)


def test_a_sparse_mask_is_a_mask():
    x = np.arange(12).reshape(3, 4)
    for mask in (x % 5 == 0, x > 99, x >= 0):
        for some in (scipy.sparse.csc_array(mask), scipy.sparse.coo_array(mask)):
            selection = select(some, x.shape)
            np.testing.assert_array_equal(x[tuple(selection.coords)], x[mask])
    twice = scipy.sparse.coo_array((np.ones(2, bool), ([1, 1], [2, 2])), (3, 4))
    assert select(twice, (3, 4)).coords.tolist() == [[1], [2]]
    with pytest.raises(InvalidKeyError, match="along axis 1; size of axis is 5 but size of corr"):
        select(twice, (3, 5))


def test_what_will_not_become_an_array_is_no_index():
    class Sparse:
        def __array__(self, *_, **__):
            raise RuntimeError("call todense()")

    with pytest.raises(InvalidKeyError, match=r"axis 0: .* is not an index array: call todense"):
        select(Sparse(), (3, 3))


def test_names_and_text_take_one_index_array():
    with pytest.raises(InvalidKeyError, match=r"2 index arrays in one key; ref.oindex"):
        select_simple(([0], [1]), (3, 4))
    with pytest.raises(InvalidKeyError, match="axis 1: a mask of rank 2 is not an index here"):
        select_simple((0, np.ones((4, 5), bool)), (3, 4, 5))
    with pytest.raises(InvalidKeyError, match="axis 0: True is not an index here"):
        select_simple(True, (3, 4))


@times(6)
@given(st.data())
def test_oindex_picks_every_axis_on_its_own(data):
    shape = data.draw(SHAPES, label="shape")
    x = np.arange(int(np.prod(shape))).reshape(shape)
    key, index, drops = [], [], []
    for axis, n in enumerate(shape):
        kind = data.draw(st.sampled_from(["slice", "list", "mask", "int"])) if n else "slice"
        if kind == "slice":
            part = data.draw(slices(n))
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
    if shape and data.draw(st.booleans(), label="ellipsis"):
        first = data.draw(st.integers(0, len(shape)))
        stop = data.draw(st.integers(first, len(shape)))
        key[first:stop] = [...]
        index[first:stop] = [np.arange(n) for n in shape[first:stop]]
        drops = [k for k in drops if not first <= k < stop]
    want = x[np.ix_(*index)] if shape else x
    want = want.reshape([n for k, n in enumerate(want.shape) if k not in drops])
    selection = select_orthogonal(tuple(key), shape)
    got = assemble(x, selection, data)
    assert np.shape(got) == want.shape == selection.result_shape
    np.testing.assert_array_equal(got, want)


@times(2)
@given(st.data())
def test_a_mask_for_vindex_picks_what_it_marks(data):
    shape = data.draw(SHAPES)
    x = np.arange(int(np.prod(shape))).reshape(shape)
    bits = data.draw(st.integers(0, 2**32))
    mask = np.random.default_rng(bits).random(shape) < 0.2
    selection = select_points(mask, shape)
    got = assemble(x, selection, data)
    assert got.shape == selection.result_shape == x[mask].shape
    np.testing.assert_array_equal(got, x[mask])


@times(6)
@given(st.data())
def test_vindex_picks_single_elements(data):
    rank = data.draw(st.integers(1, 5))
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=rank, max_dims=3, max_side=3))
    key, sizes = [], []
    for part in shapes.input_shapes:
        n = data.draw(st.integers(1, 5))
        slack = data.draw(st.sampled_from([0] * 9 + [1]))
        count = int(np.prod(part))
        values = st.lists(
            st.integers(-n - slack, n - 1 + slack), min_size=count, max_size=count
        ).map(lambda v, part=part: np.array(v, int).reshape(part))
        index = data.draw(values)
        key.append(data.draw(st.sampled_from([index, index.tolist(), index.astype(np.int8)])))
        if index.ndim == 0:
            key[-1] = data.draw(st.sampled_from([int(index), Index(int(index)), index]))
        sizes.append(n)
    key, shape = tuple(key), tuple(sizes)
    x = np.arange(int(np.prod(shape))).reshape(shape)
    # Spelt out, because NumPy takes empty lists for floats once they are nested.
    spelt = tuple(k if isinstance(k, Index) else np.asarray(k, int) for k in key)
    try:
        want = x[spelt]
    except IndexError:
        with pytest.raises(InvalidKeyError, match="out of bounds"):
            select_points(key, shape)
        return
    selection = select_points(key, shape)
    got = assemble(x, selection, data)
    assert type(got) is type(want)
    assert np.shape(got) == selection.result_shape == want.shape
    np.testing.assert_array_equal(got, want)


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
        ((0, 0), (3,), InvalidKeyError, "1 axes (its shape is (3,)), but 2 were indexed"),
        ((..., ...), (3,), InvalidKeyError, "single Ellipsis"),
        (
            slice(None, None, 0),
            (3,),
            InvalidSliceError,
            "axis 0: slice(None, None, 0): slice step cannot be zero",
        ),
        (
            slice("a", None),
            (3,),
            InvalidKeyTypeError,
            "axis 0: slice('a', None, None): slice bounds are integers",
        ),
        (1.5, (3,), InvalidKeyError, "axis 0: 1.5 is not an index"),
        ((0, 1.5), (3, 4), InvalidKeyError, "axis 1: 1.5 is not an index"),
        ((None, ..., 1.5, 0), (3, 4, 5), InvalidKeyError, "axis 1: 1.5 is not an index"),
        ((..., 1.5, None), (3, 4, 5), InvalidKeyError, "axis 2: 1.5 is not an index"),
        ("0", (3,), InvalidKeyError, "ref.slice"),
        (
            ([0, 1], [[1, 2, 0]]),
            (3, 3),
            InvalidKeyError,
            "shape mismatch: indexing arrays could not be broadcast together with shapes (2,) (1, 3)",
        ),
        (
            np.array([True, False]),
            (3,),
            InvalidKeyError,
            "boolean index did not match indexed array along axis 0; size of axis is 3 but size of "
            "corresponding boolean axis is 2",
        ),
        (
            np.s_[:, np.ones((2, 4), bool)],
            (3, 2, 5),
            InvalidKeyError,
            "along axis 2; size of axis is 5 but size of corresponding boolean axis is 4",
        ),
        (
            np.ones((3, 4), bool),
            (3,),
            InvalidKeyError,
            "1 axes (its shape is (3,)), but 2 were indexed",
        ),
        (([0], [0, 7]), (3, 4), InvalidKeyError, "index 7 is out of bounds for axis 1 with size 4"),
        (
            (9, [0], [0]),
            (3, 4, 5),
            InvalidKeyError,
            "index 9 is out of bounds for axis 0 with size 3",
        ),
        (
            ([0], slice(0, 1, 0), [0]),
            (3, 4, 5),
            InvalidSliceError,
            "axis 1: slice(0, 1, 0): slice step",
        ),
        (([0], [0.5]), (3, 4), InvalidKeyError, "axis 1: [0.5] is not an index"),
        ([0, 7], (3,), InvalidKeyError, "index 7 is out of bounds for axis 0"),
        (
            [[0], [1, 2]],
            (3,),
            InvalidKeyError,
            "axis 0: [[0], [1, 2]] is not an index array: its parts differ in length",
        ),
        ([2**70], (3,), InvalidKeyError, f"index {2**70} is out of bounds for axis 0 with size 3"),
        (
            (0, [1, -(2**70)]),
            (3, 4),
            InvalidKeyError,
            f"index -{2**70} is out of bounds for axis 1",
        ),
        (np.array([1, 2], object), (3,), InvalidKeyError, "is not an index"),
        (np.array([2**63], np.uint64), (3,), InvalidKeyError, f"index {2**63} is out of bounds"),
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
        (select_points, ([0, 1], [0, 1, 2]), "shape mismatch: indexing arrays"),
        (select_points, np.ones((2, 2), bool), "boolean index did not match"),
        (select_points, np.ones(3, bool), "mask of shape"),
        (select_points, ([True, False, True], 0), "one mask of shape"),
        (select_points, ([0.5], [0]), "0.5. is not an index"),
        (select_points, (True, 0), "True is not an index"),
        (select_points, ([[0], [1, 2]], 0), "differ in length"),
        (select_points, [[0], [1, 2]], "differ in length"),
        (select_points, (0, 2**70), f"index {2**70} is out of bounds for axis 1 with size 4"),
        (select_points, ([2**70], [0]), f"index {2**70} is out of bounds for axis 0 with size 3"),
        (select_orthogonal, (0, [2**70]), f"index {2**70} is out of bounds for axis 1"),
        (select_orthogonal, (0, [[0], [1, 2]]), "differ in length"),
        (select_orthogonal, (0, 4), "index 4 is out of bounds for axis 1 with size 4"),
        (
            select_orthogonal,
            ([True, False],),
            "did not match indexed array along axis 0; size of axis is 3",
        ),
        (select_orthogonal, (True,), "axis 0: True is not an index here"),
        (select_orthogonal, np.ones((3, 4), bool), "a mask of rank 2 is not an index here"),
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


@st.composite
def block_keys(draw, counts):
    """A key of blocks; a number may be out of bounds."""
    parts = []
    for count in counts[: draw(st.integers(0, len(counts)))]:
        near = st.integers(-count - 2, count + 2)
        start, stop = draw(st.none() | near), draw(st.none() | near)
        # Zarr takes a stop before the first block for a place in elements.
        stop = stop if stop is None else max(stop, -count)
        parts.append(draw(st.sampled_from([draw(near), slice(start, stop), slice(start, stop, 1)])))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), ...)
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@times(2)
@given(st.data())
def test_blocks_are_those_of_zarr(data):
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 3, 4, 5, 6, 8, 9]), max_size=3)))
    chunk = tuple(data.draw(st.integers(1, 4)) for _ in shape)
    grid = Grid(shape, chunk)
    key = data.draw(block_keys(grid.counts))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    oracle = zarr.zeros(shape, chunks=chunk, dtype=x.dtype)
    oracle[...] = x
    try:
        want = oracle.blocks[key]
    except IndexError:
        with pytest.raises(InvalidKeyError):
            select_blocks(key, grid)
        return
    selection = select_blocks(key, grid)
    assert selection.result_shape == want.shape
    np.testing.assert_array_equal(x[selection.box.slices()] if want.size else want, want)
    np.testing.assert_array_equal(assemble(x, selection, data), want)


def test_blocks_go_by_the_runs_of_the_grid():
    grid = Grid((10,), (4,)).extend(0, 7).extend(0, 1)
    sides = [(0, 4), (4, 8), (8, 10), (10, 14), (14, 17), (17, 18)]
    assert [select_blocks(k, grid).box for k in range(-6, 0)] == [Box((a,), (b,)) for a, b in sides]
    assert select_blocks(np.s_[1:-2], grid).box == Box((4,), (14,))
    assert select_blocks(np.s_[3:99], grid).box == Box((10,), (18,))
    assert select_blocks(np.s_[2:-99], grid).is_empty
    huge = Grid((2**62, 2**62), (3, 2**40))
    assert select_blocks((-1, -1), huge).box.hi == (2**62, 2**62)
    assert select_blocks(np.s_[10**18], huge).box.lo[0] == 3 * 10**18


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (3, InvalidKeyError, "block 3 is out of bounds for axis 0 with 3 blocks"),
        ((0, -4), InvalidKeyError, "block -4 is out of bounds for axis 1 with 3 blocks"),
        ((..., 5), InvalidKeyError, "block 5 is out of bounds for axis 1 with 3 blocks"),
        (np.s_[3:], InvalidKeyError, "block 3 is out of bounds for axis 0 with 3 blocks"),
        (np.s_[-4:], InvalidKeyError, "block -4 is out of bounds for axis 0 with 3 blocks"),
        (np.s_[::2], InvalidKeyError, "axis 0: slice(None, None, 2): blocks take slices with step 1 only"),
        (np.s_[:, ::-1], InvalidKeyError, "axis 1: slice(None, None, -1): blocks take slices with step 1 only"),
        (np.s_["a":], InvalidKeyTypeError, "axis 0: slice('a', None, None): slice bounds are integers or None"),
        (None, InvalidKeyError, "blocks take no newaxis"),
        ([0, 1], InvalidKeyError, "axis 0: blocks take integers and slices, no index arrays"),
        ((0, np.ones(3, bool)), InvalidKeyError, "axis 1: blocks take integers and slices, no index arrays"),
        (True, InvalidKeyError, "True is not an index"),
        (1.5, InvalidKeyError, "1.5 is not an index"),
        ((0, 0, 0), InvalidKeyError, "too many indices: the tensor has 2 axes"),
        ((..., ...), InvalidKeyError, "single Ellipsis"),
    ],
)  # fmt: skip
def test_errors_of_blocks_name_value_axis_and_bound(key, error, says):
    with pytest.raises(error, match=re.escape(says)):
        select_blocks(key, Grid((10, 7), (4, 3)))


def test_an_axis_without_elements_has_no_block():
    for key in (..., (), 0, np.s_[:], np.s_[:0]):
        with pytest.raises(
            InvalidKeyError, match="block 0 is out of bounds for axis 0 with 0 blocks"
        ):
            select_blocks(key, Grid((0, 3), (4, 3)))
