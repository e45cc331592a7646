"""Versions: what the log tells of them, which one a number or a time means, and what retention takes."""

import logging
import os

import numpy as np
import pandas as pd
import pytest

import tensorlake_spark as tl


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 50, (8, 6, 4)).astype("f4")


def age_log(lake, start=1.6e9):
    """Make the commits that there are a hundred seconds apart, and years old."""
    for version in range(lake.version + 1):
        name = f"{lake.uri}/_delta_log/{version:020}.json"
        os.utime(name, (start + 100 * version,) * 2)
    return start


# ---------------------------------------------------------------------------------------------- history


# --------------------------------------------------------------------------------- what retention takes


def test_a_slice_of_a_version_that_was_vacuumed(lake, x):
    version = lake.write("x", x).version
    lake.write("x", x + 1, mode="overwrite")
    ref = tl.open(lake.uri, version=version)["x"]
    lake.vacuum(0)
    with pytest.raises(tl.MissingDataError, match=r"deletedFileRetentionDuration, a week .* tag"):
        ref[2:4]


@pytest.mark.local_disk
def test_a_version_whose_log_is_gone(lake, x, caplog):
    for i in range(10):
        lake.write("x", x[i % 6 : i % 6 + 1], mode="overwrite")
    lake.tag("early", 2)
    start = age_log(lake)
    for i in range(10):  # to the next checkpoint, with which the log is tidied up
        lake.write("x", x[i % 6 : i % 6 + 1], mode="overwrite")
    for version in (2, "2", "early"):
        with pytest.raises(
            tl.InvalidOptionError, match=r"logRetentionDuration, 30 days by default"
        ):
            tl.open(lake.uri, version=version)
    with pytest.raises(tl.InvalidOptionError, match="logRetentionDuration"):
        lake.restore("x", "early")
    with pytest.raises(tl.InvalidOptionError, match="logRetentionDuration"):
        lake.tag("two", 2)
    old = pd.Timestamp(start + 250, unit="s", tz="UTC").to_pydatetime()
    with pytest.raises(tl.InvalidOptionError, match="its first is of"):
        tl.open(lake.uri, timestamp=old)
    assert lake.tags() == {"early": 2}
    with caplog.at_level(logging.WARNING, "tensorlake_spark"):
        assert lake.vacuum(0)
    assert "files of tag 'early' cannot be kept" in caplog.text
    np.testing.assert_array_equal(lake["x"][...], x[3:4])


def test_a_part_of_an_hour_keeps_what_left_a_moment_ago(lake):
    lake.write("x", np.arange(4))
    lake.write("x", np.arange(5), mode="overwrite")
    assert lake.vacuum(0.5) == []
    assert len(lake.vacuum(0)) == 1
