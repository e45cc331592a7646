"""Which version is meant: by number, or by time."""

import datetime as dt
import os
import time
from pathlib import Path

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


def test_a_time_of_the_history_opens_its_version(lake, x):
    for _ in range(3):
        lake.write("x", x, mode="append")
    table = lake.history()
    newest = table.groupby("timestamp")["version"].max()
    for timestamp in table["timestamp"]:
        found = tl.open(lake.uri, timestamp=timestamp.isoformat())
        assert found.version == newest[timestamp]


@pytest.mark.local_disk
def test_a_time_that_several_versions_have_means_the_last(lake, x):
    """A store that keeps seconds gives one time to many; a clock that goes back makes none of them older."""
    for _ in range(5):
        lake.write("x", x, mode="append")
    start = 1_700_000_000
    for version, seconds in enumerate([0, 2, 2, 1, 2, 5]):
        time = start + seconds
        os.utime(Path(lake.uri, "_delta_log", f"{version:020}.json"), (time, time))
    asked = [pd.Timestamp(start + after, unit="s", tz="UTC") for after in (0, 1, 2, 4, 5, 9)]
    found = [tl.open(lake.uri, timestamp=time.isoformat()).version for time in asked]
    assert found == [0, 0, 4, 4, 5, 5]


@pytest.mark.local_disk
def test_a_time_chooses_a_version(lake, x):
    for i in range(3):
        lake.write("x", x[: i + 1], mode="overwrite")
    start = age_log(lake)
    for offset, length in ((100, 1), (199, 1), (200, 2), (1000, 3)):
        at = pd.Timestamp(start + offset, unit="s", tz="UTC")
        for timestamp in (at.to_pydatetime(), at.isoformat()):
            assert len(tl.open(lake.uri, timestamp=timestamp)["x"]) == length
    with pytest.raises(tl.InvalidOptionError, match="no version at"):
        tl.open(lake.uri, timestamp=pd.Timestamp(start - 1, unit="s", tz="UTC").isoformat())
    with pytest.raises(tl.InvalidOptionError, match="not of the form"):
        tl.open(lake.uri, timestamp="yesterday")
    with pytest.raises(tl.InvalidOptionError, match="timestamp=5 is no datetime"):
        tl.open(lake.uri, timestamp=5)
    for timestamp in (pd.NaT, "0001-01-01T00:00:00+01:00"):
        with pytest.raises(tl.InvalidOptionError, match="is no time in UTC: "):
            tl.open(lake.uri, timestamp=timestamp)


@pytest.mark.local_disk
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns", "UTC"])
def test_a_time_without_a_zone_is_the_machines(lake, x, monkeypatch, zone):
    for i in range(3):
        lake.write("x", x[: i + 1], mode="overwrite")
    start = age_log(lake)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        at = dt.datetime.fromtimestamp(start + 200)  # without a zone
        for timestamp in (at, str(at), at.isoformat(), pd.Timestamp(at), pd.Timestamp(at, tz=zone)):
            assert len(tl.open(lake.uri, timestamp=timestamp)["x"]) == 2
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.both_stores
def test_a_version_is_a_whole_number(lake, x):
    lake.write("x", x)
    assert tl.open(lake.uri, version=np.int32(1)).version == 1
    with pytest.raises(
        tl.InvalidOptionError, match=r"version=1\.5 is neither a whole number nor a tag"
    ):
        tl.open(lake.uri, version=1.5)


@pytest.mark.local_disk
def test_a_checkpoint_that_is_damaged_is_told_with_what_helps(lake, x):
    for _ in range(11):
        lake.write("x", x, mode="append")
    log = Path(lake.uri, "_delta_log")
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    os.truncate(checkpoint, checkpoint.stat().st_size // 2)
    with pytest.raises(tl.FormatError, match=r"checkpoint in _delta_log is damaged .* all commits"):
        tl.open(lake.uri).check()
    checkpoint.unlink()
    with pytest.raises(tl.FormatError, match="_last_checkpoint names a checkpoint that is not"):
        tl.open(lake.uri).check()
    Path(log, "_last_checkpoint").unlink()
    assert tl.open(lake.uri).check().findings == ()
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][:], np.concatenate([x] * 11))
