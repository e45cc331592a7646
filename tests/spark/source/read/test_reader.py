"""Spark reads what Python wrote, slice by slice."""

import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.errors import AnalysisException, PythonException

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.layouts.testing.laws import DTYPES
from tensorlake_spark.spark.source.data_source import TensorDataSource
from tensorlake_spark.spark.source.read import reader
from tensorlake_spark.spark.source.read.reader import TensorReader
from tensorlake_spark.spark.source.schemas import BLOCKS
from tensorlake_spark.spark.source.source_options import ReadOptions
from tensorlake_spark.tensor.spec import dtype_of

AXES = ("image", "channel", "y", "x")


def assemble(rows, shape, dtype, fill=None):
    """Put blocks in their places; without `fill` every element has to be delivered, once."""
    out = np.zeros(shape, dtype)
    seen = np.zeros(shape, int)
    for row in rows:
        block = np.frombuffer(row["tensor"]["data"], row["tensor"]["dtype"])
        block = block.reshape(row["tensor"]["shape"])
        where = tuple(slice(o, o + n) for o, n in zip(row["offset"], block.shape))
        out[where] = block
        seen[where] += 1
    assert (seen == 1).all()
    return out


def read(spark, path, **options):
    reader = spark.read.format("tensor")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(path))


@pytest.fixture
def path(tmp_path, photos):
    lake = tl.open(tmp_path / "lake")
    lake.write("photos", photos, axes=AXES, block_shape=(2, 3, 16, 96), attrs={"k": [1]})
    lake.write("half", np.where(np.arange(40) < 20, 0, np.arange(40)), block_shape=(8,))
    lake.write("number", np.float32(2.5))
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", np.s_[:]),
        ("3:7, :, 10:50, ::5", np.s_[3:7, :, 10:50, ::5]),
        ("image=4, y=::-3", np.s_[4, :, ::-3]),
        ("..., None, 7", np.s_[..., None, 7]),
        ("5:5", np.s_[5:5]),
        ("::-1, -1", np.s_[::-1, -1]),
    ],
)
def test_blocks_make_up_the_slice(spark, path, photos, text, key):
    frame = read(spark, path, id="photos", slice=text)
    assert frame.schema == BLOCKS
    rows = frame.collect()
    np.testing.assert_array_equal(assemble(rows, photos[key].shape, "u1"), photos[key])
    for row in rows:
        assert row.id == "photos"
        assert len(row.lo) == 4


def test_lo_is_the_corner_in_the_tensor(spark, path, photos):
    for row in read(spark, path, id="photos", slice="3:7, :, 10:50").collect():
        block = np.frombuffer(row.tensor.data, "u1").reshape(row.tensor.shape)
        where = tuple(slice(a, a + n) for a, n in zip(row.lo, block.shape))
        np.testing.assert_array_equal(photos[where], block)


def test_cells_are_rows_with_coordinates(spark, path, photos):
    frame = read(spark, path, id="photos", view="cells", slice="3, :, 5:60:7, -2")
    assert frame.columns == [*AXES, "value"]
    cells = frame.toPandas()
    index = cells[list(AXES)].to_numpy().T
    np.testing.assert_array_equal(cells["value"], photos[tuple(index)])
    assert len(cells) == photos[3, :, 5:60:7, -2].size
    assert set(cells["y"]) == set(range(5, 60, 7))


def test_fill_values_are_cells_of_a_dense_tensor_too(spark, path):
    x = np.where(np.arange(40) < 20, 0, np.arange(40))
    want = spark.createDataFrame([(i, int(x[i])) for i in range(3, 33)], "i0 bigint, value bigint")
    have = read(spark, path, id="half", view="cells", slice="3:33")
    assert_df_equality(have, want, ignore_row_order=True)
    rows = read(spark, path, id="half").collect()
    np.testing.assert_array_equal(assemble(rows, (40,), "i8"), x)


