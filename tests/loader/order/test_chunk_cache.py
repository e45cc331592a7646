"""A part of a sequence is what is computed, whatever was asked for before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.loader.order.chunk_cache import ChunkCache


class Squares:
    """Square numbers, and what was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, start, stop):
        self.asked.append((start, stop))
        return np.arange(start, stop) ** 2


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted), max_size=12),
    st.integers(1, 40),
)
def test_any_part_is_right_whatever_was_asked_before(parts, length):
    cache = ChunkCache(Squares(), 100, length)
    for start, stop in parts:
        assert cache.at(start, stop).tolist() == [i * i for i in range(start, stop)]


def test_a_sequence_is_computed_about_once():
    squares = Squares()
    cache = ChunkCache(squares, 1000, 100)
    for start in range(0, 1000, 7):
        cache.at(start, min(1000, start + 7))
    assert sum(stop - start for start, stop in squares.asked) < 1000 + 10 * 7 + 100
    assert len(squares.asked) <= 11


def test_what_is_given_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        ChunkCache(Squares(), 10, 5).at(0, 3)[0] = 1


@pytest.mark.parametrize("places", [(-1, 3), (3, 2), (0, 11)])
def test_places_outside(places):
    with pytest.raises(InvalidKeyError, match="are not in an epoch of 10 samples"):
        ChunkCache(Squares(), 10, 5).at(*places)
