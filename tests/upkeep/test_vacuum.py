"""What a vacuum takes besides data files that no version needs; the rest is in tests/writing/test_restore_vacuum.py."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from other_writer import write_by_another
from random_logs import random_log

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import LOG, commit_name
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import FormatError
from tensorlake_spark.upkeep import vacuum as table_vacuum
from tensorlake_spark.upkeep.vacuum import check_retention

pytestmark = pytest.mark.local_disk

KILLED = """
import os, sys
import numpy as np
import tensorlake_spark as tl

os.link = lambda *_: os._exit(9)
tl.open(sys.argv[1]).write("x", np.zeros(3), mode="append")
"""


def unfinished(lake):
    return sorted(
        path.relative_to(lake.uri).as_posix() for path in Path(lake.uri, LOG).glob("*.tmp")
    )


def age(lake, name, hours):
    then = time.time() - hours * 3600
    os.utime(Path(lake.uri, name), (then, then))


@pytest.mark.parametrize("name", ["data", "year=2026/data"])
def test_what_a_linked_folder_leads_to_stays(lake, tmp_path, name):
    lake.write("x", np.ones(4), mode="overwrite")
    others, link = tmp_path / "others", Path(lake.uri, name)
    (others / "deep").mkdir(parents=True)
    for file in (others / "a.parquet", others / "deep" / "b.parquet"):
        file.touch()
        os.utime(file, (1, 1))
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(others)
    link.with_name("one.parquet").symlink_to(others / "a.parquet")
    named = lake.vacuum(0, dry_run=True)
    assert str(link.relative_to(lake.uri).with_name("one.parquet")) in named
    assert not [one for one in named if one.startswith(f"{name}/")]
    assert {one.place for one in lake.check().findings} <= {*named}
    assert sorted(lake.vacuum(0)) == sorted(named)
    assert (others / "a.parquet").exists()
    assert (others / "deep" / "b.parquet").exists()
    assert lake["x"][:].tolist() == [1.0] * 4


def test_commits_of_killed_writers_are_taken_when_they_are_old(lake):
    lake.write("x", np.arange(3.0))
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, lake.uri], check=False)
        assert killed.returncode == 9
    old, young = unfinished(lake)
    age(lake, old, hours=24 * 7 + 1)
    age(lake, young, hours=24 * 7 - 1)
    assert lake.vacuum(dry_run=True) == [old]
    assert unfinished(lake) == [old, young]
    assert lake.vacuum() == [old]
    assert unfinished(lake) == [young]
    assert young in lake.vacuum(24 * 7 - 2)
    assert unfinished(lake) == []
    assert lake.version == 1
    assert lake.check().ok
    np.testing.assert_array_equal(lake["x"][:], np.arange(3.0))


def test_files_that_an_earlier_vacuum_took_are_not_named_again(lake, tmp_path):
    for k in range(3):
        lake.write("x", np.arange(3.0) + k, mode="overwrite")
    assert len(lake.vacuum(0, dry_run=True)) == 2
    taken = lake.vacuum(0)
    assert len(taken) == 2
    assert lake.vacuum(0, dry_run=True) == lake.vacuum(0) == []
    lake.write("x", np.arange(3.0), mode="overwrite")
    assert len({*lake.vacuum(0)} - {*taken}) == 1
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32", "a": tl.types.Text(apart=True)})
    ds.extend({"n": [1, 2, 3], "a": ["x", "y", "z"]})
    ds.update([0], {"n": 7, "a": "w"})
    ds.optimize()
    taken = ds.vacuum(0)
    assert all(not Path(ds.uri, name).exists() for name in taken)
    assert len(taken) >= 3
    assert ds.vacuum(0) == []


@pytest.mark.parametrize("when", ["before", "between"])
def test_another_writer_replaces_files_around_the_entries_of_a_vacuum(lake, monkeypatch, when):
    """deltalake takes this for a conflict, at its first entry or, when the files are gone, at its second."""
    lake.write("x", np.arange(3.0))
    old = [f"part-{k}-old.parquet" for k in range(9)]
    for name in old:
        Path(lake.uri, name).touch()
        age(lake, name, hours=24 * 30)
    real = DeltaTable.vacuum

    def other():
        tl.open(lake.uri).write("x", np.arange(4.0), mode="overwrite")

    def late(table, **options):
        monkeypatch.undo()
        if when == "before":
            other()
            return real(table, **options)
        taken = real(table, **options)
        other()
        # What the second entry of deltalake meets if the writer is faster.
        assert taken
        raise CommitFailedError("a concurrent transaction deleted data this operation read")

    monkeypatch.setattr(DeltaTable, "vacuum", late)
    assert sorted(lake.vacuum()) == old
    assert not [name for name in old if Path(lake.uri, name).exists()]
    assert lake["x"][:].tolist() == [0, 1, 2, 3]
    assert lake.check().ok


def test_a_full_disk_has_no_space_for_the_entries_of_a_vacuum(lake, monkeypatch):
    """It would be full for ever: each error says that space has to be freed."""
    lake.write("x", np.zeros(3))
    lake.write("x", np.ones(3), mode="overwrite")
    version, due = lake.version, lake.vacuum(0, dry_run=True)
    by_deltalake = table_vacuum.vacuumed

    def vacuumed(snapshot, hours, dry_run, keep):
        if not dry_run:
            raise DeltaError("Unable to copy data to file: No space left on device (os error 28)")
        return by_deltalake(snapshot, hours, dry_run, keep)

    monkeypatch.setattr(table_vacuum, "vacuumed", vacuumed)
    assert lake.vacuum(0) == due
    assert len(due) == 1
    assert not Path(lake.uri, due[0]).exists()
    assert lake.version == version
    assert lake["x"][...].tolist() == [1, 1, 1]


def test_nothing_else_of_the_log_is_taken(lake):
    lake.write("x", np.arange(3.0))
    for name in ("00000000000000000001.json.tmp", "_commit_1.json", "_commits.tmp"):
        Path(lake.uri, LOG, name).write_text("{}")
    before = sorted(path.name for path in Path(lake.uri, LOG).iterdir())
    for name in before:
        age(lake, f"{LOG}/{name}", hours=24 * 30)
    assert lake.vacuum() == []
    assert sorted(path.name for path in Path(lake.uri, LOG).iterdir()) == before


@pytest.mark.parametrize("hours", [None, 0, 0.5, 168, np.int64(168), np.float32(0.5)])
def test_retentions_that_are_taken(lake, hours):
    assert check_retention(hours) == hours
    lake.write("x", np.zeros(3))
    assert lake.vacuum(hours, dry_run=True) == []


@pytest.mark.parametrize(
    "hours", [-1, float("nan"), "a week", 24 * 365 * 1001, True, np.array([1]), Decimal(1)]
)
def test_retentions_that_are_not(hours):
    with pytest.raises(
        tl.InvalidOptionError, match=r"is a number of hours .* or None for the table's"
    ):
        check_retention(hours)


def test_a_live_file_with_an_empty_part_in_its_name_stays(lake):
    """deltalake does not know it by that name, and deleted it."""
    lake.write("x", np.arange(3))
    write_by_another(lake.uri, pq.write_table, before="./")
    before = sorted(Path(lake.uri).glob("*.parquet"))
    with pytest.raises(tl.UnsupportedFeatureError, match=r"has the file '\./part-by-another"):
        lake.vacuum(0)
    assert sorted(Path(lake.uri).glob("*.parquet")) == before


def kept_by_deltalake(uri, versions):
    """Return the names of the files that a vacuum of deltalake leaves which keeps those of the versions it opens."""
    there = []
    for version in versions:
        with suppress(DeltaError):
            there.append(DeltaTable(uri, version).version())
    gone = DeltaTable(uri).vacuum(
        0, enforce_retention_duration=False, full=True, keep_versions=there or None
    )
    return {path.name for path in Path(uri).glob("*.parquet")} - {Path(name).name for name in gone}


@pytest.mark.parametrize("few", [0, 32], ids=["by tasks", "by deltalake"])
@times(0.2)
@given(seed=st.integers(0, 2**32), tidied=st.booleans(), tagged=st.sets(st.integers(0, 20)))
def test_files_of_tagged_versions_are_kept_as_deltalake_keeps_them(few, seed, tidied, tagged):
    tags = {f"t{version}": version for version in tagged}
    with random_log(seed, tidied, tags) as (uri, newest), pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_vacuum, "_FEW", few)
        before = {path.name for path in Path(uri).glob("*.parquet")}
        kept = kept_by_deltalake(uri, sorted(tagged))
        lake = tl.open(uri)
        commits = [n for n in range(newest) if Path(uri, commit_name(n)).exists()]
        if commits[:1] == [0] and commits != [*range(newest)]:  # some were lost, not tidied up
            with suppress(FormatError):
                assert sorted(lake.vacuum(0, dry_run=True)) == sorted(before - kept)
            return
        gone = lake.vacuum(0, dry_run=True)
        assert sorted(gone) == sorted(before - kept)
        assert {path.name for path in Path(uri).glob("*.parquet")} == before
        assert sorted(lake.vacuum(0)) == sorted(gone)
        assert {path.name for path in Path(uri).glob("*.parquet")} == kept


def test_tagged_versions_are_not_opened_one_by_one(lake, monkeypatch):
    for number in range(40):
        lake.write("x", np.ones(3) * number, mode="overwrite")
        lake.tag(f"t{number}")
    lake.write("x", np.ones(3), mode="overwrite")
    opened = []
    real = table_vacuum.Snapshot.open

    def open_counted(storage, version=None, **kwargs):
        opened.append(version)
        return real(storage, version, **kwargs)

    monkeypatch.setattr(table_vacuum.Snapshot, "open", open_counted)
    assert lake.vacuum(0, dry_run=True) == lake.vacuum(0) == []
    assert {*opened} == {None}
    monkeypatch.undo()
    lake.untag("t7")
    (gone,) = lake.vacuum(0)
    assert not Path(lake.uri, gone).exists()
    assert tl.open(lake.uri, version="t8")["x"][:].tolist() == [8, 8, 8]


def test_a_version_to_be_kept_that_the_log_has_no_more(lake):
    for number in range(3):
        lake.write("x", np.ones(3) * number, mode="overwrite")
    DeltaTable(lake.uri, 2).create_checkpoint()
    for version in range(2):
        Path(lake.uri, commit_name(version)).unlink()
    before = sorted(Path(lake.uri).glob("*.parquet"))
    for version in (1, 99):
        with pytest.raises(tl.InvalidOptionError, match=f"version {version}"):
            table_vacuum.vacuum(Snapshot.open(lake._storage), 0, False, keep=[2, version])
    assert sorted(Path(lake.uri).glob("*.parquet")) == before


@pytest.mark.parametrize("harm", ["cut", "lost"])
def test_files_of_a_tag_stay_while_the_log_of_its_version_is_damaged(lake, harm):
    for number in range(12):
        lake.write("x", np.ones(3) * number, mode="overwrite")
    lake.tag("t", version=7)
    value = tl.open(lake.uri, version="t")["x"][:].tolist()
    name = Path(lake.uri, commit_name(6))
    text = name.read_bytes()
    checkpoint = [*Path(lake.uri, LOG).glob("*.checkpoint.parquet")]
    assert checkpoint  # so that the newest version is read without that commit
    if harm == "cut":
        name.write_bytes(text[: len(text) // 2])
    else:
        name.unlink()
    files = {*Path(lake.uri).glob("*.parquet")}
    with pytest.raises(
        FormatError,
        match=r"version 7 of .* the tag 't' keeps, cannot be read, and nothing was deleted",
    ):
        tl.open(lake.uri).vacuum(0)
    assert {*Path(lake.uri).glob("*.parquet")} == files
    name.write_bytes(text)
    tl.open(lake.uri).vacuum(0)
    assert tl.open(lake.uri, version="t")["x"][:].tolist() == value
