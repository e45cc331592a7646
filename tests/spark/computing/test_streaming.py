"""What is computed goes to the lake: written by tasks, one commit, nothing where it fails."""

from functools import partial

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.spark import compute
from tensorlake_spark.spark.computing import streaming
from tensorlake_spark.writing.options import WriteOptions


@pytest.fixture
def lake(place, arrays):
    lake = tl.open(place)
    lake.write("x", arrays["dense"], block_shape=(2, 6, 10))
    lake.write("y", tl.SparseTensor.from_dense(arrays["thin"]), layout="bsgs")
    return lake


def test_tasks_write_and_the_driver_commits_once(spark, lake, arrays, monkeypatch):
    tasks = []
    run_in = streaming.run_in

    def counted(session):
        def run(work, some):
            tasks.extend(some)
            return run_in(session)(work, some)

        return run

    monkeypatch.setattr(streaming, "run_in", counted)
    monkeypatch.setattr(streaming, "tasks_of", lambda rows, *_: min(rows, 3))
    monkeypatch.setattr(streaming, "WriteOptions", partial(WriteOptions, block_shape=(2, 6, 10)))
    monkeypatch.setattr("tensorlake_spark.writing.source.REGION_BYTES", 1 << 10)
    before = lake["x"].version
    ref = compute(spark, lake.uri, "x").map(np.negative, into="minus")
    assert ref.version == before + 1
    assert len(tasks) == 3
    np.testing.assert_array_equal(ref[...], -arrays["dense"])
    assert lake.check().findings == ()
    assert lake.vacuum(0) == []


def test_a_result_of_two_stored_tensors_is_that_of_numpy(spark, lake, arrays):
    x, y = (compute(spark, lake.uri, name, np.s_[2:9]) for name in ("x", "y"))
    ref = x.map(np.multiply, y, into="product")
    found = ref[...]
    found = found.todense() if isinstance(found, tl.SparseTensor) else found
    np.testing.assert_array_equal(found, (arrays["dense"] * arrays["thin"])[2:9])


def test_an_id_that_exists_is_an_error_before_anything_is_computed(lake):
    session = None
    mapped = None
    with pytest.raises(tl.TensorExistsError, match="another id"):
        streaming.stream(session, mapped, lake._storage, "x", "ftsf")


def test_of_a_job_that_fails_nothing_is_left(spark, lake, monkeypatch):
    def beaten(session):
        def run(work, some):
            for task in some:
                yield task, work(task)
            lake.write("minus", np.zeros(3))

        return run

    monkeypatch.setattr(streaming, "run_in", beaten)
    with pytest.raises(tl.ConcurrentWriteError, match="nothing was committed"):
        compute(spark, lake.uri, "x").map(np.negative, into="minus")
    assert lake["minus"].shape == (3,)
    assert lake.vacuum(0) == []
    assert Snapshot.open(lake._storage).version == lake["minus"].version
