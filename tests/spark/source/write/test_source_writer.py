"""Python reads what Spark wrote: slabs and tensors, from several tasks, in one commit."""

import numpy as np
import pyarrow as pa
import pytest
from examples import mostly
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import types as t
from writing import check_apart, files_in_order, write_here

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.source.schemas import TENSOR, tensor_column
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.source_writer import TensorWriter

SLABS = f"lo array<bigint>, tensor {TENSOR.simpleString()}"
TENSORS = f"id string, tensor {TENSOR.simpleString()}"


def value(x):
    x = np.ascontiguousarray(x)
    return (x.dtype.name, list(x.shape), x.astype(x.dtype.newbyteorder("<")).tobytes())


def slabs(spark, x, step, parts=3):
    rows = [([i] + [0] * (x.ndim - 1), value(x[i : i + step])) for i in range(0, len(x), step)]
    return spark.createDataFrame(rows, SLABS).repartition(parts)


def save(frame, path, mode="append", **options):
    writer = frame.write.format("tensor").mode(mode)
    for name, option in options.items():
        writer = writer.option(name, option)
    writer.save(str(path))


def errors():
    return pytest.raises((AnalysisException, PythonException, Exception))


@pytest.mark.parametrize(
    "dtype",
    [
        "uint8",
        "datetime64[s]",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("float32", "complex64", "bool")),
    ],
)
def test_slabs_in_any_order_make_up_the_tensor(spark, place, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (23, 5, 7)).astype(dtype)
    save(slabs(spark, x, 4), place, id="x", axes="t,y,x", attrs='{"k": 1}')
    ref = tl.open(place)["x"]
    np.testing.assert_array_equal(ref[:], x)
    np.testing.assert_array_equal(ref[3:17:2, ::-1, 4], x[3:17:2, ::-1, 4])
    assert ref.axes == ("t", "y", "x")
    assert ref.attrs == {"k": 1}


def test_samples_that_slide(spark, place):
    """Slabs become timelines; Spark reads slices of them, and refuses what window does not hold."""
    rng = np.random.default_rng(0)
    at = np.cumsum(rng.integers(0, 3, (4, 30)), axis=1)[..., None] + np.arange(20)
    x = rng.integers(0, 1 << 60, (4, 200))[np.arange(4)[:, None, None], at].reshape(120, 20)
    save(slabs(spark, x, 30), place, id="x", layout="window", shape="120,20", blockShape="60,20")
    save(slabs(spark, x[:40], 20), place, id="x")
    want = np.concatenate([x, x[:40]])
    lake = tl.open(place)
    assert lake["x"].layout == "window"
    assert lake["x"].stored_bytes < want.nbytes / 2
    np.testing.assert_array_equal(lake["x"][:], want)
    assert lake.check().ok
    got = tf.collect_tensor(tf.read_tensor(spark, str(place), "x", "50:130:3, ::-2"))
    np.testing.assert_array_equal(got, want[50:130:3, ::-2])
    for wrong, message in ((x / 2, "float64 is not an integer dtype"), (x.reshape(6, 20, 20), "rank 2")):  # fmt: skip
        with pytest.raises((AnalysisException, PythonException, tl.TensorLakeError), match=message):
            save(slabs(spark, wrong, 50), place, id="y", layout="window")


def test_append_and_overwrite(spark, place):
    x = np.arange(300).reshape(30, 10)
    path = place
    save(slabs(spark, x, 7), path, id="x")
    save(slabs(spark, x[:11], 3), path, id="x")
    ref = tl.open(path)["x"]
    np.testing.assert_array_equal(ref[:], np.concatenate([x, x[:11]]))
    ref[0] = -1
    tl.open(path).write("x", x[:2], mode="append")
    np.testing.assert_array_equal(tl.open(path)["x"][41:], x[:2])
    save(slabs(spark, x[:5], 2), path, id="x", mode="overwrite")
    np.testing.assert_array_equal(tl.open(path)["x"][:], x[:5])


