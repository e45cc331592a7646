"""einsum of stored tensors: NumPy is the oracle, for every choice of which operands are stored, and how."""

import numpy as np
import pytest
from computed import LAYOUTS, array_of, dense, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.computing.operations.products import labelled_products
from tensorlake_spark.errors import (
    InvalidOptionError,
    InvalidTensorError,
    UnsupportedDtypeError,
    UnsupportedFunctionError,
)
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import dtype_of
from tensorlake_spark.writing import source

LENGTHS = {"i": 3, "j": 4, "k": 2, "l": 5}
KINDS = ("array", "sparse", *LAYOUTS)


@st.composite
def subscripts(draw):
    """A text with one to three operands, with labels that repeat, and with or without those of the result."""
    text = ",".join(draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=3)))
    if draw(st.booleans()):
        known = sorted({*text} - {","})
        text += "->" + "".join(draw(st.permutations(known))[: draw(st.integers(0, len(known)))])
    return text


def stored(lake, array, kind):
    if kind == "array":
        return array
    return SparseTensor.from_dense(array) if kind == "sparse" else put(lake, array, kind)


def is_sparse(x):
    if isinstance(x, (np.ndarray, np.generic)):
        return False
    return isinstance(x, SparseTensor) or x._stored.is_sparse


def check(text, arrays, operands):
    found, wanted = np.einsum(text, *operands), np.einsum(text, *arrays)
    np.testing.assert_allclose(dense(found), wanted, rtol=1e-4, atol=1e-6)
    assert np.shape(dense(found)) == np.shape(wanted)
    assert np.asarray(dense(found)).dtype == wanted.dtype
    if isinstance(found, SparseTensor):
        assert found.equals(SparseTensor.from_dense(dense(found)))
    return found


@times(0.6)
@given(st.data(), subscripts(), st.sampled_from(("f8", "i2", "c8", "?")), st.integers(0, 50))
def test_any_subscripts_give_what_numpy_gives(shared, data, text, dtype, seed):
    terms = text.partition("->")[0].split(",")
    arrays = [
        array_of(dtype if k % 2 else "f4", [LENGTHS[n] for n in term], 3 * (seed + k) + 1)
        for k, term in enumerate(terms)
    ]
    kinds = [data.draw(st.sampled_from(KINDS)) for _ in terms]
    kinds[data.draw(st.integers(0, len(terms) - 1))] = data.draw(st.sampled_from(LAYOUTS))
    operands = [stored(shared, *pair) for pair in zip(arrays, kinds, strict=True)]
    found = check(text, arrays, operands)
    summed = len({*"".join(terms)}) > np.ndim(dense(found))
    sparse = [*map(is_sparse, operands)]
    if isinstance(found, (np.ndarray, SparseTensor)):
        assert isinstance(found, SparseTensor) == (all(sparse) or (any(sparse) and not summed))


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("...ij,jk->...ik", ((2, 3, 4), (4, 2))),
        ("...,...", ((2, 3), (3,))),
        ("ij...,jk...->ik...", ((3, 4, 2), (4, 2, 1))),
        ("i...i->...i", ((3, 2, 3),)),
        ("ijij->ji", ((3, 2, 3, 2),)),
        ("bij,cjk->bcik", ((2, 3, 4), (1, 4, 2))),
        ("ij,ij->ij", ((3, 1), (3, 4))),
        ("ij,ka,kb,lc->ac", ((3, 4), (5, 2), (5, 3), (2, 3))),
        ("ijk,ir,jr->kr", ((3, 4, 2), (3, 6), (4, 6))),
        ("ij->", ((0, 4),)),
    ],
)
def test_ellipses_lengths_of_one_and_labels_of_other_operands(lake, kind, text, shapes):
    arrays = [array_of("f8", shape, k + 1) for k, shape in enumerate(shapes)]
    for k in range(len(arrays)):
        operands = [*arrays]
        operands[k] = put(lake, arrays[k], kind)
        check(text, arrays, operands)
    check(text, arrays, [put(lake, array, kind) for array in arrays])


