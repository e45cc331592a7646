"""Columns of Arrow's extension types, such as its tensors, and of runs, as columns of what is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def plain_column(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column without Arrow's extension type, whose storage would lose the shape of a tensor, or its runs.

    Returns
    -------
    ndarray, list, pyarrow.Array or pyarrow.ChunkedArray
        Tensors are arrays, one a sample along the first axis; a list of them where some are null, or where they come
        in several chunks, which are not copied. Other columns are of the type in which Arrow stores them.

    Examples
    --------
    >>> import numpy as np
    >>> tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((3, 2, 4), "f4"))
    >>> plain_column(tensors).shape
    (3, 2, 4)
    """
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return plain_column(_without_runs(column))
    if not isinstance(kind, pa.BaseExtensionType):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if isinstance(kind, pa.FixedShapeTensorType):
        parts = [_arrays(chunk) for chunk in chunks]
        return parts[0] if len(parts) == 1 else [one for part in parts for one in part]
    stored = [chunk.storage for chunk in chunks]
    if kind.equals(pa.bool8()):
        stored = [chunk.cast(pa.bool_()) for chunk in stored]
    return stored[0] if isinstance(column, pa.Array) else pa.chunked_array(stored)


def axes_of(kind: pa.FixedShapeTensorType) -> list[int]:
    """Return which axis of the stored elements each axis of a tensor is."""
    return list(kind.permutation or range(len(kind.shape)))


def _without_runs(column: Any) -> Any:
    """Return what is in runs of equal values; Arrow's own function does not take those of dictionaries."""
    if isinstance(column, pa.ChunkedArray):
        parts = [_without_runs(chunk) for chunk in column.chunks]
        return pa.chunked_array(parts, None if parts else column.type.value_type)
    values = column.values
    for view, plain in ((pa.string_view(), pa.string()), (pa.binary_view(), pa.binary())):
        values = values.cast(plain) if values.type.equals(view) else values  # Arrow takes none
    places = np.arange(column.offset, column.offset + len(column))
    return values.take(pa.array(np.searchsorted(column.run_ends.to_numpy(), places, "right")))


def _arrays(tensors: Any) -> Any:
    """Return tensors as one array, or as a list of arrays where some are null."""
    kind = tensors.type
    there = tensors.drop_null()
    if pa.types.is_boolean(kind.value_type):  # Arrow makes arrays of numbers only
        bits = there.storage.flatten().to_numpy(zero_copy_only=False)
        order = [0, *(1 + axis for axis in axes_of(kind))]
        stack = bits.reshape(len(there), *kind.shape).transpose(order)
    else:
        stack = there.to_numpy_ndarray()
    if not tensors.null_count:
        return stack
    rest = iter(stack)
    return [next(rest) if valid else None for valid in tensors.is_valid().to_pylist()]
