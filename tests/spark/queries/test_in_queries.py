"""``IN`` of a query, with nulls on both sides, wherever it stands."""

import pandas as pd
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark import query
from tensorlake_spark.spark.queries.in_queries import as_in, is_null_false, with_nulls

ROWS = pa.table({"k": [1, 2, None, 5], "w": [1.0, 2.0, 3.0, 4.0]})
LISTS = {
    "some": pa.table({"v": [1, None, 7], "g": [1.0, 1.0, 2.0]}),
    "known": pa.table({"v": [1, 7], "g": [1.0, 2.0]}),
    "none": pa.table({"v": pa.array([], pa.int64()), "g": pa.array([], pa.float64())}),
}

QUERIES = [
    "SELECT w, k IN (SELECT v FROM t) AS a, k NOT IN (SELECT v FROM t) AS b, k IN ((SELECT v FROM t UNION SELECT 9)) AS c FROM r",
    "SELECT w, k = ANY (SELECT v FROM t) AS a, k <> ALL (SELECT v FROM t) AS b, (k, w) IN (SELECT v, g FROM t) AS c FROM r",
    "SELECT w, k IN (SELECT v FROM t WHERE t.g <= r.w) AS a, k IN (SELECT max(v) FROM t) AS b FROM r",
    "SELECT w FROM r WHERE (k IN (SELECT v FROM t)) IS NULL",
    "SELECT w FROM r WHERE NOT (k IN (SELECT v FROM t) AND w < 3.5) OR NOT k IN (SELECT v FROM t)",
    "SELECT sum(CASE WHEN k IN (SELECT v FROM t) THEN 1 ELSE 0 END) AS s, sum(w) FILTER (WHERE k NOT IN (SELECT v FROM t)) AS f FROM r",
    "SELECT w, row_number() OVER (PARTITION BY k IN (SELECT v FROM t) ORDER BY w) AS n FROM r",
    "SELECT r.w, t.v FROM r LEFT JOIN t ON (k NOT IN (SELECT v FROM t)) AND k <> v",
    "SELECT max(k) AS m FROM r GROUP BY w HAVING NOT max(k) IN (SELECT v FROM t) OR max(w) > 3.5",
]  # fmt: skip


def found(frame):
    plain = frame.astype(object).where(frame.notna(), None)
    return [[None if v is None else float(v) for v in row] for row in plain.itertuples(index=False)]


@pytest.mark.parametrize("name", LISTS)
def test_what_is_not_known_is_null(spark, name):
    for sql in QUERIES:
        given = {"r": ROWS, "t": LISTS[name]}
        by_spark = query(spark, sql, **given).toArrow().to_pandas()
        assert sorted(found(by_spark), key=repr) == sorted(
            found(tl.query(sql, **given).to_pandas()), key=repr
        ), sql


@pytest.mark.parametrize("name", LISTS)
def test_rows_are_ordered_by_it(spark, name):
    sql = "SELECT w FROM r ORDER BY k NOT IN (SELECT v FROM t) DESC NULLS FIRST, w"
    given = {"r": ROWS, "t": LISTS[name]}
    expected = tl.query(sql, **given)["w"].tolist()
    assert [row.w for row in query(spark, sql, **given).collect()] == expected


def test_a_group_may_be_what_is_not_known(spark):
    sql = "SELECT k IN (SELECT v FROM t) AS a, count(*) AS n FROM r GROUP BY k IN (SELECT v FROM t)"
    frame = query(spark, sql, r=ROWS, t=LISTS["known"]).toArrow().to_pandas()
    assert sorted(found(frame), key=repr) == [[0.0, 2.0], [1.0, 1.0], [None, 1.0]]


def test_other_comparisons_with_all_rows_are_refused(spark):
    for sql in ("SELECT k > ANY (SELECT v FROM t) AS a FROM r", "SELECT k = ALL (SELECT v FROM t) AS a FROM r"):  # fmt: skip
        with pytest.raises(InvalidQueryError, match=r"only = ANY and <> ALL.*line 1, column"):
            query(spark, sql, r=ROWS, t=pd.DataFrame({"v": [1]}))


def test_only_what_can_show_a_null_is_rewritten():
    tree = parse("SELECT k IN (SELECT v FROM t) FROM r JOIN s ON NOT k IN (SELECT v FROM t)")
    assert not any(is_null_false(one) for one in tree.find_all(type(tree.selects[0])))
    kept = parse("SELECT k FROM r JOIN s ON k IN (SELECT v FROM t) AND a = b").args["joins"][0]
    node = kept.args["on"].this
    assert with_nulls(node) is node
    assert as_in("", node) is node
