"""einsum: NumPy is the oracle, for every choice of which operands are sparse."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from operands import DTYPES, SEEDS, array, check, error_of, sparse

import tensorlake_spark as tl
from tensorlake_spark.ops.products.einsum import einsum

LENGTHS = {"i": 3, "j": 4, "k": 2, "l": 5}


@st.composite
def subscripts(draw):
    """A text with one to three operands, with labels that repeat, and with or without those of the result."""
    terms = draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=3))
    text = ",".join(terms)
    if draw(st.booleans()):
        known = sorted({*"".join(terms)})
        text += "->" + "".join(draw(st.permutations(known))[: draw(st.integers(0, len(known)))])
    return text


@times(2)
@given(text=subscripts(), dtype=DTYPES, seed=SEEDS)
def test_any_subscripts_give_what_numpy_gives(text, dtype, seed):
    terms = text.partition("->")[0].split(",")
    arrays = [
        array([LENGTHS[label] for label in term], dtype, seed + k) for k, term in enumerate(terms)
    ]
    # Half floats round at every step, in an order that is NumPy's own.
    tolerance = 0.02 if dtype == "f2" else 0
    check(lambda *x: einsum(text, *x), lambda *x: np.einsum(text, *x), *arrays, tolerance=tolerance)


ELLIPSES = [
    ("...ij,jk->...ik", ((2, 3, 4), (4, 2))),
    ("...j,j", ((2, 3, 4), (4,))),
    ("...,...", ((2, 3), (3,))),
    ("i...->...", ((3, 4),)),
    ("ij...,jk...->ik...", ((3, 4, 2), (4, 2, 1))),
    ("i...i->...i", ((3, 2, 3),)),
    ("bij,cjk->bcik", ((2, 3, 4), (1, 4, 2))),
    ("ij,ij->ij", ((3, 4), (1, 4))),
    (" i j , j k -> i k ", ((3, 4), (4, 2))),
]


@pytest.mark.parametrize(("text", "shapes"), ELLIPSES)
def test_ellipses_and_axes_of_length_one_broadcast(text, shapes):
    arrays = [array(shape, "i8", k) for k, shape in enumerate(shapes)]
    check(lambda *x: np.einsum(text, *x), lambda *x: np.einsum(text, *x), *arrays)


def test_labels_may_be_numbers():
    a, b = array((3, 4), "i8", 1), array((4, 2), "i8", 2)
    for rest in ([], [[2, 0]]):
        check(
            lambda x, y, rest=rest: einsum(x, [0, 1], y, [1, 2], *rest),
            lambda x, y, rest=rest: np.einsum(x, [0, 1], y, [1, 2], *rest),
            a, b,
        )  # fmt: skip


def test_mixed_dtypes_are_cast_first():
    a = np.array([100], "i1")
    check(
        lambda *x: einsum("i,i,i->i", *x),
        lambda *x: np.einsum("i,i,i->i", *x),
        a,
        a,
        np.array([1.0]),
    )


BAD = [
    ("ij,jk->im", ((3, 4), (4, 2))),
    ("ij->ii", ((3, 4),)),
    ("ij", ((3, 4), (4, 2))),
    ("ijk", ((3, 4),)),
    ("i", ((3, 4),)),
    ("i-j", ((3, 4),)),
    ("i?", ((3, 4),)),
    ("ij,jk", ((3, 4), (3, 2))),
    ("ii", ((3, 4),)),
    ("...j->j", ((3, 4),)),
]


@pytest.mark.parametrize(("text", "shapes"), BAD)
def test_what_numpy_refuses_is_the_same_error(text, shapes):
    arrays = [array(shape, "f8", 0) for shape in shapes]
    want = error_of(np.einsum, text, *arrays)
    assert issubclass(error_of(einsum, text, *map(sparse, arrays)), want)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ij->k", "'k' of the result is in no operand"),
        ("ijk", "has 3 subscripts for 2 axes"),
        ("i_", "'_' is no"),
    ],
)
def test_an_error_names_the_subscript(text, said):
    with pytest.raises(tl.InvalidOptionError, match=said):
        np.einsum(text, sparse(np.eye(3)))


def test_products_on_the_way_stay_sparse_and_the_result_is_dense():
    """A dense product of the tensor with one of the factors would have 2**35 cells."""
    n = 2**17
    x = tl.SparseTensor(np.array([[1, 5], [7, 3], [0, n - 1]]), [2.0, 3.0], (n, n, n))
    factor = np.ones((n, 2))
    got = np.einsum("ijk,jr,kr->ir", x, factor, factor)
    assert got.shape == (n, 2)
    assert got[[1, 5]].tolist() == [[2, 2], [3, 3]]
    assert got.sum() == 10
