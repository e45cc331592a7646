"""Changes of a dataset beside Spark's: files of its own, deletion vectors, columns that it adds, updates of one sample."""

import numpy as np
import pytest

import tensorlake_spark as tl


@pytest.fixture
def ds(tmp_path, spark):
    found = tl.dataset(
        tmp_path / "ds", {"size": "int32", "group/name": "string", "raw": tl.types.Image("raw")}
    )
    for start in (0, 10):
        numbers = np.arange(start, start + 10)
        found.extend(
            {
                "size": numbers,
                "group/name": [f"n{n}" for n in numbers],
                "raw": [np.full((2, 3, 3), n, np.uint8) for n in numbers],
            }
        )
    return found


def expect(ds, sizes):
    assert dict(zip(ds.sids.tolist(), ds["size"][:].tolist(), strict=True)) == sizes
    for sid, name, raw in zip(ds.sids.tolist(), ds["group/name"][:], ds["raw"][:], strict=True):
        assert name == f"n{sid}"
        assert raw.tolist() == np.full((2, 3, 3), sid).tolist()


def test_conditions_are_those_of_spark(spark, ds):
    ds["size"][3] = None
    frame = spark.read.format("delta").load(ds.uri)
    for where in (
        "size > 4 AND NOT group.name LIKE 'n1%'",
        "size NOT IN (1, 2) OR raw.height IS NULL",
        "size % 3 = 1 AND raw.width BETWEEN 3 AND 4",
        "size <> 5 AND size / 2 >= 2.5",
        "NOT (size = 4 OR size IS NULL)",
    ):
        wanted = sorted(row.sid for row in frame.where(where).select("sid").collect())
        assert ds.sids[ds.positions_where(where)].tolist() == wanted, where
        assert wanted


def test_files_that_spark_has_written_are_changed_as_ours(spark, ds):
    spark.sql(f"UPDATE delta.`{ds.uri}` SET size = size + 100 WHERE size % 4 = 0")
    with pytest.raises(tl.ConcurrentWriteError, match="changed sample 4: "):
        ds.update([3, 4], {"size": 1})
    sizes = {n: n + 100 * (n % 4 == 0) for n in range(20)}
    ds.update([3, 15], {"size": 7})
    expect(ds, sizes | {3: 7, 15: 7})
    spark.sql(f"OPTIMIZE delta.`{ds.uri}`")
    ds.update([5], {"size": 8})
    expect(ds, sizes | {3: 7, 15: 7, 5: 8})
    ds.delete("size = 7")
    for sid in (3, 7, 15):
        del sizes[sid]
    expect(ds, sizes | {5: 8})
    rows = spark.read.format("delta").load(ds.uri).select("sid", "size").collect()
    assert {row.sid: row.size for row in rows} == sizes | {5: 8}


def test_a_column_that_spark_adds_is_kept(spark, ds):
    spark.sql(f"ALTER TABLE delta.`{ds.uri}` ADD COLUMNS (note string, twice decimal(9, 2))")
    spark.sql(f"UPDATE delta.`{ds.uri}` SET note = 'big', twice = 2 * size WHERE size > 17")
    ds.refresh()
    ds.update([18], {"size": 5})
    ds.add_column("group/flag", "bool", [True] * 20)
    ds.rename_column("size", "length")
    rows = spark.read.format("delta").load(ds.uri).where("note = 'big'").collect()
    assert [(row.sid, row.length, str(row.twice), row.group.flag) for row in sorted(rows)] == [
        (18, 5, "36.00", True),
        (19, 19, "38.00", True),
    ]
    assert ds.positions_where("note = 'big' AND twice > 37").tolist() == [19]


def test_deletion_vectors_are_honoured_and_their_files_not_written_again(spark, ds):
    spark.sql(
        f"ALTER TABLE delta.`{ds.uri}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)"
    )
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE size = 4")
    old = tl.dataset(ds.uri, version=2)
    with pytest.raises(tl.ConcurrentWriteError, match=r"changed sample 4: .* no longer has it"):
        ds.delete([4])
    ds.refresh()
    sizes = {n: n for n in range(20) if n != 4}
    expect(ds, sizes)
    assert ds.positions_where("size BETWEEN 3 AND 5").tolist() == [3, 4]
    for change in (
        lambda: ds.update(5, {"size": 1}),
        lambda: ds.delete(5),
        lambda: ds.drop_column("raw"),
    ):
        with pytest.raises(tl.UnsupportedFeatureError, match="REORG TABLE"):
            change()
    ds.update(15, {"size": 1})
    expect(ds, sizes | {15: 1})
    spark.sql(f"REORG TABLE delta.`{ds.uri}` APPLY (PURGE)")
    ds.update(5, {"size": 2})
    expect(ds, sizes | {15: 1, 5: 2})
    ds.rename_column("size", "length")
    assert ds["length"][:].tolist() == [*(sizes | {15: 1, 5: 2}).values()]
    assert len(old) == 20
