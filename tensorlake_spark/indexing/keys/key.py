"""From what the user typed to a selection: NumPy's keys, Zarr's ``oindex``, ``vindex`` and ``blocks``.

With `key_parts` and `key_arrays` the only place that knows negatives, Ellipsis and masks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError
from tensorlake_spark.indexing.grid import Grid
from tensorlake_spark.indexing.keys.key_arrays import (
    broadcast,
    kept,
    place_of_arrays,
    points_of,
    true_places,
)
from tensorlake_spark.indexing.keys.key_parts import (
    check_masks,
    expand,
    index_array,
    indices_of,
    integer,
    is_array,
    is_mask,
    part_of,
    run_of,
    with_axes,
)
from tensorlake_spark.indexing.mixed_selection import AnySelection, MixedSelection
from tensorlake_spark.indexing.point_selection import PointSelection
from tensorlake_spark.indexing.selection import Points, Run, Selection

Array = np.ndarray[Any, Any]


def select(key: Any, shape: Sequence[int]) -> AnySelection:
    """Return the normal form of a NumPy key: basic and advanced indexing, whole.

    Several index arrays pair, so they become points on their axes. With slices beside them they are a
    `MixedSelection`, else a `PointSelection`. All other keys are a `Selection`, as of `select_simple`.

    Parameters
    ----------
    key : object
        Integers, slices, Ellipsis, ``None``, integer arrays that broadcast and masks of any rank, in a tuple
        or alone. A sparse mask is not made dense.
    shape : sequence of int
        The tensor's.

    Raises
    ------
    InvalidKeyError
        Where NumPy raises IndexError.
    InvalidSliceError
        For a step of zero, where NumPy raises ValueError.

    Examples
    --------
    >>> select((-1, slice(None, None, -2)), (3, 5)).axes
    (Run(start=2, stop=3, step=1), Run(start=0, stop=5, step=2))
    >>> select(([0, 2], slice(None), [1, 3]), (3, 9, 4)).result_shape
    (2, 9)
    """
    shape = tuple(shape)
    items = expand(key, shape)
    arrays = [item for item in items if is_array(item)]
    if len(arrays) < 2 and not any(is_mask(item) and item.ndim != 1 for item in arrays):
        return _simple(items, shape)
    return _paired(items, shape)


def select_simple(key: Any, shape: Sequence[int]) -> Selection:
    """Return the normal form of a NumPy key that picks from every axis on its own, as text and names do.

    Parameters
    ----------
    key : object
        Integers, slices, Ellipsis, ``None``, in a tuple or alone. One integer array (of any rank) or one
        boolean array of rank 1 may take the place of one axis.
    shape : sequence of int
        The tensor's.

    Raises
    ------
    InvalidKeyError, InvalidSliceError
        As `select`; also for two index arrays, of which NumPy pairs the elements.

    Examples
    --------
    >>> select_simple(([0, 2, 0], slice(1, None)), (3, 5)).storage_shape
    (3, 4)
    """
    shape = tuple(shape)
    items = expand(key, shape)
    check_masks(items)
    count = sum(map(is_array, items))
    if count > 1:
        raise InvalidKeyError(
            f"{count} index arrays in one key; ref.oindex[...] takes one for every axis, and "
            "ref[...] pairs them as NumPy does"
        )
    return _simple(items, shape)


def extend(key: Any, selection: Selection, shape: Sequence[int]) -> Selection:
    """Return what a key picks where the tensor is longer: slices without an end go on, all else stays.

    Negative numbers, and where a slice that walks backwards begins, go by the shape of the selection.

    Parameters
    ----------
    key : object
        As `select_simple` takes it.
    selection : Selection
        What `select_simple` made of it.
    shape : sequence of int
        On no axis shorter than the selection's.

    Examples
    --------
    >>> key = (slice(-1, None), slice(1, None, 2), slice(0, 7), -1)
    >>> extend(key, select_simple(key, (3, 3, 3, 3)), (9, 9, 9, 9)).axes[:2]
    (Run(start=2, stop=9, step=1), Run(start=1, stop=9, step=2))
    >>> extend(key, select_simple(key, (3, 3, 3, 3)), (9, 9, 9, 9)).axes[2:]
    (Run(start=0, stop=7, step=1), Run(start=2, stop=3, step=1))
    """
    axes = (
        _extended(item, selection.shape[axis], shape[axis])
        if isinstance(item, slice)
        else selection.axes[axis]
        for axis, item in with_axes(expand(key, selection.shape))
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
    items = expand(key, shape)
    if _newaxes(items):
        raise InvalidKeyError("oindex takes no newaxis; index the result with it")
    check_masks(items)
    axes, flips, drops = _picks(items, shape)
    for axis, item in with_axes(items):
        if is_array(item) and item.ndim != 1:
            raise InvalidKeyError(
                f"axis {axis}: oindex takes index arrays of rank 1, this has rank {item.ndim}"
            )
    return Selection(shape, axes, flips, drops, is_scalar=len(drops) == len(axes))


def select_blocks(key: Any, grid: Grid) -> Selection:
    """Return the normal form of a key of whole blocks, as Zarr's ``blocks``.

    Parameters
    ----------
    key : object
        For each axis the number of a block, or a slice of such numbers with step 1; Ellipsis. Negative
        numbers count from the last block.
    grid : Grid
        Where the tensor's blocks lie.

    Raises
    ------
    InvalidKeyError
        If a number, or the start of a slice, names no block of its axis; for a step other than 1, for
        ``None`` and for index arrays. As in Zarr an axis of length 0 has no block, so every key raises.

    Examples
    --------
    >>> select_blocks((1, slice(-1, None)), Grid((10, 7), (4, 3))).box
    Box(lo=(4, 6), hi=(8, 7))
    """
    items = expand(key, grid.shape)
    if _newaxes(items):
        raise InvalidKeyError("blocks take no newaxis; index the result with it")
    check_masks(items)
    return Selection(
        grid.shape, tuple(_block_run(item, axis, grid) for axis, item in with_axes(items))
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
        mask = index_array(items[0], 0)
        if mask.dtype == bool and mask.ndim == len(shape):
            _, coords, points_shape = points_of([mask], shape)
            return PointSelection(shape, coords, points_shape)
        if mask.dtype == bool:
            raise InvalidKeyError(f"a mask of shape {mask.shape} for a tensor of shape {shape}")
    if len(items) != len(shape):
        raise InvalidKeyError(
            f"vindex needs an integer or an integer array for each of the {len(shape)} axes, or a mask of "
            f"shape {shape}; this key has {len(items)} parts"
        )
    arrays = []
    for axis, (item, size) in enumerate(zip(items, shape, strict=True)):
        part = part_of(item, axis)
        if isinstance(part, int):
            arrays.append(np.array(integer(part, axis, size)))
        elif not isinstance(part, np.ndarray):
            raise InvalidKeyError(f"axis {axis}: vindex takes integers and arrays only; see oindex")
        elif part.dtype == bool:
            raise InvalidKeyError(
                f"axis {axis}: vindex takes one mask of shape {shape}, not one an axis"
            )
        else:
            arrays.append(indices_of(part, axis, size))
    points_shape = broadcast(arrays)
    if not shape:
        return PointSelection(shape, np.zeros((0, 1), np.int64), ())
    coords = np.array([np.broadcast_to(a, points_shape).reshape(-1) for a in arrays], np.int64)
    return PointSelection(shape, coords, points_shape)


class Indexer:
    """Square brackets that take another kind of key.

    Parameters
    ----------
    choose : callable
        Returns the selection of a key: `select_orthogonal`, for one, with the tensor's shape filled in.
    read : callable
        Returns what a selection picks.
    write : callable, optional
        Writes values into what a selection picks; without it there is no assignment.

    Examples
    --------
    >>> picks = Indexer(lambda key: select_orthogonal(key, (3, 2)), lambda s: s.storage_shape)
    >>> picks[[0, 2], 1]
    (2, 1)
    """

    def __init__(
        self,
        choose: Callable[[Any], AnySelection],
        read: Callable[[Any], Any],
        write: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self._choose = choose
        self._read = read
        self._write = write

    def __getitem__(self, key: Any) -> Any:
        return self._read(self._choose(key))

    def __setitem__(self, key: Any, values: Any) -> None:
        if self._write is None:
            raise TypeError("what is indexed here cannot be changed")
        self._write(self._choose(key), values)


def _simple(items: list[Any], shape: tuple[int, ...]) -> Selection:
    """Return the selection of a key that has at most one index array, which stands for one axis."""
    array = next(filter(is_array, items), None)
    axes, flips, drops = _picks(items, shape)
    newaxes = _newaxes(items)
    if array is None:
        scalar = len(drops) == len(axes) and not newaxes and Ellipsis not in items
        return Selection(shape, axes, flips, drops, newaxes, is_scalar=scalar)
    place = place_of_arrays(items)
    before = tuple(n for n in newaxes if n < place)
    after = tuple(n + array.ndim for n in newaxes if n >= place)
    axis = next(k for k, pick in enumerate(axes) if isinstance(pick, Points))
    source, target = axis - sum(d < axis for d in drops), place - len(before)
    points_shape = None if array.ndim == 1 else array.shape
    moved = None if source == target and points_shape is None else (source, target)
    return Selection(shape, axes, flips, drops, before + after, moved, points_shape)


def _paired(items: list[Any], shape: tuple[int, ...]) -> AnySelection:
    """Return the selection of a key whose index arrays name points together."""
    slices = [(axis, item) for axis, item in with_axes(items) if isinstance(item, slice)]
    runs = [run_of(item, axis, shape[axis]) for axis, item in slices]
    axes, coords, points_shape = points_of(items, shape)
    place, newaxes = place_of_arrays(items), _newaxes(items)
    if not axes and points_shape == (1,):  # ``x[True]``: a new axis, and all else is slices
        before = tuple(n for n in newaxes if n < place)
        newaxes = (*before, place, *(n + 1 for n in newaxes[len(before) :]))
    rest = Selection(
        tuple(shape[axis] for axis, _ in slices),
        tuple(run for run, _ in runs),
        tuple(k for k, (_, is_flipped) in enumerate(runs) if is_flipped),
        newaxes=newaxes,
    )
    if not axes and points_shape == (1,):
        return rest
    points = PointSelection(tuple(shape[k] for k in axes), coords, points_shape)
    if slices:
        return MixedSelection(shape, axes, points, rest, place)
    lengths = [*rest.result_shape]
    lengths[place:place] = points_shape
    return PointSelection(shape, coords, tuple(lengths))


def _picks(
    items: list[Any], shape: tuple[int, ...]
) -> tuple[tuple[Run | Points, ...], tuple[int, ...], tuple[int, ...]]:
    """Return what is picked on every axis, which axes the key walks backwards, and which it drops."""
    axes: list[Run | Points] = []
    flips, drops = [], []
    for axis, item in with_axes(items):
        size = shape[axis]
        if isinstance(item, slice):
            run, flipped = run_of(item, axis, size)
            axes.append(run)
            flips += [axis] if flipped else []
        elif is_mask(item):
            axes.append(Points(true_places(item, shape, axis)[0]))
        elif is_array(item):
            axes.append(Points(indices_of(item, axis, size).reshape(-1)))
        else:
            index = integer(item, axis, size)
            axes.append(Run(index, index + 1))
            drops.append(axis)
    return tuple(axes), tuple(flips), tuple(drops)


def _newaxes(items: list[Any]) -> tuple[int, ...]:
    """Return where in the result new axes stand, the axes of index arrays not counted."""
    return tuple(kept(items[:place]) for place, item in enumerate(items) if item is None)


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


def _block_run(item: Any, axis: int, grid: Grid) -> Run:
    """Return the positions on an axis that a number of a block, or a slice of them, stands for."""
    count = grid.counts[axis]
    if isinstance(item, np.ndarray):
        raise InvalidKeyError(f"axis {axis}: blocks take integers and slices, no index arrays")
    if not isinstance(item, slice):
        return Run(*grid.side(axis, _block(item, axis, count)))
    try:
        start, stop, step = (
            default if bound is None else operator.index(bound)
            for bound, default in ((item.start, 0), (item.stop, count), (item.step, 1))
        )
    except TypeError:
        raise InvalidKeyTypeError(
            f"axis {axis}: {item}: slice bounds are integers or None"
        ) from None
    if step != 1:
        raise InvalidKeyError(f"axis {axis}: {item}: blocks take slices with step 1 only")
    start = _block(start, axis, count)
    stop = min(stop + count if stop < 0 else stop, count)
    if stop <= start:
        return Run(0, 0)
    return Run(grid.side(axis, start)[0], grid.side(axis, stop - 1)[1])


def _block(number: int, axis: int, count: int) -> int:
    if not -count <= number < count:
        raise InvalidKeyError(
            f"block {number} is out of bounds for axis {axis} with {count} blocks"
        )
    return number + count if number < 0 else number
