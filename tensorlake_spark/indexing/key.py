"""From what the user typed to a `Selection`. The only place that knows negatives, Ellipsis and masks."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError, InvalidSliceError
from tensorlake_spark.indexing.point_selection import PointSelection
from tensorlake_spark.indexing.selection import Points, Run, Selection

Array = np.ndarray[Any, Any]


def select(key: Any, shape: Sequence[int]) -> Selection:
    """Return the normal form of a NumPy key: basic indexing, and at most one index array.

    Parameters
    ----------
    key : object
        Integers, slices, Ellipsis, ``None``, in a tuple or alone. One integer array (of any rank) or one
        boolean array of rank 1 may take the place of one axis.
    shape : sequence of int
        The tensor's.

    Raises
    ------
    InvalidKeyError
        Where NumPy raises IndexError; also for two index arrays, which `select_orthogonal` and
        `select_points` tell apart, and for a bool in the place of an axis.
    InvalidSliceError
        For a step of zero, where NumPy raises ValueError.

    Examples
    --------
    >>> select((-1, slice(None, None, -2)), (3, 5)).axes
    (Run(start=2, stop=3, step=1), Run(start=0, stop=5, step=2))
    """
    shape = tuple(shape)
    items = _expand(key, shape)
    arrays = [i for i, item in enumerate(items) if isinstance(item, np.ndarray)]
    if len(arrays) > 1:
        raise InvalidKeyError(
            f"{len(arrays)} index arrays in one key; ref.oindex[...] takes one for every axis, and "
            "ref.vindex[...] takes them as the coordinates of single elements"
        )
    axes: list[Run | Points] = []
    flips, drops = [], []
    kept = 0  # axes of the result so far, apart from those of the index array
    places: list[int] = []  # where in the key integers and the array stand
    first_kept = 0
    points_ndim = 1
    points_shape: tuple[int, ...] | None = None
    news: list[int] = []
    for place, item in enumerate(items):
        if item is None:
            news.append(kept)
            kept += 1
            continue
        if item is Ellipsis:
            continue
        axis, size = len(axes), shape[len(axes)]
        if isinstance(item, slice):
            run, flipped = _run(item, axis, size)
            axes.append(run)
            if flipped:
                flips.append(axis)
            kept += 1
            continue
        if not places:
            first_kept = kept
        places.append(place)
        if isinstance(item, np.ndarray):
            indices = _indices(item, axis, size)
            points_ndim = indices.ndim
            if indices.ndim != 1:
                points_shape = indices.shape
            axes.append(Points(indices.reshape(-1)))
        else:
            index = _integer(item, axis, size)
            axes.append(Run(index, index + 1))
            drops.append(axis)
    if not arrays:
        scalar = len(drops) == len(axes) and not news and Ellipsis not in _plain(items)
        return Selection(
            shape, tuple(axes), tuple(flips), tuple(drops), tuple(news), is_scalar=scalar
        )
    # NumPy: integers beside an index array count as index arrays too. Where all of them stand together
    # their axes take that place in the result, else they come first.
    together = places == list(range(places[0], places[-1] + 1))
    block = first_kept if together else 0
    array_axis = next(k for k, axis_pick in enumerate(axes) if isinstance(axis_pick, Points))
    source = array_axis - sum(1 for d in drops if d < array_axis)
    target = block - sum(1 for n in news if n < block)
    newaxes = [n if n < block else n + points_ndim for n in news]
    moved = (source, target) if source != target or points_shape is not None else None
    return Selection(
        shape, tuple(axes), tuple(flips), tuple(drops), tuple(newaxes), moved, points_shape
    )


def extend(key: Any, selection: Selection, shape: Sequence[int]) -> Selection:
    """Return what a key picks where the tensor is longer: slices without an end go on, all else stays.

    Negative numbers, and where a slice that walks backwards begins, go by the shape of the selection.

    Parameters
    ----------
    key : object
        As `select` takes it.
    selection : Selection
        What `select` made of it.
    shape : sequence of int
        On no axis shorter than the selection's.

    Examples
    --------
    >>> key = (slice(-1, None), slice(1, None, 2), slice(0, 7), -1)
    >>> extend(key, select(key, (3, 3, 3, 3)), (9, 9, 9, 9)).axes[:2]
    (Run(start=2, stop=9, step=1), Run(start=1, stop=9, step=2))
    >>> extend(key, select(key, (3, 3, 3, 3)), (9, 9, 9, 9)).axes[2:]
    (Run(start=0, stop=7, step=1), Run(start=2, stop=3, step=1))
    """
    items = (i for i in _expand(key, selection.shape) if i is not None and i is not Ellipsis)
    axes = (
        _extended(item, size, longer) if isinstance(item, slice) else pick
        for item, pick, size, longer in zip(
            items, selection.axes, selection.shape, shape, strict=True
        )
    )
    return Selection(tuple(shape), tuple(axes))


def select_orthogonal(key: Any, shape: Sequence[int]) -> Selection:
    """Return the normal form of an orthogonal key, as Zarr's ``oindex``: every axis on its own.

    Parameters
    ----------
    key : object
        For each axis an integer, a slice, or an integer or boolean array of rank 1; Ellipsis.
    shape : sequence of int
        The tensor's.

    Raises
    ------
    InvalidKeyError, InvalidSliceError
        As `select`; also for ``None`` and for index arrays of another rank than 1.

    Examples
    --------
    >>> select_orthogonal(([0, 2], [1, 1, 0]), (3, 2)).storage_shape
    (2, 3)
    """
    shape = tuple(shape)
    axes: list[Run | Points] = []
    flips, drops = [], []
    for item in _expand(key, shape):
        if item is Ellipsis:
            continue
        if item is None:
            raise InvalidKeyError("oindex takes no newaxis; index the result with it")
        axis, size = len(axes), shape[len(axes)]
        if isinstance(item, slice):
            run, flipped = _run(item, axis, size)
            axes.append(run)
            if flipped:
                flips.append(axis)
        elif isinstance(item, np.ndarray):
            indices = _indices(item, axis, size)
            if indices.ndim != 1:
                raise InvalidKeyError(
                    f"axis {axis}: oindex takes index arrays of rank 1, this has rank {indices.ndim}"
                )
            axes.append(Points(indices))
        else:
            index = _integer(item, axis, size)
            axes.append(Run(index, index + 1))
            drops.append(axis)
    return Selection(
        shape, tuple(axes), tuple(flips), tuple(drops), is_scalar=len(drops) == len(axes)
    )


def select_points(key: Any, shape: Sequence[int]) -> PointSelection:
    """Return the normal form of a coordinate key, as Zarr's ``vindex``: single elements.

    Parameters
    ----------
    key : object
        An integer or an integer array for every axis, which broadcast; or one boolean array of the
        tensor's shape.
    shape : sequence of int
        The tensor's.

    Raises
    ------
    InvalidKeyError
        If an axis has no index, an index is out of bounds, the arrays do not broadcast, or the mask has
        another shape.

    Examples
    --------
    >>> select_points(([0, 2], 1), (3, 2)).coords.tolist()
    [[0, 2], [1, 1]]
    """
    shape = tuple(shape)
    items = key if isinstance(key, tuple) else (key,)
    if len(items) == 1 and not isinstance(items[0], (slice, type(None), type(Ellipsis))):
        mask = _array(items[0], 0)
        if mask.dtype == bool and mask.shape == shape:
            found = np.stack(np.nonzero(mask)) if shape else np.zeros((0, int(mask)), np.int64)
            return PointSelection(shape, found.astype(np.int64), (found.shape[1],))
        if mask.dtype == bool:
            raise InvalidKeyError(f"a mask of shape {mask.shape} for a tensor of shape {shape}")
    if len(items) != len(shape):
        raise InvalidKeyError(
            f"vindex needs an integer or an integer array for each of the {len(shape)} axes, or a mask of "
            f"shape {shape}; this key has {len(items)} parts"
        )
    arrays = []
    for axis, (item, size) in enumerate(zip(items, shape, strict=True)):
        part = _part(item, axis)
        if isinstance(part, int):
            arrays.append(np.array(_integer(part, axis, size)))
        elif not isinstance(part, np.ndarray):
            raise InvalidKeyError(f"axis {axis}: vindex takes integers and arrays only; see oindex")
        elif part.dtype == bool:
            raise InvalidKeyError(
                f"axis {axis}: vindex takes one mask of shape {shape}, not one an axis"
            )
        else:
            arrays.append(_indices(part, axis, size))
    try:
        grids = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InvalidKeyError(
            f"index arrays of shapes {shapes} do not broadcast together"
        ) from None
    if not shape:
        return PointSelection(shape, np.zeros((0, 1), np.int64), ())
    coords = np.array([g.reshape(-1) for g in grids], np.int64)
    return PointSelection(shape, coords, grids[0].shape)


def _plain(items: list[Any]) -> list[Any]:
    """The items that `in` can be asked about: NumPy arrays compare elementwise."""
    return [item for item in items if not isinstance(item, np.ndarray)]


def _expand(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return a key's parts, lists as arrays, with a slice or an index for every axis.

    An Ellipsis stays in its place in front of the slices that it stands for: NumPy lets it keep apart
    what stands on its two sides even where it stands for no axis.
    """
    parts = key if isinstance(key, tuple) else (key,)
    named = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if named > len(shape):
        raise InvalidKeyError(
            f"too many indices: the tensor has {len(shape)} axes (its shape is {shape}), but {named} were "
            "indexed"
        )
    items: list[Any] = []
    axis = 0
    for part in parts:
        items.append(_part(part, axis))
        if part is Ellipsis:
            axis = len(shape) - sum(1 for rest in parts[len(items) :] if rest is not None)
        elif part is not None:
            axis += 1
    if _plain(items).count(Ellipsis) > 1:
        raise InvalidKeyError("an index can only have a single Ellipsis ('...')")
    rest = [slice(None)] * (len(shape) - named)
    for place, item in enumerate(items):
        if item is Ellipsis:
            return [*items[: place + 1], *rest, *items[place + 1 :]]
    return [*items, *rest]


