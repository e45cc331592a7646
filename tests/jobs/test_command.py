"""What all jobs say of a mistake: one line and exit code 2, and with ``--debug`` the traceback before it."""

import pytest

from tensorlake_spark.jobs import check, optimize, vacuum


@pytest.mark.local_disk
@pytest.mark.parametrize("job", [check, optimize, vacuum])
def test_a_table_below_a_file_is_a_mistake_of_the_caller(tmp_path, run_job, job):
    (tmp_path / "file.txt").write_text("x")
    done = run_job(job, "--table", tmp_path / "file.txt" / "lake")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"{tmp_path}/file.txt is a file and not a folder; give a path below a folder" in done.err
    assert done.json["error"]["type"] == "FormatError"


@pytest.mark.local_disk
def test_the_traceback_of_a_mistake(tmp_path, run_job):
    done = run_job(optimize, "--table", tmp_path / "none", "--debug")
    *more, last = done.err.splitlines()
    assert (done.code, last) == (2, f"optimize.py: there is no Delta table at {tmp_path}/none")
    assert more[0] == "Traceback (most recent call last):"
    (tmp_path / "job.yaml").write_text("debug: true\n")
    done = run_job(optimize, "--config", tmp_path / "job.yaml")
    assert (done.code, "debug" in done.err) == (2, True), "it is of the command line only"
