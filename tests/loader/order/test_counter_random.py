"""Random numbers by counting: golden values, and the laws of what is uniform and what is exponential."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.order.counter_random import exponential, hashed, key_of, uniform

KEYS = st.integers(0, 2**64 - 1)


def splitmix(seed, count):
    """The generator as Steele, Lea and Flood write it, in Python's integers."""
    mask = 2**64 - 1
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def test_golden_values_of_splitmix():
    """Published with the algorithm; an epoch that was begun with any version goes on with these."""
    found = hashed(1234567, np.arange(5)).tolist()
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_golden_values_of_keys():
    assert key_of() == 0xB4B2797457A0A6E4
    assert key_of(0, 1, b"digest", "blocks") == 0x5717B7738578CED4
    assert key_of(-1, 2**70) == 0xD8EE4B819D2BC0CA


@given(KEYS)
def test_it_is_splitmix(key):
    assert hashed(key, np.arange(20)).tolist() == list(splitmix(key, 20))


@given(KEYS, st.lists(st.integers(0, 2**63 - 1), max_size=20))
def test_a_number_depends_on_key_and_counter_alone(key, counters):
    together = hashed(key, np.array(counters, np.int64))
    assert together.dtype == np.uint64
    for counter, number in zip(counters, together):
        assert hashed(key, np.array([[counter]])).tolist() == [[int(number)]]


def test_counters_are_not_changed():
    counters = np.arange(4, dtype=np.uint64)
    hashed(1, counters)
    assert counters.tolist() == [0, 1, 2, 3]


def test_keys_of_more_than_64_bits_and_below_zero_wrap():
    assert hashed(2**64 + 5, np.arange(3)).tolist() == hashed(5, np.arange(3)).tolist()
    assert hashed(-1, np.arange(3)).tolist() == hashed(2**64 - 1, np.arange(3)).tolist()


PARTS = st.lists(st.one_of(st.integers(), st.text(), st.binary()), max_size=4)


@given(PARTS, PARTS)
def test_other_parts_are_another_key(parts, others):
    same = [(type(p), p) for p in parts] == [(type(o), o) for o in others]
    assert (key_of(*parts) == key_of(*others)) == same
    assert 0 <= key_of(*parts) < 2**64


def test_integers_of_numpy_are_integers():
    assert key_of(np.int64(3)) == key_of(3)


def test_a_float_is_no_part():
    with pytest.raises(InvalidOptionError, match=r"0\.5 is a float"):
        key_of(1, 0.5)


def test_uniform_is_flat():
    """In 100 bins of 10,000 expected each, chi-square is within five standard deviations of its mean."""
    found = uniform(3, np.arange(1_000_000))
    assert found.dtype == np.float64
    assert found.min() >= 0
    assert found.max() < 1
    chi = ((np.bincount((found * 100).astype(int), minlength=100) - 10_000) ** 2 / 10_000).sum()
    assert abs(chi - 99) < 5 * np.sqrt(2 * 99)


@pytest.mark.parametrize("lag", [1, 2, 64, 1000])
def test_neighbours_do_not_hang_together(lag):
    found = uniform(4, np.arange(200_000))
    assert abs(np.corrcoef(found[:-lag], found[lag:])[0, 1]) < 5 / np.sqrt(200_000)
    other = uniform(5, np.arange(200_000))
    assert abs(np.corrcoef(found, other)[0, 1]) < 5 / np.sqrt(200_000)


def test_exponential_is_minus_the_logarithm_of_a_uniform_number():
    odd = (hashed(6, np.arange(100_000)) >> np.uint64(12)) * 2.0 + 1
    expected = -np.log(odd / 2.0**53)
    found = exponential(6, np.arange(100_000))
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    assert found.min() > 0
    assert np.isfinite(found).all()


def test_exponential_keeps_the_order_of_its_uniform_numbers():
    odd = (hashed(6, np.arange(100_000)) >> np.uint64(12)) * 2.0 + 1
    assert (np.diff(exponential(6, np.arange(100_000))[np.argsort(-odd)]) >= 0).all()


def test_golden_values_of_numbers():
    assert uniform(1, np.arange(3)).tolist() == [
        0.5665615751722809,
        0.7457817572627011,
        0.9710027535867962,
    ]
    assert exponential(1, np.arange(3)).tolist() == [
        0.5681695103832793,
        0.29332227216583834,
        0.02942597486909021,
    ]
