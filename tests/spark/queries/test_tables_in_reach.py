"""Which table of a SELECT has a column, and how large a product is."""

import re
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark import query
from tensorlake_spark.spark.queries.result_kinds import Kind
from tensorlake_spark.spark.queries.tables_in_reach import Table, Tables, check_product, column_in

ONE, TWO = (
    Table({name: Kind("scalar") for name in names}, count=lambda: 2000)
    for names in (("k", "g/a"), ("k", "b"))
)


def reach(sql):
    tree = parse(sql)
    tables = Tables()
    source = tree.args.get("from_") or tree.args.get("from")
    named = [(source.this, None), *((join.this, join) for join in tree.args.get("joins") or [])]
    for one, join in named:
        tables.add(sql, one.alias_or_name, ONE if one.name == "one" else TWO, join)
    return tree, tables


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT g.a FROM one JOIN two ON one.k = two.k", ("one", "g/a")),
        ("SELECT two.k FROM one JOIN two ON one.k = two.k", ("two", "k")),
        ("SELECT k FROM one JOIN two USING (k)", ("one", "k")),
        ("SELECT k FROM one NATURAL JOIN two", ("one", "k")),
        ("SELECT k FROM one SEMI JOIN two ON one.k = two.k", ("one", "k")),
    ],
)
def test_columns(sql, expected):
    tree, tables = reach(sql)
    alias, _, name = column_in(sql, tree.selects[0], [tables])
    assert (alias, name) == expected


def test_a_column_of_several_tables_is_said_to_be():
    tree, tables = reach("SELECT k FROM one JOIN two ON one.k = two.k")
    with pytest.raises(InvalidQueryError, match=r"write one\.k, two\.k"):
        column_in("SELECT k", tree.selects[0], [tables])
    with pytest.raises(InvalidQueryError, match="two tables are called 'one'"):
        reach("SELECT 1 FROM one JOIN one ON 1 = 1")


@pytest.mark.parametrize(
    "how",
    ["JOIN two ON one.k = two.k", "JOIN two USING (k)", "NATURAL JOIN two", ", two WHERE one.k = two.k AND b > 1"],
)  # fmt: skip
def test_joins_with_a_condition_may_be_large(how):
    sql = f"SELECT 1 FROM one {how}"
    check_product(sql, *reach(sql))


@pytest.mark.parametrize(
    "how", [", two", "CROSS JOIN two", "JOIN two ON one.k > 1", ", two WHERE two.k = two.b"]
)
def test_a_large_product_is_refused(how):
    sql = f"SELECT 1 FROM one {how}"
    with pytest.raises(InvalidQueryError, match="2,000 x 2,000 rows, and at most 1,000,000"):
        check_product(sql, *reach(sql))


T = pa.table({"j": [1, 2], "k": [3, 4]})


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    types = {
        "x": tl.types.Tensor("float32", (3,)),
        "label": "int32",
        "g/a": "int32",
        "img": tl.types.Image("png"),
    }
    made = tl.dataset(str(tmp_path_factory.mktemp("names") / "ds"), types)
    pictures = [np.zeros((2, 3, 3), np.uint8)] * 6
    made.extend(
        {
            "x": np.arange(18, dtype="f4").reshape(6, 3),
            "label": np.arange(6),
            "g/a": np.arange(6),
            "img": pictures,
        }
    )
    return made


