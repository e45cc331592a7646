"""First indices at which a condition holds: of a dense array NumPy tells them."""

import pickle

import numpy as np
import pytest
from computed import LAYOUTS, array_of, arrays, keys, put
from examples import times
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.computing.operations.first_indices import first_index

CONDITIONS = ((">", 1), ("<=", 0), ("==", 2), ("!=", 0), np.isnan, lambda x: x == x)


def wanted_of(holds, axis, keepdims):
    if axis is None:
        found = np.asarray(holds.argmax() if holds.any() else -1)
        return found.reshape((1,) * holds.ndim) if keepdims else found
    if not holds.shape[axis]:
        return np.full_like(holds.any(axis=axis, keepdims=keepdims), -1, np.int64)
    first = holds.argmax(axis, keepdims=keepdims)
    return np.where(holds.any(axis=axis, keepdims=keepdims), first, -1)


@given(st.data(), arrays(), st.sampled_from(LAYOUTS))
@times(1.5)
def test_a_first_index_is_numpys(shared, data, array, layout):
    key = data.draw(keys(array.shape))
    x = array[key]
    condition = data.draw(
        st.sampled_from(CONDITIONS[:4] if x.dtype.kind != "c" else CONDITIONS[2:])
    )
    holds = condition(x) if callable(condition) else {
        ">": np.greater, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal
    }[condition[0]](x, condition[1])  # fmt: skip
    axis = data.draw(st.none() | st.integers(0, x.ndim - 1)) if x.ndim else None
    keepdims = data.draw(st.booleans())
    wanted = wanted_of(np.asarray(holds), axis, keepdims)
    found = put(shared, array, layout).view[key].first_index(condition, axis, keepdims)
    assert np.asarray(found).dtype == np.int64
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_is_pickled_goes_to_the_lake_and_refuses_what_is_no_condition(lake, layout):
    array = array_of("f8", (6, 5, 4), 1)
    ref = put(lake, array, layout)
    pickle.loads(pickle.dumps(first_index(ref._stored, (">", 1), 0)))
    found = ref.first_index((">", 1), axis=1, into="first")[...]
    np.testing.assert_array_equal(found, wanted_of(array > 1, 1, False))
    with pytest.raises(tl.InvalidOptionError, match="not a condition"):
        ref.first_index(("=>", 1))
    with pytest.raises(tl.InvalidTensorError, match="a bool for each value"):
        ref.first_index(np.sqrt)
    with pytest.raises(tl.AxisError):
        ref.first_index((">", 1), axis=3)
