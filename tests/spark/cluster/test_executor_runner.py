"""Tasks by executors: results in order, errors as they were, one snapshot for each Python."""

import os

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.cluster.executor_runner import _attempts, run_in


@pytest.fixture
def run(spark):
    return run_in(spark)


def test_results_come_in_the_order_of_the_tasks(run):
    tasks = list(range(200))
    for sizes in (None, [1 << 20] * 200):
        found = list(run(lambda task: (task, os.getpid()), tasks, sizes))
        assert [task for task, _ in found] == tasks
        assert all(task == result for task, (result, _) in found)
        assert os.getpid() not in {pid for _, (_, pid) in found}
    assert list(run(abs, [], [])) == list(run(abs, [])) == []


def test_an_error_of_ours_is_raised_as_it_was_after_the_results_beside_it(run):
    def work(task):
        if task == 3:
            raise tl.MissingDataError("data file 3 is not there")
        return task

    done = []
    with pytest.raises(tl.MissingDataError, match=r"^data file 3 is not there$"):
        for task, _ in run(work, range(8)):
            done.append(task)
    assert done == [0, 1, 2, 4, 5, 6, 7]


def test_an_error_of_the_store_is_raised_when_spark_has_given_up(run, spark):
    def work(task):
        raise tl.StorageError(f"no answer to {task}")

    assert _attempts(spark) == 1, "a local session tries a task once"
    with pytest.raises(tl.StorageError, match=r"^no answer to 0$"):
        list(run(work, [0]))


def test_a_python_opens_a_snapshot_once_and_that_of_this_run(run, tmp_path):
    for rows in (3, 5):  # another table in the place of the first
        path = tmp_path / "lake"
        if path.exists():
            path.rename(tmp_path / "old")
        tl.open(path).write("x", np.zeros((rows, 2)))
        snapshot = Snapshot.open(Storage(str(path)))

        def look(_, snapshot=snapshot):
            return os.getpid(), id(snapshot), snapshot.files.path

        found = [result for _, result in run(look, range(8))]
        assert all(paths == snapshot.files.path for *_, paths in found)
        assert len({(pid, which) for pid, which, _ in found}) == len({pid for pid, *_ in found})
