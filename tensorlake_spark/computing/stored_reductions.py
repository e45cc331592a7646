"""Reductions of a stored tensor as methods: sums, extremes, norms, and positions of elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import AxesFold, Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.block_reductions import norm_axes, reduction
from tensorlake_spark.computing.operations.first_indices import first_index
from tensorlake_spark.computing.operations.index_searches import NonzeroSearch, search
from tensorlake_spark.computing.result_stream import stream_of
from tensorlake_spark.computing.thread_runner import compute
from tensorlake_spark.computing.writing_results import check_into
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import number_of, refuse_out
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.writing.source import Source, source_of

Array = np.ndarray[Any, Any]


class ReductionMethods(ABC):
    """What reduces a stored tensor, block by block, and what every method needs for it."""

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

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the sum over axes, as `numpy.sum`.

        Parameters
        ----------
        axis : None, int or tuple of int
            The axes that go; all by default.
        dtype : dtype, optional
            Of the sum.
        out : None
            There is none: the result is returned, or goes `into` the lake.
        keepdims : bool
            Whether the axes stay, with length 1.
        initial : scalar, optional
            What the sum begins with.
        where : array_like or SparseTensor of bool
            Which elements take part. It is in memory, and broadcasts to the shape. Along the axes that go, only the
            range in which it chooses something is read.
        into : str, optional
            Id of a new tensor that the result becomes.

        Raises
        ------
        AxisError
            If there is no such axis. InvalidKeyTypeError if `axis` is neither an integer nor a tuple of them.
        UnsupportedFunctionError
            For an `out`.
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
        return self._reduced(
            "sum", axis, keepdims, into, out, initial=initial, where=where, dtype=dtype
        )

    def nansum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the sum of what is not NaN, as `numpy.nansum`; see `sum`."""
        return self._reduced(
            "nansum", axis, keepdims, into, out, initial=initial, where=where, dtype=dtype
        )

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the product over axes, as `numpy.prod`; see `sum`."""
        return self._reduced(
            "prod", axis, keepdims, into, out, initial=initial, where=where, dtype=dtype
        )

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
        into: str | None = None,
    ) -> Any:
        """Return the mean over axes, as `numpy.mean`; see `sum`."""
        return self._reduced("mean", axis, keepdims, into, out, where=where, dtype=dtype)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        into: str | None = None,
    ) -> Any:
        """Return the variance over axes, as `numpy.var`; `ddof` is taken from the number of elements. See `sum`."""
        given = {"where": where, "dtype": dtype, "ddof": number_of(ddof, "ddof")}
        return self._reduced("var", axis, keepdims, into, out, **given)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        into: str | None = None,
    ) -> Any:
        """Return the standard deviation over axes, as `numpy.std`; see `var`."""
        given = {"where": where, "dtype": dtype, "ddof": number_of(ddof, "ddof")}
        return self._reduced("std", axis, keepdims, into, out, **given)

    def min(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the smallest element over axes, NaN if there is one, as `numpy.min`; see `sum`.

        Raises
        ------
        InvalidTensorError
            A ValueError, as NumPy's: if there is no element, or a `where`, without an `initial`.
        NumberOverflowError
            If the dtype does not hold `initial`.
        """
        return self._reduced("min", axis, keepdims, into, out, initial=initial, where=where)

    def max(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the largest element over axes, NaN if there is one, as `numpy.max`; see `min`."""
        return self._reduced("max", axis, keepdims, into, out, initial=initial, where=where)

    def nanmin(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the smallest element that is not NaN, as `numpy.nanmin`; see `min`."""
        return self._reduced("nanmin", axis, keepdims, into, out, initial=initial, where=where)

    def nanmax(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
        *,
        into: str | None = None,
    ) -> Any:
        """Return the largest element that is not NaN, as `numpy.nanmax`; see `min`."""
        return self._reduced("nanmax", axis, keepdims, into, out, initial=initial, where=where)

    def any(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
        into: str | None = None,
    ) -> Any:
        """Return whether an element is not zero, over axes, as `numpy.any`; see `sum`."""
        return self._reduced("any", axis, keepdims, into, out, where=where)

    def all(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
        into: str | None = None,
    ) -> Any:
        """Return whether no element is zero, over axes, as `numpy.all`; see `sum`."""
        return self._reduced("all", axis, keepdims, into, out, where=where)

    def count_nonzero(
        self, axis: Any = None, *, keepdims: bool = False, into: str | None = None
    ) -> Any:
        """Return how many elements are not zero, as `numpy.count_nonzero`; see `sum`.

        Elements are read for it, as zeros may be stored too. How many are stored, `nnz` says without reading.
        """
        return self._reduced("count_nonzero", axis, keepdims, into)

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
        self,
        axis: int | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        into: str | None = None,
    ) -> Any:
        """Return where the first largest element is, as `numpy.argmax`: along an axis, or in C order of all.

        Raises
        ------
        InvalidTensorError
            A ValueError, as NumPy's, if there is no element.
        InvalidKeyTypeError
            If `axis` is not an integer, such as a tuple. UnsupportedFunctionError for an `out`.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> lake = tl.open(tempfile.mkdtemp())
        >>> ref = lake.write("x", np.array([[3, 9, 4], [5, 2, 5]]))
        >>> ref.argmax(), ref.argmax(axis=1)
        (np.int64(1), array([1, 0]))
        """
        _refuse_out(out)
        return self._computed(search(self._stored, "argmax", axis, keepdims), into)

    def argmin(
        self,
        axis: int | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        into: str | None = None,
    ) -> Any:
        """Return where the first smallest element is, as `numpy.argmin`; see `argmax`."""
        _refuse_out(out)
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

    def __contains__(self, value: Any) -> bool:
        """Return whether an element equals a scalar, also one that is not stored."""
        return bool(self.first_index(("==", value)) >= 0)

    def nonzero(self) -> tuple[Array, ...]:
        """Return the indices of elements that are not zero, an array for each axis, as `numpy.nonzero`.

        Raises
        ------
        InvalidTensorError
            If there is no axis.
        """
        if not self._stored.shape:
            raise InvalidTensorError("nonzero of a tensor without axes; argwhere() takes one")
        found: tuple[Array, ...] = self._computed(NonzeroSearch(self._stored.shape), None)
        return found

    def argwhere(self, into: str | None = None) -> Any:
        """Return the indices of elements that are not zero, a row for each, as `numpy.argwhere`."""
        return self._computed(NonzeroSearch(self._stored.shape, stacked=True), into)

    def _reduced(
        self,
        name: str,
        axis: Any,
        keepdims: bool,
        into: str | None,
        out: None = None,
        **options: Any,
    ) -> Any:
        _refuse_out(out)
        given = {key: value for key, value in options.items() if value is not None}
        stored = self._stored
        fold: Fold[Any] = reduction(stored, name, axis, keepdims, **given)
        if isinstance(fold, AxesFold) and fold.mask is not None and stored.has_blocks:
            key = fold.mask.span(fold.axes)  # beyond it nothing takes part, so that it is not read
            fold, stored = fold.within(key), stored.part(key)
        return self._computed(fold, into, stored)

    def _computed(self, fold: Fold[Any], into: str | None, stored: Stored | None = None) -> Any:
        stored = self._stored if stored is None else stored
        check_into(stored.snapshot, into)
        stream = None if into is None else stream_of(fold, stored, self._folded)
        if into is not None and stream is not None:
            return self._written(into, stream, "bsgs" if stream.is_sparse else "ftsf")
        found = self._folded(fold, stored)
        if isinstance(found, Elements):
            found = SparseTensor._trusted(found._coords, found.values, found.shape, found._places)
        if into is None:
            return found
        source = source_of(np.asarray(found) if np.isscalar(found) else found)
        return self._written(into, source, "auto")


def _refuse_out(out: Any) -> None:
    refuse_out(out, "stored tensors", 'use what is returned, or into="id", which stores it')
