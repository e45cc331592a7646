"""Plans are run."""

from decimal import Decimal

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.engine.running import PlanRun, narrowed
from tensorlake_spark.query.planning.queries import plan_query


def test_sids_are_read_only_where_somebody_needs_them(shapes):
    plan = plan_query("SELECT labels FROM d WHERE training.score > 0.5", {"d": shapes.ds})
    assert "sid" not in PlanRun(plan).statements[0]
    assert "sid" in PlanRun(plan, keyed=True).statements[0]


def test_steps_have_the_rows_that_conditions_before_them_leave(shapes):
    plan = plan_query(
        "SELECT labels FROM d WHERE labels = 1 AND array_max(emb) > 1 AND array_min(emb) < -1",
        {"d": shapes.ds},
    )
    run = PlanRun(plan)
    first = shapes.labels == 1
    second = first & (shapes.vectors.max(1) > 1)
    assert [*run.rows.values()] == [first.sum(), second.sum()]
    assert run.table.num_rows == (second & (shapes.vectors.min(1) < -1)).sum()


def test_sums_are_64_bits_wide_where_they_fit():
    table = pa.table(
        {
            "n": pa.array([Decimal(2) ** 70], pa.decimal128(38, 0)),
            "m": pa.array([Decimal(2)], pa.decimal128(38, 0)),
        }
    )
    assert narrowed(table).schema.types == [pa.decimal128(38, 0), pa.int64()]


def test_what_duckdb_refuses_is_an_error_of_the_query(shapes):
    with pytest.raises(tl.InvalidQueryError, match=r"GROUP BY"):
        len(shapes.ds.query("SELECT note, count(*) AS n FROM dataset GROUP BY labels"))
