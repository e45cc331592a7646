"""Which samples a key means: NumPy is the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.datasets.samples.sample_selection import select_samples
from tensorlake_spark.errors import InvalidKeyError

BOUND = st.none() | st.integers(-12, 12)


@given(st.integers(0, 9), BOUND, BOUND, BOUND.filter(lambda step: step != 0))
def test_slices(count, start, stop, step):
    key = slice(start, stop, step)
    assert select_samples(key, count, "it").tolist() == [*range(count)][key]


@given(st.integers(1, 9), st.lists(st.integers(-12, 12)))
def test_lists_and_ints(count, key):
    numbers = np.arange(count)
    try:
        wanted = numbers[np.array(key, np.int64)].tolist()
    except IndexError:
        with pytest.raises(InvalidKeyError, match="out of bounds"):
            select_samples(key, count, "it")
        return
    assert select_samples(key, count, "it").tolist() == wanted
    if key:
        assert select_samples(key[0], count, "it") == wanted[0]


@pytest.mark.parametrize(
    "key", [True, None, "a", 1.0, [[0]], [0.5], {0}, slice("a", None), slice(0, 1, 0)]
)
def test_what_is_no_key(key):
    with pytest.raises(TypeError):
        select_samples(key, 5, "it")
