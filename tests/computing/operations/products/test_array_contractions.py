"""Products with arrays, as folds: blocks of any cut give the same, dense or sparse."""

import numpy as np
import pytest
from work import peak_bytes

from tensorlake_spark.computing.operations.products.array_contractions import Contraction
from tensorlake_spark.indexing import Box
from tensorlake_spark.tensor.sparse import SparseTensor

ARRAY = np.arange(12.0).reshape(3, 4) % 5
FACTOR = np.arange(8.0).reshape(4, 2)
FOLD = Contraction((3, 4), np.dtype("f8"), ((FACTOR, (1, 2)),), (0, 2))
WHOLE = slice(0, 3), slice(0, 4)


@pytest.mark.parametrize("block", [ARRAY, SparseTensor.from_dense(ARRAY)])
def test_a_block_gives_numpys_product(block):
    assert np.array_equal(FOLD.finish(FOLD.map(WHOLE, block)), ARRAY @ FACTOR)


def test_a_box_of_the_answer_takes_a_part_of_both():
    key, fold = FOLD.part(Box((1, 0), (3, 1)))
    assert key == (slice(1, 3), slice(None))
    found = fold.finish(fold.map((slice(0, 2), slice(0, 4)), ARRAY[1:]))
    assert np.array_equal(found, (ARRAY @ FACTOR)[1:3, :1])


def test_nothing_is_zero():
    assert not FOLD.finish(None).any()
    assert FOLD.finish(None).shape == FOLD.answer_shape == (3, 2)


def test_parts_go_into_a_dense_answer_one_by_one_without_a_copy_of_all():
    array = np.arange(8000.0).reshape(2000, 4) % 7
    fold = Contraction((2000, 4), np.dtype("f8"), ((np.ones((4, 64)), (1, 2)),), (0, 2))
    parts = []
    for first in range(0, 2000, 250):
        some = np.zeros_like(array)
        some[first : first + 500] = array[first : first + 500]  # every cell is in two parts
        parts.append(fold.map((slice(0, 2000), slice(0, 4)), SparseTensor.from_dense(some)))
    partial, found = fold.combine_all(parts), []
    del parts
    assert peak_bytes(lambda: found.append(fold.finish(partial))) < 2 * found[0].nbytes
    wanted = 2 * array @ np.ones((4, 64))
    wanted[:250] /= 2
    assert np.array_equal(found[0], wanted)
