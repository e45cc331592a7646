"""Changes of a dataset beside Spark's: files of its own, deletion vectors, columns that it adds, updates of one sample."""

import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs
import pytest
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.datasets.changes import rewriting
from tensorlake_spark.delta.log.commit import commit
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot


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


def removed_vectors(ds, version):
    """The deletion vectors that one commit of a dataset takes out with their files."""
    lines = Path(ds.uri, f"_delta_log/{version:020}.json").read_text().splitlines()
    said = [json.loads(line) for line in lines]
    return [one["remove"].get("deletionVector") for one in said if "remove" in one]


@pytest.fixture
def marked(spark, ds):
    """The dataset after Spark has deleted sample 4 by a deletion vector; files of ten samples each."""
    table = f"delta.`{ds.uri}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM {table} WHERE size = 4")
    assert Snapshot.open(ds._storage, kind=SAMPLES).deletions
    return ds


def rows_of_spark(spark, ds, column="size"):
    rows = spark.read.format("delta").load(ds.uri).select("sid", column).collect()
    assert len(rows) == len({row.sid for row in rows})
    return {row.sid: row[column] for row in rows}


def test_samples_beside_deletion_vectors_are_updated_and_deleted(spark, marked):
    ds = marked
    sizes = {n: n for n in range(20) if n != 4}
    with pytest.raises(tl.ConcurrentWriteError, match=r"changed sample 4: .* no longer has it"):
        ds.delete([4])
    assert ds.update(5, {"size": 50}) == 1  # computed from the version before Spark's deletion
    (vector,) = removed_vectors(ds, ds.version)
    assert {"storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"} <= vector.keys()
    sizes[5] = 50
    expect(ds, sizes)
    assert rows_of_spark(spark, ds) == sizes
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE size IN (6, 16)")
    assert len(Snapshot.open(ds._storage, kind=SAMPLES).deletions) == 2
    ds.refresh()
    assert ds.delete("size = 7") == 1
    ds["size"][-1] = 190
    for sid in (6, 16, 7):
        del sizes[sid]
    sizes[19] = 190
    for found in (ds, tl.dataset(ds.uri)):
        expect(found, sizes)
    assert rows_of_spark(spark, ds) == sizes
    ds.extend({"size": [20], "group/name": ["n20"], "raw": [np.full((2, 3, 3), 20, np.uint8)]})
    expect(ds, sizes | {20: 20})
    assert ds.check(deep=True).ok
    assert len(tl.dataset(ds.uri, version=3)) == 20


def test_rows_that_are_marked_while_a_change_is_computed_stay_deleted(spark, marked, monkeypatch):
    ds = marked
    ds.refresh()
    ours = iter([f"DELETE FROM delta.`{ds.uri}` WHERE size = 8"])

    def commit_after_spark(storage, change):
        for statement in ours:
            spark.sql(statement)
        return commit(storage, change)

    monkeypatch.setattr(rewriting, "commit", commit_after_spark)
    files = len(ds.stored.files)
    ds.update(5, {"size": 50})
    expect(ds, {n: n for n in range(20) if n not in (4, 8)} | {5: 50})
    assert len(ds.stored.files) == files
    ours = iter([f"DELETE FROM delta.`{ds.uri}` WHERE size = 9"])
    with pytest.raises(tl.ConcurrentWriteError, match="changed sample 9"):
        ds.update(9, {"size": 90})
    ds.refresh()
    assert 9 not in ds.sids


def test_deletion_vectors_are_found_behind_a_checkpoint(spark, marked):
    ds = marked
    ds.refresh()
    for number in range(12):
        ds.update(15, {"size": number})
    assert [*Path(ds.uri, "_delta_log").glob("*.checkpoint.parquet")]
    ds.update(5, {"size": 50})
    assert removed_vectors(ds, ds.version) != [None]
    sizes = {n: n for n in range(20) if n != 4} | {15: 11, 5: 50}
    expect(tl.dataset(ds.uri), sizes)
    assert rows_of_spark(spark, ds) == sizes


