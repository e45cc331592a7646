"""Operators and ufuncs of sparse tensors, held to NumPy's."""

import operator

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sparse_operands import DTYPES, arrays, check_same, hold, one, outcome, sparse_of, zero

import tensorlake_spark as tl

# The operator of NumPy 2.0 gives another dtype where the exponent is 2.0 than where it is any other of its kind.
POWER = operator.pow if (np.zeros(1, bool) ** 2.0).dtype == np.float64 else np.power
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, POWER,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, divmod,
]  # fmt: skip
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]
SCALARS = st.sampled_from(
    [0, 1, 2, -1, 300, 0.5, 2.0, -0.0, np.inf, np.nan, 1j, True, np.int8(3), np.float32(2), np.uint64(5),
     np.array(2.0), np.array(3, "i2"), np.complex64(1j), np.bool_(True)]
)  # fmt: skip
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@pytest.mark.parametrize("function", UNARY)
@times(0.4)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), shape=SHAPES)
def test_an_operator_of_one_tensor(function, data, dtype, shape):
    x = data.draw(arrays(shape, dtype))
    hold(function, [x], [sparse_of(x)], [zero(x)])


@pytest.mark.parametrize("function", BINARY)
@times(0.4)
@given(
    data=st.data(),
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=2, max_size=2),
    shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4),
)
def test_an_operator_of_two_tensors(function, data, dtypes, shapes):
    x, y = (data.draw(arrays(*p)) for p in zip(shapes.input_shapes, dtypes, strict=True))
    a, b = sparse_of(x), sparse_of(y, 1)
    hold(function, [x, y], [a, b], [zero(x), zero(y)])
    if y.ndim:
        # Beside a dense array there is always a result: what zeros become is in it.
        hold(function, [x, y], [a, y], [zero(x), y])
        hold(function, [y, x], [y, a], [y, zero(x)])
        if not isinstance(outcome(function, x, y), Exception):
            assert not isinstance(outcome(function, a, y), Exception)


@pytest.mark.parametrize("function", BINARY)
@times(0.4)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), shape=SHAPES, scalar=SCALARS)
def test_an_operator_of_a_tensor_and_a_scalar(function, data, dtype, shape, scalar):
    # A zero-dimensional array of NumPy's is a scalar; here it stays a tensor.
    x = data.draw(arrays(shape or (1,), dtype))
    hold(function, [x, scalar], [sparse_of(x), scalar], [zero(x), scalar])
    hold(function, [scalar, x], [scalar, sparse_of(x)], [scalar, zero(x)])


def test_comparisons_are_sparse():
    x = one()
    assert (x == 9).coords.tolist() == [[2], [0]]
    assert (x != 2 * x).nnz == 2
    assert (x != x).nnz == 0
    assert (x > 5).dtype == bool


def test_scipy_sparse_arrays_are_operands():
    x = one()
    for form in ("coo", "csr", "csc"):
        y = scipy.sparse.coo_array(np.array([[0, 2.0], [3, 0], [0, 5]])).asformat(form)
        check_same(x + y, x.todense() + y.toarray())
        check_same(x * y, x.todense() * y.toarray())
        check_same(x.__rsub__(y), y.toarray() - x.todense())
        check_same(x > y, x.todense() > y.toarray())


def test_what_is_no_operand():
    x = one()
    for other in ("a", None, object(), np.array([object(), None])):
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            other * x
    with pytest.raises(TypeError, match="did not contain a loop"):
        x + np.array(["a", "b"])
    with pytest.raises(TypeError, match="not supported for the input types"):
        x & 1
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True

    class Knows:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "knows"

    assert x + Knows() == "knows"


def test_in_place_operators_make_a_new_tensor():
    x = same = one()
    x += one()
    x *= 2
    assert x is not same
    assert (x.values.tolist(), same.values.tolist()) == ([16.0, 36.0], [4.0, 9.0])


def test_one_element_is_a_number():
    x = tl.SparseTensor([[0], [0]], [2.5], (1, 1))
    assert (bool(x), int(x), float(x), complex(x)) == (True, 2, 2.5, 2.5 + 0j)
    assert not tl.SparseTensor([[]], [], (1,))
    for function, error in (
        (bool, ValueError),
        (int, TypeError),
        (float, TypeError),
        (complex, TypeError),
    ):
        with pytest.raises(error, match="it has 6 elements, not one"):
            function(one())
    with pytest.raises(ValueError, match="it has 0 elements"):
        bool(one()[:0])


@pytest.mark.parametrize("of", [int, float, complex])
@pytest.mark.parametrize("dtype", ["complex64", "timedelta64[s]", "datetime64[D]"])
def test_a_number_that_would_lose_something_is_refused(of, dtype):
    """As NumPy does for arrays: the imaginary part would be dropped, and a unit has no number."""
    x = tl.SparseTensor([[0]], np.ones(1, "i8").astype(dtype), (1,))
    if of is complex and dtype == "complex64":
        assert complex(x) == 1
        return
    with pytest.raises(
        tl.UnsupportedFunctionError, match=f"{of.__name__}.* of dtype {x.dtype}".replace("[", ".")
    ) as caught:
        of(x)
    assert isinstance(caught.value, TypeError)


def test_methods_of_ufuncs_that_are_not_there():
    x = one()
    for function in (np.add.accumulate, np.add.reduceat, np.subtract.reduce):
        with pytest.raises(TypeError, match=r"is not there; todense\(\) makes an array"):
            function(x, *([[0]] if function.__name__ == "reduceat" else []))
    with pytest.raises(TypeError):
        np.add.at(x, 0, 1)


def test_dtypes_that_numpy_refuses_are_named():
    x = tl.SparseTensor([[1]], [2.0], (3,))
    for call in (lambda: x & 1, lambda: ~x, lambda: np.left_shift(x, x)):
        with pytest.raises(tl.UnsupportedDtypeError, match=r"np\.\w+ of float64.*astype"):
            call()


@pytest.mark.parametrize(
    "other", [pd.Series([1.0, 2.0, 3.0]), pd.Index([1, 2, 3]), pd.DataFrame(np.arange(9.0).reshape(3, 3))],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.eq])
def test_what_pandas_has_counts_as_an_array(function, other):
    array = np.diag([4.0, 0, 6])
    x, values = tl.SparseTensor.from_dense(array), np.asarray(other)
    for got, wanted in (
        (function(x, other), function(array, values)),
        (function(other, x), function(values, array)),
    ):
        got = got.todense() if isinstance(got, tl.SparseTensor) else got
        np.testing.assert_array_equal(got, wanted, strict=True)