def test_append_along_another_axis(spark, place):
    x = np.arange(60).reshape(6, 10)
    path = place
    tl.open(path).write("x", x)
    rows = [([0, j], value(x[:, j : j + 2])) for j in range(0, 10, 2)]
    save(spark.createDataFrame(rows, SLABS), path, id="x", axis=1)
    np.testing.assert_array_equal(tl.open(path)["x"][:], np.concatenate([x, x], 1))


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("layout", ["auto", "ftsf", "bsgs", "csr"])
def test_a_new_tensor_along_another_axis_needs_no_shape(tmp_path, layout, axis):
    """The first batch of a stream was refused, or told of axis 0, where the option names another one."""
    lake = tl.open(tmp_path)
    x = np.arange(66).reshape(6, 11)
    cuts = [x[:, 4:8], x[:, 8:], x[:, :4]]
    for count in (1, 2):
        append_slab(lake, *cuts, corners=[[0, 4], [0, 8], [0, 0]], axis=str(axis), layout=layout)
        found = lake["x"][...]
        found = found.todense() if isinstance(found, tl.SparseTensor) else found
        np.testing.assert_array_equal(found, np.concatenate([x] * count, 1))
    assert lake.check().ok


def test_an_axis_that_slabs_do_not_have_is_told(tmp_path):
    lake = tl.open(tmp_path)
    for array, wrong in ((np.ones((2, 3)), "2"), (np.ones((2, 3)), "-3"), (np.float64(1), "1")):
        with pytest.raises(tl.InvalidOptionError, match=f"option axis={wrong} "):
            append_slab(lake, np.asarray(array), axis=wrong)
    assert "x" not in lake


def append_slab(lake, *arrays, corners=None, **options):
    """Append arrays as the writer's one task would, with no Spark between."""
    chosen = SparkWriteOptions.parse({"path": lake.uri, "id": "x", **options})
    fields = [t.StructField("lo", t.ArrayType(t.LongType())), t.StructField("tensor", TENSOR)]
    lo = pa.array(corners or [[0] * array.ndim for array in arrays], pa.list_(pa.int64()))
    writer = TensorWriter(chosen, t.StructType(fields), overwrite=False)
    batch = pa.RecordBatch.from_arrays([lo, tensor_column(arrays)], names=["lo", "tensor"])
    writer.commit([writer.write(iter([batch]))])


def test_slabs_of_large_frames_go_on_without_a_shape(tmp_path):
    """What stands for the length of an axis while slabs arrive must not make the tensor too large."""
    lake = tl.open(tmp_path)
    x = np.zeros((1, 3, 2048, 2048), np.uint8)
    for n in range(3):
        x[0, 0, 0, n] = n + 1
        append_slab(lake, x)
    assert lake["x"].shape == (3, 3, 2048, 2048)
    np.testing.assert_array_equal(lake["x"][:, 0, 0, :3], [[1, 0, 0], [1, 2, 0], [1, 2, 3]])


@pytest.mark.parametrize("axis", [1, 2, -3])
def test_many_appends_along_any_axis_keep_their_places(tmp_path, axis):
    lake = tl.open(tmp_path)
    x = np.arange(4000 * 6 * 2).reshape(4000, 6, 2)
    lake.write("x", x)
    for _ in range(6):
        append_slab(lake, x[:, :, :1] if axis == 2 else x, axis=str(axis))
    parts = [x] + 6 * [x[:, :, :1] if axis == 2 else x]
    np.testing.assert_array_equal(lake["x"][...], np.concatenate(parts, axis))
    assert lake.check().ok


def test_slabs_of_a_tiling_need_the_shape(spark, place):
    x = np.arange(64).reshape(8, 8)
    rows = [([i, j], value(x[i : i + 4, j : j + 4])) for i in (0, 4) for j in (0, 4)]
    frame = spark.createDataFrame(rows, SLABS).repartition(2)
    with errors() as told:
        save(frame, place, id="x")
    assert "option('shape'" in str(told.value)
    save(frame, place, id="x", shape="8,8", blockShape="3,3")
    ref = tl.open(place)["x"]
    np.testing.assert_array_equal(ref[:], x)
    ref[1:7, 2:5] = 0
    x[1:7, 2:5] = 0
    np.testing.assert_array_equal(tl.open(place)["x"][:], x)


def test_a_tensor_a_row(spark, place):
    rng = np.random.default_rng(0)
    arrays = {f"g/{n}": rng.standard_normal((n + 1, 3)) for n in range(7)}
    frame = spark.createDataFrame([(k, value(v)) for k, v in arrays.items()], TENSORS)
    save(frame.repartitionByRange(3, "id"), place)
    lake = tl.open(place)
    assert list(lake) == sorted(arrays)
    files = files_in_order(Storage(place), 2)
    assert len(files) == 3
    check_apart(files)
    for name, x in arrays.items():
        np.testing.assert_array_equal(lake[name][:], x)
    with errors() as told:
        save(frame, place)
    assert "exists in" in str(told.value)
    save(frame.limit(1), place, mode="overwrite")
    assert list(lake) == sorted(arrays), "the other tensors stay"
    lake["g/3"][0] = 5.0
    lake.delete("g/2")
    arrays["g/3"][0] = 5.0
    assert list(lake) == sorted(set(arrays) - {"g/2"})
    for name in lake:
        np.testing.assert_array_equal(lake[name][:], arrays[name])


