"""Operands of operations on sparse tensors, for tests that have NumPy as their oracle."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlake_spark as tl
from tensorlake_spark.ops.elements import nonzero_bits

SPECIAL = {"f": [np.nan, np.inf, -np.inf, -0.0, 1.5], "c": [complex(np.nan, 1), np.inf, 1j, -0.0]}
DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip


@st.composite
def arrays(draw, shape, dtype):
    """Arrays that are mostly zero, with NaN, infinities and the ends of what integers hold."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        values = st.sampled_from([*range(-3, 4), *SPECIAL[dtype.kind]])
    elif dtype.kind == "b":
        values = st.booleans()
    else:
        ends = np.iinfo(dtype)
        values = st.sampled_from([0, 1, 2, 3, 7, int(ends.max), int(ends.min)])
    return draw(hnp.arrays(dtype, shape, elements=values, fill=st.just(dtype.type(0))))


def sparse_of(array, seed=0, share=0.2):
    """An array as a sparse tensor, which also stores some of its zeros."""
    stored = nonzero_bits(array) | (np.random.default_rng(seed).random(array.shape) < share)
    coords = np.stack(np.unravel_index(np.flatnonzero(stored), array.shape or (1,)))
    return tl.SparseTensor(coords[: array.ndim], array[stored], array.shape)


def check_canonical(x):
    """Hold a result to what it promises: in order, no coordinate twice, no zero."""
    assert x.coords.shape == (x.ndim, x.nnz)
    assert x.coords.dtype == x.places.dtype == np.int64
    assert (np.diff(x.places) > 0).all()
    assert (x.values != np.zeros((), x.values.dtype)).all()
    tl.SparseTensor(x.coords, x.values, x.shape)


def check_same(got, want):
    """Hold a result, sparse or dense, to NumPy's: its shape, its dtype, its elements, NaN among them."""
    if isinstance(got, tl.SparseTensor):
        check_canonical(got)
        got = got.todense()
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, want, strict=True)


def outcome(function, *operands):
    """Return what a function gives, or the error that it raises."""
    with np.errstate(all="ignore"):
        try:
            return function(*operands)
        except (TypeError, ValueError, OverflowError) as error:
            return error


def zeros_stay(function, *operands):
    found = outcome(function, *operands)
    return not any(np.any(part != 0) for part in (found if isinstance(found, tuple) else (found,)))


def hold(function, dense, ours, zeros):
    """Hold a function of our operands to that of dense ones; a DenseResultError to what it makes of zeros."""
    got, want = outcome(function, *ours), outcome(function, *dense)
    if isinstance(got, tl.DenseResultError):
        assert not zeros_stay(function, *zeros), got
    elif isinstance(want, Exception):
        wanted = TypeError if isinstance(want, TypeError) else type(want)  # not a private one of it
        assert isinstance(got, wanted), (got, want)
    else:
        assert not isinstance(got, Exception), got
        if isinstance(want, tuple):
            for one, other in zip(got, want, strict=True):
                check_same(one, np.asarray(other))
        else:
            check_same(got, np.asarray(want))


def zero(x):
    return np.zeros(1, x.dtype)


def one():
    """A tensor of two elements: 4 and 9."""
    return tl.SparseTensor([[0, 2], [1, 0]], [4.0, 9.0], (3, 2))