def test_a_tensor_without_axes(spark, path):
    (row,) = read(spark, path, id="number").collect()
    assert np.frombuffer(row.tensor.data, row.tensor.dtype).item() == 2.5
    assert read(spark, path, id="number", view="cells").collect()[0].value == 2.5


def test_the_catalog(spark, path):
    rows = {r.id: r for r in read(spark, path, view="catalog").collect()}
    assert set(rows) == {"photos", "half", "number"}
    assert rows["photos"].axes == list(AXES)
    assert rows["photos"].shape == [12, 3, 64, 96]
    assert rows["photos"].attrs == '{"k": [1]}'


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_as_cells_and_blocks(spark, tmp_path, name):
    dtype = dtype_of(name)
    x = np.array([0, 1, 1, 0, 1]).astype(dtype)
    tl.open(tmp_path / "lake").write("x", x, fill_value=1)
    cells = read(spark, tmp_path / "lake", id="x", view="cells").orderBy("i0").collect()
    values = [r.value.re if dtype.kind == "c" else float(r.value) for r in cells]
    assert values == [0, 1, 1, 0, 1]
    (block,) = read(spark, tmp_path / "lake", id="x").collect()
    assert block.tensor.dtype == name
    assert bytes(block.tensor.data) == x.tobytes()


def test_a_schema_of_the_users_own_narrows_the_columns(spark, path):
    narrow = spark.read.format("tensor").schema("offset array<bigint>, id string")
    rows = narrow.option("id", "photos").option("slice", "0").load(str(path)).collect()
    assert rows[0].__fields__ == ["offset", "id"]
    with pytest.raises(AnalysisException, match="no column 'ofset'; did you mean 'offset'"):
        spark.read.format("tensor").schema("ofset array<bigint>").option("id", "photos").load(
            str(path)
        ).collect()


def test_a_dataframe_stays_at_its_version(spark, place):
    lake = tl.open(place)
    lake.write("x", np.full(4, 2.0))
    frame = read(spark, lake.uri, id="x", view="cells")
    lake.write("x", np.ones(4), mode="append")
    assert frame.count() == 4
    assert read(spark, lake.uri, id="x", view="cells").count() == 8
    assert read(spark, lake.uri, id="x", view="cells", versionAsOf=1).count() == 4
    assert read(spark, lake.uri, id="x", view="cells", timestampAsOf="2126-01-01").count() == 8


def test_two_slices_do_not_disturb_each_other(spark, path):
    one = read(spark, path, id="half", view="cells", slice="30:33")
    two = read(spark, path, id="half", view="cells", slice="21")
    assert sorted(r.value for r in one.union(two).collect()) == [21, 30, 31, 32]
    base = read(spark, path, id="half", view="cells")
    assert base.filter("i0 = 25").collect()[0].value == 25
    assert base.count() == 40


def test_sql_through_a_temporary_view(spark, path):
    read(spark, path, id="half", view="cells").createOrReplaceTempView("half")
    assert spark.sql("select sum(value) from half where i0 >= 30").collect()[0][0] == sum(
        range(30, 40)
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"id": "fotos"}, "did you mean 'photos'"),
        ({}, "needs the option id"),
        ({"id": "photos", "slize": "3"}, "did you mean 'slice'"),
        ({"id": "photos", "view": "block"}, "did you mean 'blocks'"),
        ({"id": "photos", "slice": "99"}, "index 99 is out of bounds for axis 0 with size 12"),
        ({"id": "photos", "slice": "banana"}, "cannot be read at 'banana'"),
        ({"id": "photos", "slice": "[1, 2]"}, "index list"),
        ({"id": "photos", "versionAsOf": "x"}, "is neither an integer nor a tag"),
        ({"id": "photos", "versionAsOf": "99"}, "does not exist"),
        ({"id": "photos", "maxPartitionBytes": "0"}, "below 1"),
        ({"id": "photos", "view": "catalog"}, "id='photos' is for one tensor"),
        ({"slice": "3", "view": "catalog"}, "slice='3' is for one tensor"),
    ],
)
def test_mistakes_are_told_when_the_table_is_loaded(spark, path, options, says):
    with pytest.raises(AnalysisException, match=says):
        read(spark, path, **options)


