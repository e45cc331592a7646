"""The parts of a key: what each becomes, and what is said of one that will not do. NumPy is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidKeyTypeError
from tensorlake_spark.indexing.keys import key_parts

FULL = slice(None)
BOUND = st.none() | st.integers(-12, 12)


def test_an_ellipsis_stays_in_front_of_the_slices_that_it_stands_for():
    assert key_parts.expand((1, ..., 2), (3, 4, 5, 6)) == [1, ..., FULL, FULL, 2]
    assert key_parts.expand((1, ...), (3,)) == [1, ...]
    assert key_parts.expand(1, (3, 4)) == [1, FULL]
    assert key_parts.expand((None, 1, None), (3, 4)) == [None, 1, None, FULL]
    assert [*key_parts.with_axes([None, 1, ..., FULL])] == [(0, 1), (1, FULL)]


def test_a_mask_stands_for_as_many_axes_as_it_has_and_a_bool_for_none():
    for mask in (np.ones((3, 4), bool), np.ones((3, 4), bool).tolist()):
        found = key_parts.expand((True, mask, ..., 1.0 > 2), (3, 4, 5))
        axes = [axis for axis, _ in key_parts.with_axes(found)]
        assert axes == [0, 0, 2, 3]
        assert [part.shape for part in (found[0], found[1], found[4])] == [(), (3, 4), ()]
    with pytest.raises(tl.InvalidKeyError, match=r"axis 2: 0\.5 is not an index"):
        key_parts.expand((np.ones((3, 4), bool), 0.5), (3, 4, 5))
    with pytest.raises(tl.InvalidKeyError, match=r"3 axes .* but 4 were indexed"):
        key_parts.expand((np.ones((3, 4), bool), 0, 0), (3, 4, 5))


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (
            (1, 2, 3),
            r"too many indices: the tensor has 2 axes \(its shape is \(3, 4\)\), but 3 were indexed",
        ),
        ((..., ...), r"an index can only have a single Ellipsis"),
        ((..., "1:2"), r"axis 1: '1:2' is not an index; text keys go through ref\.slice\('1:2'\)"),
        (([0, 1.5],), r"axis 0: \[0, 1\.5\] is not an index; only integers, slices"),
        ((0, [[1], [2, 3]]), r"axis 1: .* is not an index array: its parts differ in length"),
    ],
)
def test_what_is_no_key_is_told_with_its_axis(key, says):
    with pytest.raises(tl.InvalidKeyError, match=says):
        key_parts.expand(key, (3, 4))


def test_lists_become_arrays_and_an_empty_one_names_no_index():
    found = key_parts.part_of([], 0)
    assert (found.dtype, found.shape) == (np.int64, (0,))
    assert key_parts.part_of([True, False], 0).dtype == bool
    with pytest.raises(tl.InvalidKeyError, match="is not an index"):
        key_parts.part_of(np.zeros(0), 0)
    huge = key_parts.part_of([2**70], 0)
    with pytest.raises(tl.InvalidKeyError, match=rf"index {2**70} is out of bounds for axis 0"):
        key_parts.indices_of(huge, 0, 5)


@given(st.integers(-9, 9), st.integers(0, 6))
def test_an_integer_counts_from_either_end(index, size):
    try:
        want = range(size)[index]
    except IndexError:
        with pytest.raises(tl.InvalidKeyError, match=f"index {index} is out of bounds for axis 2"):
            key_parts.integer(index, 2, size)
    else:
        assert key_parts.integer(index, 2, size) == want


@given(st.lists(st.integers(-6, 5)))
def test_an_index_array_counts_from_either_end(indices):
    array = np.array(indices, np.int8)
    np.testing.assert_array_equal(key_parts.indices_of(array, 0, 6), np.arange(6)[array])


@given(BOUND, BOUND, BOUND.filter(lambda step: step != 0), st.integers(0, 9))
def test_a_slice_is_an_ascending_run_and_a_direction(start, stop, step, size):
    item = slice(start, stop, step)
    run, is_reversed = key_parts.run_of(item, 0, size)
    found = np.arange(run.start, run.stop, run.step)
    np.testing.assert_array_equal(found[::-1] if is_reversed else found, np.arange(size)[item])


def test_slices_that_are_none():
    with pytest.raises(tl.InvalidSliceError, match=r"axis 1: .* slice step cannot be zero"):
        key_parts.run_of(slice(0, 3, 0), 1, 5)
    with pytest.raises(InvalidKeyTypeError, match=r"axis 1: .* slice bounds are integers or None"):
        key_parts.run_of(slice(0.5, 3), 1, 5)
