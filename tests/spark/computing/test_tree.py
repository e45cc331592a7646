"""Partials combined in a tree by executors: the answer, one row for the driver, and errors as they were."""

from dataclasses import replace

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.block_reductions import reduction
from tensorlake_spark.indexing import select
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.computing import tree
from tensorlake_spark.spark.computing.shares import shares_of


@pytest.fixture
def stored(path):
    ref = tl.open(path)["dense"]
    return Stored(ref._snapshot, ref._meta, select(..., ref.shape))


def test_levels_of_tasks_leave_one_partial_for_the_driver(spark, stored, small_shares, arrays):
    fold = reduction(stored, "sum", 0)
    shares = shares_of(stored, 2)
    assert len(shares) > 3, "two levels above the first"
    rows = tree.tree(spark, fold, shares).collect()
    assert len(rows) == 1
    partial, totals = tree.unpacked(rows[0].partial)
    assert totals == stored.meta.totals
    np.testing.assert_allclose(fold.finish(partial), arrays["dense"].sum(axis=0))


def test_rows_that_are_lost_are_an_error(spark, stored):
    totals = stored.meta.totals
    lost = replace(stored, meta=replace(stored.meta, totals=replace(totals, rows=totals.rows + 1)))
    with pytest.raises(tl.CorruptDataError, match="rows were lost"):
        tree.compute(spark, reduction(lost, "sum"), lost)
    unasked = replace(lost, verify=False)
    assert tree.compute(spark, reduction(unasked, "count_nonzero"), unasked) > 0


def test_of_an_empty_selection_no_task_is_started(stored):
    nothing = replace(stored, selection=select(np.s_[:0], stored.shape))
    found = tree.compute(None, reduction(nothing, "sum", 0), nothing)
    np.testing.assert_array_equal(found, np.zeros((6, 10)))


def test_an_error_of_ours_in_a_task_is_raised_as_it_was(spark, stored):
    class Refuses(Fold[int]):
        def map(self, place, block):
            raise tl.InvalidTensorError(f"no block of rank {block.ndim}")

        def combine(self, one, other):
            return one + other

        def finish(self, partial):
            return partial

    with pytest.raises(tl.InvalidTensorError, match=r"^no block of rank 3$"):
        tree.compute(spark, Refuses(), stored)


def test_a_partial_that_no_row_of_spark_holds_is_an_error(monkeypatch):
    monkeypatch.setattr(tree, "_MOST_BYTES", 100)
    with pytest.raises(tl.InvalidTensorError, match="into="):
        tree._row(0, (np.zeros(1000), Totals()))
