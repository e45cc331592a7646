"""Products: NumPy is the oracle, for every choice of which operands are sparse."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from operands import DTYPES, SEEDS, array, check, error_of, sparse

import tensorlake_spark as tl
from tensorlake_spark.ops.products import numpy_products as products
from tensorlake_spark.tensor.spec import dtype_of

MATRICES = [
    ((3, 4), (4, 5)), ((3, 4), (4,)), ((4,), (4, 2)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 2)), ((3, 4), (2, 4, 1)), ((2, 3, 4), (6, 1, 4, 3)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)),
    ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((1, 1), (1, 1)), ((3, 1), (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", MATRICES)
@times(0.2)
@given(dtypes=st.tuples(DTYPES, DTYPES), seed=SEEDS)
def test_matmul_and_dot_are_numpys(shapes, dtypes, seed):
    a, b = (array(shape, dtype, seed) for shape, dtype in zip(shapes, dtypes))
    check(products.matmul, np.matmul, a, b)
    check(products.dot, np.dot, a, b)


@times(0.3)
@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    dtype=DTYPES,
    seed=SEEDS,
    data=st.data(),
)
def test_tensordot_is_numpys_over_any_axes(shape, dtype, seed, data):
    of_a = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    order = data.draw(st.permutations(range(len(shape))))
    a, b = array(shape, dtype, seed), array([shape[k] for k in order], dtype, seed + 1)
    axes = of_a, [order.index(k) for k in of_a]
    check(lambda x, y: products.tensordot(x, y, axes), lambda x, y: np.tensordot(x, y, axes), a, b)


@pytest.mark.parametrize("axes", [0, 1, 2, (1, 0), ([-1, 0], [0, -1])])
def test_tensordot_takes_axes_as_numpy_does(axes):
    a, b = array((3, 4), "i8", 1), array((4, 3), "i8", 2)
    if axes == 2:
        b = array((3, 4), "i8", 2)
    check(lambda x, y: np.tensordot(x, y, axes), lambda x, y: np.tensordot(x, y, axes), a, b)


@times(0.5)
@given(
    first=st.lists(st.integers(0, 3), max_size=3), second=st.lists(st.integers(0, 3), max_size=3),
    dtypes=st.tuples(DTYPES, DTYPES), seed=SEEDS,
)  # fmt: skip
def test_kron_and_outer_are_numpys(first, second, dtypes, seed):
    a, b = array(first, dtypes[0], seed), array(second, dtypes[1], seed + 1)
    check(products.kron, np.kron, a, b)
    check(products.outer, np.outer, a, b)


@given(shape=st.lists(st.integers(1, 3), max_size=3), dtypes=st.tuples(DTYPES, DTYPES), seed=SEEDS)
def test_inner_and_vdot_are_numpys(shape, dtypes, seed):
    a, b = array(shape, dtypes[0], seed), array(shape, dtypes[1], seed + 1)
    check(products.inner, np.inner, a, b)
    check(products.vdot, np.vdot, a, b.reshape(-1))


def test_a_number_multiplies_and_an_infinite_one_would_fill_the_zeros():
    x = sparse(np.array([[0, 2], [3, 0]]))
    assert np.dot(3, x).values.tolist() == [6, 9]
    assert np.dot(x, 0).nnz == 0
    with pytest.raises(
        tl.DenseResultError, match=r"NaN for every zero: 32 bytes; todense\(\) first"
    ):
        np.dot(x, np.inf)


BAD = [
    (products.matmul, np.matmul, ((3, 4), (3, 4))),
    (products.matmul, np.matmul, ((2, 3, 4), (3, 4, 5))),
    (products.matmul, np.matmul, ((), (3,))),
    (products.dot, np.dot, ((3, 4), (3,))),
    (products.inner, np.inner, ((3, 4), (3,))),
    (products.vdot, np.vdot, ((3, 4), (3,))),
    (products.tensordot, np.tensordot, ((3, 4), (3, 4), 1)),
    (products.tensordot, np.tensordot, ((3, 4), (3, 4), ([0, 1], [0]))),
    (products.tensordot, np.tensordot, ((3, 4), (3, 4), ([0, 0], [0, 0]))),
    (products.tensordot, np.tensordot, ((3, 4), (3, 4), ([5], [0]))),
    (products.tensordot, np.tensordot, ((3, 4), (3, 4), 3)),
    (products.tensordot, np.tensordot, ((3, 4), (4, 3), 1.0)),
]


@pytest.mark.parametrize(("ours", "numpys", "case"), BAD)
def test_what_numpy_refuses_is_the_same_error(ours, numpys, case):
    shapes, rest = case[:2], case[2:]
    a, b = (array(shape, "f8", 0) for shape in shapes)
    want = error_of(numpys, a, b, *rest)
    got = error_of(ours, sparse(a), b, *rest)
    assert issubclass(got, want)


def test_the_message_names_the_lengths():
    with pytest.raises(
        ValueError, match=r"axis 1 of the first has length 4, axis 0 of the second 3"
    ):
        sparse(np.ones((3, 4))).dot(np.ones((3, 4)))


def test_shapes_whose_product_passes_2_to_the_63_work_as_long_as_the_result_does():
    here = np.array([[0, 2**20 - 1], [5, 2**40 - 1]])
    x = tl.SparseTensor(here, [2, 3], (2**20, 2**40))
    gram = x @ tl.SparseTensor(here[::-1], [2, 3], (2**40, 2**20))
    assert gram.coords.tolist() == [[0, 2**20 - 1]] * 2
    assert gram.values.tolist() == [4, 9]
    assert np.tensordot(x, x, 2) == np.vdot(x, x) == 13
    with pytest.raises(tl.InvalidTensorError, match=r"fewer than 2\*\*63"):
        np.tensordot(x, x, 0)


def test_what_is_not_a_number_is_refused():
    with pytest.raises(TypeError, match="from_scipy"):
        sparse(np.eye(2)) @ tl.SparseTensor.from_dense(np.eye(2)).to_scipy()


@pytest.mark.parametrize(
    "product",
    [
        np.dot, np.matmul, np.inner, np.vdot,
        lambda a, b: np.tensordot(a, b, 1),
        lambda a, b: np.einsum("i,i", a, b),
        lambda a, b: np.einsum("i,j", a, b),
    ],
)  # fmt: skip
def test_dtypes_that_do_not_go_together_are_named(product):
    short = np.array([1, 0, 2]).astype(dtype_of("bfloat16"))
    long = np.array([3, 4, 0])
    for a, b in (
        (sparse(short), long),
        (long, sparse(short)),
        (sparse(short), sparse(long)),
    ):
        with pytest.raises(tl.errors.UnsupportedDtypeError, match=r"(bfloat16|int64) and .*astype"):
            product(a, b)


@pytest.mark.parametrize("product", [np.dot, np.inner, np.outer, np.kron, np.tensordot, np.vdot])
def test_a_product_of_times_says_how_they_become_numbers(product):
    x = tl.SparseTensor([[1]], np.ones(1, "m8[s]"), (3,))
    with pytest.raises(tl.UnsupportedDtypeError, match=r"timedelta64\[s\] has no products; astype"):
        product(x, np.ones(3), **({"axes": 1} if product is np.tensordot else {}))


@pytest.mark.parametrize("product", [np.dot, np.inner])
def test_a_product_with_a_number_names_the_dtypes_that_numpy_refuses(product):
    x = tl.SparseTensor([[1]], np.ones(1, "m8[s]"), (3,))
    with pytest.raises(
        tl.UnsupportedDtypeError, match=r"np\.multiply of timedelta64\[s\] and comp"
    ):
        product(x, 2j)
    with pytest.raises(tl.UnsupportedDtypeError, match=r"np\.multiply of"):
        product(
            tl.SparseTensor(np.zeros((0, 1), int), np.ones(1, "m8[s]"), ()), np.ones(3, complex)
        )
