"""What functions of a sparse tensor return or raise, beside what NumPy's do of the dense array."""

import inspect
import warnings

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sparse_operands import DTYPES, arrays, check_canonical

import tensorlake_spark as tl

ROUGH = {"e": 2e-3, "f": 1e-5, "d": 1e-12, "F": 1e-5, "D": 1e-12}


def sparse_of(array, seed=0, share=0.2):
    """An array as a sparse tensor, which also stores some of its zeros."""
    stored = array.astype(bool) | (np.random.default_rng(seed).random(array.shape) < share)
    coords = np.stack(np.nonzero(np.atleast_1d(stored)))[: array.ndim]
    return tl.SparseTensor(coords, array[stored], array.shape)


@st.composite
def cases(draw, dtypes=DTYPES, min_dims=0, max_dims=3, min_side=0, max_side=4):
    """An array, and the same as a sparse tensor that stores some zeros."""
    shape = draw(
        hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)
    )
    dense = draw(arrays(shape, draw(st.sampled_from(dtypes))))
    return dense, sparse_of(dense, draw(st.integers(0, 9)), draw(st.sampled_from([0, 0.3, 1])))


def axes(ndim):
    """None, an axis, or some of them, from either end; also axes that are not there, or twice."""
    if not ndim:
        return st.sampled_from([None, (), 1])
    one = st.integers(-ndim - 1, ndim)
    return st.none() | one | st.lists(one, max_size=ndim).map(tuple)


def masks(shape):
    """Masks that broadcast to a shape, dense and sparse, and True."""
    some = st.integers(0, len(shape)).flatmap(
        lambda n: st.tuples(*(st.sampled_from(sorted({1, size})) for size in shape[n:]))
    )
    dense = some.flatmap(lambda s: hnp.arrays(bool, s))
    return st.just(True) | dense | dense.map(tl.SparseTensor.from_dense)


def dense_of(x):
    return x.todense() if isinstance(x, tl.SparseTensor) else x


def check_like_numpy(ours, numpys, kind="sparse", rough=None):
    """Hold what a call returns, or the error that it raises, to what NumPy's call does."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = numpys()
        except (TypeError, IndexError, ValueError) as error:
            builtin = next(k for k in (TypeError, IndexError, ValueError) if isinstance(error, k))
            with pytest.raises(builtin):
                ours()
            return
        got = ours()
    if isinstance(got, tl.SparseTensor):
        assert kind == "sparse"
        assert isinstance(want, np.ndarray), "NumPy has a scalar"
        check_canonical(got)
        got = got.todense()
    else:
        assert kind == "array" or not np.ndim(want)
    assert type(got) is type(want) or isinstance(got, int) or isinstance(want, (int, bool))
    assert np.shape(got) == np.shape(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    if rough and np.asarray(want).dtype.char in ROUGH:
        scale = ROUGH[np.asarray(want).dtype.char]
        np.testing.assert_allclose(got, want, rtol=scale, atol=scale * rough)
    else:
        np.testing.assert_array_equal(got, want)


NAMES = [
    "sum", "prod", "nansum", "mean", "var", "std", "min", "max", "nanmin", "nanmax", "any", "all", "count_nonzero",
    "norm", "argmax", "argmin",
]  # fmt: skip
"""Reductions that are methods."""


def numpy_of(name):
    return np.linalg.norm if name == "norm" else getattr(np, name)


def arguments_of(function):
    """Names of arguments but for the first, and whether each can be given by place; without what is not for methods."""
    _, *rest = inspect.signature(function).parameters.values()
    others = {"mean", "correction", "into"}
    return [(p.name, p.kind is not p.KEYWORD_ONLY) for p in rest if p.name not in others]


ODD_AXES = [
    1.0,
    "x",
    [0],
    [0, 1],
    True,
    (0, True),
    (0, 1.5),
    np.array([0, 1]),
    (0, 0),
    (0, -2),
    2,
    (0, 5),
    (),
]


def check_odd_axes(name, ours, array):
    """Hold what a method of a 2-d tensor does with odd axes to what NumPy's function does."""
    for axis in ODD_AXES:
        if name == "norm" and isinstance(axis, (bool, float)):
            continue  # here, and nowhere else, NumPy takes what int() does
        check_like_numpy(
            lambda axis=axis: dense_of(getattr(ours, name)(axis=axis)),
            lambda axis=axis: numpy_of(name)(array, axis=axis),
            kind="array",
            rough=9,
        )
