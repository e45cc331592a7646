"""Broadcasting of sparse operands."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sparse_operands import arrays, sparse_of

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.ops.broadcasting import (
    broadcast_shapes,
    broadcast_to,
    matches,
    values_at,
)
from tensorlake_spark.ops.elements import Elements

PAIRS = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4)


@given(st.lists(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3), max_size=3))
def test_shapes_broadcast_as_numpys(shapes):
    try:
        want = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast"):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == want


def test_shapes_of_any_size():
    assert broadcast_shapes((2**40, 1), (1, 2**22)) == (2**40, 2**22)
    with pytest.raises(InvalidTensorError, match=r"fewer than 2\*\*63"):
        broadcast_shapes((2**40, 1), (1, 2**23))
    assert broadcast_shapes((0, 2**62, 4)) == (0, 2**62, 4)


@given(st.data(), PAIRS)
def test_elements_are_repeated(data, shapes):
    x = data.draw(arrays(shapes.input_shapes[0], "int8"))
    got = broadcast_to(sparse_of(x), shapes.result_shape)
    assert isinstance(got, Elements)
    assert (np.diff(got.places) > 0).all()
    np.testing.assert_array_equal(
        got.todense(), np.broadcast_to(x, shapes.result_shape), strict=True
    )


def test_a_shape_that_is_smaller_is_refused():
    x = sparse_of(np.eye(3))
    for shape in ((3,), (1, 3), (2, 3, 4)):
        with pytest.raises(ValueError, match=r"do(es)? not broadcast"):
            broadcast_to(x, shape)


@given(st.data(), PAIRS)
def test_elements_that_meet(data, shapes):
    x, y = (data.draw(arrays(shape, "int8")) for shape in shapes.input_shapes)
    a, b = sparse_of(x), sparse_of(y, 1)
    of_a, of_b, places = matches(a, b, shapes.result_shape)
    held = [np.zeros(z.shape, int) for z in (x, y)]
    for z, part in zip((a, b), held, strict=True):
        part.reshape(-1)[z.places] = np.arange(1, z.nnz + 1)
    one, two = np.broadcast_arrays(*held)
    want = np.flatnonzero((one != 0) & (two != 0))
    by = np.argsort(places)
    assert places[by].tolist() == want.tolist()
    assert (of_a[by] + 1).tolist() == one.reshape(-1)[want].tolist()
    assert (of_b[by] + 1).tolist() == two.reshape(-1)[want].tolist()


@given(st.data(), PAIRS)
def test_values_of_an_array_at_elements(data, shapes):
    x, y = (data.draw(arrays(shape, "int8")) for shape in shapes.input_shapes)
    at = broadcast_to(sparse_of(x), shapes.result_shape)
    want = np.broadcast_to(y, shapes.result_shape).reshape(-1)[at.places]
    assert np.broadcast_to(values_at(y, at, shapes.result_shape), at.nnz).tolist() == want.tolist()
