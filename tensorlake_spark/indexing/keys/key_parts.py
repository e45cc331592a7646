"""The parts of a key, one for each axis: lists become arrays, an Ellipsis slices, negative numbers count from the end.

What is wrong with a part is said here, with its axis and its bound.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError, InvalidSliceError
from tensorlake_spark.indexing.selection import Run

Array = np.ndarray[Any, Any]


def expand(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return a key's parts, lists as arrays, with a slice or an index for every axis.

    A mask stands for as many axes as it has; a bool for none, and becomes an array without axes. An
    Ellipsis stays in its place in front of the slices that it stands for: NumPy lets it keep apart what
    stands on its two sides even where it stands for no axis.
    """
    parts = key if isinstance(key, tuple) else (key,)
    widths = [_width(part) for part in parts]
    named = sum(widths)
    if named > len(shape):
        raise InvalidKeyError(
            f"too many indices: the tensor has {len(shape)} axes (its shape is {shape}), but {named} were "
            "indexed"
        )
    items: list[Any] = []
    axis = 0
    for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
        is_bool = not width and part is not None and part is not Ellipsis
        items.append(np.array(bool(part)) if is_bool else part_of(part, axis))
        axis = len(shape) - sum(widths[place:]) if part is Ellipsis else axis + width
    if sum(item is Ellipsis for item in items) > 1:
        raise InvalidKeyError("an index can only have a single Ellipsis ('...')")
    rest = [slice(None)] * (len(shape) - named)
    for place, item in enumerate(items):
        if item is Ellipsis:
            return [*items[: place + 1], *rest, *items[place + 1 :]]
    return [*items, *rest]


def is_array(item: Any) -> bool:
    """Whether a part of a key is an index array, a mask among them."""
    return not (item is None or item is Ellipsis or isinstance(item, (slice, int)))


def is_mask(item: Any) -> bool:
    """Whether a part of a key is a mask."""
    return is_array(item) and item.dtype == bool


def with_axes(items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the parts that stand for axes, each with the first of its axes; also masks without axes."""
    axis = 0
    for item in items:
        if item is not None and item is not Ellipsis:
            yield axis, item
            axis += item.ndim if is_mask(item) else 1


def check_masks(items: Sequence[Any]) -> None:
    """Raise InvalidKeyError for a mask that does not stand for one axis, a bool among them."""
    for axis, item in with_axes(items):
        if is_mask(item) and item.ndim != 1:
            what = f"a mask of rank {item.ndim}" if item.ndim else str(bool(item))
            raise InvalidKeyError(f"axis {axis}: {what} is not an index here; a mask of rank 1 is")


def part_of(item: Any, axis: int) -> Any:
    """Return one part of a key as None, an Ellipsis, a slice, an int or an index array."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        raise InvalidKeyError(f"axis {axis}: {item} is not an index; a boolean array is")
    try:
        return operator.index(item)
    except (TypeError, ValueError):  # the latter of arrays of other packages
        pass
    if isinstance(item, (str, bytes)):
        raise InvalidKeyError(
            f"axis {axis}: {item!r} is not an index; text keys go through ref.slice({item!r})"
        )
    array = index_array(item, axis)
    # Integers of more than 64 bits are objects to NumPy; `indices_of` says that they are out of bounds.
    given = not isinstance(item, np.ndarray)
    wide = array.dtype == object and given and all(isinstance(i, int) for i in array.flat)
    if not (array.dtype.kind in "biu" or wide) or array.ndim == 0:
        raise InvalidKeyError(
            f"axis {axis}: {reprlib.repr(item)} is not an index; only integers, slices (:), Ellipsis (...), None "
            "and integer or boolean arrays are"
        )
    return array


def index_array(item: Any, axis: int) -> Array:
    """Return an index array; an empty list names no index, though NumPy makes floats of it.

    A sparse mask stays as it is: an array of its shape may be more than memory holds.
    """
    if _is_sparse_mask(item):
        return item  # type: ignore[no-any-return]
    try:
        array = np.asarray(item)
    except ValueError:
        raise InvalidKeyError(
            f"axis {axis}: {reprlib.repr(item)} is not an index array: its parts differ in length"
        ) from None
    except (
        TypeError,
        RuntimeError,
    ) as error:  # of arrays of other packages, such as sparse ones of integers
        raise InvalidKeyError(
            f"axis {axis}: {reprlib.repr(item)} is not an index array: {error}"
        ) from None
    if array.size == 0 and not isinstance(item, np.ndarray):
        return array.astype(np.int64)
    return array


def integer(index: int, axis: int, size: int) -> int:
    """Return the non-negative index that an int stands for on one axis."""
    if not -size <= index < size:
        raise InvalidKeyError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index + size if index < 0 else index


def indices_of(array: Array, axis: int, size: int) -> Array:
    """Return the non-negative int64 indices that an array of integers names on one axis."""
    if array.size:
        for bound in (array.min(), array.max()):
            integer(int(bound), axis, size)
    indices = array.astype(np.int64)
    return np.where(indices < 0, indices + size, indices)


def run_of(item: slice, axis: int, size: int) -> tuple[Run, bool]:
    """Return a slice as an ascending run, and whether the key walks it backwards."""
    try:
        start, stop, step = item.indices(size)
    except ValueError:
        raise InvalidSliceError(f"axis {axis}: {item}: slice step cannot be zero") from None
    except TypeError:
        raise InvalidKeyTypeError(
            f"axis {axis}: {item}: slice bounds are integers or None"
        ) from None
    if step > 0:
        return Run(start, stop, step), False
    count = len(range(start, stop, step))
    return Run(start + (count - 1) * step, start + 1, -step) if count else Run(0, 0), True


def _width(item: Any) -> int:
    """Return for how many axes a part of a key stands."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, (slice, int)):
        return 1
    try:
        if isinstance(item, (list, tuple)) and not any(np.ndim(first) for first in item[:1]):
            return 1  # a list of rank 1, which may be long, is looked at once
        array = item if _is_sparse_mask(item) else np.asarray(item)
    except (ValueError, TypeError, RuntimeError):
        return 1  # `part_of` has the words for it
    return array.ndim if array.dtype == bool else 1


def _is_sparse_mask(item: Any) -> bool:
    """Whether an object is a sparse array of bools: it has a shape, and tells where it is true."""
    is_sparse = hasattr(item, "nonzero") and hasattr(item, "nnz")
    return is_sparse and getattr(item, "dtype", None) == np.dtype(bool)
