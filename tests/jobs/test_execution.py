"""The jobs of upkeep by executors tell what they tell in one process."""

import json
import shutil
from argparse import Namespace

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.files.runner import run_here
from tensorlake_spark.jobs import check, purge, vacuum
from tensorlake_spark.jobs.execution import execution

pytestmark = pytest.mark.local_disk


def test_without_a_session_this_process_does_the_work():
    with execution("check.py", None, Namespace(progress=30, debug=False)) as run:
        assert run is run_here


@pytest.mark.parametrize("job", [check, purge, vacuum])
def test_progress_takes_seconds_of_a_day(job, lake, run_job):
    lake.write("x", np.arange(6))
    words = ("--table", lake.uri, *(("--id", "x") if job is purge else ()))
    wrong = run_job(job, *words, "--progress", -1)
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "--progress -1 is not from 0 to 86400 seconds" in wrong.err
    assert tl.open(lake.uri)["x"][:].tolist() == [*range(6)]


def test_executors_tell_the_same(lake, run_job, spark, tmp_path):
    x = np.random.default_rng(0).integers(0, 2**31, (12, 400)).astype("i4")
    for name in "xyz":
        lake.write(name, x, block_shape=(1, 400), codec="raw")
    lake.delete("z")
    told = []
    for name, session in (("here", None), ("there", spark)):
        table = ("--table", tmp_path / name / "lake")
        shutil.copytree(lake.uri, table[1])
        done = [
            run_job(check, *table, session=session),
            run_job(vacuum, *table, "--retention-hours", 0, "--dry-run", session=session),
            run_job(vacuum, *table, "--retention-hours", 0, session=session),
            run_job(purge, *table, "--id", "x", "--now", session=session),
            run_job(check, *table, "--id", "x", session=session),
        ]
        assert [each.code for each in done] == [0, 0, 0, 3, 2], "y has the same payloads as x"
        assert not any("Traceback" in each.err for each in done)
        assert "files have identical payloads" in done[3].out
        told.append([{**each.json, "seconds": 0} for each in done])
    here, there = (
        json.loads(json.dumps(t).replace(str(tmp_path / "there"), str(tmp_path / "here")))
        for t in told
    )
    for one in (here, there):
        one[0]["version"] = one[4]["error"]["message"] = (
            ""  # a vacuum of one process has entries in the log
        )
        receipt = one[3].pop("receipt")["receipt"]
        assert (receipt["verified"], len(receipt["deleted"])) == (False, 1)
    assert here == there
