"""Trees with TQL's clauses, before Spark sees them."""

import pytest

from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark.queries.clause_frames import (
    becomes_view,
    taken_clauses,
    with_unions_inside,
)


def test_clauses_are_taken_off():
    tree = parse("SELECT x FROM d EXPAND BY 1, 1 ARRANGE BY x")
    assert set(taken_clauses(tree)) == {"expand", "arrange"}
    assert taken_clauses(tree) == {}
    assert tree.sql(dialect="spark") == "SELECT x FROM d"


@pytest.mark.parametrize("around", ["{}", "SELECT q.x FROM ({}) AS q"])
def test_a_union_becomes_the_table_of_a_select(around):
    union = "SELECT x FROM d UNION ALL SELECT x FROM e LIMIT 3 ARRANGE BY x"
    tree = with_unions_inside(parse(around.format(union)))
    for node in tree.find_all(type(parse("SELECT 1 UNION ALL SELECT 2"))):
        assert taken_clauses(node) == {}
    assert "LIMIT 3 ARRANGE BY x" in tree.sql(dialect=TensorDialect)


def test_a_select_becomes_all_of_a_view():
    tree = parse("SELECT x, y FROM d WHERE x > 1 ORDER BY y LIMIT 3")
    becomes_view(tree, "v")
    assert tree.sql(dialect="spark") == "SELECT * FROM v"
