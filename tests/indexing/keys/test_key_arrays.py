"""Index arrays together: how they pair, and where their axes stand."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing.keys.key_arrays import (
    broadcast,
    place_of_arrays,
    points_of,
    true_places,
)

FULL = slice(None)
ZERO = np.array([0])


def test_arrays_masks_and_integers_pair():
    mask = np.array([[True, False], [False, True], [True, False]])
    axes, coords, shape = points_of([1, FULL, mask, np.array([[0], [-1]])], (3, 9, 3, 2, 4))
    assert (axes, shape) == ((0, 2, 3, 4), (2, 3))
    x = np.arange(3 * 9 * 3 * 2 * 4).reshape(3, 9, 3, 2, 4)
    found = x[coords[0], :, coords[1], coords[2], coords[3]].reshape(2, 3, 9)
    np.testing.assert_array_equal(found, x[1, :, mask, [[0], [-1]]])


def test_a_bool_pairs_and_stands_for_no_axis():
    axes, coords, shape = points_of([np.array(True), np.array([2, 0]), np.array(True)], (3,))
    assert (axes, coords.tolist(), shape) == ((0,), [[2, 0]], (2,))
    axes, coords, shape = points_of([np.array(False), FULL], (3,))
    assert (axes, coords.shape, shape) == ((), (0, 0), (0,))


def test_indices_of_which_no_point_is_left_are_not_looked_at():
    """As in NumPy; integers are."""
    x, none = np.zeros((3, 4)), np.zeros(0, np.int64)
    assert points_of([np.array([7]), none], x.shape)[2] == x[np.array([7]), none].shape == (0,)
    for picks in (lambda: points_of([7, none], x.shape), lambda: x[7, none]):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
            picks()


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([FULL, 2, ZERO], 1),
        ([FULL, 2, None, ZERO], 0),
        ([ZERO, ..., FULL, 2], 0),
        ([None, FULL, ZERO, np.array(True)], 2),
        ([FULL, 2, ..., ZERO], 0),
    ],
)
def test_axes_of_arrays_stand_in_their_place_unless_something_keeps_them_apart(items, place):
    assert place_of_arrays(items) == place


def test_shapes_that_do_not_broadcast_are_named():
    assert broadcast([np.zeros((2, 1)), np.zeros(())]) == (2, 1)
    with pytest.raises(InvalidKeyError, match=r"with shapes \(2,\) \(3, 1\) \(3,\); each axis"):
        broadcast([np.zeros(2), np.zeros((3, 1)), np.zeros(3)])


def test_a_mask_is_as_long_as_its_axes():
    mask = np.array([[True, False, True], [False, False, True]])
    assert [axis.tolist() for axis in true_places(mask, (9, 2, 3), 1)] == [[0, 0, 1], [0, 2, 2]]
    for axis, size, count in ((1, 9, 2), (2, 7, 3)):
        shape = (9, *(size if k == axis else n for k, n in ((1, 2), (2, 3))))
        said = f"along axis {axis}; size of axis is {size} but size of corresponding boolean axis is {count}"
        with pytest.raises(InvalidKeyError, match=said):
            true_places(mask, shape, 1)
