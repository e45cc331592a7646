"""Values of sparse and dense operands at coordinates of a shape to which they broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.ops.elements import Elements

Array = np.ndarray[Any, Any]


def look_up(operand: Any, coords: Array) -> Array:
    """Return the values of an operand at coordinates, shape (ndim, n), of a shape to which it broadcasts.

    Parameters
    ----------
    operand : Elements, ndarray or scalar
        An array without axes, or a scalar, is returned as it is.
    coords : int64 ndarray, shape (ndim, n)
        Within the shape; the operand has at most so many axes.

    Examples
    --------
    >>> look_up(np.array([[5], [6]]), np.array([[0, 1, 1], [0, 0, 2]])).tolist()
    [5, 6, 6]
    """
    shape = np.shape(operand)
    if not isinstance(operand, Elements) and not shape:
        return np.asarray(operand) if isinstance(operand, np.ndarray) else operand
    rows = [*zip(coords[coords.shape[0] - len(shape) :], shape, strict=True)]
    if not isinstance(operand, Elements):
        if all(size == 1 for size in shape):
            return np.broadcast_to(operand.reshape(1), coords.shape[1:])
        one = np.zeros(1, np.int64)  # it broadcasts
        return np.asarray(operand[tuple(row if size != 1 else one for row, size in rows)])
    own = [row if size != 1 else np.zeros_like(row) for row, size in rows]
    out = np.zeros(coords.shape[1], operand.dtype)
    if operand.nnz:
        wanted = ravel(np.stack(own), shape) if own else np.zeros(coords.shape[1], np.int64)
        # Beyond the last place is one that is not wanted there.
        at = np.minimum(np.searchsorted(operand.places, wanted), operand.nnz - 1)
        found = operand.places[at] == wanted
        out[found] = operand.values[at[found]]
    return out
