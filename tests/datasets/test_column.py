"""A column: batches, and one sample's bytes."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

import tensorlake_spark as tl


def test_batches_are_the_column_as_it_is_stored(tmp_path, jpegs):
    ds = tl.dataset(tmp_path, {"image": tl.types.Image("jpeg")})
    ds.extend({"image": [*jpegs, None]})
    for views in (True, False):
        arrays = [*ds["image"].batches(views)]
        assert {array.type.field("data").type for array in arrays} == {
            pa.binary_view() if views else pa.binary()
        }
        found = [one for array in arrays for one in array.field("data").to_pylist()]
        assert found == [*jpegs, None]


def test_a_null_has_no_bytes(tmp_path, jpegs):
    ds = tl.dataset(tmp_path, {"a": tl.types.Image("jpeg"), "b": tl.types.Tensor("int8")})
    ds.extend([{"a": jpegs[0]}, {"b": np.arange(3, dtype=np.int8)}])
    assert ds["a"].encoded(1) is None
    assert ds["b"].encoded(-1) == bytes([0, 1, 2])


@pytest.mark.parametrize("tile_bytes", [None, 64], ids=["in its row", "in tiles"])
def test_a_key_that_does_not_fit_a_sample(tmp_path, tile_bytes):
    kind = tl.types.Tensor("int64", (None, 3))
    ds = tl.dataset(tmp_path, {"x": kind}, tile_bytes=tile_bytes)
    ds.extend({"x": [np.arange(60).reshape(20, 3)]})
    assert ds["x"][0, 5, 1] == 16
    with pytest.raises(
        tl.InvalidKeyError,
        match="sample 0 of column 'x': index 20 is out of bounds for axis 0 with size 20",
    ):
        ds["x"][0, 20]
    with pytest.raises(tl.InvalidKeyError, match="sample 0 of column 'x': too many indices"):
        ds["x"][0, 1, 1, 1]
    with pytest.raises(
        tl.InvalidSliceError, match=r"sample 0 of column 'x': .*slice step cannot be zero"
    ):
        ds["x"][0, ::0]


@pytest.mark.parametrize(
    ("dtype", "values", "wanted"),
    [
        ("int32", [1, 2], np.array([1, 2, 0], np.int32)),
        ("uint64", [2**64 - 1, 1], np.array([2**64 - 1, 1, 0], np.uint64)),
        ("float16", [0.5, 1], np.array([0.5, 1, 0], np.float16)),
        ("bool", [True, True], np.array([True, True, False])),
        ("date", [dt.date(2020, 1, 1)] * 2, np.array(["2020-01-01"] * 2 + ["1970-01-01"], "M8[D]")),
        (tl.types.ClassLabel(["a", "b"]), ["b", "b"], np.array([1, 1, 0], np.int32)),
    ],
)
def test_padded_scalars_have_the_dtype_of_their_column(tmp_path, dtype, values, wanted):
    # Python's numbers have none: uint64 was refused as two dtypes, int32 became int64.
    ds = tl.dataset(str(tmp_path), {"x": dtype})
    ds.extend({"x": [*values, None]})
    found = ds["x"].padded()
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(ds["x"].padded([1, 0]), wanted[[1, 0]])
    assert ds["x"].padded([2]).dtype == ds["x"].padded([]).dtype == wanted.dtype
    with pytest.raises(tl.InvalidOptionError, match=r"fill=\[1\] is no value of"):
        ds["x"].padded(fill=[1])


def test_padded_decimals_are_decimals_not_arrays_around_them(tmp_path):
    ds = tl.dataset(str(tmp_path), {"x": "decimal(5, 2)"})
    ds.extend({"x": [decimal.Decimal("1.50"), None]})
    assert ds["x"].padded().tolist() == [decimal.Decimal("1.50"), 0]
    assert isinstance(ds["x"].padded()[0], decimal.Decimal)
