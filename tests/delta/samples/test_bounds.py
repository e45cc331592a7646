"""Bounds that the log has: the same however the rows come, and as Arrow computes them of all."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.delta.samples import bounds
from tensorlake_spark.delta.samples.bounds import Bounds, FileBounds, leaf_of, time_bound
from tensorlake_spark.delta.samples.leaf_columns import leaf_columns

SCHEMA = pa.schema(
    [
        pa.field("sid", pa.int64(), nullable=False),
        pa.field("x", pa.float64()),
        pa.field("y", pa.float64()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("image", pa.struct([("data", pa.binary()), ("name", pa.string())])),
    ]
)


def table(count):
    rng = np.random.default_rng(count)
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)
    rows = [
        {
            "sid": n,
            "x": None if n % 7 == 0 else float(rng.normal()),
            "y": float("nan") if n == count // 2 else 1.0,
            "at": moment + dt.timedelta(microseconds=1500 * n + 1),
            "image": None if n % 5 == 0 else {"data": b"x" * n, "name": f"{n:05}" * 8},
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("at_once", [0, 10, 1 << 14])
@pytest.mark.parametrize("step", [1, 13, 200])
def test_the_same_however_they_come(monkeypatch, at_once, step):
    monkeypatch.setattr(bounds, "_AT_ONCE", at_once)
    rows = table(200)
    found = FileBounds(leaf_columns(SCHEMA))
    for start in range(0, 200, step):
        found.add(rows.slice(start, step))
    said = json.loads(found.to_json())
    xs = rows["x"].to_numpy()
    assert said["numRecords"] == 200
    assert said["minValues"] == {
        "sid": 0, "x": np.nanmin(xs), "at": "2020-01-01T00:00:00.000Z", "image": {"name": "00001" * 6 + "00"},
    }  # fmt: skip
    # A text that is too long has no bound above.
    assert said["maxValues"] == {"sid": 199, "x": np.nanmax(xs), "at": "2020-01-01T00:00:00.299Z"}
    assert said["nullCount"] == {"sid": 0, "x": 29, "y": 0, "at": 0, "image": {"name": 40}}


def test_texts_do_not_wait_for_long(monkeypatch):
    monkeypatch.setattr(bounds, "_AT_ONCE_BYTES", 50)
    found = FileBounds(leaf_columns(SCHEMA))
    found.add(table(20))
    assert not any(found._waiting)


def test_no_rows_and_nulls_alone():
    found = FileBounds(leaf_columns(SCHEMA))
    assert json.loads(found.to_json())["numRecords"] == 0
    nothing = Bounds.of(pa.nulls(3, pa.int32()))
    assert (nothing.least, nothing.nulls) == (None, 3)
    both = nothing.joined(Bounds.of(pa.array([5, 7])))
    assert (both.least, both.most, both.nulls) == (5, 7, 3)


def test_a_leaf_is_null_where_its_struct_is():
    rows = table(10)
    (name,) = [leaf for leaf in leaf_columns(SCHEMA) if leaf.path == "image.name"]
    assert leaf_of(rows, name).null_count == 2
    assert leaf_of(pa.concat_tables([rows, rows]), name).null_count == 4


def test_a_time_is_never_narrowed():
    moment = dt.datetime(2020, 1, 1, microsecond=1001)
    assert time_bound(moment, is_most=False) == "2020-01-01T00:00:00.001"
    assert time_bound(moment, is_most=True) == "2020-01-01T00:00:00.002"


@pytest.mark.parametrize("zone", [None, dt.timezone.utc])
def test_the_last_millisecond_of_all_has_no_upper_bound(zone):
    last = dt.datetime.max.replace(tzinfo=zone)
    assert time_bound(last, is_most=True) is None
    assert time_bound(last.replace(microsecond=999_000), is_most=True)[:23] == (
        "9999-12-31T23:59:59.999"
    )
    assert time_bound(last, is_most=False)[:23] == "9999-12-31T23:59:59.999"
