"""The block by which cells are sorted before anybody has counted them; test_cells.py sorts some."""

import math

import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.source.write.grouping import group_cells, usual_block


@pytest.mark.parametrize(
    "shape", [(), (1,), (7, 9), (183, 24, 1140, 1717), (10**6,) * 3, (2,) * 20]
)
def test_a_block_lies_in_the_shape(shape):
    block = usual_block(shape)
    assert len(block) == len(shape)
    assert all(
        1 <= side <= max(1, length) or side & (side - 1) == 0 for side, length in zip(block, shape)
    )


def test_an_emptier_tensor_has_larger_blocks():
    small, large = usual_block((1000, 1000)), usual_block((10**6, 10**6))
    assert math.prod(large) > math.prod(small)


@pytest.mark.parametrize("ndim", [1, 2, 3, 8])
def test_without_a_shape_the_rank_is_enough(ndim):
    block = usual_block(None, ndim)
    assert len(block) == ndim
    assert block == usual_block(None, ndim)
    assert usual_block(None) == usual_block(None, 0) == ()


def test_what_is_no_dataframe_is_named():
    with pytest.raises(tl.InvalidOptionError, match=r"df is of type list; group_cells takes a D"):
        group_cells([(0, 1, 2.0)], (3, 3))
