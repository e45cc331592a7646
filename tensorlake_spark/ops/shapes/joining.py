"""Several tensors made one: concatenated, stacked, or chosen from element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import DenseResultError, InvalidTensorError
from tensorlake_spark.indexing.coords import check_shape, sort_places, unravel
from tensorlake_spark.ops.broadcasting import broadcast_shapes
from tensorlake_spark.ops.elements import Elements, elements_at, known_canonical, without_zeros
from tensorlake_spark.ops.lookup import look_up
from tensorlake_spark.ops.numpy_arguments import axis_of, operand_array, refuse_out, refused_dtypes
from tensorlake_spark.ops.reducing.index_reductions import nonzero
from tensorlake_spark.ops.shapes.shaping import atleast, broadcast_to, expand_dims, ravel_of

Array = np.ndarray[Any, Any]


def elements_of(x: Any) -> Elements:
    """Return the canonical elements of a tensor, an array or a scalar.

    Raises
    ------
    UnsupportedDtypeError
        For an array of objects: NumPy makes one of a sparse array of another package.

    Examples
    --------
    >>> elements_of([0, 7]).coords.tolist()
    [[1]]
    """
    if isinstance(x, Elements):
        return without_zeros(x)
    array = operand_array(x)
    places = np.flatnonzero(array)
    return elements_at(places, array.reshape(-1)[places], array.shape)


def union(*tensors: Elements) -> Array:
    """Return the places that one tensor or another of the same shape stores, ascending.

    Examples
    --------
    >>> union(elements_of([0, 7, 5]), elements_of([1, 0, 1])).tolist()
    [0, 1, 2]
    """
    if not tensors:
        return np.zeros(0, np.int64)
    first, *others = (x.places for x in tensors)
    return np.unique(np.concatenate((first, *others))) if others else first


def concatenate(
    arrays: Sequence[Any],
    axis: int | None = 0,
    out: None = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Elements:
    """Return tensors one after the other along an axis, as `numpy.concatenate`; arrays among them become sparse.

    Parameters
    ----------
    arrays : sequence of Elements or array_like
        They have the same lengths along all other axes.
    axis : int, optional
        Along which axis; None flattens them first.
    out : None
        There is none.
    dtype : dtype, optional
        Of the result, by default what NumPy makes of theirs.
    casting : str
        What conversion is allowed, as in NumPy.

    Raises
    ------
    InvalidTensorError
        If there are none, if they have no axis, or if another axis differs. It is a ValueError.
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> concatenate([elements_of([0, 7]), [5]]).coords.tolist()
    [[1, 2]]
    """
    refuse_out(out)
    tensors = [without_zeros(elements_of(x)) for x in arrays]
    if not tensors:
        raise InvalidTensorError("need at least one tensor to concatenate")
    if axis is None:
        tensors, axis = [ravel_of(x) for x in tensors], 0
    first = tensors[0]
    if not first.ndim:
        raise InvalidTensorError("tensors without axes cannot be concatenated; stack makes an axis")
    axis = axis_of(axis, first.ndim)
    for x in tensors[1:]:
        if x.ndim != first.ndim or any(
            n != m for k, (n, m) in enumerate(zip(x.shape, first.shape, strict=True)) if k != axis
        ):
            raise InvalidTensorError(
                f"shapes {first.shape} and {x.shape} do not fit: all axes but axis {axis} are alike"
            )
    empty = [np.empty(0, x.dtype) for x in tensors]
    with refused_dtypes(np.concatenate, tensors, dtype):
        dtype = np.concatenate(empty, dtype=dtype, casting=casting).dtype
    length = sum(x.shape[axis] for x in tensors)
    shape = check_shape((*first.shape[:axis], length, *first.shape[axis + 1 :]))
    values = np.concatenate([x.values for x in tensors], dtype=dtype, casting="unsafe")
    if not axis and all(x._coords is not None for x in tensors):
        coords = _coords_below(tensors)
        if all(x.dtype == dtype for x in tensors):  # else a value may have become zero
            return known_canonical(coords, values, shape)
        return without_zeros(Elements._trusted(coords, values, shape))
    inner = math.prod(first.shape[axis + 1 :])
    places, before = [], 0
    for x in tensors:
        block = max(1, x.shape[axis] * inner)
        # Each block of a tensor moves by the blocks of the others that come before it.
        outer = x.places // block if axis else 0
        places.append(x.places + (outer * (length * inner - block) + before))
        before += x.shape[axis] * inner
    if not axis:
        return elements_at(np.concatenate(places), values, shape)
    merged, by = sort_places(np.concatenate(places))
    return elements_at(merged, values[by], shape)


def _coords_below(tensors: Sequence[Elements]) -> Array:
    """Return the coordinates of tensors one after the other along the first axis, each of them written once."""
    out = np.empty((tensors[0].ndim, sum(x.nnz for x in tensors)), np.int64)
    first = before = 0
    for x in tensors:
        here = out[:, first : first + x.nnz]
        np.add(x.coords[0], before, out=here[0])
        here[1:] = x.coords[1:]
        first += x.nnz
        before += x.shape[0]
    return out


def stack(
    arrays: Sequence[Any],
    axis: int = 0,
    out: None = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Elements:
    """Return tensors of one shape along a new axis, as `numpy.stack`. Else it is `concatenate`.

    Examples
    --------
    >>> stack([elements_of([0, 7]), elements_of([5, 0])]).coords.tolist()
    [[0, 1], [1, 0]]
    """
    tensors = [elements_of(x) for x in arrays]
    if len({x.shape for x in tensors}) > 1:
        raise InvalidTensorError(
            f"tensors to stack have one shape, not {[x.shape for x in tensors]}"
        )
    return concatenate(
        [expand_dims(x, axis) for x in tensors], axis, out, dtype=dtype, casting=casting
    )


def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Elements:
    """Return tensors below each other, as `numpy.vstack`.

    Examples
    --------
    >>> vstack([elements_of([0, 7]), elements_of([5, 0])]).shape
    (2, 2)
    """
    rows = [atleast(2, elements_of(x)) for x in tup]
    return concatenate(rows, 0, dtype=dtype, casting=casting)


def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: Any = "same_kind") -> Elements:
    """Return tensors beside each other, as `numpy.hstack`.

    Examples
    --------
    >>> hstack([elements_of([0, 7]), elements_of([5, 0])]).shape
    (4,)
    """
    columns = [atleast(1, elements_of(x)) for x in tup]
    axis = 0 if columns and columns[0].ndim == 1 else 1
    return concatenate(columns, axis, dtype=dtype, casting=casting)


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return elements of `x` where a condition holds and of `y` elsewhere, as `numpy.where`.

    With a condition alone it is `nonzero`. What it returns depends on the operands: an array if an operand that
    is an array fills what is not stored, else canonical elements.

    Parameters
    ----------
    condition, x, y : Elements, array_like or scalar
        They broadcast.

    Raises
    ------
    DenseResultError
        If a scalar other than zero would fill what is not stored.
    InvalidTensorError
        If only one of `x` and `y` is given, or if shapes do not broadcast.

    Examples
    --------
    >>> mask = elements_of([False, True, True])
    >>> where(mask, 7, elements_of([5, 0, 0])).values.tolist()
    [5, 7, 7]
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise InvalidTensorError("where takes a condition alone, or x and y too")
    operands = [
        o if isinstance(o, Elements) or np.isscalar(o) else operand_array(o)
        for o in (condition, x, y)
    ]
    shape = check_shape(broadcast_shapes(*map(np.shape, operands)))
    condition, x, y = operands
    if isinstance(condition, Elements):
        # Where the condition is not stored, y is what fills the result.
        sources, fills = [condition, *([y] if isinstance(y, Elements) else [])], [y]
    else:
        sources, fills = [o for o in (x, y) if isinstance(o, Elements)], [x, y]
    with refused_dtypes(np.where, [x, y]):
        dtype = np.result_type(
            *(np.empty(0, o.dtype) if isinstance(o, Elements) else o for o in (x, y))
        )
    for fill in fills:
        if isinstance(fill, np.ndarray) and fill.ndim:
            return np.where(*(o.todense() if isinstance(o, Elements) else o for o in operands))
        if not isinstance(fill, Elements) and np.any(fill):
            raise DenseResultError(
                f"where with {fill!r} for what is not stored makes zeros something else; np.where of dense "
                f"arrays takes {math.prod(shape) * dtype.itemsize} bytes"
            )
    places = union(*(broadcast_to(o, shape) for o in sources))
    coords = unravel(places, shape)
    chosen = np.where(*(look_up(o, coords) for o in operands)).astype(dtype, copy=False)
    return elements_at(places, np.broadcast_to(chosen, places.shape), shape)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.concatenate: concatenate,
    np.stack: stack,
    np.vstack: vstack,
    np.hstack: hstack,
    np.where: where,
}
"""Functions of NumPy, and what computes them."""
