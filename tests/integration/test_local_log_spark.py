"""Our commits on a local disk and delta-spark's in turns: each sees all of the other's, in one process."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog, catalog_file
from tensorlake_spark.delta.log.actions import commit_name
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

pytestmark = pytest.mark.local_disk


@pytest.fixture
def eager(monkeypatch):
    """Have a catalog file after every commit, and look into it for every listing."""
    monkeypatch.setattr(catalog, "_KEPT_FROM", 1)
    monkeypatch.setattr(catalog, "_FEW", 0)
    monkeypatch.setattr(catalog, "commits_between", lambda files: 1)


def agree(spark, lake):
    """See that this process, deltalake and delta-spark have the same rows; return the tensors."""
    frame = spark.read.format("delta").load(lake.uri).select("id", "seq", "nnz")
    theirs = sorted(tuple(row) for row in frame.collect())
    rows = DeltaTable(lake.uri).to_pandas(columns=["id", "seq", "nnz"])
    assert theirs == sorted(map(tuple, rows.itertuples(index=False)))
    newest, opened = Snapshot.newest(Storage(lake.uri)), Snapshot.open(Storage(lake.uri))
    assert (newest.version, sorted(newest.files.path)) == (
        opened.version,
        sorted(opened.files.path),
    )
    assert newest.files.rows.sum() == len(theirs)
    quick = list(lake)
    forget()
    shutil.rmtree(Path(lake.uri, "_tensorlake", "catalog"), ignore_errors=True)
    assert list(tl.open(lake.uri)) == quick
    return quick


@pytest.mark.soak  # each turn is a job of Spark and four readings
def test_in_turns(spark, lake, eager):
    x = np.arange(6.0)
    table = f"delta.`{lake.uri}`"
    for name in "abcd":
        lake.write(name, x)
    assert catalog_file.paths(Storage(lake.uri))
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (who string)")
    for statement, ids in {
        f"UPDATE {table} SET who = 'me' WHERE id = 'a'": "abcd",
        f"DELETE FROM {table} WHERE id = 'd'": "abc",
        f"RESTORE TABLE {table} TO VERSION AS OF 4": "abcd",
    }.items():
        spark.sql(statement)
        assert [name for name in lake if len(name) == 1] == [*ids], statement
        number = lake.version
        lake.write(f"after/{number}", x)
        with lake.transaction() as tx:
            tx.write(f"block/{number}", x)
        assert lake.version == number + 2
        assert {f"after/{number}", f"block/{number}"} <= {*agree(spark, lake)}, statement
        np.testing.assert_array_equal(lake["a"][:], x)
    version = lake.version
    assert spark.sql(f"DESCRIBE HISTORY {table}").count() == version + 1
    removed = [
        json.loads(line)["remove"]
        for v in range(version + 1)
        for line in Path(lake.uri, commit_name(v)).read_text().splitlines()
        if "remove" in json.loads(line)
    ]
    assert all(action["deletionTimestamp"] > 0 for action in removed)


def test_a_block_on_files_with_deletion_vectors_loses_nothing(spark, lake):
    x = np.arange(6.0)
    with lake.transaction() as tx:
        for name in "abc":
            tx.write(name, x)
    table = f"delta.`{lake.uri}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {table} WHERE id = 'c'")
    assert Snapshot.open(Storage(lake.uri)).deletions
    before = {path.name for path in Path(lake.uri).glob("*.parquet")}
    with (
        pytest.raises(tl.UnsupportedFeatureError, match=r"REORG TABLE .* nothing was committed"),
        lake.transaction() as tx,
    ):
        tx.write("new", x)
        tx["a"][0] = 7
        assert list(tx) == ["a", "b", "new"]
        assert tx["a"][:2].tolist() == [7, 1]
    assert {path.name for path in Path(lake.uri).glob("*.parquet")} == before
    with lake.transaction() as tx:
        tx.write("new", x)
        tx.write("b", x, mode="append")
        tx.update_attrs("a", {"n": 1})
    assert list(lake) == ["a", "b", "new"]
    spark.sql(f"REORG TABLE {table} APPLY (PURGE)")
    with lake.transaction() as tx:
        tx["a"][0] = 7
        tx.delete("b")
    assert list(tl.open(lake.uri)) == list(lake) == ["a", "new"]
    assert lake["a"][:2].tolist() == [7, 1]
    assert lake.check().ok
