"""Lines that say how far a job is: of real tasks, and none after its end."""

import io
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.jobs import ingest
from tensorlake_spark.jobs.job_progress import telling


class Lines(io.StringIO):
    """Keeps lines, and tells tasks how many of them were told to be done: each such number is the name of a file."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.counts = folder, []

    def write(self, text):
        found = re.match(r"job\.py: \d+ s: .*?(\d) of 8 tasks done, (\d) running$", text)
        if found:
            self.counts.append(int(found[1]))
            (self.folder / found[1]).touch()
        return super().write(text)


def waiting(folder):
    def task(number):
        while not Path(folder, str(number)).exists():
            time.sleep(0.01)
        return number

    return task


def test_tasks_are_counted_while_they_run(spark, tmp_path, monkeypatch):
    """Each task waits for the line that says that those before it are done."""
    lines = Lines(tmp_path)
    monkeypatch.setattr(sys, "stderr", lines)
    with telling("job.py", spark, 0.05):
        assert spark.sparkContext.parallelize(range(8), 8).map(waiting(str(tmp_path))).count() == 8
    monkeypatch.undo()
    assert lines.counts == sorted(lines.counts)
    assert {*lines.counts} >= {*range(8)}, lines.getvalue()
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_a_failure_ends_it_and_zero_is_silence(spark, capsys):
    with pytest.raises(KeyError), telling("job.py", spark, 0.05):
        raise KeyError("x")
    with telling("job.py", spark, 0):
        spark.sparkContext.parallelize(range(2), 2).count()
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
