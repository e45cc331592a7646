"""Arrays in bytes of a .npy file, and in nested lists of Arrow."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidSampleError


def array_of(data: bytes, where: str) -> np.ndarray:
    """Return the array of the bytes of a .npy file; nothing is unpickled.

    Raises
    ------
    InvalidSampleError
        If it is none, breaks off, or has objects.

    Examples
    --------
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.arange(3, dtype=np.int16))
    >>> array_of(stream.getvalue(), "x")
    array([0, 1, 2], dtype=int16)
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except (ValueError, EOFError, OSError, TypeError, RecursionError, MemoryError) as error:
        raise InvalidSampleError(f"{where}: this is not an array: {error}") from error
    if dtype.hasobject:
        raise InvalidSampleError(f"{where}: an array of objects is a pickle, which is not read")
    count, start = math.prod(shape), stream.tell()
    if len(data) - start != count * dtype.itemsize or min(shape, default=0) < 0:
        raise InvalidSampleError(
            f"{where}: the header says {shape} of {dtype}, and {len(data) - start} bytes follow"
        )
    flat = np.frombuffer(data, dtype, count, start)
    return flat.reshape(shape, order="F" if fortran else "C")


def array_of_lists(items: pa.Array, dtype: str, where: str) -> np.ndarray:
    """Return the items of a list, which may be lists again, as one array.

    Raises
    ------
    InvalidSampleError
        If lists of one level differ in length, or something in them is null.

    Examples
    --------
    >>> array_of_lists(pa.array([[1.0, 2.0]]), "float32", "x").shape
    (1, 2)
    """
    shape = [len(items)]
    while is_list(items.type):
        if items.null_count:
            raise InvalidSampleError(f"{where}: null among the lists of an array")
        if pa.types.is_fixed_size_list(items.type):
            length = items.type.list_size
        else:
            lengths = np.unique(items.value_lengths().to_numpy(zero_copy_only=False))
            if len(lengths) > 1:
                raise InvalidSampleError(
                    f"{where}: lists of {lengths[0]} and of {lengths[1]} values are not an array"
                )
            if not shape[-1]:
                return np.zeros(shape, dtype)  # nothing tells how long lists would be
            length = int(lengths[0])
        shape.append(length)
        items = items.flatten()
    if items.null_count:
        raise InvalidSampleError(f"{where}: null among the values of an array")
    numbers = items.to_numpy(zero_copy_only=False)
    return np.asarray(numbers).astype(dtype, copy=False).reshape(shape)


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
