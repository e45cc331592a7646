"""Lines that say how far a job is: of real tasks, and none after its end."""

import re
import threading
import time

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.jobs import ingest
from tensorlake_spark.jobs.job_progress import telling


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


@pytest.mark.parametrize("every", [-1, float("nan"), float("inf")])
def test_what_is_no_number_of_seconds(spark, every):
    with pytest.raises(InvalidOptionError, match="--progress"), telling("job.py", spark, every):
        pass


def test_an_ingestion_says_how_far_it_is(spark, tmp_path, capsys):
    for n in range(6):
        np.save(tmp_path / f"{n}.npy", np.full((40, 50_000), n))
    words = ["--table", str(tmp_path / "lake"), "--id", "x", "--progress", "0.05"]
    assert ingest.main([*words, *map(str, sorted(tmp_path.glob("*.npy")))], spark) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^ingest\.py: \d+ s: .*\d+ of \d+ tasks done", err, re.MULTILINE)
    assert out.splitlines()[-1].startswith("{")
