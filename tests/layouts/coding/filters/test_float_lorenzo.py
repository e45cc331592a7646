"""Distances of floats from a prediction that is added up in floats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.coding.chain import codec_of
from tensorlake_spark.layouts.coding.codec import decode, encode
from tensorlake_spark.layouts.coding.filters import float_lorenzo, lorenzo

CODEC = codec_of("lorenzo(float)+zigzag+pack")


def walk(shape):
    """A field that grows to thousands of its steps, as sums do."""
    x = np.random.default_rng(0).standard_normal(shape)
    for axis in range(x.ndim):
        np.cumsum(x, axis=axis, out=x)
    return x


@pytest.mark.parametrize("kind", ["f4", "f8"])
@given(data=st.data())
def test_floats_of_every_size_come_back(kind, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=5, max_side=6))
    x = data.draw(hnp.arrays(kind, shape))
    name, payload = encode(x, CODEC)
    assert decode(payload, codec_of(name), shape, x.dtype).tobytes() == x.tobytes()
    words = x.view(f"u{x.itemsize}")
    sizes = np.abs(x[x != 0])
    low, high = (2.0**-100, 2.0**124) if kind == "f4" else (2.0**-900, 2.0**1020)
    fits = bool(np.isfinite(x).all() and ((sizes >= low) & (sizes <= high)).all())
    assert float_lorenzo.fits(words) == fits
    assert name == (CODEC.name if fits else "lorenzo+zigzag+pack")


@pytest.mark.parametrize(
    "shape", [(5,), (7, 9), (1, 8), (8, 1), (4, 5, 6), (3, 1, 4, 7), (2, 3, 4, 5, 6)]
)
def test_many_blocks_at_once_are_as_each(shape):
    x = walk((3, *shape)).astype("f4")
    less = np.stack([float_lorenzo.subtract(block) for block in x.view("u4")])
    float_lorenzo.add(less, 1)
    assert np.array_equal(less.view("f4"), x)


@pytest.mark.parametrize("shape", [(3, 1, 4, 7), (3, 4, 1, 7), (1, 3, 4, 7)])
def test_axes_of_length_1_are_no_planes_of_the_format(shape):
    words = walk(shape).astype("f4").view("u4")
    short = float_lorenzo.subtract(words.reshape(3, 4, 7))
    assert np.array_equal(float_lorenzo.subtract(words).reshape(3, 4, 7), short)


@pytest.mark.parametrize(("kind", "low", "high"), [("f4", -100, 124), ("f8", -900, 1020)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_bounds_of_the_format_are_in_it(kind, low, high, sign):
    least, most = np.array([2.0**low, 2.0**high], kind)
    within = np.array([0, least, most], kind) * sign
    assert float_lorenzo.fits(within.view(f"u{within.itemsize}"))
    for beyond in (np.nextafter(least, least * 0), np.nextafter(most, most * 2)):
        words = np.array([1, beyond * sign], kind).view(f"u{within.itemsize}")
        assert not float_lorenzo.fits(words)


def test_the_prediction_is_added_in_the_order_of_the_format():
    corner, behind, above = np.float32(-1), np.float32(2.0**24), np.float32(1)
    block = np.array([[[corner], [behind]], [[above], [5]]], "f4")  # planes, lines, columns
    guess = (behind - corner) + above
    assert guess != (above - corner) + behind, "another order rounds in another way"
    less = float_lorenzo.subtract(block.view("u4"))
    assert (int(less[1, 1, 0]) + int(guess.view("u4"))) % 2**32 == int(np.float32(5).view("u4"))


def test_it_is_smaller_than_differences_of_words_where_exponents_differ():
    x = walk((64, 64, 64)).astype("f4")[-8:, -32:]
    words = x.view("u4").copy()
    lorenzo.turn(words)
    bits = [
        np.log2(np.abs(less.view("i4").astype("f8")) + 1).mean()
        for less in (float_lorenzo.subtract(x.view("u4")), lorenzo.subtract(words))
    ]
    assert bits[0] < bits[1] - 0.5


@pytest.mark.parametrize("dtype", ["i4", "c8", "f2", "u8"])
def test_a_row_of_other_numbers_is_damaged(dtype):
    x = np.zeros((4, 4), dtype)
    name, payload = encode(x, CODEC)
    assert name == "lorenzo+zigzag+pack"
    with pytest.raises(CorruptDataError, match="adds floats of 4 or 8 bytes, and dtype"):
        decode(payload, CODEC, x.shape, x.dtype)
