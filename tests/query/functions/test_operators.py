"""Arithmetic, comparisons and logic of rows, against NumPy row by row."""

import operator
import sqlite3
from contextlib import closing
from decimal import Decimal

import ml_dtypes
import numpy as np
import pytest

from tensorlake_spark.query.functions import operators
from tensorlake_spark.query.functions.operators import (
    alike,
    among,
    applied,
    both,
    first_given,
    from_truth,
    inverse,
    is_missing,
    null_if,
    truth,
)
from tensorlake_spark.query.functions.row_values import Constant, RowError, expanded, items_of

ROWS = 3
RNG = np.random.default_rng(11)
FORMS = {
    "flat": RNG.integers(0, 5, ROWS),
    "stack": RNG.integers(0, 5, (ROWS, 4, 2)).astype(np.uint8),
    "wide": RNG.random((ROWS, 2)),
    "ragged": [RNG.random(shape) for shape in [(1, 2), (4, 2), (2,)]],
    "missing": [np.float32(1), None, np.float32(0)],
    "number": Constant(3),
    "array": Constant(np.array([[1, 2]])),
    "null": Constant(None),
}
FUNCTIONS = [np.add, np.subtract, np.multiply, np.true_divide, np.mod, np.greater, np.equal]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("left", FORMS)
@pytest.mark.parametrize("right", FORMS)
def test_operators_are_those_of_numpy_in_each_row(function, left, right):
    a, b = FORMS[left], FORMS[right]
    with np.errstate(all="ignore"):
        found = list(expanded(applied(function, [a, b], ROWS), ROWS))
        for got, x, y in zip(found, items_of(a, ROWS), items_of(b, ROWS), strict=True):
            if x is None or y is None:
                assert got is None
                continue
            wanted = function(x, y)
            assert np.shape(got) == np.shape(wanted)
            np.testing.assert_array_equal(got, wanted)
            if left not in ("number", "missing") or right not in ("number", "missing"):
                assert np.asarray(got).dtype == np.asarray(wanted).dtype


def test_shapes_that_do_not_fit_name_the_row():
    rows = [np.zeros(2), np.zeros(2), np.zeros(3)]
    with pytest.raises(RowError, match="broadcast") as caught:
        applied(np.add, [rows, Constant(np.zeros(2))], 3)
    assert caught.value.row == 2
    with pytest.raises(RowError) as caught:
        applied(np.add, [np.zeros((3, 2)), np.zeros((3, 3))], 3)
    assert caught.value.row == 0


def test_texts_are_compared_and_not_added_to_numbers():
    texts = np.array(["a", "b", "a"])
    assert applied(np.equal, [texts, Constant("a")], 3).tolist() == [True, False, True]
    assert applied(np.less, [texts, Constant("b")], 3).tolist() == [True, False, True]
    with pytest.raises(RowError):
        applied(np.multiply, [texts, Constant(2)], 3)


def test_whole_numbers_wrap_around_and_too_large_ones_are_an_error():
    x = np.array([200, 100, 0], np.uint8)
    assert applied(np.add, [x, Constant(100)], 3).tolist() == [44, 200, 100]
    with pytest.raises(RowError, match="out of bounds"):
        applied(np.add, [x, Constant(1000)], 3)
    assert applied(np.less, [x, Constant(1000)], 3).all()


def test_what_is_computed_of_pythons_numbers_takes_the_dtype_beside_it():
    two = applied(np.add, [Constant(1), Constant(1)], 3)
    assert applied(np.multiply, [np.ones(3, np.uint8), two], 3).dtype == np.uint8
    two = applied(np.add, [Constant(np.int64(1)), Constant(1)], 3)
    assert applied(np.multiply, [np.ones(3, np.uint8), two], 3).dtype == np.int64


def test_moments_are_compared_with_texts():
    x = np.array(["2026-01-01", "2026-02-01"], "datetime64[D]")
    assert applied(np.greater, [x, Constant("2026-01-15")], 2).tolist() == [False, True]
    with pytest.raises(RowError, match="no moment"):
        applied(np.greater, [x, Constant("yesterday")], 2)


