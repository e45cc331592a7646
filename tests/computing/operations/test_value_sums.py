"""Squares are exact where integers are short, and sums of runs are those of NumPy."""

import numpy as np
import pytest

from tensorlake_spark.computing.operations.value_sums import (
    run_sums,
    square,
    square_of,
    sum_of,
    times,
)


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "i4", "u8", "f4", "f8", "c8"])
def test_squares_are_exact_or_those_of_doubles(dtype):
    values = np.array([3, 1, 0, 5]).astype(dtype)
    if values.dtype.kind in "iu":
        values[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    wide = np.abs(values) if values.dtype.kind == "c" else values.astype("f8")
    np.testing.assert_allclose(square_of(values), wide**2, rtol=1e-6)
    if values.dtype.itemsize <= 2:
        assert square(values).tolist() == [int(value) ** 2 for value in values.tolist()]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "m8[s]"])
@pytest.mark.parametrize("starts", [[0], [0, 1, 5, 39], range(40)])
def test_sums_of_runs_are_numpys(dtype, starts):
    values, starts = np.arange(40).astype(dtype), np.array(starts)
    want = np.add.reduceat(values, starts)
    assert run_sums(values, starts).tolist() == want.tolist()


def test_nothing_is_left_of_no_squares_and_sums_have_the_dtype_asked_for():
    with np.errstate(all="ignore"):  # as the kernels have it
        assert times(np.array([np.inf, np.nan, 4.0]), np.array([0, 0, 2])).tolist() == [0, 0, 8]
    found = sum_of(np.full((1, 300, 2), 255, np.uint8), (0, 1), np.dtype("u4"))
    assert (found.dtype, found.tolist()) == (np.dtype("u4"), [76500, 76500])
    assert sum_of(np.ones((1, 2), np.uint8), (0,), np.dtype("u2")).dtype == "u2"
