"""``layout="auto"`` in ingestions: executors look at a sample before the write, and the reason is logged."""

import logging

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.spark.ingest.ingest_options import IngestOptions
from tensorlake_spark.spark.ingest.ingestion import run
from tensorlake_spark.spark.ingest.records.cell_options import CellOptions


def filled(shape, share, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(shape, np.int32)
    x.reshape(-1)[rng.choice(x.size, round(share * x.size), replace=False)] = 7
    return x


def dense(found):
    return found.todense() if isinstance(found, tl.SparseTensor) else found


def said(caplog):
    [line] = [r.getMessage() for r in caplog.records if ": layout " in r.getMessage()]
    caplog.clear()
    return line


@pytest.mark.parametrize(
    ("share", "options", "layout"),
    [
        (0.2, {}, "ftsf"),
        (0.02, {}, "bsgs"),
        (0.02, {"threshold": "0.01"}, "ftsf"),
        (0.02, {"layout": "ftsf"}, "ftsf"),
        (0.2, {"layout": "csf"}, "csf"),
    ],
)
def test_arrays(spark, tmp_path, place, caplog, share, options, layout):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    parts = [filled((40, 50), share, k) for k in range(3)]
    for k, x in enumerate(parts):
        np.save(tmp_path / f"{k}.npy", x)
    sources = [str(tmp_path / "?.npy")]
    plan = run(spark, place, "x", sources, IngestOptions(options=options, dry_run=True)).plan
    assert plan.tensors[0].layout == layout
    caplog.clear()
    run(spark, place, "x", sources, IngestOptions(options=options, resume=True))
    ref = tl.open(place)["x"]
    assert ref.layout == layout
    assert (ref.block_shape or ()) == plan.tensors[0].block_shape
    np.testing.assert_array_equal(dense(ref[...]), np.stack(parts))
    if "layout" in options:
        assert ": layout " not in caplog.text
    else:
        line = said(caplog)
        assert line.startswith(f"tensor 'x': layout {layout}, because in a sample of it {share}")
    run(spark, place, "x", sources[:1], IngestOptions(mode="append"))
    assert tl.open(place)["x"].layout == layout


def write_cells(path, x):
    lines = [f"{i},{j},{x[i, j]}" for i, j in np.random.default_rng(0).permutation(np.argwhere(x))]
    path.write_text("i,j,v\n" + "\n".join(lines) + "\n")


CELLS = CellOptions(axis=("i", "j"), value="v")


@pytest.mark.parametrize(
    ("share", "mode", "options", "layout", "says"),
    [
        (0.3, "error", {"axes": None}, "ftsf", "at least 0.1"),
        (0.02, "error", {}, "bsgs", "below 0.1"),
        (0.02, "overwrite", {"threshold": "0.01", "blockShape": "16,16"}, "ftsf", "at least 0.01"),
        (0.3, "append", {}, "bsgs", "cells are appended, and more of them can follow"),
        (0.3, "error", {"duplicates": "last"}, "bsgs", "duplicates='last' is an option of sparse"),
        (0.3, "error", {"layout": "coo"}, "coo", ""),
    ],
)
def test_cells(spark, tmp_path, place, caplog, share, mode, options, layout, says):
    caplog.set_level(logging.INFO, "tensorlake_spark")
    x = filled((70, 90), share)
    x[-1, -1] = 3
    write_cells(tmp_path / "x.csv", x)
    options = {name: value for name, value in options.items() if value is not None}
    given = {
        "cells": CELLS,
        "mode": mode,
        "options": {"shape": "70,90", "dtype": "int32", **options},
    }
    plan = run(
        spark, place, "x", [str(tmp_path / "x.csv")], IngestOptions(**given, dry_run=True)
    ).plan
    assert plan.tensors[0].layout == layout
    caplog.clear()
    done = run(spark, place, "x", [str(tmp_path / "x.csv")], IngestOptions(**given))
    ref = tl.open(place)["x"]
    assert (ref.layout, ref.dtype, done.metas[0].spec.layout) == (layout, np.int32, layout)
    assert (ref.block_shape or ()) == plan.tensors[0].block_shape
    assert ref.axes == ("i", "j")
    np.testing.assert_array_equal(dense(ref[...]), x)
    assert ref.version == 1, "one commit beside that which makes the table"
    if says:
        assert says in said(caplog)
    assert not tl.open(place).check().findings


def test_cells_that_are_there_twice_and_a_dense_tensor_that_cells_are_appended_to(
    spark, tmp_path, place
):
    (tmp_path / "x.csv").write_text("i,j,v\n0,0,1\n0,1,2\n0,0,3\n")
    sources, given = [str(tmp_path / "x.csv")], IngestOptions(cells=CELLS)
    with pytest.raises(
        tl.InvalidTensorError, match=r"cell \(0, 0\) of tensor 'x' is given more than"
    ):
        run(spark, place, "x", sources, given)
    (tmp_path / "x.csv").write_text("i,j,v\n0,0,1\n0,1,2\n")
    run(spark, place, "x", sources, given)
    assert tl.open(place)["x"].layout == "ftsf"
    with pytest.raises(
        tl.InvalidOptionError, match=r"lake\.convert\('x', layout='bsgs'\) makes it"
    ):
        run(spark, place, "x", sources, IngestOptions(cells=CELLS, mode="append"))
