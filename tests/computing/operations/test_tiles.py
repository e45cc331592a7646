"""Tiles of an answer become one where they lie over each other, and the whole where that takes less memory."""

import numpy as np

from tensorlake_spark.computing.operations.reduction_kernels import UfuncKernel
from tensorlake_spark.computing.operations.tiles import Tiles, unite, whole

INT = np.dtype("i8")
ADD = UfuncKernel(np.add, INT, INT)
LARGE = (1000, 1000)


def tile(first, values, shape=LARGE):
    values = np.asarray(values)
    return Tiles.of(shape, (slice(first, first + len(values)), slice(0, shape[1])), (values,))


def test_tiles_in_one_place_become_one():
    ones = np.ones((2, 1000), np.uint16)
    found = unite(unite(tile(4, ones), tile(4, ones), ADD), tile(8, ones), ADD)
    assert len(found.parts) == 2
    assert whole(found, ADD)[0][4:6].sum() == 4000


def test_a_narrow_state_does_not_overflow():
    most = np.full((2, 1000), 65_000, np.uint16)
    found = unite(tile(0, most), tile(0, most), ADD)
    assert whole(found, ADD)[0][0, 0] == 130_000


def test_tiles_that_take_much_memory_become_the_whole():
    found = tile(0, np.ones((400, 1000), INT))
    for first in (400, 800):
        found = unite(found, tile(first, np.ones((200, 1000), INT)), ADD)
    assert [*found.parts] == [()]
    assert whole(found, ADD)[0].sum() == 800_000


def test_places_may_be_indices():
    places = (np.array([0, 3]), np.array([1, 2, 4]))
    found = Tiles.of((5, 6), places, (np.ones((2, 3), INT),))
    found = unite(found, Tiles.of((5, 6), (slice(0, 5), slice(0, 6)), (np.ones((5, 6), INT),)), ADD)
    assert whole(found, ADD)[0].sum() == 36
