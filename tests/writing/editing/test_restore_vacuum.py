"""Vacuum beside a restore, and which retentions a vacuum takes."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from races import before_call

import tensorlake_spark as tl
from tensorlake_spark.jobs import vacuum
from tensorlake_spark.writing.editing import restore


@pytest.fixture
def x():
    return np.arange(24.0).reshape(6, 4)


def age(lake):
    """Make all files, and the removals in the log, eight days old."""
    then = time.time() - 8 * 86400
    for path in Path(lake.uri).rglob("*"):
        if path.suffix == ".json":
            later = re.sub(
                r'("deletionTimestamp"):\d+', rf"\1:{int(then * 1000)}", path.read_text()
            )
            path.write_text(later)
        os.utime(path, (then, then))


@pytest.fixture
def beside(lake, monkeypatch):
    """A vacuum that goes when a restore has found all files there, and has not committed yet."""

    def take():
        assert len(tl.open(lake.uri).vacuum()) == 1

    before_call(monkeypatch, restore, "commit", take)


@pytest.mark.local_disk
def test_files_that_a_vacuum_took_before_the_commit_are_told(lake, x, beside):
    version = lake.write("x", x).version
    before = lake.write("x", x + 1, mode="overwrite").version
    age(lake)
    with pytest.raises(tl.MissingDataError) as caught:
        lake.restore("x", version)
    said = str(caught.value)
    assert f"restored from version {version} of {lake.uri}, but a vacuum deleted 1" in said
    assert said.endswith(f"or lake.restore('x', {before}) makes it what it was before")
    np.testing.assert_array_equal(lake.restore("x", before)[...], x + 1)
    assert lake.check().ok


@pytest.mark.local_disk
def test_a_tensor_that_was_not_there_is_deleted_again(lake, x, beside):
    version = lake.write("x", x).version
    lake.delete("x")
    age(lake)
    with pytest.raises(tl.MissingDataError, match=r"or lake\.delete\('x'\) takes it away again$"):
        lake.restore("x", version)
    lake.delete("x")
    assert list(lake) == []
    assert lake.check().ok


@pytest.mark.local_disk
@pytest.mark.parametrize(
    "hours", [-0.5, -1, float("nan"), float("inf"), -float("inf"), 1e30, "a day"]
)
def test_a_retention_is_a_number_of_hours(lake, x, hours):
    lake.write("x", x)
    old = lake.write("x", x + 1, mode="overwrite").version
    for call in (lake.vacuum, lake.abort_uploads):
        with pytest.raises(tl.InvalidOptionError, match="number of hours from 0 to 8760000"):
            call(hours)
    np.testing.assert_array_equal(tl.open(lake.uri, version=old - 1)["x"][...], x)
    assert lake.vacuum(8_760_000) == lake.abort_uploads(8_760_000) == []


@pytest.mark.local_disk
@pytest.mark.parametrize("hours", ["-3", "-0.5", "nan", "inf", "1e30"])
def test_the_job_refuses_what_is_none(lake, x, hours, capsys):
    lake.write("x", x)
    lake.write("x", x + 1, mode="overwrite")
    assert vacuum.main(["--table", lake.uri, f"--retention-hours={hours}"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("vacuum.py: retention_hours is ")
    assert err.count("\n") == 1
    assert '"exit_code": 2' in out
    np.testing.assert_array_equal(tl.open(lake.uri, version=1)["x"][...], x)
