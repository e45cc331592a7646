"""Data files as the log names them, to be named again by another commit."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.bounds import put_bound, time_bound

_KINDS = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}


def log_entries(snapshot: Snapshot) -> dict[str, DataFile]:
    """Return the data files of a version by their paths, with all that the log says of them."""
    actions = snapshot.file_actions
    bounds = [
        name for name in actions.column_names if name.partition(".")[0] in _KINDS and "." in name
    ]
    rows = actions.select(bounds).to_pylist() if bounds else [{}] * actions.num_rows
    files = snapshot.files
    out = {}
    for path, size, count, said in zip(
        files.path, files.size.tolist(), files.rows.tolist(), rows, strict=True
    ):
        entry: dict[str, Any] = {kind: {} for kind in _KINDS.values()}
        if count >= 0:
            entry["numRecords"] = count
        for name, value in said.items():
            if value is not None:
                kind, *parts = name.split(".")
                put_bound(entry[_KINDS[kind]], parts, _plain(value, kind == "max"))
        out[path] = DataFile(path, size, json.dumps(entry))
    return out


def _plain(value: Any, is_most: bool) -> Any:
    """Return a bound as the log writes it."""
    if isinstance(value, dt.datetime):
        return time_bound(value, is_most)
    if isinstance(value, dt.date):
        return value.isoformat()
    return float(value) if isinstance(value, decimal.Decimal) else value
