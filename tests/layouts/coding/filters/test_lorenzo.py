"""Differences along all axes, and floats by their order."""

import ml_dtypes
import numpy as np
import pytest

from tensorlake_spark.layouts.coding.filters import lorenzo


@pytest.mark.parametrize("shape", [(5,), (3, 70), (100, 2), (4, 5, 6), (2, 3, 2, 130)])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_sums_undo_differences(shape, size):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 256, (*shape, size), np.uint8).view(f"u{size}")[..., 0]
    less = lorenzo.subtract(words)
    want = words
    for axis in range(len(shape)):
        want = np.diff(want, axis=axis, prepend=want.dtype.type(0))
    assert np.array_equal(less, want)
    stack = np.stack([less, less])
    lorenzo.add(stack, 1)
    lorenzo.add_last(stack, stack)
    assert np.array_equal(stack, np.stack([words, words]))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_float_of_two_bytes_is_in_order_and_comes_back(dtype):
    words = np.arange(1 << 16, dtype=np.uint16)
    turned = words.copy()
    lorenzo.turn(turned)
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = words.view(dtype).astype(np.float64)
    numbers = np.flatnonzero(np.isfinite(values))
    by_words = numbers[np.argsort(turned.view(np.int16)[numbers], kind="stable")]
    assert (np.diff(values[by_words]) >= 0).all()
    lorenzo.turn(turned)
    assert np.array_equal(turned, words)
    assert lorenzo.has_order(np.dtype(dtype))


def test_integers_and_times_have_an_order_already():
    for name in ("int8", "uint64", "bool", "datetime64[s]", "timedelta64[s]"):
        assert not lorenzo.has_order(np.dtype(name))
