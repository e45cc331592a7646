"""NumPy's functions of a sparse tensor."""

import numpy as np
import pytest

import tensorlake_spark as tl


def test_a_function_that_is_not_there_names_itself_and_the_way_out():
    x = tl.SparseTensor([[1]], [2.0], (3,))
    with pytest.raises(
        TypeError, match=r"np\.fft\.fft of a sparse tensor.*x\.todense\(\)\) takes 24 bytes"
    ):
        np.fft.fft(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: np.einsum("ij->i", x, dtype="f8"),
            "np.einsum of a sparse tensor takes no dtype=",
        ),
        (lambda x: np.einsum("ij->i", x, out=np.zeros(2)), "takes no out="),
        (lambda x: np.matmul(x, x, dtype="f4"), "np.matmul of a sparse tensor takes no dtype="),
    ],
)
def test_a_keyword_that_is_not_there_is_named_with_the_way_out(call, words):
    x = tl.SparseTensor([[1], [0]], [2.0], (2, 2))
    with pytest.raises(tl.UnsupportedFunctionError, match=words + r".*todense.*takes 32 bytes"):
        call(x)
