"""Files of a lake as they lie on the disk, for tests that look at them, or change what never changes."""

import json
from pathlib import Path

import numpy as np

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files import footer as footers


def forget():
    """Drop what this process keeps of files, as if it had just started."""
    footers._cache.clear()
    catalog._cache.clear()


def drop_statistics(uri):
    """Take the statistics of all files out of a table's log, as if a writer without any had written it."""
    for path in Path(uri, "_delta_log").glob("*.json"):
        said = [json.loads(line) for line in path.read_text().splitlines()]
        for action in said:
            action.get("add", {}).pop("stats", None)
        path.write_text("\n".join(map(json.dumps, said)))


def only_file(lake):
    """Return the path of the one data file."""
    (path,) = Path(lake.uri).glob("*.parquet")
    forget()
    return path


def write(lake, rows=64):
    """Write a tensor ``x`` in blocks of eight rows, and return it."""
    x = np.random.default_rng(0).integers(0, 9, (rows, 100)).astype("i4")
    lake.write("x", x, block_shape=(8, 100), codec="zstd")
    return x
