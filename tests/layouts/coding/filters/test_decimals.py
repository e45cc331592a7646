"""Floats that are decimal numbers, as integers."""

import numpy as np
import pytest

from tensorlake_spark.layouts.coding.filters import decimals


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("places", decimals.PLACES)
def test_every_bit_comes_back_or_nothing_does(dtype, places):
    rng = np.random.default_rng(places)
    for scale in (1, 100, 1e6, 1e15):
        with np.errstate(over="ignore"):  # infinity in float16
            values = (np.rint(rng.normal(0, scale, 500)) / 10.0**places + 0.0).astype(dtype)
        integers = decimals.integers_of(values, places)
        if integers is None:
            assert dtype != "f8" or scale > 1e6
            continue
        back = np.empty_like(values)
        decimals.put_floats(integers, places, back)
        assert back.tobytes() == values.tobytes()
        assert integers.itemsize == values.itemsize


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, -0.0, 0.125, 1e16, 5e-324])
def test_what_does_not_come_back_is_refused(odd):
    assert decimals.integers_of(np.array([1.25, odd]), 2) is None


def test_the_fewest_places_are_found():
    assert decimals.places_of(np.array([3.0, 4.0])) == 0
    assert decimals.places_of(np.array([3.5, 4.25])) == 2
    assert decimals.places_of(np.array([1e-9])) == 9
    assert decimals.places_of(np.array([1e-10])) is None
    late = np.ones(1000)
    late[999] = 0.1
    assert decimals.places_of(late) is None  # only the first values say how many
    for other in (np.arange(3), np.ones(3, np.complex64), np.ones(3, bool)):
        assert decimals.places_of(other) is None
