"""Groups: adjacent, sorted and scattered ones give the same."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases

from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.reducing import groups
from tensorlake_spark.ops.reducing.groups import Groups, sum_of_many


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


@pytest.mark.parametrize("count", [4097, 8192, 20_001])
def test_a_sum_of_many_is_exact_to_the_last_bits(monkeypatch, count):
    """Whether loops are compiled or not, and of numbers that are of all sizes."""
    monkeypatch.setattr(groups, "loops_for", lambda *_: None)
    rng = np.random.default_rng(count)
    values = rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, count)
    where = np.arange(count)[None]
    x = Elements._trusted(where, values, (count,))
    wanted = math.fsum(values)
    scale = math.fsum(np.abs(values)) * np.finfo(float).eps
    assert abs(Groups(x, None).reduce(np.add, x.values)[0] - wanted) < 4 * scale
    for odd in (np.nan, np.inf):
        wild = values.copy()
        wild[-1] = odd
        found = Groups(Elements._trusted(where, wild, (count,)), None).reduce(np.add, wild)
        np.testing.assert_equal(found[0], odd)
    large = np.full(count, np.iinfo(np.int64).max)
    found = Groups(Elements._trusted(where, large, (count,)), None).reduce(np.add, large)
    assert found[0] == large.sum()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u8", "i1", "c16", "?"])
def test_the_sum_of_many_is_that_of_numpy(dtype):
    values = np.resize(np.array([-0.0, 3, 0, -7]).astype(dtype), 20_001)
    found = sum_of_many(values)
    if dtype not in ("f8", "i8", "u8"):
        assert found is None
        return
    assert type(found) is type(values.sum())
    assert found == values.sum()
    zeros = sum_of_many(np.full(5000, -0.0).astype(dtype))
    assert str(zeros) == str(np.zeros(1, dtype)[0])
    assert sum_of_many(values[:4096]) is None
