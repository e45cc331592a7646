"""Which table of a SELECT has a column, and how large a product is."""

import pytest

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.parsing import parse
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
