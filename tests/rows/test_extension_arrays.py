import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tensorlake_spark as tl
from tensorlake_spark.rows.extension_arrays import plain_column

STACK = np.arange(24, dtype="f4").reshape(4, 2, 3)


def tensors(dtype="f4"):
    return pa.FixedShapeTensorArray.from_numpy_ndarray(STACK.astype(dtype))


def extended(kind, values):
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


@pytest.mark.parametrize("dtype", ["f4", "f2", "u1", "i8"])
def test_tensors_keep_their_shape(dtype):
    column = tensors(dtype)
    found = plain_column(column)
    assert found.dtype == dtype
    assert np.array_equal(found, STACK)
    assert np.array_equal(plain_column(column[1:3]), STACK[1:3])
    assert plain_column(column[:0]).shape == (0, 2, 3)
    chunks = plain_column(pa.chunked_array([column[:1], column[1:]]))
    assert np.array_equal(chunks, STACK)


@pytest.mark.parametrize("value_type", [pa.float32(), pa.bool_()])
def test_null_and_permuted_tensors(value_type):
    kind = pa.fixed_shape_tensor(value_type, (2, 3), permutation=[1, 0])
    numbers = np.array([[1, 0, 1], [0, 0, 1]], value_type.to_pandas_dtype())
    rows = [numbers.ravel(), None, numbers[::-1].ravel()]
    first, second, third = plain_column(extended(kind, rows))
    assert np.array_equal(first, numbers.T)
    assert second is None
    assert np.array_equal(third, numbers[::-1].T)


def test_other_extensions_are_what_is_stored():
    flags = extended(pa.bool8(), [1, None, 0])
    assert plain_column(flags).equals(pa.array([True, None, False]))
    assert plain_column(pa.chunked_array([flags])).to_pylist() == [True, None, False]
    plain = pa.array([1])
    assert plain_column(plain) is plain


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("places", [slice(None), slice(1, 3), slice(3, None), slice(2, 2)])
def test_runs_are_what_they_repeat(ends, places):
    values = pa.array([1, 1, None, None, 4, 4])
    column = pc.run_end_encode(values, run_end_type=ends)[places]
    assert plain_column(column).equals(values[places])
    assert plain_column(pa.chunked_array([column, column])).to_pylist() == 2 * (
        values[places].to_pylist()
    )
    assert len(plain_column(pa.chunked_array([], column.type))) == 0


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int8(), pa.string()), None])
def test_runs_are_taken_by_a_dataset(tmp_path, kind):
    texts = pa.array(["a", "b", None])
    texts = texts if kind is None else texts.cast(kind)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5]), texts)
    ds = tl.dataset(tmp_path / "ds", {"text": "string", "g/n": "int32"})
    numbers = pc.run_end_encode(pa.array([7, 7, 7, None, 8], pa.int32()))
    ds.extend(pa.table({"text": runs, "g": pa.StructArray.from_arrays([numbers], ["n"])}))
    ds.extend({"text": runs[1:3], "g/n": numbers[3:]})
    assert list(ds["text"]) == ["a", "a", "b", None, None, "a", "b"]
    assert list(ds["g/n"]) == [7, 7, 7, None, 8, None, 8]


@pytest.mark.parametrize("how", ["table", "dict", "stream", "group"])
def test_a_dataset_has_the_shapes_of_arrow(tmp_path, how):
    """They were stored as lists of numbers, without their shape."""
    json = extended(pa.json_(), ['{"a": 1}'] * 4)
    ids = extended(pa.uuid(), [bytes(16)] * 4)
    table = pa.table({"x": tensors(), "json": json, "id": ids})
    name = "g/x" if how == "group" else "x"
    schema = {name: tl.types.Tensor("float32"), "json": tl.types.Json(), "id": "bytes"}
    given = {
        "table": table,
        "dict": dict(zip(table.column_names, table.columns)),
        "stream": table.to_reader(max_chunksize=3),
        "group": {"g": {"x": tensors()}, "json": json, "id": ids},
    }[how]
    ds = tl.dataset(tmp_path / "ds", schema)
    ds.extend(given)
    assert np.array_equal(ds[name][:], STACK)
    assert ds["json"][:] == [{"a": 1}] * 4
    assert ds["id"][:] == [bytes(16)] * 4


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_reader(), lambda t: {"x": t["x"]}])
def test_the_type_of_tensors_is_guessed(tmp_path, make):
    ds = tl.dataset(tmp_path / "ds")
    ds.extend(make(pa.table({"x": tensors()})))
    assert ds.schema == tl.types.SampleSchema({"x": tl.types.Tensor("float32", (2, 3))})


def test_lists_of_tensors_keep_their_shape():
    lists = pa.ListArray.from_arrays([0, 1, 4], tensors())
    kind = tl.types.Sequence(tl.types.Tensor("float32"))
    first, second = kind.decode(kind.encode(lists, "x"))
    assert np.array_equal(first, STACK[:1])
    assert np.array_equal(second, STACK[1:])


@pytest.mark.parametrize("apart", [False, True])
def test_changes_keep_the_shapes_of_arrow(tmp_path, apart):
    ds = tl.dataset(tmp_path / "ds", {"n": "int32"})
    ds.extend({"n": range(4)})
    ds.add_column("x", tl.types.Tensor("float32", apart=apart), tensors())
    assert np.array_equal(ds["x"][:], STACK)
    ds.update([3, 1], {"x": tensors()[:2]})
    assert np.array_equal(ds["x"][[3, 1]], STACK[:2])
    ds["x"][:2] = tensors()[2:]
    assert np.array_equal(ds["x"][:2], STACK[2:])
