"""A dataset that delta-spark changes by its own statements, read by plain Python afterwards."""

import numpy as np
import pytest
from sample_files import image_file
from small_datasets import make_dataset, sample
from whole_datasets import COLUMNS, TILE_BYTES, samples_of

import tensorlake_spark as tl
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.spark import samples, write_samples


def shown(ds):
    """Return the samples of a dataset by their sids, in order."""
    return dict(zip(ds.sids.tolist(), ds, strict=True))


def same(uri, wanted):
    """Hold a dataset against a dict of samples, and return it."""
    ds = tl.dataset(uri, create=False)
    found = shown(ds)
    assert list(found) == sorted(wanted)
    for sid, values in wanted.items():
        for name, value in values.items():
            np.testing.assert_array_equal(found[sid][name], value, err_msg=f"{sid} {name}")
    return ds


def check(uri, wanted):
    """Hold a dataset against a dict of samples, whole and by parts."""
    ds = same(uri, wanted)
    last = max(wanted)
    np.testing.assert_array_equal(ds.sample(last)["mask"], wanted[last]["mask"])
    assert ds["caption"][-1] == wanted[last]["caption"]
    return ds


def test_statements_of_delta_and_calls_of_python_take_turns(spark, tmp_path):
    ds = make_dataset(tmp_path / "ds")
    uri, table = ds.uri, f"delta.`{ds.uri}`"
    inner = tmp_path / "ds" / "_columns" / "image" / "samples-1.parquet"
    inner.parent.mkdir(parents=True)
    inner.write_bytes(b"of an inner table")
    model = shown(ds)
    empty = dict.fromkeys(ds.schema)

    spark.sql(f"INSERT INTO {table} (sid, label, caption) VALUES (50, 1, 'new'), (40, 0, NULL)")
    model[50] = {**empty, "label": 1, "caption": "new"}
    model[40] = {**empty, "label": 0}
    check(uri, model)

    spark.sql(f"UPDATE {table} SET caption = 'changed', label = 0 WHERE sid IN (1, 50)")
    for sid in (1, 50):
        model[sid] |= {"caption": "changed", "label": 0}
    check(uri, model)

    spark.sql(
        f"MERGE INTO {table} t USING (SELECT explode(array(3L, 60L)) AS sid, 'merged' AS caption) s ON t.sid = s.sid "
        "WHEN MATCHED THEN UPDATE SET caption = s.caption "
        "WHEN NOT MATCHED THEN INSERT (sid, caption) VALUES (s.sid, s.caption)"
    )
    model[3]["caption"] = "merged"
    model[60] = {**empty, "caption": "merged"}
    check(uri, model)

    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM {table} WHERE sid IN (2, 7, 60)")
    for sid in (2, 7, 60):
        del model[sid]
    ds = check(uri, model)
    assert any(
        mask is not None for mask in map(ds.stored.snapshot.kept, ds.stored.snapshot.files.path)
    )

    spark.sql(f"OPTIMIZE {table}")
    ds = check(uri, model)
    assert len(ds.stored.files) == 1

    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    check(uri, model)
    assert inner.read_bytes() == b"of an inner table"
    assert len([*(tmp_path / "ds").glob("*.parquet")]) == 1

    frame = samples(spark, uri, ["caption"]).collect()
    assert {row.sid: row.caption for row in frame} == {k: v["caption"] for k, v in model.items()}


