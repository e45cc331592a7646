"""From texts to plans."""

import pyarrow as pa
import pytest
from work import calls

import tensorlake_spark as tl
from tensorlake_spark.query.planning.queries import plan_query

T = pa.table({"a": [3, 1, 2], "b": ["x", "y", "z"]})


def rows(sql, **parameters):
    return [
        tuple(row.values())
        for row in tl.query(sql, parameters=parameters, t=T).to_arrow().to_pylist()
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "WITH u(p, q) AS (SELECT a, b FROM t) SELECT q FROM u WHERE p > 1 ORDER BY p",
            [("z",), ("x",)],
        ),
        (
            "WITH u AS (SELECT a FROM t), v AS (SELECT a + 1 AS a FROM u) SELECT max(a) AS m FROM v",
            [(4,)],
        ),
        ("WITH u AS (SELECT a FROM t) SELECT (SELECT max(a) FROM u) AS m FROM u LIMIT 1", [(3,)]),
        (
            "(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT a FROM t ORDER BY a DESC LIMIT 1)",
            [(1,), (3,)],
        ),
        ("SELECT a FROM t ORDER BY a LIMIT :n OFFSET :m", [(2,)]),
        ("SELECT p.x FROM (SELECT a FROM t WHERE b = :name) AS p(x)", [(1,)]),
        ("SELECT DISTINCT a > 1 AS big FROM t ORDER BY big", [(False,), (True,)]),
        ("SELECT a FROM t WHERE a IN (1, 3) AND b LIKE 'x%'", [(3,)]),
        ("SELECT 1 + 1 AS two, 'a' || 'b' AS ab", [(2, "ab")]),
    ],
)
def test_queries_of_many_forms(sql, expected):
    names = {"n": 1, "m": 1, "name": "y"}
    assert rows(sql, **{k: v for k, v in names.items() if f":{k}" in sql}) == expected


def test_parameters_are_values_never_text():
    assert rows("SELECT a FROM t WHERE b = :b", b="x' OR 'a'='a") == []
    with pytest.raises(tl.InvalidQueryError, match="did you mean 'big'"):
        rows("SELECT a FROM t WHERE a > :bog", big=1)


def test_a_usual_query_is_planned_in_few_calls(shapes):
    sql = "SELECT images[10:20] AS crop FROM d WHERE labels = 1 AND array_mean(images) > 3 ORDER BY array_sum(emb) LIMIT 5"
    plan_query(sql, {"d": shapes.ds})
    first, *_, last = (calls(lambda: plan_query(sql, {"d": shapes.ds})) for _ in range(10))
    assert last <= first, "no state grows"
    assert first < 20_000, first


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("WITH u(p) AS (SELECT a, b FROM t) SELECT * FROM u", "1 names are given to 2 columns"),
        ("SELECT * FROM t LIMIT 'x'", "number of rows|LIMIT"),
        ("SELECT a FROM u", "there is no source 'u'"),
        ("SELECT a FROM t VERSION 3", "no versions"),
    ],
)
def test_mistakes(sql, said):
    with pytest.raises(tl.InvalidQueryError, match=said):
        rows(sql)