TRUTHS = [True, False, None]


@pytest.mark.parametrize("left", TRUTHS)
@pytest.mark.parametrize("right", TRUTHS)
def test_and_is_that_of_sql(left, right):
    import duckdb

    with duckdb.connect() as con:
        wanted = con.execute("SELECT ?::BOOLEAN AND ?::BOOLEAN", [left, right]).fetchone()[0]
    assert both(left, right) is wanted


def test_truths():
    assert truth(np.array([0.0, 2.0, np.nan]), 3) == [False, True, True]
    assert truth(Constant(True), 2) == [True, True]
    assert truth([None, np.array(0)], 2) == [None, False]
    assert isinstance(from_truth([True, False]), np.ndarray)
    assert from_truth([True, None]) == [True, None]


@pytest.mark.parametrize("values", [np.zeros((2, 3)), [np.zeros(1), None], ["a", None]])
def test_an_array_is_neither_true_nor_false(values):
    with pytest.raises(RowError, match="a condition is true or false"):
        truth(values, 2)


def test_not():
    assert list(inverse([True, None, False], 3)) == [False, None, True]
    assert inverse(np.array([[True, False]]), 1).tolist() == [[False, True]]


def test_missing_values():
    assert is_missing([None, 1], 2).tolist() == [True, False]
    assert is_missing(np.array([np.nan]), 1).tolist() == [False]
    assert is_missing(Constant(None), 2) == Constant(True)


def test_the_first_that_is_given():
    assert list(first_given([[None, 1, None], Constant(None), [5, 6, None]], 3)) == [5, 1, None]


def test_null_if():
    assert list(null_if(np.array([1, 2]), np.array([2, 2]), 2)) == [1, None]
    assert list(null_if([None, "a"], Constant("b"), 2)) == [None, "a"]


def test_among():
    x = [1, 5, None]
    assert list(among(x, [Constant(1), Constant(2)], 3)) == [True, False, None]
    assert list(among(x, [Constant(np.array([5, 6]))], 3)) == [False, True, None]
    assert list(among(x, [Constant(1), Constant(None)], 3)) == [True, None, None]
    assert list(among(np.arange(3), [np.arange(3)[::-1]], 3)) == [False, True, False]
    assert list(among(np.arange(3), [Constant(np.zeros(0))], 3)) == [False] * 3
    for many in (np.arange(2, 99), np.arange(2.0, 99), np.array([str(n) for n in range(2, 99)])):
        some = ["1", "2", None] if many.dtype.kind == "U" else x  # as few of them would be
        assert list(among(some, [Constant(many)], 3)) == list(among(some, [Constant(many[:9])], 3))
    with pytest.raises(RowError):
        among(np.arange(3), [Constant(np.array([str(n) for n in range(99)]))], 3)
    for option in (1, np.arange(99)):
        with pytest.raises(RowError, match="IN takes single values"):
            among(np.zeros((2, 2)), [Constant(option)], 2)
    assert list(among(x, [Constant(np.arange(5, 99)), Constant(1)], 3)) == [True, True, None]


@pytest.mark.parametrize("length", [1, 50])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", ml_dtypes.bfloat16])
def test_numbers_of_a_list_take_the_dtype_of_what_they_are_compared_with(length, dtype):
    """A list of Python's numbers found no float32, though each of them alone did."""
    options = [0.1, *range(200, 200 + length - 1)]
    x = np.array([0.1, 0.25, 7]).astype(dtype)
    wanted = [any(one == option for option in options) for one in x]
    assert wanted == [dtype in ("float16", "float32", "float64"), False, False]
    assert list(among(x, [Constant(options)], 3)) == wanted
    assert list(among([*x[:2], None], [Constant(options)], 3)) == [*wanted[:2], None]
    assert not any(among(x[1:2], [Constant(options)], 1))


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("c%", [True, False, True]), ("_at", [True, False, False]), ("%", [True] * 3), ("", [False] * 3),
        ("%a%", [True, False, True]), ("c.t", [False] * 3), ("C%", [False] * 3), ("%%%%%%%%%%%%%%%%%%%%%%x", [False] * 3),
    ],
)  # fmt: skip
def test_like(pattern, wanted):
    assert list(alike(np.array(["cat", "dog", "car\n"]), Constant(pattern), 3)) == wanted


