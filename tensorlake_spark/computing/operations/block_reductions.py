"""Reductions over axes: which kernel computes them, and their fold over dense blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from tensorlake_spark.computing.fold import AxesFold, Block, Fold, Place
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.accumulation import accumulate, has_loop
from tensorlake_spark.computing.operations.element_reductions import ElementReduction
from tensorlake_spark.computing.operations.reduction_kernels import (
    Count,
    IntegerMoments,
    Kernel,
    Moments,
    UfuncKernel,
)
from tensorlake_spark.computing.operations.state_dtypes import holds_moments, narrow
from tensorlake_spark.computing.operations.tiles import (
    State,
    Tiles,
    absorbed,
    by_slabs,
    gathered,
    pieces,
    unite,
    whole,
)
from tensorlake_spark.computing.operations.value_sums import square_of
from tensorlake_spark.errors import (
    InvalidTensorError,
    UnsupportedDtypeError,
    UnsupportedFunctionError,
)
from tensorlake_spark.ops.numpy_arguments import (
    NO_ELEMENT,
    NO_INITIAL,
    axes_to_reduce,
    is_axis_of_scalar,
    refused_dtypes,
)
from tensorlake_spark.ops.reducing.reduction_mask import Mask

Array = np.ndarray[Any, Any]


def reduction(
    stored: Stored,
    name: str,
    axis: Any = None,
    keepdims: bool = False,
    where: Any = True,
    **options: Any,
) -> Fold[Any]:
    """Return the fold of a reduction.

    Parameters
    ----------
    stored : Stored
        What is reduced.
    name : str
        One of `KERNELS`.
    axis : None, int or tuple of int
        As NumPy takes it.
    keepdims : bool
        Whether reduced axes stay, with length 1.
    where : array_like or Elements of bool
        Which elements take part; it broadcasts to the shape of what is reduced.
    options
        Those of the function of NumPy: ``dtype``, ``ddof``, ``initial``, ``ord``.

    Raises
    ------
    AxisError
        If there is no such axis. ValueError for one that is given twice.
    UnsupportedDtypeError, InvalidTensorError
        If `where` is not of bools, or does not broadcast to the shape, and where NumPy does not reduce the dtype, or
        nothing at all.
    NumberOverflowError
        If the dtype does not hold the initial value.
    """
    shape = stored.shape
    mask = None if where is True else Mask.of(where, shape)
    no_axis = is_axis_of_scalar(axis, len(shape)) and (mask is not None or name not in _STRICT)
    axes = reduced_axes(None if no_axis else axis, len(shape))
    count = math.prod(shape[k] for k in axes)
    kernel = KERNELS[name](stored.dtype, count, **options)
    is_scalar = (axis is None or no_axis) and not keepdims
    kept: list[int] = [n for k, n in enumerate(shape) if k not in axes]
    if mask is not None:
        _refuse_mask(name, stored.dtype, **options)
        kernel = kernel.moments if isinstance(kernel, IntegerMoments) else kernel
    elif not count and (0 not in kept or not _has_start(kernel)):
        _refuse_nothing(name, stored.dtype, **options)
    make = ElementReduction if stored.is_sparse else BlockReduction
    return make(kernel, shape, axes, keepdims, is_scalar, mask)


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction, ascending.

    Examples
    --------
    >>> reduced_axes(None, 2), reduced_axes((-1, 0), 3)
    ((0, 1), (0, 2))
    """
    return tuple(sorted(axes_to_reduce(axis, ndim)))


@dataclass(frozen=True)
class BlockReduction(AxesFold[Tiles]):
    """A reduction of a dense tensor: the partial is the tiles of the answer that blocks lie over.

    Attributes
    ----------
    kernel : Kernel
        What is computed.
    shape : tuple of int
        Of the selection.
    axes : tuple of int
        Those that are reduced.
    keepdims : bool
        Whether they stay, with length 1.
    is_scalar : bool
        Whether the answer is a scalar.
    mask : Mask, optional
        Which elements take part, by default all.
    """

    kernel: Kernel
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keepdims: bool = False
    is_scalar: bool = False
    mask: Mask | None = None

    def map(self, place: Place, block: Block) -> Tiles:
        dense = cast("Array", block)
        if not dense.size:
            return self._tiles(place, self.kernel.blank(self.kept(dense.shape)))
        if self.mask is None:
            return self._tiles(place, by_slabs(self.kernel.start, dense, self.axes))
        found = self.combine_all(
            self._tiles(where, self.kernel.start(piece, self.axes, self.mask.at(where)))
            for where, piece in pieces(place, dense)
        )
        return cast("Tiles", found)

    def _tiles(self, place: Place, state: State) -> Tiles:
        return Tiles.of(self.kept(self.shape), self.kept(place), state)

    def add(self, partial: Tiles | None, place: Place, block: Block) -> Tiles:
        dense, loop = cast("Array", block), "" if self.mask is not None else self.kernel.loop
        if has_loop(loop, dense, self.axes, self.kernel.blank((0,))):

            def into(state: State, here: Place) -> bool:
                return accumulate(loop, dense, self.axes, state, here)

            found = gathered(partial, self.kept(self.shape), self.kept(place), self.kernel, into)
            if found is not None:
                return found
        if self.mask is None and dense.size:

            def reduce(state: State, slab: Array) -> None:
                self.kernel.absorb(state, self.kernel.start(slab, self.axes))

            found = absorbed(partial, self.kept(place), self.kernel, reduce, dense, self.axes)
            if found is not None:
                return found
        return super().add(partial, place, block)

    def combine(self, one: Tiles, other: Tiles) -> Tiles:
        return unite(one, other, self.kernel)

    def cut(self, partial: Tiles, count: int) -> Iterator[tuple[int, Tiles]]:
        return partial.cut(count)

    def packed(self, partial: Tiles) -> Tiles:
        return partial.packed(self.kernel.packed)

    def finish(self, partial: Tiles | None) -> Any:
        state = (
            self.kernel.blank(self.kept(self.shape))
            if partial is None
            else whole(partial, self.kernel)
        )
        count = math.prod(self.shape[k] for k in self.axes)
        found = self.kernel.finish(
            state, count if self.mask is None else self.mask.counts(self.axes)
        )
        if self.keepdims:
            found = np.expand_dims(found, self.axes)
        return found[()] if not found.ndim else found


