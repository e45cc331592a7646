"""Views of a sparse tensor that may change: they read and write the elements of a part of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidTensorError,
    UnsupportedDtypeError,
    UnsupportedFunctionError,
)
from tensorlake_spark.indexing import AnySelection, MixedSelection, Points, Run, Selection, lift
from tensorlake_spark.indexing.coords import order, ravel
from tensorlake_spark.indexing.keys.key import Indexer, select, select_orthogonal, select_points
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import axes_of
from tensorlake_spark.ops.slicing import part, pick
from tensorlake_spark.tensor.sparse.array import SparseTensor
from tensorlake_spark.tensor.sparse.assigned import assigned
from tensorlake_spark.tensor.sparse.element_buffer import ElementBuffer

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class AxisOrder:
    """A step of a view that only changes the order of axes."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Lengths of the axes in their new order."""
        return tuple(self.shape[k] for k in self.axes)


Step = AnySelection | AxisOrder
"""What of a tensor, or of a view, the next view shows."""


class BuilderView(NDArrayOperatorsMixin):
    """A part of a `SparseBuilder`, or all of it: what is written to it is written to the builder.

    ``view[key]`` reads, and returns a `SparseTensor` of its own, or a scalar. ``view[key] = values`` writes.
    ``view.view[key]`` is a view again. A view sees what is written to the builder later; once the builder is built
    it raises BuilderClosedError.

    Examples
    --------
    >>> import tensorlake_spark as tl
    >>> b = tl.SparseTensor.from_dense(np.arange(12).reshape(3, 4)).builder()
    >>> odd = b.view[:, 1::2]
    >>> odd.view[0][...] = [50, 70]
    >>> odd *= 2
    >>> b[...].todense().tolist()
    [[0, 100, 2, 140], [4, 10, 6, 14], [8, 18, 10, 22]]
    """

    __slots__ = ("_buffer", "_steps")
    __pandas_priority__ = 5000  # above those of pandas, which would take it for a list of rows

    def __init__(self, buffer: ElementBuffer, steps: tuple[Step, ...] = ()) -> None:
        self._buffer = buffer
        self._steps = steps

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""
        return self._steps[-1].result_shape if self._steps else self._buffer.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in the machine's byte order."""
        dtype: np.dtype[Any] = self._buffer.dtype
        return dtype

    @property
    def nnz(self) -> int:
        """Number of elements that are not zero."""
        return self._elements().nnz

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a sparse tensor without axes")
        return self.shape[0]

    def __contains__(self, value: Any) -> bool:
        return value in self[...]

    def __getitem__(self, key: Any) -> Any:
        return self._read(select(key, self.shape))

    def __setitem__(self, key: Any, values: Any) -> None:
        self._write(select(key, self.shape), values)

    @property
    def oindex(self) -> Indexer:
        """Orthogonal indexing, to read and to write: ``b.oindex[[0, 2], :, mask] = values``."""
        return Indexer(lambda key: select_orthogonal(key, self.shape), self._read, self._write)

    @property
    def vindex(self) -> Indexer:
        """Coordinate indexing, to read and to write: ``b.vindex[[0, 2], [1, 5]] = values``, or a mask."""
        return Indexer(lambda key: select_points(key, self.shape), self._read, self._write)

    @property
    def view(self) -> Indexer:
        """Views: ``b.view[0, 1:3]``, for every key that names no element twice; ``b.view[0] += 1`` writes.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> b = tl.SparseBuilder((2, 3))
        >>> b.view[1].view[::-1][0] = 7
        >>> b[1, 2]
        np.float64(7.0)
        """
        return Indexer(lambda key: select(key, self.shape), self._part, self._write)

    def along(self, axis: int | Sequence[int]) -> TensorsAlong:
        """Return the tensors along one axis or some: ``b.along(1)`` of a matrix are its rows.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> b = tl.SparseTensor.from_dense(np.eye(2, 3)).builder()
        >>> b.along(1)[...] += [0, 0, 5]
        >>> for column in b.along(0):
        ...     column[0] = 4
        >>> b.build().todense().tolist()
        [[4.0, 4.0, 4.0], [0.0, 1.0, 5.0]]
        """
        axes = axes_of(axis, self.ndim)
        others = tuple(k for k in range(self.ndim) if k not in axes)
        turned = AxisOrder(self.shape, others + axes)
        return TensorsAlong(BuilderView(self._buffer, (*self._steps, turned)), len(others))

    def todense(self) -> Array:
        """Return the elements as one array."""
        dense: Array = self[...].todense()
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        out: Array = self[...].__array__(dtype, copy)
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), **options: Any
    ) -> Any:
        """Compute a ufunc of what there is now; with `out`, write the result to it."""
        if method != "__call__":
            return NotImplemented
        operands = [x[...] if isinstance(x, BuilderView) else x for x in inputs]
        if options.get("where", True) is not True and out:
            raise UnsupportedFunctionError(
                f"np.{ufunc.__name__} with where= does not write to a builder; assign to b.vindex[mask]"
            )
        if out:
            operands = _sparse_operands(ufunc, operands, self.size)
        results = ufunc(*operands, **options)
        if not out:
            return results
        several = isinstance(results, tuple)
        written = tuple(
            value if target is None else _written(ufunc, target, value, options)
            for target, value in zip(out, results if several else (results,), strict=True)
        )
        return written if several else written[0]

    def _elements(self) -> Elements:
        """Return what the view shows now."""
        found = self._buffer.elements()
        for step in self._steps:
            found = _shown(found, step)
        return found

    def _read(self, selection: AnySelection) -> Any:
        picked = pick(self._elements(), selection)
        if not isinstance(picked, Elements):
            return picked
        return SparseTensor._trusted(picked._coords, picked.values, picked.shape, picked._places)

    def _part(self, selection: AnySelection) -> BuilderView:
        if _repeats(selection):
            raise InvalidKeyError(
                "a view of a key that names an element twice: to which of the two it writes would not be "
                "clear; b[key] reads it, and b[key] = values assigns, where the last one counts"
            )
        return BuilderView(self._buffer, (*self._steps, selection))

    def _write(self, selection: AnySelection, values: Any) -> None:
        """Replace what a selection picks."""
        if isinstance(values, BuilderView):
            # ``b.view[key] += 1`` ends with an assignment of the view to itself.
            if values._buffer is self._buffer and values._steps == (*self._steps, selection):
                return
            values = values[...]
        if selection.is_scalar and np.ndim(values):
            raise InvalidTensorError(
                f"one element takes one value, not values of shape {np.shape(values)}"
            )
        whole = not self._steps and _is_whole(selection)
        given, every = assigned(values, selection.result_shape, self.dtype, zeros=not whole)
        if whole:
            self._buffer.replace(given.places, given.values, given._coords)
            return
        take, coords = lift(selection, given.coords)
        for step in reversed(self._steps):
            coords = _lifted(step, coords)
        if not every:
            stored = self._stored(selection)
            self._buffer.extend(stored, np.zeros(len(stored), self.dtype))
        self._buffer.extend(ravel(coords, self._buffer.shape), given.values[take])

    def _stored(self, selection: AnySelection) -> Array:
        """Return the places in the builder of what is stored and picked."""
        now = self._buffer.elements()
        found = Elements._trusted(now._coords, now.places, now.shape, now.places)  # also as values
        for step in (*self._steps, selection):
            found = _shown(found, step)
        return found.values


