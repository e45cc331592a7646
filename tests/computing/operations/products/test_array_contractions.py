"""Products with arrays, as folds: blocks of any cut give the same, dense or sparse."""

import numpy as np
import pytest

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
