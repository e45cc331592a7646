"""Labels of NumPy's products: einsum by them is the oracle's product."""

import numpy as np
import pytest

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.ops.products.product_labels import check_summed, inner_labels, matmul_labels

PAIRS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4))]


def summed(labels, a, b):
    """Return the sum of products that labels say."""
    numbers = {}
    of_a, of_b, out = ([numbers.setdefault(k, len(numbers)) for k in some] for some in labels)
    return np.einsum(a, of_a, b, of_b, out)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_matmul(one, other):
    a, b = np.random.default_rng(0).random(one), np.random.default_rng(1).random(other)
    np.testing.assert_allclose(summed(matmul_labels(one, other), a, b), np.matmul(a, b))


@pytest.mark.parametrize(
    ("one", "other"), [((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 3)), ((2, 3), (5, 4, 3))]
)
def test_inner(one, other):
    a, b = np.random.default_rng(0).random(one), np.random.default_rng(1).random(other)
    np.testing.assert_allclose(summed(inner_labels(one, other), a, b), np.inner(a, b))


def test_lengths_that_differ():
    with pytest.raises(InvalidTensorError, match="an operand has no axes"):
        matmul_labels((), (2, 3))
    with pytest.raises(InvalidTensorError, match="axis 1 of the first has length 3, axis 0 of the"):
        matmul_labels((2, 3), (4, 5))
    with pytest.raises(InvalidTensorError, match="they must be equal"):
        check_summed("dot", (2,), 0, (3,), 0)
