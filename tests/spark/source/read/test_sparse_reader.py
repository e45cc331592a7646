"""Spark reads sparse tensors: the elements that NumPy would pick, from the rows that the plan names."""

import functools
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog, scan
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import parse_key, select
from tensorlake_spark.layouts.testing.laws import DTYPES
from tensorlake_spark.spark.source.read import overlapping_rows as overlap
from tensorlake_spark.spark.source.read.sparse_reader import SparseReader
from tensorlake_spark.spark.source.schemas import BLOCKS, cell_schema
from tensorlake_spark.spark.source.source_options import ReadOptions
from tensorlake_spark.tensor.spec import dtype_of

LAYOUTS = ("coo", "csr", "csc", "csf", "bsgs")
BLOCK = (4, 4, 8, 4)
KEYS = (
    "",
    "3:30:2, :, ::-3",
    "5, ..., 3",
    "..., None, 6",
    "7:7",
    "11, 2, 3, 4",
    "::-1, 4:5, 10:, -1",
)


def block(layout):
    return {"block_shape": BLOCK} if layout == "bsgs" else {}


def read(spark, path, **options):
    return spark.read.format("tensor").options(**options).load(str(path))


def cells(x, key):
    """What is not zero in a part of an array, by NumPy alone: coordinates in the array, and the value."""
    places = np.arange(x.size).reshape(x.shape)[key].reshape(-1)
    places = places[x.reshape(-1)[places] != 0]
    coords = np.unravel_index(places, x.shape) if x.ndim else ()
    index = np.stack([*coords, x.reshape(-1)[places]])
    return sorted(map(tuple, index.T.tolist()))


def rows_of(frame):
    return sorted(map(tuple, frame.collect()))


def assemble(rows, shape, dtype):
    """Put blocks in their places; none lies over another."""
    out, seen = np.zeros(shape, dtype), np.zeros(shape, int)
    for row in rows:
        part = np.frombuffer(row["tensor"]["data"], row["tensor"]["dtype"])
        part = part.reshape(row["tensor"]["shape"])
        where = tuple(slice(o, o + n) for o, n in zip(row["offset"], part.shape))
        out[where] = part
        seen[where] += 1
    assert seen.max(initial=0) <= 1
    return out


def reader_of(lake, tensor_id, **options):
    """A reader in this process, which shows its plan."""
    given = ReadOptions.parse({"path": lake.uri, "id": tensor_id, **options})
    snapshot = Snapshot.open(given.storage)
    meta = catalog.get(snapshot, tensor_id)
    schema = BLOCKS if given.view == "blocks" else cell_schema(meta.spec)
    return SparseReader(given, snapshot, meta, schema)


def everything(reader):
    """All rows of a reader as tuples, and as dicts for blocks."""
    batches = [b for part in reader.partitions() for b in reader.read(part)]
    if reader.options.view == "blocks":
        return [row for b in batches for row in b.to_pylist()]
    return sorted(row for b in batches for row in zip(*(c.to_pylist() for c in b.columns)))


@pytest.fixture(scope="module")
def x():
    rng = np.random.default_rng(0)
    noise = rng.integers(1, 100, (40, 9, 30, 7))
    return np.where(rng.random(noise.shape) < 0.03, noise, 0).astype("i4")


@pytest.fixture(scope="module")
def path(tmp_path_factory, x):
    lake = tl.open(tmp_path_factory.mktemp("sparse"))
    for layout in LAYOUTS:
        lake.write(layout, tl.SparseTensor.from_dense(x), layout=layout, **block(layout))
    return lake.uri