def of_both(spark, sql, ds):
    here = tl.query(sql, ds=ds, t=T).to_pandas()
    there = query(spark, sql, ds=ds, t=T).toPandas()
    assert [*here.columns] == [*there.columns]
    rows = [sorted(one.to_numpy().tolist()) for one in (here, there)]
    assert rows[0] == rows[1]
    return rows[0]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t AS s(a)", [[1, 3], [2, 4]]),
        ("SELECT s.a FROM t AS s(a, b) WHERE b > 3", [[2]]),
        ("SELECT b, a FROM (SELECT j, k FROM t) AS s(a, b)", [[3, 1], [4, 2]]),
        ("SELECT a + b AS c FROM (SELECT j, k FROM t UNION ALL SELECT k, j FROM t) AS s(a, b)", [[4], [4], [6], [6]]),
        ("WITH q(a, b) AS (SELECT j, k FROM t) SELECT d FROM q AS z(c, d) WHERE c > 1", [[4]]),
        ("WITH q(a) AS (SELECT j FROM t) SELECT label FROM ds WHERE label IN (SELECT a FROM q) EXPAND BY 1, 0",
         [[0], [1], [2]]),
        ("SELECT t.k, s.b FROM t JOIN t AS s(a, b) ON t.j = s.a", [[3, 3], [4, 4]]),
        ("SELECT t.k, s.b FROM t JOIN (SELECT j, k FROM t) AS s(a, b) ON t.j = s.a", [[3, 3], [4, 4]]),
        ("SELECT a, b FROM (SELECT t.j, u.j FROM t JOIN t AS u ON t.j = u.j) AS s(a, b)", [[1, 1], [2, 2]]),
        ("SELECT v[0] AS f, g.a, sid, img.height AS h FROM ds AS s(v, l) WHERE array_sum(v) > 30 AND s.l < 5",
         [[12, 4, 4, 2]]),
        ("SELECT l FROM ds AS s(v, l) WHERE l = 3 EXPAND BY 1, 1", [[2], [3], [4]]),
        ("SELECT l, n FROM (SELECT label, label + 1 FROM ds WHERE label = 3 EXPAND BY 1, 0) AS s(l, n)", [[2, 3], [3, 4]]),
        ("SELECT sid FROM ds AS s(x, sid) WHERE sid > 4", [[5]]),
    ],
)  # fmt: skip
def test_columns_have_the_names_that_the_query_gives_them(spark, ds, sql, expected):
    assert of_both(spark, sql, ds) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT t.j, s.b FROM t JOIN (SELECT j, k AS b FROM t) AS s ON t.j = s.j AND s.b > (SELECT max(j) + 1 FROM t)",
         [[2, 4]]),
        ("SELECT * FROM t JOIN t AS u ON t.j = u.j", [[1, 3, 1, 3], [2, 4, 2, 4]]),
        ("SELECT s.j_1 FROM (SELECT j, k AS j FROM t) AS s", [[3], [4]]),
        ("SELECT label, label, count(*), count(*) FROM ds WHERE label < 2 GROUP BY label", [[0, 0, 1, 1], [1, 1, 1, 1]]),
        ("SELECT label, label FROM ds WHERE label = 0 EXPAND BY 0, 1", [[0, 0], [1, 1]]),
    ],
)  # fmt: skip
def test_queries_are_joined_and_columns_alike_are_told_apart(spark, ds, sql, expected):
    assert of_both(spark, sql, ds) == expected


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT j FROM t AS s(a)", "there is no column 'j'"),
        ("SELECT * FROM t AS s(a, b, c)", "3 names are given to 2 columns"),
        ("SELECT * FROM (SELECT j, k FROM t) AS s(a)", "1 names are given to 2 columns"),
        ("WITH q(a) AS (SELECT j, k FROM t) SELECT * FROM q", "1 names are given to 2 columns"),
        ("SELECT * FROM t AS s(k)", "two columns would be called 'k'"),
        ("SELECT * FROM (SELECT j, k FROM t) AS s(a, A)", "two columns would be called 'A'"),
        ("SELECT v.height FROM ds AS s(x, l, a, v)", r"there is no column 'v\.height'"),
    ],
)
def test_names_that_cannot_be_given_are_refused(spark, ds, sql, said):
    for run in (tl.query, lambda *given, **sources: query(spark, *given, **sources)):
        with pytest.raises(InvalidQueryError) as caught:
            run(sql, ds=ds, t=T)
        assert re.search(said, str(caught.value))


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Two datasets with a column of the same name, whose samples stand in another order."""
    root = tmp_path_factory.mktemp("halves")
    left = tl.dataset(
        str(root / "left"), {"n": "int64", "a": "string", "x": tl.types.Tensor("int8")}
    )
    left.extend({"n": [1, 2, 3, 4], "a": [*"pqrs"], "x": np.zeros((4, 2), "i1")})
    right = tl.dataset(str(root / "right"), {"n": "int64", "b": "string"})
    right.extend({"n": [4, 2, 9], "b": [*"uvw"]})
    return {"l": left, "r": right}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("n, a, b FROM l NATURAL JOIN r ORDER BY n", [(2, "q", "v"), (4, "s", "u")]),
        ("a, b FROM l NATURAL LEFT JOIN r WHERE n < 3 ORDER BY n", [("p", None), ("q", "v")]),
        ("* FROM r NATURAL JOIN (SELECT n, a FROM l) AS q ORDER BY a", [(2, "v", "q"), (4, "u", "s")]),
    ],
)  # fmt: skip
def test_a_natural_join_is_of_the_columns_that_a_star_means(spark, halves, sql, wanted):
    """Spark joined by the hidden numbers of the samples, too."""
    assert [tuple(row) for row in query(spark, f"SELECT {sql}", **halves).collect()] == wanted
    assert [tuple(row.values()) for row in tl.query(f"SELECT {sql}", **halves)] == wanted


@pytest.mark.parametrize("join", ["JOIN l AS m USING (x)", "NATURAL JOIN l AS m"])
def test_using_takes_no_tensors(spark, halves, join):
    for asked in (partial(query, spark), tl.query):
        with pytest.raises(tl.InvalidQueryError, match="USING names 'x', which is a tensor"):
            asked(f"SELECT l.a FROM l {join}", **halves)
