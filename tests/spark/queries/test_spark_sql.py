"""Trees as Spark SQL."""

import pytest

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.spark.queries.result_kinds import Kind
from tensorlake_spark.spark.queries.spark_sql import SparkPrinter
from tensorlake_spark.spark.queries.tables_in_reach import Table

COLUMNS = {
    "sid": Kind("scalar"),
    "x": Kind("array", 2),
    "n": Kind("scalar"),
    "g/b": Kind("array", 2),
}


def printed(sql, parameters=None):
    made = []

    def function_of(node, result, names=(), placed=False):
        made.append((node.sql(), result))
        return f"f{len(made)}"

    table = Table(COLUMNS, frozenset(["sid"]))
    text = SparkPrinter(sql, parameters or {}, lambda node: (table, "view"), function_of).printed(
        parse(sql)
    )
    return text, made


def test_stars_names_and_functions():
    text, made = printed('SELECT *, x[0] AS y FROM d WHERE n > 1 AND array_mean("g/b") > 2')
    assert text == (
        "SELECT `d`.`x` AS `x`, `d`.`n` AS `n`, `d`.`g/b` AS `g/b`, F1(`x`, `d`.sid) AS y FROM view AS `d` "
        "WHERE `n` > 1 AND F2(`g/b`, `d`.sid)"
    )
    assert [result for _, result in made] == ["array", "bool"]


def test_groups_and_aliases_in_conditions():
    text, made = printed("SELECT n + 1 AS m FROM d WHERE m > 2 AND any(d.g.b > 1)")
    assert "(`n` + 1) > 2" in text
    assert "F1(`d`.`g/b`, `d`.sid)" in text
    assert made[0][1] == "bool"


def test_inner_queries():
    text, made = printed(
        "WITH q AS (SELECT array_max(x) AS top, x FROM d) SELECT top, x[0, 0] AS a FROM q ORDER BY top"
    )
    assert [result for _, result in made] == ["number", "number"]
    assert text.endswith("FROM q ORDER BY `top` NULLS LAST")


def test_what_is_not_there():
    with pytest.raises(InvalidQueryError, match="no column 'm'"):
        printed("SELECT m FROM d")


def test_parameters_are_literals_and_no_text_of_the_query():
    given = {"a": "x' OR '1'='1", "b": 2.5, "c": None, "d": [1, 2]}
    text, _ = printed("SELECT n FROM d WHERE n = :a OR n > :b OR n = :c LIMIT 3", given)
    assert "`n` = 'x\\' OR \\'1\\'=\\'1' OR `n` > 2.5 OR `n` = NULL" in text
    with pytest.raises(InvalidQueryError, match="parameter :d is list"):
        printed("SELECT lower(:d) AS n FROM d", given)
    with pytest.raises(InvalidQueryError, match="LIMIT takes a number of rows"):
        printed("SELECT n FROM d LIMIT :d", given)
    with pytest.raises(InvalidQueryError, match="parameter :e has no value"):
        printed("SELECT n FROM d WHERE n = :e", given)
