"""The commit rule where a commit fails, or seems to."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from deltalake.exceptions import DeltaError
from marked_samples import mark

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import rewriting
from tensorlake_spark.delta.log import commit as commits
from tensorlake_spark.delta.log import direct_commit
from tensorlake_spark.delta.log.actions import commit_name
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, DeltaError])
def test_a_commit_that_lands_and_raises_keeps_its_files(lake, monkeypatch, kind):
    lake.write("x", np.arange(3))
    commit_once = commits._commit_once

    def lands(*arguments):
        commit_once(*arguments)
        raise kind("the answer was lost")

    monkeypatch.setattr(commits, "_commit_once", lands)
    try:
        lake.write("x", np.arange(3), mode="append")
    except KeyboardInterrupt:
        assert kind is KeyboardInterrupt
    assert lake["x"][:].tolist() == [0, 1, 2, 0, 1, 2]
    assert lake.version == 2


@pytest.mark.local_disk
def test_a_commit_that_does_not_land_deletes_its_files(lake, monkeypatch):
    lake.write("x", np.arange(3))

    def refuses(*_):
        raise OSError("no")

    monkeypatch.setattr(commits, "_commit_once", refuses)
    with pytest.raises(tl.StorageError, match=r"the store of .* no"):
        lake.write("x", np.arange(3), mode="append")
    assert len(list(Path(lake.uri).glob("*.parquet"))) == 1


def orphans(lake):
    """Data files that no commit of the log has ever named."""
    log = [p.read_text().splitlines() for p in Path(lake.uri).glob("_delta_log/*.json")]
    named = {a["add"]["path"] for lines in log for a in map(json.loads, lines) if "add" in a}
    return {path.name for path in Path(lake.uri).glob("*.parquet")} - named


def test_a_writer_that_loses_every_commit_gives_up(lake, monkeypatch):
    """Others win each version before it; the last try is one of a bounded number."""
    before = lake.write("x", np.arange(3)).version
    other, commit_once, tries = Storage(lake.uri), commits._commit_once, []

    def beaten(snapshot, change):
        tries.append(snapshot.version)
        commit_once(Snapshot.open(other), commits.Change({}, []))
        commit_once(snapshot, change)

    monkeypatch.setattr(commits, "ATTEMPTS", 4)
    monkeypatch.setattr(commits, "_commit_once", beaten)
    with pytest.raises(tl.ConcurrentWriteError, match="other writers won 4 commits in a row"):
        lake.write("x", np.arange(3), mode="append")
    assert tries == [before, before + 1, before + 2, before + 3]
    assert lake["x"][:].tolist() == [0, 1, 2]
    assert orphans(lake) == set()


@pytest.mark.local_disk
def test_a_sample_that_another_writer_marks_meanwhile_stays_deleted(tmp_path, monkeypatch):
    """The file is then another one in the log: its removal would remove nothing, and its samples would come twice."""
    ds = tl.dataset(tmp_path / "ds", {"size": "int32"})
    ds.extend({"size": [*range(10)]})
    commit, tries = rewriting.commit, []

    def late(storage, change):
        tries.append(change)
        if len(tries) == 1:
            mark(storage, 4)
        return commit(storage, change)

    monkeypatch.setattr(rewriting, "commit", late)
    ds.update([5], {"size": 99})
    assert len(tries) == 2
    assert ds.sids.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert ds["size"][:].tolist() == [0, 1, 2, 3, 99, 6, 7, 8, 9]


@pytest.mark.local_disk
def test_a_file_with_a_vector_is_not_replaced_where_only_deltalake_can_commit(
    tmp_path, monkeypatch
):
    """It would remove nothing, and the samples of the file would be there twice."""
    ds = tl.dataset(tmp_path / "ds", {"size": "int32"})
    ds.extend({"size": [*range(6)]})
    mark(ds._storage, 4)
    ds.refresh()

    def none(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    with pytest.raises(tl.UnsupportedFeatureError, match=r"1 files.*have deletion vectors"):
        ds.update([5], {"size": 99})
    assert tl.dataset(ds.uri)["size"][:].tolist() == [0, 1, 2, 3, 5]


def newest_lines(lake):
    text = Path(lake.uri, commit_name(lake.version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(params=["direct", "by deltalake"])
def grown(request, lake, monkeypatch):
    """A lake with a tensor that was appended to, to which the next commit is made in either way."""
    lake.write("x", np.arange(3))
    lake.write("x", np.arange(3), mode="append")
    if request.param != "direct":
        monkeypatch.setattr(direct_commit, "can_commit", lambda *_, **__: False)
    return lake


@pytest.mark.local_disk
def test_a_commit_says_all_of_a_change(grown):
    """Whoever makes it: numbers that do not grow, or are not there, would hide what others wrote."""
    storage = Storage(grown.uri)
    number = Snapshot.open(storage).transaction(commits.app_of("x"))
    change = commits.Change(
        {"x": number, "y": None}, [], transaction=("mine", 5), counters={"count": (None, 7)}
    )
    after = commits.commit(storage, change)
    said = [line["txn"] for line in newest_lines(grown) if "txn" in line]
    want = {commits.app_of("x"): number + 1, commits.app_of("y"): 1, "mine": 5, "count": 7}
    assert {txn["appId"]: txn["version"] for txn in said} == want
    assert all(txn["lastUpdated"] > 0 for txn in said)  # without it, Spark may drop it
    assert after.transactions([*want]) == want


@pytest.mark.local_disk
def test_rows_that_only_move_are_no_change_of_data(grown):
    """A reader of the change data would otherwise take all of them for new."""
    grown.optimize()
    files = [said for line in newest_lines(grown) for kind, said in line.items() if "path" in said]
    assert [file["dataChange"] for file in files] == [False] * 3
