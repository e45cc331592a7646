"""A mistake names the line, the column, and marks the word."""

import pytest

from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.language.mistakes import WIDEST, mistake, span_of
from tensorlake_spark.query.language.parsing import parse

SQL = "SELECT a,\n\tbcd FROM t"


def test_a_position_marks_its_word():
    assert str(mistake(SQL, 11, "wrong", "write x")) == (
        "wrong; write x (line 2, column 2)\n\tbcd FROM t\n\t^^^"
    )


def test_a_node_marks_itself():
    node = parse(SQL).selects[1]
    assert str(mistake(SQL, node, "wrong")).endswith("\n\tbcd FROM t\n\t^^^")
    assert span_of(node) == (11, 14)


def test_an_expression_is_marked_where_it_begins():
    sql = "SELECT a + b FROM t"
    assert span_of(parse(sql).selects[0]) == (7, 8)


@pytest.mark.parametrize("place", [None, -1, 1000])
def test_without_a_place_only_the_message_is_there(place):
    error = mistake(SQL, place, "wrong", "; write x")
    assert isinstance(error, InvalidQueryError)
    assert str(error) == "wrong; write x"


def test_a_long_line_is_cut_around_the_word():
    sql = "SELECT " + "a, " * 200 + "bad, " + "a, " * 200 + "a FROM t"
    start = sql.index("bad")
    _, shown, caret = str(mistake(sql, start, "wrong")).split("\n")
    assert len(shown) <= WIDEST
    assert shown[caret.index("^") :].startswith("bad")
    assert caret.count("^") == 3


def test_a_place_at_the_end_of_the_text():
    assert str(mistake("SELECT", 6, "more")).endswith("SELECT\n      ^")


def test_words_of_several_bytes():
    sql = 'SELECT "größe", foo FROM t'
    assert str(mistake(sql, sql.index("foo"), "wrong")).split("\n")[2] == " " * 16 + "^^^"