def _has_start(kernel: Kernel) -> bool:
    """Return whether something is reduced of nothing: extremes have no such value, if none is given."""
    if not isinstance(kernel, UfuncKernel) or kernel.ufunc.identity is not None:
        return True
    return kernel.initial is not None


def _refuse_nothing(name: str, dtype: np.dtype[Any], /, **options: Any) -> None:
    """Raise or warn as NumPy does where nothing is reduced."""
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    nothing = np.empty(0, dtype)
    remedy = NO_ELEMENT if name == "norm" else NO_INITIAL
    with refused_dtypes(function, [nothing], remedy=remedy):
        function(nothing, **options)


def _refuse_mask(name: str, dtype: np.dtype[Any], /, **options: Any) -> None:
    """Raise as NumPy does where a mask may choose nothing: of extremes it wants an `initial`."""
    function, tried = getattr(np, name), np.zeros(1, dtype)
    with warnings.catch_warnings(), refused_dtypes(function, [tried], remedy=NO_INITIAL):
        warnings.simplefilter("ignore")
        function(tried, where=np.array([False]), **options)


def _made(
    ufunc: np.ufunc, function: Callable[..., Any], computed: str | None = None, prepare: Any = None
) -> Callable[..., Kernel]:
    """Return what makes the kernel of a function of NumPy for a dtype."""

    def make(of: np.dtype[Any], count: int, /, **options: Any) -> Kernel:
        result = _dtype_of(function, of, **options)
        wide = np.dtype(computed) if computed else _computed(result, options.get("dtype"))
        counts = ufunc is np.add and of.kind in "iub" and wide.kind in "iu" and prepare is None
        held = narrow(of, count, wide) if counts else None
        return UfuncKernel(ufunc, wide, result, prepare, held=held, initial=options.get("initial"))

    return make


def _dtype_of(function: Callable[..., Any], of: np.dtype[Any], /, **options: Any) -> np.dtype[Any]:
    """Return the dtype of what NumPy's function gives; what it refuses is refused."""
    tried, asked = np.zeros(1, of), options.get("dtype")
    with (
        warnings.catch_warnings(),
        refused_dtypes(function, [tried], asked, NO_INITIAL),
    ):
        warnings.simplefilter("ignore")
        return np.asarray(function(tried, **options)).dtype


def _computed(result: np.dtype[Any], asked: Any) -> np.dtype[Any]:
    """Return the dtype of sums: floats in double width, so that the order of blocks matters little."""
    if asked is not None or result.kind not in "fcV":
        return result
    return np.dtype("f8") if result.kind == "V" else np.result_type(result, "f8")  # V: bfloat16


def _mean(of: np.dtype[Any], count: int, /, **options: Any) -> Kernel:
    result = _dtype_of(np.mean, of, **options)
    return UfuncKernel(np.add, _computed(result, options.get("dtype")), result, None, _divided)


def _divided(found: Array, count: Count) -> Array:
    """Return means of sums, with NumPy's warning where a mask chooses nothing."""
    if not isinstance(count, int) and not np.all(count):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=2)
    return np.asarray(np.true_divide(found, count))


def _var(
    of: np.dtype[Any], count: int, /, ddof: float = 0, is_root: bool = False, **options: Any
) -> Kernel:
    result = _dtype_of(np.std if is_root else np.var, of, **options)
    asked = options.get("dtype")
    mean = _dtype_of(np.mean, of) if asked is None else np.dtype(asked)
    if mean.kind not in "fcmV":
        raise UnsupportedDtypeError(
            f"a variance with dtype={mean} would cut the mean of each block to an integer; "
            "leave dtype out or ask for floats, and convert the answer"
        )
    moments = Moments(_computed(mean, asked), result, ddof, is_root, asked is not None)
    if asked is not None or not holds_moments(of, count):
        return moments
    squares = square_of(np.zeros(0, of)).dtype
    return IntegerMoments(moments, (narrow(of, count), narrow(squares, count)))