class TensorsAlong(NDArrayOperatorsMixin):
    """The tensors along one axis of a builder or some, each of them a view: what `BuilderView.along` returns.

    They are numbered in C order of the other axes: ``rows[5]``, ``len(rows)``, ``for row in rows``. A tuple has an
    index for each of the other axes. ``rows[...]`` are all of them, a view whose last axes are those along which
    they lie. So a vector is added to every row by ``rows[...] += vector``, or by ``rows += vector``.

    Examples
    --------
    >>> import tensorlake_spark as tl
    >>> b = tl.SparseTensor.from_dense(np.arange(8).reshape(2, 2, 2)).builder()
    >>> fibers = b.along(1)
    >>> len(fibers), fibers[2][...].todense().tolist(), fibers[1, 0][1]
    (4, [4, 6], np.int64(6))
    >>> fibers *= [1, 10]
    >>> b[0].todense().tolist()
    [[0, 1], [20, 30]]
    """

    __slots__ = ("_count", "_view")
    __pandas_priority__ = BuilderView.__pandas_priority__

    def __init__(self, view: BuilderView, count: int) -> None:
        self._view = view
        self._count = count

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes that number the tensors."""
        return self._view.shape[: self._count]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __iter__(self) -> Iterator[BuilderView]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, key: Any) -> BuilderView:
        part: BuilderView = self._view.view[self._whole_key(key)]
        return part

    def __setitem__(self, key: Any, values: Any) -> None:
        self._view.view[self._whole_key(key)] = values

    def _whole_key(self, key: Any) -> Any:
        """Return the key of a tensor's view: for an index of every other axis, or for a number in C order."""
        if key is Ellipsis:
            return key
        if isinstance(key, tuple):
            if len(key) != self._count:
                raise InvalidKeyError(
                    f"{len(key)} indices for {self._count} axes: one for each of them, or a number"
                )
            return (*key, ...)
        try:
            number = operator.index(key)
        except TypeError:
            raise InvalidKeyTypeError(
                f"{key!r} is not a number, a tuple of indices or an Ellipsis"
            ) from None
        if not -len(self) <= number < len(self):
            raise InvalidKeyError(f"tensor {number} of {len(self)} is out of bounds")
        return (*np.unravel_index(number % len(self), self.shape), ...)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), **options: Any
    ) -> Any:
        """Compute a ufunc of all of them together."""
        views = [x._view if isinstance(x, TensorsAlong) else x for x in inputs]
        targets = tuple(x._view if isinstance(x, TensorsAlong) else x for x in out)
        result = getattr(ufunc, method)(*views, **({"out": targets} if out else {}), **options)
        return (out if isinstance(result, tuple) else out[0]) if out else result

    def __repr__(self) -> str:
        shape = self._view.shape[self._count :]
        return f"TensorsAlong(count={len(self)}, shape={shape}, dtype={self._view.dtype})"


