"""Rows of a DataFrame, as TQL's clauses want them."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError
from tensorlake_spark.query.engine.row_orders import expanded
from tensorlake_spark.spark.queries.batch_functions.frame_rows import (
    arranged,
    drawn,
    neighbours,
    ungrouped,
)


def test_rows_are_drawn_by_their_weights(spark):
    frame = spark.createDataFrame([(1, 0.0), (2, 1.0), (3, 2.0)], "n int, w double")
    assert {row.n for row in drawn(frame, frame.w, False, 5, 0).collect()} == {2, 3}
    assert len(drawn(frame, frame.w, True, 40, 0).collect()) == 40
    with pytest.raises(InvalidOptionError, match="no weight above 0"):
        drawn(frame, frame.w * 0, True, 1, 0)
    with pytest.raises(
        InvalidQueryError, match="SAMPLE BY makes 1,000,000,000 rows, and at most 100,000,000"
    ):
        drawn(frame, frame.w, True, 10**9, 0)


def test_rows_are_arranged_by_their_first(spark):
    frame = spark.createDataFrame([("b", 1), ("a", 2), ("b", 3)], "k string, n int").coalesce(1)
    assert [row.n for row in arranged(frame, ["k"]).collect()] == [1, 3, 2]


@pytest.mark.parametrize(
    ("overlap", "sids"), [(False, [10, 20, 30, 50]), (True, [10, 20, 20, 30, 50])]
)
def test_samples_and_those_beside_them(spark, overlap, sids):
    everything = spark.createDataFrame([(n,) for n in (10, 20, 30, 40, 50)], "sid long")
    found = spark.createDataFrame([(20,), (50,), (10,)], "sid long")
    rows = (
        neighbours(found.where("sid < 50"), everything, 0, 1, overlap).orderBy("__place").collect()
    )
    assert [row["__sid"] for row in rows] + [50] == sids


@pytest.mark.parametrize(
    ("before", "after"), [(0, 0), (2, 1), (10**9, 0), (0, 10**30), (10**30, 10**30)]
)
@pytest.mark.parametrize("overlap", [False, True])
def test_neighbours_as_numpy_finds_them(spark, before, after, overlap):
    everything = spark.createDataFrame([(n * 10,) for n in range(12)], "sid long")
    places = [2, 7, 8]
    found = spark.createDataFrame([(n * 10,) for n in places], "sid long")
    rows = neighbours(found, everything, before, after, overlap).orderBy("__place").collect()
    expected = expanded(np.array(places), before, after, 12, overlap)
    assert [row["__sid"] for row in rows] == (expected * 10).tolist()


def test_too_many_neighbours_are_refused(spark):
    everything = spark.range(15_000).withColumnRenamed("id", "sid")
    with pytest.raises(
        Exception, match="EXPAND BY makes 225,000,000 rows, and at most 100,000,000 are made"
    ):
        neighbours(everything, everything, 10**9, 10**9, True).collect()
    assert neighbours(everything, everything, 10**9, 10**9, False).count() == 15_000


def test_a_row_for_each_element(spark):
    frame = spark.createDataFrame([(1, [1.0, 2.0]), (2, None), (3, [])], "n int, v array<double>")
    rows = ungrouped(frame, {"v": 1}).collect()
    assert [(row.n, row.v) for row in rows] == [(1, 1.0), (1, 2.0)]
