"""Who rewrites samples: threads in the order of the tasks, and files with a mark that go when an error leaves."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import workers
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.store.storage import Storage

SCHEMA = pa.schema({SID: pa.int64(), "n": pa.int64()})


def test_results_come_in_the_order_of_the_tasks():
    first_waits = threading.Event()

    def work(task):
        if task == 0:
            assert first_waits.wait(60)
        else:
            first_waits.set()
        return task * task

    assert [*workers.run_of(2)(work, [0, 1, 2])] == [(0, 0), (1, 1), (2, 4)]


def test_an_error_of_a_task_is_the_callers():
    def work(task):
        raise tl.CorruptDataError(f"task {task}")

    with pytest.raises(tl.CorruptDataError, match="task 7"):
        [*workers.run_of(1)(work, [7, 8])]


@pytest.mark.parametrize("count", [0, -1, 1025, "two", 2.0, True])
def test_what_is_neither_a_number_of_threads_nor_a_session_is_refused(count):
    with pytest.raises(ValueError, match=r"workers=.* is neither a number of threads"):
        workers.run_of(count)


@pytest.mark.parametrize("nbytes", [0, 1 << 20, 1 << 30, 1 << 40])
@pytest.mark.parametrize("count", [None, 1, 64])
def test_a_share_is_neither_tiny_nor_all_there_is(nbytes, count):
    assert 8 << 20 <= workers.share_bytes(nbytes, count) <= 128 << 20


def test_marked_files_go_when_an_error_leaves(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"n": "int64"})
    ds.append({"n": 1})
    storage = Storage(ds.uri)
    before = {*Path(ds.uri).rglob("*.parquet")}
    with pytest.raises(KeyError), workers.marked_files(storage, [], "mark-of-a-job-"):
        with SampleWriter(storage, SCHEMA, mark="mark-of-a-job-") as writer:
            writer.add(pa.table({SID: [1], "n": [2]}, schema=SCHEMA))
            assert writer.finish()
        assert {*Path(ds.uri).rglob("*.parquet")} > before
        raise KeyError
    assert {*Path(ds.uri).rglob("*.parquet")} == before
