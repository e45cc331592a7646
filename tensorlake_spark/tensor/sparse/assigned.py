"""What is assigned to a part of a sparse tensor, as elements of that part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorlake_spark.errors import (
    DenseResultError,
    InvalidTensorError,
    NumberOverflowError,
    TensorLakeError,
    UnsupportedDtypeError,
)
from tensorlake_spark.ops.broadcasting import broadcast_to
from tensorlake_spark.ops.elements import Elements, nonzero
from tensorlake_spark.tensor.sparse.array import sparse_of
from tensorlake_spark.tensor.sparse.interchange import array_of_torch, check_unmasked, is_torch

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

FEW = 1024
"""A part of so many elements is assigned with its zeros, so that nobody looks for what is stored there."""

_MOST = 1 << 27  # elements that values may be stretched to


def assigned(
    values: Any, shape: Shape, dtype: np.dtype[Any], zeros: bool = True
) -> tuple[Elements, bool]:
    """Return the elements that values have in a part of a tensor, converted and stretched as by NumPy's assignment.

    Parameters
    ----------
    values : array_like, scalar or sparse tensor
        What is assigned.
    shape : tuple of int
        That of the part.
    dtype : dtype
        The tensor's.
    zeros : bool
        Whether the zeros of a small part, or of one that is mostly full, shall be among the elements.

    Returns
    -------
    elements : Elements
        In C order of the part.
    every : bool
        Whether they are all elements of the part.

    Raises
    ------
    InvalidTensorError
        If the values do not stretch to the shape.
    DenseResultError
        If they do, to more than 2**27 elements.

    Examples
    --------
    >>> elements, every = assigned([5, 0], (3, 2), np.dtype(float), zeros=False)
    >>> elements.coords.tolist(), elements.values.tolist(), every
    ([[0, 1, 2], [0, 0, 0]], [5.0, 5.0, 5.0], False)
    """
    given = sparse_of(values)
    if given is None:
        dense = _converted(values, dtype)
        _check_stretches(dense.shape, shape)
        found = np.flatnonzero(nonzero(dense))
        every = zeros and _is_full(math.prod(shape), len(found), dense.size)
        if every:
            found = np.arange(dense.size)
        some = Elements._trusted(None, dense.reshape(-1)[found], dense.shape, found)
        return _stretched(some, shape), every
    _check_stretches(given.shape, shape)
    is_empty = 0 in shape  # values for an empty part may have any size
    if zeros and not is_empty and math.prod(shape) <= FEW:
        return assigned(given.todense(), shape, dtype)
    some = Elements._trusted(
        given._coords, given.values.astype(dtype, copy=False), given.shape, given.places
    )
    return _stretched(some, shape), zeros and is_empty


def _converted(values: Any, dtype: np.dtype[Any]) -> Array:
    """Return values as an array of a dtype, as NumPy's assignment converts them."""
    with refused_values(values, dtype):
        if isinstance(
            values, np.generic
        ):  # of an int64 it asks whether it fits, of an array it does not
            out = np.empty((), dtype)
            out[...] = values
            return out
        check_unmasked(values)
        return np.asarray(array_of_torch(values) if is_torch(values) else values, dtype)


@contextmanager
def refused_values(values: Any, dtype: np.dtype[Any]) -> Iterator[None]:
    """Say which values it is that NumPy does not assign to elements of a dtype, with its kind of exception.

    Raises
    ------
    UnsupportedDtypeError
        A TypeError, as NumPy's. InvalidTensorError for a ValueError, NumberOverflowError for an OverflowError.

    Examples
    --------
    >>> with refused_values(300, np.dtype("i1")):
    ...     np.zeros(1, "i1")[0] = 300  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tensorlake_spark.errors.NumberOverflowError: 300 cannot be assigned to elements of dtype int8: Python integer ...
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, TensorLakeError):
            raise
        kind = {TypeError: UnsupportedDtypeError, OverflowError: NumberOverflowError}
        raise kind.get(type(error), InvalidTensorError)(
            f"{values!r:.100} cannot be assigned to elements of dtype {dtype}: {error}; convert it first, or take a "
            "tensor of another dtype"
        ) from error


def _is_full(size: int, count: int, of: int) -> bool:
    """Whether a part is small, or a quarter of the values that are stretched to it is not zero."""
    return size <= FEW or 4 * count >= of


def _check_stretches(given: Shape, shape: Shape) -> None:
    lead = len(given) - len(shape)
    # As NumPy's assignment, which takes axes of length 1 in front that the part does not have.
    fits = all(n == 1 for n in given[: max(0, lead)]) and all(
        n in (1, length) for n, length in zip(given[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise InvalidTensorError(
            f"values of shape {given} cannot be assigned to a part of shape {shape}"
        )


def _stretched(x: Elements, shape: Shape) -> Elements:
    """Return elements repeated along the axes that they lack, or along which they have length 1."""
    lead = len(x.shape) - len(shape)
    if lead > 0:
        x = Elements._trusted(None, x.values, x.shape[lead:], x.places)
    count = x.nnz and math.prod(shape) // math.prod(x.shape) * x.nnz
    if count > _MOST:
        raise DenseResultError(
            f"{count} elements would be stored, of {count * (8 + x.dtype.itemsize)} bytes with their places; "
            f"assign sparse tensors, or parts of at most {_MOST} elements"
        )
    if not count:
        return Elements._trusted(None, x.values[:0], shape, x.places[:0])
    return broadcast_to(x, shape)
