"""Elements with their own bits, and what is damaged of them."""

import numpy as np
import pytest
from floats import DTYPES, bits_of, floats
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.layouts.quantization.kept_elements import pack, unpack

# These pages convert signalling NaN themselves, to compare.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_all_bits_come_back(dtype, data):
    x = data.draw(floats(dtype))
    kept = ~np.isfinite(x)
    packed = pack(x, kept)
    found = unpack(*packed, x.size, x.dtype)
    if not kept.any():
        assert packed == (0, b"", b"")
        assert found is None
        return
    assert np.array_equal(found.places, np.flatnonzero(kept))
    assert np.array_equal(bits_of(found.values), bits_of(x[kept]))


def test_a_mask_of_nan_costs_nearly_nothing():
    x = np.ones((256, 256), "f4")
    x[64:, :100] = np.nan
    assert sum(map(len, pack(x, np.isnan(x))[1:])) < 600


def test_damage_is_found():
    x = np.array([1.0, np.nan, 2.0, np.inf])
    count, places, bits = pack(x, ~np.isfinite(x))
    for wrong in (
        (count + 1, places, bits, 4), (5, places, bits, 4), (count, places, bits[:-1], 4), (count, places, bits, 3),
        (0, places, bits, 4), (count, b"", bits, 4), (count, places, b"", 4), (count, pack(x[:1], x[:1] > 0)[1], bits, 4),
        (2**32 - 1, places, bits, 2**40),
    ):  # fmt: skip
        with pytest.raises(CorruptDataError):
            unpack(*wrong, x.dtype)
