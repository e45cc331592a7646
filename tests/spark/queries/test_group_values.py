"""Tensors of groups in Spark SQL."""

import pytest

from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark.queries.group_values import collect, collected, item_kind, list_of
from tensorlake_spark.spark.queries.result_kinds import Kind

COLUMNS = {"x": Kind("array", 1), "y": Kind("array"), "n": Kind("scalar")}


def resolve(column):
    return COLUMNS[column.name]


def test_tensors_without_an_aggregate_are_collected():
    tree = parse(
        "SELECT n AS n, x AS x, array_mean(x) AS m, max(n) AS t FROM t GROUP BY 1, array_mean(x)"
    )
    collect(tree, resolve, {}, lambda node: node.sql())
    assert [list_of(item.this) is not None for item in tree.expressions] == [False, True, False, False]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list(x)", Kind("array", 2, collected=True)),
        ("array_agg(y) AS z", Kind("array", None, collected=True)),
        ("array_agg(array_mean(x))", Kind("array", 1, collected=True)),
        ("array_agg(n)", Kind("scalar")),
        ("arg_max(x, n)", Kind("array", 1)),
        ("first(n)", Kind("scalar")),
        ("x[0]", Kind("number")),
    ],
)
def test_kinds_of_items(text, expected):
    node = parse(f"SELECT {text} FROM t").selects[0]
    assert item_kind(node, resolve, {}) == expected


def test_values_are_collected_in_the_order_of_the_samples():
    x, sid = (parse(f"SELECT {name} FROM t").selects[0] for name in ("x", "sid"))
    assert collected(x, [sid]).sql(dialect="spark") == (
        "TRANSFORM(ARRAY_SORT(COLLECT_LIST(NAMED_STRUCT('k0', sid, 'v', x))), r -> r.v)"
    )
    assert (
        collected(x, []).sql(dialect="spark")
        == "TRANSFORM(COLLECT_LIST(NAMED_STRUCT('v', x)), r -> r.v)"
    )
