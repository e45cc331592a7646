"""Brackets are NumPy's, also with bounds that differ from row to row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.query.functions.bracket_keys import Bounds, fixed_key, slice_values
from tensorlake_spark.query.functions.row_values import Constant, RowError, expanded


def items(key):
    """A key of NumPy as parts of a bracket."""

    def value(one):
        return None if one is None else Constant(one)

    return [
        Bounds(value(part.start), value(part.stop), value(part.step)) if isinstance(part, slice)
        else value(part)
        for part in key
    ]  # fmt: skip


def tried(function):
    try:
        return function()
    except (IndexError, RowError, ValueError) as error:
        return type(error)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_keys_are_those_of_numpy(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6))
    bound = st.one_of(st.none(), st.integers(-9, 9))
    part = st.one_of(
        st.builds(slice, bound, bound, bound.filter(lambda x: x != 0)),
        st.integers(-6, 5),
        st.none(),
    )
    key = data.draw(st.lists(part, max_size=4))
    if data.draw(st.booleans()):
        key.insert(data.draw(st.integers(0, len(key))), ...)
    key = tuple(key)
    stack = np.arange(3 * int(np.prod(shape))).reshape(3, *shape)
    wanted = tried(lambda: [one[key] for one in stack])
    for values in (stack, list(stack)):
        found = tried(lambda values=values: list(expanded(slice_values(values, items(key), 3), 3)))
        if isinstance(wanted, type):
            assert found is RowError
        else:
            assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
            assert [np.shape(a) for a in found] == [np.shape(b) for b in wanted]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-8, 8), st.integers(-8, 8), st.sampled_from([-2, -1, 1, 3])),
        min_size=1,
    )
)
def test_bounds_may_differ_from_row_to_row(bounds):
    count = len(bounds)
    stack = np.arange(count * 10).reshape(count, 5, 2)
    starts, stops, steps = (np.array(column) for column in zip(*bounds, strict=True))
    key = [Bounds(starts, stops, steps), Constant(1)]
    found = list(expanded(slice_values(stack, key, count), count))
    for got, one, (a, b, c) in zip(found, stack, bounds, strict=True):
        assert np.array_equal(got, one[a:b:c, 1])


def test_a_fixed_key_gives_views():
    stack = np.zeros((3, 4, 4))
    assert np.shares_memory(slice_values(stack, items((slice(1, 3),)), 3), stack)


@pytest.mark.parametrize(
    "index", [np.array([2, 0]), np.array([[0], [1]]), np.array([True, False, True])]
)
def test_arrays_pick_elements(index):
    stack = np.arange(12).reshape(2, 3, 2)
    found = list(expanded(slice_values(stack, [Constant(index)], 2), 2))
    assert all(np.array_equal(got, one[index]) for got, one in zip(found, stack, strict=True))


def test_a_mask_of_each_row_picks_its_elements():
    stack = np.arange(6).reshape(2, 3)
    found = slice_values(stack, [stack > 2], 2)
    assert [one.tolist() for one in found] == [[], [3, 4, 5]]


def test_an_array_between_a_number_and_a_slice():
    stack = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    key = (0, slice(None), np.array([1, 2]))
    found = list(expanded(slice_values(stack, items(key), 2), 2))
    assert all(np.array_equal(got, one[key]) for got, one in zip(found, stack, strict=True))


def test_null_gives_null():
    rows = [np.arange(3), None]
    assert slice_values(rows, items((0,)), 2)[1] is None
    found = slice_values(np.arange(6).reshape(2, 3), [Bounds([1, None], None, None)], 2)
    assert found[0].tolist() == [1, 2]
    assert found[1] is None
    assert slice_values([None, None], [Bounds([1, None], None, None)], 2) == [None, None]
    assert slice_values(Constant(np.arange(3)), [Constant(None)], 2) == Constant(None)


@pytest.mark.parametrize("position", [5, -4])
def test_the_row_where_a_position_is_out_of_bounds_is_named(position):
    rows = [np.arange(9), np.arange(3)]
    with pytest.raises(RowError, match="out of bounds") as caught:
        slice_values(rows, items((position,)), 2)
    assert caught.value.row == 1


def test_too_many_axes():
    with pytest.raises(RowError, match="too many indices") as caught:
        slice_values([np.zeros((2, 2)), np.zeros(2)], items((0, 0)), 2)
    assert caught.value.row == 1


def test_two_ellipses():
    with pytest.raises(RowError, match="ellipsis"):
        slice_values(np.zeros((2, 3)), items((..., ...)), 2)


@pytest.mark.parametrize("position", [1.0, "a", True, 1 + 0j])
def test_positions_are_integers(position):
    for values in (np.zeros((2, 3)), [np.zeros(3), np.zeros(2)], Constant(np.zeros(3))):
        with pytest.raises(RowError, match="positions are integers"):
            slice_values(values, [Constant(position)], 2)
        with pytest.raises(RowError, match="positions are integers"):
            slice_values(values, [Bounds(Constant(position), None, None)], 2)


def test_a_step_of_zero():
    with pytest.raises(RowError, match="zero"):
        slice_values(np.zeros((2, 3)), items((slice(None, None, 0),)), 2)


def test_a_constant_stays_constant():
    found = slice_values(Constant(np.arange(5)), items((slice(1, 3),)), 100)
    assert found.value.tolist() == [1, 2]
    found = slice_values(Constant(np.arange(5)), [np.array([1, 2])], 2)
    assert list(found) == [1, 2]


def test_keys_that_are_the_same_for_all_rows():
    assert fixed_key(items((slice(1, None), None, ..., 3))) == (slice(1, None), None, ..., 3)
    assert fixed_key([Bounds(np.arange(3), None, None)]) is None
    assert fixed_key([Constant(None)]) is None
    assert fixed_key([]) == ()


def test_parts_of_images_of_several_sizes_and_of_one_are_views_where_no_array_is_asked_for():
    images = [np.arange(60).reshape(6, 10), None, np.arange(48).reshape(6, 8)]
    for some in (images, [images[0], images[0]]):
        found = slice_values(some, items((slice(1, 3), slice(0, 5))), len(some), False)
        assert isinstance(found, list)
        for part, image in zip(found, some, strict=True):
            assert (part is None) == (image is None)
            if image is not None:
                assert np.shares_memory(part, image)
                assert np.array_equal(part, image[1:3, :5])
