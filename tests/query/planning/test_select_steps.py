"""Steps of a SELECT."""

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.query.planning.queries import plan_query


def steps(shapes, sql, **parameters):
    return plan_query(sql, {"d": shapes.ds}, parameters).steps


def test_what_is_needed_twice_is_computed_once(shapes):
    (step,) = steps(
        shapes,
        "SELECT array_sum(emb) AS s, count(*) AS n FROM d GROUP BY array_sum(emb) ORDER BY s",
    )
    assert [one.what for one in step.computed] == ["ARRAY_SUM(emb)"]


def test_a_part_is_told_as_it_stands_in_the_query(shapes):
    """Stored columns had the names of a table that only the planner knows, such as b3."c0"."""
    (step,) = steps(
        shapes, "SELECT sid FROM d WHERE array_sum(emb) * labels > :most", most=np.ones(2)
    )
    assert [one.what for one in step.computed] == ["ARRAY_SUM(emb) * labels > :most"]


def test_only_a_plain_order_with_a_limit_keeps_the_best(shapes):
    (step,) = steps(shapes, "SELECT labels FROM d ORDER BY array_sum(emb) DESC LIMIT 3 OFFSET 2")
    assert (step.best.count, step.best.descending) == (5, True)
    for sql in (
        "SELECT labels FROM d ORDER BY array_sum(emb)",
        "SELECT labels FROM d ORDER BY array_sum(emb), labels LIMIT 3",
        "SELECT DISTINCT labels, emb FROM d ORDER BY array_sum(emb) LIMIT 3",
        "SELECT sum(labels) OVER () AS s FROM d ORDER BY array_sum(emb) LIMIT 3",
        "SELECT labels FROM d ORDER BY array_sum(emb) DESC NULLS FIRST LIMIT 3",
        "SELECT labels FROM d QUALIFY row_number() OVER (ORDER BY sid) > 5 ORDER BY array_sum(emb) LIMIT 3",
    ):
        assert [one.best for one in steps(shapes, sql)] == [None]


def test_selected_tensors_are_no_step(shapes):
    assert (
        steps(shapes, "SELECT emb * 2, images[:5] FROM d WHERE labels = 1 ORDER BY training.score")
        == []
    )


@pytest.fixture
def pairs(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"k": "int64", "x": tl.types.Tensor("float32", (2,))})
    ds.extend({"k": [1, 2, 3], "x": [[1, 2], [2, 3], [5, 6]]})
    return ds


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT k FROM dataset WHERE x[0] IN (SELECT n FROM o)", [1, 3]),
        ("SELECT k FROM dataset WHERE x[0] > (SELECT min(n) FROM o)", [2, 3]),
        ("SELECT k FROM dataset WHERE x[0] > 4 OR k IN (SELECT n FROM o)", [1, 3]),
        ("SELECT k FROM dataset WHERE NOT (x[0] > 4 OR EXISTS (SELECT 1 FROM o WHERE n = k))", [2]),
        ("SELECT x[0] + (SELECT max(n) FROM o) AS v FROM dataset", [6, 7, 10]),
        (
            "SELECT CASE WHEN k IN (SELECT n FROM o) THEN x[1] END AS v FROM dataset",
            [2, None, None],
        ),
        ("SELECT k FROM dataset QUALIFY x[0] > 1 + row_number() OVER (ORDER BY k)", [3]),
        ("SELECT x[0] - min(k) AS v FROM dataset GROUP BY x[0] ORDER BY v", [0, 0, 2]),
        (
            "SELECT k FROM (SELECT DISTINCT x, k FROM dataset) AS d "
            "WHERE EXISTS (SELECT 1 FROM o WHERE n = d.k) ORDER BY k",
            [1],
        ),
        ("SELECT count(*) AS v FROM dataset GROUP BY x[0] IN (SELECT n FROM o) ORDER BY v", [1, 2]),
    ],
)
def test_elements_of_tensors_stand_beside_what_is_computed_over_rows(pairs, sql, rows):
    found = tl.query(sql, dataset=pairs, o=pa.table({"n": [1, 5]}))
    assert [next(iter(row.values())) for row in found] == rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM dataset WHERE contains(x, (SELECT 1))",
        "SELECT any(x IN (SELECT k FROM dataset)) AS v FROM dataset",
        "SELECT k, x[(SELECT 0)] AS v FROM dataset GROUP BY k",
    ],
)
def test_a_sub_query_inside_a_function_of_tensors_is_refused(pairs, sql):
    with pytest.raises(
        tl.InvalidQueryError, match=r"(?s)a sub-query cannot stand.*line 1, column \d\d"
    ):
        pairs.query(sql)
