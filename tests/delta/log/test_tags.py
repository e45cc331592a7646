"""Tags: names for versions, in the way of no writer."""

import json
import os
from pathlib import Path

import deltalake
import numpy as np
import pytest
from races import before_call

import tensorlake_spark as tl
from tensorlake_spark.delta.log import tags as tags_module
from tensorlake_spark.delta.log.actions import all_transactions
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.tags import check_tag, tags
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 50, (8, 6, 4)).astype("f4")


def test_a_tag_opens_its_version(lake, x):
    version = lake.write("x", x).version
    assert lake.tag("release/1") == version
    lake.write("x", x + 1, mode="overwrite")
    assert lake.tag("new") == version + 2
    assert lake.tags() == {"new": version + 2, "release/1": version}
    np.testing.assert_array_equal(tl.open(lake.uri, version="release/1")["x"][...], x)
    np.testing.assert_array_equal(tl.open(lake.uri, version=str(version))["x"][...], x)
    np.testing.assert_array_equal(lake.restore("x", "release/1")[...], x)
    assert lake.tag("same", "release/1") == version
    with pytest.raises(tl.InvalidOptionError, match="did you mean 'release/1'"):
        tl.open(lake.uri, version="release/2")


def test_a_tag_is_moved_only_where_that_is_said(lake, x):
    version = lake.write("x", x).version
    lake.tag("a")
    with pytest.raises(
        tl.InvalidOptionError, match=f"names version {version} already; replace=True"
    ):
        lake.tag("a")
    at = lake.version
    assert lake.tag("a", version) == version  # a repeated call changes nothing
    assert lake.version == at
    assert lake.tag("a", 0, replace=True) == 0
    assert lake.tags() == {"a": 0}
    lake.untag("a")
    assert lake.tags() == {}
    with pytest.raises(tl.InvalidOptionError, match="nor a tag"):
        tl.open(lake.uri, version="a")
    with pytest.raises(tl.InvalidOptionError, match="there is no tag 'a'"):
        lake.untag("a")
    with pytest.raises(tl.InvalidOptionError, match="a tag is a string, not int: 5"):
        lake.untag(5)
    assert lake.tag("a", version) == version


@pytest.mark.parametrize("name", ["", "12", "a//b", "..", "a\n", "x" * 513, 5])
def test_names_that_will_not_do(lake, x, name):
    lake.write("x", x)
    with pytest.raises(tl.InvalidOptionError, match="tag"):
        lake.tag(name)
    assert check_tag("v1") == "v1"


def test_a_tag_of_what_is_not_there(lake, x):
    with pytest.raises(tl.TableNotFoundError):
        lake.tag("a")
    with pytest.raises(tl.TableNotFoundError):
        lake.tags()
    lake.write("x", x)
    with pytest.raises(tl.InvalidOptionError, match=r"version 99 .* does not exist"):
        lake.tag("a", 99)
    for version in (-1, 99, "99"):
        with pytest.raises(tl.InvalidOptionError, match="does not exist"):
            tl.open(lake.uri, version=version)


def test_tags_survive_checkpoints(lake, x):
    version = lake.write("x", x[:1]).version
    lake.tag("a", version)
    lake.tag("b", 0)
    lake.untag("b")
    for _ in range(25):
        lake.write("x", x[:1], mode="append")
    lake.tag("c", 20)
    assert lake.tags() == {"a": version, "c": 20}
    assert len(tl.open(lake.uri, version="a")["x"]) == 1


def test_tags_are_in_no_writers_way(lake, x):
    """Two that move one tag: one is told. A tag and a write both land."""
    lake.write("x", x)
    stale = Snapshot.open(Storage(lake.uri))
    lake.tag("a", 0)
    lake.write("x", x, mode="append")
    from tensorlake_spark.delta.log import tags

    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed tag 'a'"):
        tags._commit(stale, "a", 1, "tag")
    assert lake.tags() == {"a": 0}
    tags._commit(stale, "b", 1, "tag")
    assert lake.tags() == {"a": 0, "b": 1}
    assert len(lake["x"]) == 16


def overwrite(lake):
    lake.write("x", np.arange(3.0), mode="overwrite")


def set_property(lake):
    table = deltalake.DeltaTable(lake.uri)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})


@pytest.mark.parametrize("other", [overwrite, set_property, lambda lake: lake.tag("b", 0)])
def test_a_tag_lands_whatever_another_writer_commits_meanwhile(lake, x, monkeypatch, other):
    lake.write("x", x)
    before_call(monkeypatch, tags_module, "_write", lambda: other(tl.open(lake.uri)))
    lake.tag("a")
    assert lake.tags()["a"] == 1
    before_call(monkeypatch, tags_module, "_write", lambda: overwrite(tl.open(lake.uri)))
    lake.untag("a")
    assert "a" not in lake.tags()


@pytest.mark.local_disk
def test_a_log_with_a_checkpoint_in_parts(lake, x):
    """As Spark writes it with ``checkpoint.partSize``: what the log says must be the same."""
    lake.write("x", x)
    lake.tag("a")
    table = Snapshot.open(Storage(lake.uri)).table
    table.create_checkpoint()
    log = f"{lake.uri}/_delta_log"
    version = lake.version
    whole = f"{log}/{version:020}.checkpoint.parquet"
    import pyarrow.parquet as pq

    actions = pq.read_table(whole)
    for part, rows in enumerate((actions.slice(0, 2), actions.slice(2)), start=1):
        pq.write_table(rows, f"{log}/{version:020}.checkpoint.{part:010}.{2:010}.parquet")
    os.remove(whole)
    last = json.loads(Path(log, "_last_checkpoint").read_text())
    Path(log, "_last_checkpoint").write_text(json.dumps({**last, "parts": 2}))
    assert lake.tags() == {"a": 1}
    lake.tag("b", 0)
    assert lake.tags() == {"a": 1, "b": 0}
    os.remove(f"{log}/_last_checkpoint")
    for commit in range(version):
        os.remove(f"{log}/{commit:020}.json")
    assert lake.tags() == {"a": 1, "b": 0}, "the protocol does not ask for that file"
    os.remove(f"{log}/{version:020}.checkpoint.{1:010}.{2:010}.parquet")
    assert all_transactions(Storage(lake.uri), version) is None, "half a checkpoint"


@pytest.mark.local_disk
def test_tags_while_another_writer_makes_a_checkpoint(lake):
    lake.write("x", np.arange(3))
    lake.tag("first")
    before = Snapshot.open(Storage(lake.uri))
    for _ in range(12):
        lake.write("x", np.arange(3), mode="append")
    assert Path(lake.uri, "_delta_log", "_last_checkpoint").exists()
    assert tags(before) == {"first": 1}
