"""Digests of values: the same for the same values, and for no others."""

import datetime as dt

import ml_dtypes
import numpy as np
import pytest

from tensorlake_spark.query.engine.value_digests import value_digests
from tensorlake_spark.query.functions.row_values import RowError


def are_same(a, b):
    first, second = value_digests([a, b], 2).to_pylist()
    return first == second


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.array([[1, 2]], "f4"), np.array([[1, 2], [3, 4]], "f4")[:1]),
        (np.array([0.0, np.nan]), np.array([-0.0, -np.nan])),
        (np.array([0.0 + 1j]), np.array([complex(-0.0, 1)])),
        (np.arange(6).reshape(2, 3).T, np.array([[0, 3], [1, 4], [2, 5]])),
        (np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4")),
        (np.ones(2, ml_dtypes.bfloat16), np.ones(2, ml_dtypes.bfloat16)),
        (
            np.array([0.0, np.nan], ml_dtypes.bfloat16),
            np.array([-0.0, -np.nan], ml_dtypes.bfloat16),
        ),
        (
            np.array([0.0, np.nan], ml_dtypes.float8_e5m2),
            np.array([-0.0, -np.nan], ml_dtypes.float8_e5m2),
        ),
        (np.array(["2026-01-31"], "M8[D]"), np.array(["2026-01-31"], "M8[D]")),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.float32(2), 2),
        (2.0 + 0j, np.int8(2)),
        ("a", np.str_("a")),
        ([1, None, {"a": [2], "b": "x"}], [1, None, {"b": "x", "a": [2]}]),
        ([np.ones(2), np.ones(3)], [np.ones(2), np.ones(3)]),
        (dt.date(2026, 1, 31), dt.date(2026, 1, 31)),
    ],
)
def test_equal_values_have_the_same(a, b):
    assert are_same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(2), np.zeros(3)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(2, "f4"), np.zeros(2, "f8")),
        (np.array([1, 2]), np.array([2, 1])),
        (np.zeros((0, 3)), np.zeros((0, 4))),
        (np.array([1]), 1),
        ("1", 1),
        (b"a", "a"),
        (["ab", "c"], ["a", "bc"]),
        ([[1], []], [[], [1]]),
        (0.5, 0),
        (True, "True"),
    ],
)
def test_other_values_have_others(a, b):
    assert not are_same(a, b)


def test_nulls_and_arrays_of_rows():
    rows = np.array([[1, 2], [3, 4], [1, 2]])
    found = value_digests(rows, 3).to_pylist()
    assert found[0] == found[2] != found[1]
    assert {len(one) for one in found} == {16}
    assert value_digests([None, None], 2).null_count == 2
    assert value_digests([], 0).type == "binary"


def test_what_cannot_be_compared_is_named():
    with pytest.raises(RowError, match="values of type object cannot be compared") as caught:
        value_digests([1, object()], 2)
    assert caught.value.row == 1