def _shown(x: Elements, step: Step) -> Elements:
    """Return what a step of a view shows of elements."""
    if isinstance(step, AxisOrder):
        coords, values = order(x.coords[list(step.axes)], x.values, step.result_shape)
        return Elements._trusted(coords, values, step.result_shape)
    return part(x, step)


def _lifted(step: Step, coords: Array) -> Array:
    """Return where elements of a view lie in what it shows."""
    if isinstance(step, AxisOrder):
        return np.asarray(coords[np.argsort(step.axes)])
    return lift(step, coords)[1]


def _repeats(selection: AnySelection) -> bool:
    """Whether a selection names an element twice."""
    if isinstance(selection, Selection):
        arrays = [axis.indices for axis in selection.axes if isinstance(axis, Points)]
    else:
        points = selection.points if isinstance(selection, MixedSelection) else selection
        arrays = [ravel(points.coords, points.shape)]
    return any(len(np.unique(array)) < len(array) for array in arrays)


def _is_whole(selection: AnySelection) -> bool:
    """Whether a selection is the tensor as it is."""
    if (
        not isinstance(selection, Selection)
        or selection.flips
        or selection.result_shape != selection.shape
    ):
        return False
    runs = all(isinstance(axis, Run) for axis in selection.axes)
    return runs and selection.storage_shape == selection.shape


def _written(ufunc: np.ufunc, target: Any, value: Any, options: dict[str, Any]) -> Any:
    """Write what a ufunc gave to one of its outputs, by the rules of NumPy's ``out=``."""
    casting = options.get("casting", "same_kind")
    if not np.can_cast(value.dtype, target.dtype, casting):
        raise UnsupportedDtypeError(
            f"np.{ufunc.__name__} gives {value.dtype}, which does not go into {target.dtype} by casting "
            f"{casting!r}; convert it with .astype({target.dtype.name!r})"
        )
    if len(value.shape) > len(target.shape):
        raise InvalidTensorError(
            f"np.{ufunc.__name__} gives shape {value.shape}, which does not go into shape {target.shape}"
        )
    dense = isinstance(value, SparseTensor) and isinstance(target, np.ndarray)
    target[...] = value.todense() if dense else value
    return target


def _sparse_operands(ufunc: np.ufunc, operands: list[Any], size: int) -> list[Any]:
    """Return the operands, and sparse those dense ones that the result would become dense for.

    A vector that is added to every row is such a one: what is zero in it changes nothing.
    """
    sparse = [isinstance(x, SparseTensor) for x in operands]
    if len(operands) != 2 or all(sparse) or not any(sparse):
        return operands
    stored, dense = operands[sparse.index(True)], np.asarray(operands[sparse.index(False)])
    if not dense.ndim or dense.size >= size:
        return operands
    zero, dense_zero = np.zeros((), stored.dtype), np.zeros((), dense.dtype)
    pairs = [(zero, dense_zero), (zero, dense)]
    with np.errstate(all="ignore"):
        beside, fills = (ufunc(*(pair if sparse[0] else pair[::-1])) != 0 for pair in pairs)
    if np.any(beside) or not np.any(fills):
        return operands
    return [
        x if s else SparseTensor.from_dense(dense) for x, s in zip(operands, sparse, strict=True)
    ]
