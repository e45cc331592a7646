"""Integers that count twice the bound: how wide they are, and what they leave out."""

import numpy as np
import pytest
from floats import DTYPES, floats
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.layouts.quantization.error_bound import floats_of, integers_of
from tensorlake_spark.tensor.spec import dtype_of

# These pages convert signalling NaN themselves, to compare.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_what_is_not_kept_apart_is_within_the_bound(dtype, data):
    x = data.draw(floats(dtype))
    bound = 10.0 ** data.draw(st.integers(-12, 12))
    found = integers_of(x, bound)
    if found is None:
        return
    integers, kept = found
    assert integers.dtype.kind == "i"
    assert integers.itemsize <= x.itemsize
    assert integers.shape == kept.shape == x.shape
    with np.errstate(invalid="ignore"):
        far, near = x.astype("f8"), floats_of(integers, bound, x.dtype).astype("f8")
        away = np.abs(far - near)
    assert (away[~kept] <= bound).all()
    assert kept[~np.isfinite(x)].all()


@pytest.mark.parametrize(("most", "width"), [(127, 1), (128, 2), (32768, 4), (2.0**31, 8)])
def test_integers_are_as_narrow_as_they_may_be(most, width):
    integers, kept = integers_of(np.array([most, -most + 1, 0.0]), 0.5)
    assert integers.itemsize == width
    assert integers.tolist() == [most, -most + 1, 0]
    assert not kept.any()


def test_elements_that_are_kept_apart_do_not_disturb_their_neighbours():
    x = np.array([np.nan, 5, np.inf, np.nan, 7, -np.inf])
    assert integers_of(x, 0.5)[0].tolist() == [5, 5, 5, 5, 7, 7]
    integers, kept = integers_of(np.full(3, np.nan), 0.5)
    assert integers.tolist() == [0, 0, 0]
    assert kept.all()


def test_a_bound_below_the_precision_is_given_up():
    assert integers_of(np.full(9, 1e9, "f4"), 1e-3) is None
    assert integers_of(np.full(9, 1e300), 1e-3) is None
    few = np.zeros(16)
    few[3] = 1e300
    assert integers_of(few, 1e-3)[1].tolist() == [i == 3 for i in range(16)]


@pytest.mark.parametrize(("dtype", "large"), [("bfloat16", 2**7), ("f2", 2**10), ("f4", 2**23)])
def test_a_bound_just_below_the_precision_is_kept(dtype, large):
    """Large elements, which lie 1 apart, are rounded twice: to the integer's multiple, and to their dtype."""
    kind = dtype_of(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    x = np.concatenate([np.linspace(-1, 1, 999), large + np.arange(50)]).astype(kind)
    integers, kept = integers_of(x, 0.95)
    away = np.abs(floats_of(integers, 0.95, kind).astype("f8") - x.astype("f8"))
    assert (away[~kept] <= 0.95).all()
    assert kept[999:].any(), "some are off by 1"
    assert not kept.all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "bits"), [("bfloat16", 0x7F81), ("f2", 0x7C01), ("f4", 0x7F800001)]
)
def test_a_signalling_nan_is_kept_without_a_warning(dtype, bits):
    kind = dtype_of(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    x = np.array([bits, 0], f"u{kind.itemsize}").view(kind)
    integers, kept = integers_of(x, 0.5)
    assert (integers.tolist(), kept.tolist()) == ([0, 0], [True, False])
