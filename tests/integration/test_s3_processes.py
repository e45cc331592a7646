"""What the worker processes of a loader ask a store for: row groups, for their parent has told them all else."""

from collections import Counter

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.threads import THREADS

FILES, ROWS = 6, 40


@pytest.fixture
def ds(s3, monkeypatch, request):
    """A dataset of several files whose place in the environment this process has taken already."""
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    plain = tl.types.Tensor("float32", (50,))
    wide = tl.types.Tensor("float32", (50,), apart=True)
    made = tl.dataset(f"s3://bucket/{request.node.name}", {"x": plain, "y": wide})
    for number in range(FILES):
        rows = np.full((ROWS, 50), number, "f4")
        made.extend({"x": rows, "y": -rows})
    made.delete([3])
    found = tl.dataset(made.uri)
    assert len(found[:]["x"]) == FILES * ROWS - 1
    return found


def test_processes_read_no_log_and_no_footer(ds, road, monkeypatch):
    """They alone take the road; each reads the row group of each file once, and keeps it for the second epoch."""
    options = {"columns": ["x"], "shuffle": 1 << 20}
    expected = [batch["x"] for batch in ds.loader(10, **options)]
    loader = ds.loader(10, workers="processes", **options)
    monkeypatch.setenv("AWS_ENDPOINT_URL", road.endpoint)
    with loader:
        for one, other in zip(loader, expected, strict=True):
            np.testing.assert_array_equal(one["x"], other)
        assert sum(len(batch["x"]) for batch in loader) == FILES * ROWS - 1
    asked = Counter(road.requests())
    assert len(asked) == FILES
    assert all(line.startswith("GET ") and line.endswith(".parquet") for line in asked)
    assert max(asked.values()) <= THREADS


def test_processes_read_no_log_of_apart_columns(ds, road, monkeypatch):
    loader = ds.loader(40, workers="processes")
    loader._source.parts.table_of("y")  # this process opens it, too, before others take the road
    monkeypatch.setenv("AWS_ENDPOINT_URL", road.endpoint)
    with loader:
        for batch in loader:
            np.testing.assert_array_equal(batch["x"], -batch["y"])
    asked = road.requests()
    assert asked
    assert not [line for line in asked if "_delta_log" in line]
