"""Functions of each element, held to NumPy's."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sparse_operands import DTYPES, arrays, check_canonical, check_same, hold, one, sparse_of, zero

import tensorlake_spark as tl
from tensorlake_spark.tensor.spec import dtype_of

UFUNCS = sorted(
    {f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None},
    key=lambda f: f.__name__,
)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
@times(0.3)
@given(
    data=st.data(),
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=2, max_size=2),
    shape=hnp.array_shapes(min_side=0, max_dims=3, max_side=4),
)
def test_every_ufunc(ufunc, data, dtypes, shape):
    dense = [data.draw(arrays(shape, dtype)) for dtype in dtypes[: ufunc.nin]]
    hold(ufunc, dense, [sparse_of(x, k) for k, x in enumerate(dense)], [*map(zero, dense)])


def test_what_would_be_dense_says_so():
    x = one()
    with pytest.raises(
        tl.DenseResultError, match=r"np\.exp of 0 is 1\.0.* takes 48 bytes; todense\(\)"
    ):
        np.exp(x)
    with pytest.raises(tl.DenseResultError, match=r"np\.add of 0 and 1 is 1\.0"):
        x + 1
    for function in (lambda: x / 0, lambda: 0 / x, lambda: x**0, lambda: x / x, lambda: x * np.nan):
        with pytest.raises(tl.DenseResultError):
            function()
    for function in (lambda: x == x, lambda: x == 0):
        with pytest.raises(tl.DenseResultError, match=r"x\.equals\(y\) compares whole tensors"):
            function()


def test_a_sum_with_an_array_is_an_array_and_a_product_is_sparse():
    x, y = one(), np.array([[1, np.inf], [np.nan, 2], [3, 4]])
    assert isinstance(x + np.zeros((3, 2)), np.ndarray)
    assert isinstance(np.zeros(2) - x, np.ndarray)
    got = x * y
    check_same(got, x.todense() * y)
    assert got.coords.tolist() == [[0, 1, 2], [1, 0, 0]], "NaN beside infinity and NaN is stored"
    got = x / np.array([[2.0], [0.0], [4.0]])
    assert got.nnz == 4, "so is that of 0 / 0"
    assert isinstance(x ** np.array([2.0, 0.0]), np.ndarray), "0 ** 0 is one"
    assert (x ** np.array([2, 3])).nnz == 2


def test_tensors_of_the_largest_shapes():
    n = 2**61
    far = tl.SparseTensor([[n - 1, 2], [1, 1]], [2.0, 3.0], (n, 2))
    assert (far + far).values.tolist() == [6.0, 4.0]
    assert (far * tl.SparseTensor([[1]], [5.0], (2,))).values.tolist() == [15.0, 10.0]
    with pytest.raises(tl.InvalidTensorError, match=r"2\*\*63"):
        far * tl.SparseTensor([[0], [0], [0]], [1.0], (4, 1, 1))
    assert np.multiply.outer(tl.SparseTensor([[n]], [2.0], (2**62,)), [0.0]).shape == (2**62, 1)


def test_shapes_that_do_not_broadcast():
    x = one()
    for y in (np.ones(3), tl.SparseTensor([[0]], [1.0], (4,)), np.ones((2, 2, 2))):
        with pytest.raises(ValueError, match=r"do not broadcast: axis -\d has lengths"):
            x * y


@pytest.mark.parametrize("shape", [(0,), (0, 1), (2, 0, 1)])
def test_powers_without_any_element_ask_nothing_of_zeros(shape):
    power, base = sparse_of(np.array([-128, 0], np.int8)[:1]), sparse_of(np.zeros(shape, bool))
    with np.errstate(all="raise"):
        for found in (base**power, power**base, base ** sparse_of(np.int8([[-1]]))):
            assert found.nnz == 0
            assert found.dtype == np.int8
        assert (base**power).shape == shape


def test_out_is_a_dense_array():
    x, out = one(), np.full((3, 2), 7.0)
    assert np.exp(x, out=out) is out
    check_same(out, np.exp(x.todense()))
    array = np.ones((3, 2))
    array += x
    check_same(array, x.todense() + 1)
    with pytest.raises(TypeError, match="sparse tensors cannot be changed"):
        np.add(x, x, out=x)


def test_where_of_what_keeps_zeros_looks_at_stored_elements_only():
    x, y = one(), -one()
    mask = np.array([[True, False], [True, True], [False, True]])
    for where in (mask, tl.SparseTensor.from_dense(mask), mask[:1], np.True_):
        keep = where.todense() if isinstance(where, tl.SparseTensor) else where
        check_same(np.add(x, 3 * y, where=where), np.where(keep, (x + 3 * y).todense(), 0))
        check_same(np.sqrt(x, where=where), np.where(keep, np.sqrt(x.todense()), 0))
    with np.errstate(all="raise"):
        assert np.sqrt(y, where=np.zeros((3, 2), bool)).nnz == 0, (
            "nothing is computed, nor warned of"
        )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
def test_nan_of_a_long_product_is_found_wherever_it_is(dtype):
    y = np.full((3, 70_000), 1e4 if dtype == "f2" else 1e30, dtype)
    y[[0, 2, 2], [9, 5, 69_999]] = np.inf, np.nan, -np.inf
    x = tl.SparseTensor([[1], [3]], np.ones(1, dtype), y.shape)
    with np.errstate(invalid="ignore"):
        check_same(x * y, x.todense() * y)


def test_where_leaves_zeros():
    x, y = one(), tl.SparseTensor([[0, 1], [1, 0]], [2.0, 5.0], (3, 2))
    got = np.divide(x, y, where=y != 0)
    check_same(got, np.array([[0, 2.0], [0, 0], [0, 0]]))
    mask = np.array([[True], [False], [True]])
    check_same(np.add(x, 1, where=mask), np.where(mask, x.todense() + 1, 0))
    check_same(np.add(x, [1, 2], where=mask), np.where(mask, x.todense() + np.array([1, 2]), 0))
    check_same(np.multiply(x, 2, where=False), np.zeros((3, 2)))
    out = np.full((3, 2), -1.0)
    np.add(x, 1, where=mask, out=out)
    check_same(out, np.where(mask, x.todense() + 1, -1))
    with pytest.raises(TypeError, match="where= has dtype int64"):
        np.add(x, 1, where=np.array([1, 0]))


def test_dtype_and_casting():
    x = one()
    assert np.add(x, x, dtype="f4").dtype == np.float32
    assert np.multiply(x, 2, dtype=complex).dtype == complex
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(x, x, dtype="i4")
    assert np.add(x, x, dtype="i4", casting="unsafe").dtype == np.int32
    with pytest.raises(OverflowError):
        x.astype("u1") * 300


@given(
    data=st.data(), dtypes=st.lists(st.sampled_from(DTYPES), min_size=2, max_size=2),
    shapes=st.lists(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3), min_size=2, max_size=2),
)  # fmt: skip
def test_outer(data, dtypes, shapes):
    x, y = (data.draw(arrays(*p)) for p in zip(shapes, dtypes, strict=True))
    hold(np.multiply.outer, [x, y], [sparse_of(x), sparse_of(y, 1)], [zero(x), zero(y)])
    if y.ndim:
        hold(np.multiply.outer, [x, y], [sparse_of(x), y], [zero(x), y])
        hold(np.multiply.outer, [y, x], [y, sparse_of(x)], [y, zero(x)])


def test_three_operands():
    x = one()
    clip = np._core.umath.clip
    check_same(clip(x, -1, 5), np.clip(x.todense(), -1, 5))
    check_same(clip(x, [-1, 0], [5.0, 6.0]), np.clip(x.todense(), [-1, 0], [5, 6]))
    check_same(clip(x, -1, 2 * x), x.todense())
    with pytest.raises(TypeError, match="or of three"):
        clip(x, x, x)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_dtypes_of_ml_dtypes(name):
    x = one().astype(dtype_of(name))
    check_same(x + x, x.todense() + x.todense())
    check_same(x * 2, x.todense() * 2)
    check_same(x > 5, x.todense() > 5)
    check_same(-x, -x.todense())


def test_dates_and_spans():
    x = tl.SparseTensor([[1, 2]], np.array([5, 7], "m8[s]"), (4,))
    check = lambda got, want: np.testing.assert_array_equal(got.todense(), want)  # noqa: E731
    check(x + x, x.todense() * 2)
    check(x * 3, x.todense() * 3)
    check(-x, -x.todense())
    days = tl.SparseTensor([[1]], np.array([5], "M8[D]"), (4,))
    check(days - days, days.todense() - days.todense())
    check_canonical(days - tl.SparseTensor([[2]], np.array([5], "M8[D]"), (4,)))
    with pytest.raises(TypeError):
        days + days


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("last", [1, np.nan])
def test_a_dense_operand_with_gaps(dtype, last):
    array = np.array([2, 0, 3, 0, last, 0], dtype)[::2]
    x = tl.SparseTensor([[0]], np.array([5], dtype), (3,))
    found, dense = x * array, x.todense() * array
    np.testing.assert_array_equal(np.asarray(found), dense)
    assert found.dtype == dense.dtype


def test_nothing_is_asked_of_an_array_that_is_beside_no_element():
    x = sparse_of(np.zeros((3, 0, 2), np.int8))
    exponents = np.full((3, 1, 1), -1, np.int8)
    check_same(x**exponents, np.zeros((3, 0, 2), np.int8) ** exponents)
    check_same(x + exponents, np.zeros((3, 0, 2), np.int8) + exponents)
