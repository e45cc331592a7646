"""Blocks in random order and samples moved within them: its laws, and golden values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.block_shuffle import BlockOrder, BlockShuffle

KEYS = st.integers(0, 2**64 - 1)
SIZES = st.lists(st.integers(0, 30), max_size=30)
BUFFERS = st.integers(1, 100)
SPLITS = st.integers(1, 9)


def starts_of(sizes, first=0):
    return first + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def even(count, size):
    return np.append(np.arange(0, count, size), count)


@given(SIZES, KEYS, st.integers(0, 1000))
def test_blocks_stay_whole_and_every_position_comes_once(sizes, key, first):
    starts = starts_of(sizes, first)
    order = BlockOrder(starts, key)
    found = order.at(np.arange(order.count))
    assert np.array_equal(np.sort(found), np.arange(first, first + sum(sizes)))
    block = np.searchsorted(starts, found, side="right")
    assert np.count_nonzero(np.diff(block)) == max(0, np.count_nonzero(sizes) - 1)
    assert (np.diff(found)[np.diff(block) == 0] == 1).all()


def test_all_orders_of_blocks_come():
    assert len({tuple(BlockOrder(even(6, 2), key).at(np.arange(6))) for key in range(200)}) == 6


@given(SIZES, KEYS, BUFFERS, SPLITS)
def test_every_position_comes_once(sizes, key, buffer, splits):
    shuffle = BlockShuffle(starts_of(sizes), key, buffer, splits)
    assert len(shuffle) == sum(sizes)
    assert np.array_equal(np.sort(shuffle.at(0, len(shuffle))), np.arange(len(shuffle)))


@given(SIZES, KEYS, BUFFERS, SPLITS)
def test_in_its_run_a_sample_moves_by_less_than_its_part_of_the_buffer(sizes, key, buffer, splits):
    shuffle = BlockShuffle(starts_of(sizes), key, buffer, splits)
    count = len(shuffle)
    # With a buffer of one place for each run nothing moves: that is the order of blocks, dealt.
    still = BlockShuffle(starts_of(sizes), key, min(buffer, splits), splits)
    if count <= buffer:
        return  # a true permutation
    found = shuffle.at(0, count)
    dealt = still.at(0, count) if count > splits else found
    for split in range(splits):
        run, before = found[split::splits], dealt[split::splits]
        place = np.empty(count, np.int64)
        place[before] = np.arange(len(before))
        assert set(run) == set(before)
        assert np.abs(place[run] - np.arange(len(run))).max(initial=0) < -(-buffer // splits)


@given(st.data(), SIZES, KEYS, BUFFERS, SPLITS)
def test_a_part_is_that_part_of_the_whole_however_it_is_cut(data, sizes, key, buffer, splits):
    shuffle = BlockShuffle(starts_of(sizes), key, buffer, splits)
    count = len(shuffle)
    parts = data.draw(
        st.lists(st.tuples(st.integers(0, count), st.integers(0, count)).map(sorted), max_size=6)
    )
    whole = BlockShuffle(starts_of(sizes), key, buffer, splits).at(0, count)
    for start, stop in parts:
        assert shuffle.at(start, stop).tolist() == whole[start:stop].tolist()


def test_parts_of_a_long_sequence_are_parts_of_the_whole():
    """Longer than what is computed at once, and from the middle."""
    starts = even(60_000, 70)
    whole = BlockShuffle(starts, 4, 2000, 8).at(0, 60_000)
    for start in (0, 1, 31_111, 59_990):
        shuffle = BlockShuffle(starts, 4, 2000, 8)
        for low in range(start, min(60_000, start + 9000), 64):
            high = min(60_000, low + 64)
            assert np.array_equal(shuffle.at(low, high), whole[low:high])


def test_one_split_reads_few_blocks_at_a_time():
    """A hundred samples of one run lie in the blocks of its buffer, not in all."""
    shuffle = BlockShuffle(even(100_000, 100), 1, 8000, 8)
    run = shuffle.at(0, 100_000)[3::8]
    for start in range(0, len(run) - 100, 1000):
        blocks = np.unique(run[start : start + 100] // 100)
        assert len(blocks) <= 2 * 1000 / 100 + 3


def test_what_fits_into_the_buffer_is_a_true_shuffle_whatever_the_blocks():
    """Position 0 is equally often in each fifth of the sequence, and position 1 of its block does not follow it."""
    orders = [BlockShuffle(even(50, 10), key, 50, 5).at(0, 50) for key in range(2000)]
    places, others = np.argsort(orders, axis=1)[:, :2].T
    times = np.bincount(places // 10, minlength=5)
    assert (np.abs(times - 400) < 5 * np.sqrt(320)).all()
    assert np.mean(places % 5 == others % 5) == pytest.approx(9 / 49, abs=0.05)


def test_more_splits_than_samples():
    assert sorted(BlockShuffle(even(3, 2), 1, 1, 8).at(0, 3).tolist()) == [0, 1, 2]


def test_golden_values():
    assert BlockShuffle(even(30, 5), 1, 8, 2).at(0, 30).tolist() == [
        6,
        0,
        5,
        2,
        8,
        3,
        7,
        4,
        12,
        1,
        11,
        15,
        9,
        16,
        10,
        17,
        13,
        18,
        25,
        19,
        14,
        21,
        26,
        20,
        27,
        23,
        28,
        22,
        29,
        24,
    ]
    large = BlockShuffle(even(10**6, 100), 1, 16_384, 16)
    assert large.at(500_000, 500_004).tolist() == [185121, 84545, 167604, 673035]


def test_places_outside():
    with pytest.raises(InvalidKeyError, match="5:11 are not in an epoch of 10 samples"):
        BlockShuffle(even(10, 2), 1, 4).at(5, 11)


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        ([], "their shape is"),
        ([[0, 1]], "their shape is"),
        ([0, 5, 3], "block 1 begins at 5 and ends at 3"),
    ],
)
def test_starts_that_make_no_blocks(starts, said):
    with pytest.raises(InvalidOptionError, match=said):
        BlockShuffle(np.array(starts, np.int64), 1, 4)


@pytest.mark.parametrize(
    ("buffer", "splits", "said"), [(0, 1, "buffer=0"), (4, 0, "splits=0"), (-1, 2, "buffer=")]
)
def test_options_out_of_range(buffer, splits, said):
    with pytest.raises(InvalidOptionError, match=said):
        BlockShuffle(even(10, 2), 1, buffer, splits)
