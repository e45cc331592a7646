"""The array over what a caller gives for a result: an ndarray, or anything with the buffer protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.tensor.sparse import array_of_torch, is_torch

Array = np.ndarray[Any, Any]


def array_over(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array of a shape and a dtype that shares the memory of `out`.

    Parameters
    ----------
    out : ndarray, or object with the buffer protocol, or torch.Tensor
        Of the shape and dtype; or flat and without gaps: as many elements of the dtype, or as many bytes.
    shape, dtype
        Of the result. The dtype is in the machine's byte order.

    Raises
    ------
    InvalidTensorError
        If `out` cannot be written to, is no such object, or does not fit.

    Examples
    --------
    >>> raw = bytearray(4)
    >>> array_over(raw, (2,), np.dtype("<u2"))[:] = 1, 2
    >>> raw
    bytearray(b'\\x01\\x00\\x02\\x00')
    """
    given = _array_of(out, shape, dtype)
    if not given.flags.writeable:
        raise InvalidTensorError(
            f"out, of type {type(out).__name__}, is read-only; {_wanted(shape, dtype)} that can be written to"
        )
    if given.shape == shape and given.dtype == dtype:
        return given
    is_flat = not isinstance(out, np.ndarray) and given.ndim == 1 and given.flags.c_contiguous
    is_bytes = given.dtype.itemsize == 1 and given.dtype.kind in "uiS"
    if is_flat and (given.dtype == dtype or is_bytes) and given.nbytes == _nbytes(shape, dtype):
        return given.view(dtype).reshape(shape)
    raise InvalidTensorError(
        f"out has shape {given.shape} and dtype {given.dtype}; {_wanted(shape, dtype)}"
    )


def _array_of(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an ndarray over the memory of `out`, in the shape and dtype that it has by itself."""
    if isinstance(out, np.ndarray):
        return out
    try:
        return array_of_torch(out, force=False) if is_torch(out) else np.asarray(memoryview(out))
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise InvalidTensorError(
            f"out is of type {type(out).__name__}, whose memory NumPy cannot use ({error}); "
            f"{_wanted(shape, dtype)}"
        ) from error


def _nbytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape, dtype=object)) * dtype.itemsize


def _wanted(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    return (
        f"the result wants an array of shape {shape} and dtype {dtype}, or a flat buffer of "
        f"{_nbytes(shape, dtype)} bytes"
    )
