"""The rows that generated queries read: a dataset, a table beside it, and both in SQLite, with NumPy's numbers."""

import sqlite3

import numpy as np
import pyarrow as pa

import tensorlake_spark as tl

COUNT = 48
GONE = (4, 40)

OTHER = {
    "k": [0, 1, 1, 3, None, 7],
    "v": [0.5, None, -1.0, 2.0, 3.0, 0.0],
    "name": ["a", "ab", None, "b", "", "a"],
}


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


def dataset_at(uri):
    """The rows as a dataset of two files, without those that are deleted."""
    kinds = {"i": "int64", "j": "int32", "f": "float64", "s": "string", "b": "bool"}
    ds = tl.dataset(uri, {**kinds, "x": tl.types.Tensor("float32", (None,))})
    samples = list(rows())
    for part in (samples[:30], samples[30:]):
        ds.extend(part)
    ds.delete(list(GONE))
    return ds


def other():
    """The table beside it."""
    return pa.table(OTHER)


def sqlite():
    """Both in SQLite: instead of the tensor its numbers ``total``, ``top`` and ``middle``."""
    con = sqlite3.connect(":memory:")
    con.execute("PRAGMA case_sensitive_like = ON")
    con.execute("CREATE TABLE dataset (sid, i, j, f, s, b, total, top, middle)")
    for n, row in enumerate(rows()):
        x = row.pop("x")
        numbers = (None, None, None)
        if x is not None:
            numbers = (float(x.sum()), float(x[1:3].max()) if len(x) > 1 else None, float(x[:2].mean()))  # fmt: skip
        if n not in GONE:
            con.execute(f"INSERT INTO dataset VALUES ({', '.join('?' * 9)})", (n, *row.values(), *numbers))  # fmt: skip
    con.execute("CREATE TABLE other (k, v, name)")
    con.executemany("INSERT INTO other VALUES (?, ?, ?)", zip(*OTHER.values()))
    return con


def plain(row):
    """The values of a row that can be compared and sorted: nothing, a text, or a number in few digits."""
    return [v if v is None or isinstance(v, str) else round(float(v), 6) + 0.0 for v in row]


def compared(asked, found, con):
    """The rows that were found and those of SQLite, in an order that both have."""
    found, expected = (
        [plain(row) for row in found],
        [plain(row) for row in con.execute(asked.other)],
    )
    if not asked.is_ordered:
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    return found, expected
