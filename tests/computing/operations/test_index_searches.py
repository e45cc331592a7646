"""Positions of elements: the first of equal ones, NaN before numbers, zeros that are not stored among them."""

import pickle

import numpy as np
import pytest
from computed import LAYOUTS, array_of, arrays, equal, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.computing.operations import tiles
from tensorlake_spark.computing.operations.index_searches import NonzeroSearch, better, same, search
from tensorlake_spark.computing.thread_runner import compute
from tensorlake_spark.kernel_switch import SWITCH
from tensorlake_spark.tensor.sparse import SparseTensor


@given(st.data(), arrays(), st.sampled_from(("argmax", "argmin")), st.sampled_from(LAYOUTS))
@times(1)
def test_the_first_best_element_is_numpys(shared, data, array, name, layout):
    key = data.draw(keys(array.shape))
    x = array[key]
    view = put(shared, array, layout).view[key]
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    keepdims = data.draw(st.booleans()) and x.ndim > 0
    try:
        wanted = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    except ValueError:
        with pytest.raises(ValueError, match="empty sequence"):
            getattr(view, name)(axis, keepdims=keepdims)
        return
    equal(getattr(view, name)(axis, keepdims=keepdims), wanted)


@pytest.mark.parametrize("layout", ["bsgs", "coo", "csr", "csf"])
@pytest.mark.parametrize(("name", "sign"), [("argmax", -1), ("argmin", 1)])
def test_zeros_that_are_stored_are_zeros_as_the_others_are(shared, layout, name, sign):
    """Where no element is better, the first zero counts, stored or not."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        coords = np.argwhere(rng.random((9, 4)) < 0.6).T
        x = SparseTensor(coords, sign * rng.integers(0, 3, coords.shape[1]), (9, 4))
        ref = shared.write(f"{layout} {name} {seed}", x, layout=layout)
        assert ref.nnz == x.nnz > np.count_nonzero(x.todense())
        for axis in (None, 0, 1):
            equal(getattr(ref, name)(axis), getattr(np, name)(x.todense(), axis))
            equal(getattr(ref.view[2:], name)(axis), getattr(np, name)(x.todense()[2:], axis))


@given(st.data(), arrays(), st.sampled_from(LAYOUTS))
@times(0.5)
def test_what_is_not_zero_is_found_in_c_order(shared, data, array, layout):
    key = data.draw(keys(array.shape))
    x = array[key]
    view = put(shared, array, layout).view[key]
    if x.ndim:
        for found, wanted in zip(view.nonzero(), x.nonzero(), strict=True):
            assert np.array_equal(found, wanted)
    equal(view.argwhere(), np.argwhere(x))


@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
@pytest.mark.parametrize("largest", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_partials_may_be_combined_in_any_order(shared, layout, largest, axis):
    array = array_of("f4", (6, 5, 4), 2)
    stored = put(shared, array, layout)._stored
    fold = pickle.loads(pickle.dumps(search(stored, largest, axis)))
    parts = []
    for k in (3, 0, 5, 2, 1, 4):
        block = stored.box((k, 0, 0), (k + 1, 5, 4)).read()
        place = (slice(k, k + 1), slice(0, 5), slice(0, 4))
        if stored.is_sparse:
            block = type(block)(block.coords + np.array([[k], [0], [0]]), block.values, array.shape)
        parts.append(pickle.loads(pickle.dumps(fold.map(place, block))))
    a, b, c, d, e, f = parts
    partial = fold.combine(fold.combine(a, fold.combine(b, c)), fold.combine(fold.combine(d, e), f))
    equal(fold.finish(partial), getattr(array, largest)(axis))


@pytest.mark.parametrize("length", [40, 300])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "c8", "M8[s]"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("order", ["ascending", "descending", "mixed"])
def test_blocks_come_in_any_order_to_places_that_are_there(
    lake, monkeypatch, length, dtype, name, order
):
    monkeypatch.setenv(SWITCH, "numpy")
    monkeypatch.setattr(tiles, "_SLAB", 100)
    rng = np.random.default_rng(length)
    array = rng.integers(0, 5, (length, 2, 70)).astype("i8").astype(dtype)
    if array.dtype.kind in "fcM":
        array[rng.random(array.shape) < 0.1] = "NaT" if dtype == "M8[s]" else np.nan
    fold, firsts = search(lake.write("x", array)._stored, name, 0), [*range(0, length, 10)]
    if order != "ascending":
        firsts = firsts[::-1] if order == "descending" else rng.permutation(firsts).tolist()
    partial = None
    for first in firsts:
        place = slice(first, first + 10), slice(0, 2), slice(0, 70)
        partial = fold.add(partial, place, array[place])
    equal(fold.finish(partial), getattr(array, name)(0))


def test_a_long_axis_that_is_not_the_last(lake):
    array = np.random.default_rng(0).integers(0, 9, (400, 7))
    ref = lake.write("x", array, block_shape=(300, 4))
    assert np.array_equal(ref.argmax(axis=0), array.argmax(0))
    assert np.array_equal(ref.view[::-3].argmin(axis=0), array[::-3].argmin(0))


def test_nothing_stored_is_all_zeros(lake):
    ref = lake.write("x", np.zeros((3, 4)), layout="bsgs")
    assert ref.argmax() == 0
    equal(ref.argmin(axis=1), np.zeros(3, np.int64))
    assert compute(NonzeroSearch((3, 4)), ref._stored)[0].tolist() == []


def test_nan_is_better_than_any_number_and_no_better_than_itself():
    numbers = np.array([np.nan, np.inf, -1.0])
    assert better(numbers, np.full(3, np.nan), True).tolist() == [False] * 3
    assert better(np.full(3, np.nan), numbers, False).tolist() == [False, True, True]
    assert same(numbers, numbers).all()
