"""Boxes against masks of a small array."""

import pickle

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import Box

SIDES = [(a, b) for a in range(6) for b in range(a, 6)]


@st.composite
def pairs(draw):
    """The shape of a tensor, and two boxes in it; most of them overlap."""
    rank = draw(st.sampled_from([0, 1, 1, 2, 2, 2, 3]))
    wide = [(a, b) for a, b in SIDES if b - a > 1]
    sides = st.lists(st.sampled_from(SIDES + 4 * wide), min_size=rank, max_size=rank)
    boxes = (
        Box(tuple(a for a, _ in s), tuple(b for _, b in s)) for s in (draw(sides), draw(sides))
    )
    return (5,) * rank, *boxes


def mask(shape, box):
    out = np.zeros(shape, bool)
    out[box.slices()] = True
    return out


@given(pairs())
def test_a_box_measures_what_its_slices_pick(drawn):
    shape, box, _ = drawn
    part = np.zeros(shape)[box.slices()]
    assert (box.ndim, box.shape, box.size) == (part.ndim, part.shape, part.size)
    assert box.is_empty == (part.size == 0)
    assert pickle.loads(pickle.dumps(box)) == box


@times(3)
@given(pairs())
def test_intersect_overlaps_contains_and_subtract_are_those_of_sets(drawn):
    shape, box, other = drawn
    one, two = mask(shape, box), mask(shape, other)
    np.testing.assert_array_equal(mask(shape, box.intersect(other)), one & two)
    assert box.overlaps(other) == (one & two).any()
    assert box.contains(other) == (one | ~two).all()
    rest = [mask(shape, part).astype(int) for part in box.subtract(other)]
    np.testing.assert_array_equal(sum(rest, np.zeros(shape, int)), (one & ~two).astype(int))


@given(pairs(), st.integers(0, 3))
def test_a_shift_moves_there_and_back(drawn, by):
    _, box, _ = drawn
    moved = box.shift((by,) * box.ndim)
    assert moved.shape == box.shape
    assert moved.lo == tuple(a + by for a in box.lo)
    assert moved.shift((-by,) * box.ndim) == box


def test_a_box_without_axes_has_one_element():
    box = Box.whole(())
    assert (box, box.size, box.is_empty, box.slices()) == (Box((), ()), 1, False, ())
    assert box.overlaps(box)
    assert box.contains(box)
    assert box.subtract(box) == []


def test_a_box_cannot_be_changed():
    with pytest.raises(AttributeError):
        Box((0,), (1,)).lo = (1,)
    assert not hasattr(Box((0,), (1,)), "__dict__")


@pytest.mark.parametrize(
    ("lo", "hi", "says"),
    [
        ((0, 3), (1, 2), "axis 1: 3:2"),
        ((-1,), (2,), "axis 0: -1:2"),
        ((0,), (1, 2), "differ in rank"),
    ],
)
def test_corners_out_of_order_are_refused(lo, hi, says):
    with pytest.raises(InvalidKeyError, match=says):
        Box(lo, hi)


def test_a_shift_below_0_is_refused():
    with pytest.raises(InvalidKeyError, match="axis 1: -1:1"):
        Box((1, 0), (2, 2)).shift((0, -1))