def test_rows_are_in_order_in_every_file_and_files_lie_apart(spark, place):
    """Tiles come one after another, each of several chunks, none of which is next to the one before in C order."""
    x = np.random.default_rng(0).integers(0, 256, (64, 32, 8), np.uint8)
    corners = [(i, j) for i in range(0, 64, 16) for j in (0, 16)]
    rows = [([i, j, 0], value(x[i : i + 16, j : j + 16])) for i, j in corners]
    frame = spark.createDataFrame(rows, SLABS).repartitionByRange(2, "lo")
    save(frame, place, id="x", shape="64,32,8", blockShape="4,4,8", codec="raw", layout="ftsf")
    files = files_in_order(Storage(place), 3)
    assert sorted(len(ids) for ids, _, _ in files.values()) == [64, 64]
    check_apart(files)
    np.testing.assert_array_equal(tl.open(place)["x"][:], x)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_an_append_come_after_those_before(spark, place, axis):
    x = np.random.default_rng(0).integers(1, 256, (32, 32, 8), np.uint8)
    tiles = [([i, j, 0], value(x[i : i + 16, j : j + 16])) for i in (0, 16) for j in (0, 16)]
    given = {"path": place, "id": "x", "shape": "32,32,8", "axis": str(axis)}
    for more in ({"blockShape": "4,4,8"}, {}, {}):
        write_here(tiles, SLABS, {**given, **more})
    lake = tl.open(place)
    lake.write("x", x, mode="append", axis=axis)
    files_in_order(Storage(place), 3)
    np.testing.assert_array_equal(lake["x"][:], np.concatenate([x] * 4, axis))
    report = lake.check()
    assert report.ok, report


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_tensors_that_come_in_any_order_lie_by_id(spark, place, monkeypatch, held):
    """Sorted in memory, or where there are too many for that, in files that each are in order."""
    monkeypatch.setattr("tensorlake_spark.spark.source.write.slabs._SORTED_BYTES", held)
    names = ["b", "a", "c", "e", "d"]
    arrays = {name: np.full((9, 4), k + 1.0) for k, name in enumerate(names)}
    rows = [(name, value(array)) for name, array in arrays.items()]
    write_here(rows, TENSORS, {"path": place, "blockShape": "2,4"})
    files = files_in_order(Storage(place), 2)
    found = [sorted(set(ids)) for ids, _, _ in files.values()]
    assert sorted(found) == ([[*"abcde"]] if held else [["a", "c", "e"], ["b"], ["d"]])
    for name, array in arrays.items():
        np.testing.assert_array_equal(tl.open(place)[name][:], array)


def test_a_repeated_transaction_changes_nothing(spark, place):
    x = np.arange(12).reshape(4, 3)
    for _ in range(2):
        save(slabs(spark, x, 2), place, id="x", txnAppId="job", txnVersion="1")
    assert tl.open(place)["x"].shape == (4, 3)


def test_spark_reads_back_what_spark_wrote(spark, place):
    x = np.arange(60, dtype="f4").reshape(12, 5)
    save(slabs(spark, x, 4), place, id="x")
    frame = spark.read.format("tensor").option("id", "x").option("view", "cells")
    cells = frame.load(place).toPandas()
    np.testing.assert_array_equal(cells["value"], x[cells["i0"], cells["i1"]])
    assert len(cells) == 60


def save_by_spark(spark, path, rows, schema, options):
    save(spark.createDataFrame(rows, schema).coalesce(1), path, **options)


def save_here(spark, path, rows, schema, options):
    """Do the same with no task of Spark between."""
    write_here(rows, schema, {"path": str(path), **options})


