"""Both directions with delta-spark: it reads and rewrites our tables, we read what it made of them."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 50, (40, 64, 8)).astype("f4")


@pytest.fixture
def table(tmp_path, x):
    lake = tl.open(tmp_path / "lake")
    for i in range(0, 40, 10):
        lake.write("x", x[i : i + 10], mode="append", block_shape=(2, 64, 8) if i == 0 else None)
    lake.write("y", x[:3])
    return lake


def test_spark_reads_the_rows_and_prunes(spark, table, x):
    frame = spark.read.format("delta").load(table.uri)
    assert frame.columns == SCHEMA.names
    assert frame.count() == 20 + 4 + 1 + 1
    sql = table["x"].explain(np.s_[4:7]).predicate.to_sql()
    found = frame.where(sql)
    assert sorted(r.lo.d0 for r in found.select("lo").collect()) == [4, 6]
    assert len(found.inputFiles()) == 1
    assert len(frame.inputFiles()) == 5
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters" in plan
    assert "d0" in plan.split("PushedFilters")[1]


@pytest.mark.parametrize(
    "statements",
    [
        ["OPTIMIZE delta.`{0}`", "DELETE FROM delta.`{0}` WHERE id = 'y'"],
        pytest.param(["OPTIMIZE delta.`{0}` ZORDER BY (seq)"], marks=pytest.mark.soak),
    ],
    ids=["OPTIMIZE, DELETE", "ZORDER"],
)
def test_we_read_what_spark_rewrote(spark, table, x, statements):
    for statement in statements:
        spark.sql(statement.format(table.uri))
        fresh = tl.open(table.uri)
        np.testing.assert_array_equal(fresh["x"][:], x)
        np.testing.assert_array_equal(fresh["x"][13:29:3, ::-1, 2], x[13:29:3, ::-1, 2])
        assert ("y" in fresh) == ("DELETE" not in statement)
    ref = fresh["x"]
    ref[5] = 0
    x[5] = 0
    fresh.write("x", x[:2], mode="append")
    np.testing.assert_array_equal(tl.open(table.uri)["x"][:], np.concatenate([x, x[:2]]))
    snapshot = Snapshot.open(Storage(table.uri))
    assert not snapshot.reader_features, "the protocol stays what it was"


def test_rows_that_spark_rewrote_keep_their_shape(spark, tmp_path):
    """The table's properties reach every write of the JVM: small row groups, no statistics of payloads."""
    lake = tl.open(tmp_path / "lake")
    x = np.random.default_rng(0).integers(0, 256, (64, 256, 256), np.uint8)
    for i in range(0, 64, 32):
        lake.write("x", x[i : i + 32], mode="append", block_shape=(2, 256, 256) if not i else None)
    spark.sql(f"OPTIMIZE delta.`{lake.uri}`")
    (path,) = Snapshot.open(Storage(lake.uri)).files.path
    meta = pq.read_metadata(f"{lake.uri}/{path}")
    assert meta.num_row_groups >= 3
    for i in range(meta.num_columns):
        column = meta.row_group(0).column(i)
        if column.path_in_schema == "values":
            assert not column.is_stats_set
    np.testing.assert_array_equal(tl.open(lake.uri)["x"][30:35], x[30:35])


def test_deletion_vectors_are_honoured(spark, tmp_path, x):
    path = str(tmp_path / "dv")
    columns = spark.createDataFrame([], _ddl())
    columns.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    lake = tl.open(path)
    lake.write("x", x, block_shape=(2, 64, 8))
    lake.write("y", x[:4])
    assert "deletionVectors" in Snapshot.open(Storage(path)).reader_features
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 'x' AND lo.d0 = 8")
    assert Snapshot.open(Storage(path)).deletions, "the row is marked, not rewritten"
    with pytest.raises(tl.CorruptDataError, match="verify=False"):
        tl.open(path)["x"][:]
    want = x.copy()
    want[8:10] = 0
    got = tl.open(path, verify=False)["x"]
    np.testing.assert_array_equal(got[:], want)
    np.testing.assert_array_equal(got[7:11], want[7:11])
    frame = spark.read.format("tensor").option("id", "x").option("slice", "8:10").load(path)
    assert frame.count() == 0 or sum(sum(r.tensor.data) for r in frame.collect()) == 0
    np.testing.assert_array_equal(lake["y"][:], x[:4])


def _ddl():
    corner = "struct<" + ",".join(f"d{k}: bigint" for k in range(8)) + ">"
    kinds = {"lo": corner, "hi": corner, "shape": "array<bigint>", "block_shape": "array<bigint>"}
    for name in ("seq", "nnz", "crc"):
        kinds[name] = "bigint"
    for name in ("index", "values"):
        kinds[name] = "binary"
    return ", ".join(f"`{n}` {kinds.get(n, 'string')}" for n in SCHEMA.names)


@pytest.mark.soak  # test_interop has columns that MERGE and UPDATE fill
def test_columns_that_users_add_are_kept(spark, table, x):
    spark.sql(f"ALTER TABLE delta.`{table.uri}` ADD COLUMNS (owner string)")
    spark.sql(f"UPDATE delta.`{table.uri}` SET owner = 'me' WHERE id = 'x'")
    ref = tl.open(table.uri)["x"]
    np.testing.assert_array_equal(ref[:], x)
    ref[5] = 1
    x[5] = 1
    np.testing.assert_array_equal(tl.open(table.uri)["x"][:], x)
    frame = spark.read.format("delta").load(table.uri).where("id = 'x' and nnz > 0")
    assert frame.where("owner = 'me'").count() == 20
