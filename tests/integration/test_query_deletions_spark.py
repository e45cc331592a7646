"""Queries on tables that Spark changed: rows that deletion vectors take away are gone."""

import numpy as np
import pytest
from deltalake import DeltaTable

import tensorlake_spark as tl
from tensorlake_spark import types


@pytest.fixture
def ds(spark, tmp_path):
    ds = tl.dataset(str(tmp_path / "ds"), {"n": "int32", "x": types.Tensor("int64", (None,))})
    for part in (range(10), range(10, 20)):
        ds.extend({"n": part, "x": [np.arange(i) for i in part]})
    table = f"delta.`{ds.uri}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM {table} WHERE n IN (3, 4, 15)")
    ds.refresh()
    return ds


def test_deleted_samples_are_in_no_query(ds):
    assert ds.stored.snapshot.deletions
    left = [n for n in range(20) if n not in (3, 4, 15)]
    assert ds.query("SELECT n FROM dataset").sids.tolist() == left
    assert ds.query("SELECT sum(n) AS s FROM dataset")[0]["s"] == sum(left)
    view = ds.query("SELECT x FROM dataset WHERE array_sum(x) > 5 AND n < 17")
    assert view.sids.tolist() == [n for n in left if n * (n - 1) / 2 > 5 and n < 17]
    assert [len(x) for x in view["x"]] == view.sids.tolist()
    assert ds.query("SELECT n FROM dataset VERSION 2").sids.tolist() == [*range(20)]
    assert ds.query("SELECT n FROM dataset WHERE n = 2 EXPAND BY 0, 2").sids.tolist() == [2, 5, 6]


def test_deletion_vectors_of_plain_tables(spark, tmp_path):
    place = str(tmp_path / "plain")
    spark.range(10).write.format("delta").option("delta.enableDeletionVectors", "true").save(place)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE id IN (2, 7)")
    assert "deletionVectors" in DeltaTable(place).protocol().reader_features
    view = tl.query("SELECT id FROM t ORDER BY id", t=place)
    assert view["id"].tolist() == [0, 1, 3, 4, 5, 6, 8, 9]
