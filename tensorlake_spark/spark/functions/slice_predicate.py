"""A key as a condition on the rows of a plain Delta table, and as a selection of a tensor whose shape is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError, InvalidSliceError
from tensorlake_spark.indexing import Selection, parse_key, predicate, select_simple
from tensorlake_spark.tensor.spec import check_id

OPEN = 2**63 - 1
"""Stands for the length of an axis that is not known: no tensor is longer."""


def parts_of(key: Any, axes: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Return a key, or its text form, as the parts that stand between its commas.

    Raises
    ------
    InvalidSliceError
        If the text cannot be read, or names axes that `axes` does not.

    Examples
    --------
    >>> parts_of("3:5, 7")
    (slice(3, 5, None), 7)
    """
    if not isinstance(key, str):
        return key if isinstance(key, tuple) else (key,)
    if "=" in key and axes is None:
        raise InvalidSliceError(
            f"slice {key!r} names axes, and nothing here knows their names; give axes=('y', 'x', ...), "
            "or slice by position"
        )
    return parse_key(key, axes)


def select_parts(
    parts: Sequence[Any], shape: Sequence[int] | None, ndim: int | None = None
) -> Selection:
    """Return the selection of a key, also where the tensor's shape is not known.

    Parameters
    ----------
    parts : sequence
        What `parts_of` returns.
    shape : sequence of int, or None
        The tensor's. Without it axes have no end, and indices out of bounds find nothing.
    ndim : int, optional
        The rank, where it is known; by default there are as many axes as the key names.

    Raises
    ------
    InvalidKeyError
        If the key does not fit, or needs a shape that is not given: negative numbers, negative steps,
        masks, and an Ellipsis that is not the last part count from the end of an axis.

    Examples
    --------
    >>> select_parts((slice(3, None), 5), None).ranges()[1]
    (1, 5, 6)
    """
    if shape is not None:
        if ndim not in (None, len(shape)):
            raise InvalidKeyError(
                f"shape {tuple(shape)} has {len(shape)} axes, and the tensor has {ndim}"
            )
        return select_simple(tuple(parts), shape)
    for place, part in enumerate(parts):
        if _needs_shape(part) or (part is Ellipsis and place < len(parts) - 1):
            raise InvalidKeyError(
                f"part {place} of the key, {part!r}, counts from the end of an axis, and the tensor's shape "
                "is not known here; give shape=..., as lake[id].shape or the view 'catalog' have it"
            )
    named = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if ndim is not None and named > ndim:
        raise InvalidKeyError(f"too many indices: {named} for a tensor of {ndim} axes")
    return select_simple(tuple(parts), (OPEN,) * (named if ndim is None else ndim))


def _needs_shape(part: Any) -> bool:
    if part is None or part is Ellipsis:
        return False
    numbers = (part.start, part.stop, part.step) if isinstance(part, slice) else None
    try:
        array = np.asarray(part if numbers is None else [n for n in numbers if n is not None])
        return array.dtype == bool or bool((array < 0).any())
    except (TypeError, ValueError):
        return False  # no numbers, or no array; select_simple() has the words for it


def rows_sql(
    key: Any,
    tensor_id: str | None = None,
    shape: Sequence[int] | None = None,
    axes: Sequence[str] | None = None,
) -> str:
    """Return the condition on ``id``, ``nnz``, ``lo`` and ``hi`` under which a row may hold a part of a slice.

    It keeps too many rows, never too few: a step counts as the range from its first to its last index,
    and axes past the eighth have no columns.

    Parameters
    ----------
    key, shape, axes
        As `tensorlake_spark.spark.functions.slice_filter` takes them.
    tensor_id : str, optional
        The tensor; without it rows of all tensors pass.

    Raises
    ------
    InvalidKeyError, InvalidSliceError, InvalidTensorError
        As `tensorlake_spark.spark.functions.slice_filter`.

    Examples
    --------
    >>> rows_sql("30:40, :, 5:", "photos")
    "id = 'photos' AND nnz > 0 AND lo.d0 < 40 AND hi.d0 > 30 AND hi.d2 > 5"
    """
    tensor = None if tensor_id is None else check_id(tensor_id)
    return predicate.rows_sql(tensor, select_parts(parts_of(key, axes), shape).ranges())
