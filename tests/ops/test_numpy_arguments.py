"""Axes as callers name them."""

import numpy as np
import pytest

from tensorlake_spark.errors import AxisError, UnsupportedFunctionError
from tensorlake_spark.ops.numpy_arguments import axes_of, axis_of, refuse_out


def test_axes_count_from_either_end_and_are_any_integers():
    assert [axis_of(k, 2) for k in (-2, np.int8(1), True)] == [0, 1, 1]
    assert axes_of(None, 2) == (0, 1)
    assert axes_of([], 2) == ()
    assert axes_of(np.array([1, 0]), 2) == (1, 0)


@pytest.mark.parametrize("axes", [2, -3, (0, 2), (0, -2), (1, 1)])
def test_axes_that_are_not_there_or_twice_are_both_errors_of_numpys_axis_error(axes):
    with pytest.raises(AxisError) as caught:
        axes_of(axes, 2)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("axis", [1.5, "0", None])
def test_an_axis_is_an_integer(axis):
    with pytest.raises(TypeError, match="an axis is an integer"):
        axis_of(axis, 2)


def test_there_is_nothing_to_write_to():
    with pytest.raises(UnsupportedFunctionError, match="out="):
        refuse_out(np.zeros(3))