BAD = [
    ([(1, 2)], "a int, b int", {"id": "x"}, "is neither cells"),
    ([([0], value(np.zeros(2)))], SLABS, {}, "need the option id"),
    ([("a", value(np.zeros(2)))], TENSORS, {"id": "x"}, "bring their own ids"),
    ([([0], value(np.zeros(2)))], SLABS, {"id": "x", "codek": "raw"}, "did you mean 'codec'"),
    ([([0], value(np.zeros(2)))], SLABS, {"id": "x", "layout": "fstf"}, "did you mean 'ftsf'"),
    ([([0], ("float64", [3], b"123"))], SLABS, {"id": "x"}, "has 3 bytes of data"),
    ([([0], None)], SLABS, {"id": "x"}, "null dtype, shape or data"),
    ([([0, 1], value(np.zeros(2)))], SLABS, {"id": "x"}, "it needs 1 non-negative"),
    ([([0], value(np.zeros(2))), ([1], value(np.zeros(2)))], SLABS, {"id": "x"}, "overlap"),
    ([([0], value(np.zeros(2))), ([3], value(np.zeros(2)))], SLABS, {"id": "x"}, "leave 2:3 of axis 0"),
    ([([0], value(np.zeros(2))), ([2], value(np.zeros(2, "i4")))], SLABS, {"id": "x"}, "dtype"),
    ([("a", value(np.zeros(2))), ("a", value(np.zeros(2)))], TENSORS, {}, "1 id(s) are in several rows of the DataFrame, such as 'a'"),
]  # fmt: skip
# Found before anything runs, by a task, and when all is brought together.
BY_SPARK = [
    case
    for case in BAD
    if case[-1] in ("did you mean 'codec'", "has 3 bytes of data", "leave 2:3 of axis 0")
]


@pytest.mark.parametrize(
    ("save", "rows", "schema", "options", "says"),
    [
        *((save_here, *case) for case in BAD),
        *mostly(
            [(save_by_spark, *case) for case in BAD], [(save_by_spark, *case) for case in BY_SPARK]
        ),
    ],
)
def test_bad_input_says_so_and_writes_nothing(spark, tmp_path, save, rows, schema, options, says):
    with errors() as told:
        save(spark, tmp_path / "lake", rows, schema, options)
    assert says in str(told.value)
    assert list(tl.open(tmp_path / "lake")) == []
    assert list((tmp_path / "lake").glob("*.parquet")) == [], "no orphan is left"


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (np.zeros((2, 3), "f4"), "have dtypes float64 and float32; cast"),
        (
            np.zeros((2, 4)),
            r"different shapes beside axis 0: \[\(3,\), \(4,\)\]; give option\('shape'",
        ),
    ],
)
def test_slabs_of_two_tasks_that_do_not_go_together(spark, tmp_path, second, says):
    schema = spark.createDataFrame([], SLABS).schema
    options = SparkWriteOptions.parse({"path": str(tmp_path), "id": "x"})
    writer = TensorWriter(options, schema, False)
    messages = [
        writer.write(
            iter(
                [
                    pa.RecordBatch.from_arrays(
                        [pa.array([[at, 0]], pa.list_(pa.int64())), tensor_column([x])],
                        names=["lo", "tensor"],
                    )
                ]
            )
        )
        for at, x in ((0, np.zeros((2, 3))), (2, second))
    ]
    with pytest.raises(tl.InvalidTensorError, match=says):
        writer.commit(messages)


def test_half_a_transaction_is_refused():
    with pytest.raises(tl.InvalidOptionError, match="go together"):
        SparkWriteOptions.parse({"path": "p", "txnappid": "a"})


def test_other_modes_are_refused_by_spark(spark, place):
    with errors() as told:
        slabs(spark, np.zeros((2, 2)), 1).write.format("tensor").option("id", "x").save(place)
    assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in str(told.value)


def test_a_writer_that_lost_the_race_says_so(spark, tmp_path):
    """The tensor changes between the look at it and the commit."""
    path = tmp_path / "lake"
    x = np.zeros((2, 3))
    tl.open(path).write("x", x)
    schema = spark.createDataFrame([], SLABS).schema
    writer = TensorWriter(SparkWriteOptions.parse({"path": str(path), "id": "x"}), schema, False)
    tl.open(path).write("x", x, mode="append")
    batch = pa.RecordBatch.from_arrays(
        [pa.array([[0, 0]], pa.list_(pa.int64())), tensor_column([x])], names=["lo", "tensor"]
    )
    message = writer.write(iter([batch]))
    with pytest.raises(tl.ConcurrentWriteError, match="while this job ran"):
        writer.commit([message])
    assert tl.open(path)["x"].shape == (4, 3)
    assert len(list(path.glob("*.parquet"))) == 2, "the loser's files are gone"
