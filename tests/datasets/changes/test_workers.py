"""Who does the tasks: threads, in the order of the tasks, and what is left of those that fail."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tensorlake_spark.datasets.changes.workers import marked_files, run_of, share_bytes
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError


@pytest.mark.parametrize("workers", [0, 1025, -1, 1.5, True, "4"])
def test_what_is_neither_a_number_nor_a_session_is_refused(workers):
    with pytest.raises(InvalidOptionError, match=r"is neither a number of threads from 1 to 1024"):
        run_of(workers)


def test_threads_do_tasks_at_the_same_time_and_give_results_in_order():
    together = threading.Barrier(3, timeout=30)

    def work(task):
        together.wait()  # passes only if three are at work
        return -task

    assert [*run_of(3)(work, [5, 2, 9])] == [(5, -5), (2, -2), (9, -9)]


def test_an_error_of_a_task_is_raised():
    def work(task):
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 1"):
        [*run_of(2)(work, [1, 2])]


def test_shares_are_not_small_and_each_worker_gets_several():
    assert share_bytes(100 << 20, 2) == 25 << 20
    assert share_bytes(1 << 20, 2) == 16 << 20
    assert share_bytes(1 << 40, 2) == 128 << 20
    assert share_bytes(64 << 20, None) <= 16 << 20


def test_files_with_the_mark_go_when_an_error_leaves(tmp_path):
    storage, rows = Storage(str(tmp_path / "ds")), pa.table({"sid": pa.array([0, 1], pa.int64())})
    create_samples_table(storage, rows.schema)
    with pytest.raises(KeyError), marked_files(storage, [], "abc-"):
        for mark in ("abc-", "xyz-"):
            with SampleWriter(storage, rows.schema, mark=mark) as writer:
                writer.add(rows)
                writer.finish()
        raise KeyError("stopped")
    (left,) = Path(storage.uri).glob("*.parquet")
    assert left.name.startswith("samples-xyz-")
