"""Tables of features for tests, and the data files of a lake."""

import datetime as dt
import os
from pathlib import Path

import numpy as np
import pyarrow as pa

TIMES = [dt.datetime(2020, 1, 1), None, dt.datetime(2021, 6, 1, 12)]
ALL = pa.table(
    {
        "age": pa.array([31, None, 54], pa.int64()),
        "score": pa.array([1.5, -0.0, 2.5], pa.float32()),
        "clicked": pa.array([True, None, False]),
        "seen": pa.array(TIMES, pa.timestamp("us", tz="Europe/Berlin")),
        "born": pa.array([dt.date(1990, 1, 1), dt.date(1960, 5, 4), None]),
        "at": pa.array([dt.time(1), None, dt.time(3)], pa.time64("us")),
        "took": pa.array([dt.timedelta(1), None, dt.timedelta(3)], pa.duration("ms")),
        "flags": pa.array([255, 0, 7], pa.uint8()),
        "half": pa.array([0.5, None, 1.0], pa.float16()),
        "price": pa.array([1.25, 2.5, None]),
        "id": pa.array([2**63, 1, 2], pa.uint64()),
    }
)


def wide(features, rows=5, start=0, dtype=np.float32):
    rng = np.random.default_rng(start)
    return pa.table(
        {f"f{k}": rng.normal(size=rows).astype(dtype) for k in range(start, start + features)}
    )


def files_of(lake):
    """The data files of a lake with their bytes."""
    folder = Path(lake.uri)
    return {
        name: (folder / name).read_bytes()
        for name in os.listdir(folder)
        if name.endswith(".parquet")
    }
