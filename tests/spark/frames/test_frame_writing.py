"""DataFrames to datasets by executors, read again by plain Python."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as f
from races import before_call
from small_datasets import COLUMNS, SIZES, make_dataset, picture

import tensorlake_spark as tl
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    FormatError,
    InvalidOptionError,
    InvalidSampleError,
    InvalidSampleTypeError,
    TensorLakeError,
    UnsupportedDtypeError,
)
from tensorlake_spark.spark import samples, write_samples
from tensorlake_spark.spark.frames import frame_writing, partition_writing
from tensorlake_spark.spark.frames.partition_writing import PartitionWriting
from tensorlake_spark.spark.functions import image_decode
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type, tensors_of

SCHEMA = {"image": tl.types.Image("png"), "label": tl.types.ClassLabel(["cat", "dog"])}


def frame_of(spark, count, first=0, partitions=3):
    rows = [(bytearray(picture(n)), ("cat", "dog")[n % 2]) for n in range(first, first + count)]
    return spark.createDataFrame(rows, "image binary, label string").repartition(partitions)


def files_in(uri):
    return sorted(uri.glob("*.parquet"))


def test_a_dataframe_becomes_samples(spark, tmp_path):
    uri = tmp_path / "ds"
    version = write_samples(frame_of(spark, 10), str(uri), SCHEMA)
    ds = tl.dataset(str(uri), create=False)
    assert ds.version == version
    assert len({*ds.sids.tolist()}) == len(ds) == 10
    found = sorted(image.tobytes() for image in ds["image"][:])
    other = tl.dataset(str(tmp_path / "other"), SCHEMA)
    other.extend([{"image": picture(n), "label": n % 2} for n in range(10)])
    assert found == sorted(image.tobytes() for image in other["image"][:])
    assert sorted(ds["label"][:].tolist()) == [0] * 5 + [1] * 5
    ds.append({"image": picture(3), "label": "dog"})
    assert ds.sids[-1] == ds.sids[-2] + 1  # numbers that were not needed went back
    write_samples(frame_of(spark, 4, partitions=1), str(uri))
    ds = tl.dataset(str(uri))
    assert len({*ds.sids.tolist()}) == 15
    assert (np.diff(ds.sids) > 0).all()
    assert len(files_in(uri)) == len(ds.stored.files)


def test_what_was_read_is_written_again_whatever_its_form(spark, tmp_path):
    ds = make_dataset(tmp_path / "ds")
    stored = spark.read.format("delta").load(ds.uri).drop("sid").orderBy("caption")
    write_samples(stored, str(tmp_path / "stored"))  # the schema is that of the columns
    decoded = samples(spark, ds.uri).drop("sid")
    write_samples(decoded, str(tmp_path / "decoded"), COLUMNS)
    for name in ("stored", "decoded"):
        copy = tl.dataset(str(tmp_path / name))
        assert copy.schema == ds.schema
        wanted = dict(enumerate(ds))
        found = [
            next(
                n
                for n, sample in wanted.items()
                if np.array_equal(sample["training/vector"], one["training/vector"])
            )
            for one in copy
        ]
        assert sorted(found) == [*range(len(SIZES))]
        for n, one in zip(found, copy, strict=True):
            for column, value in one.items():
                np.testing.assert_array_equal(value, wanted[n][column])


def test_columns_may_be_flat_or_missing(spark, tmp_path):
    frame = spark.range(3).select(
        f.concat(f.lit("x"), "id").alias("caption"),
        f.array(f.array(f.lit(0.0), f.lit(0.0), f.lit(1.0), f.lit(1.0))).alias("training/boxes"),
    )
    write_samples(frame, str(tmp_path / "ds"), COLUMNS)
    ds = tl.dataset(str(tmp_path / "ds"))
    assert ds["image"][:] == [None] * 3
    assert ds["training/boxes"][0].tolist() == [[0, 0, 1, 1]]


def test_a_job_that_fails_leaves_no_file(spark, tmp_path):
    uri = tmp_path / "ds"
    write_samples(frame_of(spark, 2), str(uri), SCHEMA)
    before = files_in(uri)
    bad = frame_of(spark, 6).union(
        spark.createDataFrame([(bytearray(b"junk"), "cat")], "image binary, label string")
    )
    with pytest.raises(InvalidSampleError, match=r"partition \d .*column 'image', sample 0"):
        write_samples(bad, str(uri))
    assert files_in(uri) == before
    assert len(tl.dataset(str(uri))) == 2
    with pytest.raises(InvalidSampleError, match="'bird'"):
        write_samples(frame_of(spark, 2).withColumn("label", f.lit("bird")), str(uri))
    assert files_in(uri) == before


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (("float32", [2], b"123"), "has 3 bytes of data; shape (2,) and dtype float32 need 8"),
        ((None, [2], b"12345678"), "a tensor has a null dtype, shape or data"),
        (("flot32", [2], b"12345678"), "'flot32' is not a dtype"),
    ],
)
@pytest.mark.parametrize("kind", [tl.types.Tensor("float32", (2,)), tl.types.Image("png")])
def test_a_damaged_tensor_is_named(tmp_path, bad, says, kind):
    """It was said that others had changed the table."""
    storage = Storage(str(tmp_path / "ds"))
    tl.dataset(storage.uri, {"x": kind})
    snapshot = Snapshot.open(storage, kind=None)
    paths = {"x": ("x",)}
    work = PartitionWriting(storage, snapshot, SampleSchema({"x": kind}), paths, "m-", 0)
    rows = [None, dict(zip(TENSOR.names, bad, strict=True))]
    batch = pa.RecordBatch.from_arrays([pa.array(rows, arrow_type(TENSOR))], ["x"])
    with pytest.raises(InvalidSampleError, match=re.escape(says)) as found:
        work.written(iter([batch]), 3)
    assert str(found.value).startswith("partition 3 of the DataFrame: column 'x', sample 1: ")


def test_links_are_checked_by_executors_too(spark, tmp_path):
    uri = str(tmp_path / "ds")
    tl.dataset(uri, {"photo": tl.types.Link(tl.types.Image("png"))})
    for link, said in (("https://x.org/a.png?sig=S3cret", "'sig'"), ("a.png", "relative path")):
        with pytest.raises(tl.InvalidLinkError, match="column 'photo', sample 0") as error:
            write_samples(spark.createDataFrame([(link,)], "photo string"), uri)
        assert said in str(error.value)
        assert "S3cret" not in str(error.value)
    write_samples(spark.createDataFrame([("s3a://bucket/a.png",)], "photo string"), uri)
    assert tl.dataset(uri).to_arrow()["photo"].to_pylist() == [
        {"url": "s3://bucket/a.png", "size": None, "etag": None}
    ]


def test_a_task_that_is_done_twice_leaves_its_rows_once(spark, tmp_path):
    uri = str(tmp_path / "ds")
    tl.dataset(uri, SCHEMA)

    def twice(work):
        def run(batches):
            held = list(batches)
            list(work(iter(held)))  # an attempt of which Spark takes nothing
            yield from work(iter(held))

        return run

    frame = frame_of(spark, 6)
    made = frame.mapInArrow
    frame.mapInArrow = lambda work, schema: made(twice(work), schema)
    write_samples(frame, uri)
    ds = tl.dataset(uri)
    assert len({*ds.sids.tolist()}) == len(ds) == 6
    assert len(files_in(tmp_path / "ds")) == len(ds.stored.files)


def test_a_batch_is_written_once(spark, tmp_path):
    uri = str(tmp_path / "ds")
    batch = frame_of(spark, 3)
    version = write_samples(batch, uri, SCHEMA, txn_app_id="photos", txn_version=0)
    assert write_samples(batch, uri, txn_app_id="photos", txn_version=0) == version
    assert len(tl.dataset(uri)) == 3
    assert write_samples(batch, uri, txn_app_id="photos", txn_version=1) > version
    assert len(tl.dataset(uri)) == 6
    with pytest.raises(InvalidOptionError, match="go together"):
        write_samples(batch, uri, txn_app_id="photos")
    for name, number in (("dataset/sid", 1), ("photos", "two"), ("", 3), ("photos", -1)):
        with pytest.raises(
            InvalidOptionError, match=r"choose another|takes an integer|is not from 0"
        ):
            write_samples(batch, uri, txn_app_id=name, txn_version=number)


def test_two_runs_of_one_batch_at_the_same_time_add_it_once(spark, tmp_path, monkeypatch):
    uri = str(tmp_path / "ds")
    others = []

    def write():
        return write_samples(frame_of(spark, 3), uri, SCHEMA, txn_app_id="photos", txn_version=0)

    before_call(monkeypatch, frame_writing, "commit_files", lambda: others.append(write()))
    assert [write()] == others
    ds = tl.dataset(uri)
    assert len(ds) == 3
    assert {path.name for path in files_in(tmp_path / "ds")} == {*ds.stored.snapshot.files.path}


def test_a_stream_that_repeats_a_batch_adds_nothing(spark, tmp_path):
    """The query is killed after the commit of a batch, before Spark has noted it, and is started again."""
    uri, source, checkpoint = (str(tmp_path / name) for name in ("ds", "source", "checkpoint"))
    for first in (0, 4):
        frame_of(spark, 4, first, 1).write.mode("append").parquet(source)
    killed = []

    def append(batch, number):
        write_samples(batch, uri, SCHEMA, txn_app_id="photos", txn_version=number)
        if number == 0 and not killed:
            killed.append(number)
            raise RuntimeError("killed")

    def run():
        stream = spark.readStream.schema("image binary, label string")
        stream = stream.option("maxFilesPerTrigger", 1).parquet(source)
        query = stream.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="killed"):
        run()
    run()
    assert killed == [0]
    ds = tl.dataset(uri)
    assert len(ds) == 8
    expected = [
        tl.types.Image("png").decode(SCHEMA["image"].encode([picture(n)], "x"))[0] for n in range(8)
    ]
    assert sorted(i.tobytes() for i in ds["image"][:]) == sorted(i.tobytes() for i in expected)


def test_mistakes_are_named(spark, tmp_path):
    uri = str(tmp_path / "ds")
    frame = frame_of(spark, 1)
    with pytest.raises(InvalidOptionError, match=r"no column 'imge'.*'image'"):
        write_samples(frame.withColumnRenamed("image", "imge"), uri, SCHEMA)
    with pytest.raises(UnsupportedDtypeError, match="column 'm' has the type interval month"):
        write_samples(spark.createDataFrame([], "a int, m interval month"), uri, {"a": "int32"})
    assert not (tmp_path / "ds").exists()
    with pytest.raises(InvalidOptionError, match="give the schema"):
        write_samples(frame.select(image_decode("image").alias("image")), uri)
    write_samples(frame, uri, SCHEMA)
    with pytest.raises(FormatError, match=r"other columns .*: it has no column 'more'; leave out"):
        write_samples(frame, uri, {**SCHEMA, "more": "int64"})
    with pytest.raises(InvalidOptionError, match=r"df\.drop\('sid'\)"):
        write_samples(spark.read.format("delta").load(uri), uri)
    with pytest.raises(InvalidOptionError, match="df is of type list"):
        write_samples([], uri)
    with pytest.raises(TensorLakeError):
        write_samples(frame.limit(0).select(), uri)


def test_numbers_of_long_partitions(monkeypatch, tmp_path):
    """A partition that is longer than a run goes on in its next one; one that is too long is an error."""
    monkeypatch.setattr(partition_writing, "RUN", 4)
    monkeypatch.setattr(partition_writing, "RUNS", 2)
    monkeypatch.setattr(partition_writing, "PARTITIONS", 10)
    storage = Storage(str(tmp_path / "ds"), {})
    schema = SampleSchema({"n": "int64"})
    snapshot = create_samples_table(storage, schema.to_arrow())
    work = partition_writing.PartitionWriting(storage, snapshot, schema, {"n": ("n",)}, "m-", 100)
    batches = [pa.record_batch({"n": [*range(3)]}), pa.record_batch({"n": [*range(3, 7)]})]
    done = work.written(iter(batches), 2)
    (file,) = done.data_files()
    assert json.loads(file.stats)["minValues"]["sid"] == 108
    table = pq.read_table(tmp_path / "ds" / file.path)
    assert table["sid"].to_pylist() == [108, 109, 110, 111, 148, 149, 150]
    assert table["n"].to_pylist() == [*range(7)]
    assert (done.samples, done.end) == (7, 151)
    with pytest.raises(InvalidOptionError, match="more than 8 rows"):
        work.written(iter([pa.record_batch({"n": [*range(9)]})]), 0)
    assert [path.name for path in (tmp_path / "ds").glob("*.parquet")] == [file.path]


def test_python_says_who_takes_a_dataframe(spark, tmp_path):
    frame = spark.range(2)
    with pytest.raises(InvalidSampleTypeError, match=r"spark\.write_samples"):
        tl.dataset(str(tmp_path / "new")).extend(frame)
    ds = tl.dataset(str(tmp_path / "ds"), {"id": "int64"})
    with pytest.raises(InvalidSampleTypeError, match=r"spark\.write_samples"):
        ds.extend(frame)
    ds.extend(frame.toPandas())
    assert ds["id"][:].tolist() == [0, 1]


def test_datasets_on_s3(spark, s3):
    """Options of the store reach executors, and Spark's own reader."""
    uri = "s3://bucket/frames/ds"
    write_samples(frame_of(spark, 4), uri, SCHEMA, storage_options=s3.options)
    found = samples(spark, uri, where="label = 'dog'", storage_options=s3.options).toArrow()
    assert found["label"].to_pylist() == [1, 1]
    ds = tl.dataset(uri, storage_options=s3.options)
    for row, sid in enumerate(found["sid"].to_pylist()):
        (image,) = tensors_of(found["image"].combine_chunks().slice(row, 1))
        np.testing.assert_array_equal(image, ds.sample(sid)["image"])


