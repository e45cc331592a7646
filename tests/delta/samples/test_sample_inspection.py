"""A data file of samples held against the log, and rows of files in a table's columns."""

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.delta.samples.sample_inspection import conformed, inspect_samples
from tensorlake_spark.errors import CorruptDataError


def inspected(ds):
    """The rows that each file has shown, and what is wrong with it."""
    out = []
    for path in ds.stored.snapshot.files.path:
        rows = []
        found = inspect_samples(ds.stored.snapshot, path, rows.append)
        assert found.rows == sum(one.num_rows for one in rows)
        out.append((rows, [(fault.kind, fault.text) for fault in found.faults]))
    return out


@pytest.fixture
def ds(tmp_path):
    ds = tl.dataset(
        tmp_path / "ds",
        {"a": "int64", "b": "float32", "name": "string", "g/at": "timestamp", "day": "date"},
    )
    ds.extend(
        {
            "a": np.arange(6),
            "b": [0.5, np.nan, None, np.inf, -0.0, 1],
            "name": ["x" * 50, None, "\U0001f600", "", "y", "z"],
            "g/at": [dt.datetime(2026, 1, 1, 1, 2, 3, 999999, dt.timezone.utc)] * 6,
            "day": [dt.date(2026, 1, 1)] * 5 + [None],
        }
    )
    return ds


def test_files_of_ours_and_of_others_are_sound(ds):
    DeltaTable(ds.uri).update(updates={"a": "a + 1"}, predicate="a > 2")
    ds.extend({"a": [9]})
    ((rows, faults), (more, others)) = inspected(ds)
    assert faults == others == []
    assert sum(one.num_rows for one in rows + more) == 7


def test_a_file_that_is_gone(ds):
    (path,) = ds.stored.snapshot.files.path
    Path(ds.uri, path).unlink()
    assert [kind for kind, _ in inspected(ds)[0][1]] == ["missing"]


def test_rows_of_a_file_in_the_columns_of_a_table():
    struct = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema([("s", struct), ("new", pa.float64()), ("wide", pa.int64())])
    s = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    found = conformed(pa.table({"wide": pa.array([1, 2], pa.int32()), "s": s}), schema)
    assert found.to_pylist() == [
        {"s": {"x": 1, "y": None}, "new": None, "wide": 1},
        {"s": None, "new": None, "wide": 2},
    ]
    assert conformed(found.slice(0, 0), schema).num_rows == 0
    with pytest.raises(CorruptDataError, match="column wide is string"):
        conformed(pa.table({"wide": ["x"]}), schema)