def _part(item: Any, axis: int) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        raise InvalidKeyError(f"axis {axis}: {item} is no index; a boolean array is")
    try:
        return operator.index(item)
    except TypeError:
        pass
    if isinstance(item, (str, bytes)):
        raise InvalidKeyError(
            f"axis {axis}: {item!r} is no index; text keys go through ref.slice({item!r})"
        )
    array = _array(item, axis)
    # Integers of more than 64 bits are objects to NumPy; `_indices` says that they are out of bounds.
    given = not isinstance(item, np.ndarray)
    wide = array.dtype == object and given and all(isinstance(i, int) for i in array.flat)
    if not (array.dtype.kind in "biu" or wide) or array.ndim == 0:
        raise InvalidKeyError(
            f"axis {axis}: {reprlib.repr(item)} is no index; only integers, slices (:), Ellipsis (...), None "
            "and integer or boolean arrays are"
        )
    return array


def _array(item: Any, axis: int) -> Array:
    """Return an index array; an empty list names no index, though NumPy makes floats of it."""
    try:
        array = np.asarray(item)
    except ValueError:
        raise InvalidKeyError(
            f"axis {axis}: {reprlib.repr(item)} is no index array: its parts differ in length"
        ) from None
    if array.size == 0 and not isinstance(item, np.ndarray):
        return array.astype(np.int64)
    return array


