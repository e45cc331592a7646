"""Filters that narrow a slice: only where the option asks for it, and never the answer of its query."""

import numpy as np
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

import tensorlake_spark as tl
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.spark.source.read.pushdown import FilteredReader, FilteredSparseReader
from tensorlake_spark.spark.source.schemas import cell_schema
from tensorlake_spark.spark.source.source_options import ReadOptions

SETTING = "spark.sql.python.filterPushdown.enabled"
I0, X = ("i0",), ("x",)


@pytest.fixture
def pushing(spark):
    """The session with the setting that Spark wants for it."""
    spark.conf.set(SETTING, "true")
    yield spark
    spark.conf.unset(SETTING)


def read(spark, path, **options):
    return spark.read.format("tensor").options(view="cells", **options).load(str(path))


def reader_of(path, **options):
    """A reader that takes filters, in this process."""
    given = {"path": str(path), "view": "cells", "pushfilters": "true", **options}
    options = ReadOptions.parse(given)
    snapshot = Snapshot.open(options.storage)
    meta = catalog.get(snapshot, options.id)
    kind = FilteredReader if meta.spec.layout == "ftsf" else FilteredSparseReader
    return kind(options, snapshot, meta, cell_schema(meta.spec))


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([EqualTo(I0, 7)], {7}),
        ([GreaterThan(I0, 3), LessThan(I0, 8)], {4, 5, 6, 7}),
        ([GreaterThanOrEqual(I0, 9), LessThanOrEqual(I0, 99)], {9, 10, 11}),
        ([In(I0, (3, 5))], {3, 4, 5}),
        ([LessThan(I0, 5), EqualTo(I0, 8)], set()),
        ([EqualTo(I0, -1)], set()),
        ([EqualTo(I0, 2**62)], set()),
        ([GreaterThan(I0, 11)], set()),
        ([In(I0, (1, None))], set(range(12))),
        ([EqualTo(I0, 2.5), EqualTo(I0, True), EqualTo(("value",), 3)], set(range(12))),
        ([Not(EqualTo(I0, 3)), IsNotNull(I0), EqualNullSafe(I0, None)], set(range(12))),
    ],
)
@pytest.mark.parametrize("layout", ["ftsf", "bsgs"])
def test_what_filters_leave_of_a_slice(lake, filters, left, layout):
    lake.write("x", np.ones((12, 5), "u1"), layout=layout)
    reader = reader_of(lake.uri, id="x", slice="::2")
    assert list(reader.pushFilters(filters)) == filters, "Spark evaluates each of them again"
    axis, other = reader.selection.axes
    assert set(range(axis.start, axis.stop, axis.step)) == {i for i in left if i % 2 == 0}
    assert other.count == 5


@pytest.mark.parametrize("layout", ["ftsf", "coo"])
def test_a_filter_reads_fewer_row_groups(lake, layout):
    x = np.random.default_rng(0).integers(1, 256, (16, 1024, 128), np.uint8)
    lake.write(
        "x", x, layout=layout, **({"block_shape": (1, 1024, 128)} if layout == "ftsf" else {})
    )

    def groups(filters):
        reader = reader_of(lake.uri, id="x")
        reader.pushFilters(filters)
        pieces = [piece for part in reader.partitions() for piece in part.pieces]
        return sum(len(piece.row_groups) for piece in pieces)

    assert groups([]) >= 2
    assert 0 < groups([EqualTo(I0, 3)]) < groups([])
    assert groups([EqualTo(I0, 16)]) == 0


def test_a_filter_on_labels_narrows_nothing(lake):
    """The column has what the labels say, even where they are numbers."""
    lake.write("x", np.ones((9, 3)), axes=("x", "y"), labels={"x": {"start": 5, "step": 1}})
    for labels, count in (("true", 9), ("false", 1)):
        reader = reader_of(lake.uri, id="x", labels=labels)
        reader.pushFilters([EqualTo(X, 7), LessThan(("y",), 2)])
        assert [axis.count for axis in reader.selection.axes] == [count, 2]


@pytest.fixture
def path(tmp_path):
    """A dense tensor in four files, and a sparse one."""
    lake = tl.open(tmp_path / "lake")
    x = np.arange(160).reshape(40, 4)
    for i in range(0, 40, 10):
        lake.write("x", x[i : i + 10], mode="append", **({} if i else {"block_shape": (5, 4)}))
    lake.write("s", tl.SparseTensor([[1, 5, 7], [2, 3, 3]], [1.0, 2.0, 3.0], (9, 4)), layout="coo")
    return tmp_path / "lake"


def test_the_answer_is_that_of_pandas_and_other_files_are_not_opened(pushing, path):
    cells = read(pushing, path, id="x").toPandas()
    want = cells[
        (cells.i0 > 12) & (cells.i0 <= 17) & cells.i1.isin([0, 3]) & (cells.value % 2 == 1)
    ]
    ref = tl.open(path)["x"]
    for others in (np.s_[:10], np.s_[20:30]):  # the last file has the metadata
        (file,) = ref.explain(others).files
        ref._snapshot.storage.delete(file.path)
    frame = read(pushing, path, id="x", pushFilters="true")
    found = frame.filter("i0 > 12 and i0 <= 17 and i1 in (0, 3) and value % 2 = 1").toPandas()
    assert len(want) == 5
    assert found.sort_values(["i0", "i1"]).to_numpy().tolist() == want.to_numpy().tolist()


def test_a_filter_on_the_cells_of_a_sparse_tensor(pushing, path):
    frame = read(pushing, path, id="s", pushFilters="true")
    assert frame.filter((f.col("i1") == 3) & (f.col("i0") < 7)).collect() == [(5, 3, 2.0)]


def test_one_load_is_good_for_one_filter(pushing, path):
    """Spark gives the first filter to the second query, too: without the option there is none to give."""
    base = read(pushing, path, id="x", pushFilters="true")
    assert base.filter("i0 = 25").count() == 4
    assert base.count() == 4, "as documented; if Spark has mended this, the documents may say so"
    assert read(pushing, path, id="x", pushFilters="true").filter("i0 < 3").count() == 12
    plain = read(pushing, path, id="x")
    assert plain.filter("i0 = 25").count() == 4
    assert plain.filter("i0 < 3").count() == 12
    assert plain.count() == 160


def test_the_setting_that_it_needs_is_named(spark, path):
    with pytest.raises(AnalysisException, match=SETTING):
        read(spark, path, id="x", pushFilters="true").filter("i0 = 3").collect()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"view": "blocks"}, "goes with view='cells', not with 'blocks'"),
        ({"view": "catalog"}, "goes with view='cells', not with 'catalog'"),
        ({"pushfilters": "yes"}, "is neither 'true' nor 'false'"),
    ],
)
def test_it_goes_with_cells_only(wrong, says):
    given = {"path": "lake", "id": "x", "view": "cells", "pushfilters": "true"}
    with pytest.raises(tl.InvalidOptionError, match=rf"pushFilters=.*{says}"):
        ReadOptions.parse({**given, **wrong})
    assert not ReadOptions.parse({**given, "pushfilters": "False"}).push_filters
