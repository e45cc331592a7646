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
