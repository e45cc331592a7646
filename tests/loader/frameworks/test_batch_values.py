"""What all frameworks share: which values are numbers, what is converted, and what a missing package says."""

import sys

import ml_dtypes
import numpy as np
import pytest

from tensorlake_spark.errors import MissingDependencyError
from tensorlake_spark.loader.frameworks.batch_values import each_value, framework, is_numeric, plain


def test_a_package_that_is_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingDependencyError, match=r"needs torch, .* pip install 'tensorlake-spark\[torch\]'"
    ):
        framework("torch", "torch")
    with pytest.raises(MissingDependencyError, match="pip install 'a_package_of_nobody'"):
        framework("a_package_of_nobody.inner")


def test_a_package_that_is_there():
    assert framework("numpy") is np


@pytest.mark.parametrize(
    "dtype",
    [
        "?",
        "u1",
        "<u2",
        ">u4",
        "i8",
        "f2",
        "f8",
        "c16",
        "g",
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
    ],
)
def test_numbers(dtype):
    assert is_numeric(np.zeros(2, dtype))


@pytest.mark.parametrize("dtype", ["U3", "S3", "O", "M8[s]", "m8[s]", [("a", "i4")], "V3"])
def test_what_is_no_number(dtype):
    assert not is_numeric(np.zeros(2, dtype))


@pytest.mark.parametrize("value", [1, "a", None, [np.zeros(2)], np.float64(1)])
def test_only_arrays_are_numeric(value):
    assert not is_numeric(value)


def test_each_value_is_converted_wherever_it_is():
    batch = {
        "x": np.arange(3),
        "ragged": [np.arange(1), None],
        "pair": (1, "a"),
        "group": {"y": np.arange(2)},
    }
    found = each_value(
        batch, lambda value: value.tolist() if isinstance(value, np.ndarray) else value
    )
    assert found == {
        "x": [0, 1, 2],
        "ragged": [[0], None],
        "pair": (1, "a"),
        "group": {"y": [0, 1]},
    }
    assert each_value("whatever a transform made", str.upper) == "WHATEVER A TRANSFORM MADE"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4"),
        np.arange(6)[::-1],
        np.arange(12).reshape(3, 4)[:, ::-2],
        np.zeros(4, [("a", "i1"), ("b", "<i4")])["b"],
    ],
)
def test_what_frameworks_do_not_take_is_copied(array):
    found = plain(array)
    assert found.tolist() == array.tolist()
    assert found.dtype.isnative
    assert all(step > 0 and step % found.itemsize == 0 for step in found.strides)
    assert not np.shares_memory(found, array)


@pytest.mark.parametrize(
    "array", [np.arange(6), np.arange(12).reshape(3, 4).T, np.arange(10)[::3], np.zeros((0, 3))]
)
def test_anything_else_stays_where_it_is(array):
    assert plain(array) is array
