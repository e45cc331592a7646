"""``layout="auto"`` for slabs and cells of ``format("tensor")``: dense from 10 % of non-zeros on, in one commit."""

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import types as t
from writing import files_in_order

import tensorlake_spark as tl
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.source.schemas import SLABS, TENSOR, tensor_column
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write import cells as cells_module
from tensorlake_spark.spark.source.write.source_writer import TensorWriter

SHAPE = (40, 30, 20)
CELLS = "i0 long, i1 long, i2 long, value double"
CELL_SCHEMA = t.StructType([t.StructField(f"i{k}", t.LongType()) for k in range(3)])
CELL_SCHEMA.add("value", t.DoubleType())


def filled(share, seed=0):
    """Return an array of which about a share of the elements is not zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(SHAPE) < share, rng.integers(1, 9, SHAPE), 0).astype(np.float64)


def slab_rows(x, step=5):
    return [
        ([i] + [0] * (x.ndim - 1), ("float64", list(part.shape), part.astype("<f8").tobytes()))
        for i in range(0, len(x), step)
        for part in [np.ascontiguousarray(x[i : i + step])]
    ]


def cell_rows(x):
    places = np.random.default_rng(1).permutation(np.argwhere(x))
    return [(*map(int, place), float(x[tuple(place)])) for place in places]


def frame_of(spark, form, x, parts=3):
    if form == "slabs":
        schema = f"lo array<bigint>, tensor {TENSOR.simpleString()}"
        return spark.createDataFrame(slab_rows(x), schema).repartition(parts)
    return spark.createDataFrame(cell_rows(x), CELLS).repartition(parts)


def save(frame, place, mode="overwrite", **options):
    with plain_errors():
        frame.write.format("tensor").mode(mode).options(id="x", **options).save(place)


def dense(found):
    return found.todense() if isinstance(found, tl.SparseTensor) else found


@pytest.mark.parametrize("form", ["slabs", "cells"])
@pytest.mark.parametrize(
    ("share", "options", "layout"),
    [
        (0.2, {}, "ftsf"),
        (0.03, {}, "bsgs"),
        (0.03, {"threshold": "0.01"}, "ftsf"),
        (0.2, {"threshold": "0.5"}, "bsgs"),
        (0.2, {"layout": "coo"}, "coo"),
    ],
)
def test_the_layout_goes_by_the_share_of_non_zeros(spark, place, form, share, options, layout):
    x = filled(share)
    save(frame_of(spark, form, x), place, shape="40,30,20", **options)
    ref = tl.open(place)["x"]
    assert ref.layout == layout
    np.testing.assert_array_equal(dense(ref[...]), x)
    np.testing.assert_array_equal(dense(ref[3:17:2, ::-1, 4]), x[3:17:2, ::-1, 4])
    assert ref.version == 1, "one commit beside that which makes the table"
    files_in_order(Storage(place), 3)
    assert not tl.open(place).check().findings


def test_appends_keep_the_layout(spark, place):
    x = filled(0.02)
    save(frame_of(spark, "slabs", x), place)
    save(frame_of(spark, "slabs", np.ones(SHAPE)), place, "append")
    ref = tl.open(place)["x"]
    assert (ref.layout, ref.shape) == ("bsgs", (80, 30, 20))
    np.testing.assert_array_equal(dense(ref[...]), np.concatenate([x, np.ones(SHAPE)]))
    save(frame_of(spark, "slabs", np.ones(SHAPE)), place)
    save(frame_of(spark, "slabs", x), place, "append")
    assert tl.open(place)["x"].layout == "ftsf"


# What follows does what tasks and driver do, in this process: which task has which rows is known here.


def write_parts(form, batches, place, overwrite=True, **options):
    schema = SLABS if form == "slabs" else CELL_SCHEMA
    given = SparkWriteOptions.parse({"path": place, "id": "x", **options})
    writer = TensorWriter(given, schema, overwrite)
    writer.commit([writer.write(iter([batch])) for batch in batches])
    return tl.open(place)["x"]


def slab_batch(lo, x):
    lows = pa.array([[lo, 0, 0]], pa.list_(pa.int64()))
    return pa.RecordBatch.from_arrays([lows, tensor_column([x])], names=["lo", "tensor"])


def cell_batch(x, lo=0):
    places = np.argwhere(x)
    columns = [pa.array(places[:, k] + lo * (k == 0)) for k in range(3)]
    names = ["i0", "i1", "i2", "value"]
    return pa.RecordBatch.from_arrays([*columns, pa.array(x[tuple(places.T)])], names=names)


@pytest.fixture(autouse=True)
def own_places(monkeypatch):
    """Every call of a writer's is another task, with places of its own for its rows."""
    tasks = iter(range(99))
    for room in ("slabs", "cells"):
        monkeypatch.setattr(
            f"tensorlake_spark.spark.source.write.{room}.first_place",
            lambda base: base + (next(tasks) << 32),
        )


