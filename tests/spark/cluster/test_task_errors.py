"""A mistake inside a task is one line of ours: for a driver of the user's own, and for a job."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from pyspark.errors import AnalysisException
from quick import BRIEF

import tensorlake_spark as tl
from tensorlake_spark.spark.cluster.task_errors import plain_error, plain_errors, quiet_tasks

DRIVER = """
import sys
from tensorlake_spark.jobs import ingest
from tensorlake_spark.spark import local_session, plain_errors

def mark(text):
    print(f"=== {text}", file=sys.stderr, flush=True)

folder = sys.argv[1]
spark = local_session()
cells = spark.createDataFrame([(0, 0, 1.0), (0, -1, 2.0)], "i0 int, i1 int, value double")
cells = cells.coalesce(1)  # a second task would be stopped, and say so when the job is on already
writer = cells.write.format("tensor").mode("append").option("id", "x")
mark("write")
try:
    writer.save(f"{folder}/lake")
except Exception as error:
    caught = error
mark("text")
print(str(caught).strip(), file=sys.stderr)
mark("plain")
try:
    with plain_errors():
        writer.save(f"{folder}/lake")
except Exception as error:
    print(type(error).__name__, error, file=sys.stderr)
words = ["--table", f"{folder}/lake", "--id", "x", f"{folder}/bad.npy", "--progress", "0"]
mark("job")
ingest.main(words, spark)
mark("debug")
ingest.main([*words, "--debug"], spark)
mark("end")
spark.stop()
"""


@pytest.mark.local_disk
def test_a_driver_sees_one_line(tmp_path):
    np.save(tmp_path / "bad.npy", np.ones((3, 4)))
    whole = (tmp_path / "bad.npy").read_bytes()
    (tmp_path / "bad.npy").write_bytes(whole[:-20])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_SUBMIT_OPTS": BRIEF},  # of which Java says nothing
    )
    assert done.returncode == 0, done.stderr[-3000:]
    parts = dict(part.split("\n", 1) for part in done.stderr.split("=== ")[1:])
    quiet = [line for line in parts["write"].splitlines() if line.strip()]
    assert not [line for line in quiet if "Traceback" in line or line.startswith("\tat ")], quiet
    says = "coordinate -1 in column 'i1' is below 0"
    assert (
        parts["text"]
        .splitlines()[-1]
        .startswith(f"tensorlake_spark.errors.InvalidTensorError: {says}")
    )
    assert parts["plain"].splitlines()[-1].startswith(f"InvalidTensorError {says}")
    assert "Traceback" not in parts["plain"]
    line = f"ingest.py: {tmp_path}/bad.npy cannot be read: it was cut off"
    [told] = [one for one in parts["job"].splitlines() if one.strip()]
    assert told.startswith(line)
    *more, last = parts["debug"].splitlines()
    assert last.startswith(line)
    assert "Traceback (most recent call last):" in more
    assert any(one.startswith("tensorlake_spark.errors.InvalidTensorError: ") for one in more)


def test_what_spark_wraps():
    text = "x\ntensorlake_spark.errors.InvalidTensorError: a\ntensorlake_spark.errors.StorageError: b\n"
    found = plain_error(RuntimeError(text))
    assert (type(found), str(found)) == (tl.StorageError, "b")
    assert plain_error(RuntimeError("another one")) is None
    cause = RuntimeError(text)
    with pytest.raises(tl.StorageError, match=r"^b$") as caught, plain_errors():
        raise cause
    assert caught.value.__cause__ is cause
    with pytest.raises(RuntimeError, match="another one"), plain_errors():
        raise RuntimeError("another one")


def test_a_refusal_of_spark_can_be_logged_after_a_job(spark, monkeypatch):
    """The job made the logger before PySpark did, of a class that PySpark cannot call: a TypeError took its place."""
    known = logging.Logger.manager.loggerDict
    monkeypatch.delitem(known, "SQLQueryContextLogger", raising=False)
    with quiet_tasks(spark):
        pass
    with pytest.raises(AnalysisException, match="no_such_column"):
        spark.sql("SELECT no_such_column")


def test_a_full_disk_of_sparks_own_is_one_line():
    """A page of Java told it, and no word of which disk that is."""
    error = RuntimeError(
        "Job aborted\n\tat java.io.IOException: No space left on device\n\tat a.b.C"
    )
    with (
        pytest.raises(tl.StorageError, match=r"^a disk where Spark .*SPARK_LOCAL_DIRS") as told,
        plain_errors(),
    ):
        raise error
    assert "\n" not in str(told.value)
