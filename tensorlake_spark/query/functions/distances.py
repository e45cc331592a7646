"""Functions of two arrays of the same shape: distances, similarities and products.

Whole numbers are counted with as 64-bit floats, so that differences of small types do not wrap around. 32-bit floats
stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.query.functions.definitions import rowwise
from tensorlake_spark.query.functions.row_values import Array, Constant
from tensorlake_spark.query.functions.summaries import numbers

BLOCK = 1 << 16
"""So many elements are computed at a time: they stay in the processor's cache."""


def _pair(a: Any, b: Any) -> tuple[Array, Array]:
    left, right = _floats(numbers(a)), _floats(numbers(b))
    if left.shape != right.shape:
        raise ValueError(f"the shapes {left.shape} and {right.shape} differ")
    kind = np.result_type(left, right)
    return left.reshape(-1).astype(kind, copy=False), right.reshape(-1).astype(kind, copy=False)


def _floats(array: Array) -> Array:
    if array.dtype.kind == "c":
        raise TypeError("complex numbers have no distance here; take array_norm(a - b)")
    if array.dtype == np.float16:
        return array.astype(np.float32)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def l2_distance(a: Any, b: Any) -> Any:
    """Return the Euclidean distance.

    Examples
    --------
    >>> float(l2_distance([0, 0], [3, 4]))
    5.0
    """
    left, right = _pair(a, b)
    gap = left - right
    return np.sqrt(np.dot(gap, gap))


def dot(a: Any, b: Any) -> Any:
    """Return the sum of the products of the elements.

    Examples
    --------
    >>> float(dot([1, 2], [3, 4]))
    11.0
    """
    return np.dot(*_pair(a, b))


def cosine_similarity(a: Any, b: Any) -> Any:
    """Return the cosine of the angle between; it is NaN, if one of them is zero.

    Examples
    --------
    >>> float(cosine_similarity([1, 0], [0, 2]))
    0.0
    """
    left, right = _pair(a, b)
    scale = np.sqrt(np.dot(left, left)) * np.sqrt(np.dot(right, right))
    with np.errstate(all="ignore"):
        return np.divide(np.dot(left, right), scale)


def _distances(a: Array, b: Array) -> Array:
    gap = a - b
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", gap, gap)))


def _dots(a: Array, b: Array) -> Array:
    if b.ndim == 1:
        return np.asarray(a @ b)
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _cosines(a: Array, b: Array) -> Array:
    lengths = np.sqrt(np.einsum("ij,ij->i", a, a))
    other = np.sqrt(np.dot(b, b)) if b.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", b, b))
    with np.errstate(all="ignore"):
        return np.asarray(_dots(a, b) / (lengths * other))


def _stacked(function: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """Return a function of whole columns, which goes over blocks of rows."""

    def whole(a: Any, b: Any) -> Any:
        if isinstance(a, Constant):
            a, b = b, a
        other = numbers(b.value) if isinstance(b, Constant) else numbers(b)
        if (other.shape if isinstance(b, Constant) else other.shape[1:]) != a.shape[1:]:
            return None
        left = numbers(a).reshape(len(a), -1)
        right = other.reshape(-1) if isinstance(b, Constant) else other.reshape(len(other), -1)
        right = _floats(right)
        kind = np.result_type(_floats(left[:0]), right)
        out = np.empty(len(left), kind)
        step = max(1, BLOCK // max(1, left.shape[1]))
        fixed = right.astype(kind, copy=False) if right.ndim == 1 else None
        for i in range(0, len(left), step):
            part = _floats(left[i : i + step]).astype(kind, copy=False)
            with_ = fixed if fixed is not None else right[i : i + step].astype(kind, copy=False)
            out[i : i + step] = function(part, with_)
        return out

    return whole


rowwise(
    "l2_distance", l2_distance, "number", (2, 2), ("euclidean_distance",), _stacked(_distances),
    about="the Euclidean distance",
)  # fmt: skip
rowwise(
    "dot", dot, "number", (2, 2), ("inner_product",), _stacked(_dots), about="the sum of products"
)
rowwise(
    "cosine_similarity", cosine_similarity, "number", (2, 2), (), _stacked(_cosines),
    about="the cosine of the angle between",
)  # fmt: skip