TWICE = "[3, 9, 31, 9], 2:5"
"""A list in which an index is given twice, so that its cells are too."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", [*KEYS, TWICE])
def test_cells_are_the_elements_of_the_slice(path, x, layout, text):
    reader = reader_of(tl.open(path), layout, view="cells", slice=text)
    assert everything(reader) == cells(x, parse_key(text))


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("coo", TWICE),
        ("csr", "3:30:2, :, ::-3"),
        ("csc", "5, ..., 3"),
        ("csf", "7:7"),
        ("bsgs", "::-1, 4:5, 10:, -1"),
    ],
)
def test_spark_has_them_too(spark, path, x, layout, text):
    frame = read(spark, path, id=layout, view="cells", slice=text)
    assert frame.columns == ["i0", "i1", "i2", "i3", "value"]
    assert rows_of(frame) == cells(x, parse_key(text))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", KEYS)
def test_blocks_make_up_the_slice(path, x, layout, text):
    reader = reader_of(tl.open(path), layout, slice=text)
    key = parse_key(text)
    np.testing.assert_array_equal(assemble(everything(reader), x[key].shape, "i4"), x[key])


def test_a_block_is_a_stored_block(spark, path, x):
    rows = read(spark, path, id="bsgs").collect()
    st = tl.SparseTensor.from_dense(x)
    want = {
        tuple(c)
        for c in (st.coords // np.array(BLOCK)[:, None] * np.array(BLOCK)[:, None]).T.tolist()
    }
    assert {tuple(row.lo) for row in rows} == want
    assert len(rows) == len(want)
    for row in rows:
        part = np.frombuffer(row.tensor.data, "i4").reshape(row.tensor.shape)
        where = tuple(slice(a, a + n) for a, n in zip(row.lo, part.shape))
        np.testing.assert_array_equal(x[where], part)
        assert row.id == "bsgs"


def test_blocks_that_are_too_large_name_the_view_that_is_not(spark, place):
    lake = tl.open(place)
    st = tl.SparseTensor([[0, 9000], [0, 9000]], [1.0, 2.0], (10_000, 10_000))
    lake.write("coo", st, layout="coo")
    with pytest.raises(
        (AnalysisException, PythonException), match=r"takes 618\.1 MiB as an array"
    ) as told:
        read(spark, lake.uri, id="coo").collect()
    assert "option('view', 'cells')" in str(told.value)
    (row,) = read(spark, lake.uri, id="coo", slice="8995:, 8990:").collect()
    part = np.frombuffer(row.tensor.data, "f8").reshape(row.tensor.shape)
    assert (part.shape, part[5, 10], part.sum()) == ((6, 11), 2.0, 2.0), "trimmed, it is small"
    assert rows_of(read(spark, lake.uri, id="coo", view="cells")) == [
        (0, 0, 1.0),
        (9000, 9000, 2.0),
    ]


def test_named_axes_are_columns(spark, place, x):
    lake = tl.open(place)
    lake.write("x", tl.SparseTensor.from_dense(x), axes=("day", "hour", "y", "x"))
    frame = read(spark, lake.uri, id="x", view="cells", slice="day=3:9, y=::5")
    assert frame.columns == ["day", "hour", "y", "x", "value"]
    assert rows_of(frame) == cells(x, np.s_[3:9, :, ::5])
    want = spark.createDataFrame([(int(x[3:9, :, ::5].sum()),)], "total bigint")
    assert_df_equality(frame.selectExpr("sum(value) as total"), want)


def test_the_catalog_has_no_blocks_where_a_layout_has_none(spark, path, x):
    rows = {row.id: row for row in read(spark, path, view="catalog").collect()}
    assert {name: rows[name].block_shape for name in LAYOUTS} == {
        "coo": None, "csr": None, "csc": None, "csf": None, "bsgs": list(BLOCK)
    }  # fmt: skip
    assert {row.layout for row in rows.values()} == set(LAYOUTS)
    assert rows["csf"].nnz == np.count_nonzero(x)


def test_every_dtype(spark, place):
    """Blocks of each, and cells of all in one query."""
    lake = tl.open(place)
    frames = []
    for name in DTYPES:
        dtype = dtype_of(name)
        x = np.array([0, 1, 0, 0, 1]).astype(dtype)
        lake.write(name, tl.SparseTensor.from_dense(x), layout="bsgs")
        frame = read(spark, lake.uri, id=name, view="cells")
        value = f.col("value.re" if dtype.kind == "c" else "value").cast("double")
        frames.append(frame.select(f.lit(name).alias("name"), "i0", value.alias("value")))
        shown = assemble(
            [
                {**r, "tensor": {**r["tensor"], "dtype": dtype}}
                for r in everything(reader_of(lake, name))
            ],
            (5,),
            dtype,
        )
        assert shown.tobytes() == x.tobytes(), name
    found = rows_of(functools.reduce(DataFrame.union, frames))
    assert found == sorted((name, place, 1.0) for name in DTYPES for place in (1, 4))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2,) * 10])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_odd_shapes(place, shape, layout):
    x = np.asarray(np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape) % 3)
    lake = tl.open(place)
    lake.write("x", tl.SparseTensor.from_dense(x), layout=layout)
    assert everything(reader_of(lake, "x", view="cells")) == cells(x, ...)
    np.testing.assert_array_equal(assemble(everything(reader_of(lake, "x")), shape, x.dtype), x)


def test_explicit_zeros_are_cells_and_nan_is_one(place):
    lake = tl.open(place)
    lake.write("x", tl.SparseTensor([[1, 4, 5]], [0.0, np.nan, -0.0], (9,)), layout="bsgs")
    rows = everything(reader_of(lake, "x", view="cells"))
    assert [row[0] for row in rows] == [1, 4, 5]
    assert np.isnan(rows[1][1])
    assert np.signbit(rows[2][1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_files_and_row_groups_of_the_plan_are_read(tmp_path, x, layout):
    lake = tl.open(tmp_path / "lake")
    for first in range(0, 40, 8):
        part = tl.SparseTensor.from_dense(x[first : first + 8])
        lake.write("x", part, mode="append", layout=layout, **block(layout))
    text, key = "17:19, :, ::2", np.s_[17:19, :, ::2]
    snapshot = Snapshot.open(Storage(lake.uri))
    plan = scan.plan(snapshot, "x", select(key, x.shape))
    assert plan.n_files == 1
    assert len(snapshot.files.path) == 5
    for view in ("cells", "blocks"):
        parts = reader_of(lake, "x", view=view, slice=text).partitions()
        named = {(p.path, g) for part in parts for p in part.pieces for g in p.row_groups}
        assert named == {(f.path, g) for f in plan.files for g in f.row_groups}
        assert not any(part.fills for part in parts), "zeros are not cells"
    cells_reader = reader_of(lake, "x", view="cells", slice=text)
    blocks_reader = reader_of(lake, "x", view="blocks", slice=text)
    for file in Path(lake.uri).glob("*.parquet"):
        if file.name != plan.files[0].path:
            file.unlink()
    assert everything(cells_reader) == cells(x, key)
    np.testing.assert_array_equal(assemble(everything(blocks_reader), x[key].shape, "i4"), x[key])


def test_the_last_axis_alone_prunes_blocks(place):
    lake = tl.open(place)
    rng = np.random.default_rng(0)
    x = np.where(rng.random((64, 4096)) < 0.05, rng.random((64, 4096)), 0)
    for first in range(0, 4096, 1024):
        part = tl.SparseTensor.from_dense(x[:, first : first + 1024])
        lake.write("x", part, mode="append", axis=1, layout="bsgs", block_shape=(16, 64))
    (part,) = reader_of(lake, "x", view="cells", slice=":, 2000:2010").partitions()
    assert len({piece.path for piece in part.pieces}) == 1


def test_partitions_are_balanced_and_batches_are_bounded(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    st = tl.SparseTensor.from_dense(
        np.where(rng.random((64, 100, 1000)) < 0.1, rng.random((64, 100, 1000)), 0)
    )
    lake = tl.open(tmp_path / "lake")
    lake.write("x", st, layout="bsgs", block_shape=(4, 16, 128))
    reader = reader_of(lake, "x", view="cells", maxpartitionbytes=str(1 << 20))
    parts = reader.partitions()
    sizes = [sum(p.nbytes for p in part.pieces) for part in parts]
    assert len(parts) >= 4
    assert max(sizes) <= 2 << 20
    monkeypatch.setattr("tensorlake_spark.spark.source.read.sparse_reader._CELL_ROWS", 1000)
    monkeypatch.setattr("tensorlake_spark.spark.source.read.sparse_reader._DECODE", 5000)
    batches = [b for part in parts for b in reader.read(part)]
    assert max(b.num_rows for b in batches) == 1000
    assert sum(b.num_rows for b in batches) == st.nnz


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rule", ["sum", "last"])
def test_elements_that_are_stored_twice_are_combined_across_rows(
    spark, tmp_path, monkeypatch, x, layout, rule
):
    lake = tl.open(tmp_path / "lake")
    st = tl.SparseTensor.from_dense(x)
    lake.write("x", st, layout=layout, duplicates=rule, **block(layout))
    again = np.where(np.roll(x, 1, axis=2) > 50, 1000, 0).astype("i4")
    lake.write("x", tl.SparseTensor.from_dense(again), mode="append", axis=None, duplicates=rule)
    want = x + again if rule == "sum" else np.where(again != 0, again, x)
    monkeypatch.setattr("tensorlake_spark.spark.source.read.sparse_reader._TASK_ELEMENTS", 300)
    for text in KEYS:
        key = parse_key(text)
        reader = reader_of(lake, "x", view="cells", slice=text)
        assert everything(reader) == cells(want, key), text
        if text == "":
            assert len(reader.partitions()) > 4, "regions, each in a task of its own"
        found = everything(reader_of(lake, "x", slice=text))
        np.testing.assert_array_equal(assemble(found, want[key].shape, "i4"), want[key])
    with pytest.raises(
        tl.InvalidSliceError, match=r"index list, .*; take view='cells', read a range"
    ):
        reader_of(lake, "x", slice="[3, 9, 31, 9], 2:5")
    listed = reader_of(lake, "x", view="cells", slice="[3, 9, 31, 9], 2:5")
    assert everything(listed) == cells(want, np.s_[[3, 9, 31, 9], 2:5])
    if (layout, rule) in (("bsgs", "sum"), ("csr", "last")):
        frame = read(spark, lake.uri, id="x", view="cells", slice="3:30:2")
        assert rows_of(frame) == cells(want, np.s_[3:30:2])


def test_elements_added_between_others_are_read_once(place, x):
    """No element is stored twice, but boxes overlap: blocks are joined, cells need no joining."""
    lake = tl.open(place)
    odd = np.where(np.arange(7) % 2, x, 0)
    for layout in LAYOUTS:
        lake.write(layout, tl.SparseTensor.from_dense(odd), layout=layout, **block(layout))
        lake.write(layout, tl.SparseTensor.from_dense(x - odd), mode="append", axis=None)
        reader = reader_of(lake, layout, view="cells", slice="3:30")
        assert all(part.region is None for part in reader.partitions())
        assert everything(reader) == cells(x, np.s_[3:30])
        found = everything(reader_of(lake, layout, slice="3:30, ::-1"))
        np.testing.assert_array_equal(assemble(found, x[3:30, ::-1].shape, "i4"), x[3:30, ::-1])


def test_a_corrupted_row_fails_the_query_and_says_where(spark, tmp_path, x):
    lake = tl.open(tmp_path / "lake")
    lake.write("x", tl.SparseTensor.from_dense(x), layout="bsgs", block_shape=BLOCK, codec="raw")
    (file,) = Path(lake.uri).glob("*.parquet")
    data = bytearray(file.read_bytes())
    group = pq.read_metadata(file).row_group(0)
    columns = {c.path_in_schema: c for c in map(group.column, range(group.num_columns))}
    data[columns["values"].data_page_offset + columns["values"].total_compressed_size - 40] ^= 255
    file.write_bytes(data)
    for view in ("cells", "blocks"):
        with pytest.raises(PythonException, match="fails its checksum") as told:
            read(spark, lake.uri, id="x", view=view).collect()
        assert file.name in str(told.value)


def test_an_element_stored_twice_without_a_rule_is_corrupt(place):
    """As after an INSERT with plain Delta."""
    lake = tl.open(place)
    st = tl.SparseTensor([[1, 4]], [1.0, 2.0], (9,))
    lake.write("x", st, layout="bsgs", duplicates="sum", block_shape=(4,))
    lake.write("x", st, mode="append", axis=None)
    reader = reader_of(lake, "x")
    object.__setattr__(reader.spec, "params", {})
    with pytest.raises(tl.CorruptDataError, match="stored more than once"):
        everything(reader)
    # Tasks do not compare their cells: like any scan of Spark they show what every row says.
    reader = reader_of(lake, "x", view="cells")
    object.__setattr__(reader.spec, "params", {})
    assert everything(reader) == [(1, 1.0), (1, 1.0), (4, 2.0), (4, 2.0)]


def test_a_schema_of_the_users_own_narrows_the_columns(spark, path, x):
    narrow = spark.read.format("tensor").schema("value int, i2 long")
    frame = narrow.options(id="bsgs", view="cells", slice="4").load(path)
    assert rows_of(frame) == sorted((row[-1], row[2]) for row in cells(x, np.s_[4:5]))


# How rows that overlap are found.


def rows(boxes, nnz=1):
    lo, hi = (np.array([box[k] for box in boxes], np.int64) for k in (0, 1))
    return overlap.RowBoxes(lo, hi, np.full(len(lo), nnz), np.arange(len(lo)))
