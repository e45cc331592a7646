"""Versions through Spark's doors, and beside commits of delta-spark."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from places import ROOT

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.cluster.table_versions import version_of

PAGE = (ROOT / "docs" / "versions.md").read_text()


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 50, (8, 6, 4)).astype("f4")


def set_properties(spark, lake, properties):
    pairs = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"ALTER TABLE delta.`{lake.uri}` SET TBLPROPERTIES ({pairs})")


def use_vectors(spark, lake):
    set_properties(spark, lake, {"delta.enableDeletionVectors": "true"})


def delete(spark, lake, where):
    spark.sql(f"DELETE FROM delta.`{lake.uri}` WHERE {where}")


@pytest.mark.local_disk
def test_every_door_takes_a_version_a_tag_and_a_time(spark, lake, x):
    """Blocks, cells, the catalog, plain Delta, and Python see the same."""
    first = lake.write("x", x, block_shape=(2, 6, 4)).version
    lake.tag("first/one")
    lake.write("x", x[:2] + 1, mode="overwrite")
    lake.write("y", x)
    start = time.time() - 86400  # Delta's own reader refuses what is older than a week
    for version in range(lake.version + 1):
        os.utime(f"{lake.uri}/_delta_log/{version:020}.json", (start + version * 100,) * 2)
    at = pd.Timestamp(start + first * 100 + 50, unit="s", tz="UTC").isoformat()
    for option in ({"versionAsOf": first}, {"versionAsOf": "first/one"}, {"timestampAsOf": at}):

        def read(option=option, **more):
            return spark.read.format("tensor").options(**option, **more)

        blocks = read(id="x", slice="1:4").load(lake.uri)
        np.testing.assert_array_equal(tf.collect_tensor(blocks, shape=(3, 6, 4)), x[1:4])
        if option == {"versionAsOf": "first/one"}:
            narrow = read(id="x", view="cells").schema("value float").load(lake.uri)
            assert sum(r.value for r in narrow.collect()) == x.sum()
        if option != {"versionAsOf": first}:
            rows = read(view="catalog").load(lake.uri).collect()
            assert [(r.id, r["shape"][0]) for r in rows] == [("x", 8)]
    cells = read(id="x", view="cells").load(lake.uri)
    assert cells.agg({"value": "sum"}).first()[0] == x.sum()
    for option in ({"version": str(first)}, {"version": "first/one"}, {"timestamp": at}):
        found = tf.read_tensor(spark, lake.uri, "x", **option)
        np.testing.assert_array_equal(tf.collect_tensor(found), x)
    np.testing.assert_array_equal(tl.open(lake.uri, timestamp=at)["x"][...], x)
    assert spark.read.format("tensor").option("view", "catalog").load(lake.uri).count() == 2
    with pytest.raises(Exception, match="nor a tag of"):
        spark.read.format("tensor").options(id="x", versionAsOf="first").load(lake.uri)
    with pytest.raises(tl.InvalidOptionError, match="nor a tag of"):
        tf.read_tensor(spark, lake.uri, "x", version="first")
    with pytest.raises(tl.InvalidOptionError, match="exclude each other"):
        tf.read_tensor(spark, lake.uri, "x", version=first, timestamp=at)


def test_plain_delta_finds_tags_behind_checkpoints(spark, lake, x):
    version = lake.write("x", x[:1]).version
    lake.tag("a", 0)
    lake.tag("b")
    for _ in range(12):
        lake.write("x", x[:1], mode="append")
    lake.tag("a", version, replace=True)
    lake.tag("c", 0)
    lake.untag("c")
    table = f"delta.`{lake.uri}`"
    assert {name: version_of(spark, table, name) for name in ("a", "b")} == lake.tags()
    with pytest.raises(tl.InvalidOptionError, match="nor a tag"):
        version_of(spark, table, "c")


def test_a_table_of_the_catalogue(spark, lake, x):
    lake.write("x", x)
    lake.tag("a")
    lake.delete("x")
    spark.sql(f"CREATE TABLE versions_of_a_lake USING delta LOCATION '{lake.uri}'")
    try:
        found = tf.read_tensor(spark, "versions_of_a_lake", "x", version="a")
        np.testing.assert_array_equal(tf.collect_tensor(found), x)
    finally:
        spark.sql("DROP TABLE versions_of_a_lake")


def test_what_vacuum_took_is_said_through_spark(spark, lake, x):
    first = lake.write("x", x).version
    lake.write("x", x + 1, mode="overwrite")
    lake.vacuum(0)
    read = spark.read.format("tensor").options(id="x", versionAsOf=first)
    with pytest.raises(Exception, match=r"(?s)deletedFileRetentionDuration, a week .* tag"):
        read.load(lake.uri).collect()


def test_history_with_commits_of_delta_spark(spark, lake, x):
    lake.write("x", x)
    lake.write("y", x)
    delete(spark, lake, "id = 'y' AND lo.d0 = 0 AND nnz > 0")
    lake.write("x", x, mode="append")
    spark.sql(f"OPTIMIZE delta.`{lake.uri}`")
    table = lake.history("x")
    assert [*table["operation"]] == ["append", "DELETE", "write"]
    assert [*table["foreign"]] == [False, True, False]
    whole = lake.history().set_index("version")
    assert "OPTIMIZE" in [*whole["operation"]]
    assert "id" in str(whole["parameters"][3]["predicate"])
    theirs = spark.sql(f"DESCRIBE HISTORY delta.`{lake.uri}`").toPandas().set_index("version")
    assert [*theirs.index] == [*whole.index]
    for version in whole.index:
        if whole["foreign"][version]:
            assert whole["operation"][version] == theirs["operation"][version]
        ours = whole["timestamp"][version].tz_localize(None)
        assert abs((ours - theirs["timestamp"][version]).total_seconds()) < 1


def test_restore_after_deletion_vectors(spark, lake, x):
    """The file stays with its vector; what that took since is written anew."""
    lake.write("x", x, block_shape=(1, 6, 4), layout="ftsf")
    lake.write("y", x, block_shape=(1, 6, 4), layout="ftsf")
    lake.optimize()
    use_vectors(spark, lake)
    whole = lake.version
    delete(spark, lake, "id = 'x' AND lo.d0 IN (2, 5)")
    some = lake.version
    delete(spark, lake, "(id = 'x' AND lo.d0 IN (0, 7)) OR (id = 'y' AND lo.d0 = 1)")
    assert len(Snapshot.open(Storage(lake.uri)).deletions) == 1
    y = tl.open(lake.uri, verify=False)["y"][...]
    np.testing.assert_array_equal(lake.restore("x", whole)[...], x)
    unverified = tl.open(lake.uri, verify=False)
    np.testing.assert_array_equal(unverified["y"][...], y)
    np.testing.assert_array_equal(lake.restore("x", whole)[...], x)
    assert spark.read.format("delta").load(lake.uri).where("id = 'x' AND nnz > 0").count() == 8
    np.testing.assert_array_equal(lake.restore("y", whole)[...], x)
    # Fewer rows than now: those that were written anew leave again with their file.
    lake.restore("x", some)
    want = x.copy()
    want[[2, 5]] = 0
    np.testing.assert_array_equal(tl.open(lake.uri, verify=False)["x"][...], want)
    np.testing.assert_array_equal(lake.write("x", x, mode="append")[8:], x)


@pytest.mark.soak
def test_all_rows_taken_by_a_vector(spark, lake, x):
    version = lake.write("x", x, block_shape=(1, 6, 4)).version
    lake.write("y", x)
    lake.optimize()
    use_vectors(spark, lake)
    delete(spark, lake, "id = 'x'")
    assert [*lake] == ["y"]
    np.testing.assert_array_equal(lake.restore("x", version)[...], x)
    np.testing.assert_array_equal(lake["y"][...], x)


@pytest.mark.soak
def test_an_old_file_with_a_vector_is_written_anew(spark, lake, x):
    use = lake.write("x", x, block_shape=(1, 6, 4)).version
    lake.write("other", x)
    use_vectors(spark, lake)
    delete(spark, lake, "id = 'x' AND lo.d0 = 3")
    marked = lake.version
    spark.sql(f"REORG TABLE delta.`{lake.uri}` APPLY (PURGE)")
    lake.write("x", x + 1, mode="overwrite")
    lake.restore("x", marked)
    want = x.copy()
    want[3] = 0
    np.testing.assert_array_equal(tl.open(lake.uri, verify=False)["x"][...], want)
    np.testing.assert_array_equal(lake.restore("x", use)[...], x)


def test_a_live_vector_that_would_have_to_go_is_refused(spark, lake, x):
    """The newer rows lie in a file that deltalake cannot remove: nothing is committed."""
    version = lake.write("x", x, block_shape=(1, 6, 4)).version
    use_vectors(spark, lake)
    lake.write("x", x + 1, mode="overwrite", block_shape=(1, 6, 4))
    delete(spark, lake, "id = 'x' AND lo.d0 = 3")
    before = lake.version
    with pytest.raises(tl.UnsupportedFeatureError, match=r"REORG TABLE .* APPLY \(PURGE\)"):
        lake.restore("x", version)
    assert lake.version == before


def test_after_a_table_restore_of_delta_spark(spark, lake, x):
    """Rows that a vector had taken are there again, and have to go."""
    lake.write("x", x, block_shape=(1, 6, 4))
    lake.write("y", x)
    use_vectors(spark, lake)
    whole = lake.version
    delete(spark, lake, "id = 'x' AND lo.d0 = 3")
    some = lake.version
    spark.sql(f"RESTORE TABLE delta.`{lake.uri}` TO VERSION AS OF {whole}")
    np.testing.assert_array_equal(lake["x"][...], x)
    lake.restore("x", some)
    want = x.copy()
    want[3] = 0
    np.testing.assert_array_equal(tl.open(lake.uri, verify=False)["x"][...], want)
    np.testing.assert_array_equal(lake["y"][...], x)
    np.testing.assert_array_equal(lake.restore("x", whole)[...], x)
    lake.write("y", x, mode="append")
    lake.optimize()
    np.testing.assert_array_equal(tl.open(lake.uri)["y"][...], np.concatenate([x, x]))


@pytest.mark.local_disk
def test_vacuum_leaves_vectors_that_are_in_use(spark, lake, x):
    lake.write("x", x, block_shape=(1, 6, 4))
    use_vectors(spark, lake)
    delete(spark, lake, "id = 'x' AND lo.d0 = 3")
    lake.tag("marked")
    delete(spark, lake, "id = 'x' AND lo.d0 = 4")
    lake.write("y", x)
    lake.delete("y")
    Path(lake.uri, "part-orphan.parquet").touch()
    gone = lake.vacuum(0, dry_run=True)
    assert Path(lake.uri, "part-orphan.parquet").exists()
    assert lake.vacuum(0) == gone
    assert "part-orphan.parquet" in gone
    assert len(gone) == 2
    assert not any(Path(lake.uri, name).exists() for name in gone)
    want = x.copy()
    want[3] = 0
    marked = tl.open(lake.uri, version="marked", verify=False)
    np.testing.assert_array_equal(marked["x"][...], want)
    want[4] = 0
    np.testing.assert_array_equal(tl.open(lake.uri, verify=False)["x"][...], want)
    assert spark.read.format("delta").load(lake.uri).where("nnz > 0").count() == 6
    # What else deletes a vector of an old version is said as of any other file.
    for path in Path(lake.uri).glob("deletion_vector_*.bin"):
        path.unlink()
    with pytest.raises(tl.MissingDataError, match=r"deletion vector .* tag"):
        tl.open(lake.uri, version="marked")["x"][...]


def test_vacuum_of_spark_leaves_what_was_restored(spark, lake, x):
    version = lake.write("x", x).version
    lake.write("x", x + 1, mode="overwrite")
    lake.restore("x", version)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM delta.`{lake.uri}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][...], x)
    assert spark.read.format("delta").load(lake.uri).where("nnz > 0").count() > 0


@pytest.mark.local_disk
def test_tags_in_checkpoints_of_spark(spark, lake, x):
    """In one file, and in the form of version 2."""
    version = lake.write("x", x).version
    lake.tag("a")
    log = Path(lake.uri, "_delta_log")
    for policy in ("classic", "v2"):
        properties = {"delta.checkpointInterval": "1", "delta.checkpointPolicy": policy}
        set_properties(spark, lake, properties)
        at = lake.version
        assert [*log.glob(f"{at:020}.checkpoint.*")]
        assert (log / "_sidecars").exists() == (policy == "v2")
        assert lake.tags()["a"] == version
        lake.tag(policy)
        assert set(lake.tags()) >= {"a", policy}
        assert version_of(spark, f"delta.`{lake.uri}`", "a") == version
    np.testing.assert_array_equal(tl.open(lake.uri, version="a")["x"][...], x)


@pytest.mark.soak
def test_tags_where_transactions_expire(spark, lake, x):
    lake.write("x", x)
    lake.tag("a")
    for interval, tags in (("30 days", {"a": 1}), ("0 seconds", {})):
        properties = {"delta.setTransactionRetentionDuration": f"interval {interval}"}
        set_properties(spark, lake, properties | {"delta.checkpointInterval": "1"})
        assert lake.tags() == tags


def test_the_page_runs(spark, place):
    names = {"spark": spark, "path": place}
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(code) >= 4
    for block in code:
        exec(compile(block, "versions.md", "exec"), names)
