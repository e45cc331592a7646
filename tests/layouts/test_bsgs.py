"""BSGS keeps the laws, cuts blocks that prune, and stores full blocks as arrays."""

import numpy as np
import pytest

import tensorlake_spark as tl
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


@pytest.mark.parametrize("layout", ["bsgs", "coo", "csr"])
@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "uint64", "int32", "int8", "complex64", "bool"]
)
def test_values_of_one_byte_are_read_beside_longer_ones(tmp_path, dtype, layout):
    """They are widened last: in no way of reading may their short dtype show."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((64, 48)) < 0.2, rng.integers(1, 100, (64, 48)), 0).astype(dtype)
    dense[40:] = dense[40:] * np.array(300 if dtype in ("float64", "uint64", "int32") else 1, dtype)
    lake = tl.open(tmp_path)
    ref = lake.write("x", tl.SparseTensor.from_dense(dense), layout=layout)
    at = tuple(np.argwhere(dense)[0].tolist())
    for key in (..., slice(0, 8), (slice(30, 50), slice(None, None, 3)), at, (40, 3), 5):
        found = ref[key]
        found = found.todense() if isinstance(found, tl.SparseTensor) else found
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, dense[key])
    for name in ("sum", "max", "argmax", "count_nonzero"):
        if name == "sum" or dtype not in ("complex64", "bool"):
            found = getattr(ref, name)(axis=0)
            found = found.todense() if isinstance(found, tl.SparseTensor) else found
            wanted = getattr(np, name)(dense, axis=0)
            np.testing.assert_array_equal(found, wanted, strict=True)
    found = (ref * np.array(3, dtype)).todense()
    np.testing.assert_array_equal(found, dense * np.array(3, dtype), strict=True)


@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_elements_of_one_byte_that_share_a_place_are_added_in_the_dtype(tmp_path, dtype):
    some = tl.SparseTensor(np.array([[1, 2], [3, 4]]), np.array([200, 100], dtype), (5, 6))
    lake = tl.open(tmp_path)
    lake.write("x", some, layout="bsgs", duplicates="sum")
    ref = lake.write("x", some, mode="append", axis=None, duplicates="sum")
    assert ref[1, 3] == 400
    assert ref[...].values.tolist() == [400, 200]
    assert ref[...].dtype == ref[1, 3].dtype == dtype
