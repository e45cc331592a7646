"""Keys as text."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidSliceError
from tensorlake_spark.indexing import Predicate, format_key, named_key, parse_key, select

bound = st.none() | st.integers(-20, 20)
parts = (
    st.integers(-20, 20)
    | st.builds(slice, bound, bound, st.none() | st.integers(-5, 5).filter(bool))
    | st.just(Ellipsis)
    | st.none()
    | st.lists(st.integers(-9, 9), min_size=1, max_size=4)
)


@given(st.lists(parts, max_size=5).map(tuple))
def test_parsing_undoes_formatting(key):
    assert parse_key(format_key(key)) == key


def test_names_of_axes():
    axes = ("image", "channel", "y")
    assert parse_key("image=30:40, y=5", axes) == (slice(30, 40), slice(None), 5)
    assert parse_key("y=[1, 2]", axes) == (slice(None), slice(None), [1, 2])
    assert named_key(axes, {"channel": 0}) == (slice(None), 0, slice(None))


@pytest.mark.parametrize(
    ("text", "axes", "says"),
    [
        ("30:40, banana", None, "'banana'"),
        ("1:2:3:4", None, "'1:2:3:4'"),
        ("1.5", None, "'1.5'"),
        ("::0", None, "step of '::0' is zero"),
        ("[1, x]", None, r"\[1, x\]"),
        (",", None, "''"),
        ("imag=3", ("image", "y"), "did you mean 'image'"),
        ("image=3, 5", ("image", "y"), "mixes names and positions"),
        ("y=3, y=4", ("image", "y"), "'y' twice"),
        ("y=3", None, "have no names"),
        ("y=None", ("image", "y"), "'y' is given None, which picks from no axis"),
        ("y=...", ("image", "y"), "'y' is given Ellipsis"),
    ],
)
def test_errors_show_text_part_and_remedy(text, axes, says):
    with pytest.raises(InvalidSliceError, match=says):
        parse_key(text, axes)


def test_masks_as_text_pick_the_same():
    assert format_key(np.array([True, False, True])) == "[0, 2]"
    assert format_key((np.int64(5), np.array([], np.int64), [False, True])) == "5, [], [1]"


@pytest.mark.parametrize("part", [1.5, [[1, 2]], "y", True, [0.5]])
def test_what_has_no_text_is_refused(part):
    with pytest.raises(InvalidSliceError, match="has no text"):
        format_key(part)


@given(st.data())
def test_the_sql_of_a_predicate_finds_the_rows_that_match(data):
    shape = (9, 7)
    key = tuple(data.draw(st.slices(n)) for n in shape)
    predicate = Predicate.of("it's", select(key, shape))
    corners = st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(0, 6), st.integers(1, 4))
    rows = data.draw(st.lists(corners, max_size=12))
    lo = np.array([(a, c) for a, _, c, _ in rows], np.int64).reshape(-1, 2)
    hi = np.array([(a + b, c + d) for a, b, c, d in rows], np.int64).reshape(-1, 2)
    with sqlite3.connect(":memory:") as db:
        db.execute("create table t (n, id, nnz, lo0, lo1, hi0, hi1)")
        for n, (a, b) in enumerate(zip(lo.tolist(), hi.tolist())):
            db.execute("insert into t values (?, ?, 1, ?, ?, ?, ?)", (n, "it's", *a, *b))
            db.execute("insert into t values (?, ?, 1, ?, ?, ?, ?)", (-1, "other", *a, *b))
            db.execute("insert into t values (?, ?, 0, ?, ?, ?, ?)", (-1, "it's", *a, *b))
        where = predicate.to_sql().replace(".d", "")
        found = [n for (n,) in db.execute(f"select n from t where {where} order by n")]
    db.close()
    assert found == np.flatnonzero(predicate.matches(lo, hi)).tolist()
