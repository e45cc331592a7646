"""Methods for shapes are the functions of NumPy, and return sparse tensors."""

import numpy as np
import pytest

import tensorlake_spark as tl

DENSE = np.array([[[0, 2.5, 0], [0, 0, -1]], [[np.nan, 0, 0], [0, 0, 3]]])
X = tl.SparseTensor.from_dense(DENSE)

CALLS = {
    "reshape": (4, 3),
    "transpose": (2, 0, 1),
    "moveaxis": (0, -1),
    "swapaxes": (0, 2),
    "squeeze": (),
    "expand_dims": (1,),
    "flip": (1,),
    "roll": (1, 2),
    "broadcast_to": ((2, 2, 2, 3),),
    "diagonal": (1, 1, 2),
    "tril": (-1,),
    "triu": (1,),
    "round": (0,),
    "clip": (-1, 2),
    "conj": (),
    "isnan": (),
    "ravel": (),
    "flatten": (),
    "astype": ("float32",),
}


@pytest.mark.parametrize(("name", "given"), CALLS.items())
def test_a_method_is_numpys(name, given):
    got = getattr(X, name)(*given)
    own = getattr(DENSE, name, None)
    want = own(*given) if own is not None else getattr(np, name)(DENSE, *given)
    assert isinstance(got, tl.SparseTensor)
    np.testing.assert_array_equal(got.todense(), want, strict=True)


def test_properties_are_numpys():
    for name in ("T", "mT", "real", "imag"):
        got, want = getattr(X, name), getattr(DENSE, name)
        assert isinstance(got, tl.SparseTensor)
        np.testing.assert_array_equal(got.todense(), want, strict=True)


def test_a_shape_may_be_one_argument():
    assert X.reshape((3, -1)).shape == X.reshape(3, -1).shape == (3, 4)
    assert X.reshape(-1).shape == (12,)
    assert X.transpose([2, 1, 0]).equals(X.T)


def test_what_becomes_zero_is_not_stored():
    x = tl.SparseTensor([[0, 1, 2]], [0.0, 0.3, 7.0], (4,))
    assert x.astype(int).coords.tolist() == x.round().coords.tolist() == [[2]]
    assert x.reshape(2, 2).coords.tolist() == [[0, 1], [1, 0]]


def test_distinct_values_are_an_array():
    values, counts = X.reshape(4, 3)[1:].unique(return_counts=True)
    np.testing.assert_array_equal(values, [-1, 0, 3, np.nan])
    assert counts.tolist() == [1, 6, 1, 1]
