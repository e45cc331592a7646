"""A table of tensors in every layout, read as a plain Delta table by several pages."""

import numpy as np
import pytest
from plain_tables import SHAPE, SPARSE

import tensorlake_spark as tl


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).integers(-50, 50, SHAPE).astype("f4")


@pytest.fixture(scope="module")
def thin(x):
    return np.where(np.random.default_rng(1).random(SHAPE) < 0.15, x, 0)


@pytest.fixture(scope="module")
def path(tmp_path_factory, x, thin):
    path = tmp_path_factory.mktemp("plain") / "lake"
    lake = tl.open(path)
    lake.write("dense", x, block_shape=(2, 3, 5), axes=("t", "y", "x"))
    lake.write("filled", np.where(np.arange(9) < 4, 0, np.arange(9)), block_shape=(2,))
    lake.write("number", np.float64(2.5))
    for layout in SPARSE:
        block = (4, 4, 4) if layout == "bsgs" else None
        lake.write(layout, tl.SparseTensor.from_dense(thin), layout=layout, block_shape=block)
    twice = tl.SparseTensor([[1]], [2.0], (5,))
    for _ in range(2):
        kept = {"axis": None, "duplicates": "sum"}
        lake.write("sum", twice, mode="append", layout="coo", **kept)
    return str(path)


@pytest.fixture(scope="module")
def table(spark, path):
    return spark.read.format("delta").load(path)
