"""Functions of two tensors of one shape and dtype by compiled code: of SciPy, or loops that add and multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.ops.csr_matrix import by_rows, rows_of, split_matrix
from tensorlake_spark.ops.elements import Elements, known_canonical
from tensorlake_spark.ops.loop_choice import loops_for

# What SciPy merges as NumPy computes it, for these dtypes.
_METHODS: dict[np.ufunc, str] = {
    np.add: "__add__",
    np.subtract: "__sub__",
    np.multiply: "__mul__",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.not_equal: "__ne__",
    np.less: "__lt__",
    np.greater: "__gt__",
}
_DTYPES = "?bBhHiIlLqQfd"
_LOOPS = "tensorlake_spark.ops.element_loops"
_LOOP_OF: dict[np.ufunc, str] = {np.add: "add", np.subtract: "add", np.multiply: "multiply"}


def merge(ufunc: np.ufunc, a: Elements, b: Elements) -> Elements | None:
    """Return a function of two tensors of one shape, canonical; None where NumPy has to compute it.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2]]), np.array([5, 7]), (3,))
    >>> found = merge(np.add, x, x)
    >>> found.coords.tolist(), found.values.tolist()
    ([[0, 2]], [10, 14])
    """
    if ufunc not in _METHODS or a.dtype != b.dtype or a.dtype.char not in _DTYPES:
        return None
    is_ordered = ufunc not in (np.maximum, np.minimum) or a.dtype.kind != "f"
    if not is_ordered and any(np.isnan(x.values).any() for x in (a, b)):
        return None  # of a number and NaN, SciPy takes the first
    loop = _LOOP_OF.get(ufunc, "")
    if loop and a.nnz and b.nnz and a.dtype.kind != "b":
        loops = loops_for(_LOOPS, loop, a.dtype, a.values.nbytes + b.values.nbytes)
        if loops is not None:
            values = np.negative(b.values) if ufunc is np.subtract else b.values
            return _by_loop(getattr(loops, loop), a, b, values)
    return _by_scipy(_METHODS[ufunc], a, b)


def _by_loop(loop: Callable[..., Any], a: Elements, b: Elements, values: Any) -> Elements:
    """Return a function of two tensors by a compiled loop, with these values for the second."""
    columns = a.shape[1] if a.ndim == 2 else 0
    cells, found = loop((a.places, b.places), (a.values, values), columns)
    if columns:
        return known_canonical(cells, found, a.shape)
    return known_canonical(None, found, a.shape, cells[0])


def _by_scipy(name: str, a: Elements, b: Elements) -> Elements:
    """Return a function of two tensors by SciPy: as matrices, or with one row, whose columns are places."""
    pair = [split_matrix(x, 1) if x.ndim == 2 else None for x in (a, b)]
    if pair[0] is not None and pair[1] is not None:
        first, second = pair

        def some(*rows: int) -> Any:
            return getattr(rows_of(first, *rows), name)(rows_of(second, *rows))

        return known_canonical(*by_rows(some, first), a.shape)  # SciPy leaves zeros out
    first, second = map(_one_row, (a, b))
    found = getattr(first, name)(second)
    places = found.indices.astype(np.int64, copy=False)
    return known_canonical(None, found.data, a.shape, places)


def _one_row(x: Elements) -> Any:
    from scipy.sparse import csr_array

    ends = np.array([0, x.nnz])
    row = csr_array((x.values, x.places, ends), shape=(1, x.size))
    row.has_canonical_format = True
    return row
