"""Slices, literals, clauses, versions and parameters, as the tree has them."""

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.tree_names import text_of
from tensorlake_spark.query.language.dialect import TensorDialect
from tensorlake_spark.query.language.parsing import parse
from tensorlake_spark.query.user_functions import register_function, unregister_function


def selected(text):
    return parse(f"SELECT {text} FROM t").selects[0]


def items(text):
    return selected(f"x[{text}]").expressions


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1:2:3", ("1", "2", "3")),
        (":", ("", "", "")),
        ("::", ("", "", "")),
        ("::-1", ("", "", "-1")),
        ("-5:", ("-5", "", "")),
        (":-5", ("", "-5", "")),
        ("a:b", ("a", "b", "")),
        ("a::b", ("a", "", "b")),
        ("a : : b", ("a", "", "b")),
        (":b", ("", "b", "")),
        ("a + 1:b * 2:-(c)", ("a + 1", "b * 2", "-(c)")),
        ("$a:$b", (":a", ":b", "")),
        ("(:a):(:b)", ("(:a)", "(:b)", "")),
        ("array_max(y[0]):", ("ARRAY_MAX(y[0])", "", "")),
    ],
)
def test_a_slice_has_three_parts(text, parts):
    (node,) = items(text)
    assert isinstance(node, exp.Slice)
    found = (node.this, node.expression, node.args.get("step"))
    assert tuple("" if one is None else one.sql() for one in found) == parts


@pytest.mark.parametrize("text", ["newaxis", "NEWAXIS", "None", "null"])
def test_a_new_axis(text):
    first, second = items(f"{text}, 0")
    assert isinstance(first, exp.Var)
    assert first.name == "newaxis"
    assert second.name == "0"


def test_dots_stand_for_axes():
    first, second = items("..., -1")
    assert (first.name, second.sql()) == ("...", "-1")


def test_a_column_may_begin_as_newaxis_does():
    (node,) = items("none + 1")
    assert isinstance(node, exp.Add)


@pytest.mark.parametrize("text", ["1:2:3:4", "..", ".", "1 2", ",", ":,,", "x[", "1:2]]"])
def test_brackets_that_make_no_sense(text):
    with pytest.raises(InvalidQueryError):
        items(text)


def test_casts_in_parentheses_inside_a_bracket():
    (node,) = items("(a::int)")
    assert node.find(exp.Cast) is not None


def test_casts_outside_of_brackets():
    assert isinstance(selected("a::double"), exp.Cast)


@pytest.mark.skipif(
    TensorDialect.Parser.IS_PREDICATE_PRECEDENCE is None, reason="an older sqlglot: it is refused"
)
@pytest.mark.parametrize("column", ["a", "x[0]", "array_sum(x)"])
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("{} > 3 IS NOT TRUE", [True, False, True]), ("{} > 3 IS TRUE", [False, True, False]),
        ("{} = 5 IS NULL", [False, False, True]), ("{} = 5 IS NOT NULL", [True, True, False]),
        ("{} <> 1 IS FALSE", [True, False, False]), ("NOT {} = 1 IS TRUE", [False, True, True]),
        ("{} > (3 IS NULL)", [True, True, None]), ("{} + 1 IS NULL", [False, False, True]),
    ],
)  # fmt: skip
def test_is_stands_behind_a_whole_comparison(column, text, rows):
    """The right side alone was taken, as in a > (3 IS NOT TRUE)."""
    table = pa.table({"a": [1, 5, None], "x": [[1], [5], None]})
    found = tl.query(f"SELECT {text.format(column)} AS v FROM t", t=table).to_arrow()
    assert found.column("v").to_pylist() == rows


def test_array_literals():
    node = selected("[[1, 2], [a, -3.5]]")
    assert isinstance(node, exp.Array)
    assert [one.sql(dialect=TensorDialect) for one in node.expressions] == ["[1, 2]", "[a, -3.5]"]
    assert selected("[]").expressions == []


def test_a_bracket_says_where_it_stands():
    text = "SELECT x[1:2] FROM t"
    node = parse(text).selects[0]
    assert text[node.meta["start"] : node.meta["end"] + 1] == "[1:2]"


@pytest.mark.parametrize("sign", [":", "$"])
def test_parameters_have_names(sign):
    node = selected(f"{sign}q")
    assert isinstance(node, exp.Placeholder)
    assert node.this == "q"


@pytest.mark.parametrize("text", [": q", "$ q", ":1", ':"q"', "$'q'"])
def test_parameters_without_a_name(text):
    with pytest.raises(InvalidQueryError):
        selected(f"a = {text}")


