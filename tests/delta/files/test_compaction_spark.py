"""Compaction and delta-spark on one table: each leaves what the other wrote."""

import threading

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.actions import all_transactions
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(1, 50, (12, 16, 8)).astype("f4")


def fill(lake, x):
    lake.write("x", x[:1], block_shape=(1, 16, 8), layout="ftsf")
    for i in range(1, len(x)):
        lake.write("x", x[i : i + 1], mode="append")


@pytest.mark.soak
def test_spark_reads_what_was_brought_together(spark, lake, x):
    fill(lake, x)
    version = lake.version
    lake.optimize()
    frame = spark.read.format("delta").load(lake.uri)
    assert len(frame.inputFiles()) == 1
    assert frame.count() == 12 + 1
    assert spark.read.format("delta").option("versionAsOf", version).load(lake.uri).count() == 24
    read = spark.read.format("tensor").option("id", "x").option("slice", "5:7").load(lake.uri)
    blocks = {tuple(r.lo): np.frombuffer(r.tensor.data, "<f4") for r in read.collect()}
    np.testing.assert_array_equal(blocks[5, 0, 0], x[5].ravel())
    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake.uri}`").count()
    assert history == lake.version + 1


@pytest.mark.soak
def test_appends_of_delta_spark_beside_it_survive(spark, lake, x):
    """Copies of a tensor under other ids: plain rows, appended by Spark while compaction runs."""
    fill(lake, x)
    rows = spark.read.format("delta").load(lake.uri).where("id = 'x'").drop("id").cache()
    rows.count()
    failed = []

    def append():
        try:
            for k in range(2):
                copy = rows.selectExpr(f"'copy/{k}' AS id", "*").select(*SCHEMA.names)
                copy.write.format("delta").mode("append").save(lake.uri)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=append)
    thread.start()
    merged = 0
    other = tl.open(lake.uri)
    while thread.is_alive():
        merged += other.optimize().files_before
        other.write("y", x[:1], mode="append")
        thread.join(0.5)  # commits that Spark has to read, but not hundreds
    rows.unpersist()
    assert not failed
    lake.optimize()
    assert merged > 12
    assert list(lake) == [*(f"copy/{k}" for k in range(2)), "x", "y"]
    for name in lake:
        if name != "y":
            np.testing.assert_array_equal(lake[name][...], x)
    snapshot = Snapshot.open(Storage(lake.uri))
    assert len(snapshot.files.path) == 1
    # Commits and checkpoints of both writers are in the log.
    numbers = all_transactions(snapshot.storage, snapshot.version)
    assert numbers == {app_of(name): snapshot.transaction(app_of(name)) for name in ("x", "y")}


def test_a_file_with_a_deletion_vector_stays(spark, place, x):
    """deltalake cannot remove such a file: nobody may write its rows anew, or they were there twice."""
    lake = tl.open(place)
    fill(lake, x)
    uri = lake.uri
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    lake.write("x", x[:2], mode="append")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 'x' AND lo.d0 = 12")
    (marked,) = Snapshot.open(Storage(uri)).deletions
    done = lake.optimize()
    assert (done.files_before, done.files_after) == (12, 1)
    files = Snapshot.open(Storage(uri)).files.path
    assert len(files) == 2
    assert marked in files
    # Of 14 rows of data one is marked; of twelve metadata rows the newest of the twelve files is left.
    assert spark.read.format("delta").load(uri).count() == 14 - 1 + 1 + 1
    ref = tl.open(uri, verify=False)["x"]
    np.testing.assert_array_equal(ref[:12], x)
    assert not ref[12].any()
    np.testing.assert_array_equal(ref[13], x[1])
    with pytest.raises(tl.UnsupportedFeatureError, match=r"REORG TABLE .* APPLY \(PURGE\)"):
        ref[12:14] = 0
    with pytest.raises(tl.UnsupportedFeatureError, match="deletion vectors"):
        lake.write("x", x, mode="overwrite")
