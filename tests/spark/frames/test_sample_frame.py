"""Datasets as DataFrames, beside what plain Python reads of them."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from small_datasets import SIZES, make_dataset

import tensorlake_spark as tl
from tensorlake_spark.errors import CorruptDataError, InvalidOptionError, TableNotFoundError
from tensorlake_spark.spark import plain_errors, samples
from tensorlake_spark.spark.source.schemas import TENSOR, tensors_of


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    return make_dataset(tmp_path_factory.mktemp("samples") / "ds")


def arrays(table, name):
    """Return a column of tensors by sid, None for null."""
    column = table.column(name.split("/")[0])
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    for part in name.split("/")[1:]:
        column = column.field(part)
    sids = table.column("sid").to_pylist()
    return {
        sid: next(tensors_of(column.slice(row, 1))) if column[row].is_valid else None
        for row, sid in enumerate(sids)
    }


def test_every_column_is_what_python_reads(spark, ds):
    frame = samples(spark, ds.uri)
    assert frame.columns == ["sid", "image", "mask", "label", "caption", "training"]
    assert frame.schema["image"].dataType == TENSOR
    table = frame.toArrow()
    assert sorted(table.column("sid").to_pylist()) == ds.sids.tolist()
    for name in ("image", "mask", "training/boxes", "training/vector"):
        for sid, found in arrays(table, name).items():
            wanted = ds.sample(sid)[name]
            if wanted is None:
                assert found is None
            else:
                np.testing.assert_array_equal(found, wanted)
                assert found.dtype == wanted.dtype
    rows = dict(zip(table["sid"].to_pylist(), table["label"].to_pylist(), strict=True))
    assert [rows[sid] for sid in ds.sids.tolist()] == ds["label"][:].tolist()
    rows = dict(zip(table["sid"].to_pylist(), table["caption"].to_pylist(), strict=True))
    assert [rows[sid] for sid in ds.sids.tolist()] == ds["caption"][:]


@pytest.mark.parametrize("how", ["created", "added"])
def test_spark_opens_a_dataset_with_times_without_a_zone(spark, tmp_path, how):
    local, time = {"local": "timestamp_ntz"}, dt.datetime(2020, 1, 2, 3, 4, 5)
    ds = tl.dataset(tmp_path, {"n": "int32", **(local if how == "created" else {})})
    ds.extend({"n": [1]})
    if how == "added":
        ds.add_column("local", "timestamp_ntz")
    ds["local"][0] = time
    assert [(row.n, row.local) for row in samples(spark, tmp_path).collect()] == [(1, time)]


def test_columns_conditions_and_versions(spark, ds):
    frame = samples(
        spark,
        ds.uri,
        ["label", "training"],
        where="image.height > 4 AND label = 'dog' AND training.vector.shape IS NOT NULL",
    )
    wanted = [n for n, (height, _) in enumerate(SIZES) if height > 4 and n % 2 == 1]
    assert sorted(row.sid for row in frame.collect()) == wanted
    assert frame.schema["training"].dataType.names == ["boxes", "vector"]
    before = samples(spark, ds.uri, ["label"], version=ds.version)
    later = tl.dataset(ds.uri)
    later.append({"label": "cat"})
    assert before.count() == len(SIZES)
    assert samples(spark, ds.uri, ["label"]).count() == len(SIZES) + 1
    assert samples(spark, ds.uri, ["training/boxes"], version=ds.version).columns == [
        "sid",
        "training",
    ]


def test_what_nobody_uses_is_neither_read_nor_decoded(spark, ds):
    frame = samples(spark, ds.uri).where("label = 1").select("sid", "label")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ArrowEvalPython" not in plan
    assert "data:binary" not in plan
    assert "PushedFilters: [IsNotNull(label), EqualTo(label,1)]" in plan


def test_a_bad_sample_is_named_or_null(spark, ds, tmp_path):
    broken = make_dataset(tmp_path / "ds")
    spark.sql(
        f"UPDATE delta.`{broken.uri}` SET image.data = X'FFD8FF00' , image.crc = null WHERE sid = 3"
    )
    told = "column 'image', the sample with sid 3"
    with pytest.raises(CorruptDataError, match=told), plain_errors():
        samples(spark, broken.uri, ["image"]).toArrow()
    found = arrays(samples(spark, broken.uri, ["image"], on_error="null").toArrow(), "image")
    assert [sid for sid, array in found.items() if array is None] == [3, 5]


def test_mistakes_are_named(spark, ds, tmp_path):
    with pytest.raises(InvalidOptionError, match=r"no column 'lable'.*'label'.*its columns are "):
        samples(spark, ds.uri, ["lable"])
    with pytest.raises(InvalidOptionError, match="no column 'lable'"):
        samples(spark, ds.uri, where="lable = 1")
    with pytest.raises(InvalidOptionError, match="where="):
        samples(spark, ds.uri, where="label =")
    with pytest.raises(InvalidOptionError, match="on_error='skip'"):
        samples(spark, ds.uri, on_error="skip")
    with pytest.raises(InvalidOptionError, match="columns is of type str"):
        samples(spark, ds.uri, "label")
    with pytest.raises(TableNotFoundError):
        samples(spark, str(tmp_path / "none"))


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_delta_reads_a_dataset_by_itself(spark, ds, vectorized):
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        frame = spark.read.format("delta").load(ds.uri)
        assert frame.columns == ["sid", "image", "mask", "label", "caption", "training"]
        rows = {row.sid: row for row in frame.where("sid < 100").collect()}
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert sorted(rows) == tl.dataset(ds.uri).sids.tolist()
    native = tl.dataset(ds.uri, version=ds.version)
    for sid, image, label, vector in zip(
        native.sids.tolist(),
        native.to_arrow(["image"]).column("image").to_pylist(),
        native["label"][:].tolist(),
        native.to_arrow(["training/vector"]).column("training").to_pylist(),
        strict=True,
    ):
        found = rows[sid].asDict(recursive=True)
        assert found["label"] == label
        assert found["image"] == (
            None if image is None else {**image, "data": bytearray(image["data"])}
        )
        assert bytes(found["training"]["vector"]["data"]) == vector["vector"]["data"]
    height = spark.sql(f"SELECT max(image.height) FROM delta.`{ds.uri}`").first()[0]
    assert height == max(h for n, (h, _) in enumerate(SIZES) if n != 5)