@pytest.mark.local_disk
@pytest.mark.parametrize(("shares", "layout"), [((0.9, 0.001), "ftsf"), ((0.11, 0.001), "bsgs")])
def test_tasks_that_disagree_come_to_one_layout(place, caplog, shares, layout):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    parts = [filled(share, seed) for seed, share in enumerate(shares)]
    ref = write_parts("slabs", [slab_batch(40 * k, x) for k, x in enumerate(parts)], place)
    assert ref.layout == layout
    np.testing.assert_array_equal(dense(ref[...]), np.concatenate(parts))
    [line] = [r.getMessage() for r in caplog.records if "layout" in r.getMessage()]
    assert line.startswith(f"tensor 'x': layout {layout}, because in a sample of it 0.")
    assert line.endswith("; 1 of 2 tasks saw otherwise, and their slabs were written again")
    files_in_order(Storage(place), 3)
    found = tl.open(place).check()
    assert not found.findings
    on_disk = {path.rpartition("/")[2] for path in DeltaTable(place).file_uris()}
    assert {p.name for p in Path(place).glob("*.parquet")} == on_disk


@pytest.mark.parametrize(
    ("share", "overwrite", "options", "layout", "says"),
    [
        (0.2, True, {}, "ftsf", "layout ftsf, because 0.2 of its elements are not zero, at least 0.1"),
        (0.02, True, {}, "bsgs", "of its elements are not zero, below 0.1"),
        (0.2, False, {}, "bsgs", "cells are appended, and more of them can follow only where"),
        (0.2, True, {"duplicates": "sum"}, "bsgs", "duplicates='sum' is an option of sparse layouts"),
        (0.2, True, {"order": "2,0,1"}, "bsgs", "order=(2, 0, 1) is an option of sparse layouts"),
    ],
)  # fmt: skip
def test_cells_say_why(place, caplog, share, overwrite, options, layout, says):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    rng = np.random.default_rng(3)
    x = np.zeros(SHAPE)
    x.reshape(-1)[rng.choice(x.size, round(share * x.size), replace=False)] = 2
    x[-1, -1, -1] = x[0, 0, 0]
    batches = [cell_batch(x[:20]), cell_batch(x[20:], 20)]
    ref = write_parts("cells", batches, place, overwrite, shape="40,30,20", **options)
    assert ref.layout == layout
    np.testing.assert_array_equal(dense(ref[...]), x)
    [line] = [r.getMessage() for r in caplog.records if "layout" in r.getMessage()]
    assert says in line


def test_a_large_tensor_stays_sparse(place, caplog, monkeypatch):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    monkeypatch.setattr(cells_module, "REWRITTEN_BYTES", 1000)
    x = filled(0.3)
    assert write_parts("cells", [cell_batch(x)], place).layout == "bsgs"
    assert "the driver alone would write its 187.5 KiB as chunks, though 0.293" in caplog.text
    assert "lake.convert('x', layout='ftsf') does so" in caplog.text


def test_an_unknown_share(place):
    for text, says in (
        ("a", "threshold='a' is not a share"),
        ("2", "threshold 2.0 is not a share"),
    ):
        with pytest.raises(tl.InvalidOptionError, match=says):
            write_parts("cells", [], place, threshold=text)
