"""Values of rows: arrays, lists and constants, gathered, repeated and computed."""

import datetime as dt
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest

from tensorlake_spark.query.functions.row_values import (
    SMALL,
    Constant,
    RowError,
    by_rows,
    by_shapes,
    expanded,
    for_functions,
    gathered,
    is_flat,
    items_of,
    length_of,
    taken,
)
from tensorlake_spark.threads import go_on, in_order


def test_alike_rows_become_an_array():
    found = gathered([np.zeros(2), np.ones(2)])
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [[0, 0], [1, 1]]


def test_whole_numbers_beside_the_largest_ones_stay_whole():
    """NumPy makes floats of uint64 and of a literal, and two integers were one."""
    found = gathered([np.uint64(2**63 + 1), 0, np.uint64(2**63)])
    assert found.dtype == np.uint64
    assert found.tolist() == [2**63 + 1, 0, 2**63]
    assert gathered([np.uint64(5), -1]).dtype == np.float64
    assert gathered([np.uint64(5), 0.5]).tolist() == [5, 0.5]


@pytest.mark.parametrize(
    "items",
    [
        [np.zeros(2), np.zeros(3)],
        [np.zeros(2), None],
        [np.zeros(2, np.int8), np.zeros(2, np.int16)],
        [None],
        ["a", 1],
    ],
)
def test_rows_that_differ_stay_a_list(items):
    found = gathered(items)
    assert isinstance(found, list)
    for got, given in zip(found, items, strict=True):
        assert np.array_equal(got, given)


def test_numbers_of_several_kinds_become_one():
    assert gathered([np.int32(1), np.float64(2.5)]).dtype == np.float64
    assert gathered(["a", "bcd"]).tolist() == ["a", "bcd"]
    assert len(gathered([])) == 0


def test_rows_are_taken_of_each_form():
    index = np.array([2, 0])
    assert taken(np.arange(3), index).tolist() == [2, 0]
    assert taken(["a", None, "c"], index) == ["c", "a"]
    assert taken(Constant(1), index) == Constant(1)


@pytest.mark.parametrize("value", [1, 2.5, "x", True, None, np.arange(3), Decimal("1.5")])
def test_constants_are_the_same_for_every_row(value):
    found = expanded(Constant(value), 3)
    assert len(found) == 3
    assert all(np.array_equal(one, value) for one in found)
    assert length_of(Constant(value)) is None
    assert len(list(items_of(Constant(value), 3))) == 3
    assert isinstance(found, list) == (value is None or isinstance(value, Decimal))


def test_flat_values_have_no_axes():
    assert is_flat([np.float64(1), None])
    assert is_flat(Constant("x"))
    assert not is_flat(np.zeros((2, 2)))
    assert not is_flat([None, np.zeros(2)])
    assert not is_flat(Constant(np.zeros(2)))


def test_by_rows_names_the_row_of_an_error():
    def one(x):
        if x == 2:
            raise ValueError("two  is\nbad")
        return x

    with pytest.raises(RowError, match="two is bad") as caught:
        by_rows(one, [np.arange(4)], 4)
    assert caught.value.row == 2


def test_by_rows_passes_other_errors_on():
    def one(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        by_rows(one, [np.arange(4)], 4)


def test_by_rows_of_constants_is_computed_once():
    calls = []
    found = by_rows(lambda x: calls.append(x) or 5, [Constant(1)], 1000)
    assert found == Constant(5)
    assert calls == [1]


def test_what_is_missing_is_not_computed():
    assert by_rows(lambda x, y: x + y, [[1, None, 3], [None, 2, 3]], 3) == [None, None, 6]


def total(x):
    return x.reshape(len(x), -1).sum(axis=1)


def test_rows_of_the_same_shape_are_computed_together():
    calls = []
    rows = [np.full(1 + i % 3, i) for i in range(30)]
    found = by_shapes(lambda x: calls.append(x.shape) or total(x), [rows], 30)
    assert found.tolist() == [one.sum() for one in rows]
    assert sorted(calls) == [(10, 1), (10, 2), (10, 3)]


def test_dtypes_are_not_mixed():
    rows = [np.ones(2, np.uint8), np.ones(2, np.float32)] * 4
    found = by_shapes(lambda x: x.max(axis=1), [rows], 8)
    assert [one.dtype for one in found] == [np.uint8, np.float32] * 4


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, SMALL + 1)),
        [np.zeros(SMALL + 1), np.zeros(SMALL + 2)],
        np.array(["a", None], object),
    ],
)
def test_large_rows_are_not_computed_together(values):
    assert by_shapes(total, [values], 2) is None


def test_failures_and_constants_without_a_value_go_another_way():
    def fails(x):
        raise ValueError

    assert by_shapes(fails, [np.zeros((2, 2))], 2) is None
    assert by_shapes(lambda x: None, [np.zeros((2, 2))], 2) is None
    assert by_shapes(lambda x, y: x, [np.zeros((2, 2)), Constant(None)], 2) is None


def test_many_shapes_go_another_way():
    assert by_shapes(total, [[np.zeros(i) for i in range(9)]], 9) is None


def test_rows_that_nobody_waits_for_are_not_computed():
    begun, given_up, done = threading.Event(), threading.Event(), []

    def slow(x):
        """Go on until the other task has failed."""
        done.append(x)
        begun.set()
        with suppress(CancelledError):
            while not given_up.wait(0.001):
                go_on()
        return x

    def work(task):
        if task == 0:
            assert begun.wait(60)
            raise ZeroDivisionError
        return by_rows(slow, [[*range(1000)]], 1000)

    guard = threading.Timer(60, given_up.set)
    guard.start()
    with pytest.raises(ZeroDivisionError):
        list(in_order(work, [0, 1]))
    guard.cancel()
    assert done == [0]


def test_dates_and_times_are_those_of_numpy():
    day, east = dt.date(1969, 12, 31), dt.timezone(dt.timedelta(hours=2))
    times = [dt.datetime(2020, 1, 1, 2, 0, 0, 5, east), None, dt.datetime(2020, 1, 1, 0, 0, 0, 5)]
    one, two, three, other = for_functions([day, [day, None], times, [1, None]])
    assert one == np.datetime64("1969-12-31")
    assert two.dtype == "M8[D]"
    assert np.isnat(two).tolist() == [False, True]
    assert three.dtype == "M8[us]"
    assert three[0] == three[2] == np.datetime64("2020-01-01T00:00:00.000005")
    assert other.tolist() == [1, None]


def test_numbers_beside_nulls_have_one_dtype():
    found = gathered([np.int8(-128), None, np.float32(1.5), 2])
    assert [None if v is None else (type(v), v) for v in found] == [
        (np.float64, -128), None, (np.float64, 1.5), (np.float64, 2),
    ]  # fmt: skip
    assert [type(v) for v in gathered([2, None])] == [np.int64, type(None)]
    assert gathered([np.uint64(2**64 - 1), 0, None])[:2] == [2**64 - 1, 0]
    texts = gathered(["a", None, 1])
    assert texts == ["a", None, 1]
    assert gathered([True, None, 2.5]) == [True, None, 2.5]
    assert gathered([True, None, 2])[0] is True
