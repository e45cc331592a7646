"""The halves of float32 join exactly, whatever the bits."""

import ml_dtypes
import numpy as np
import pytest
from half_kernel_law import by_loops
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorlake_spark.layouts.quantization.halves import join, nearest, part

EDGES = np.array(
    [0, 0x80000000, 1, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F810000,
     0x7F81FFFF, 0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F7F8000, 0x007FFFFF, 0x00008000, 0x7FFF8000],
    np.uint32,
)  # fmt: skip


def check(bits):
    x = bits.view(np.float32)
    parts = part(x)
    upper = (bits >> 16) & 0x7F
    hidden = np.isnan(x) & (upper == 0)
    assert (parts is None) == bool(hidden.any())
    if parts is None:
        return
    assert np.array_equal(join(*parts).view(np.uint32), bits)
    if len(bits) < 1000:  # by Python, longer ones take too long
        with by_loops(), np.errstate(over="ignore"):
            assert np.array_equal(join(*parts).view(np.uint32), bits)
    with np.errstate(invalid="ignore"):
        native = parts[0].view(ml_dtypes.bfloat16).astype("f4")
    assert np.array_equal(np.isnan(native), np.isnan(x)), "NaN is NaN in half precision"
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(ml_dtypes.bfloat16).astype("f4")
    tie = (bits & 0xFFFF) == 0x8000
    plain = ~np.isnan(x) & ~tie
    assert np.array_equal(native[plain], want[plain]), "the nearest"


def test_edges():
    check(EDGES)
    check(np.array([0x7F800001], np.uint32))
    check(np.array([0x3F800000, 0xFF80FFFF], np.uint32))


@given(hnp.arrays(np.uint32, st.integers(1, 200)))
def test_any_bits(bits):
    check(bits)


@pytest.mark.parametrize("upper", [0x0000, 0x3F80, 0x7F7F, 0x7F80, 0x7FC0, 0xFFFF])
def test_all_lower_halves(upper):
    check((np.uint32(upper) << 16) + np.arange(1 << 16, dtype=np.uint32))


def test_the_nearest_of_what_is_not_split():
    x = np.array([0x7F800001, 0x3F800000, 0xFF800003], np.uint32).view(np.float32)
    assert nearest(x).tolist() == [0x7FC0, 0x3F80, 0xFFC0]
