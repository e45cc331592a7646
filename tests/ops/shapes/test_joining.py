"""Tensors made of several; NumPy is the oracle."""

import numpy as np
import pytest
from examples import times
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reduced import cases, check_like_numpy, dense_of, sparse_of
from sparse_operands import DTYPES, arrays

import tensorlake_spark as tl


@times(2)
@given(st.data(), cases(), st.sampled_from(["concatenate", "stack", "vstack", "hstack"]))
def test_joined_tensors_are_numpys(data, case, name):
    _, x = case
    pairs = [case]
    for _ in range(data.draw(st.integers(0, 2))):
        shape = tuple(data.draw(st.sampled_from([n, n, n, 2])) for n in x.shape)
        other = data.draw(arrays(shape, data.draw(st.sampled_from(DTYPES))))
        pairs.append((other, data.draw(st.sampled_from([other, sparse_of(other)]))))
    options = {}
    if name in ("concatenate", "stack"):
        some = st.integers(-x.ndim - 2, x.ndim + 1)
        options["axis"] = data.draw(some | st.none() if name == "concatenate" else some)
    if data.draw(st.booleans()):
        options["dtype"] = data.draw(st.sampled_from(["float32", "complex128", "int16"]))
    function = getattr(np, name)
    check_like_numpy(
        lambda: function([got for _, got in pairs], **options),
        lambda: function([want for want, _ in pairs], **options),
    )


@times(3)
@given(st.data())
def test_where_is_numpys_or_says_what_would_be_dense(data):
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=2, max_side=3)
    ).input_shapes
    dtypes = ["bool", *data.draw(st.tuples(*[st.sampled_from(["int32", "float64", "int8"])] * 2))]
    dense = [data.draw(arrays(shape, dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    ours = [
        data.draw(st.sampled_from([sparse_of(array), sparse_of(array), array])) for array in dense
    ]
    ours = [data.draw(st.sampled_from([o, o, 0, 3])) if k else o for k, o in enumerate(ours)]
    if not any(isinstance(o, tl.SparseTensor) for o in ours):
        return
    condition, x, y = ours
    fills = [y] if isinstance(condition, tl.SparseTensor) else [x, y]
    if any(
        np.ndim(o) == 0 and not isinstance(o, tl.SparseTensor) and np.any(o) for o in fills
    ) and not any(isinstance(o, np.ndarray) and o.ndim for o in fills):
        with pytest.raises(tl.DenseResultError):
            np.where(*ours)
        return
    is_dense = any(isinstance(o, np.ndarray) and o.ndim for o in fills)
    if np.broadcast_shapes(*shapes) == ():
        return
    check_like_numpy(
        lambda: np.where(*ours),
        lambda: np.where(*map(dense_of, ours)),
        kind="array" if is_dense else "sparse",
    )


def test_a_condition_alone_is_nonzero():
    x = tl.SparseTensor([[1]], [2.0], (3,))
    assert np.where(x)[0].tolist() == [1]
    with pytest.raises(ValueError, match="x and y too"):
        np.where(x, x, None)
    with pytest.raises(tl.InvalidTensorError, match=r"\(2,\) do not broadcast"):
        np.where(x, x, np.ones(2))


def test_what_does_not_fit_says_so():
    x, y = tl.SparseTensor([[1]], [2.0], (3,)), tl.SparseTensor([[1], [1]], [2.0], (3, 2))
    with pytest.raises(ValueError, match=r"\(3,\) and \(3, 2\) do not fit"):
        np.concatenate([x, y])
    with pytest.raises(ValueError, match="have one shape"):
        np.stack([x, y])
    with pytest.raises(TypeError, match="an axis is an integer, not None"):
        np.stack([x, x], axis=None)
    with pytest.raises(TypeError, match="out="):
        np.concatenate([x, x], out=np.zeros(6))


def choose(tensors):
    return np.where(tensors[0] > 0, tensors[1], tensors[0])


def bound(tensors):
    return np.clip(tensors[0], 0, tensors[1])


@pytest.mark.parametrize("join", [np.concatenate, np.stack, np.vstack, choose, bound])
def test_sparse_matrices_of_other_packages_are_told_how_to_become_tensors(join):
    x = tl.SparseTensor.from_dense(np.eye(2))
    with pytest.raises(
        tl.UnsupportedDtypeError, match=r"csr_array has .* SparseTensor\.from_scipy"
    ):
        join([x, x.to_csr()])


@pytest.mark.parametrize(
    ("dtype", "join", "named"),
    [
        (
            "datetime64[D]",
            lambda x: np.where(x.astype(bool), x, 0),
            r"np\.where of datetime64\[D\] and int",
        ),
        (
            "complex128",
            lambda x: np.concatenate([x], dtype="f4"),
            r"concatenate of complex128 with dtype='f4'",
        ),
        (
            "datetime64[D]",
            lambda x: np.stack([x, x], dtype="f4"),
            r"np\.concatenate of datetime64\[D\]",
        ),
    ],
)
def test_dtypes_that_numpy_refuses_are_named(dtype, join, named):
    x = tl.SparseTensor([[1]], np.ones(1, "i8").astype(dtype), (3,))
    with pytest.raises(tl.UnsupportedDtypeError, match=f"{named}.* is not there: .*astype"):
        join(x)
