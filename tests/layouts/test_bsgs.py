"""BSGS keeps the laws, cuts blocks that prune, and stores full blocks as arrays."""

import numpy as np
import pytest

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.bsgs import Bsgs
from tensorlake_spark.layouts.testing.laws import SparseLaws
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec

SHAPE = (32, 64)


class TestBsgs(SparseLaws):
    layout = layout_of("bsgs")


def rows_of(values, codec="zstd", dtype="float64"):
    spec = TensorSpec("x", SHAPE, np.dtype(dtype), "bsgs", SHAPE, codec=codec)
    return Bsgs().encode(SparseTensor.from_dense(values.astype(dtype)), (0, 0), spec)


def noise(fill, dtype="float64"):
    """Random numbers in a share of the cells."""
    rng = np.random.default_rng(0)
    values = rng.integers(1, 256, SHAPE) if dtype == "uint8" else rng.random(SHAPE) + 1
    return np.where(rng.random(SHAPE) < fill, values, 0)


@pytest.mark.parametrize("codec", ["zstd", "raw"])
@pytest.mark.parametrize(
    ("fill", "dtype", "is_array"),
    [
        (1.0, "float64", True), (0.99, "float64", None), (0.5, "float64", None), (0.01, "float64", False),
        (1.0, "uint8", True), (0.95, "uint8", True), (0.2, "uint8", None), (0.01, "uint8", False),
    ],
)  # fmt: skip
def test_a_block_is_an_array_exactly_where_that_is_smaller(
    fill, dtype, is_array, codec, monkeypatch
):
    values = noise(fill, dtype)
    (row,) = rows_of(values, codec, dtype)
    assert row.nnz == np.count_nonzero(values)
    with monkeypatch.context() as patched:
        patched.setattr(Bsgs, "_dense", staticmethod(lambda *_: None))
        (offsets,) = rows_of(values, codec, dtype)
    assert offsets.index is not None
    if is_array is not None:
        assert (row.index is None) == is_array
    assert (row.nbytes < offsets.nbytes) == (row.index is None)
    assert row.nbytes <= offsets.nbytes


def test_a_block_with_an_explicit_zero_is_no_array():
    """As an array it would lose that the zero is stored."""
    values = noise(1.0)
    tensor = SparseTensor.from_dense(values)
    spec = TensorSpec("x", SHAPE, np.dtype("float64"), "bsgs", SHAPE)
    numbers = tensor.values.copy()
    numbers[7] = 0
    (row,) = Bsgs().encode(SparseTensor(tensor.coords, numbers, SHAPE), (0, 0), spec)
    assert (row.nnz, row.index is None) == (values.size, False)


@pytest.mark.parametrize("dtype", ["u1", "f8", "c16"])
def test_the_default_block_goes_by_shape_and_density(dtype):
    block = Bsgs().default_block
    uber = (183, 24, 1140, 1717)
    assert block(uber, np.dtype(dtype), 3_309_490 / np.prod(uber)) == (4, 24, 128, 128)
    assert block((365, 24), np.dtype(dtype), 0.05) == (64, 24)
