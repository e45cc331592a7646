"""The files of many versions in one reading of the log are those of each version that is opened alone."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from random_logs import added, commit, random_log, removed

from tensorlake_spark.delta.log.actions import LOG, commit_name
from tensorlake_spark.delta.log.replaying import past_files as module
from tensorlake_spark.delta.log.replaying.past_files import past_files
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


def opened(uri, versions):
    """Return the files of the versions that deltalake opens, and these versions."""
    paths, there = set(), []
    for version in versions:
        with suppress(DeltaError):
            found = DeltaTable(uri, version)
            paths |= {Path(name).name for name in found.file_uris()}
            there.append(version)
    return paths, there


@pytest.mark.parametrize("far", [3, 100], ids=["by checkpoints", "by commits"])
@times(0.4)
@given(seed=st.integers(0, 2**32), tidied=st.booleans())
def test_files_are_those_of_each_version(far, seed, tidied):
    with random_log(seed, tidied) as (uri, newest), pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FAR", far)
        rng = np.random.default_rng(seed)
        wanted = sorted(rng.choice(newest + 3, rng.integers(1, newest + 3), replace=False).tolist())
        found = past_files(Storage(uri), wanted)
        paths, there = opened(uri, wanted)
        read = {*wanted} - {*found.gone} - {*found.unread}
        assert read == {*there}
        assert found.paths == paths


def test_a_commit_that_is_damaged_is_left_to_others(lake):
    for k in range(6):
        lake.write("x", np.arange(3) + k, mode="overwrite")
    Path(lake.uri, commit_name(3)).write_text("{")
    found = past_files(lake._storage, [1, 3, 5])
    assert (found.gone, found.unread) == ([], [3, 5])
    assert found.paths == opened(lake.uri, [1])[0]


def test_a_commit_that_goes_while_the_log_is_read(lake, monkeypatch):
    for k in range(6):
        lake.write("x", np.arange(3) + k, mode="overwrite")
    DeltaTable(lake.uri, 4).create_checkpoint()
    listed = module.log_paths(lake._storage)
    for version in range(4):
        Path(lake.uri, commit_name(version)).unlink()
    monkeypatch.setattr(module, "log_paths", lambda storage: listed)
    found = past_files(lake._storage, [1, 2, 4, 5])
    assert (found.paths, found.gone, found.unread) == (set(), [], [1, 2, 4, 5])


def test_files_of_a_checkpoint_in_its_sidecars(lake):
    """As Spark writes checkpoints of the second version."""
    for k in range(3):
        lake.write("x", np.arange(3) + k, mode="overwrite")
    (path,) = opened(lake.uri, [2])[0]
    Path(lake.uri, LOG, "_sidecars").mkdir()
    table = DeltaTable(lake.uri, 2)
    table.create_checkpoint()
    (made,) = Path(lake.uri, LOG).glob("*.checkpoint.parquet")
    made.rename(Path(lake.uri, LOG, "_sidecars", "s.parquet"))
    named = f"{LOG}/{2:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    Path(lake.uri, named).write_text(json.dumps({"sidecar": {"path": "s.parquet"}}))
    for version in range(2):
        Path(lake.uri, commit_name(version)).unlink()
    found = past_files(lake._storage, [0, 1, 2])
    assert (found.paths, found.gone, found.unread) == ({path}, [0, 1], [])


def test_a_version_far_beyond_the_log(lake):
    lake.write("x", np.arange(3))
    assert past_files(lake._storage, [2**62]).unread == [2**62]


def test_names_are_there_with_and_without_percent_encoding(lake):
    lake.write("x", np.arange(3))
    commit(lake.uri, lake.version + 1, [added("a%20b.parquet")])
    found = past_files(lake._storage, [DeltaTable(lake.uri).version()])
    assert {"a%20b.parquet", "a b.parquet"} <= found.paths


def test_a_file_that_leaves_and_comes_back_with_other_deletions(lake):
    lake.write("x", np.arange(3))
    version = lake.version
    paths = opened(lake.uri, [version])[0]
    commit(lake.uri, version + 1, [*map(added, paths), *map(removed, paths)])
    commit(lake.uri, version + 2, [*map(removed, paths)])
    assert past_files(lake._storage, [version + 1]).paths == paths
    assert past_files(lake._storage, [version + 2]).paths == set()
