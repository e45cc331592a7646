"""Specs, ids and dtypes."""

import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.layouts.testing.laws import DTYPES
from tensorlake_spark.tensor.spec import TensorSpec, check_axes, check_id, dtype_name, dtype_of


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_have_one_name(name):
    assert dtype_name(dtype_of(name)) == name
    assert dtype_name(dtype_of(name).newbyteorder(">")) == name


@pytest.mark.parametrize("dtype", ["O", "S4", "U3", "i4,f4", "V3", "M8", "g", "G"])
def test_dtypes_that_no_row_holds(dtype):
    with pytest.raises(UnsupportedDtypeError, match="cannot be stored"):
        dtype_name(np.dtype(dtype))
    assert issubclass(UnsupportedDtypeError, TypeError)


@pytest.mark.parametrize("name", ["nope", "float128", "bfloat17", "float8_nope", ">f4", "object"])
def test_names_that_are_no_dtype(name):
    with pytest.raises(UnsupportedDtypeError):
        dtype_of(name)


def test_a_short_name_is_told_the_full_one():
    with pytest.raises(UnsupportedDtypeError, match=r"'f4' is not the .*; its name is 'float32'"):
        dtype_of("f4")


@pytest.mark.parametrize("bad", ["", "a" * 513, "a//b", "/a", "a/", "a/../b", ".", "a\nb", 7])
def test_bad_ids(bad):
    with pytest.raises(InvalidTensorError):
        check_id(bad)


def test_specs_check_themselves_and_pickle():
    spec = TensorSpec(
        "a/b", (3, 4), np.dtype("f4"), "ftsf", (2, 4), axes=("y", "x"), attrs={"k": 1}
    )
    assert pickle.loads(pickle.dumps(spec)) == spec
    for change in (
        {"block_shape": (2,)},
        {"block_shape": (0, 4)},
        {"shape": (-1, 4)},
        {"shape": (2**40, 2**40)},
        {"fill": b"\0"},
        {"axes": ("y",)},
    ):
        with pytest.raises(InvalidTensorError):
            TensorSpec(**{**{f: getattr(spec, f) for f in spec.__slots__}, **change})
    for axes in (("a", "a"), ("1",), ("a",)):
        with pytest.raises(InvalidTensorError):
            check_axes(axes, 2)


@pytest.mark.parametrize("given", [[], {}, {1}, np.array([1]), "\ud800", np.array("x")], ids=ascii)
def test_what_is_no_dtype_is_named(given):
    with pytest.raises(UnsupportedDtypeError, match="is no dtype"):
        dtype_name(given)
    with pytest.raises(TypeError):
        tl.SparseTensor.from_dense(np.eye(2)).astype(given)
