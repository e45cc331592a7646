"""Rounding to smaller floats: NumPy, and exact arithmetic by fractions, are the oracles."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.layouts.quantization.casts import greatest, lost, rounded
from tensorlake_spark.tensor.spec import dtype_of

SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def finite(name):
    """All finite values of a dtype that are at least 0, ascending, as doubles."""
    dtype = dtype_of(name)
    every = np.arange(1 << (8 * dtype.itemsize - 1), dtype=f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):
        values = every.astype(np.float64)
    return values[np.isfinite(values)]


KNOWN = {name: finite(name) for name in SMALL}


@pytest.mark.parametrize("name", SMALL)
@given(share=st.floats(0, 1), nudge=st.sampled_from([-(2.0**-50), 0.0, 2.0**-50]), sign=st.sampled_from([-1.0, 1.0]))  # fmt: skip
def test_the_nearest_is_taken_and_ties_go_to_even(name, share, nudge, sign):
    values = KNOWN[name]
    place = int(share * (len(values) - 2))
    below, above = values[place], values[place + 1]
    x = (below + above) / 2 * (1 + nudge)
    got = float(rounded(np.array([sign * x]), dtype_of(name))[0])
    down, up = Fraction(x) - Fraction(below), Fraction(above) - Fraction(x)
    want = below if down < up or (down == up and place % 2 == 0) else above
    assert got == sign * want


def test_a_double_is_rounded_once():
    x = np.array([1 + 2.0**-8 + 2.0**-40])
    assert float(x.astype(ml_dtypes.bfloat16)[0]) == 1.0, "ml_dtypes rounds twice"
    assert float(rounded(x, dtype_of("bfloat16"))[0]) == 1 + 2.0**-7


@pytest.mark.parametrize("name", SMALL)
def test_what_is_lost_is_found(name):
    dtype = dtype_of(name)
    x = np.array([0.0, -0.0, greatest(dtype), 2 * greatest(dtype), np.inf, np.nan, 1e300, 5e-324])
    endless = name != "float8_e4m3fn"
    want = [False, False, False, True, not endless, False, True, False]
    assert lost(x, rounded(x, dtype)).tolist() == want
    assert np.signbit(rounded(x, dtype).astype("f8")[1])
