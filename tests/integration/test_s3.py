"""The lake on a real S3 server: the same answers, only the objects that are needed, no secret anywhere."""

import multiprocessing
import re
import traceback
import uuid

import numpy as np
import pyarrow.fs as pafs
import pytest
from stored import forget

import tensorlake_spark as tl
from tensorlake_spark.delta.files.footer import footer_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage


@pytest.fixture
def url():
    """A place in the bucket that no other test uses."""
    return f"s3://bucket/{uuid.uuid4()}/a lake"


@pytest.fixture
def lake(s3, url):
    return tl.open(url, storage_options=s3.options)


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(0, 1000, (24, 30, 8)).astype("i4")


def over(road, s3):
    """Return the options of the server for those who take the road to it, and who soon give up."""
    return {**s3.options, "AWS_ENDPOINT_URL": road.endpoint, "max_retries": "2"}


def objects(s3, url):
    """Return the names of a table's data files that are in the bucket."""
    found = s3.filesystem().get_file_info(pafs.FileSelector(url.removeprefix("s3://")))
    return {info.base_name for info in found if info.is_file}


def drop(s3, url, name):
    s3.filesystem().delete_file(f"{url.removeprefix('s3://')}/{name}")


def in_processes(target, *arguments):
    """Call `target` in a process for each tuple of arguments, all at once."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=target, args=args) for args in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0


def everything(error):
    """Return all that a user could see of an error: its traceback, with the errors behind it."""
    return "".join(traceback.format_exception(error)) + repr(error)


def test_written_changed_and_read_back_like_numpy(s3, lake, url, x):
    assert list(lake) == []
    lake.write("x", x, block_shape=(4, 30, 8), axes=("day", "row", "column"))
    lake.write("x", x[:5], mode="append")
    want = np.concatenate([x, x[:5]])
    ref = lake["x"]
    ref[3:20:4, ::-1, 2] = 7
    want[3:20:4, ::-1, 2] = 7
    lake.write("y", x[0].astype("f8"))
    fresh = tl.open(url, storage_options=s3.options)
    np.testing.assert_array_equal(fresh["x"][...], want)
    np.testing.assert_array_equal(fresh["x"][5:25, ::-3, 2:6], want[5:25, ::-3, 2:6])
    np.testing.assert_array_equal(fresh["x"].oindex[[9, 0], :, [1, 1]], want[[9, 0]][:, :, [1, 1]])
    np.testing.assert_array_equal(fresh["x"].isel(day=slice(20, None)), want[20:])
    np.testing.assert_array_equal(tl.open(url, storage_options=s3.options, version=1)["x"][:], x)
    fresh.delete("y")
    assert list(lake) == ["x"]
    old = tl.open(url, storage_options=s3.options, version=4)
    np.testing.assert_array_equal(old["y"][:], x[0])


def test_vacuum_deletes_what_no_version_needs(s3, lake, url, x):
    lake.write("x", x)
    lake.write("x", x[:3], mode="overwrite")
    live = set(Snapshot.open(Storage(url, s3.options)).files.path)
    assert len(objects(s3, url)) == 2
    assert lake.vacuum() == []
    (gone,) = lake.vacuum(0, dry_run=True)
    assert objects(s3, url) == {*live, gone}
    assert lake.vacuum(0) == [gone]
    assert objects(s3, url) == live
    np.testing.assert_array_equal(lake["x"][:], x[:3])
    forget()
    with pytest.raises(tl.MissingDataError, match=gone):
        tl.open(url, storage_options=s3.options, version=1)["x"][:]


@pytest.fixture
def four(lake, x):
    """A tensor in four files, six days in each."""
    for start in range(0, 24, 6):
        block = (3, 30, 8) if start == 0 else None
        lake.write("x", x[start : start + 6], mode="append", block_shape=block)
    return lake["x"]


def test_a_slice_reads_when_all_other_objects_are_gone(s3, four, url, x):
    (needed,) = four.explain(np.s_[7:11]).files
    gone = objects(s3, url) - {needed.path}
    assert len(gone) == 3
    for name in gone:
        drop(s3, url, name)
    forget()
    np.testing.assert_array_equal(four[7:11], x[7:11])
    with pytest.raises(tl.MissingDataError) as caught:
        four[5:7]
    (missing,) = {file for file in gone if file in str(caught.value)}
    assert f"{url}/{missing}" in str(caught.value)


def test_a_slice_asks_the_server_for_its_object_alone(s3, road, four, url, x):
    options = over(road, s3)
    forget()
    ref = tl.open(url, storage_options=options)["x"]
    (needed,) = four.explain(np.s_[7:9]).files
    forget()
    road.requests()
    np.testing.assert_array_equal(ref[7:9], x[7:9])
    asked = road.requests()
    assert {line.split("?")[0].rsplit("/", 1)[-1] for line in asked} == {needed.path}
    assert len(asked) <= 4, "footer and row group, each with its HEAD"
    ref[8]
    assert len(road.requests()) <= 2, "the footer is kept"


def append_some(url, options, name, first, count):
    for i in range(count):
        lake = tl.open(url, storage_options=options)
        lake.write(name, np.full((1, 5), first + i), mode="append")


def test_six_processes_with_three_commits_each_all_land(s3, url):
    """From the creation of the table on, which only one of them can make."""
    in_processes(append_some, *((url, s3.options, f"t{n}", 10 * n, 3) for n in range(6)))
    lake = tl.open(url, storage_options=s3.options)
    assert list(lake) == [f"t{n}" for n in range(6)]
    for n in range(6):
        np.testing.assert_array_equal(lake[f"t{n}"][:, 4], 10 * n + np.arange(3))
    assert lake.version == 18
    assert objects(s3, url) == set(Snapshot.open(Storage(url, s3.options)).files.path)


def test_appends_of_two_processes_to_one_tensor_are_all_kept(s3, lake, url):
    lake.write("x", np.full((1, 5), -1))
    in_processes(append_some, *((url, s3.options, "x", 10 * n, 4) for n in range(2)))
    found = lake["x"][:]
    assert sorted(found[:, 0].tolist()) == [-1, 0, 1, 2, 3, 10, 11, 12, 13]
    assert (found == found[:, :1]).all()


def test_of_two_overwrites_one_wins_and_one_is_told(s3, lake, url):
    lake.write("x", np.zeros(4))

    def slabs():
        yield np.ones(2)
        tl.open(url, storage_options=s3.options).write("x", np.full(3, 7.0), mode="overwrite")
        yield np.ones(2)

    with pytest.raises(tl.ConcurrentWriteError, match="in version 2"):
        lake.write("x", slabs(), mode="overwrite")
    np.testing.assert_array_equal(lake["x"][:], [7, 7, 7])
    assert len(objects(s3, url)) == 2, "the loser's file is gone, the overwritten one waits"


@pytest.mark.parametrize("fault", ["error", "drop"])
def test_a_commit_whose_answer_is_lost_is_found_and_kept(s3, road, lake, url, x, fault):
    """The log has the commit, the client hears of a failure: nothing may be deleted or done twice."""
    lake.write("x", x[:4])
    road.fault(fault)
    far = tl.open(url, storage_options=over(road, s3))
    assert far.write("x", x[4:9], mode="append").shape == (9, 30, 8)
    assert lake.version == 2
    np.testing.assert_array_equal(lake["x"][:], x[:9])


def test_a_commit_whose_outcome_nobody_can_tell_keeps_its_files(s3, road, lake, url, x):
    lake.write("x", x[:4])
    far = tl.open(url, storage_options=over(road, s3))
    road.fault("cut")
    with pytest.raises(tl.StorageError):
        far.write("x", x[4:9], mode="append")
    forget()
    np.testing.assert_array_equal(lake["x"][:], x[:9])


def test_a_commit_that_is_refused_leaves_nothing(s3, road, lake, url, x):
    lake.write("x", x[:4])
    before = objects(s3, url)
    road.fault("refuse")
    far = tl.open(url, storage_options=over(road, s3))
    road.requests()
    with pytest.raises(tl.StorageError, match="AccessDenied"):
        far.write("x", x, mode="overwrite")
    tries = [asked for asked in road.requests() if re.match("PUT .*_delta_log", asked)]
    assert len(tries) == 1, "other writers are not to blame, so it does not try again"
    assert objects(s3, url) == before
    assert lake.version == 1


def test_a_missing_object_is_named(s3, lake, url, x):
    lake.write("x", x)
    ref = lake["x"]
    (name,) = objects(s3, url)
    drop(s3, url, name)
    for _ in range(2):  # with its footer known, then without
        with pytest.raises(tl.MissingDataError) as caught:
            ref[:]
        assert f"{url}/{name}" in str(caught.value)
        assert "VACUUM" in str(caught.value)
        assert isinstance(caught.value, FileNotFoundError)
        forget()


def test_a_damaged_object_is_named(s3, lake, url, x):
    lake.write("x", x)
    (name,) = objects(s3, url)
    path = f"{url.removeprefix('s3://')}/{name}"
    with s3.filesystem().open_input_stream(path) as file:
        data = bytearray(file.read())
    with s3.filesystem().open_output_stream(path) as file:
        file.write(bytes(data[: len(data) // 2]))
    ref = lake["x"]
    forget()
    with pytest.raises(tl.CorruptDataError, match=name) as caught:
        ref[:]
    assert not isinstance(caught.value, tl.MissingDataError)


WRONG = {
    "key": {"AWS_ACCESS_KEY_ID": "nobody"},
    "secret": {"AWS_SECRET_ACCESS_KEY": "another-secret-not-to-be-printed"},
    "http": {"AWS_ALLOW_HTTP": "false"},
}
SAID = {"key": "InvalidAccessKeyId", "secret": "SignatureDoesNotMatch", "http": "AWS_ALLOW_HTTP"}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("door", ["open", "write", "known version"])
def test_a_refusal_says_why_and_not_the_secret(s3, lake, url, x, what, door):
    lake.write("x", x)
    options = {**s3.options, **WRONG[what]}
    with pytest.raises(tl.StorageError, match=SAID[what]) as caught:
        if door == "open":
            tl.open(url, storage_options=options)
        elif door == "write":
            tl.TensorLake(Storage(url, options)).write("y", x)
        else:
            tl.open(url, storage_options=options, version=1)
    message = str(caught.value)
    assert url in message
    assert "\x1b" not in message
    assert isinstance(caught.value, OSError)
    for secret in (s3.options["AWS_SECRET_ACCESS_KEY"], options["AWS_SECRET_ACCESS_KEY"]):
        assert secret not in everything(caught.value)


def test_a_refused_data_file_is_not_called_damaged(s3, lake, url, x):
    """Rights may end between the log and the data: the object is sound, only out of reach."""
    lake.write("x", x)
    (name,) = objects(s3, url)
    forget()
    with pytest.raises(tl.StorageError) as caught:
        footer_of(Storage(url, {**s3.options, **WRONG["secret"]}), name)
    assert not isinstance(caught.value, tl.CorruptDataError)
    assert WRONG["secret"]["AWS_SECRET_ACCESS_KEY"] not in everything(caught.value)


def test_no_such_bucket(s3, x):
    with pytest.raises(tl.StorageError, match="NoSuchBucket"):
        tl.open("s3://nobodys/lake", storage_options=s3.options)


def test_nothing_that_prints_has_the_secret(s3, lake, url, x):
    ref = lake.write("x", x)
    shown = [
        repr(lake), str(lake), lake._repr_html_(), repr(ref), ref._repr_html_(), repr(ref.explain()),
        str(ref.explain()), repr(lake._storage), repr(lake.catalog()), str(vars(ref)),
    ]  # fmt: skip
    for wrong in (
        lambda: lake["y"],
        lambda: ref[99],
        lambda: lake.write("x", x),
        lambda: lake.write("y", x, codec="none such"),
        lambda: tl.open(url, storage_options=s3.options, version=9),
    ):
        with pytest.raises(tl.TensorLakeError) as caught:
            wrong()
        shown.append(everything(caught.value))
    for text in shown:
        assert s3.options["AWS_SECRET_ACCESS_KEY"] not in text
        assert s3.options["AWS_ACCESS_KEY_ID"] not in text


def test_options_in_lower_case_and_hadoops_scheme(s3, lake, url, x):
    lake.write("x", x)
    options = {name.lower(): value for name, value in s3.options.items()}
    other = tl.open(url.replace("s3://", "s3a://") + "/", storage_options=options)
    assert other.uri == url
    np.testing.assert_array_equal(other["x"][3], x[3])


@pytest.fixture
def spark_options(s3):
    return {f"storage.{name}": value for name, value in s3.options.items()}


@pytest.mark.soak
def test_spark_reads(spark, spark_options, lake, url, x):
    lake.write("x", x, block_shape=(4, 30, 8))
    lake.write("x", x[:6], mode="append")
    reader = spark.read.format("tensor").options(**spark_options)
    frame = reader.option("id", "x").option("slice", "3:27, ::2, 5").load(url)
    want = np.concatenate([x, x[:6]])[3:27, ::2, 5]
    got = np.full_like(want, -1)
    for row in frame.collect():
        block = np.frombuffer(row.tensor.data, row.tensor.dtype).reshape(row.tensor.shape)
        got[tuple(slice(o, o + n) for o, n in zip(row.offset, block.shape, strict=True))] = block
    np.testing.assert_array_equal(got, want)
    old = spark.read.format("tensor").options(**spark_options).option("versionAsOf", 1)
    cells = old.option("id", "x").option("view", "cells").load(url)
    assert cells.count() == x.size
    assert cells.agg({"value": "sum"}).first()[0] == x.sum()
    (row,) = (
        spark.read.format("tensor").options(**spark_options, view="catalog").load(url).collect()
    )
    assert (row.id, row.shape) == ("x", [30, 30, 8])


def test_spark_writes(spark, s3, spark_options, url, x):
    from tensorlake_spark.spark.source.schemas import TENSOR

    def slabs(places):
        rows = [([i, 0, 0], ("int32", [4, 30, 8], x[i : i + 4].tobytes())) for i in places]
        return spark.createDataFrame(
            rows, f"lo array<bigint>, tensor {TENSOR.simpleString()}"
        ).repartition(2)

    for _ in range(2):
        writer = slabs(range(0, 12, 4)).write.format("tensor").mode("append")
        writer.options(**spark_options, id="x", blockShape="4,30,8").save(url)
    lake = tl.open(url, storage_options=s3.options)
    np.testing.assert_array_equal(lake["x"][:], np.concatenate([x[:12], x[:12]]))
    writer = slabs([0]).write.format("tensor").mode("overwrite")
    writer.options(**spark_options, id="x").save(url)
    np.testing.assert_array_equal(lake["x"][:], x[:4])


def test_sparks_plans_and_errors_have_no_secret(spark, s3, spark_options, lake, url, x):
    lake.write("x", x)
    frame = spark.read.format("tensor").options(**spark_options, id="x").load(url)
    shown = [
        frame._jdf.queryExecution().toString(),
        frame._jdf.queryExecution().analyzed().toJSON(),
        repr(frame),
    ]
    wrong = {**spark_options, "storage.AWS_ACCESS_KEY_ID": "nobody"}
    for options, said in (
        ({**wrong, "id": "x"}, "InvalidAccessKeyId"),
        ({**spark_options, "id": "y"}, "no tensor 'y'"),
        ({**spark_options, "id": "x", "slise": "3"}, "slise"),
    ):
        with pytest.raises(Exception, match=said) as caught:
            spark.read.format("tensor").options(**options).load(url).collect()
        shown.append(everything(caught.value))
    with pytest.raises(Exception, match="InvalidAccessKeyId") as caught:
        frame.select("lo", "tensor").write.format("tensor").options(**wrong, id="z").mode(
            "append"
        ).save(url)
    shown.append(everything(caught.value))
    for text in shown:
        assert s3.options["AWS_SECRET_ACCESS_KEY"] not in text
