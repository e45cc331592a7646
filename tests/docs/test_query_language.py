"""The page on the query language: its queries are read, and its table names every function, with its arguments."""

import re

import numpy as np
import pytest
from places import DOCS

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import FUNCTIONS, find
from tensorlake_spark.query.language.parsing import (
    MOST_DEEP,
    MOST_NESTED,
    MOST_TOKENS,
    parse,
)
from tensorlake_spark.query.user_functions import unregister_function

TEXT = (DOCS / "query-language.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("sql", blocks("sql"))
def test_its_queries_are_read(sql):
    assert parse(sql).selects


def test_its_table_names_every_function():
    listed = {}
    for row in re.findall(r"^\| (`\w+\(.*?) \| (\w+) \|", TEXT, re.MULTILINE):
        first, *spellings = re.findall(r"`(\w+)(?:\(([^`]*)\))?`", row[0])
        most = len(re.findall(r"\w+(?: of b)?", first[1]))
        least = len(re.findall(r"\w+", re.sub(r"\[.*\]", "", first[1])))
        listed[first[0]] = (row[1], (least, most), tuple(name for name, _ in spellings))
    own = {f.name: (f.result, f.arity, f.spellings) for f in FUNCTIONS if not f.users}
    assert listed == own


def test_its_code_runs():
    names = {}
    try:
        for block in blocks("python"):
            exec(compile(block, "query-language.md", "exec"), names)
        assert find("spread").users
        node = parse("SELECT spread(x) FROM t").selects[0]
        assert evaluate(node, {"x": np.array([[[1, 5]], [[2, 2]]])}, 2).tolist() == [4, 0]
    finally:
        unregister_function("spread")
    assert tl.register_function


def test_its_mistake_is_shown_so():
    with pytest.raises(InvalidQueryError) as caught:
        parse("SELECT array_men(image) FROM dataset")
    assert str(caught.value) in TEXT


def test_its_bounds_are_those_of_the_code():
    text = " ".join(TEXT.split())
    assert f"{MOST_TOKENS:,} words" in text
    assert f"nested {MOST_NESTED} deep, and operations {MOST_DEEP} deep" in text
