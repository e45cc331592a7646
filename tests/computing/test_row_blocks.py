"""Rows become blocks, in the place that NumPy's answer has for them."""

import numpy as np

from tensorlake_spark.computing.row_blocks import _tilings, fill_blocks, oriented, whole_place
from tensorlake_spark.indexing import select
from tensorlake_spark.tensor.spec import TensorSpec


def test_rows_that_do_not_tile_a_box_stay_apart():
    lo = np.array([[0, 0], [0, 4], [4, 0]])
    hi = lo + 4
    assert [*_tilings(lo, hi, range(3), 1000)] == [(0, 2), (2, 3)]
    assert [*_tilings(lo, hi, range(3), 0)] == [(0, 1), (1, 2), (2, 3)]


def test_a_block_is_turned_as_the_answer_is():
    array = np.arange(60).reshape(3, 4, 5)
    selection = select((slice(None, None, -1), 2, None, slice(1, None, 2)), array.shape)
    stored = array[:, 2:3, 1::2]
    place, block = oriented(selection, whole_place(stored.shape), stored)
    assert np.array_equal(block, array[::-1, 2, None, 1::2])
    assert place == (slice(0, 3), slice(0, 1), slice(0, 2))


def test_indices_of_a_place_ascend():
    selection = select(([3, 0, 2],), (4, 2))
    where = [np.array([2, 0]), slice(0, 2)]
    place, block = oriented(selection, where, np.array([[20, 21], [0, 1]]))
    assert place[0].tolist() == [0, 2]
    assert block.tolist() == [[0, 1], [20, 21]]


def test_fill_takes_no_memory():
    spec = TensorSpec(
        "x", (1000, 1000), np.dtype("f8"), "ftsf", (1000, 1000), fill=np.array([7.0]).tobytes()
    )
    _, block = fill_blocks(spec, select((slice(None), slice(5)), spec.shape), (0, 0), (1000, 1000))
    assert block.shape == (1000, 5)
    assert block.strides == (0, 0)
    assert block[3, 3] == 7
