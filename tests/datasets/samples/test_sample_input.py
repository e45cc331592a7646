"""What users give becomes batches that are bounded."""

import decimal
import io
from collections import deque

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.datasets.samples import sample_input
from tensorlake_spark.datasets.samples.sample_input import batches_of, file_columns, flat, nbytes_of

NOT_NULL = tl.types.Text(nullable=False)


def joined(batches, name):
    return [one for batch in batches for one in list(batch[name])]


@given(st.lists(st.integers(0, 300), max_size=60), st.booleans())
def test_batches_have_all_samples_in_order_and_are_bounded(sizes, one_by_one):
    blobs = [bytes(size) for size in sizes]
    whole = {"data": blobs, "n": np.arange(len(blobs))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_input, "BATCH_BYTES", 500)
        given_ = [{"data": b, "n": n} for n, b in enumerate(blobs)] if one_by_one else whole
        found = [*batches_of(given_, ["data", "n"])]
    assert joined(found, "data") == blobs
    assert joined(found, "n") == [*range(len(blobs))]
    if one_by_one:
        assert all(sum(map(len, batch["data"][:-1])) < 500 for batch in found)


@pytest.mark.parametrize(
    ("blob", "most"),
    [
        (bytes(1 << 20), sample_input.VIEWED_BYTES),
        (np.zeros(1 << 20, "u1"), sample_input.BATCH_BYTES),
    ],
    ids=["bytes", "arrays"],
)
def test_large_columns_are_taken_in_small_batches(blob, most):
    counts = [len(batch["data"]) for batch in batches_of({"data": [blob] * 200}, ["data"])]
    assert sum(counts) == 200
    assert max(counts[1:]) == most >> 20


def test_samples_without_any_value_are_samples(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"a": tl.types.Image(apart=True), "b": "int32"})
    ds.append({})
    ds.extend([{}, {}])
    assert (len(ds), ds[2]) == (3, {"a": None, "b": None})
    must = tl.dataset(tmp_path / "must", {"a": tl.types.as_type("int32"), "b": NOT_NULL})
    with pytest.raises(tl.InvalidSampleError, match=r"column 'b', sample 0.*null"):
        must.append({})


@pytest.mark.parametrize("value", [5, None, "text", np.zeros(3), [1]])
def test_a_group_that_is_no_group(tmp_path, value):
    ds = tl.dataset(tmp_path / "ds", {"g/x": "int32"})
    with pytest.raises(tl.InvalidSampleError, match=r"no column 'g'.*'g/x'"):
        ds.append({"g": value})


@pytest.fixture
def files(tmp_path):
    """Six files of 100 bytes."""
    paths = [tmp_path / str(number) for number in range(6)]
    for path in paths:
        path.write_bytes(bytes(100))
    return paths


def test_files_count_with_their_bytes(files, monkeypatch):
    """A path is short, and the file that is read for it need not be."""
    monkeypatch.setattr(sample_input, "BATCH_BYTES", 150)
    texts = [str(path) for path in files]
    ways = [files, texts, [{"path": path} for path in texts], [{"bytes": bytes(100)}] * 6]
    for given_ in [*ways, [io.BytesIO(bytes(100)) for _ in range(6)]]:
        found = [*batches_of(({"x": one} for one in given_), ["x"], ["x"])]
        assert [len(batch["x"]) for batch in found] == [2, 2, 2]
        assert joined(found, "x") == given_
    for column in (files, texts, pa.array(texts)):
        found = [*batches_of({"x": column}, ["x"], ["x"])]
        assert [len(batch["x"]) for batch in found] == [3, 1, 1, 1]
    with open(files[0], "rb") as file:
        assert nbytes_of(file) == 100


def test_columns_that_take_paths():
    kinds = {
        "image": tl.types.Image(),
        "sounds": tl.types.Sequence(tl.types.Audio()),
        "scan": tl.types.Tensor("uint8"),
        "text": tl.types.Text(),
        "link": tl.types.Link(tl.types.Image()),
    }
    assert file_columns(kinds) == {"image", "sounds", "scan"}


def test_a_slice_whose_samples_are_larger_is_taken_in_parts(monkeypatch):
    monkeypatch.setattr(sample_input, "BATCH_BYTES", 100)
    blobs = [b"x"] * 90 + [bytes(90)] * 8
    found = [*batches_of({"x": blobs}, ["x"])]
    assert joined(found, "x") == blobs
    assert max(sum(map(len, batch["x"])) for batch in found) <= 200


