"""Codes and scales of rows."""

import numpy as np
import pytest
from floats import DTYPES, floats
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.layouts.quantization.row_scales import codes_of, floats_of
from tensorlake_spark.tensor.spec import dtype_of

# These pages convert signalling NaN themselves, to compare.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")


def test_a_row_goes_from_minus_127_to_127():
    codes, scales, kept = codes_of(np.array([[254.0, -254, 1, 1.1], [0, 0, 0, -0.0]]))
    assert codes.tolist() == [[127, -127, 0, 1], [0, 0, 0, 0]]
    assert scales.tolist() == [2.0, 0.0]
    assert scales.dtype == np.float32
    assert not np.signbit(scales).any(), "zeros come back as they were"
    assert not kept.any()


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_nothing_finite_is_kept_apart_unless_rounding_makes_it_infinite(dtype, data):
    x = data.draw(floats(dtype))
    codes, scales, kept = codes_of(x)
    assert codes.min() >= -127
    assert scales.shape == x.shape[:-1]
    with np.errstate(invalid="ignore", over="ignore"):
        far = x.astype("f8")
    fine = np.isfinite(scales)[..., None] & np.isfinite(x)
    near = floats_of(codes, np.where(np.isfinite(scales), scales, 0), x.dtype)
    assert not (kept & fine & np.isfinite(near) & (np.abs(far) < 1e38)).any()
    assert kept[~np.isfinite(x)].all()


def test_the_greatest_floats_survive():
    for name in ("f2", "f4"):
        x = np.full((1, 3), np.finfo(name).max, name)
        codes, scales, kept = codes_of(x)
        near = floats_of(codes, scales, x.dtype)
        assert kept.any() or np.isfinite(near).all()
    assert np.isinf(codes_of(np.array([1e300]))[1])


def test_the_least_doubles_have_a_scale():
    codes, scales, kept = codes_of(np.array([1e-300, 5e-324]))
    assert scales == np.float32(1e-45)
    assert codes.tolist() == [0, 0]
    assert not kept.any()


def test_rank_0():
    codes, scales, kept = codes_of(np.array(-3.0))
    assert (codes.shape, scales.shape, kept.shape) == ((), (), ())
    assert codes == -127


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "bits"), [("bfloat16", 0x7F81), ("f2", 0x7C01), ("f4", 0x7F800001)]
)
def test_a_signalling_nan_is_kept_without_a_warning(dtype, bits):
    kind = dtype_of(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    codes, _, kept = codes_of(np.array([[bits, 0]], f"u{kind.itemsize}").view(kind))
    assert (codes.tolist(), kept.tolist()) == ([[0, 0]], [[True, False]])
