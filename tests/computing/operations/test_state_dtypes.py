"""Dtypes of states: sums fit, and what begins a reduction changes nothing."""

import numpy as np
import pytest

from tensorlake_spark.computing.operations.state_dtypes import (
    holds_moments,
    identity,
    narrow,
    shortened,
)


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4"])
@pytest.mark.parametrize("count", [1, 2, 255, 257, 1 << 16])
def test_the_narrowest_sum_holds_the_largest(dtype, count):
    of = np.dtype(dtype)
    most = 1 if of.kind == "b" else np.iinfo(of).max
    assert int(most) * count <= np.iinfo(narrow(of, count)).max


@pytest.mark.parametrize("widest", ["u1", "u4", "u8"])
def test_sums_of_negative_integers_wrap_around_in_unsigned_ones(widest):
    assert narrow(np.dtype("i1"), 2, np.dtype(widest)) == widest


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


@pytest.mark.parametrize("name", ["minimum", "maximum", "fmin", "fmax"])
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]", "f8"])
def test_the_identity_of_extremes_leaves_out_nothing(name, dtype):
    ufunc, values = (
        getattr(np, name),
        np.array([0, -5, "NaT" if dtype[0] in "mM" else np.nan], dtype),
    )
    start = np.full(3, identity(ufunc, values.dtype), dtype)
    np.testing.assert_array_equal(ufunc(start, values), values)


@pytest.mark.parametrize(
    ("values", "dtype", "want"),
    [
        ([0, 255], "u8", "u1"), ([0, 256], "u4", "u2"), ([1, 1 << 32], "u8", "u8"),
        ([-128, 127], "i8", "i1"), ([-1, 128], "i8", "i2"), ([-1, 65_535], "i8", "i4"),
        ([-1, (1 << 63) - 1], "i8", "i8"), ([0, (1 << 64) - 1], "u8", "u8"),
        ([-(1 << 63), 0], "i8", "i8"), ([7], "u1", "u1"), ([], "i8", "i8"),
        ([1, 2], "f8", "f8"), ([True], "?", "?"), ([3], "m8[s]", "m8[s]"),
    ],
)  # fmt: skip
def test_integers_are_shortened_as_long_as_they_stay_what_they_are(values, dtype, want):
    values = np.array(values, dtype)
    found = shortened(values)
    assert found.dtype == np.dtype(want)
    np.testing.assert_array_equal(found.astype(values.dtype), values)
