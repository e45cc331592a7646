"""The methods of stored tensors that compute, and NumPy's protocols, which come down to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.computing.operations.products import contractions, labelled_products
from tensorlake_spark.computing.operations.products.labelled_products import Product
from tensorlake_spark.computing.stored_reductions import ReductionMethods
from tensorlake_spark.computing.writing_results import check_into
from tensorlake_spark.errors import UnsupportedFunctionError
from tensorlake_spark.ops.numpy_arguments import operand_array, power_ufunc
from tensorlake_spark.ops.products.einsum import arguments
from tensorlake_spark.tensor.sparse import SparseTensor, check_unmasked
from tensorlake_spark.tensor.sparse.array import sparse_of


class Computing(ReductionMethods):
    """What computes on a stored tensor, block by block: only a few blocks are in memory at a time.

    A method returns what NumPy would return of the array; of a sparse tensor, what `SparseTensor` returns. With
    ``into="id"`` the result becomes a tensor of that name in the lake, by one commit, and the method returns its
    `TensorRef`.
    """

    # Above those of pandas, which would take the tensor for a list of rows.
    __pandas_priority__ = 5000

    def _gathered(self, mapped: Mapped) -> Any:
        """Return an elementwise result in memory: here computed by this process."""
        return mapped.computed()

    def tensordot(self, other: Any, axes: Any = 2, into: str | None = None) -> Any:
        """Return the product with another tensor, summed over pairs of axes, as `numpy.tensordot`.

        The other one is an array, a `SparseTensor`, or a stored tensor, of which a band at a time is in memory. The
        product is sparse where both are, or where nothing is summed with a sparse one; else it is an array.

        Raises
        ------
        InvalidTensorError
            If paired axes differ in length.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> lake.write("x", np.arange(6).reshape(2, 3)).tensordot([1, 10], axes=(0, 0))
        array([30, 41, 52])
        """
        return self._computed(contractions.tensordot(self._stored, _factor(other), axes), into)

    def dot(self, other: Any, into: str | None = None) -> Any:
        """Return the product with another tensor over the last axis, as `numpy.dot`; see `tensordot`."""
        return self._computed(contractions.dot(self._stored, _factor(other)), into)

    def ttv(self, vectors: Any, axis: Any = None, into: str | None = None) -> Any:
        """Return the tensor times vectors: each axis of `axis` is summed with the weights of its vector.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> lake.write("x", np.arange(6).reshape(2, 3)).ttv([1, 0, 2], axis=1)
        array([ 4, 13])
        """
        return self._computed(contractions.ttv(self._stored, vectors, axis), into)

    def ttm(
        self, matrices: Any, axis: Any = None, transpose: bool = False, into: str | None = None
    ) -> Any:
        """Return the tensor times matrices of shape (m, length of the axis), one for each axis of `axis`."""
        return self._computed(contractions.ttm(self._stored, matrices, axis, transpose), into)

    def mttkrp(self, factors: Sequence[Any], mode: int, into: str | None = None) -> Any:
        """Return the unfolded tensor times the Khatri-Rao product of the factors of all axes but `mode`.

        Parameters
        ----------
        factors : sequence of array_like
            For each axis a matrix of shape (length of the axis, rank); that of `mode` may be None.
        mode : int
            The axis that stays.
        into : str, optional
            Id of a new tensor that the result becomes.

        Returns
        -------
        ndarray, shape (length of the axis, rank)
        """
        return self._computed(contractions.mttkrp(self._stored, factors, mode), into)

    def map(self, ufunc: Any, *others: Any, into: str | None = None, **options: Any) -> Any:
        """Return a ufunc of the tensor and of others: scalars, arrays, and stored tensors, which broadcast.

        With `into` it goes from the lake to the lake, a region at a time. The options are keywords of the ufunc,
        such as ``dtype`` and ``casting``.

        Raises
        ------
        UnsupportedFunctionError
            If the ufunc has several results, and for keywords of whole arrays, such as ``where`` and ``out``.
        DenseResultError
            If it would make the zeros of a sparse tensor non-zero.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.arange(6.0).reshape(2, 3))
        >>> ref.map(np.sqrt, into="roots")[0].round(2).tolist()
        [0.0, 1.0, 1.41]
        """
        return self._mapped(ufunc, (self, *others), options, into)

    def _mapped(
        self, ufunc: Any, operands: Sequence[Any], options: dict[str, Any], into: str | None
    ) -> Any:
        check_into(self._stored.snapshot, into)
        if not isinstance(ufunc, np.ufunc):
            raise UnsupportedFunctionError(
                f"map takes a ufunc of NumPy, such as np.sqrt, not {ufunc!r:.80}"
            )
        mapped = Mapped.of(ufunc, [_operand(x) for x in operands], options)
        if into is None:
            return self._gathered(mapped)
        return self._written(into, mapped, "bsgs" if mapped.is_sparse else "ftsf")

    def __pow__(self, exponent: Any) -> Any:
        ufunc = power_ufunc(self._stored.dtype, exponent)
        return super().__pow__(exponent) if ufunc is None else ufunc(self)  # type: ignore[misc]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options:
            return _multiplied(labelled_products.matmul, inputs)
        if method == "__call__" and "out" not in options and "where" not in options:
            return self._mapped(ufunc, inputs, options, None)
        name = _REDUCTIONS.get(ufunc) if method == "reduce" else None
        if name and {*options} <= _taken(name):
            options.setdefault("axis", 0)
            return getattr(self, name)(
                **{k: v for k, v in options.items() if v is not None or k == "axis"}
            )
        what = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        given = "".join(f" with {name}=" for name in ("out", "where") if name in options)
        raise UnsupportedFunctionError(
            f"{what}{given} of a stored tensor is not there; assign what is computed, as in view[...] = view + 1, or "
            "read it: np.asarray(view)"
        )

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        if func in (np.array_equal, np.allclose):  # comparisons read what they compare
            return func(*map(_in_memory, args), **kwargs)
        if func is np.einsum:
            return _einsum(args, kwargs)
        if func is np.inner:
            return _multiplied(labelled_products.inner, args)
        name = NAMES.get(func)
        if name is None:
            called = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
            raise UnsupportedFunctionError(
                f"{called} of a stored tensor is not there; read it: {called}({_read_first(args, kwargs)})"
            )
        if func in (np.shape, np.ndim, np.size):
            alike = np.broadcast_to(np.zeros((), np.bool), self._stored.shape)
            return func(alike, *args[1:], **kwargs)
        given = dict(_signature(func).bind(*args, **kwargs).arguments)
        first, *_ = given
        x = given.pop(first)
        given = {k: v for k, v in given.items() if v is not None and v is not np._NoValue}
        if "correction" in given:  # another name for it
            given["ddof"] = given.pop("correction")
        if name in ("tensordot", "dot") and not isinstance(x, Computing):
            return _turned(name, x, given)
        others = [given.pop("b")] if "b" in given else []
        taken = _taken(name)
        unknown = [k for k in given if k not in taken]
        if unknown or not isinstance(x, Computing):
            raise UnsupportedFunctionError(
                f"np.{name} of a stored tensor takes no {unknown[0] if unknown else first}=; read it: "
                f"np.{name}({_read_first(args, kwargs)})"
            )
        return getattr(x, name)(*others, **given)


def _read_first(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the arguments of a call as they have to be: with stored tensors read, and all else left as it is.

    Examples
    --------
    >>> _read_first([3, [4]], {"axis": 0})
    '..., ..., axis=...'
    """
    found = [_shown(value) for value in args] + [f"{k}={_shown(v)}" for k, v in kwargs.items()]
    return ", ".join(found)