def test_statements_of_delta_leave_tiles_and_apart_columns_as_they_are(spark, tmp_path):
    ds = tl.dataset(tmp_path / "ds", COLUMNS, tile_bytes=TILE_BYTES)
    jpegs = [image_file("jpeg", seed=number) for number in range(30)]
    for first in (0, 6):
        ds.extend(samples_of(jpegs, range(first, first + 6), seed=first))
    uri, table = ds.uri, f"delta.`{ds.uri}`"
    model = shown(ds)
    empty = dict.fromkeys(ds.schema)

    spark.sql(f"INSERT INTO {table} (sid, label) VALUES (50, 50)")
    model[50] = {**empty, "label": 50}
    spark.sql(
        f"UPDATE {table} SET label = 100 + label WHERE sid IN (0, 4, 9)"
    )  # 0 and 9 have tiles
    for sid in (0, 4, 9):
        model[sid]["label"] += 100
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT explode(array(6L, 60L)) AS sid, 7 AS label) s ON t.sid = s.sid "
        "WHEN MATCHED THEN UPDATE SET label = s.label "
        "WHEN NOT MATCHED THEN INSERT (sid, label) VALUES (s.sid, s.label)"
    )
    model[6]["label"] = 7
    model[60] = {**empty, "label": 7}
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM {table} WHERE sid IN (3, 5, 50)")  # 3 has tiles and no image
    for sid in (3, 5, 50):
        del model[sid]
    same(uri, model)

    spark.sql(f"OPTIMIZE {table}")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    ds = same(uri, model)
    assert ds["scan"][0, 10:20, 5].tolist() == model[0]["scan"][10:20, 5].tolist()
    assert ds.check(deep=True).ok

    ds.update([0, 6], {"scan": [np.ones((80, 90), np.uint8), None], "image": jpegs[20]})
    ds.extend(samples_of(jpegs, [21]))
    model[0]["scan"], model[6]["scan"] = np.ones((80, 90), np.uint8), None
    model[0]["image"] = model[6]["image"] = ds["image"][0]
    model[61] = ds[-1]
    spark.sql(f"UPDATE {table} SET training.name = 'last' WHERE sid IN (0, 61)")
    model[0]["training/name"] = model[61]["training/name"] = "last"
    same(uri, model)
    ds.refresh()
    ds.optimize()
    ds.vacuum(0)
    assert same(uri, model).check(deep=True).ok
    assert ds["image"].encoded(0) == jpegs[20]


def test_python_goes_on_with_what_delta_wrote(spark, tmp_path):
    ds = make_dataset(tmp_path / "ds")
    model = shown(ds)
    spark.sql(f"UPDATE delta.`{ds.uri}` SET label = 1 - label WHERE sid < 3")
    for sid in range(3):
        model[sid]["label"] = 1 - model[sid]["label"]
    ds = tl.dataset(ds.uri)
    ds.extend([sample(20), sample(21)])
    assert ds.sids.tolist() == [*range(14)]
    assert [int(label) for label in ds["label"][:12]] == [model[sid]["label"] for sid in range(12)]


def test_numbers_that_delta_gave_are_not_given_again(spark, tmp_path):
    ds = make_dataset(tmp_path / "ds", 2)
    spark.sql(f"INSERT INTO delta.`{ds.uri}` (sid, label) VALUES (2, 1), (7, 0)")
    ds = tl.dataset(ds.uri)
    ds.append(sample(5))
    assert ds.sids.tolist() == [0, 1, 2, 7, 8]
    write_samples(spark.createDataFrame([("cat",)], "label string").coalesce(1), ds.uri)
    ds.refresh()
    assert ds.sids.tolist() == [0, 1, 2, 7, 8, 9]
    spark.sql(f"INSERT INTO delta.`{ds.uri}` (sid, label) VALUES ({2**63 - 1}, 1)")
    ds.refresh()
    with pytest.raises(CorruptDataError, match=f"sid {2**63 - 1}"):
        ds.append(sample(6))


def test_numbers_that_break_the_rules_are_named(spark, tmp_path):
    ds = make_dataset(tmp_path / "ds")
    with pytest.raises(Exception, match="sid is not specified"):
        spark.sql(f"INSERT INTO delta.`{ds.uri}` (label) VALUES (1)")
    spark.sql(f"INSERT INTO delta.`{ds.uri}` (sid, label) VALUES (3, 1)")
    ds = tl.dataset(ds.uri)
    with pytest.raises(CorruptDataError, match="sid 3 is there 2 times"):
        ds[0]
    with pytest.raises(CorruptDataError, match="sid 3 is there 2 times"):
        ds.sample(5)
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE sid = 3 AND caption IS NULL AND image IS NULL")
    ds = tl.dataset(ds.uri)
    spark.sql(f"ALTER TABLE delta.`{ds.uri}` ALTER COLUMN sid DROP NOT NULL")
    spark.sql(f"INSERT INTO delta.`{ds.uri}` (sid, label) VALUES (NULL, 1)")
    with pytest.raises(CorruptDataError, match="have no sid"):
        tl.dataset(ds.uri)[0]
    spark.sql(f"DELETE FROM delta.`{ds.uri}` WHERE sid IS NULL")
    assert tl.dataset(ds.uri).sids.tolist() == list(range(12))
