"""Other shapes and orders of a sparse tensor's elements, as NumPy defines them of the dense array.

What is returned is canonical: explicit zeros are dropped.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.errors import (
    AxisError,
    InvalidKeyTypeError,
    InvalidOptionError,
    InvalidTensorError,
)
from tensorlake_spark.indexing.coords import check_shape, sort_places
from tensorlake_spark.ops import broadcasting
from tensorlake_spark.ops.csr_matrix import cells_of, split_matrix
from tensorlake_spark.ops.elements import Elements, elements_at, known_canonical, without_zeros
from tensorlake_spark.ops.numpy_arguments import (
    axes_of,
    axes_to_reduce,
    axis_of,
    integer_of,
    is_axis_of_scalar,
)

Array = np.ndarray[Any, Any]


# ------------------------------------------------------------------------------ axes


def reshape(x: Elements, shape: Any, order: str = "C", *, copy: Any = None) -> Elements:
    """Return the tensor in another shape, as `numpy.reshape`.

    Parameters
    ----------
    x : Elements
        The tensor.
    shape : int or sequence of int
        One length may be -1: what is left for it.
    order : {"C", "A", "F"}
        In which order elements are counted: the last axis fastest, or with "F" the first.
    copy : None or bool
        The values are never copied where they need no new order; True and False change nothing.

    Raises
    ------
    InvalidTensorError
        If the shape has another number of elements. It is a ValueError.
    InvalidOptionError
        For another order.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> reshape(x, (2, -1)).coords.tolist()
    [[0, 1], [1, 1]]
    """
    if order not in ("C", "A", "F"):
        raise InvalidOptionError(f"order {order!r}; it is 'C', 'A' or 'F'")
    lengths = _lengths(shape, x)
    if order == "F":
        return transpose(reshape(transpose(x), lengths[::-1]))
    x = without_zeros(x)
    return x if lengths == x.shape else Elements._trusted(None, x.values, lengths, x.places)


def ravel_of(x: Elements, order: str = "C") -> Elements:
    """Return the tensor with one axis, as `numpy.ravel`.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> ravel_of(x).coords.tolist()
    [[1, 4]]
    """
    return reshape(x, -1 if x.size else 0, order)


def transpose(x: Elements, axes: Any = None) -> Elements:
    """Return the tensor with its axes in another order, as `numpy.transpose`; by default the reverse one.

    Raises
    ------
    AxisError
        If `axes` are not all axes, each once. It is a ValueError.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5, 7]), (3, 2))
    >>> transpose(x).coords.tolist(), transpose(x).values.tolist()
    ([[0, 1], [2, 0]], [7, 5])
    """
    axes = tuple(range(x.ndim))[::-1] if axes is None else axes_of(axes, x.ndim)
    if len(axes) != x.ndim:
        raise AxisError(f"axes {axes} do not match a tensor of {x.ndim} axes; name each once")
    if axes == tuple(range(x.ndim)):
        return without_zeros(x)
    shape = tuple(x.shape[k] for k in axes)
    lead = axes.index(0)
    if axes == (
        *range(x.ndim - lead, x.ndim),
        *range(x.ndim - lead),
    ):  # a matrix, if axes are grouped
        x = without_zeros(x)
        matrix = split_matrix(x, x.ndim - lead)
        if matrix is not None:  # which SciPy turns by counting
            cells, values = cells_of(matrix.T.tocsr())
            if x.ndim == 2:
                return known_canonical(cells, values, shape)
            places = cells[0] * matrix.shape[0] + cells[1]
            return known_canonical(None, values, shape, places)
    return arranged([x.coords[k] for k in axes], x.values, shape)


def matrix_transpose(x: Elements) -> Elements:
    """Return the tensor with its last two axes exchanged, as `numpy.matrix_transpose`.

    Examples
    --------
    >>> matrix_transpose(Elements._trusted(np.array([[2], [1]]), np.array([5]), (3, 2))).shape
    (2, 3)
    """
    if x.ndim < 2:
        raise InvalidTensorError(f"a matrix has two axes, this tensor has {x.ndim}")
    return swapaxes(x, -1, -2)


def moveaxis(x: Elements, source: Any, destination: Any) -> Elements:
    """Return the tensor with axes moved to other places, as `numpy.moveaxis`.

    Raises
    ------
    AxisError
        If there is no such axis, or one is given twice. InvalidTensorError for different numbers of them.

    Examples
    --------
    >>> moveaxis(Elements._trusted(np.array([[2], [1], [0]]), np.array([5]), (3, 2, 1)), 0, -1).shape
    (2, 1, 3)
    """
    sources, goals = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(sources) != len(goals):
        raise InvalidTensorError(
            f"{len(sources)} axes to move to {len(goals)} places; one for each"
        )
    order = [k for k in range(x.ndim) if k not in sources]
    for goal, axis in sorted(zip(goals, sources, strict=True)):
        order.insert(goal, axis)
    return transpose(x, order)


def swapaxes(x: Elements, axis1: int, axis2: int) -> Elements:
    """Return the tensor with two axes exchanged, as `numpy.swapaxes`.

    Examples
    --------
    >>> swapaxes(Elements._trusted(np.array([[2], [1], [0]]), np.array([5]), (3, 2, 1)), 0, -1).shape
    (1, 2, 3)
    """
    order = list(range(x.ndim))
    one, other = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[other] = other, one
    return transpose(x, order)


def squeeze(x: Elements, axis: Any = None) -> Elements:
    """Return the tensor without axes of length 1, all or some, as `numpy.squeeze`.

    Raises
    ------
    InvalidTensorError
        If an axis has another length. AxisError if there is none such, or it is given twice.

    Examples
    --------
    >>> squeeze(Elements._trusted(np.array([[2], [0]]), np.array([5]), (3, 1))).shape
    (3,)
    """
    if axis is None or is_axis_of_scalar(axis, x.ndim):
        gone = tuple(k for k, n in enumerate(x.shape) if n == 1)
    else:
        gone = axes_to_reduce(axis, x.ndim)
    for k in gone:
        if x.shape[k] != 1:
            raise InvalidTensorError(f"axis {k} has length {x.shape[k]}; only a length of 1 can go")
    return reshape(x, tuple(n for k, n in enumerate(x.shape) if k not in gone))


def expand_dims(x: Elements, axis: Any) -> Elements:
    """Return the tensor with new axes of length 1, as `numpy.expand_dims`.

    Parameters
    ----------
    x : Elements
        The tensor.
    axis : int or tuple of int
        Where they are in the result.

    Raises
    ------
    AxisError
        If the result has no such axis, or one is given twice.

    Examples
    --------
    >>> expand_dims(Elements._trusted(np.array([[2]]), np.array([5]), (3,)), (0, -1)).shape
    (1, 3, 1)
    """
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.ndim + len(given)
    fresh, old = axes_of(given, ndim), iter(x.shape)
    return reshape(x, tuple(1 if k in fresh else next(old) for k in range(ndim)))


def atleast(ndim: int, *tensors: Any) -> Any:
    """Return tensors with 1, 2 or 3 axes at least, as `numpy.atleast_1d` and its like.

    Examples
    --------
    >>> atleast(3, Elements._trusted(np.array([[2]]), np.array([5]), (3,))).shape
    (1, 3, 1)
    """
    out: list[Any] = []
    for x in tensors:
        missing = ndim - np.ndim(x) if not isinstance(x, Elements) else ndim - x.ndim
        if not isinstance(x, Elements):
            out.append((np.atleast_1d, np.atleast_2d, np.atleast_3d)[ndim - 1](x))
        elif missing <= 0:
            out.append(without_zeros(x))
        else:
            last = int(ndim == 3 and x.ndim > 0)  # where NumPy has the last of three
            out.append(reshape(x, (1,) * (missing - last) + x.shape + (1,) * last))
    return out[0] if len(out) == 1 else tuple(out)


# ------------------------------------------------------------------------------ order


def flip(x: Elements, axis: Any = None) -> Elements:
    """Return the tensor with the order along axes reversed, by default along all, as `numpy.flip`.

    Raises
    ------
    AxisError
        If there is no such axis, or one is given twice.

    Examples
    --------
    >>> flip(Elements._trusted(np.array([[0, 1]]), np.array([5, 7]), (3,))).coords.tolist()
    [[1, 2]]
    """
    axes = axes_of(axis, x.ndim)
    rows = [n - 1 - row if k in axes else row for k, (n, row) in enumerate(_axes(x))]
    if len(axes) == x.ndim:  # in the reverse order, then
        return arranged([row[::-1] for row in rows], x.values[::-1], x.shape)
    return arranged(rows, x.values, x.shape)


def roll(x: Elements, shift: Any, axis: Any = None) -> Elements:
    """Return the tensor with elements moved along axes, and those at the end to the front, as `numpy.roll`.

    Parameters
    ----------
    x : Elements
        The tensor.
    shift : int or tuple of int
        How far, for each axis.
    axis : int or tuple of int, optional
        Along which axes; one may be given several times. None rolls the flat tensor.

    Raises
    ------
    AxisError
        If there is no such axis. InvalidTensorError if shifts and axes differ in number.

    Examples
    --------
    >>> roll(Elements._trusted(np.array([[0, 2]]), np.array([5, 7]), (3,)), 1).coords.tolist()
    [[0, 1]]
    """
    if axis is None:
        return reshape(roll(ravel_of(x), shift, 0), x.shape)
    shifts, axes = _several(shift), tuple(axis_of(k, x.ndim) for k in _several(axis))
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise InvalidTensorError(f"{len(shifts)} shifts along {len(axes)} axes; one for each")
    by = [0] * x.ndim
    for distance, along in np.broadcast(shifts, axes):
        by[along] += integer_of(distance, "shift")
    rows = [
        (row + d % max(n, 1)) % max(n, 1) if d else row
        for d, (n, row) in zip(by, _axes(x), strict=True)
    ]
    return arranged(rows, x.values, x.shape)


def broadcast_to(x: Elements, shape: Any, subok: bool = False) -> Elements:
    """Return the tensor repeated along axes of length 1 and along new ones in front, as `numpy.broadcast_to`.

    What is stored is stored as often as it is repeated.

    Raises
    ------
    InvalidTensorError
        If the tensor does not broadcast to the shape. It is a ValueError.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[1]]), np.array([5]), (2,))
    >>> broadcast_to(x, (3, 2)).coords.tolist()
    [[0, 1, 2], [1, 1, 1]]
    """
    lengths = check_shape((shape,) if hasattr(shape, "__index__") else shape)
    return broadcasting.broadcast_to(without_zeros(x), lengths)


def arranged(rows: Sequence[Array], values: Array, shape: tuple[int, ...]) -> Elements:
    """Return the canonical elements of coordinates that are there once each, in any order, a row for each axis.

    Examples
    --------
    >>> arranged([np.array([2, 0]), np.array([0, 1])], np.array([5, 7]), (3, 2)).values.tolist()
    [7, 5]
    """
    shape = check_shape(shape)
    places = np.zeros(len(values), np.int64)
    for row, size in zip(rows, shape, strict=True):
        places *= size
        places += row
    if not bool((places[1:] > places[:-1]).all()):
        places, by = sort_places(places)
        values = values[by]
    return elements_at(places, values, shape)


def _lengths(shape: Any, x: Elements) -> tuple[int, ...]:
    """Return a shape of as many elements as the tensor has, where one length may be left to find."""
    try:
        lengths = [operator.index(n) for n in ((shape,) if hasattr(shape, "__index__") else shape)]
    except TypeError:
        raise InvalidKeyTypeError(f"shape {shape!r} is not a sequence of integers") from None
    if lengths.count(-1) > 1:
        raise InvalidTensorError(f"shape {tuple(lengths)}: only one length can be -1")
    if -1 in lengths:
        others = -math.prod(lengths)
        if others > 0 and x.size % others == 0:
            lengths[lengths.index(-1)] = x.size // others
    if any(n < 0 for n in lengths) or math.prod(lengths) != x.size:
        raise InvalidTensorError(
            f"a tensor of shape {x.shape} and size {x.size} has no shape {shape}"
        )
    return tuple(lengths)


def _axes(x: Elements) -> list[tuple[int, Array]]:
    return list(zip(x.shape, x.coords, strict=True))


def _several(numbers: Any) -> tuple[Any, ...]:
    return tuple(numbers) if isinstance(numbers, (tuple, list, np.ndarray)) else (numbers,)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.reshape: reshape,
    np.ravel: ravel_of,
    np.transpose: transpose,
    np.matrix_transpose: matrix_transpose,
    np.moveaxis: moveaxis,
    np.swapaxes: swapaxes,
    np.squeeze: squeeze,
    np.expand_dims: expand_dims,
    np.atleast_1d: partial(atleast, 1),
    np.atleast_2d: partial(atleast, 2),
    np.atleast_3d: partial(atleast, 3),
    np.flip: flip,
    np.flipud: partial(flip, axis=0),
    np.fliplr: partial(flip, axis=1),
    np.roll: roll,
    np.broadcast_to: broadcast_to,
}
"""Functions of NumPy, and what computes them."""