@pytest.mark.parametrize(
    "name", ["NORMALIZE", "contains", "Any", "all", "array_sum", "shape", "Mean"]
)
def test_functions_of_tensors_are_not_those_of_sqlglot(name):
    node = selected(f"{name}(a, b)")
    assert isinstance(node, exp.Anonymous)
    assert node.name.casefold() == name.casefold()
    assert len(node.expressions) == 2


def test_functions_of_users_are_taken_before_those_of_sqlglot():
    with pytest.raises(InvalidQueryError, match="var_map"):
        selected("VAR_MAP(a, b)")
    register_function("var_map", lambda a, b: a)
    try:
        assert isinstance(selected("VAR_MAP(a, b)"), exp.Anonymous)
    finally:
        unregister_function("var_map")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("VERSION 'gold'", "VERSION", "gold"),
        ("version 5", "VERSION", "5"),
        ("VERSION AS OF 5", "VERSION", "5"),
        ("AS OF '2026-01-01'", "TIMESTAMP", "2026-01-01"),
        ("TIMESTAMP AS OF '2026-01-01'", "TIMESTAMP", "2026-01-01"),
        ("VERSION :v", "VERSION", "v"),
    ],
)
@pytest.mark.parametrize("alias", ["", " d", " AS d"])
def test_versions_of_tables(text, kind, value, alias):
    table = parse(f"SELECT * FROM t {text}{alias} WHERE a = 1").find(exp.Table)
    version = table.args["version"]
    assert (version.name, version.expression.name) == (kind, value)
    assert table.alias == ("d" if alias else "")


@pytest.mark.parametrize("text", ["t version", "t AS version", "version", "t AS timestamp"])
def test_words_of_versions_may_be_names(text):
    table = parse(f"SELECT * FROM {text}").find(exp.Table)
    assert table.args.get("version") is None


def test_names_in_quotes_and_backticks():
    assert selected('"training/boxes"').name == "training/boxes"
    assert selected("`a b`").name == "a b"


def test_the_dialect_works_through_sqlglot():
    tree = sqlglot.parse_one("SELECT x[::2] FROM t", read=TensorDialect)
    assert tree.sql(dialect=TensorDialect) == "SELECT x[::2] FROM t"


@pytest.mark.parametrize("text", ["x[1:2, ...]", "[1, 2]", "x[-1]", "ANY(x > 1)", "x[$a]"])
def test_what_is_printed_is_read_alike(text):
    printed = selected(text).sql(dialect=TensorDialect)
    assert selected(printed) == selected(text)


@pytest.mark.parametrize(
    "text",
    ["any(all(x, 0))", "count_if(ALL (x))", "greatest(1, all(x))", "coalesce(TRUE, all(x))",
     "(all(x) OR a)", "[all(x), any(x)]", "all(all(x, 0))", "x[all(x)]", "all(x)"],
)  # fmt: skip
def test_all_of_an_array_stands_inside_a_function(text):
    """There, it was the word that says that no value is left out: any(all(x, 0)) was any(x)."""
    tree = parse(f"SELECT {text} FROM t")
    assert [one.name.lower() for one in tree.find_all(exp.Anonymous)].count(
        "all"
    ) == text.lower().count("all")


def test_all_values_and_all_rows_are_no_function():
    for text in ("SELECT count(ALL x) FROM t", "SELECT ALL x FROM t", "SELECT 1 FROM t UNION ALL (SELECT 2 FROM t)",
                 "SELECT x = ALL (SELECT 1 FROM t) FROM t"):  # fmt: skip
        assert not [one for one in parse(text).find_all(exp.Anonymous) if one.name.lower() == "all"]


@pytest.mark.parametrize(
    ("text", "outer", "said"),
    [
        ("TIMESTAMP '2026-01-31 12:00:00'::DATE", "DATE", "CAST(TIMESTAMP '2026-01-31 12:00:00' AS DATE)"),
        ("DATE '2026-01-31'::TEXT::TEXT", "TEXT", "CAST(CAST(DATE '2026-01-31' AS TEXT) AS TEXT)"),
        ("date '2026-01-31'", "DATE", "DATE '2026-01-31'"),
        ("CAST('2026-01-31' AS DATE)", "DATE", "CAST('2026-01-31' AS DATE)"),
    ],
)  # fmt: skip
def test_a_moment_is_said_as_it_is_written_and_a_cast_behind_it_takes_its_value(text, outer, said):
    """The text was cast first, and then became a moment again."""
    node = selected(text)
    assert node.args["to"].sql() == outer
    assert node.sql(dialect=TensorDialect) == said == text_of(node)
