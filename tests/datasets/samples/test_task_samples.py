"""What a task writes is nothing until somebody commits it, and nothing is left where it failed."""

import json
from dataclasses import asdict

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.samples.appending import commit_files, reserve
from tensorlake_spark.datasets.samples.task_samples import SampleFiles, UncommittedSamples, inner_of
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidSampleError

COLUMNS = {"scan": tl.types.Tensor("uint8", (None, 10)), "note": tl.types.Text(apart=True), "n": "int32"}  # fmt: skip
SCANS = [np.full((rows, 10), rows % 7, "u1") for rows in (2, 300, 3)]


@pytest.fixture
def ds(tmp_path):
    return tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=1000)


def given(first):
    return {"scan": SCANS, "note": [f"note {first + n}" for n in range(3)], "n": [first, 1, 2]}


def test_the_driver_makes_visible_what_tasks_wrote(ds):
    storage = Storage(ds.uri)
    snapshot, first = reserve(storage, Snapshot.open(storage, kind=SAMPLES), 6)
    done = []
    for start in (0, 3):
        one = SampleFiles(samples=3, end=first + start + 3)
        with UncommittedSamples(storage, snapshot, ds.schema, "mark-") as out:
            assert out.has_parts(given(start), 0)
            out.check(given(start), 0, 3)
            out.add(given(start), first + start, 0, 3)
            out.finish(one)
        done.append(SampleFiles(**json.loads(json.dumps(asdict(one)))))
    assert len(tl.dataset(ds.uri)) == 0
    assert [one.tensors for one in done] == [["scan/1"], ["scan/4"]]
    tiles, apart = inner_of(done)
    written = [*tiles, *PartsWriter(storage, snapshot, ds.schema).committed(apart)]
    commit_files(storage, [f for one in done for f in one.data_files()], "test", written)
    found = tl.dataset(ds.uri)
    assert found["note"][:] == [f"note {n}" for n in range(6)]
    assert all(np.array_equal(a, b) for a, b in zip(found["scan"], SCANS * 2, strict=True))
    assert found.check().ok


@pytest.mark.parametrize(
    "wrong", [{"n": ["x", 1, 2]}, {"note": [b"x", "", ""]}, {"scan": [SCANS[0], np.ones((300, 9)), None]}]
)  # fmt: skip
def test_a_check_writes_nothing_and_an_error_leaves_nothing(ds, tmp_path, wrong):
    storage = Storage(ds.uri)
    snapshot = Snapshot.open(storage, kind=SAMPLES)
    before = sorted(tmp_path.rglob("*"))
    with UncommittedSamples(storage, snapshot, ds.schema, "mark-") as out:
        with pytest.raises(InvalidSampleError):
            out.check(given(0) | wrong, 0, 3)
        out.finish(SampleFiles())
    assert sorted(tmp_path.rglob("*")) == before
    with (
        pytest.raises(InvalidSampleError),
        UncommittedSamples(storage, snapshot, ds.schema, "mark-") as out,
    ):
        out.add(given(0), 0, 0, 3)
        out.add(given(0) | wrong, 3, 0, 3)
    assert not list(tmp_path.rglob("*mark-*"))
