"""Shapes and orders; NumPy is the oracle."""

import math

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from reduced import axes, cases, check_like_numpy

import tensorlake_spark as tl

SOME = ["int32", "float64", "complex64", "bool"]


@times(2)
@given(st.data(), cases(SOME))
def test_a_reshaped_tensor_is_numpys(data, case):
    dense, x = case
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 9, 0, -1, x.size]), max_size=4))
    if data.draw(st.booleans()):
        shape = data.draw(st.permutations([*x.shape, 1]))
    order = data.draw(st.sampled_from("CFA"))
    if not x.size and -1 in shape and math.prod(shape) == 0:
        return  # NumPy itself is of two minds
    check_like_numpy(lambda: np.reshape(x, shape, order), lambda: np.reshape(dense, shape, order))
    check_like_numpy(lambda: x.reshape(tuple(shape)), lambda: dense.reshape(tuple(shape)))
    check_like_numpy(lambda: x.ravel(order), lambda: dense.ravel(order))


@times(2)
@given(st.data(), cases(SOME))
def test_axes_in_another_order_are_numpys(data, case):
    dense, x = case
    order = data.draw(st.none() | st.permutations(range(x.ndim)) | axes(x.ndim))
    check_like_numpy(lambda: np.transpose(x, order), lambda: np.transpose(dense, order))
    check_like_numpy(lambda: x.T, lambda: dense.T)
    check_like_numpy(lambda: x.mT, lambda: dense.mT)
    one, other = data.draw(axes(x.ndim)), data.draw(axes(x.ndim))
    if one is not None and other is not None:
        check_like_numpy(lambda: np.moveaxis(x, one, other), lambda: np.moveaxis(dense, one, other))
    if isinstance(one, int) and isinstance(other, int):
        check_like_numpy(lambda: np.swapaxes(x, one, other), lambda: np.swapaxes(dense, one, other))


@given(st.data(), cases(SOME, max_side=2))
def test_axes_that_come_and_go_are_numpys(data, case):
    dense, x = case
    axis = data.draw(axes(x.ndim))
    check_like_numpy(lambda: np.squeeze(x, axis), lambda: np.squeeze(dense, axis))
    if axis is not None:
        check_like_numpy(lambda: np.expand_dims(x, axis), lambda: np.expand_dims(dense, axis))
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        check_like_numpy(lambda f=getattr(np, name): f(x), lambda f=getattr(np, name): f(dense))


@times(2)
@given(st.data(), cases(SOME, min_dims=1))
def test_elements_in_another_order_are_numpys(data, case):
    dense, x = case
    axis = data.draw(axes(x.ndim))
    check_like_numpy(lambda: np.flip(x, axis), lambda: np.flip(dense, axis))
    check_like_numpy(lambda: np.flipud(x), lambda: np.flipud(dense))
    check_like_numpy(lambda: np.fliplr(x), lambda: np.fliplr(dense))
    shift = data.draw(
        st.integers(-9, 9) | st.lists(st.integers(-9, 9), min_size=1, max_size=3).map(tuple)
    )
    if axis is None and isinstance(shift, tuple):
        return
    if axis != ():
        check_like_numpy(lambda: np.roll(x, shift, axis), lambda: np.roll(dense, shift, axis))


@given(st.data(), cases(SOME, max_side=2))
def test_a_repeated_tensor_is_numpys(data, case):
    dense, x = case
    shape = data.draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=2))
    shape = (*shape, *(data.draw(st.sampled_from([n, n, 3])) for n in x.shape))
    check_like_numpy(lambda: np.broadcast_to(x, shape), lambda: np.broadcast_to(dense, shape))


def test_shapes_that_do_not_fit_say_so():
    x = tl.SparseTensor([[1], [0]], [2.0], (3, 2))
    with pytest.raises(ValueError, match=r"shape \(3, 2\) and size 6 has no shape \(4, -1\)"):
        x.reshape(4, -1)
    with pytest.raises(ValueError, match="only one length can be -1"):
        x.reshape(-1, -1)
    with pytest.raises(ValueError, match="order 'K'; it is"):
        x.reshape(6, order="K")
    with pytest.raises(TypeError, match="not a sequence of integers"):
        x.reshape(1.5, 4)
    with pytest.raises(ValueError, match="do not match a tensor of 2 axes"):
        x.transpose(0)
    with pytest.raises(ValueError, match="axis 0 has length 3"):
        x.squeeze(0)
    with pytest.raises(ValueError, match="1 axes to move to 2 places"):
        x.moveaxis(0, (0, 1))
    with pytest.raises(ValueError, match="2 shifts along 3 axes"):
        x.roll((1, 2), (0, 1, 0))
    with pytest.raises(ValueError, match="a matrix has two axes"):
        x.ravel().mT
    for call, axis in (
        (x.squeeze, [1]),
        (x.squeeze, True),
        (x.expand_dims, None),
        (x.expand_dims, 1.0),
    ):
        with pytest.raises(TypeError, match="an axis is an integer"):
            call(axis)


def test_another_shape_shares_the_values():
    x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, 7.0], (2, 2))
    assert np.shares_memory(x.reshape(4).values, x.values)
    assert x.reshape(2, 2).coords is x.coords


def test_a_scalar_has_one_axis_to_squeeze():
    x = tl.SparseTensor.from_dense(np.array(7))
    assert np.squeeze(x, 0).shape == np.squeeze(x, -1).shape == ()
    with pytest.raises(tl.AxisError):
        np.squeeze(x, 1)


def test_distances_are_integers():
    x = tl.SparseTensor.from_dense(np.eye(3))
    for call in (lambda: np.roll(x, 1.5), lambda: np.roll(x, "a", 0), lambda: x.diagonal(0.5)):
        with pytest.raises(TypeError, match="is not an integer; give one"):
            call()
