"""Steps of a SELECT."""

import numpy as np

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
    ):
        assert [one.best for one in steps(shapes, sql)] == [None]


def test_selected_tensors_are_no_step(shapes):
    assert (
        steps(shapes, "SELECT emb * 2, images[:5] FROM d WHERE labels = 1 ORDER BY training.score")
        == []
    )
