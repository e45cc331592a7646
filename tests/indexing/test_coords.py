"""Coordinates as places: NumPy is the oracle."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing import coords as c

SHAPES = st.lists(st.integers(1, 70), min_size=1, max_size=4).map(tuple)


def places_in(shape, count, seed, ascending):
    places = np.random.default_rng(seed).integers(0, math.prod(shape), count)
    return np.sort(places) if ascending else places


@given(SHAPES, st.integers(0, 300), st.integers(0, 99), st.booleans())
def test_places_and_coordinates_are_those_of_numpy(shape, count, seed, ascending):
    places = places_in(shape, count, seed, ascending)
    wanted = np.array(np.unravel_index(places, shape))
    assert (c.unravel(places, shape) == wanted).all()
    assert (c.ravel(wanted, shape) == places).all()


@pytest.mark.parametrize("shape", [(2**62,), (2**31, 2**31), (3, 2**60), (2**20, 1, 2**42 - 1)])
def test_the_ends_of_the_largest_tensors(shape):
    places = np.array([0, 1, math.prod(shape) // 2, math.prod(shape) - 1])
    found = c.unravel(places, shape)
    assert found[:, -1].tolist() == [n - 1 for n in shape]
    assert (c.ravel(found, shape) == places).all()


def test_more_places_than_are_looked_at_at_once():
    shape = (50, 60, 70)
    places = np.arange(0, math.prod(shape), 2)
    assert (c.unravel(places, shape) == np.array(np.unravel_index(places, shape))).all()


@given(st.lists(st.integers(-(2**62), 2**62), max_size=50), st.integers(0, 40))
def test_the_order_is_the_stable_one(numbers, runs):
    places = np.array(numbers * (1 + runs % 3) + [7] * runs, np.int64)
    found, by = c.sort_places(places)
    assert by.tolist() == np.argsort(places, kind="stable").tolist()
    assert (found == np.sort(places)).all()


@pytest.mark.parametrize(("runs", "length"), [(2, 500), (300, 100), (500, 3)])
def test_runs_are_merged_in_the_stable_order(runs, length):
    places = np.random.default_rng(0).integers(0, 2**40, (runs, length))
    places[:, 0] = 7  # equal in all runs
    places = np.sort(places, axis=1).reshape(-1)
    found, by = c.sort_places(places)
    assert by.tolist() == np.argsort(places, kind="stable").tolist()
    assert (found == np.sort(places)).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-9, 9))))
def test_elements_that_share_a_place_are_combined(elements):
    coords = np.array([e[:2] for e in elements], np.int64).reshape(-1, 2).T
    values = np.array([e[2] for e in elements], np.int16)
    summed, last = {}, {}
    for a, b, v in elements:
        summed[a, b], last[a, b] = summed.get((a, b), 0) + v, v
    for rule, wanted in (("sum", summed), ("last", last)):
        at, found = c.order(coords, values, (3, 4), rule)
        assert list(map(tuple, at.T.tolist())) == sorted(wanted)
        assert found.tolist() == [wanted[key] for key in sorted(wanted)]
        assert found.dtype == np.int16
    if len(summed) < len(elements):
        with pytest.raises(InvalidTensorError, match=f"coordinate: {len(elements) - len(summed)},"):
            c.order(coords, values, (3, 4))


@pytest.mark.parametrize(
    ("coords", "says"),
    [
        ([[0, 3]], "coordinates of shape"),
        ([[0, 3], [0, 0]], "coordinate 3 is out of bounds for axis 0 with size 3"),
        ([[0], [-1]], "coordinate -1 is out of bounds for axis 1 with size 2"),
        ([[0.5], [0]], "coordinates are integers, not float64"),
        ([[0, 1], [0]], "differ in number"),
    ],
)
def test_coordinates_that_are_none(coords, says):
    with pytest.raises(InvalidTensorError, match=says):
        c.check_coords(coords, (3, 2))


def test_shapes_and_rules_that_are_none():
    with pytest.raises(InvalidTensorError, match="axis 1 has length -1"):
        c.check_shape((3, -1))
    with pytest.raises(InvalidTensorError, match=r"fewer than 2\*\*63"):
        c.check_shape((2**32, 2**31))
    with pytest.raises(InvalidTensorError, match="not a sequence of integers"):
        c.check_shape((3, 1.5))
    with pytest.raises(InvalidOptionError, match="did you mean 'sum'"):
        c.check_rule("sun")
    with pytest.raises(InvalidOptionError, match="have no sum"):
        c.check_rule("sum", np.dtype("M8[s]"))
