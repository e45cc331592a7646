"""What the worker processes of a loader ask a store for: row groups, for their parent has told them all else."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

import tensorlake_spark as tl
from tensorlake_spark.loader.sources.loader_source import Told
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


def test_processes_read_row_groups_only_of_apart_columns(ds, road, monkeypatch):
    """Each file of the samples and of the column is asked for one row group, and the one with a deleted row for numbers."""
    loader = ds.loader(40, workers="processes")
    loader._source.facts(np.arange(len(ds)), Told())  # read before others take the road
    monkeypatch.setenv("AWS_ENDPOINT_URL", road.endpoint)
    with loader:
        for batch in loader:
            np.testing.assert_array_equal(batch["x"], -batch["y"])
    asked = Counter(road.requests())
    assert not [line for line in asked if "_delta_log" in line]
    assert len(asked) == 2 * FILES
    assert max(asked.values()) <= THREADS


def test_processes_are_told_where_samples_lie(s3, ds, road, monkeypatch):
    """Others added the first samples last, so the numbers of all samples are read; but not by each process."""
    first = pa.table(
        {"sid": np.arange(-ROWS, 0), "x": ds.stored.rows([("x",)], np.arange(ROWS))["x"]}
    )
    write_deltalake(ds.uri, first, mode="append", schema_mode="merge", storage_options=s3.options)
    mixed = tl.dataset(ds.uri)
    assert not mixed.stored.is_sorted
    loader = mixed.loader(40, columns=["x"], workers="processes")
    loader._source.facts(np.arange(len(mixed)), Told())
    monkeypatch.setenv("AWS_ENDPOINT_URL", road.endpoint)
    with loader:
        found = np.concatenate([batch["x"] for batch in loader])
    asked = Counter(road.requests())
    np.testing.assert_array_equal(found, mixed[:]["x"])
    assert len(asked) == FILES + 1
    assert max(asked.values()) <= THREADS


def test_processes_read_rows_only_of_tensors(s3, road, monkeypatch):
    """A batch has the slices of one file, and one process reads it."""
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    lake = tl.open("s3://bucket/tensors-in-processes")
    x = np.arange(FILES * ROWS * 5, dtype="f4").reshape(-1, 5)
    for part in np.split(x, FILES):
        lake.write("x", part, mode="append", block_shape=(ROWS // 4, 5))
        lake.write("other", part[:1], mode="append")
    loader = tl.open(lake.uri)["x"].loader(ROWS, workers="processes")
    loader._source.facts(np.arange(len(x)), Told())
    monkeypatch.setenv("AWS_ENDPOINT_URL", road.endpoint)
    with loader:
        np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in loader]), x)
    asked = road.requests()
    assert len(asked) == len({*asked}) == FILES
    assert all(line.startswith("GET ") and line.endswith(".parquet") for line in asked)


def noise(number, side):
    """Elements that do not become smaller: files have no room for them in the bytes around their footers."""
    return np.random.default_rng(number).random((side, 50), "f4")


@pytest.fixture
def tiled(s3, monkeypatch, request):
    """A dataset of large samples, kept as tiles of a lake in its folder, and small ones, with a group around them."""
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    schema = {"part/x": tl.types.Tensor("float32", (None, 50)), "label": "int64"}
    made = tl.dataset(f"s3://bucket/{request.node.name}", schema, tile_bytes=50_000)
    for number in range(FILES):
        sides = [1, 1000, 1500]
        values = [noise(3 * number + k, side) for k, side in enumerate(sides)]
        made.extend({"part/x": values, "label": np.arange(3) + 3 * number})
    return tl.dataset(made.uri)


def test_processes_read_tiles_only_of_the_lake_of_tiles(tiled, road, monkeypatch):
    """Neither its log, nor its metadata rows, nor a footer: each file of it is asked for what a batch needs."""
    loader = tiled.loader(3, workers="processes")
    loader._source.facts(np.arange(len(tiled)), Told())  # read before others take the road
    monkeypatch.setenv("AWS_ENDPOINT_URL", road.endpoint)
    with loader:
        for batch in loader:
            for x, label in zip(batch["part/x"], batch["label"], strict=True):
                np.testing.assert_array_equal(x, noise(label, [1, 1000, 1500][label % 3]))
    asked = road.requests()
    of_lake = [line for line in asked if "_tensors" in line]
    assert not [line for line in asked if "_delta_log" in line]
    assert len(of_lake) == 2 * FILES
    assert len(asked) == 3 * FILES
