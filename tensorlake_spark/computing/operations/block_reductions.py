"""Reductions over axes: which kernel computes them, and their fold over dense blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from tensorlake_spark.computing.fold import AxesFold, Block, Fold, Place
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.accumulation import accumulate, has_loop
from tensorlake_spark.computing.operations.element_reductions import ElementReduction
from tensorlake_spark.computing.operations.reduction_kernels import (
    IntegerMoments,
    Kernel,
    Moments,
    UfuncKernel,
    square_of,
)
from tensorlake_spark.computing.operations.state_dtypes import holds_moments, narrow
from tensorlake_spark.computing.operations.tiles import (
    State,
    Tiles,
    by_slabs,
    gathered,
    unite,
    whole,
)
from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError
from tensorlake_spark.ops.numpy_arguments import axes_of

Array = np.ndarray[Any, Any]


def reduction(
    stored: Stored, name: str, axis: Any = None, keepdims: bool = False, **options: Any
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
    options
        Those of the function of NumPy: ``dtype``, ``ddof``, ``ord``.

    Raises
    ------
    AxisError
        If there is no such axis. ValueError for one that is given twice.
    TypeError, ValueError
        NumPy's own, where it does not reduce the dtype, or nothing at all.
    """
    shape = stored.shape
    axes = reduced_axes(axis, len(shape))
    count = math.prod(shape[k] for k in axes)
    kernel = KERNELS[name](stored.dtype, count, **options)
    is_scalar = axis is None and not keepdims
    kept: list[int] = [n for k, n in enumerate(shape) if k not in axes]
    if not count and 0 not in kept:
        _refuse_nothing(name, stored.dtype)
    make = ElementReduction if stored.is_sparse else BlockReduction
    return make(kernel, shape, axes, keepdims, is_scalar)


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction, ascending.

    Examples
    --------
    >>> reduced_axes(None, 2), reduced_axes((-1, 0), 3)
    ((0, 1), (0, 2))
    """
    return tuple(sorted(axes_of(axis, ndim)))


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
    """

    kernel: Kernel
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keepdims: bool = False
    is_scalar: bool = False

    def map(self, place: Place, block: Block) -> Tiles:
        dense = cast("Array", block)
        kept = tuple(part for k, part in enumerate(place) if k not in self.axes)
        return Tiles.of(self._kept, kept, by_slabs(self.kernel.start, dense, self.axes))

    def add(self, partial: Tiles | None, place: Place, block: Block) -> Tiles:
        dense, loop = cast("Array", block), self.kernel.loop
        if has_loop(loop, dense, self.axes, self.kernel.blank((0,))):
            kept = tuple(part for k, part in enumerate(place) if k not in self.axes)

            def into(state: State, here: Place) -> bool:
                return accumulate(loop, dense, self.axes, state, here)

            found = gathered(partial, self._kept, kept, self.kernel, into)
            if found is not None:
                return found
        return super().add(partial, place, block)

    def combine(self, one: Tiles, other: Tiles) -> Tiles:
        return unite(one, other, self.kernel)

    def finish(self, partial: Tiles | None) -> Any:
        state = self.kernel.blank(self._kept) if partial is None else whole(partial, self.kernel)
        found = self.kernel.finish(state, math.prod(self.shape[k] for k in self.axes))
        if self.keepdims:
            found = np.expand_dims(found, self.axes)
        return found[()] if not found.ndim else found

    @property
    def _kept(self) -> tuple[int, ...]:
        return tuple(n for k, n in enumerate(self.shape) if k not in self.axes)


def _refuse_nothing(name: str, dtype: np.dtype[Any]) -> None:
    """Raise or warn as NumPy does where nothing is reduced."""
    function = getattr(np, name, None)
    if function is not None:
        function(np.empty(0, dtype))


def _made(
    ufunc: np.ufunc, function: Callable[..., Any], computed: str | None = None, prepare: Any = None
) -> Callable[..., Kernel]:
    """Return what makes the kernel of a function of NumPy for a dtype."""

    def make(of: np.dtype[Any], count: int, /, **options: Any) -> Kernel:
        result = _dtype_of(function, of, **options)
        wide = np.dtype(computed) if computed else _computed(result, options.get("dtype"))
        counts = ufunc is np.add and of.kind in "iub" and wide.kind in "iu" and prepare is None
        return UfuncKernel(
            ufunc, wide, result, prepare, held=narrow(of, count, wide) if counts else None
        )

    return make


def _dtype_of(function: Callable[..., Any], of: np.dtype[Any], /, **options: Any) -> np.dtype[Any]:
    """Return the dtype of what NumPy's function gives; it raises what that raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(np.zeros(1, of), **options)).dtype


def _computed(result: np.dtype[Any], asked: Any) -> np.dtype[Any]:
    """Return the dtype of sums: floats in double width, so that the order of blocks matters little."""
    if asked is not None or result.kind not in "fc":
        return result
    return np.result_type(result, "f8")


def _mean(of: np.dtype[Any], count: int, /, **options: Any) -> Kernel:
    result = _dtype_of(np.mean, of, **options)
    return UfuncKernel(
        np.add, _computed(result, options.get("dtype")), result, None, np.true_divide
    )


def _var(
    of: np.dtype[Any], count: int, /, ddof: float = 0, is_root: bool = False, **options: Any
) -> Kernel:
    result = _dtype_of(np.std if is_root else np.var, of, **options)
    asked = options.get("dtype")
    mean = _dtype_of(np.mean, of) if asked is None else np.dtype(asked)
    moments = Moments(_computed(mean, asked), result, ddof, is_root)
    if asked is not None or not holds_moments(of, count):
        return moments
    squares = square_of(np.zeros(0, of)).dtype
    return IntegerMoments(moments, (narrow(of, count), narrow(squares, count)))


def _extreme(ufunc: np.ufunc, function: Callable[..., Any]) -> Callable[..., Kernel]:
    def make(dtype: np.dtype[Any], count: int) -> Kernel:
        _dtype_of(function, dtype)
        after = _warned if ufunc in (np.fmin, np.fmax) else None
        return UfuncKernel(ufunc, dtype, dtype, None, after)

    return make


def _warned(found: Array, count: int) -> Array:
    """Warn as NumPy does where all of a slice is NaN."""
    if found.dtype.kind in "fc" and np.isnan(found).any():
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
        return UfuncKernel(np.maximum, wide, result, _absolute)
    if ord == -np.inf:
        return UfuncKernel(np.minimum, wide, result, _absolute)
    if ord == 0:
        return UfuncKernel(np.add, np.dtype("i8"), result, _is_nonzero)
    return UfuncKernel(
        np.add, wide, result, partial(_power, float(ord)), partial(_unpower, float(ord))
    )


def _root(found: Array, count: int) -> Array:
    return np.sqrt(found)


def _absolute(values: Array) -> Array:
    return np.abs(values.astype(np.float64) if values.dtype.kind in "iub" else values)


def _power(exponent: float, values: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(_absolute(values) ** exponent)


def _unpower(exponent: float, found: Array, count: int) -> Array:
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
    several = len(axes_of(axis, ndim))
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