def _integer(index: int, axis: int, size: int) -> int:
    if not -size <= index < size:
        raise InvalidKeyError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index + size if index < 0 else index


def _indices(array: Array, axis: int, size: int) -> Array:
    """Return the non-negative int64 indices that an index array names on one axis."""
    if array.dtype == bool:
        if array.shape != (size,):
            remedy = "; a mask of the whole tensor goes through ref.vindex[mask]"
            raise InvalidKeyError(
                f"a boolean index of shape {array.shape} does not match axis {axis} with size {size}"
                + (remedy if array.ndim > 1 else "")
            )
        return np.flatnonzero(array)
    if array.size:
        for bound in (array.min(), array.max()):
            _integer(int(bound), axis, size)
    indices = array.astype(np.int64)
    return np.where(indices < 0, indices + size, indices)


def _run(item: slice, axis: int, size: int) -> tuple[Run, bool]:
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


def _extended(item: slice, size: int, longer: int) -> Run:
    """Return the run that a slice of an axis stands for where the axis is longer."""
    step = 1 if item.step is None else operator.index(item.step)
    start, stop = (
        bound if bound is None or operator.index(bound) >= 0 else bound + size
        for bound in (item.start, item.stop)
    )
    if step > 0:
        return Run(max(0, start or 0), min(longer, longer if stop is None else stop), step)
    last = longer - 1 if start is None else min(start, longer - 1)
    below = 0 if stop is None else max(0, stop + 1)
    return Run(below + (min(last, size - 1) - below) % -step, last + 1, -step)
