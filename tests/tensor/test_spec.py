"""Specs, ids and dtypes."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError
from tensorlake_spark.layouts.testing.laws import DTYPES
from tensorlake_spark.tensor.spec import (
    TensorSpec,
    check_axes,
    check_id,
    converted,
    dtype_name,
    dtype_of,
)


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


@pytest.mark.parametrize(
    ("value", "dtype", "why"),
    [
        (np.datetime64("2024-01-01"), "i1", "only numbers can"),  # its bytes are another number
        (np.timedelta64(3, "s"), "f8", "only numbers can"),
        (1j, "M8[D]", "only integers, texts and times"),
        (np.nan, "M8[D]", "only integers, texts and times"),
        (1.5, "m8[s]", "only integers, texts and times"),
        (np.datetime64("2024-01-01"), "m8[s]", "only integers, texts and times"),
        (np.timedelta64(3, "M"), "m8[s]", "only integers, texts and times"),
        (np.datetime64("2024-01-01T07"), "M8[D]", "without loss"),
        (
            np.datetime64("9999-01-01"),
            "M8[ns]",
            "(without loss|Overflow)",
        ),  # NumPy 2.5 says so itself
        (np.uint64(2**63 + 1), "M8[D]", "without loss"),
    ],
)
def test_times_and_numbers_do_not_become_each_other(value, dtype, why):
    with pytest.raises(
        InvalidTensorError, match=f"x of dtype .*{why}|cannot be stored in x.*{why}"
    ):
        converted(value, np.dtype(dtype), "x")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (5, "M8[D]"),
        ("2024-01-05", "M8[D]"),
        (np.datetime64("NaT", "D"), "M8[s]"),
        (np.timedelta64(2, "h"), "m8[s]"),
    ],
)
def test_what_becomes_a_time(value, dtype):
    want = np.empty((), dtype)
    want[...] = value
    np.testing.assert_array_equal(converted(value, want.dtype, "x"), want)


def test_a_name_of_ml_dtypes_is_known_before_anything_imported_it():
    """NumPy knows ``bfloat16`` only from then on, and it did not depend on the user whether that was so."""
    code = "import tensorlake_spark as tl; print(tl.SparseTensor([[0]], [1.0], (3,)).astype('bfloat16').dtype)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bfloat16"]