def test_columns_files_and_versions_change_beside_deletion_vectors(spark, marked):
    ds = marked
    ds.refresh()
    sids = [n for n in range(20) if n != 4]
    ds.rename_column("size", "length")
    assert removed_vectors(ds, ds.version) != [None, None]
    assert rows_of_spark(spark, ds, "length") == {n: n for n in sids}
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE length = 11")
    ds.refresh()
    sids.remove(11)
    ds.add_column("flag", "bool", True)
    assert not ds.stored.snapshot.deletions
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE length = 12")
    ds.refresh()
    sids.remove(12)
    before = ds.version
    ds.optimize()
    assert len(ds.stored.files) == 1
    files, optimized = len(tl.dataset(ds.uri, version=before).stored.files), ds.version
    ds.restore(before)
    assert len(ds.stored.files) == files
    assert rows_of_spark(spark, ds, "length") == {n: n for n in sids}
    ds.restore(optimized)
    assert len(ds.stored.files) == 1
    assert rows_of_spark(spark, ds, "length") == {n: n for n in sids}
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE length = 13")
    ds.refresh()
    sids.remove(13)
    ds.rechunk("length DESC")
    assert ds["length"][:].tolist() == sids
    marks = ds.version
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE length = 14")
    ds.restore(marks)
    assert ds["length"][:].tolist() == sids
    assert rows_of_spark(spark, ds, "length") == {n: n for n in sids}
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE length = 14")
    sids.remove(14)
    receipt = ds.purge([13, 15], now=True)
    assert receipt.verified
    sids.remove(15)
    assert ds["length"][:].tolist() == sids
    assert rows_of_spark(spark, ds, "length") == {n: n for n in sids}
    assert ds.check().ok


def test_a_version_with_deletion_vectors_comes_back(spark, marked):
    ds = marked
    ds.refresh()
    table, marks = f"delta.`{ds.uri}`", ds.version
    there = {n: n for n in range(20) if n != 4}
    spark.sql(f"DELETE FROM {table} WHERE size IN (5, 6, 16)")  # other vectors, and one more
    ds.refresh()
    more = ds.version
    ds.restore(marks)
    expect(ds, there)
    assert rows_of_spark(spark, ds) == there
    assert spark.read.format("delta").load(ds.uri).agg({"size": "max"}).first()[0] == 19
    ds.restore(more)
    less = {n: n for n in there if n not in (5, 6, 16)}
    assert rows_of_spark(spark, ds) == less
    ds.delete([7, 17])  # the files are written anew, without vectors
    assert not ds.stored.snapshot.deletions
    ds.restore(marks)
    assert len(ds.stored.snapshot.deletions) == 1
    assert rows_of_spark(spark, ds) == there
    ds.restore(0)
    assert len(ds) == 0
    ds.restore(marks)
    expect(tl.dataset(ds.uri), there)
    spark.sql(f"DELETE FROM {table} WHERE size = 8")
    spark.sql(f"UPDATE {table} SET size = 90 WHERE size = 9")
    ds.refresh()
    assert rows_of_spark(spark, ds) == {k: v for k, v in there.items() if k != 8} | {9: 90}
    ds.restore(marks)
    ds.vacuum(retention_hours=0)
    assert rows_of_spark(spark, ds) == there
    assert ds.check(deep=True).ok


def test_a_version_whose_deletion_vectors_are_gone_is_not_restored(spark, marked):
    ds = marked
    ds.refresh()
    marks = ds.version
    ds.update(5, {"size": 50})
    before = ds.version
    for file in Path(ds.uri).glob("deletion_vector_*.bin"):
        file.unlink()
    forget()
    with pytest.raises(tl.MissingDataError, match=r"deletion vector of version .* not there"):
        ds.restore(marks)
    expect(tl.dataset(ds.uri), {n: n for n in range(20) if n != 4} | {5: 50})
    assert tl.dataset(ds.uri).version == before