def test_large_samples_and_apart_columns(spark, tmp_path):
    """Executors write tiles and apart columns too, and read them, also where a task is done twice."""
    columns = {
        "image": tl.types.Image("png", apart=True),
        "scan": tl.types.Tensor("uint8", (None, None)),
        "number": "int64",
    }
    uri = str(tmp_path / "ds")
    tl.dataset(uri, columns, tile_bytes=1000)
    scans = [
        np.random.default_rng(n).integers(0, 256, (20 + 20 * n, 30), np.uint8) for n in range(4)
    ]
    rows = [
        (n, bytearray(picture(n)), ("uint8", [*scan.shape], bytearray(scan.tobytes())))
        for n, scan in enumerate(scans)
    ]
    frame = spark.createDataFrame(
        rows,
        "number bigint, image binary, scan struct<dtype: string, shape: array<bigint>, data: binary>",
    ).repartition(2)
    made = frame.mapInArrow

    def twice(work):
        def run(batches):
            held = list(batches)
            list(work(iter(held)))
            yield from work(iter(held))

        return run

    frame.mapInArrow = lambda work, schema: made(twice(work), schema)
    write_samples(frame, uri)
    write_samples(spark.createDataFrame([(9,)], "number bigint"), uri)
    ds = tl.dataset(uri)
    assert sorted(ds["number"][:].tolist()) == [0, 1, 2, 3, 9]
    assert len([*(tmp_path / "ds" / "_columns" / "image").glob("*.parquet")]) <= 3
    found = samples(spark, uri).toArrow()
    for row in range(5):
        number, sid = found["number"][row].as_py(), found["sid"][row].as_py()
        one = ds.sample(sid)
        assert one["number"] == number
        if number == 9:
            assert one["image"] is None
            assert not found["image"][row].is_valid
            continue
        np.testing.assert_array_equal(one["scan"], scans[number])
        for name in ("image", "scan"):
            (read,) = tensors_of(found[name].combine_chunks().slice(row, 1))
            np.testing.assert_array_equal(read, one[name])
    heights = samples(spark, uri, ["image"]).selectExpr("image.shape[0] AS h").collect()
    assert sorted(row.h for row in heights if row.h) == sorted(SIZES[n][0] for n in range(4))
    tall = samples(spark, uri, ["number"], where=f"image.height > {SIZES[1][0]}").collect()
    assert sorted(row.number for row in tall) == [n for n in range(4) if SIZES[n][0] > SIZES[1][0]]
    with pytest.raises(InvalidSampleError, match="column 'image'"):
        write_samples(frame.union(frame.limit(1).withColumn("image", f.lit(b"junk"))), uri)
    assert len([*(tmp_path / "ds" / "_columns" / "image").glob("*.parquet")]) <= 3


def test_links_to_what_is_no_file_make_no_table(spark, tmp_path):
    frame = spark.createDataFrame([("/a.json",)], "link string")
    with pytest.raises(InvalidOptionError, match="column 'link': a link cannot lead to Json"):
        write_samples(frame, str(tmp_path / "ds"), {"link": tl.types.Link(tl.types.Json())})
    assert not (tmp_path / "ds").exists()
