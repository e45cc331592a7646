"""FROM and JOIN."""

import pandas as pd
import pytest

import tensorlake_spark as tl

A = pd.DataFrame({"i": range(1500), "k": [n % 3 for n in range(1500)]})
B = pd.DataFrame({"i": range(1000), "w": [n * 2 for n in range(1000)]})


def count(sql):
    return tl.query(f"SELECT count(*) AS n FROM {sql}", a=A, b=B)[0]["n"]


@pytest.mark.parametrize(
    ("tables", "rows"),
    [
        ("a JOIN b ON a.i = b.i", 1000), ("a LEFT JOIN b ON a.i = b.i", 1500), ("a, b WHERE a.i = b.i", 1000),
        ("a SEMI JOIN b ON a.i = b.i", 1000), ("a ANTI JOIN b ON a.i = b.i", 500), ("a JOIN b ON a.i < b.i", 499_500),
        ("a CROSS JOIN (SELECT i FROM b LIMIT 2) c", 3000), ("a NATURAL JOIN b", 1000),
        ("a, (VALUES (1, 'x'), (2, 'y')) AS v(k, name) WHERE v.k = a.k", 1000),
    ],
)  # fmt: skip
def test_joins(tables, rows):
    assert count(tables) == rows


@pytest.mark.parametrize(
    "tables", ["a, b", "a CROSS JOIN b", "a JOIN b ON true", "a JOIN b ON a.i = 3"]
)
def test_a_large_product_that_nobody_asked_for_is_refused(tables):
    with pytest.raises(tl.InvalidQueryError, match="1,500 x 1,000 rows, and at most 1,000,000"):
        count(tables)


def test_a_name_of_an_item_joins():
    sql = "SELECT a.i AS one, b.i AS two FROM a, b WHERE one = two AND one < 5"
    assert len(tl.query(sql, a=A, b=B)) == 5


def test_conditions_on_tensors_join(shapes):
    sql = "SELECT a.sid AS p, b.sid AS q FROM dataset a JOIN dataset b ON a.labels = b.labels AND l2_distance(a.emb, b.emb) < 2 WHERE a.sid < b.sid ORDER BY p, q"
    found = [(r["p"], r["q"]) for r in shapes.ds.query(sql)]
    v = shapes.vectors
    assert found == [
        (p, q) for p in range(60) for q in range(p + 1, 60)
        if shapes.labels[p] == shapes.labels[q] and ((v[p] - v[q]) ** 2).sum() < 4
    ]  # fmt: skip
    with pytest.raises(tl.InvalidQueryError, match="LEFT JOIN has no conditions on tensors"):
        shapes.ds.query(sql.replace("JOIN", "LEFT JOIN", 1))
