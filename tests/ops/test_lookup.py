"""Values of operands at coordinates; NumPy's indexing of the broadcast array is the oracle."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reduced import cases

from tensorlake_spark.ops.lookup import look_up


@given(st.data(), cases(["int32", "float64"], min_side=1, max_side=3))
def test_values_are_those_of_the_repeated_array(data, case):
    dense, x = case
    shape = (2, *(data.draw(st.sampled_from([n, 3])) if n == 1 else n for n in x.shape))
    places = data.draw(st.lists(st.integers(0, int(np.prod(shape)) - 1)))
    coords = np.array(np.unravel_index(np.array(places, int), shape)).reshape(len(shape), -1)
    want = np.broadcast_to(dense, shape)[tuple(coords)]
    for operand in (dense, x):
        np.testing.assert_array_equal(np.broadcast_to(look_up(operand, coords), len(places)), want)


def test_a_scalar_is_itself():
    assert look_up(7, np.zeros((2, 3), int)) == 7
