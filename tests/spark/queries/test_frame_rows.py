"""Rows of a DataFrame, as TQL's clauses want them."""

import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.spark.queries.frame_rows import arranged, drawn, neighbours, ungrouped


def test_rows_are_drawn_by_their_weights(spark):
    frame = spark.createDataFrame([(1, 0.0), (2, 1.0), (3, 2.0)], "n int, w double")
    assert {row.n for row in drawn(frame, frame.w, False, 5, 0).collect()} == {2, 3}
    assert len(drawn(frame, frame.w, True, 40, 0).collect()) == 40
    with pytest.raises(InvalidOptionError, match="no weight above 0"):
        drawn(frame, frame.w * 0, True, 1, 0)


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


def test_a_row_for_each_element(spark):
    frame = spark.createDataFrame([(1, [1.0, 2.0]), (2, None), (3, [])], "n int, v array<double>")
    rows = ungrouped(frame, {"v": 1}).collect()
    assert [(row.n, row.v) for row in rows] == [(1, 1.0), (1, 2.0)]