def test_a_path_is_needed(spark):
    with pytest.raises(AnalysisException, match="needs a path"):
        spark.read.format("tensor").option("id", "x").load()


def test_a_corrupted_row_fails_the_query_and_says_where(spark, tmp_path):
    lake = tl.open(tmp_path / "lake")
    x = np.random.default_rng(0).integers(0, 9, (64, 64))
    lake.write("x", x, codec="raw", block_shape=(8, 64))
    (file,) = (tmp_path / "lake").glob("*.parquet")
    data = bytearray(file.read_bytes())
    place = bytes(data).find(x[:8].tobytes())
    assert place > 0
    data[place + 5] ^= 255
    file.write_bytes(data)
    box = r"tensor 'x', box \[0:8, 0:64\]: the row fails its checksum"
    with pytest.raises(PythonException, match=rf"{box}.*{re.escape(file.name)}"):
        read(spark, lake.uri, id="x").collect()


def partitions_of(options):
    """The plan of a reader in this process."""
    snapshot = Snapshot.open(options.storage)
    return TensorReader(options, snapshot, catalog.get(snapshot, options.id), BLOCKS).partitions()


def test_partitions_are_balanced_by_bytes_and_name_only_what_is_needed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lake = tl.open(tmp_path / "lake")
    x = rng.integers(0, 256, (64, 1024, 256), np.uint8)
    for i in range(0, 64, 16):
        lake.write("x", x[i : i + 16], mode="append", block_shape=(1, 1024, 256) if not i else None)
    options = ReadOptions.parse({"path": lake.uri, "id": "x", "maxpartitionbytes": str(1 << 20)})
    parts = partitions_of(options)
    sizes = [sum(p.nbytes for p in part.pieces) for part in parts]
    assert len(parts) >= 4
    assert max(sizes) <= 2 << 20
    monkeypatch.setattr(reader, "_MOST_TASKS", 2)
    assert [len({p.path for p in part.pieces}) for part in partitions_of(options)] == [2, 2]
    one = ReadOptions.parse({"path": lake.uri, "id": "x", "slice": "17:19"})
    (part,) = partitions_of(one)
    (piece,) = part.pieces
    with pq.ParquetFile(f"{lake.uri}/{piece.path}") as file:
        assert file.num_row_groups == 5, "four of data, one of metadata"
        (group,) = piece.row_groups
        assert file.read_row_group(group)["lo"].combine_chunks().field("d0")[1].as_py() == 17
    assert len(Snapshot.open(Storage(lake.uri)).files.path) == 4


def test_cells_agree_with_pandas(spark, path, photos):
    """The same question to Spark and to pandas."""
    frame = read(spark, path, id="photos", view="cells", slice="0:2, 0")
    have = frame.groupBy("image", "y").avg("value").orderBy("image", "y").toPandas()
    index = pd.MultiIndex.from_product([range(2), range(64), range(96)], names=["image", "y", "x"])
    cells = pd.Series(photos[:2, 0].reshape(-1), index)
    want = cells.groupby(level=["image", "y"]).mean().to_numpy()
    np.testing.assert_allclose(have["avg(value)"].to_numpy(), want)


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_an_axis_named_value_is_told_at_load(tmp_path, layout):
    """A task ended with a KeyError, or said that the file was damaged."""
    lake = tl.open(tmp_path / "lake")
    lake.write("x", np.ones((2, 3)), axes=("value", "y"), layout=layout)
    options = {"path": lake.uri, "id": "x"}
    assert TensorDataSource(options).schema().names == BLOCKS.names
    with pytest.raises(InvalidOptionError, match="tensor 'x' has an axis named 'value'"):
        TensorDataSource({**options, "view": "cells"}).schema()