def test_a_sample_without_a_column_has_none():
    (batch,) = batches_of([{"a": 1}, {"b": 2}], ["a", "b"])
    assert batch == {"a": [1, None], "b": [None, 2]}


@pytest.mark.parametrize(
    ("value", "nbytes"),
    [
        (b"abc", 3),
        (np.zeros(4), 32),
        (np.array([b"ab", b"c"], object), 3),
        (pa.array([1, 2]), 16),
        (None, 8),
    ],
)
def test_bytes_of_values(value, nbytes):
    assert nbytes_of(value) == nbytes


TABLE = pa.table({"a": [1, 2, None], "b": ["x", None, "y"], "g": [{"c": [1]}, None, {"c": []}]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: TABLE.to_reader(max_chunksize=2),
        lambda: polars.from_arrow(TABLE),
        lambda: duckdb.from_arrow(TABLE),
    ],
    ids=["table", "reader", "polars", "duckdb"],
)
def test_tables_of_arrow_are_taken_with_their_structs_as_groups(make, tmp_path):
    wanted = [
        {"a": 1, "b": "x", "g/c": [1]}, {"a": 2, "b": None, "g/c": None}, {"a": None, "b": "y", "g/c": []},
    ]  # fmt: skip
    ds = tl.dataset(tmp_path / "ds", {"a": "int64", "b": "string", "g/c": tl.types.Sequence("int64")})  # fmt: skip
    ds.extend(make())
    assert [*ds] == wanted
    with pytest.raises(tl.InvalidSampleError, match="no column 'b'"):
        tl.dataset(tmp_path / "other", {"a": "int64", "g/c": tl.types.Sequence("int64")}).extend(make())  # fmt: skip


def test_columns_are_guessed_from_any_table(tmp_path):
    flat = TABLE.select(["a", "b"])
    tables = [flat, flat.to_pandas().convert_dtypes(), flat.to_reader(max_chunksize=1), polars.from_arrow(flat)]  # fmt: skip
    for number, table in enumerate(tables):
        ds = tl.dataset(tmp_path / f"{number}")
        ds.extend(table)
        assert ds["a"][:2].tolist() == [1, 2]
        assert ds["b"][:] == ["x", None, "y"]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([2**64 - 1, None], pa.uint64()), "uint64"),  # was refused: int64 was guessed
        (pa.array([None, 1.5], pa.float32()), "float32"),
        (pa.array([None, None], pa.int8()), "int8"),
        (pa.array([decimal.Decimal(10**30), None], pa.decimal128(38, 2)), "decimal(38, 2)"),  # too
        (pa.array([[1], None], pa.list_(pa.int16())), tl.types.Sequence("int16")),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), tl.types.Sequence("float32")),
        (pa.array([decimal.Decimal("1.5")] * 2, pa.decimal256(40, 2)), "decimal(38, 18)"),
    ],
)
def test_numbers_of_arrow_keep_their_type_where_there_is_no_schema(tmp_path, column, kind):
    tables = [pa.table({"a": column}), {"a": column}, pa.table({"a": column}).to_reader()]
    for number, table in enumerate(tables):
        ds = tl.dataset(tmp_path / f"{number}")
        ds.extend(table)
        assert ds.schema == tl.types.SampleSchema({"a": kind})
        assert [one["a"] for one in ds] == column.to_pylist()


@pytest.mark.parametrize(
    ("dtype", "kind", "value"),
    [("Int32", "int32", 3), ("boolean", "bool", True), ("string", "string", "a"), ("Float64", "float64", 1.5)],
)  # fmt: skip
def test_what_is_missing_in_a_column_of_pandas_is_null(tmp_path, dtype, kind, value):
    ds = tl.dataset(tmp_path / "ds", {"x": kind})
    for values in ([value, None, value], [value, value]):
        ds.extend(pd.DataFrame({"x": pd.array(values, dtype)}))
    assert [one["x"] for one in ds] == [value, None, value, value, value]