def _shown(value: Any) -> str:
    if isinstance(value, Computing):
        return "ref[...]"
    if isinstance(value, (list, tuple)) and any(isinstance(one, Computing) for one in value):
        return f"[{', '.join([*map(_shown, value[:2]), *['...'][: len(value) > 2]])}]"
    return "..."


def _signature(func: Callable[..., Any]) -> inspect.Signature:
    """Return the parameters of a function of NumPy, which before 2.4 does not tell those of ``dot``."""

    def dot(a: Any, b: Any, out: Any = None) -> None: ...

    return inspect.signature(dot if func is np.dot else func)


def _taken(name: str) -> set[str]:
    """Return the arguments of a method that NumPy's function of that name may give it."""
    return {*inspect.signature(getattr(Computing, name)).parameters} - {"out", "into"}


def _turned(name: str, array: Any, given: dict[str, Any]) -> Any:
    """Return the product of an array with a stored tensor, by that of the tensor with the array."""
    array = array if isinstance(array, SparseTensor) else np.asarray(array)
    stored = given["b"]
    ndim = len(stored._stored.shape)
    if name == "dot":
        axes: Any = ([-1], [max(ndim - 2, 0)]) if array.ndim and ndim else 0
    else:
        axes = given.get("axes", 2)
    if not isinstance(axes, (list, tuple)):
        axes = [*range(array.ndim - axes, array.ndim)], [*range(axes)]
    theirs, mine = ([k] if np.ndim(k) == 0 else [*k] for k in axes)
    found = stored.tensordot(array, (mine, theirs))
    left = array.ndim - len(theirs)
    if not getattr(found, "ndim", 0):
        return found
    return np.moveaxis(found, range(found.ndim - left, found.ndim), range(left))


