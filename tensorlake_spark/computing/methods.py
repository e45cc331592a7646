"""The methods of stored tensors that compute, and NumPy's protocols, which come down to them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations import contractions
from tensorlake_spark.computing.operations.block_reductions import norm_axes, reduction
from tensorlake_spark.computing.operations.first_indices import first_index
from tensorlake_spark.computing.operations.index_searches import NonzeroSearch, search
from tensorlake_spark.computing.result_stream import stream_of
from tensorlake_spark.computing.thread_runner import compute
from tensorlake_spark.errors import InvalidOptionError, UnsupportedFunctionError
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing.source import Source, source_of

Array = np.ndarray[Any, Any]


class Computing(ABC):
    """What computes on a stored tensor, block by block: only a few blocks are in memory at a time.

    A method returns what NumPy would return of the array; of a sparse tensor, what `SparseTensor` returns. With
    ``into="id"`` the result becomes a tensor of that name in the lake, by one commit, and the method returns its
    `TensorRef`.
    """

    @property
    @abstractmethod
    def _stored(self) -> Stored:
        """What is computed on."""

    @abstractmethod
    def _written(self, tensor_id: str, source: Source, layout: str) -> Any:
        """Write a new tensor, by one commit, and return a reference to it."""

    def _folded(self, fold: Fold[Any], stored: Stored) -> Any:
        """Return the answer of a fold of a selection: here by threads of this process."""
        return compute(fold, stored)

    def _gathered(self, mapped: Mapped) -> Any:
        """Return an elementwise result in memory: here computed by this process."""
        return mapped.computed()

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the sum over axes, as `numpy.sum`.

        Parameters
        ----------
        axis : None, int or tuple of int
            The axes that go; all by default.
        dtype : dtype, optional
            Of the sum.
        keepdims : bool
            Whether the axes stay, with length 1.
        into : str, optional
            Id of a new tensor that the result becomes.
        initial : scalar, optional
            What the sum begins with.
        where : array_like or SparseTensor of bool
            Which elements take part. It is in memory, and broadcasts to the shape.

        Raises
        ------
        AxisError
            If there is no such axis.
        InvalidTensorError, UnsupportedDtypeError
            If `where` does not broadcast to the shape, or is not of bools.
        TensorExistsError
            If the lake has a tensor of the id `into`.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.arange(6).reshape(2, 3))
        >>> ref.sum(), ref.view[:, 1:].sum(axis=0)
        (np.int64(15), array([5, 7]))
        >>> ref.sum(axis=1, where=[True, False, True])
        array([2, 8])
        """
        return self._reduced("sum", axis, keepdims, into, initial=initial, where=where, dtype=dtype)

    def nansum(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the sum of what is not NaN, as `numpy.nansum`; see `sum`."""
        return self._reduced(
            "nansum", axis, keepdims, into, initial=initial, where=where, dtype=dtype
        )

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the product over axes, as `numpy.prod`; see `sum`."""
        return self._reduced(
            "prod", axis, keepdims, into, initial=initial, where=where, dtype=dtype
        )

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        where: Any = True,
    ) -> Any:
        """Return the mean over axes, as `numpy.mean`; see `sum`."""
        return self._reduced("mean", axis, keepdims, into, where=where, dtype=dtype)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        into: str | None = None,
        *,
        where: Any = True,
    ) -> Any:
        """Return the variance over axes, as `numpy.var`; `ddof` is taken from the number of elements. See `sum`."""
        return self._reduced("var", axis, keepdims, into, where=where, dtype=dtype, ddof=ddof)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        into: str | None = None,
        *,
        where: Any = True,
    ) -> Any:
        """Return the standard deviation over axes, as `numpy.std`; see `var`."""
        return self._reduced("std", axis, keepdims, into, where=where, dtype=dtype, ddof=ddof)

    def min(
        self,
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the smallest element over axes, NaN if there is one, as `numpy.min`; see `sum`.

        Raises
        ------
        ValueError
            NumPy's own, if there is no element, or if there is a `where` without an `initial`.
        """
        return self._reduced("min", axis, keepdims, into, initial=initial, where=where)

    def max(
        self,
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the largest element over axes, NaN if there is one, as `numpy.max`; see `min`."""
        return self._reduced("max", axis, keepdims, into, initial=initial, where=where)

    def nanmin(
        self,
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the smallest element that is not NaN, as `numpy.nanmin`; see `min`."""
        return self._reduced("nanmin", axis, keepdims, into, initial=initial, where=where)

    def nanmax(
        self,
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the largest element that is not NaN, as `numpy.nanmax`; see `min`."""
        return self._reduced("nanmax", axis, keepdims, into, initial=initial, where=where)

    def any(
        self,
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        where: Any = True,
    ) -> Any:
        """Return whether an element is not zero, over axes, as `numpy.any`; see `sum`."""
        return self._reduced("any", axis, keepdims, into, where=where)

    def all(
        self,
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
        *,
        where: Any = True,
    ) -> Any:
        """Return whether no element is zero, over axes, as `numpy.all`; see `sum`."""
        return self._reduced("all", axis, keepdims, into, where=where)

    def count_nonzero(
        self, axis: Any = None, keepdims: bool = False, into: str | None = None
    ) -> Any:
        """Return how many elements are not zero, as `numpy.count_nonzero`; see `sum`.

        Elements are read for it, as zeros may be stored too. How many are stored, `nnz` says without reading.
        """
        found = self._reduced("count_nonzero", axis, keepdims, into)
        is_number = into is None and axis is None and not keepdims
        return int(found) if is_number else found

    def norm(
        self,
        ord: Any = None,  # noqa: A002 - NumPy's name
        axis: Any = None,
        keepdims: bool = False,
        into: str | None = None,
    ) -> Any:
        """Return the norm of vectors along an axis, as `numpy.linalg.norm`; over two axes that of Frobenius.

        Raises
        ------
        UnsupportedFunctionError
            For other norms of matrices.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> lake.write("x", np.array([[3.0, 4.0], [0.0, 2.0]])).norm(axis=1)
        array([5., 2.])
        """
        axis, ord = norm_axes(axis, ord, len(self._stored.shape))  # noqa: A001
        return self._reduced("norm", axis, keepdims, into, ord=ord)

    def argmax(
        self, axis: int | None = None, keepdims: bool = False, into: str | None = None
    ) -> Any:
        """Return where the first largest element is, as `numpy.argmax`: along an axis, or in C order of all.

        Raises
        ------
        ValueError
            NumPy's own, if there is no element.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.array([[3, 9, 4], [5, 2, 5]]))
        >>> ref.argmax(), ref.argmax(axis=1)
        (np.int64(1), array([1, 0]))
        """
        return self._computed(search(self._stored, "argmax", axis, keepdims), into)

    def argmin(
        self, axis: int | None = None, keepdims: bool = False, into: str | None = None
    ) -> Any:
        """Return where the first smallest element is, as `numpy.argmin`; see `argmax`."""
        return self._computed(search(self._stored, "argmin", axis, keepdims), into)

    def first_index(
        self,
        condition: Any,
        axis: int | None = None,
        keepdims: bool = False,
        into: str | None = None,
    ) -> Any:
        """Return the first index along an axis at which a condition holds, in C order of all without one; -1 for none.

        Parameters
        ----------
        condition : (str, value) or callable
            A comparison, such as ``(">", 3)``, or a function that takes an array of values and returns a bool for
            each, such as `numpy.isnan`.
        axis, keepdims, into
            As for `argmax`.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> lake.write("x", np.array([[3, 9, 4], [5, 2, 5]])).first_index((">", 5), axis=1)
        array([ 1, -1])
        """
        fold = first_index(self._stored, condition, axis, keepdims)
        return self._computed(fold, into)

    def nonzero(self) -> tuple[Array, ...]:
        """Return the indices of elements that are not zero, an array for each axis, as `numpy.nonzero`."""
        found: tuple[Array, ...] = self._computed(NonzeroSearch(self._stored.shape), None)
        return found

    def argwhere(self, into: str | None = None) -> Any:
        """Return the indices of elements that are not zero, a row for each, as `numpy.argwhere`."""
        return self._computed(NonzeroSearch(self._stored.shape, stacked=True), into)

    def tensordot(self, other: Any, axes: Any = 2, into: str | None = None) -> Any:
        """Return the product with an array or a sparse tensor, summed over pairs of axes, as `numpy.tensordot`.

        It is sparse where both are, or where nothing is summed with a sparse one; else it is an array.

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
        return self._computed(contractions.tensordot(self._stored, _in_memory(other), axes), into)

    def dot(self, other: Any, into: str | None = None) -> Any:
        """Return the product with an array or a sparse tensor over the last axis, as `numpy.dot`; see `tensordot`."""
        return self._computed(contractions.dot(self._stored, _in_memory(other)), into)

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

        With `into` it goes from the lake to the lake, a region at a time.

        Raises
        ------
        UnsupportedFunctionError
            If the ufunc has several results.
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

    def _reduced(
        self, name: str, axis: Any, keepdims: bool, into: str | None, **options: Any
    ) -> Any:
        given = {key: value for key, value in options.items() if value is not None}
        return self._computed(reduction(self._stored, name, axis, keepdims, **given), into)

    def _computed(self, fold: Fold[Any], into: str | None) -> Any:
        _check_into(into)
        stored = self._stored
        stream = None if into is None else stream_of(fold, stored, self._folded)
        if into is not None and stream is not None:
            return self._written(into, stream, "bsgs" if stream.is_sparse else "ftsf")
        found = self._folded(fold, stored)
        if isinstance(found, Elements):
            found = SparseTensor._trusted(found.coords, found.values, found.shape)
        return (
            found
            if into is None
            else self._written(
                into, source_of(np.asarray(found) if np.isscalar(found) else found), "auto"
            )
        )

    def _mapped(
        self, ufunc: Any, operands: Sequence[Any], options: dict[str, Any], into: str | None
    ) -> Any:
        _check_into(into)
        if not isinstance(ufunc, np.ufunc):
            raise UnsupportedFunctionError(
                f"map takes a ufunc of NumPy, such as np.sqrt, not {ufunc!r:.80}"
            )
        mapped = Mapped.of(ufunc, [_operand(x) for x in operands], options)
        if into is None:
            return self._gathered(mapped)
        return self._written(into, mapped, "bsgs" if mapped.is_sparse else "ftsf")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and all(0 < getattr(x, "ndim", 2) < 3 for x in inputs[1:]):
            return np.dot(*inputs, **options)
        if method == "__call__" and "out" not in options and "where" not in options:
            return self._mapped(ufunc, inputs, options, None)
        name = _REDUCTIONS.get(ufunc) if method == "reduce" else None
        if name and {*options} <= {*inspect.signature(getattr(Computing, name)).parameters}:
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
        name = NAMES.get(func)
        if name is None:
            called = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
            raise UnsupportedFunctionError(
                f"{called} of a stored tensor is not there; read it: {called}(ref[...])"
            )
        if func is np.shape:
            return self._stored.shape
        given = dict(inspect.signature(func).bind(*args, **kwargs).arguments)
        first, *_ = given
        x = given.pop(first)
        given = {k: v for k, v in given.items() if v is not None and v is not np._NoValue}
        if name in ("tensordot", "dot") and not isinstance(x, Computing):
            return _turned(name, x, given)
        others = [given.pop("b")] if "b" in given else []
        known = inspect.signature(getattr(Computing, name)).parameters
        unknown = [k for k in given if k not in known]
        if unknown or not isinstance(x, Computing):
            raise UnsupportedFunctionError(
                f"np.{name} of a stored tensor takes no {unknown[0] if unknown else first}=; read it: np.{name}(ref[...])"
            )
        return getattr(x, name)(*others, **given)


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
    return (
        np.moveaxis(found, range(found.ndim - left, found.ndim), range(left))
        if getattr(found, "ndim", 0)
        else found
    )


def _check_into(into: str | None) -> None:
    if into is not None and not isinstance(into, str):
        raise InvalidOptionError(f"into={into!r:.80} is not the id of a tensor, which is a string")


def _in_memory(other: Any) -> Any:
    """Return an operand in memory; a stored one is read."""
    if not isinstance(other, Computing):
        return other
    return other._stored.read() if other._stored.is_sparse else np.asarray(other._stored.read())


def _operand(x: Any) -> Any:
    """Return what a ufunc is given as something that regions can be cut from."""
    if isinstance(x, Computing):
        return x._stored
    if isinstance(x, SparseTensor) or np.isscalar(x):
        return x
    return np.asarray(x)


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
        "count_nonzero", "argmax", "argmin", "nonzero", "argwhere", "tensordot", "dot", "shape",
    )
} | {np.linalg.norm: "norm", np.amin: "min", np.amax: "max"}  # fmt: skip
"""Functions of NumPy that a stored tensor has, and their methods."""