def _extreme(ufunc: np.ufunc, function: Callable[..., Any]) -> Callable[..., Kernel]:
    def make(dtype: np.dtype[Any], count: int, /, **options: Any) -> Kernel:
        _dtype_of(function, dtype, **options)
        after = _warned if ufunc in (np.fmin, np.fmax) else None
        return UfuncKernel(ufunc, dtype, dtype, None, after, initial=options.get("initial"))

    return make


def _warned(found: Array, count: Count) -> Array:
    """Warn as NumPy does where all of a slice is NaN."""
    if found.dtype.kind in "fcmM" and np.isnan(found).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
    return found


def _without_nan(values: Array) -> Array:
    return (
        np.where(np.isnan(values), np.zeros((), values.dtype), values)
        if values.dtype.kind in "fc"
        else values
    )


def _is_nonzero(values: Array) -> Array:
    return np.asarray(values.astype(bool))


def _norm(dtype: np.dtype[Any], count: int, **options: Any) -> Kernel:
    """Return the kernel of a norm of vectors."""
    ord = options.get("ord")  # noqa: A001 - NumPy's name
    result = _dtype_of(np.linalg.norm, dtype, ord=ord)
    wide = np.dtype("f8")
    if ord is None or ord == 2:
        short = dtype.kind in "iub" and dtype.itemsize <= 2
        if not short:
            return UfuncKernel(np.add, wide, result, square_of, _root)
        held = narrow(square_of(np.zeros(0, dtype)).dtype, count)  # exact
        return UfuncKernel(np.add, np.dtype("i8"), result, square_of, _root, held)
    if ord == np.inf:
        return UfuncKernel(np.maximum, wide, result, _absolute, initial=0)  # of nothing it is 0
    if ord == -np.inf:
        return UfuncKernel(np.minimum, wide, result, _absolute)
    if ord == 0:
        return UfuncKernel(np.add, np.dtype("i8"), result, _is_nonzero)
    return UfuncKernel(
        np.add, wide, result, partial(_power, float(ord)), partial(_unpower, float(ord))
    )


def _root(found: Array, count: Count) -> Array:
    return np.sqrt(found)


def _absolute(values: Array) -> Array:
    return np.abs(values.astype(np.float64) if values.dtype.kind in "iubmM" else values)


def _power(exponent: float, values: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_absolute(values) ** exponent)


def _unpower(exponent: float, found: Array, count: Count) -> Array:
    return np.asarray(found ** (1 / exponent))


KERNELS: dict[str, Callable[..., Kernel]] = {
    "sum": _made(np.add, np.sum),
    "nansum": _made(np.add, np.nansum, prepare=_without_nan),
    "prod": _made(np.multiply, np.prod),
    "mean": _mean,
    "var": _var,
    "std": partial(_var, is_root=True),
    "min": _extreme(np.minimum, np.min),
    "max": _extreme(np.maximum, np.max),
    "nanmin": _extreme(np.fmin, np.nanmin),
    "nanmax": _extreme(np.fmax, np.nanmax),
    "any": _made(np.logical_or, np.any),
    "all": _made(np.logical_and, np.all),
    "count_nonzero": _made(np.add, lambda x: np.count_nonzero(x, axis=0), prepare=_is_nonzero),
    "norm": _norm,
}
"""What makes the kernel of each reduction; it takes the dtype, the number of elements, and the function's options."""


_STRICT = ("mean", "var", "std", "norm")
"""Of these a scalar has no axis in NumPy; of others it has one, 0 or -1."""


def norm_axes(axis: Any, order: Any, ndim: int) -> tuple[Any, Any]:
    """Return axes and order of `numpy.linalg.norm` as a norm of vectors.

    Raises
    ------
    UnsupportedFunctionError
        For norms of matrices other than Frobenius'.

    Examples
    --------
    >>> norm_axes((0, 1), "fro", 3), norm_axes(None, None, 2)
    (((0, 1), None), (None, None))
    """
    several = len(axes_to_reduce(axis, ndim))
    if axis is None and order is None:
        return None, None
    if several == 1 and not isinstance(order, str):
        return axis, order
    if several == 2 and order in (None, "fro", "f"):
        return axis, None
    if several > 2 or several == 0 or (several == 1 and isinstance(order, str)):
        raise InvalidTensorError(
            f"ord={order!r} and axis={axis!r}: a norm is of one axis, or of two with ord=None or 'fro'"
        )
    raise UnsupportedFunctionError(
        f"np.linalg.norm with ord={order!r} over two axes of a stored tensor is not there; read it: "
        f"np.linalg.norm(ref[...], {order!r})"
    )
