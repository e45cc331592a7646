"""Reductions of a sparse tensor over axes, as methods.

Without axes left they return a scalar, else a sparse tensor; indices are arrays.
"""

from __future__ import annotations

from typing import Any

from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.reducing import index_reductions, moments, reductions


class ReductionMethods(Elements):
    """What `SparseTensor` has of NumPy's reductions, with NumPy's arguments in NumPy's order.

    Each has the errors of its function in ``ops``; an `out` is refused.
    """

    __slots__ = ()

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the sum over axes, as `numpy.sum`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.sum()
        np.float64(-2.0)
        """
        return self._wrapped(reductions.sum(self, axis, dtype, out, keepdims, initial, where))

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the product over axes, as `numpy.prod`: 0 where an element is not stored.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.prod()
        np.float64(0.0)
        """
        return self._wrapped(reductions.prod(self, axis, dtype, out, keepdims, initial, where))

    def nansum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the sum of what is not NaN, as `numpy.nansum`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.nansum()
        np.float64(-2.0)
        """
        return self._wrapped(reductions.nansum(self, axis, dtype, out, keepdims, initial, where))

    def min(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the smallest element over axes, as `numpy.min`; NaN if there is one.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.min()
        np.float64(-7.0)
        """
        return self._wrapped(reductions.min(self, axis, out, keepdims, initial, where))

    def max(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the largest element over axes, as `numpy.max`; NaN if there is one.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.max()
        np.float64(5.0)
        """
        return self._wrapped(reductions.max(self, axis, out, keepdims, initial, where))

    def nanmin(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the smallest element that is not NaN, as `numpy.nanmin`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.nanmin()
        np.float64(-7.0)
        """
        return self._wrapped(reductions.nanmin(self, axis, out, keepdims, initial, where))

    def nanmax(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the largest element that is not NaN, as `numpy.nanmax`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.nanmax()
        np.float64(5.0)
        """
        return self._wrapped(reductions.nanmax(self, axis, out, keepdims, initial, where))

    def any(
        self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Return whether an element is not zero, over axes, as `numpy.any`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.any()
        np.True_
        """
        return self._wrapped(reductions.any(self, axis, out, keepdims, where))

    def all(
        self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Return whether no element is zero, over axes, as `numpy.all`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.all()
        np.False_
        """
        return self._wrapped(reductions.all(self, axis, out, keepdims, where))

    def count_nonzero(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """Return how many elements are not zero, over axes, as `numpy.count_nonzero`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.count_nonzero()
        np.int64(2)
        """
        return self._wrapped(reductions.count_nonzero(self, axis, keepdims=keepdims))

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """Return the mean over axes, as `numpy.mean`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.mean()
        np.float64(-0.5)
        """
        return self._wrapped(moments.mean(self, axis, dtype, out, keepdims, where=where))

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """Return the variance over axes, as `numpy.var`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.var()
        np.float64(18.25)
        """
        return self._wrapped(moments.var(self, axis, dtype, out, ddof, keepdims, where=where))

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """Return the standard deviation over axes, as `numpy.std`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.std(axis=1).values.tolist()
        [2.5, 3.5]
        """
        return self._wrapped(moments.std(self, axis, dtype, out, ddof, keepdims, where=where))

    def norm(self, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
        """Return a norm of vectors or of matrices, as `numpy.linalg.norm`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.norm(axis=0).values.tolist()
        [7.0, 5.0]
        """
        return self._wrapped(moments.norm(self, ord, axis, keepdims))

    def argmax(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Return the index of the largest element, the first of several, as `numpy.argmax`: an array.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.argmax()
        np.int64(1)
        """
        return self._wrapped(index_reductions.argmax(self, axis, out, keepdims=keepdims))

    def argmin(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Return the index of the smallest element, the first of several, as `numpy.argmin`: an array.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.argmin()
        np.int64(2)
        """
        return self._wrapped(index_reductions.argmin(self, axis, out, keepdims=keepdims))

    def first_index(self, condition: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return the first index at which a condition holds, such as ``(">", 3)`` or `numpy.isnan`; -1 where nowhere.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.first_index(("<", 0), axis=1)
        array([-1,  0])
        """
        return self._wrapped(index_reductions.first_index(self, condition, axis, keepdims=keepdims))

    def __contains__(self, value: Any) -> bool:
        """Return whether an element equals a scalar, also one that is not stored."""
        return bool(self.first_index(("==", value)) >= 0)

    def nonzero(self) -> Any:
        """Return the indices of the elements that are not zero, an array for each axis, as `numpy.nonzero`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.nonzero()
        (array([0, 1]), array([1, 0]))
        """
        return self._wrapped(index_reductions.nonzero(self))

    def argwhere(self) -> Any:
        """Return the coordinates of the elements that are not zero, a row for each, as `numpy.argwhere`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.argwhere().tolist()
        [[0, 1], [1, 0]]
        """
        return self._wrapped(index_reductions.argwhere(self))
