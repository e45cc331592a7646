"""Generated queries on scalars and tensors give the rows of SQLite, which has the tensors' numbers from NumPy."""

import sqlite3

import numpy as np
import pyarrow as pa
import pytest
from examples import times
from hypothesis import given
from query_texts import queries

import tensorlake_spark as tl

COUNT = 48


def rows():
    """Rows with nulls of every kind, and values that are often the same."""
    rng = np.random.default_rng(26)
    for n in range(COUNT):
        yield {
            "i": None if n % 7 == 3 else int(rng.integers(-3, 4)),
            "j": None if n % 11 == 5 else int(rng.integers(0, 4)),
            "f": None if n % 5 == 1 else float(rng.integers(-8, 9)) / 4,
            "s": None if n % 6 == 2 else ("", "a", "b", "ab")[rng.integers(4)],
            "b": None if n % 8 == 6 else bool(rng.integers(2)),
            "x": None if n % 9 == 4 else rng.integers(-4, 5, 1 + n % 5).astype("f4") / 2,
        }


OTHER = {
    "k": [0, 1, 1, 3, None, 7],
    "v": [0.5, None, -1.0, 2.0, 3.0, 0.0],
    "name": ["a", "ab", None, "b", "", "a"],
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    kinds = {"i": "int64", "j": "int32", "f": "float64", "s": "string", "b": "bool"}
    ds = tl.dataset(
        str(tmp_path_factory.mktemp("generated") / "ds"),
        {**kinds, "x": tl.types.Tensor("float32", (None,))},
    )
    samples = list(rows())
    for part in (samples[:30], samples[30:]):
        ds.extend(part)
    ds.delete([4, 40])
    return ds


@pytest.fixture(scope="module")
def oracle():
    con = sqlite3.connect(":memory:")
    con.execute("PRAGMA case_sensitive_like = ON")
    con.execute("CREATE TABLE dataset (sid, i, j, f, s, b, total, top, middle)")
    for n, row in enumerate(rows()):
        x = row.pop("x")
        numbers = (None, None, None)
        if x is not None:
            numbers = (float(x.sum()), float(x[1:3].max()) if len(x) > 1 else None, float(x[:2].mean()))  # fmt: skip
        if n not in (4, 40):
            con.execute(f"INSERT INTO dataset VALUES ({', '.join('?' * 9)})", (n, *row.values(), *numbers))  # fmt: skip
    con.execute("CREATE TABLE other (k, v, name)")
    con.executemany("INSERT INTO other VALUES (?, ?, ?)", zip(*OTHER.values()))
    yield con
    con.close()


def plain(row):
    """The values of a row that can be compared and sorted: nothing, a text, or a number in few digits."""
    return [v if v is None or isinstance(v, str) else round(float(v), 6) + 0.0 for v in row]


@times(2)
@given(asked=queries())
def test_generated_queries_give_the_rows_of_sqlite(stored, oracle, asked):
    expected = [plain(row) for row in oracle.execute(asked.other)]
    view = tl.query(asked.ours, dataset=stored, other=pa.table(OTHER))
    found = [plain(row.values()) for row in view]
    if not asked.is_ordered:
        expected, found = sorted(expected, key=repr), sorted(found, key=repr)
    assert found == expected
