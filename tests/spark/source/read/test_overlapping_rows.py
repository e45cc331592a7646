"""Rows whose boxes overlap, and the regions that they are cut into."""

import numpy as np
import pytest

from tensorlake_spark.indexing import Box
from tensorlake_spark.spark.source.read import overlapping_rows as overlap
from tensorlake_spark.tensor.spec import TensorSpec

BLOCK = (4, 4, 8, 4)


def block(layout):
    return {"block_shape": BLOCK} if layout == "bsgs" else {}


def rows(boxes, nnz=1):
    lo, hi = (np.array([box[k] for box in boxes], np.int64) for k in (0, 1))
    return overlap.RowBoxes(lo, hi, np.full(len(lo), nnz), np.arange(len(lo)))


def spec_of(shape, block=()):
    layout = "bsgs" if block else "coo"
    return TensorSpec("x", shape, np.dtype("f8"), layout, block)


BOXES = [((0, 0), (2, 3)), ((1, 2), (3, 4)), ((5, 0), (6, 9)), ((2, 4), (4, 6)), ((5, 9), (9, 10))]


def test_boxes_that_overlap_are_found():
    found = overlap.overlapping(rows(BOXES), np.arange(5), spec_of((10, 10)))
    assert found.tolist() == [True, True, False, False, False]
    same = overlap.overlapping(rows(BOXES), np.zeros(5, int), spec_of((10, 10)))
    assert not same.any(), "rows of one group do not count"


def test_rows_of_one_block_count_as_overlapping():
    some = rows([((0, 0), (2, 3)), ((2, 3), (4, 4)), ((4, 0), (8, 4))])
    found = overlap.overlapping(some, np.arange(3), spec_of((8, 8), (4, 4)))
    assert found.tolist() == [True, True, False]


def test_boxes_are_merged_until_none_overlaps():
    chain = rows([((0, 0), (3, 3)), ((2, 2), (5, 5)), ((0, 4), (1, 6)), ((7, 7), (8, 8))])
    lo, hi = overlap.merged(chain, spec_of((9, 9)))
    assert (lo.tolist(), hi.tolist()) == ([[0, 0], [7, 7]], [[5, 6], [8, 8]])
    lo, hi = overlap.merged(rows([((0, 0), (2, 3)), ((2, 3), (4, 4))]), spec_of((8, 8), (4, 4)))
    assert (lo.tolist(), hi.tolist()) == ([[0, 0]], [[4, 4]])


@pytest.mark.parametrize("block", [(), (3, 2)])
def test_regions_tile_what_is_stored_with_few_elements_each(block):
    rng = np.random.default_rng(0)
    lo = rng.integers(0, 90, (200, 2))
    hi = lo + rng.integers(1, 10, (200, 2))
    some = overlap.RowBoxes(lo, hi, (hi - lo).prod(axis=1), np.arange(200))
    cut = overlap.regions(some, Box((0, 0), (100, 100)), 400, spec_of((100, 100), block))
    seen, stored = np.zeros((100, 100), int), np.zeros((100, 100), int)
    for a, b in zip(lo, hi):
        stored[a[0] : b[0], a[1] : b[1]] += 1
    for box in cut:
        seen[box.slices()] += 1
        assert stored[box.slices()].sum() <= 400
    assert seen.max() == 1
    assert (seen[stored > 0] == 1).all()
