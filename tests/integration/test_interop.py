"""What Delta's own engine does to a table of ours, and what we read and write then; never a wrong answer."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.spark import functions as tf

SHAPE = (8, 6, 5)
BLOCK = (2, 6, 5)


SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


@pytest.fixture(scope="module", autouse=True)
def _small_tables(spark):
    """Few tasks for few rows, and VACUUM at once."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture(scope="module")
def tensors():
    rng = np.random.default_rng(0)
    x = rng.integers(1, 50, SHAPE).astype("f4")
    return {"x": x, "s": np.where(rng.random(SHAPE) < 0.1, x, 0), "y": x[:2]}


@pytest.fixture
def table(spark, tmp_path, tensors):
    """A dense tensor of two appends, a sparse one, and one more; the name of the table in SQL."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", tensors["x"][:4], block_shape=BLOCK)
    lake.write("x", tensors["x"][4:], mode="append")
    lake.write("s", tl.SparseTensor.from_dense(tensors["s"]), block_shape=(2, 3, 5))
    lake.write("y", tensors["y"])
    return lake.uri


def run(spark, table, *statements):
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{table}`"))


def dense(tensor):
    return tensor.todense() if isinstance(tensor, tl.SparseTensor) else tensor


def check(path, want):
    """Python reads what NumPy has, in whole and in part."""
    lake = tl.open(path)
    assert set(lake) == set(want)
    for name, array in want.items():
        np.testing.assert_array_equal(dense(lake[name][:]), array)
        np.testing.assert_array_equal(dense(lake[name][1::2, -1]), array[1::2, -1])


def check_doors(spark, path, want):
    """So does the data source."""
    check(path, want)
    frame = spark.read.format("tensor").options(id="x", slice="1:7, ::2").load(path)
    got = tf.collect_tensor(frame, want["x"][1:7, ::2].shape, "float32")
    np.testing.assert_array_equal(got, want["x"][1:7, ::2])


def check_plain(spark, path, want):
    """Delta's own reader finds the rows of the newest version, and they hold what was written last."""
    rows = spark.read.format("delta").load(path).where("id IN ('x', 's')")
    blocks = (
        rows.select(tf.tensor_block(f.struct("*")).alias("b")).where("b IS NOT NULL").select("b.*")
    )
    out = {name: np.zeros_like(want[name]) for name in ("x", "s")}
    for block in blocks.collect():
        part = np.frombuffer(block.tensor.data, "<f4").reshape(block.tensor.shape)
        out[block.id][tuple(slice(a, a + n) for a, n in zip(block.lo, part.shape))] += part
    for name, array in out.items():
        np.testing.assert_array_equal(array, want[name])


def go_on(spark, path, tensors):
    """We append, assign and optimize, and Delta's engine reads the rows."""
    lake = tl.open(path)
    x = np.concatenate([tensors["x"], tensors["y"]])
    lake.write("x", tensors["y"], mode="append")
    lake["x"][3] = x[3] = 7
    lake["s"][0] = 0
    s = tensors["s"].copy()
    s[0] = 0
    lake.optimize()
    want = {**tensors, "x": x, "s": s}
    check(path, want)
    check_plain(spark, path, want)


PROPERTY = "ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.{}' = '{}')"

STATEMENTS = {
    "merge with schema evolution, zorder by a corner": (
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 'x' AS id, 'me' AS owner) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET owner = s.owner",
        "OPTIMIZE {t} ZORDER BY (lo.d0, seq)",
    ),
    "zorder, vacuum": ("OPTIMIZE {t} ZORDER BY (lo.d0, seq)", "VACUUM {t} RETAIN 0 HOURS"),
    "update, change data feed, v2 checkpoints": (
        "ALTER TABLE {t} ADD COLUMNS (owner string)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1')",
        "UPDATE {t} SET owner = 'me' WHERE id = 'x'",
    ),
}


SOAK = {"zorder, vacuum": pytest.mark.soak}


@pytest.mark.parametrize("what", [pytest.param(s, marks=SOAK.get(s, ())) for s in STATEMENTS])
def test_we_read_and_go_on_after(spark, table, tensors, what):
    run(spark, table, *STATEMENTS[what])
    check_doors(spark, table, tensors)
    go_on(spark, table, tensors)
    if "owner" in (rows := spark.read.format("delta").load(table)).columns:
        assert rows.where("id = 'x' AND nnz > 0 AND owner = 'me'").count() == 4


def test_rows_that_spark_appends_are_a_tensor(spark, table, tensors):
    """A copy under another name, with a column of the user's own."""
    rows = spark.read.format("delta").load(table).where("id = 'x'")
    copy = rows.withColumn("id", f.lit("copy")).withColumn("note", f.lit("a copy"))
    copy.write.format("delta").mode("append").option("mergeSchema", "true").save(table)
    want = {**tensors, "copy": tensors["x"]}
    check(table, want)
    go_on(spark, table, want)


