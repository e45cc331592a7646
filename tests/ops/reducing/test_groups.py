"""Groups: adjacent, sorted and scattered ones give the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases

from tensorlake_spark.ops.reducing import groups
from tensorlake_spark.ops.reducing.groups import Groups


@given(st.data(), cases(["float64", "int64", "complex128"], min_dims=1, min_side=1))
def test_scattered_groups_are_sorted_ones(data, case):
    _, x = case
    axis = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1))))
    found = []
    for most in (-1, 10**9):
        with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
            patch.setattr(groups, "_SPREAD", most)
            these = Groups(x, axis)
            total = these.reduce(np.add, these.values)
            spread = these.spread(these.counts)
            every = np.arange(len(these.values))
            assert (spread == these.counts[these.numbers(every)]).all()
            positions = sorted(these.positions(every))
            found.append((these.dense(total), these.dense(these.counts), positions))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_reduction_of_the_last_axes_has_adjacent_groups():
    x = case_of((3, 4, 2))
    assert Groups(x, 2).is_adjacent
    assert Groups(x, (1, 2)).is_adjacent
    assert Groups(x, None).is_adjacent
    assert not Groups(x, 0).is_adjacent


def case_of(shape):
    import tensorlake_spark as tl

    return tl.SparseTensor.from_dense(np.arange(np.prod(shape)).reshape(shape))
