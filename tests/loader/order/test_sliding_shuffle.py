"""The sliding shuffle against its definition, which sorts everything at once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.counter_random import hashed
from tensorlake_spark.loader.order.sliding_shuffle import SlidingShuffle

KEYS = st.integers(0, 2**64 - 1)
COUNTS = st.integers(0, 400)
BUFFERS = st.integers(1, 100)


def defined(count, key, buffer):
    """Items sorted by i + buffer * u, in Python's integers: 16 bits behind the point, ties by item."""
    chance = (hashed(key, np.arange(count)) >> np.uint64(32)).tolist()
    keys = [(item << 16) + (u * buffer >> 16) for item, u in enumerate(chance)]
    return sorted(range(count), key=lambda item: (keys[item], item))


@given(COUNTS, KEYS, BUFFERS)
def test_it_is_what_it_is_defined_as(count, key, buffer):
    found = SlidingShuffle(count, key, buffer).at(0, count)
    assert found.dtype == np.int64
    if count > buffer:
        assert found.tolist() == defined(count, key, buffer)
    else:
        assert sorted(found.tolist()) == list(range(count))


@given(COUNTS, KEYS, BUFFERS)
def test_every_item_comes_once_and_moves_by_less_than_the_buffer(count, key, buffer):
    found = SlidingShuffle(count, key, buffer).at(0, count)
    assert np.array_equal(np.sort(found), np.arange(count))
    assert np.abs(found - np.arange(count)).max(initial=0) < buffer


@given(st.data(), COUNTS, KEYS, BUFFERS)
def test_a_part_is_that_part_of_the_whole_however_it_is_cut(data, count, key, buffer):
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=6)))
    edges = [0, *cuts, count]
    shuffle = SlidingShuffle(count, key, buffer)
    parts = [shuffle.at(low, high) for low, high in itertools.pairwise(edges)]
    assert np.concatenate(parts).tolist() == shuffle.at(0, count).tolist()


def test_large_buffers_are_sorted_without_packing():
    """Keys and places need more than 64 bits together; the result is the same as by definition."""
    count, buffer = 2**21, 2**20
    shuffle = SlidingShuffle(count, 3, 2**20)
    found = shuffle.at(0, count)
    keys = (hashed(3, np.arange(count)) >> np.uint64(32)).astype(object)
    expected = np.lexsort(
        (
            np.arange(count),
            (np.arange(count, dtype=np.int64) << 16) + (keys * buffer >> 16).astype(np.int64),
        )
    )
    assert np.array_equal(found, expected)
    assert np.array_equal(shuffle.at(10**6, 10**6 + 50), found[10**6 : 10**6 + 50])


def test_golden_values():
    assert SlidingShuffle(20, 1, 6).at(0, 20).tolist() == [
        0,
        1,
        3,
        4,
        2,
        5,
        8,
        7,
        6,
        10,
        9,
        11,
        12,
        15,
        13,
        14,
        16,
        17,
        18,
        19,
    ]
    assert SlidingShuffle(10**9, 1, 1000).at(5 * 10**8, 5 * 10**8 + 4).tolist() == [
        500000341,
        499999518,
        500000034,
        500000155,
    ]
    assert SlidingShuffle(8, 1, 8).at(0, 8).tolist() == [4, 3, 7, 0, 1, 5, 6, 2]


def test_a_buffer_of_one_moves_nothing():
    assert SlidingShuffle(50, 1, 1).at(0, 50).tolist() == list(range(50))


def test_far_from_the_ends_items_move_either_way_alike():
    """By a uniform number less its mean: by a quarter of the buffer on average."""
    moved = SlidingShuffle(100_000, 2, 999).at(50_000, 90_000) - np.arange(50_000, 90_000)
    assert abs(moved.mean()) < 10
    assert abs(np.abs(moved).mean() / 999 - 0.25) < 0.02


def test_what_fits_into_the_buffer_is_a_true_shuffle():
    first = [SlidingShuffle(5, key, 5).at(0, 1)[0] for key in range(5000)]
    assert (np.abs(np.bincount(first) - 1000) < 5 * np.sqrt(800)).all()


@pytest.mark.parametrize("places", [(-1, 3), (3, 2), (0, 11)])
def test_places_outside(places):
    with pytest.raises(InvalidKeyError, match="are not in a shuffle of 10"):
        SlidingShuffle(10, 1, 3).at(*places)


@pytest.mark.parametrize("buffer", [0, -5, 2**30 + 1])
def test_a_buffer_out_of_range(buffer):
    with pytest.raises(InvalidOptionError, match=f"buffer={buffer} of a shuffle is not in 1 to"):
        SlidingShuffle(10, 1, buffer)


def test_a_negative_count():
    with pytest.raises(InvalidOptionError, match="count=-1"):
        SlidingShuffle(-1, 1, 1)


def test_nothing():
    assert len(SlidingShuffle(0, 1, 1)) == 0
    assert SlidingShuffle(0, 1, 1).at(0, 0).tolist() == []
