"""What a query may have is listed, and nothing else is taken."""

import pytest
import sqlglot

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.operators import ELEMENTS
from tensorlake_spark.query.functions.registry import SCALARS
from tensorlake_spark.query.language import harmless


def tree(sql):
    return sqlglot.parse_one(sql, read="duckdb")


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_functions_of_elements_are_allowed(name):
    assert name in SCALARS


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT lower(a), round(b, 2), count(*) FROM t",
        "SELECT lpad(a, 4, '0'), rpad(a, 4) FROM t",
        "SELECT a FROM t AS s(a)",
        "SELECT CAST(a AS DECIMAL(10, 2)), a::VARCHAR, CAST(a AS TIMESTAMP) FROM t",
        "SELECT a FROM (VALUES (1), (2)) AS v(a)",
    ],
)
def test_queries_that_are_harmless(sql):
    harmless.check(sql, tree(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv_auto('x')",
        "SELECT * FROM t WHERE a IN (SELECT getvariable('x') FROM u)",
        "SELECT * FROM parquet_metadata('x')",
        "SELECT write_log('x') FROM t",
        "SELECT a FROM t ORDER BY system('ls')",
        "SELECT a FROM t GROUP BY pg_read_file('x')",
        "SELECT a FROM t LIMIT getenv('x')",
        "SELECT a FROM t JOIN sniff_csv('x') s ON s.a = t.a",
        "SELECT a FROM 'dir/*.parquet'",
        "SELECT a FROM 'https://example.com/x'",
        "SELECT a FROM 'C:\\x'",
        "SELECT a FROM ''",
        "CREATE TABLE x AS SELECT 1",
        "COPY t TO 'x'",
        "SELECT [x FOR x IN a] FROM t",
        "SELECT COLUMNS('a.*') FROM t",
        "SELECT a FROM t USING SAMPLE 10",
        "SELECT a::JSON FROM t",
        "SELECT a FROM t POSITIONAL JOIN u",
    ],
)
def test_trees_that_are_not(sql):
    with pytest.raises(InvalidQueryError):
        harmless.check(sql, tree(sql))


@pytest.mark.parametrize("name", ["a/b", "training", "run-5", "x.y"])
def test_names_that_are_no_files(name):
    sql = f'SELECT a FROM "{name}"'
    harmless.check(sql, tree(sql))


@pytest.mark.parametrize("written", ["'a'", "1.5", "NULL", "TRUE", "-1", "(1)", "-(2)", "'a' DESC"])
def test_a_constant_orders_nothing(written):
    sql = f"SELECT a FROM t ORDER BY {written}"
    with pytest.raises(InvalidQueryError, match="is a constant, which orders nothing"):
        harmless.check(sql, tree(sql))


def test_numbers_of_columns_and_orders_of_windows_are_taken():
    for sql in (
        "SELECT a FROM t ORDER BY 1, a + 1",
        "SELECT row_number() OVER (ORDER BY NULL) AS n FROM t",
        "SELECT array_agg(a ORDER BY 'x') FROM t",
    ):
        harmless.check(sql, tree(sql))


@pytest.mark.parametrize("end", ["b IS NULL", "NOT b IS TRUE", "b IS DISTINCT FROM a"])
def test_an_is_of_the_right_side_of_a_comparison_has_brackets(end):
    """sqlglot before 30.30 reads a > b IS NULL so, and no other engine does."""
    right = sqlglot.parse_one(end, read="duckdb")
    made = sqlglot.exp.select(sqlglot.exp.GT(this=sqlglot.exp.column("a"), expression=right))
    with pytest.raises(InvalidQueryError, match="IS stands behind a comparison"):
        harmless.check(made.sql(), made)
    harmless.check("", tree(f"SELECT a > ({end}), (a > b) IS NULL, a + b IS NULL FROM t"))
