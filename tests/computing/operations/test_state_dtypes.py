"""Dtypes of states: sums fit, and what begins a reduction changes nothing."""

import numpy as np
import pytest

from tensorlake_spark.computing.operations.state_dtypes import holds_moments, identity, narrow


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4"])
@pytest.mark.parametrize("count", [1, 2, 255, 257, 1 << 16])
def test_the_narrowest_sum_holds_the_largest(dtype, count):
    of = np.dtype(dtype)
    most = 1 if of.kind == "b" else np.iinfo(of).max
    assert int(most) * count <= np.iinfo(narrow(of, count)).max


def test_moments_of_short_integers_only_are_exact():
    assert holds_moments(np.dtype("i2"), 1000)
    assert not holds_moments(np.dtype("u2"), 1 << 20)
    assert not holds_moments(np.dtype("f4"), 2)


@pytest.mark.parametrize("name", ["add", "multiply", "minimum", "maximum", "fmin", "fmax"])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "c16"])
def test_the_identity_changes_nothing(name, dtype):
    ufunc, values = getattr(np, name), np.array([0, 1, 7], dtype)
    start = np.full(3, identity(ufunc, values.dtype), dtype)
    np.testing.assert_array_equal(ufunc(start, values), values)
