"""Arrays with many zeros, as examples of Hypothesis, and how a product of ours is compared with NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tensorlake_spark.indexing.coords import unravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.products.contraction import dense_of
from tensorlake_spark.tensor.sparse import SparseTensor

DTYPES = st.sampled_from(["?", "i1", "u8", "i8", "f2", "f4", "f8", "c16"])
SEEDS = st.integers(0, 2**32 - 1)


def array(shape: Sequence[int], dtype: str, seed: int, share: float = 0.5) -> np.ndarray:
    """Return an array of small integers and zeros: whatever the order of a sum, it is the same."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.integers(0 if dtype[0] in "?u" else -3, 4, tuple(shape)) * (
        rng.random(tuple(shape)) < share
    )
    return np.asarray(values, dtype)


def sparse(dense: np.ndarray) -> SparseTensor:
    """Return an array as a sparse tensor that also stores a zero, if it has one."""
    mask = np.asarray(dense != 0)
    zeros = np.flatnonzero(~mask)
    mask.reshape(-1)[zeros[:1]] = True
    return SparseTensor(unravel(np.flatnonzero(mask), dense.shape), dense[mask], dense.shape)


def check(
    ours: Callable[..., Any], numpys: Callable[..., Any], *arrays: np.ndarray, tolerance: float = 0
) -> None:
    """Compare a function with NumPy's for every choice of which operands are sparse."""
    want = np.asarray(numpys(*arrays))
    for which in product((True, False), repeat=len(arrays)):
        if any(which):
            operands = [sparse(x) if is_sparse else x for x, is_sparse in zip(arrays, which)]
            got = ours(*operands)
            if isinstance(got, Elements):
                check_canonical(got)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            found = dense_of(got) if isinstance(got, Elements) else got
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)


def check_canonical(x: Elements) -> None:
    """Assert that elements are sorted, each there once, and none of them zero."""
    assert (x.values != 0).all()
    assert (np.diff(x.places) > 0).all()
    assert x.coords.shape == (x.ndim, x.nnz)


def error_of(function: Callable[..., Any], *arguments: Any) -> type[Exception] | None:
    """Return the type of what a call raises."""
    try:
        function(*arguments)
    except Exception as error:
        return type(error)
    return None
