"""Steps that take all samples of a dataset."""

import numpy as np
import pytest

from tensorlake_spark.query.engine.all_samples import rows_of, source_of_all
from tensorlake_spark.query.planning.queries import plan_query


def step_of(ds, sql):
    plan = plan_query(sql, {"dataset": ds}, {"q": np.zeros(4, "f4")})
    return plan.steps[-1], plan.sources


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT sid FROM dataset ORDER BY array_sum(emb) LIMIT 2", True),
        ("SELECT note FROM dataset ORDER BY array_sum(emb) LIMIT 2", True),
        ("SELECT note FROM dataset WHERE sid > 1 ORDER BY array_sum(emb) LIMIT 2", False),
        ("SELECT upper(note) AS n FROM dataset ORDER BY array_sum(emb) LIMIT 2", True),
        ("SELECT a.sid FROM dataset AS a JOIN dataset AS b ON a.sid = b.sid "
         "ORDER BY array_sum(a.emb) LIMIT 2", False),
        ("SELECT sid FROM (SELECT sid, emb FROM dataset LIMIT 3) ORDER BY array_sum(emb) LIMIT 2", False),
    ],
)  # fmt: skip
def test_only_all_samples_are_all_samples(shapes, sql, found):
    step, sources = step_of(shapes.ds, sql)
    assert (source_of_all(step.tree, sources) is not None) == found


def test_rows_are_those_of_the_samples(shapes):
    step, sources = step_of(shapes.ds, "SELECT sid FROM dataset ORDER BY array_sum(emb) LIMIT 2")
    source = source_of_all(step.tree, sources)
    table = rows_of(step.tree, source, np.array([1, 3]))
    assert table.column(0).to_pylist() == shapes.ds.sids[[1, 3]].tolist()
    step, sources = step_of(shapes.ds, "SELECT note FROM dataset ORDER BY array_sum(emb) LIMIT 2")
    asked = rows_of(step.tree, source_of_all(step.tree, sources), np.array([1, 3])).sql()
    assert "IN (1, 3)" in asked
    assert "ORDER BY" in asked