def test_a_version_with_deletion_vectors_does_not_come_back_to_a_table_without_the_feature(marked):
    ds = marked
    ds.refresh()
    marks = ds.version
    ds.update(5, {"size": 50})
    lowered = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    Path(ds.uri, f"_delta_log/{ds.version + 1:020}.json").write_text(json.dumps(lowered))
    ds.refresh()
    with pytest.raises(tl.UnsupportedFeatureError, match=r"which was dropped since; RESTORE TABLE"):
        ds.restore(marks)
    expect(tl.dataset(ds.uri), {n: n for n in range(20) if n != 4} | {5: 50})
    ds.restore(2)
    expect(ds, {n: n for n in range(20)})


def test_columns_that_are_kept_apart_are_updated_beside_deletion_vectors(spark, tmp_path):
    ds = tl.dataset(tmp_path / "apart", {"size": "int32", "raw": tl.types.Image("raw", apart=True)})
    ds.extend({"size": range(6), "raw": [np.full((2, 3, 3), n, np.uint8) for n in range(6)]})
    table = f"delta.`{ds.uri}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM {table} WHERE size = 2")
    ds.refresh()
    ds["raw"][3] = np.full((2, 3, 3), 40, np.uint8)
    ds.update([1, 5], {"size": [10, 50], "raw": [None, None]})
    assert [None if x is None else int(x[0, 0, 0]) for x in ds["raw"][:]] == [0, None, 3, 40, None]
    assert rows_of_spark(spark, ds) == {0: 0, 1: 10, 3: 3, 4: 4, 5: 50}


def test_in_an_object_store_samples_beside_deletion_vectors_change_as_on_a_disk(
    spark, marked, s3, tmp_path
):
    """The log is brought back, for Spark to say what it means."""
    place = f"bucket/{uuid.uuid4()}"
    there, here = s3.filesystem(), pafs.LocalFileSystem()
    pafs.copy_files(marked.uri, place, source_filesystem=here, destination_filesystem=there)
    ds = tl.dataset(f"s3://{place}", storage_options=s3.options)
    sizes = {n: n for n in range(20) if n != 4}
    ds.update(5, {"size": 1})
    ds.update(15, {"size": 2})
    ds.delete(6)
    sizes |= {5: 1, 15: 2}
    del sizes[6]
    expect(ds, sizes)
    pafs.copy_files(
        place, str(tmp_path / "back"), source_filesystem=there, destination_filesystem=here
    )
    back = tl.dataset(tmp_path / "back", create=False)
    assert rows_of_spark(spark, back) == sizes
    assert len(removed_vectors(back, back.version - 2)) == 1
    assert removed_vectors(back, back.version - 2) != [None]
    ds.restore(2)
    expect(ds, {n: n for n in range(20)})
    ds.restore(4)
    sizes = {n: n for n in range(20) if n != 4}
    expect(ds, sizes)
    assert ds.stored.snapshot.deletions
    again = tmp_path / "again"
    pafs.copy_files(place, str(again), source_filesystem=there, destination_filesystem=here)
    assert rows_of_spark(spark, tl.dataset(again, create=False)) == sizes


def test_restoring_other_columns_in_an_object_store_beside_deletion_vectors(marked, s3):
    place = f"bucket/{uuid.uuid4()}"
    pafs.copy_files(
        marked.uri,
        place,
        source_filesystem=pafs.LocalFileSystem(),
        destination_filesystem=s3.filesystem(),
    )
    ds = tl.dataset(f"s3://{place}", storage_options=s3.options)
    ds.add_column("flag", "bool", True)
    ds.restore(2)
    expect(ds, {n: n for n in range(20)})
    assert "flag" not in ds.schema


def test_the_change_data_feed_of_our_changes_is_read(spark, ds):
    """It shows a file that is written anew as rows that leave and rows that come."""
    spark.sql(f"ALTER TABLE delta.`{ds.uri}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    ds.refresh()
    first = ds.version + 1
    ds.update([3], {"size": 70})
    ds.delete([4])
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    rows = feed.option("startingVersion", first).load(ds.uri).collect()
    left = sum(1 if row._change_type == "insert" else -1 for row in rows)
    assert {row._change_type for row in rows} == {"insert", "delete"}
    assert left == -1
    third = [row for row in rows if row.sid == 3 and row._commit_version == first]
    assert {row._change_type: row.size for row in third} == {"delete": 3, "insert": 70}
