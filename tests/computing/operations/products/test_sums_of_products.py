"""What products share: which axes are left, and how partial sums come together."""

import numpy as np

from tensorlake_spark.computing.operations.products.array_contractions import Contraction
from tensorlake_spark.computing.operations.products.sums_of_products import free


def test_axes_that_are_not_summed():
    assert free((), 2) == [0, 1]
    assert free((2, 0, 4), 2) == [1, 2, 4]


def test_partials_of_a_dense_answer_are_added():
    fold = Contraction((2, 3), np.dtype("f8"), ((np.ones(3), (1,)),), (0,))
    block = np.arange(6.0).reshape(2, 3)
    parts = [
        fold.map((slice(0, 2), slice(a, b)), block[:, a:b].copy()) for a, b in ((0, 1), (1, 3))
    ]
    assert fold.finish(fold.combine(*parts)).tolist() == [3, 12]
