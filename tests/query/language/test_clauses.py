"""TQL's clauses, where they may stand and what they hold."""

import pytest

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.clauses import (
    ARRANGE,
    EXPAND,
    SAMPLE_BY,
    UNGROUP,
    clause_of,
)
from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.parsing import parse


def clause(text, key):
    return clause_of(parse(f"SELECT * FROM d {text}"), key)


@pytest.mark.parametrize("space", [" ", "\n  ", "\t"])
def test_arrange_by(space):
    found = clause(f"WHERE a > 1 ARRANGE{space}BY labels, a % 2 LIMIT 3", ARRANGE)
    assert [one.sql() for one in found.expressions] == ["labels", "a % 2"]


@pytest.mark.parametrize(
    ("text", "replace"), [("", None), (" REPLACE TRUE", True), (" replace false", False)]
)
def test_sample_by(text, replace):
    tree = parse(f"SELECT * FROM d SAMPLE BY w * 2{text} LIMIT 10")
    found = clause_of(tree, SAMPLE_BY)
    assert found.this.sql() == "w * 2"
    given = found.args.get("replace")
    assert (None if given is None else given.this) is replace
    assert tree.args["limit"].expression.name == "10"


@pytest.mark.parametrize("between", [", ", " "])
@pytest.mark.parametrize(
    ("text", "overlap"), [("", None), (" OVERLAP TRUE", True), (" OVERLAP FALSE", False)]
)
def test_expand_by(between, text, overlap):
    found = clause(f"EXPAND BY 2{between}3{text}", EXPAND)
    assert (found.args["before"].name, found.args["after"].name) == ("2", "3")
    given = found.args.get("overlap")
    assert (None if given is None else given.this) is overlap


def test_ungroup_by():
    assert [one.name for one in clause("UNGROUP BY boxes, labels", UNGROUP).expressions] == [
        "boxes",
        "labels",
    ]


def test_clauses_stand_in_any_order_and_are_printed_in_one():
    one = parse("SELECT * FROM d ARRANGE BY a SAMPLE BY w LIMIT 3")
    other = parse("SELECT * FROM d LIMIT 3 SAMPLE BY w ARRANGE BY a")
    assert one.sql(dialect=TensorDialect) == other.sql(dialect=TensorDialect)


def test_a_clause_behind_a_union_is_of_the_union():
    tree = parse("SELECT a FROM t UNION SELECT a FROM u ARRANGE BY a")
    assert clause_of(tree, ARRANGE).expressions[0].name == "a"
    assert clause_of(tree.expression, ARRANGE) is None


def test_a_clause_in_a_subquery_is_of_the_subquery():
    tree = parse("SELECT a FROM (SELECT * FROM d SAMPLE BY w LIMIT 5) s")
    assert clause_of(tree, SAMPLE_BY) is None
    assert tree.find(type(clause("SAMPLE BY w", SAMPLE_BY))) is not None


@pytest.mark.parametrize(
    "text",
    [
        "ARRANGE BY", "ARRANGE BY a ARRANGE BY b", "SAMPLE BY", "SAMPLE BY w REPLACE 5", "EXPAND BY 1",
        "EXPAND BY 1, 2 OVERLAP", "UNGROUP BY", "CLUSTER BY a", "SORT BY a", "DISTRIBUTE BY a",
    ],
)  # fmt: skip
def test_clauses_that_make_no_sense(text):
    with pytest.raises(InvalidQueryError):
        parse(f"SELECT * FROM d {text}")
