"""Lines that say how far a job is: of real tasks, and none after its end."""

import re
import threading
import time

import pytest

from tensorlake_spark.jobs.progress import telling


def slow(number):
    time.sleep(0.3)
    return number


def test_tasks_are_counted_while_they_run(spark, capsys):
    with telling("job.py", spark, 0.1):
        assert spark.sparkContext.parallelize(range(8), 8).map(slow).count() == 8
    lines = capsys.readouterr().err.splitlines()
    found = [
        re.fullmatch(r"job\.py: \d+ s: .*?(\d) of 8 tasks done, (\d) running", x) for x in lines
    ]
    counts = [int(match[1]) for match in found if match]
    assert len(counts) > 3
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_a_failure_ends_it_and_zero_is_silence(spark, capsys):
    with pytest.raises(KeyError), telling("job.py", spark, 0.05):
        raise KeyError("x")
    with telling("job.py", spark, 0):
        spark.sparkContext.parallelize(range(2), 2).map(slow).count()
    assert "job.py" not in capsys.readouterr().err
    assert "progress" not in {thread.name for thread in threading.enumerate()}
