"""Partials combined in a tree by executors: the answer, one row for the driver, and errors as they were."""

from dataclasses import replace

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.block_reductions import reduction
from tensorlake_spark.computing.operations.index_searches import NonzeroSearch
from tensorlake_spark.indexing import select
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.computing import tree
from tensorlake_spark.spark.computing.shares import shares_of


class Sum(Fold[int]):
    def map(self, place, block):
        return int(block.sum())

    def combine(self, one, other):
        return one + other

    def finish(self, partial):
        return partial


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


def test_parts_of_partials_are_combined_by_tasks_of_their_own(spark, stored, small_parts, arrays):
    fold = reduction(stored, "var", 0)
    shares, parts = shares_of(stored, 2), tree.parts_of(fold, stored)
    assert parts == 10
    frame = tree.tree(spark, fold, shares, parts)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Project" not in plan, "which would copy partials"
    rows = frame.selectExpr("*", "spark_partition_id() as task").collect()
    assert sorted(row.part for row in rows if row.part) == [*range(1, 10)]
    tasks = {row.task for row in rows}
    assert len(tasks) == 2
    for task in tasks:
        assert len([row for row in rows if row.task == task]) == 5
    found, totals = tree.last(spark, fold, shares, parts)
    assert totals == stored.meta.totals
    np.testing.assert_allclose(fold.finish(found), arrays["dense"].var(axis=0), rtol=1e-5)


def test_small_partials_and_those_that_cannot_be_cut_stay_whole(stored, path, small_parts):
    thin = tl.open(path)["thin"]
    sparse = Stored(thin._snapshot, thin._meta, select(..., thin.shape))
    assert tree.parts_of(reduction(stored, "sum"), stored) == 1
    assert tree.parts_of(NonzeroSearch(stored.shape), stored) == 1
    assert tree.parts_of(reduction(sparse, "sum", ()), sparse) == thin.nnz // 6
    assert [*Sum().cut(5, 3)] == [(0, 5)]


def test_a_process_looks_for_garbage_among_what_is_new(monkeypatch):
    seen = []
    monkeypatch.setattr(tree.gc, "freeze", lambda: seen.append("frozen"))
    for modules in (-1, -1, -2):
        tree._settle(modules)
    assert seen == ["frozen"] * 2


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
        tree._row(Sum(), 0, 0, (np.zeros(1000), Totals()))
