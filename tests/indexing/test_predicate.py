"""The condition on rows: as SQL, evaluated for real, and as NumPy."""

import pickle
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.errors import InvalidKeyError
from tensorlake_spark.indexing import Predicate, select, select_points
from tensorlake_spark.indexing.predicate import rows_sql

IDS = ["x", "it's", "a\\tb", "back\\", "\\", "''", "\\'", "training/boxes"]


def found(predicate, rows):
    """Return the numbers of the rows ``(id, nnz, lo, hi)`` that the SQL finds; two axes."""
    db = sqlite3.connect(":memory:")
    try:
        db.create_function("chr", 1, chr)  # SQLite's own name for it is char
        db.execute("create table t (n, id, nnz, lo0, lo1, hi0, hi1)")
        for n, (tensor, nnz, lo, hi) in enumerate(rows):
            db.execute("insert into t values (?, ?, ?, ?, ?, ?, ?)", (n, tensor, nnz, *lo, *hi))
        where = predicate.to_sql().replace("lo.d", "lo").replace("hi.d", "hi")
        return [n for (n,) in db.execute(f"select n from t where {where} order by n")]
    finally:
        db.close()


@given(st.data())
def test_the_sql_finds_the_rows_that_match(data):
    shape = (9, 7)
    key = tuple(data.draw(st.slices(n)) for n in shape)
    tensor = data.draw(st.sampled_from(IDS))
    predicate = Predicate.of(tensor, select(key, shape))
    corners = st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(0, 6), st.integers(1, 4))
    drawn = data.draw(st.lists(corners, max_size=12))
    lo = np.array([(a, c) for a, _, c, _ in drawn], np.int64).reshape(-1, 2)
    hi = np.array([(a + b, c + d) for a, b, c, d in drawn], np.int64).reshape(-1, 2)
    sides = list(zip(lo.tolist(), hi.tolist()))
    rows = [(tensor, 1, a, b) for a, b in sides]
    others = [(f"{tensor}2", 1, a, b) for a, b in sides]
    rows_of_metadata = [(tensor, 0, (None, None), (None, None))]
    want = np.flatnonzero(predicate.matches(lo, hi)).tolist()
    assert found(predicate, rows + others + rows_of_metadata) == want


@pytest.mark.parametrize("tensor", IDS)
def test_an_id_is_found_whatever_it_holds(tensor):
    rows = [(name, nnz, (0, 0), (1, 1)) for name in IDS for nnz in (0, 5)]
    at = 2 * IDS.index(tensor)
    assert found(Predicate(tensor), rows) == [at + 1]
    assert found(Predicate(tensor, data=False), rows) == [at]


def test_a_backslash_stands_in_no_literal():
    """Spark takes it for an escape, SQLite and DataFusion do not; none of them errs about ``chr(92)``."""
    assert Predicate("a\\b").to_sql() == "id = 'a' || chr(92) || 'b' AND nnz > 0"


def test_an_empty_range_matches_no_row():
    rows = [("x", nnz, (0, 0), (9, 7)) for nnz in (0, 1)]
    for key in ((slice(3, 3), slice(None)), (slice(None), [])):
        predicate = Predicate.of("x", select(key, (9, 7)))
        assert found(predicate, rows) == []
        assert predicate.matches(np.array([[0, 0]]), np.array([[9, 7]])).tolist() == [False]


def test_the_whole_tensor_asks_for_its_data_rows():
    assert Predicate.of("x", select((), (9, 7))).to_sql() == "id = 'x' AND nnz > 0"
    assert Predicate.of("x", select((), ())).to_sql() == "id = 'x' AND nnz > 0"


def test_axes_without_columns_keep_all_rows():
    """The decoder trims them: too many rows, never too few."""
    selection = select((slice(None),) * 7 + (2, 3, 1), (4,) * 10)
    predicate = Predicate.of("x", selection)
    assert [axis for axis, _, _ in predicate.ranges] == [7, 8, 9]
    assert predicate.to_sql() == "id = 'x' AND nnz > 0 AND lo.d7 < 3 AND hi.d7 > 2"
    lo = np.zeros((3, 10), np.int64)
    lo[1, 9] = 2
    lo[2, 7] = 3
    hi = np.full((3, 10), 4)
    assert predicate.matches(lo, hi).tolist() == [True, True, False]
    assert selection.hits(lo, hi).tolist() == [True, False, False]


def test_the_predicate_of_points_bounds_them():
    predicate = Predicate.of("x", select_points(([2, 5], [0, 6]), (9, 7)))
    assert predicate.ranges == ((0, 2, 6),)
    assert pickle.loads(pickle.dumps(predicate)) == predicate


def test_metadata_rows_have_no_box():
    with pytest.raises(InvalidKeyError, match="tensor 'x' have no box"):
        Predicate("x", ((0, 1, 2),), data=False)


def test_what_holds_for_every_box_is_not_said():
    """A range from 0 on, and the end of an axis whose length is not known."""
    assert (
        rows_sql("x", [(0, 0, 5), (1, 4, 2**63 - 1)])
        == "id = 'x' AND nnz > 0 AND lo.d0 < 5 AND hi.d1 > 4"
    )
    assert rows_sql("x", [(0, 0, 2**63 - 1), (9, 1, 2)]) == "id = 'x' AND nnz > 0"


def test_rows_of_all_tensors():
    assert rows_sql(None) == "nnz > 0"
    assert rows_sql(None, data=False) == "nnz = 0"
    assert rows_sql(None, [(0, 1, 2), (1, 2, 1)]) == "nnz < 0"
