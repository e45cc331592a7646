"""Products of stored tensors with arrays: einsum of NumPy is the oracle."""

import pickle

import numpy as np
import pytest
from computed import LAYOUTS, array_of, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.computing.operations.products import contractions
from tensorlake_spark.errors import (
    AxisError,
    InvalidKeyTypeError,
    InvalidTensorError,
    UnsupportedFunctionError,
)

RANK = 3


def letters(count):
    return list(range(count))


@given(st.data(), st.sampled_from(("f8", "i2", "f4")), st.sampled_from(LAYOUTS), st.integers(0, 50))
@times(0.3)
def test_products_are_numpys(shared, data, dtype, layout, seed):
    array = array_of(dtype, (5, 6, 4), 3 * seed + 1)
    key = data.draw(keys(array.shape))
    x = array[key]
    view = put(shared, array, layout).view[key]
    rng = np.random.default_rng(seed)
    vectors = [rng.random(n) for n in x.shape]
    matrices = [rng.random((RANK, n)) for n in x.shape]
    if not x.ndim:
        return
    k = data.draw(st.integers(0, x.ndim - 1))
    close = np.testing.assert_allclose
    close(view.ttv(vectors[k], k), np.tensordot(x, vectors[k], (k, 0)), atol=1e-9)
    terms = [term for j, v in enumerate(vectors) for term in (v, [j])]
    close(view.ttv(vectors), np.einsum(x, letters(x.ndim), *terms, []), atol=1e-9)
    close(
        view.ttm(matrices[k], k),
        np.moveaxis(np.tensordot(x, matrices[k], (k, 1)), -1, k),
        atol=1e-9,
    )
    close(view.ttm(matrices[k].T, k, transpose=True), view.ttm(matrices[k], k))
    close(np.dot(view, matrices[-1].T), np.dot(x, matrices[-1].T), atol=1e-9)
    other = rng.random((2, x.shape[k], 3))
    close(np.tensordot(view, other, (k, 1)), np.tensordot(x, other, (k, 1)), atol=1e-9)
    close(np.tensordot(other, view, (1, k)), np.tensordot(other, x, (1, k)), atol=1e-9)
    if x.ndim > 1:
        factors = [m.T for m in matrices]
        terms = [t for j, f in enumerate(factors) if j != k for t in (f, [j, 9])]
        close(view.mttkrp(factors, k), np.einsum(x, letters(x.ndim), *terms, [k, 9]), atol=1e-9)


def test_integers_stay_integers(lake):
    array = array_of("i2", (4, 5), 1)
    for layout in LAYOUTS:
        found = put(lake, array, layout).dot(np.arange(5, dtype="i4"))
        assert found.dtype == np.dtype("i4")
        assert np.array_equal(found, array.dot(np.arange(5, dtype="i4")))


def test_several_matrices_at_once(lake):
    array = array_of("f8", (4, 5, 6), 1)
    a, b = np.random.default_rng(0).random((2, 4)), np.random.default_rng(1).random((3, 6))
    wanted = np.einsum("ijk,ai,bk->ajb", array, a, b)
    for layout in LAYOUTS:
        np.testing.assert_allclose(put(lake, array, layout).ttm([a, b], (0, 2)), wanted)


def test_a_product_with_another_stored_tensor_reads_that(lake):
    array = array_of("f8", (4, 5), 1)
    x, y = put(lake, array, "bsgs"), put(lake, array.T.copy(), "ftsf")
    np.testing.assert_allclose(x.dot(y), array @ array.T)
    assert x.dot(y, into="product")[...].shape == (4, 4)


def test_a_fold_of_products_is_pickled(lake):
    stored = put(lake, array_of("f8", (4, 5), 1), "coo")._stored
    fold = pickle.loads(pickle.dumps(contractions.ttv(stored, np.ones(5), 1)))
    assert fold.axes == (0,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x.ttv(np.ones(3), 1), InvalidTensorError, "axis 1 has length 5"),
        (lambda x: x.ttv([np.ones(4)], (0, 1)), InvalidTensorError, "1 factors for 2 axes"),
        (lambda x: x.ttm(np.ones(5), 1), InvalidTensorError, "rank 1"),
        (
            lambda x: x.mttkrp([np.ones((4, 2))], 0),
            InvalidTensorError,
            "a factor for each of 2 axes",
        ),
        (lambda x: x.tensordot(np.ones((3, 5)), 1), InvalidTensorError, "length 5"),
        (lambda x: x.tensordot(np.ones((5, 3)), ([0, 1], [0])), InvalidTensorError, "as many"),
        (lambda x: x.tensordot(np.ones((5, 3)), [1]), InvalidTensorError, "two sequences of them"),
        (lambda x: x.tensordot(np.ones((5, 3)), None), InvalidKeyTypeError, "a number of axes"),
        (lambda x: x.ttv(None), InvalidTensorError, "a list with a factor for each axis"),
        (lambda x: x.ttm(5), InvalidTensorError, "a list with a factor for each axis, not int"),
        (lambda x: x.mttkrp(None, 0), InvalidTensorError, "mttkrp takes a list"),
        (lambda x: x.ttv(np.ones(5), 2), AxisError, "out of bounds"),
        (lambda x: x.ttv(x[0], 1), UnsupportedFunctionError, "todense"),
    ],
)
def test_factors_that_do_not_fit_are_refused(lake, call, error, words):
    with pytest.raises(error, match=words):
        call(put(lake, array_of("f8", (4, 5), 1), "coo"))


@pytest.mark.parametrize("axes", [np.array([1, 0]), np.array([[1], [0]]), np.array(1), (1, 0)])
def test_tensordot_takes_axes_as_numpy_does(lake, axes):
    x, y = array_of("f8", (4, 5), 1), array_of("f8", (5, 3), 2)
    found = put(lake, x, "ftsf").tensordot(y, axes)
    np.testing.assert_allclose(found, np.tensordot(x, y, axes))


def test_factors_of_an_iterator(lake):
    x, vectors = array_of("f8", (4, 5), 1), [np.ones(4), np.ones(5)]
    stored = put(lake, x, "ftsf")
    assert np.isclose(stored.ttv(v for v in vectors), x.sum())
