"""The codec ``pco``: the elements of a block as one file of Pcodec, which the extra ``codecs`` brings.

A payload is the number of elements (uint64) and a standalone file of Pcodec. The number stands before it so
that memory is taken only where the payload says that it holds just so many.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError, MissingDependencyError

Array = np.ndarray[Any, Any]

DTYPES = "uint8 to uint64, int8 to int64, float16 to float64, datetime64 and timedelta64"
"""What Pcodec has a form for."""

_COUNT = struct.Struct("<Q")


def installed() -> bool:
    """Whether the package is there."""
    try:
        import pcodec  # noqa: F401
    except ImportError:
        return False
    return True


def _pcodec() -> tuple[Any, Any]:
    try:
        from pcodec import ChunkConfig, standalone  # in 1.0 `pcodec.standalone` is no attribute
    except ImportError as error:
        raise MissingDependencyError(
            "codec 'pco' needs the package pcodec; install it with: pip install 'tensorlake-spark[codecs]'"
        ) from error
    return ChunkConfig, standalone


def number_of(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype of the numbers that Pcodec sees, or None where it has no form for them.

    Examples
    --------
    >>> number_of(np.dtype("M8[s]")), number_of(np.dtype("c8"))
    (dtype('int64'), None)
    """
    if dtype.kind in "mM":
        return np.dtype(np.int64)
    is_number = dtype.kind in "iuf" and issubclass(dtype.type, np.number) and dtype.itemsize <= 8
    return dtype if is_number else None


def check_dtype(dtype: np.dtype[Any], owner: str = "") -> np.dtype[Any]:
    """Return the dtype of the numbers that Pcodec sees.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the elements that are coded.
    owner : str
        What has it, for the message.

    Raises
    ------
    InvalidOptionError
        If Pcodec has no form for the dtype.
    MissingDependencyError
        If the package is not installed.
    """
    number = number_of(dtype)
    if number is None:
        which = f", which {owner} has" if owner else ""
        raise InvalidOptionError(
            f"codec 'pco' has no form for dtype {dtype}{which}; it takes {DTYPES}: choose another codec"
        )
    _pcodec()
    return number


def encode(array: Array) -> bytes:
    """Return the payload of a block.

    Raises
    ------
    InvalidOptionError
        If Pcodec has no form for the dtype.
    MissingDependencyError
        If the package is not installed.
    """
    number = check_dtype(array.dtype)
    settings, standalone = _pcodec()
    config = settings(enable_8_bit=True)
    flat = np.ascontiguousarray(array).reshape(-1).view(number)
    return _COUNT.pack(flat.size) + bytes(standalone.simple_compress(flat, config))


def check(payload: Any, size: int) -> None:
    """Raise CorruptDataError unless a payload says that it holds so many elements."""
    held = len(memoryview(payload).cast("B"))
    count = _COUNT.unpack_from(payload)[0] if held >= _COUNT.size else None
    if count != size:
        raise CorruptDataError(f"a payload holds {count} elements where {size} are needed")


def decode_to(payload: Any, out: Array) -> None:
    """Write a block into a C-contiguous array.

    Raises
    ------
    CorruptDataError
        If the payload does not hold just this block.
    MissingDependencyError
        If the package is not installed.
    """
    check(payload, out.size)
    number = number_of(out.dtype)
    if number is None:
        raise CorruptDataError(f"codec 'pco' has no form for dtype {out.dtype}")
    _, standalone = _pcodec()
    flat = out.reshape(-1).view(number)
    body = bytes(memoryview(payload).cast("B")[_COUNT.size :])
    try:
        progress = standalone.simple_decompress_into(body, flat)
    except BaseException as error:
        # What Rust calls a panic is no Exception to Python.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise CorruptDataError(
                f"a payload is not {out.size} numbers of Pcodec ({error!s:.200})"
            ) from error
        raise
    if not progress.finished or progress.n_processed != out.size:
        raise CorruptDataError(f"a payload does not end after {out.size} numbers of Pcodec")
