"""Versions: what the log tells of them, which one a number or a time means, and what retention takes."""

import logging
import os
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


# ---------------------------------------------------------------------------------------------- history


def test_history_of_a_tensor_through_all_changes(lake, x):
    lake.write("other", x)
    ref = lake.write("x", x, axes=("a", "b", "c"))
    before = ref.version
    lake.write("x", x, mode="append")
    lake.write("other", x, mode="append")
    lake["x"][0] = 7
    lake["x"].update_attrs({"by": "me"})
    lake.convert("x", layout="bsgs")
    lake.optimize()
    lake.delete("x")
    lake.restore("x", before)
    table = lake.history("x")
    assert [*table["operation"]] == [
        "restore", "delete", "convert", "describe", "assign", "append", "write",
    ]  # fmt: skip
    assert all(ids == ("x",) for ids in table["tensors"])
    assert not table["foreign"].any()
    whole = lake.history()
    assert [*whole["version"]] == [*range(lake.version, -1, -1)]
    assert whole["operation"].iloc[-1] == "CREATE TABLE"
    assert {"other"} == set(lake.history("other")["tensors"].explode())
    assert whole["operation"].isin(["optimize"]).any()
    assert not whole.loc[whole["operation"] == "optimize", "data_change"].any()


def test_history_has_the_types_of_a_table(lake, x):
    lake.write("x", x)
    table = lake.history()
    assert str(table["timestamp"].dtype) == "datetime64[ms, UTC]"
    assert table["version"].dtype == "int64"
    now = pd.Timestamp.now("UTC")
    assert (now - table["timestamp"]).max() < pd.Timedelta("1h")
    assert [*table["files_added"]] == [1, 0]
    empty = lake.history(limit=0)
    assert [*empty.columns] == [*table.columns]
    assert (empty.dtypes == table.dtypes).all()


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


def test_history_up_to_a_limit_or_a_version(lake, x):
    lake.write("x", x)
    for _ in range(4):
        lake.write("y", x, mode="append")
        lake.write("x", x, mode="append")
    assert [*lake.history(limit=2)["version"]] == [9, 8]
    assert [*lake.history("y", limit=2)["version"]] == [8, 6]
    assert [*tl.open(lake.uri, version=6).history("y")["version"]] == [6, 4, 2]
    with pytest.raises(tl.InvalidOptionError, match="limit is -1"):
        lake.history(limit=-1)


def test_history_of_what_never_was(lake, x):
    with pytest.raises(tl.TableNotFoundError):
        lake.history()
    lake.write("photos", x)
    with pytest.raises(tl.TensorNotFoundError, match="did you mean 'photos'"):
        lake.history("fotos")


@pytest.mark.local_disk
def test_history_shows_what_the_log_still_has(lake, x):
    lake.write("x", x[:1])
    for _ in range(10):
        lake.write("x", x[:1], mode="append")
    age_log(lake)
    for _ in range(12):
        lake.write("x", x[:1], mode="append")
    versions = [*lake.history()["version"]]
    assert versions[0] == lake.version
    assert 0 not in versions
    lake.delete("x")
    assert lake.history("x")["operation"].iloc[0] == "delete"


# --------------------------------------------------------------------------------- what retention takes


def test_a_slice_of_a_version_that_was_vacuumed(lake, x):
    version = lake.write("x", x).version
    lake.write("x", x + 1, mode="overwrite")
    ref = tl.open(lake.uri, version=version)["x"]
    lake.vacuum(0)
    with pytest.raises(
        tl.MissingDataError, match=r"deletedFileRetentionDuration, a week .* lake.tag"
    ):
        ref[2:4]


@pytest.mark.local_disk
def test_a_version_whose_log_is_gone(lake, x, caplog):
    for i in range(10):
        lake.write("x", x[i % 6 : i % 6 + 1], mode="overwrite")
    lake.tag("early", 2)
    start = age_log(lake)
    for i in range(6):
        lake.write("x", x[i : i + 1], mode="overwrite")
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
    np.testing.assert_array_equal(lake["x"][...], x[5:6])


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


@pytest.mark.both_stores
def test_a_version_is_a_whole_number(lake, x):
    lake.write("x", x)
    assert tl.open(lake.uri, version=np.int32(1)).version == 1
    with pytest.raises(tl.InvalidOptionError, match=r"version=1\.5 is no whole number"):
        tl.open(lake.uri, version=1.5)


def test_a_part_of_an_hour_keeps_what_left_a_moment_ago(lake):
    lake.write("x", np.arange(4))
    lake.write("x", np.arange(5), mode="overwrite")
    assert lake.vacuum(0.5) == []
    assert len(lake.vacuum(0)) == 1
