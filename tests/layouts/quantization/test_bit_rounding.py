"""Rounded mantissas keep the relative bound, which is NumPy's rtol."""

import numpy as np
import pytest
from floats import DTYPES, bits_of, floats
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.layouts.quantization.bit_rounding import within
from tensorlake_spark.tensor.spec import dtype_of

# These pages convert signalling NaN themselves, to compare.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_every_element_is_within_the_bound(dtype, data):
    x = data.draw(floats(dtype))
    bound = data.draw(st.floats(1e-9, 0.999))
    y = within(x, bound)
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    finite = np.isfinite(x)
    far, near = x[finite].astype("f8"), y[finite].astype("f8")
    assert (np.abs(near - far) <= bound * np.abs(far)).all()
    assert np.array_equal(bits_of(x[~finite]), bits_of(y[~finite])), "NaN and infinities stay"
    assert np.array_equal(bits_of(within(y, bound)), bits_of(y)), "once is enough"


def test_rounded_bits_are_zero():
    x = np.random.default_rng(0).standard_normal(1000).astype("f4")
    y = within(x, 2.0**-8)
    assert not (y.view("u4") & 0xFFFF).any()
    assert np.count_nonzero(y.view("u4") & 0x10000)


def test_what_would_overflow_stays():
    for name in ("float16", "float32", "float64"):
        most = np.array([np.finfo(name).max], name)
        assert within(most, 0.4) == most
    least = np.array([5e-324, 2.5e-310])
    assert np.array_equal(within(least, 0.4), least)
    assert within(np.array([1.0], dtype_of("bfloat16")), 0.4)[0] == 1