@pytest.mark.soak  # RESTORE takes ten seconds; test_versions_spark has one
def test_a_table_is_restored(spark, table, tensors):
    lake = tl.open(table)
    version = lake.version
    lake.write("x", tensors["x"] * 2, mode="overwrite")
    lake["s"][:] = 0
    lake.delete("y")
    assert lake["x"][0, 0, 0] == tensors["x"][0, 0, 0] * 2
    run(spark, table, f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
    check(table, tensors)
    np.testing.assert_array_equal(lake["x"][:], tensors["x"])  # also in a lake that was open before
    go_on(spark, table, tensors)


def test_rows_with_deletion_vectors_are_read_and_not_rewritten(spark, table, tensors):
    """MERGE marks rows, and writes them anew elsewhere."""
    tl.open(table).optimize()
    run(
        spark, table, PROPERTY.format("enableDeletionVectors", "true"),
        "MERGE INTO {t} t USING (VALUES ('x'), ('y') AS v(id)) s "
        "ON t.id = s.id AND (s.id = 'y' OR t.lo.d0 = 2) "
        "WHEN MATCHED AND s.id = 'y' THEN DELETE WHEN MATCHED THEN UPDATE SET params = params",
    )  # fmt: skip
    want = {name: tensors[name] for name in ("x", "s")}
    check_doors(spark, table, want)
    lake = tl.open(table)
    assert Snapshot.open(Storage(table)).deletions
    with pytest.raises(tl.UnsupportedFeatureError, match=r"deletion vectors.*REORG TABLE"):
        lake["x"][0] = 0
    lake.write("y", tensors["y"])
    check(table, tensors)
    run(spark, table, "REORG TABLE {t} APPLY (PURGE)")
    go_on(spark, table, tensors)


READ_ONLY = {
    "clustering": ("ALTER TABLE {t} CLUSTER BY (id, seq)", "OPTIMIZE {t}"),
    "rowTracking": (PROPERTY.format("enableRowTracking", "true"), "OPTIMIZE {t}"),
    "inCommitTimestamp": (PROPERTY.format("enableInCommitTimestamps", "true"),),
}


def append_by_spark(spark, table):
    tensor = "struct<dtype: string, shape: array<bigint>, data: binary>"
    frame = spark.createDataFrame([("z", ("uint8", [1], b"1"))], f"id string, tensor {tensor}")
    frame.write.format("tensor").mode("append").save(table)


@pytest.mark.parametrize("feature", READ_ONLY)
def test_tables_that_we_read_and_do_not_write(spark, table, tensors, feature):
    run(spark, table, *READ_ONLY[feature])
    if feature == "clustering":
        check_doors(spark, table, tensors)
        check_plain(spark, table, tensors)
    lake = tl.open(table)
    for change in (
        lambda: lake.write("x", tensors["y"], mode="append"),
        lambda: lake["x"].__setitem__(0, 0),
        lambda: lake.delete("y"),
        lambda: lake.optimize(min_files=1),
        *([lambda: append_by_spark(spark, table)] if feature == "clustering" else []),
    ):
        remedy = "another table" if feature == "clustering" else "DROP FEATURE"
        with pytest.raises(Exception, match=rf"(?s){feature}.*{remedy}") as caught:
            change()
        assert "UnsupportedFeatureError" in repr(caught.value) + str(caught.value)
    check(table, tensors)


def test_tables_that_only_spark_reads(spark, table, tensors, tmp_path):
    """Spark's own reader of Delta follows where we do not."""
    clone = str(tmp_path / "clone")
    run(spark, clone, f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{table}`")
    run(spark, table, PROPERTY.format("columnMapping.mode", "name"))
    for path, text in ((clone, "shallow clone"), (table, "columnMapping")):
        with pytest.raises(
            tl.UnsupportedFeatureError, match=rf"{text}.*spark.read.format\('delta'\)"
        ):
            tl.open(path)["x"]
        with pytest.raises(Exception, match=rf"UnsupportedFeatureError.*{text}"):
            spark.read.format("tensor").option("id", "x").load(path).collect()
        got = tf.collect_tensor(tl.spark.read_tensor(spark, path, "x", "2:, 1"))
        np.testing.assert_array_equal(got, tensors["x"][2:, 1])
    check_plain(spark, table, tensors)


def by_kernel(path):
    import delta_kernel_rust_sharing_wrapper as kernel

    interface = kernel.PythonInterface(path.as_uri())
    scan = kernel.ScanBuilder(kernel.Table(path.as_uri()).snapshot(interface)).build()
    return pa.Table.from_batches(scan.execute(interface))


def by_polars(path):
    import polars

    frame = polars.scan_delta(str(path)).filter(polars.col("seq") >= 0)
    return frame.collect().to_arrow().cast(SCHEMA)


@pytest.mark.parametrize("read", [by_kernel, by_polars])
def test_other_readers_have_our_rows(tmp_path, tensors, read):
    """Neither deltalake nor Spark reads the files."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", tensors["x"], block_shape=BLOCK)
    lake["x"][1] = 0
    lake.write("s", tl.SparseTensor.from_dense(tensors["s"]))
    lake.optimize()
    rows = read(tmp_path / "lake").combine_chunks()
    want = tensors["x"].copy()
    want[1] = 0
    out = np.zeros_like(want)
    from tensorlake_spark.spark.functions.row_functions import block_column

    for block in block_column(rows.to_struct_array().combine_chunks()).to_pylist():
        if block is not None and block["id"] == "x":
            part = np.frombuffer(block["tensor"]["data"], "<f4").reshape(block["tensor"]["shape"])
            out[block["lo"][0] : block["lo"][0] + len(part)] = part
    np.testing.assert_array_equal(out, want)