def test_what_other_operands_sum_on_their_own_counts_as_summed(lake):
    arrays = [array_of("f8", shape, 1) for shape in ((), (), (3,))]
    operands = [put(lake, arrays[0], "ftsf"), arrays[1], SparseTensor.from_dense(arrays[2])]
    assert not isinstance(check(",,i->", arrays, operands), SparseTensor)


def test_labels_may_be_numbers_and_views_are_operands(lake):
    array = array_of("f8", (6, 5), 1)
    view = put(lake, array, "ftsf").view[::-2]
    wanted = np.einsum(array[::-2], [0, 1], np.ones(5), [1], [0])
    assert np.allclose(np.einsum(view, [0, 1], np.ones(5), [1], [0], optimize=False), wanted)


def test_small_integers_overflow_as_in_numpy(lake):
    array = np.full((3, 40), 100, "i1")
    for layout in LAYOUTS:
        found = check("ij->i", [array], [put(lake, array, layout)])
        assert found.dtype == np.int8


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("two", LAYOUTS)
def test_of_two_large_stored_tensors_one_is_read_in_bands(lake, monkeypatch, one, two):
    a, b = array_of("f8", (6, 5, 20), 1), array_of("f8", (20, 6, 7), 2)
    pair = [put(lake, a, one), put(lake, b, two)]
    monkeypatch.setattr(source, "REGION_BYTES", 256)
    for text in ("ijk,kil->jl", "ijk,kil->lj"):
        check(text, [a, b], pair)
    check("kil,ijk->lj", [b, a], pair[::-1])
    with pytest.raises(UnsupportedFunctionError, match=r"np.einsum\('ijk,kil->ijl'\) of several"):
        np.einsum("ijk,kil->ijl", *pair)
    with pytest.raises(UnsupportedFunctionError, match=r"read all but one of them"):
        np.einsum("ijk,kil,ij->jl", *pair, pair[0].view[:, :, 0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_a_diagonal_nothing_else_is_folded(lake, layout):
    array = array_of("f8", (64, 64), 1)
    ref = put(lake, array, layout)
    assert labelled_products.einsum("ii->i", [ref._stored]).stored.shape == (64,)
    check("ii->", [array], [ref])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: np.einsum("ij,jk", x), InvalidOptionError, "names 2 operands, there are 1"),
        (lambda x: np.einsum("ijk", x), InvalidOptionError, "3 subscripts for 2 axes"),
        (lambda x: np.einsum("ij->ia", x), InvalidOptionError, "'a' of the result is in no"),
        (lambda x: np.einsum("ii", x), InvalidOptionError, "lengths 4 and 5"),
        (lambda x: np.einsum("i?", x), InvalidOptionError, "not a subscript"),
        (lambda x: np.einsum("ij,jk", x, np.ones((3, 2))), InvalidTensorError, "length"),
        (lambda x: np.einsum("ij,j", x, np.array(["a"] * 5)), UnsupportedDtypeError, "no products"),
        (lambda x: np.einsum("ij->i", x, dtype="f4"), UnsupportedFunctionError, "'ij->i'.* no dt"),
        (lambda x: np.einsum("ij->i", x, out=np.ones(4)), UnsupportedFunctionError, "no out="),
        (lambda x: np.matmul(np.ones((2, 3)), x), InvalidTensorError, "must be equal"),
        (lambda x: np.matmul(x, 3), InvalidTensorError, "no axes"),
        (lambda x: np.inner(x, np.ones(3)), InvalidTensorError, "must be equal"),
    ],
)
def test_what_does_not_fit_is_refused(lake, call, error, words):
    for layout in LAYOUTS:
        with pytest.raises(error, match=words):
            call(put(lake, array_of("f8", (4, 5), 1), layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dtypes_that_do_not_go_together_are_named(lake, layout):
    ref = put(lake, array_of("i8", (4, 5), 1), layout)
    vector = np.ones(5, dtype_of("bfloat16"))
    for product in (np.dot, np.matmul, np.inner, lambda a, b: np.einsum("ij,j", a, b)):
        with pytest.raises(UnsupportedDtypeError, match=r"int64 and bfloat16 .*astype"):
            product(ref, vector)
