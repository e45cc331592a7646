"""Permutations with random access: all numbers once, from any side, and well shuffled; golden values."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.permutation import Permutation

KEYS = st.integers(0, 2**64 - 1)


def whole(count, key):
    return Permutation(count, key).at(np.arange(count))


@given(st.integers(0, 5000), KEYS)
def test_every_number_comes_once(count, key):
    assert np.array_equal(np.sort(whole(count, key)), np.arange(count))


@pytest.mark.parametrize("count", [1024, 1025, 4096, 65_535, 65_536, 65_537, 1_000_003])
def test_every_number_comes_once_about_the_sizes_of_rectangles(count):
    assert np.array_equal(np.bincount(whole(count, 11), minlength=count), np.ones(count))


@given(st.data(), st.integers(1, 5000), KEYS)
def test_an_item_does_not_depend_on_what_else_is_asked_for(data, count, key):
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=20))
    found = Permutation(count, key).at(np.array(places, np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == whole(count, key)[places].tolist()


@given(st.integers(2**40, 2**62 - 1), KEYS)
def test_no_item_of_a_huge_range_comes_twice(count, key):
    """It is made at once, and needs no memory: only some places are computed."""
    places = np.append(np.arange(500) * (count // 500), count - 1)
    found = Permutation(count, key).at(places)
    assert len(np.unique(found)) == len(places)
    assert found.min() >= 0
    assert found.max() < count


def test_golden_values():
    assert whole(12, 1).tolist() == [8, 10, 4, 3, 7, 0, 11, 1, 5, 9, 6, 2]
    places = np.array([0, 1, 2, 10**6, 10**7 - 1])
    assert Permutation(10**7, 1).at(places).tolist() == [
        1847665,
        7863438,
        4383857,
        3403677,
        6871175,
    ]
    assert Permutation(2**61 + 1, 1).at(places).tolist() == [
        1776882299330198019,
        31267971623211118,
        735108139054291063,
        1405856416700228841,
        1074232716974569698,
    ]


def test_all_permutations_of_a_small_range_are_equally_likely():
    found = Counter(tuple(whole(4, key).tolist()) for key in range(4800))
    assert found.keys() == set(itertools.permutations(range(4)))
    chi = sum((times - 200) ** 2 / 200 for times in found.values())
    assert abs(chi - 23) < 5 * math.sqrt(2 * 23)


@pytest.mark.parametrize("count", [2000, 1_000_000])
def test_every_part_of_the_range_goes_everywhere(count):
    """How often a tenth goes to a tenth: chi-square of the table, over some keys."""
    tables = np.zeros((10, 10))
    place = np.arange(count)
    for key in range(10):
        np.add.at(tables, (place * 10 // count, whole(count, key) * 10 // count), 1)
    each = count / 10  # of ten keys: a hundredth of the range, ten times
    chi = ((tables - each) ** 2 / each).sum()
    free = 10 * 81  # margins are fixed for each key
    assert abs(chi - 81) < 5 * math.sqrt(2 * free)


@pytest.mark.parametrize("count", [1500, 300_000])
@pytest.mark.parametrize("lag", [1, 2, 38, 548])
def test_neighbours_do_not_hang_together(count, lag):
    found = whole(count, 9).astype(float)
    assert abs(np.corrcoef(found[:-lag], found[lag:])[0, 1]) < 5 / math.sqrt(count - lag)
    assert abs(np.corrcoef(found, np.arange(count))[0, 1]) < 5 / math.sqrt(count)


@pytest.mark.parametrize("count", [1500, 300_000])
def test_as_many_numbers_stay_and_follow_each_other_as_in_a_true_shuffle(count):
    """Both numbers are Poisson of mean 1: over 60 keys their sums are 60, with a deviation of 8."""
    stay = follow = 0
    for key in range(60):
        found = whole(count, key)
        stay += np.count_nonzero(found == np.arange(count))
        follow += np.count_nonzero(np.diff(found) == 1)
    assert 20 <= stay <= 100
    assert 20 <= follow <= 100


def test_another_key_is_another_permutation():
    assert np.count_nonzero(whole(100_000, 1) == whole(100_000, 2)) < 20


def test_shapes_are_kept():
    found = Permutation(100, 3)
    assert found.at(np.zeros((2, 3), np.int64)).shape == (2, 3)
    assert found.at(np.empty(0, np.int64)).tolist() == []
    assert len(found) == 100


@pytest.mark.parametrize("count", [10, 10_000])
@pytest.mark.parametrize("place", [-1, 10_000])
def test_a_place_outside(count, place):
    with pytest.raises(
        InvalidKeyError, match=f"a permutation of {count}; they go from 0 to {count - 1}"
    ):
        Permutation(count, 1).at(np.array([0, place]))


@pytest.mark.parametrize("count", [-1, 2**62])
def test_a_count_out_of_range(count):
    with pytest.raises(InvalidOptionError, match=f"count={count} of a permutation"):
        Permutation(count, 1)
