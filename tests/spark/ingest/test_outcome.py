"""What an ingestion says of itself before it writes, and of the bytes that it reads."""

import numpy as np
import pytest

from tensorlake_spark.spark.ingest.outcome import Plan, bytes_of, raw_bytes, size_of
from tensorlake_spark.tensor.spec import TensorSpec

DENSE = TensorSpec("x", (10, 4), np.dtype("f4"), "ftsf", (2, 4))
CELLS = TensorSpec("y", (10, 4), np.dtype("i8"), "coo", ())


def test_a_plan_as_a_scheduler_reads_it():
    plan = Plan(("a.npy",), (DENSE, CELLS), ((3, 4), (10, 4)), 2)
    dense, cells = plan.rows()
    assert dense == {
        "id": "x", "shape": (10, 4), "dtype": "float32", "added": (3, 4), "layout": "ftsf",
        "block_shape": (2, 4), "bytes": 48,
    }  # fmt: skip
    assert (cells["block_shape"], cells["bytes"]) == (None, 320)


def test_a_plan_as_people_read_it():
    files = tuple(f"{name}.npy" for name in "abcde")
    first, tensor, last = Plan(files, (DENSE,), ((3, 4),), 2).lines(5 << 20)
    assert first.startswith("5 source(s), ")
    assert first.endswith(": a.npy, b.npy, c.npy, ...")
    assert tensor.startswith(
        "x: shape (10, 4), of which (3, 4) is added, float32, ftsf in blocks of (2, 4), "
    )
    assert tensor.endswith(" before compression")
    assert last == "1 tensor(s), in at most 2 partition(s)"


def test_of_cells_the_records_are_counted():
    _, said, _ = Plan(("a.csv",), (CELLS,), ((10, 4),), 1, records=7).lines(10)
    assert said == "y: shape (10, 4), int64, coo, 7 records"


def test_a_layout_that_nobody_knows_yet_is_not_told():
    plan = Plan(("a.npy",), (DENSE,), ((10, 4),), 1, tells_layout=False)
    assert {"layout", "block_shape"}.isdisjoint(plan.rows()[0])
    assert "stored by how full it is" in plan.lines(1)[1]


@pytest.mark.parametrize(("shape", "want"), [((), 4), ((0, 5), 0), ((2**40, 2**20), 2**62)])
def test_raw_bytes(shape, want):
    assert raw_bytes(shape, DENSE) == want


def test_bytes_of_files_and_folders(tmp_path):
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "a").write_bytes(b"123")
    (tmp_path / "folder" / "deep" / "b").write_bytes(b"4567")
    (tmp_path / "c.h5").write_bytes(b"89")
    folder, file = str(tmp_path / "folder"), str(tmp_path / "c.h5")
    assert size_of(folder) == 7
    assert size_of(f"{file}::group/data") == 2, "a member is the file that it is in"
    assert size_of(str(tmp_path / "gone")) == 0
    assert bytes_of([folder, file, file]) == 9
