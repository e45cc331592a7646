"""Plans."""

from tensorlake_spark.query.planning.queries import plan_query


def test_a_plan_without_tensors_is_one_statement(shapes):
    plan = plan_query("SELECT labels, count(*) AS n FROM d GROUP BY labels", {"d": shapes.ds})
    assert plan.steps == []
    assert plan.key is None


def test_each_condition_on_tensors_is_a_step_before_what_needs_fewer_rows(shapes):
    plan = plan_query(
        "SELECT emb FROM d WHERE array_max(emb) > 1 AND labels = 1 AND any(boxes > 30) ORDER BY array_sum(emb)",
        {"d": shapes.ds},
    )
    assert [[one.what for one in step.computed] for step in plan.steps] == [
        ["ARRAY_MAX(emb) > 1"], ["ANY(boxes > 30)"], ["ARRAY_SUM(emb)"],
    ]  # fmt: skip
    assert "labels" in plan.steps[0].tree.sql()
    source, column = plan.key
    assert (source.uri, column) == (shapes.ds.uri, "k0")