@pytest.mark.parametrize("seed", range(200))
def test_like_is_that_of_sqlite(seed):
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(list("ab"), rng.integers(0, 8)))
    pattern = "".join(rng.choice(list("ab%_"), rng.integers(0, 6)))
    with closing(sqlite3.connect(":memory:")) as con:
        (wanted,) = con.execute("SELECT ? LIKE ?", [text, pattern]).fetchone()
    assert list(alike(np.array([text]), Constant(pattern), 1)) == [bool(wanted)]


def test_like_of_many_parts_ends_soon():
    text, pattern = "a" * 5000, "%a" * 50 + "%b"
    assert list(alike(np.array([text]), Constant(pattern), 1)) == [False]


def test_like_of_any_case():
    assert list(alike(np.array(["cat"]), Constant("C%"), 1, fold=True)) == [True]


@pytest.mark.parametrize("name", sorted(operators.ELEMENTS))
def test_functions_of_elements_keep_the_shape(name):
    function = operators.ELEMENTS[name]
    count = 2 if name in ("atan2", "power", "pow", "greatest", "least", "mod") else 1
    x = np.array([[0.5, -0.25]])
    with np.errstate(all="ignore"):
        assert np.shape(function(*[x] * count)) == x.shape


def test_rounding_and_logarithms():
    assert operators.rounded(np.array([1.25, 2.5]), 0).tolist() == [1, 2]
    assert operators.logarithm(10, 1000) == pytest.approx(3)


def test_casts():
    assert operators.cast("3.5", np.dtype(float)) == 3.5
    assert operators.cast(np.array([1.9, -1.9]), np.dtype(int)).tolist() == [1, -1]
    assert operators.cast(np.array([1], object), np.dtype(np.int8)).dtype == np.int8
    with pytest.raises(ValueError):
        operators.cast("x", np.dtype(float))
    assert operators.cast(5, np.dtype(str)) == "5"
    assert operators.cast(2j, np.dtype(bool))
    assert operators.cast(2j, np.dtype(int)) == 0


def test_nothing_here_is_an_alias_of_an_operator():
    assert applied(operator.add, [Constant(1), Constant(2)], 5) == Constant(3)


def test_an_integer_beside_times_counts_in_their_unit():
    spans, moments = np.array([1, 2], "m8[25s]"), np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    assert applied(np.equal, [spans, Constant(2)], 2).tolist() == [False, True]
    assert (
        applied(np.maximum, [Constant(2), spans], 2).tolist()
        == applied(np.add, [spans, np.array([1, 0])], 2).tolist()
    )
    assert applied(np.add, [moments, Constant(1)], 2)[0] == moments[1]
    assert applied(np.multiply, [spans, Constant(2)], 2).tolist() == (spans + spans).tolist()
    with pytest.raises(RowError):
        applied(np.less, [moments, Constant(5)], 2)


@pytest.mark.parametrize(
    ("function", "values", "said"),
    [
        (np.multiply, [[np.int8(5), None], Constant(1000)], r"out of bounds for int8; CAST\(x AS BIGINT\)"),
        (np.multiply, [[Decimal("1.5"), None], np.ones(2)], r"decimals, and CAST\(x AS DOUBLE\)"),
        (operators.rounded, [[Decimal("1.5"), None]], r"decimals, and CAST\(x AS DOUBLE\)"),
        (np.maximum, [np.array(["a", "b"]), Constant("b")], "takes numbers, and there is a text"),
        (np.add, [["a", None], np.ones(2)], "takes numbers, and there is a text"),
    ],
)  # fmt: skip
def test_what_numpy_does_not_take_together_is_told_with_a_remedy(function, values, said):
    with pytest.raises(RowError, match=said):
        applied(function, values, 2)
