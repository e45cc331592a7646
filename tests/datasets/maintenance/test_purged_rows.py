"""Rows of samples in files of any kind, told by the rows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance.purged_rows import SampleRows, TileRows
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def storage(tmp_path):
    return Storage(str(tmp_path))


def payloads(target, storage, path):
    """How many rows are held, and the bytes in them, with whether a part of these identifies them."""
    found = []

    def visit(rows, whole):
        found.extend(zip(rows.column(0).to_pylist(), whole.tolist(), strict=True))

    count = target.held_rows(storage, path, visit)
    assert target.held_rows(storage, path) == count
    return count, found


def test_bytes_wherever_they_are(storage, tmp_path):
    media = pa.array([{"data": b"x1", "h": 1}, None, {"data": b"x3", "h": 3}])
    table = pa.table(
        {
            "sid": pa.array([1, 2, 3], pa.int64()),
            "image": media,
            "many": pa.array([[b"a", b"b"], [b"c"], []], pa.list_(pa.binary())),
            "name": ["n1", "n2", None],
        }
    )
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    count, found = payloads(SampleRows(np.array([1, 3])), storage, "f.parquet")
    assert count == 2
    there = sorted((data, whole) for data, whole in found if data is not None)
    assert there == [(b"a", True), (b"b", True), (b"n1", False), (b"x1", True), (b"x3", True)]
    assert payloads(SampleRows(np.array([7])), storage, "f.parquet") == (0, [])


def test_files_of_others_hold_nothing(storage, tmp_path):
    pq.write_table(pa.table({"sid": ["1", "2"]}), tmp_path / "text.parquet")
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "none.parquet")
    pq.write_table(pa.table({"sid": pa.array([None, 1], pa.int32())}), tmp_path / "null.parquet")
    sids = SampleRows(np.array([1]))
    counts = [sids.held_rows(storage, f"{name}.parquet") for name in ("text", "none", "null")]
    assert counts == [0, 0, 1]
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "number.parquet")
    pq.write_table(pa.table({"id": ["scan/1", None]}), tmp_path / "unnamed.parquet")
    tiles = TileRows(np.array([1]))
    counts = [tiles.held_rows(storage, f"{name}.parquet") for name in ("none", "number", "unnamed")]
    assert counts == [0, 0, 1]


@pytest.mark.parametrize(
    ("name", "held"),
    [("scan/5", True), ("a/b/5", True), ("scan/55", False), ("scan/x5", False), ("scan/" + "5" * 40, False)],
)  # fmt: skip
def test_tensors_of_samples_by_their_ids(name, held):
    assert TileRows(np.array([5])).has(name) is held


def test_rows_of_tiles(tmp_path):
    lake = tl.open(tmp_path / "lake")
    lake.write("scan/5", np.arange(4000), block_shape=(1000,), codec="raw", layout="ftsf")
    lake.write("scan/6", np.arange(10))
    counts = {}
    for path in (tmp_path / "lake").glob("*.parquet"):
        count, found = payloads(TileRows(np.array([5])), lake._storage, path.name)
        counts[count] = [len(data) for data, whole in found if data is not None]
    assert counts == {5: [8000] * 4, 0: []}
