"""Draws by weight against the probabilities that they are defined by."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.order.sampling import Draw, balanced, checked_weights

KEYS = st.integers(0, 2**64 - 1)
WEIGHTS = st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), min_size=1, max_size=30)


@given(WEIGHTS, st.integers(0, 50), KEYS)
def test_with_replacement_only_what_has_weight_is_drawn(weights, count, key):
    assume(any(weights))
    found = Draw(weights, count, key=key).places()
    assert found.dtype == np.int64
    assert found.shape == (count,)
    assert (np.diff(found) >= 0).all()
    assert all(weights[place] > 0 for place in found)


@given(WEIGHTS, st.data(), KEYS)
def test_without_replacement_nothing_comes_twice(weights, data, key):
    count = data.draw(st.integers(0, sum(weight > 0 for weight in weights)))
    found = Draw(weights, count, replacement=False, key=key).places()
    assert found.dtype == np.int64
    assert found.shape == (count,)
    assert (np.diff(found) > 0).all()
    assert all(weights[place] > 0 for place in found)


@given(WEIGHTS, KEYS, st.booleans())
def test_a_draw_is_a_function_of_its_key(weights, key, replacement):
    count = sum(weight > 0 for weight in weights)
    assume(count)
    first, second = (
        Draw(weights, count, replacement=replacement, key=key).places() for _ in range(2)
    )
    assert first.tolist() == second.tolist()


def test_with_replacement_each_place_has_its_probability():
    weights = np.array([1.0, 0.0, 5.0, 2.5, 0.01, 3.0])
    times = np.bincount(Draw(weights, 200_000, key=1).places(), minlength=6)
    expected = 200_000 * weights / weights.sum()
    assert (np.abs(times - expected) <= 5 * np.sqrt(expected)).all()


def test_without_replacement_each_set_has_its_probability():
    """Two of four: first i, then j among what is left, or the other way."""
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    draws = 6000
    found = Counter(
        tuple(Draw(weights, 2, replacement=False, key=key).places().tolist())
        for key in range(draws)
    )
    total = weights.sum()
    for i, j in itertools.combinations(range(4), 2):
        a, b = weights[i], weights[j]
        chance = a / total * b / (total - a) + b / total * a / (total - b)
        assert abs(found[i, j] - draws * chance) < 5 * math.sqrt(draws * chance)


def test_weights_need_no_sum_of_one():
    first, second = (
        Draw(np.array([1.0, 2, 3]) * factor, 50, key=3).places().tolist() for factor in (1, 1024)
    )
    assert first == second


def test_weights_near_the_end_of_their_range():
    """Their sum would be infinite."""
    found = Draw([1e308, 1e308, 1e308], 3000, key=1).places()
    assert (np.abs(np.bincount(found) - 1000) < 150).all()


def test_golden_values():
    weights = np.arange(1, 11)
    assert Draw(weights, 12, key=1).places().tolist() == [0, 3, 4, 6, 6, 6, 6, 6, 7, 8, 8, 9]
    assert Draw(weights, 5, replacement=False, key=1).places().tolist() == [3, 6, 7, 8, 9]


def test_as_many_as_there_are_weights():
    assert len(Draw([1, 2, 3]).places()) == 3
    assert Draw([], 0).places().tolist() == []


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60))
def test_balanced_classes_have_the_same_probability(labels):
    weights = balanced(labels)
    assert weights.shape == (len(labels),)
    sums = [weights[np.array(labels) == label].sum() for label in set(labels)]
    np.testing.assert_allclose(sums, 1.0)
    for label in set(labels):
        assert len(set(weights[np.array(labels) == label].tolist())) == 1


def test_balanced_draws():
    labels = np.repeat(["rare", "common"], [10, 9990])
    found = labels[Draw(balanced(labels), 10_000, key=2).places()]
    assert abs(np.count_nonzero(found == "rare") - 5000) < 5 * 50


def test_labels_with_two_axes():
    with pytest.raises(InvalidOptionError, match=r"labels have shape \(2, 2\)"):
        balanced([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1, -0.5], r"weight -0\.5 of sample 1 is not"),
        ([1, math.nan], "weight nan of sample 1 is not"),
        ([math.inf, 1], "weight inf of sample 0 is not"),
        ([0, 0.0], "all 2 weights are zero"),
        ([], "all 0 weights are zero"),
        ([[1, 2]], r"weights have shape \(1, 2\): one weight for each sample"),
        (["a", "b"], "numbers are needed"),
        ([1j], "numbers are needed"),
        ([None, 1], "numbers are needed"),
        (3, r"weights have shape \(\)"),
    ],
)
def test_weights_that_cannot_be_drawn_by(weights, said):
    with pytest.raises(InvalidOptionError, match=said):
        Draw(weights, 1)


def test_weights_of_another_length():
    with pytest.raises(
        InvalidOptionError, match=r"weights have shape \(2,\): one for each of 3 samples is needed"
    ):
        checked_weights([1, 2], 3)


def test_more_without_replacement_than_there_are():
    with pytest.raises(
        InvalidOptionError, match="3 samples without replacement, and 2 weights are not zero"
    ):
        Draw([1, 0, 1], 3, replacement=False)


def test_fewer_than_none():
    with pytest.raises(InvalidOptionError, match="count=-1 of a draw"):
        Draw([1], -1)
