"""Slabs that make up a tensor: NumPy counts who covers what."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.spark.source.write.extents import check_disjoint

SHAPE = (6, 5, 4)


@st.composite
def boxes(draw):
    sides = [sorted(draw(st.lists(st.integers(0, n), min_size=2, max_size=2))) for n in SHAPE]
    return Box(tuple(a for a, _ in sides), tuple(b for _, b in sides))


@given(st.lists(boxes(), max_size=6))
def test_slabs_that_share_an_element_are_refused(found):
    covered = np.zeros(SHAPE, int)
    for box in found:
        covered[box.slices()] += 1
    if covered.max() > 1:
        with pytest.raises(InvalidTensorError, match="overlap"):
            check_disjoint("x", found)
    else:
        check_disjoint("x", found)


def test_tensors_without_an_axis_have_one_slab():
    check_disjoint("x", [Box((), ())])
    with pytest.raises(InvalidTensorError, match="more than one slab"):
        check_disjoint("x", [Box((), ())] * 2)


@pytest.mark.parametrize("counts", [(1, 20_000), (150, 150), (20_000, 1)])
def test_many_slabs_are_looked_at_in_seconds_whichever_axis_they_follow(counts):
    """Each held against each other would take hours."""
    many = [Box((5 * i, j), (5 * i + 5, j + 1)) for i, j in itertools.product(*map(range, counts))]
    check_disjoint("x", many)
    with pytest.raises(InvalidTensorError, match=r"overlap.*\(0, 0\)"):
        check_disjoint("x", [*many, Box((0, 0), (1, 1))])
