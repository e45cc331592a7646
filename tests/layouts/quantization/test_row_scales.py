"""Codes and scales of rows."""

from fractions import Fraction

import numpy as np
import pytest
from floats import DTYPES, bits_of, floats
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.layouts.quantization.quantized_block import decode, encode
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


# Of each dtype: the half of its last digit, relative to a number, and the half of its least number.
ROUNDING = {
    "float16": (Fraction(1, 2**11), Fraction(1, 2**25)),
    "bfloat16": (Fraction(1, 2**8), Fraction(1, 2**134)),
    "float32": (Fraction(1, 2**24), Fraction(1, 2**150)),
    "float64": (Fraction(1, 2**53), Fraction(1, 2**1075)),
}


def off_by(x):
    """How far each finite element of a row is off when it is read, the half of its scale, and its rounding; exactly."""
    codec, values, _ = encode(x, "int8+raw", "x", (0,) * x.ndim)
    found = decode(values, None, codec, x.shape, x.dtype)
    assert (
        bits_of(found)[~np.isfinite(x.reshape(-1))] == bits_of(x)[~np.isfinite(x.reshape(-1))]
    ).all()
    digit, least = ROUNDING[x.dtype.name]
    _, scales, _ = codes_of(x)
    step = np.broadcast_to(scales[..., None], x.shape).reshape(-1)
    for was, now, scale in zip(x.reshape(-1), found.reshape(-1), step, strict=True):
        if np.isfinite(was):
            was, now, scale = (Fraction(float(n)) for n in (was, now, scale))
            yield abs(now - was), scale / 2, max(digit * (abs(was) + scale), least)


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_an_element_is_off_by_half_of_its_scale_and_the_rounding_of_the_dtype(dtype, data):
    x = data.draw(floats(dtype))
    with np.errstate(over="ignore"):
        far = np.abs(x.astype("f8"))
    x[np.isfinite(far) & (far > 1e40)] = 1  # no float32 is their scale, which is an error
    for off, half, rounding in off_by(x):
        assert off <= half + rounding


@pytest.mark.parametrize("dtype", DTYPES)
def test_extremes_are_off_by_no_more(dtype):
    kind = dtype_of(dtype)
    word = np.dtype(f"u{kind.itemsize}")
    one = int(bits_of(np.ones(1, kind))[0])
    with np.errstate(over="ignore"):
        top = bits_of(np.array([3e38], "f8").astype(kind))[0]
    infinity = int(bits_of(np.array([np.inf]).astype(kind))[0])
    top = min(int(top), infinity - 1)
    least = one - int(bits_of(np.array([2.0**-13]).astype(kind))[0])  # bits of a factor of 2 ** 13
    rng = np.random.default_rng(0)
    worst = Fraction(0)
    for upper in (1, 2, 127, least // 2, one, one + 1, one + 3, top // 2 + one // 2, top - 1, top):
        bits = np.concatenate([[0, 1, upper, max(1, upper - 1)], rng.integers(0, upper + 1, 60)])
        row = bits.astype(word).view(kind)
        spread = (np.linspace(0, 1, 64) * float(row.astype("f8").max())).astype(kind)
        for x in (row, -row, spread[None], np.stack([row, -spread])):
            for off, half, rounding in off_by(np.ascontiguousarray(x)):
                assert off <= half + rounding
                worst = max(worst, off / half if half else 0)
    assert worst > (Fraction(5, 4) if dtype == "bfloat16" else Fraction(9, 10))
