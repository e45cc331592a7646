"""Texts become trees, and what is no query is refused where it is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from work import calls

from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError
from tensorlake_spark.query.language import parsing
from tensorlake_spark.query.language.clauses import ARRANGE
from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.user_functions import register_function, unregister_function

FIGURE_4 = """SELECT
  images[100:500, 100:500, 0:2] AS crop,
  NORMALIZE(boxes, [100, 100, 400, 400]) AS box
FROM dataset
WHERE IOU(boxes, "training/boxes") > 0.95
ORDER BY IOU(boxes, "training/boxes")
ARRANGE BY labels"""

QUERIES = [
    FIGURE_4,
    "SELECT x[::-1, -5:, ..., newaxis, i, a:b, a::b, :b, ::2, 1:2:3, :-1, (a::int)] FROM d",
    "SELECT any(x > 3), all(x < 3), x = ANY (SELECT 1 FROM t), 3 IN (SELECT a FROM t) FROM d",
    "WITH a AS (SELECT 1 AS x FROM t) SELECT * FROM a UNION SELECT x FROM b ORDER BY 1 LIMIT 3 OFFSET 2",
    "SELECT a FROM t INTERSECT SELECT a FROM u EXCEPT SELECT b FROM v",
    "SELECT *, row_number() OVER (PARTITION BY a ORDER BY b DESC) AS rn FROM t QUALIFY rn = 1",
    "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT CASE WHEN a = 1 THEN 'x' ELSE 'y' END, CAST(a AS DOUBLE), a::int FROM t",
    "SELECT t.*, u.b FROM t JOIN u ON t.a = u.a LEFT JOIN v USING (k) WHERE a IN (1, 2, 3)",
    "SELECT * FROM t CROSS JOIN u FULL JOIN w ON t.a < w.a",
    "SELECT * EXCEPT (a, b) FROM d SAMPLE BY w REPLACE TRUE LIMIT 10",
    "SELECT * FROM d SAMPLE BY w + 1 LIMIT 10",
    "SELECT * FROM d EXPAND BY 2, 3 OVERLAP FALSE",
    "SELECT * FROM d UNGROUP BY boxes",
    "SELECT * FROM d WHERE x = 3 ARRANGE BY a, b LIMIT 3",
    "SELECT * FROM d VERSION 'tag'",
    "SELECT * FROM d VERSION 5 AS e JOIN d AS OF '2026-01-01' f ON e.sid = f.sid",
    "SELECT * FROM d VERSION AS OF 5",
    "SELECT * FROM d TIMESTAMP AS OF '2026-01-01'",
    "SELECT * FROM d VERSION :v",
    "SELECT l2_distance(emb, :q) AS d FROM t ORDER BY l2_distance(emb, :q) LIMIT :k",
    "SELECT x[$a:$b] FROM t ORDER BY d DESC NULLS FIRST",
    'SELECT "training/boxes", training.label, `a b` FROM d',
    "SELECT MEAN(images), SHAPE(images)[0], argmax(x), contains(labels, 3) FROM d",
    "SELECT count(*), sum(a), count(DISTINCT c) FROM t GROUP BY a HAVING count(*) > 3",
    "SELECT DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00', INTERVAL '1' DAY FROM t",
    "SELECT a FROM (SELECT b AS a FROM t) AS s WHERE EXISTS (SELECT 1 FROM u WHERE u.a = s.a)",
    "SELECT x LIKE 'a%', NOT y LIKE 'b', z BETWEEN 1 AND 2, w IS NOT NULL FROM t",
    "SELECT count(*) FILTER (WHERE a > 1) FROM t",
    "SELECT a FROM t UNION ALL SELECT a FROM u ARRANGE BY a",
    "SELECT [[1, 2], [3, 4]] AS m, -x[0], x[0][1], (x + 1)[2] FROM d;",
    "(SELECT a FROM t)",
    "SELECT coalesce(a, b), lower(c), substr(d, 1, 2), concat(f, 'x') || 'y', extract(year FROM h) FROM t",
    "SELECT DISTINCT a, t.b FROM t, u -- a remark\nWHERE t.a = u.a /* and another */",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_is_read_and_printed_and_read_again(sql):
    tree = parse(sql)
    assert isinstance(tree, exp.Query)
    printed = tree.sql(dialect=TensorDialect)
    assert parse(printed) == tree
    assert parse(printed).sql(dialect=TensorDialect) == printed


def test_the_query_of_figure_4_has_its_parts():
    tree = parse(FIGURE_4)
    assert tree.named_selects == ["crop", "box"]
    assert tree.args["order"].expressions[0].this.name == "IOU"
    assert tree.args[ARRANGE].expressions[0].name == "labels"
    assert {column.name for column in tree.find_all(exp.Column)} == {
        "images", "boxes", "training/boxes", "labels",
    }  # fmt: skip


REFUSED = [
    ("ATTACH 'x.db'", "ATTACH"),
    ("DETACH x", "DETACH"),
    ("COPY t TO 'x.csv'", "COPY"),
    ("SET memory_limit = '1GB'", "SET"),
    ("RESET memory_limit", "RESET"),
    ("PRAGMA database_list", "PRAGMA"),
    ("INSTALL httpfs", "INSTALL"),
    ("LOAD httpfs", "LOAD"),
    ("EXPORT DATABASE 'x'", "EXPORT"),
    ("IMPORT DATABASE 'x'", "IMPORT"),
    ("CREATE TABLE x (a int)", "CREATE"),
    ("INSERT INTO t VALUES (1)", "INSERT"),
    ("UPDATE t SET a = 1", "UPDATE"),
    ("DELETE FROM t", "DELETE"),
    ("DROP TABLE t", "DROP"),
    ("CALL f()", "CALL"),
    ("USE x", "USE"),
    ("SHOW TABLES", "SHOW"),
    ("DESCRIBE t", "DESCRIBE"),
    ("EXPLAIN SELECT 1", "EXPLAIN"),
    ("FROM t", "FROM"),
    ("VALUES (1)", "VALUES"),
    ("SELECT 1 FROM t; SELECT 2 FROM t", "one statement"),
    ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
    ("SELECT * FROM read_parquet('x.parquet')", "read_parquet"),
    ("SELECT * FROM read_json_auto('x')", "read_json_auto"),
    ("SELECT * FROM delta_scan('x')", "delta_scan"),
    ("SELECT * FROM glob('*')", "GLOB"),
    ("SELECT * FROM t WHERE a GLOB '*'", "GLOB"),
    ("SELECT * FROM query('select 1')", "query"),
    ("SELECT * FROM duckdb_settings()", "duckdb_settings"),
    ("SELECT * FROM 'x.parquet'", "looks like a file"),
    ('SELECT * FROM "x.parquet"', "looks like a file"),
    ('SELECT * FROM "/etc/passwd"', "looks like a file"),
    ('SELECT * FROM "s3://bucket/key"', "looks like a file"),
    ('SELECT * FROM "../x.csv" AS x', "looks like a file"),
    ('SELECT * FROM a."b.csv"', "looks like a file"),
    ("SELECT a FROM t WHERE a IN (SELECT b FROM 'x.csv')", "looks like a file"),
    ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", "RECURSIVE"),
    ("SELECT getenv('HOME') FROM t", "getenv"),
    ("SELECT current_setting('x') FROM t", "current_setting"),
    ("SELECT read_text('x') FROM t", "read_text"),
    ("SELECT nextval('s') FROM t", "nextval"),
    ("SELECT current_user FROM t", "current_user"),
    ("SELECT a::foo FROM t", "no type foo"),
    ("SELECT CAST(a AS STRUCT<b INT>) FROM t", "no type"),
    ("SELECT a INTO b FROM t", "INTO"),
    ("WITH x AS (DELETE FROM t) SELECT * FROM x", "DELETE"),
    ("SELECT * FROM (INSERT INTO t VALUES (1))", "INSERT|insert|table name"),
    ("SELECT * FROM t TABLESAMPLE (10)", "SAMPLE"),
    ("SELECT * FROM unnest([1, 2])", "unnest"),
    ("SELECT * FROM t, LATERAL (SELECT 1)", "LATERAL"),
    ("SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2))", "PIVOT"),
    ("SELECT * FROM t ASOF JOIN u ON t.a > u.a", "ASOF|asof"),
    ("SELECT * FROM t FOR UPDATE", "LOCK"),
    ("SELECT a FROM t WHERE a = ?", "no name"),
    ("SELECT {'a': 1} FROM t", "struct"),
    ("SELECT x -> 1 FROM t", "json_extract"),
    ("SELECT x'00' FROM t", "not a query"),
    ("SELECT array_mean(x AS y) FROM t", "no name"),
    # What other dialects have, and the planner would pass over: rows would be wrong without an error.
    ("SELECT a, b FROM t UNION ALL BY NAME SELECT b, a FROM t", "BY NAME"),
    ("SELECT a FROM t@v1", "not called so.*VERSION"),
    ("SELECT a FROM t :v", "not called so.*VERSION"),
    ("SELECT a + 1_000 FROM t", "1_000 is not a number"),
    ("SELECT 0x1f FROM t", "0x1f is not a number"),
    ("SELECT AS STRUCT a FROM t", "SELECT AS"),
    ("SELECT a FROM t LIMIT 1 BY a", "LIMIT BY"),
    ("SELECT a FROM t GROUP BY a WITH TOTALS", "WITH TOTALS"),
    ("SELECT CAST(a AS INT FORMAT 'x') FROM t", "FORMAT"),
    ("SELECT * LIKE 'a%' FROM t", "stands in an expression"),
    (
        "SELECT a ^ 2 FROM t",
        r"\^ is not taken.*power in DuckDB.*write power\(a, b\) or xor\(a, b\)",
    ),
    ("SELECT xor(a) FROM t", "xor takes two numbers"),
    ("SELECT xor(a, b, c) FROM t", "xor takes two numbers"),
    ("SELECT a FROM t WHERE a = ANY(:list)", "any.* is a bool.*IN"),
    ("SELECT a FROM t WHERE a <> ALL([1, 2])", "all.* is a bool"),
    ("SELECT a FROM t WHERE 3 = any(x)", "any.* is a bool.*contains"),
]


@pytest.mark.parametrize(("sql", "named"), REFUSED)
def test_what_is_no_query_is_refused(sql, named):
    with pytest.raises(InvalidQueryError, match=named):
        parse(sql)


@pytest.mark.parametrize(
    ("sql", "said", "line", "column"),
    [
        ("SELECT a FRM t", "Unexpected token", 1, 14),
        ("SELECT a FROM t WHERE", "something is missing in WHERE", 1, 17),
        ("SELECT x[1 FROM t", "A ] or a comma is missing", 1, 12),
        ("SELECT a\nFROM t\nWHERE array_men(x) > 1", "did you mean 'array_mean'", 3, 7),
        ("SELECT a,\n  getenv('x') FROM t", "no function 'getenv'", 2, 3),
        ("SELECT FROM t", "SELECT has no columns", None, None),
    ],
)
def test_a_mistake_is_shown_where_it_is(sql, said, line, column):
    with pytest.raises(InvalidQueryError, match=said) as caught:
        parse(sql)
    if line is not None:
        text, shown, caret = str(caught.value).split("\n")
        assert f"(line {line}, column {column})" in text
        assert shown == sql.split("\n")[line - 1]
        assert caret.index("^") == column - 1


@pytest.mark.parametrize("sql", ["", "  ", ";", "SELECT 'abc", 'SELECT "abc FROM t', "SELECT /* x"])
def test_texts_without_a_query_are_refused(sql):
    with pytest.raises(InvalidQueryError):
        parse(sql)


@pytest.mark.parametrize("sql", [None, 5, b"SELECT 1"])
def test_a_query_is_a_text(sql):
    with pytest.raises(InvalidQueryError, match="a query is a text"):
        parse(sql)


def test_the_error_is_the_built_in_one_too():
    assert issubclass(InvalidQueryError, InvalidOptionError)
    assert issubclass(InvalidQueryError, ValueError)


DEEP = [
    ("(", ")"), ("[", "]"), ("array_mean(", ")"), ("CASE WHEN ", " THEN 1 END"), ("CAST(", " AS INT)"),
    ("(SELECT ", " FROM t)"), ("x[", "]"), ("NOT ", ""), ("- ", ""), ("a + ", ""), ("a AND (", ")"),
    ("STRUCT(", ")"), ("ARRAY(", ")"), ("a.", ""), ("SELECT a UNION ", ""), ("a || ", ""), ("MAP(", ")"),
]  # fmt: skip


@pytest.mark.parametrize("depth", [15, 40, 1000])
@pytest.mark.parametrize(("before", "behind"), DEEP)
def test_deep_texts_end_soon_and_without_recursion(before, behind, depth):
    # Without bounds sqlglot would need longer than any test may take for some of these.
    sql = "SELECT " + before * depth + "a" + behind * depth + " FROM t"
    try:
        tree = parse(sql)
    except InvalidQueryError:
        assert depth > 10
    else:
        assert isinstance(tree, exp.Query)


def test_long_chains_of_and_are_taken():
    tree = parse("SELECT a FROM t WHERE " + " AND ".join(f"a <> {i}" for i in range(2000)))
    assert sum(1 for _ in tree.find_all(exp.NEQ)) == 2000


def test_so_many_operations_are_taken_as_the_message_says():
    """Those around them and in them, as a name by AS, were counted too."""
    terms = [f"c{number}" for number in range(150)]
    parse(f"SELECT {' + '.join(terms[:101])} AS total FROM t")
    with pytest.raises(
        InvalidQueryError, match=r"more than 100 operations.*\(a \+ b\) \+ \(c \+ d\)"
    ):
        parse(f"SELECT {' + '.join(terms[:102])} AS total FROM t")
    parse(f"SELECT ({' + '.join(terms[:75])}) + ({' + '.join(terms[75:])}) AS total FROM t")


def test_texts_that_are_too_long_are_refused():
    with pytest.raises(InvalidQueryError, match="characters"):
        parse("SELECT " + " " * parsing.MOST_CHARACTERS)
    with pytest.raises(InvalidQueryError, match="give long lists as parameters"):
        parse("SELECT a FROM t WHERE a IN (" + "1, " * parsing.MOST_TOKENS + "1)")


def test_functions_that_sqlglot_knows_and_cannot_build_are_our_error():
    with pytest.raises(InvalidQueryError):
        parse("SELECT var_map(a) FROM t")


WORDS = [
    *["SELECT", "FROM", "WHERE", "a", "b", "x", "t", "(", ")", "[", "]", "{", "}", ",", ".", ":", "::", "...", "1", "2.5", "'q'", '"c"', "AND", "OR", "NOT", "IN", "IS", "NULL", "CASE", "WHEN"],
    *["THEN", "ELSE", "END", "CAST", "AS", "INT", "+", "-", "*", "/", "%", "=", "<>", "<", ">", "||", "&", "|", "~", "ANY", "ALL", "EXISTS", "UNION", "EXCEPT", "JOIN", "ON", "USING"],
    *["GROUP", "BY", "ORDER", "HAVING", "LIMIT", "OFFSET", "ARRANGE", "SAMPLE", "EXPAND", "UNGROUP", "VERSION", "OF", "OVER", "PARTITION", "BETWEEN"],
    *["WITH", "RECURSIVE", "DISTINCT", "INTERVAL", "DATE", "STRUCT", "ARRAY", "MAP", "->", "=>", ":=", "?", "$", "@", "#", ";", "--", "/*", "*/", "iou", "count", "extract"],
    *["substring", "trim", "position", "REPLACE", "TRUE", "OVERLAP", "VALUES", "LATERAL", "PIVOT", "FOR", "SET", "FETCH", "LIKE", "ESCAPE", "decode"],
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["", "SELECT ", "SELECT a FROM t WHERE ", "SELECT x["]),
    st.one_of(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), st.text(max_size=60)),
)
def test_any_text_is_a_query_or_our_error(before, text):
    try:
        tree = parse(before + text)
    except InvalidQueryError:
        pass
    else:
        assert isinstance(tree, exp.Query)


def test_usual_queries_are_read_by_a_few_times_the_calls_of_sqlglot():
    import sqlglot

    plain = "SELECT a, b, c FROM t WHERE f(a, b) > 0.95 AND g(a) < 3 ORDER BY f(a, b) LIMIT 10"
    ours = plain.replace("f(", "iou(").replace("g(", "array_mean(")

    parse(ours), sqlglot.parse_one(plain)  # what they load
    # A text that is asked again is known.
    other = ours.replace("0.95", "0.96")
    assert calls(lambda: parse(other)) < 4 * calls(lambda: sqlglot.parse_one(plain))


def test_a_text_that_is_asked_again_gives_a_tree_of_its_own():
    sql = "SELECT images[1:3] AS crop FROM t WHERE label = :x"
    one = parse(sql)
    said = one.sql()
    one.set("where", None)
    one.expressions.clear()
    two = parse(sql)
    assert two.sql() == said
    places = [node.meta.get("start") for node in parse(sql + " ").walk()]
    assert [node.meta.get("start") for node in two.walk()] == places
    assert any(place is not None for place in places)


def test_a_text_is_judged_anew_when_functions_of_users_change():
    sql = "SELECT bright_or_not(x) FROM t"
    with pytest.raises(InvalidQueryError, match="there is no function"):
        parse(sql)
    register_function("bright_or_not", lambda x: x)
    try:
        assert isinstance(parse(sql), exp.Query)
    finally:
        unregister_function("bright_or_not")
    with pytest.raises(InvalidQueryError, match="there is no function"):
        parse(sql)


@pytest.mark.parametrize(
    ("fetch", "limit"),
    [
        ("FETCH FIRST 2 ROWS ONLY", "LIMIT 2"),
        ("OFFSET 1 ROWS FETCH NEXT :n ROWS ONLY", "LIMIT :n OFFSET 1"),
        ("FETCH FIRST ROW ONLY", "LIMIT 1"),
    ],
)
def test_fetch_is_limit(fetch, limit):
    assert parse(f"SELECT a FROM t {fetch}") == parse(f"SELECT a FROM t {limit}")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a FROM t FETCH FIRST 2 PERCENT ROWS ONLY", "no PERCENT or TIES; write LIMIT"),
        ("SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES", "no PERCENT or TIES; write LIMIT"),
        ("SELECT CAST(a AS uint8) FROM t", "no type uint8; numbers are BOOLEAN, TINYINT"),
        ("SELECT CAST(a AS float16) FROM t", "no type float16; numbers are .* FLOAT"),
        ("SELECT a FROM t ORDER BY a <-> [1, 2]", "write l2_distance"),
    ],
)
def test_what_is_written_in_another_way_is_said(sql, said):
    with pytest.raises(InvalidQueryError, match=said):
        parse(sql)
