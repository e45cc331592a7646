"""Files are named again as the commit that added them named them."""

import datetime as dt
import json

import numpy as np
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import commit_name, read_actions
from tensorlake_spark.delta.samples.log_entries import log_entries


def said_in_log(ds):
    """What the commits of a dataset say of its files."""
    out = {}
    for version in range(ds.version + 1):
        for _, add in read_actions(ds._storage, commit_name(version), ("add.path",)):
            out[add["path"]] = add["size"], json.loads(add["stats"])
    return out


def test_entries_are_those_of_the_log(tmp_path):
    ds = tl.dataset(
        tmp_path / "ds",
        {
            "a": "int64", "b": "float32", "g/name": "string", "day": "date", "at": "timestamp", "empty": "int32",
            "price": "decimal(10, 2)",
        },
    )  # fmt: skip
    for start in (0, 3):
        ds.extend(
            {
                "a": np.arange(start, start + 3),
                "b": np.arange(start, start + 3) / 4,
                "g/name": [f"n{start}", None, "x" * 80],
                "day": [dt.date(2026, 1, 1 + start)] * 3,
                "at": [dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)] * 3,
                "empty": [None] * 3,
                "price": [None] * 3,
            }
        )
    said = said_in_log(ds)
    found = log_entries(ds.stored.snapshot)
    assert found.keys() == said.keys()
    for path, entry in found.items():
        size, stats = said[path]
        assert entry.size == size
        assert json.loads(entry.stats) == stats


def test_entries_of_files_of_others_are_no_narrower(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"a": "int64", "at": "timestamp"})
    ds.extend({"a": [1, 5], "at": [dt.datetime(2026, 1, 1, 1, 2, 3, 999999, dt.timezone.utc)] * 2})
    DeltaTable(tmp_path / "ds").update(updates={"a": "a + 1"}, predicate="a = 5")
    ds.refresh()
    (entry,) = log_entries(ds.stored.snapshot).values()
    stats = json.loads(entry.stats)
    assert (stats["minValues"]["a"], stats["maxValues"]["a"]) == (1, 6)
    # Delta cuts times to milliseconds.
    most = dt.datetime.fromisoformat(stats["maxValues"]["at"].replace("Z", "+00:00"))
    assert most + dt.timedelta(milliseconds=1) > ds.to_arrow()["at"][0].as_py()
