"""Functions that say what an array is: its shape and its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.query.functions.registry import rowwise
from tensorlake_spark.query.functions.row_values import Constant
from tensorlake_spark.query.functions.summaries import axes_of


def shape(x: Any, axis: Any = None) -> Any:
    """Return the lengths of the axes of an array, or the length of one.

    Examples
    --------
    >>> shape(np.zeros((2, 3))), shape(np.zeros((2, 3)), -1)
    (array([2, 3]), np.int64(3))
    """
    lengths = np.array(np.shape(x), np.int64)
    return lengths if axis is None else lengths[np.asarray(axes_of(axis, len(lengths)))]


def _shapes(x: Any, axis: Any = Constant(None)) -> Any:
    if isinstance(x, Constant) or not isinstance(axis, Constant):
        return None
    one = shape(x[0], axis.value) if len(x) else np.array(x.shape[1:], np.int64)
    return np.tile(one, (len(x), *[1] * one.ndim)) if one.ndim else np.full(len(x), one)


def dtype(x: Any) -> str:
    """Return the name of an array's dtype.

    Examples
    --------
    >>> dtype(np.zeros(2, np.uint8))
    'uint8'
    """
    kind = np.asarray(x).dtype
    return "text" if kind.kind == "U" else kind.name


rowwise("shape", shape, "array", (1, 2), (), _shapes, "shape", "the lengths of the axes")
rowwise("dtype", dtype, "text", (1, 1), (), None, "shape", "the name of the dtype")