def test_a_categorical_of_pandas_has_nulls(tmp_path):
    # It was taken as an array, whose nulls are NaN.
    ds = tl.dataset(str(tmp_path), {"x": tl.types.ClassLabel(["a", "b"]), "y": "string"})
    given = pd.Categorical(["b", None, "a"])
    ds.extend({"x": given, "y": given})
    assert ds["x"][:] == [1, None, 0]
    assert ds["y"][:] == ["b", None, "a"]


def test_categories_of_polars_are_texts_and_classes(tmp_path):
    given = polars.DataFrame(
        {
            "text": polars.Series(["b", "a", None], dtype=polars.Categorical),
            "label": polars.Series(["dog", "cat", None], dtype=polars.Enum(["dog", "cat"])),
            "tags": polars.Series([["a"], [], None], dtype=polars.List(polars.Categorical)),
        }
    )
    label = tl.types.ClassLabel(["cat", "dog"])
    ds = tl.dataset(
        tmp_path / "a", {"text": "string", "label": label, "tags": tl.types.Sequence("string")}
    )
    ds.extend(given)
    assert [tuple(one.values()) for one in ds] == [
        ("b", 1, ["a"]), ("a", 0, []), (None, None, None),
    ]  # fmt: skip
    guessed = tl.dataset(tmp_path / "b")
    guessed.extend(given)
    assert [one["label"] for one in guessed] == ["dog", "cat", None]
    with pytest.raises(tl.InvalidOptionError, match="no value to tell its type by"):
        tl.dataset(tmp_path / "c").extend(given.head(0))


@pytest.mark.parametrize(
    "column",
    [
        deque([1, 2]), {"a": 1, "b": 2}.values(), range(1, 3), (1, 2), pd.array([1, 2], "Int64"),
        pd.Series([1, 2], index=[0.5, 7]), pd.Index([1, 2]), pd.Series([1, 2], [1, 0]),
    ],
)  # fmt: skip
def test_a_column_may_be_whatever_has_an_order(column):
    (batch,) = batches_of({"a": column}, ["a"])
    assert [*batch["a"]] == [1, 2]


@pytest.mark.parametrize("column", [np.array(3), {1, 2}, frozenset("ab"), {1: 2}, "ab", b"ab", 3, None, iter([1])])  # fmt: skip
def test_what_is_no_column(column):
    with pytest.raises(tl.InvalidSampleTypeError, match=r"column 'a' is .*one value a sample"):
        list(batches_of({"a": column}, ["a"]))


def test_a_table_with_a_column_twice_is_refused():
    """Of a mapping, only the last one would be there."""
    arrow = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    for table in (arrow, pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame([[1, 2]], columns=["0", 0])):  # fmt: skip
        with pytest.raises(tl.InvalidSampleError, match="twice"):
            list(batches_of(table, ["a", "0"]))


def test_what_is_given_twice_or_is_the_number_of_a_sample_is_told():
    names = ["g/x", "y"]
    with pytest.raises(
        tl.InvalidSampleError, match="column 'g/x' is given twice, once in its group"
    ):
        flat({"g": {"x": 1}, "g/x": 2}, names)
    with pytest.raises(
        tl.InvalidSampleError,
        match="sid is the number that the dataset gives a sample; leave it out",
    ):
        flat({"y": 1, "sid": 2}, names)


@pytest.mark.parametrize("schema", [{"a": "int64"}, None])
@pytest.mark.parametrize("column", [polars.Series("a", [1]), pa.chunked_array([[1]])])
def test_one_column_is_no_table(tmp_path, column, schema):
    ds = tl.dataset(tmp_path / "ds", schema)
    with pytest.raises(tl.InvalidSampleTypeError, match=r"one column and no table: .*by its name"):
        ds.extend(column)


class NoArray:
    """What a tensor of PyTorch is that NumPy does not take: one with a gradient, or a sparse one without `nbytes`."""

    shape, dtype = (2,), "torch.float32"

    @property
    def nbytes(self):
        raise RuntimeError("nbytes is not defined for sparse tensors")

    def __getitem__(self, key):
        return 0.0

    def __len__(self):
        return 2

    def __array__(self, *args, **options):
        raise RuntimeError("use detach()")


def test_what_numpy_does_not_take_is_told_with_its_sample(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("float32")})
    with pytest.raises(tl.InvalidSampleTypeError, match=r"column 'x', sample 1: .*use detach\(\)"):
        ds.extend([{"x": np.zeros(2, "f4")}, {"x": NoArray()}])