def _einsum(args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return what np.einsum gives of operands that may be stored."""
    text, operands = arguments(args)
    unknown = [k for k, v in options.items() if k != "optimize" and v is not None]
    if unknown:
        raise UnsupportedFunctionError(
            f"np.einsum({text!r}) of a stored tensor takes no {unknown[0]}=; read it: np.einsum({text!r}, ref[...])"
        )
    return _multiplied(lambda *given: labelled_products.einsum(text, given), operands)


def _multiplied(product: Callable[..., Product], operands: Sequence[Any]) -> Any:
    """Return a product of operands, computed where that one is which is folded."""
    found = product(*map(_factor, operands))
    out = operands[found.number]._computed(found.fold, None, found.stored)
    return (
        out if found.order == tuple(range(getattr(out, "ndim", 0))) else out.transpose(found.order)
    )


def _in_memory(other: Any) -> Any:
    """Return an operand in memory; a stored one is read."""
    if not isinstance(other, Computing):
        return other
    return other._stored.read() if other._stored.is_sparse else np.asarray(other._stored.read())


def _factor(other: Any) -> Any:
    """Return a second factor: of a stored tensor what is selected of it, not read yet."""
    return other._stored if isinstance(other, Computing) else other


def _operand(x: Any) -> Any:
    """Return what a ufunc is given as something that regions can be cut from."""
    if isinstance(x, Computing):
        return x._stored
    if np.isscalar(x):
        return x
    check_unmasked(x)
    sparse = sparse_of(x)
    return operand_array(x) if sparse is None else sparse


_REDUCTIONS: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.minimum: "min",
    np.maximum: "max",
    np.logical_or: "any",
    np.logical_and: "all",
    np.fmin: "nanmin",
    np.fmax: "nanmax",
}
"""Reductions that are a ufunc's own."""

NAMES: dict[Callable[..., Any], str] = {
    getattr(np, name): name
    for name in (
        "sum", "nansum", "prod", "mean", "var", "std", "min", "max", "nanmin", "nanmax", "any", "all",
        "count_nonzero", "argmax", "argmin", "nonzero", "argwhere", "tensordot", "dot", "shape", "ndim",
        "size",
    )
} | {np.linalg.norm: "norm", np.amin: "min", np.amax: "max"}  # fmt: skip
"""Functions of NumPy that a stored tensor has, and their methods."""
