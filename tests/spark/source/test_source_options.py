"""Options of ``df.write`` that do not go with the tensor, the batch or the DataFrame are refused."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as t

import tensorlake_spark as tl
from tensorlake_spark.spark.source.schemas import TENSOR, tensor_column
from tensorlake_spark.spark.source.source_options import ReadOptions, SparkWriteOptions
from tensorlake_spark.spark.source.write.source_writer import TensorWriter

X = np.arange(6.0).reshape(2, 3)
SLABS = t.StructType().add("lo", t.ArrayType(t.LongType())).add("tensor", TENSOR)
TENSORS = t.StructType().add("id", t.StringType()).add("tensor", TENSOR)
CELLS = t.StructType().add("i0", t.LongType()).add("i1", t.LongType()).add("value", t.DoubleType())


def batch(schema, place):
    """A batch of one row: a slab or a tensor `X`, or the cell (`place`, `place`)."""
    if schema is CELLS:
        at = pa.array([place], pa.int64())
        return pa.RecordBatch.from_arrays([at, at, pa.array([1.5])], names=schema.names)
    key = pa.array(["x"]) if schema is TENSORS else pa.array([[0, 0]], pa.list_(pa.int64()))
    return pa.RecordBatch.from_arrays([key, tensor_column([X])], names=schema.names)


def save(path, schema=SLABS, *, overwrite=False, rows=1, place=0, **options):
    """Write as Spark does: plan, one task, commit."""
    given = {"path": str(path), **{k: str(v) for k, v in options.items()}}
    writer = TensorWriter(SparkWriteOptions.parse(given), schema, overwrite)
    writer.commit([writer.write(iter([batch(schema, place)] * rows))])


@pytest.mark.parametrize(
    ("name", "number", "says"),
    [
        ("tensor/x", 3, "counts the changes of a tensor"),
        ("tag/v1", 3, "names a version"),
        ("", 1, "is empty"),
        ("a", -1, "is not from 0"),
        ("a", 2**63, "is not from 0"),
        ("a", "one", "not an integer"),
    ],
)
def test_batches_that_make_no_sense(tmp_path, name, number, says):
    with pytest.raises(tl.InvalidOptionError, match=says):
        save(tmp_path / "lake", id="x", txnAppId=name, txnVersion=number)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("attrs", "is not JSON"), ("labels", "is not JSON"), ("resumption", "is not what jobs/")],
)
def test_json_that_is_nested_too_deeply(name, says):
    with pytest.raises(tl.InvalidOptionError, match=says) as caught:
        SparkWriteOptions.parse({"path": "/", name: "[" * 10**5})
    assert len(str(caught.value)) < 500
    with pytest.raises(tl.InvalidOptionError, match="is not JSON"):
        ReadOptions.parse({"path": "/", "id": "x", "view": "features", "columns": "[" * 10**5})


def test_a_number_of_another_tensor_is_told(tmp_path):
    save(tmp_path, id="photos", txnAppId="nightly", txnVersion=1)
    save(tmp_path, id="photos", txnAppId="nightly", txnVersion=1)
    assert tl.open(tmp_path)["photos"].shape == (2, 3)
    for schema in (SLABS, CELLS):
        with pytest.raises(
            tl.InvalidOptionError, match=r"batch 1 of 'nightly' .*no tensor 'labels'"
        ):
            save(tmp_path, schema, id="labels", txnAppId="nightly", txnVersion=1)
    assert list(tl.open(tmp_path)) == ["photos"]


SAID = {"layout": "ftsf", "blockShape": "1,3", "axes": "a,b", "fillValue": "9", "codec": "raw"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layout": "coo"}, "layout ftsf, and an append keeps it"),
        ({"axes": "b,a"}, "axes .*, and an append keeps it"),
        ({"fillValue": "7"}, "fill_value 9.0, and an append keeps it"),
        ({"codec": "nonsense"}, "unknown codec 'nonsense'"),
        ({"duplicates": "sum"}, "duplicates error, and an append keeps it"),
        ({"dtype": "int8"}, "leave out the option dtype='int8'"),
    ],
)
def test_an_append_of_slabs_keeps_what_the_tensor_has(tmp_path, options, says):
    for _ in range(2):
        save(tmp_path, id="x", dtype="float64", **SAID)
    with pytest.raises(tl.InvalidOptionError, match=says):
        save(tmp_path, id="x", **{**SAID, **options})
    np.testing.assert_array_equal(tl.open(tmp_path)["x"][:], np.concatenate([X, X]))


@pytest.mark.parametrize("options", [{"blockShape": "1,1"}, {"codec": "zstd"}])
def test_what_an_optimisation_may_have_changed_is_warned_of(tmp_path, caplog, options):
    for _ in range(2):
        save(tmp_path, id="x", dtype="float64", **SAID)
    save(tmp_path, id="x", **{**SAID, **options})
    assert "and an append keeps it, whatever" in caplog.text
    ref = tl.open(tmp_path)["x"]
    assert (ref.block_shape, ref.codec) == ((1, 3), "raw")
    np.testing.assert_array_equal(ref[:], np.concatenate([X] * 3))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fillValue": "3"}, "fill_value 0.0, and an append keeps it"),
        ({"axis": "1"}, "option axis=1 is for slabs"),
    ],
)
def test_an_append_of_cells_keeps_what_the_tensor_has(tmp_path, options, says):
    said = {"blockShape": "2,2", "codec": "zstd", "shape": "9,9"}
    for place in range(2):
        save(tmp_path, CELLS, id="x", place=place, **said)
    with pytest.raises(tl.InvalidOptionError, match=says):
        save(tmp_path, CELLS, id="x", place=2, **options)
    assert tl.open(tmp_path)["x"].nnz == 2


@pytest.mark.parametrize(
    ("schema", "options", "says"),
    [
        (SLABS, {"id": "x", "dtype": "int8"}, "holds float64 for tensor 'x'"),
        (TENSORS, {"dtype": "int8"}, "holds float64 for tensor 'x'"),
        (TENSORS, {"shape": "2,3"}, "option shape=.* is for slabs and cells"),
        (TENSORS, {"axis": "1"}, "option axis=1 is for slabs"),
    ],
)
def test_options_that_a_form_has_no_use_for(tmp_path, schema, options, says):
    with pytest.raises(tl.InvalidOptionError, match=says):
        save(tmp_path, schema, **options)
    assert list(tl.open(tmp_path)) == []


def test_an_empty_frame_overwrites_nothing_and_says_so(tmp_path):
    save(tmp_path, id="x")
    with pytest.raises(tl.InvalidTensorError, match=r"has no slab, .* nothing was changed"):
        save(tmp_path, id="x", overwrite=True, rows=0)
    save(tmp_path, id="x", rows=0)
    np.testing.assert_array_equal(tl.open(tmp_path)["x"][:], X)


def test_a_tensor_that_another_made_since_the_look(tmp_path):
    save(tmp_path, id="x", lastChange=-1)
    with pytest.raises(tl.ConcurrentWriteError, match="another writer changed tensor 'x'"):
        save(tmp_path, id="x", lastChange=-1)
    save(tmp_path, id="x", lastChange=1)
    assert tl.open(tmp_path)["x"].shape == (4, 3)


def test_a_table_that_another_made_since_the_look(tmp_path, monkeypatch):
    """Another writer makes table and tensor before this one has made the table."""
    from tensorlake_spark.spark.source.write import source_writer as module

    create = module.create_table

    def late(storage):
        tl.open(tmp_path).write("x", X)
        create(storage)

    monkeypatch.setattr(module, "create_table", late)
    with pytest.raises(tl.ConcurrentWriteError, match="nothing of it was committed"):
        save(tmp_path, id="x")
    np.testing.assert_array_equal(tl.open(tmp_path)["x"][:], X)


def test_the_share_from_which_a_tensor_is_dense():
    given = {"path": "p", "id": "x"}
    assert SparkWriteOptions.parse(given).write.threshold == 0.1
    assert SparkWriteOptions.parse({**given, "threshold": "0.25"}).write.threshold == 0.25
    for text in ("a", "2", "-0.1", "nan"):
        with pytest.raises(tl.InvalidOptionError, match="is not a share between 0 and 1"):
            SparkWriteOptions.parse({**given, "threshold": text})


@pytest.mark.parametrize(
    ("name", "said"),
    [("location", "CREATE TEMPORARY VIEW does; known are"), ("paths", "load.. takes one path; un")],
)
def test_options_that_spark_gives_itself_are_explained(name, said):
    # CREATE TABLE t USING tensor OPTIONS (path ...) and load([p, q]): nobody wrote these names.
    with pytest.raises(tl.InvalidOptionError, match=f"unknown option {name!r} .*{said}"):
        ReadOptions.parse({"path": "p", "id": "x", name: "p"})
