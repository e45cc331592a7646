"""Elements: canonical ones, and those at places."""

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.ops.elements import canonical, elements_at


def test_canonical_elements_are_sorted_and_have_no_zeros():
    found = canonical(
        np.array([[4, 1, 4, 0, 2]]), np.array([5.0, 3.0, -5.0, np.nan, -0.0]), (9,), "sum"
    )
    assert found.coords.tolist() == [[0, 1]]
    np.testing.assert_array_equal(found.values, [np.nan, 3.0])
    assert found.places.tolist() == [0, 1]


def test_elements_at_places_have_their_coordinates():
    found = elements_at(np.array([1, 4, 5]), np.array([5, 0, 7]), (3, 2))
    assert found.coords.tolist() == [[0, 2], [1, 1]]
    assert found.values.tolist() == [5, 7]
    assert not found.coords.flags.writeable


def test_an_array_that_no_memory_holds_is_refused():
    x = tl.SparseTensor([[5], [7]], [1.0], (2**30, 2**31))
    with pytest.raises(
        tl.InvalidTensorError, match=r"shape \(1073741824, 2147483648\) .* 184467\d+ bytes"
    ):
        x.todense()
