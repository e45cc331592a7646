"""Shapes, orders and parts of a sparse tensor, as methods. What they return is canonical."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorlake_spark.ops import comparing, valuewise
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.shapes import diagonals, shaping
from tensorlake_spark.tensor.spec import dtype_name

if TYPE_CHECKING:
    from typing_extensions import Self


class ShapeMethods(Elements):
    """What `SparseTensor` has of NumPy's methods for shapes; each has the errors of its function in ``ops``."""

    __slots__ = ()

    def _like(self, found: Elements) -> Self:
        """Return elements as an object of this class."""
        wrapped: Self = self._wrapped(found)
        return wrapped

    def reshape(self, *shape: Any, order: str = "C") -> Self:
        """Return the tensor in another shape, where one length may be -1, as `numpy.reshape`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.reshape(2, -1).shape
        (2, 2)
        """
        return self._like(shaping.reshape(self, _one(shape), order))

    def ravel(self, order: str = "C") -> Self:
        """Return the tensor with one axis, as `numpy.ravel`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.ravel().coords.tolist()
        [[1, 2]]
        """
        return self._like(shaping.ravel_of(self, order))

    def flatten(self, order: str = "C") -> Self:
        """Return the tensor with one axis, as `ravel` does: nobody can change either.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.flatten().shape
        (4,)
        """
        return self._like(shaping.ravel_of(self, order))

    def transpose(self, *axes: Any) -> Self:
        """Return the tensor with its axes in another order, by default the reverse one.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.transpose(1, 0).values.tolist()
        [-7.0, 5.0]
        """
        return self._like(shaping.transpose(self, _one(axes) if axes else None))

    @property
    def T(self) -> Self:  # noqa: N802
        """The tensor with its axes in the reverse order.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.T.values.tolist()
        [-7.0, 5.0]
        """
        return self._like(shaping.transpose(self))

    @property
    def mT(self) -> Self:  # noqa: N802
        """The tensor with its last two axes exchanged.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.mT.values.tolist()
        [-7.0, 5.0]
        """
        return self._like(shaping.matrix_transpose(self))

    def moveaxis(self, source: Any, destination: Any) -> Self:
        """Return the tensor with axes moved to other places, as `numpy.moveaxis`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.moveaxis(0, -1).values.tolist()
        [-7.0, 5.0]
        """
        return self._like(shaping.moveaxis(self, source, destination))

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Return the tensor with two axes exchanged, as `numpy.swapaxes`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.swapaxes(0, 1).values.tolist()
        [-7.0, 5.0]
        """
        return self._like(shaping.swapaxes(self, axis1, axis2))

    def squeeze(self, axis: Any = None) -> Self:
        """Return the tensor without axes of length 1, all or some, as `numpy.squeeze`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.expand_dims(0).squeeze().shape
        (2, 2)
        """
        return self._like(shaping.squeeze(self, axis))

    def expand_dims(self, axis: Any) -> Self:
        """Return the tensor with new axes of length 1, as `numpy.expand_dims`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.expand_dims((0, -1)).shape
        (1, 2, 2, 1)
        """
        return self._like(shaping.expand_dims(self, axis))

    def flip(self, axis: Any = None) -> Self:
        """Return the tensor with the order along axes reversed, by default along all.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.flip(0).values.tolist()
        [-7.0, 5.0]
        """
        return self._like(shaping.flip(self, axis))

    def roll(self, shift: Any, axis: Any = None) -> Self:
        """Return the tensor with elements moved along axes, and those at the end to the front.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.roll(1).coords.tolist()
        [[1, 1], [0, 1]]
        """
        return self._like(shaping.roll(self, shift, axis))

    def broadcast_to(self, shape: Any) -> Self:
        """Return the tensor repeated along axes of length 1 and along new ones, as `numpy.broadcast_to`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.broadcast_to((3, 2, 2)).nnz
        6
        """
        return self._like(shaping.broadcast_to(self, shape))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Return the diagonals of the matrices in two axes, along a new last axis.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.diagonal(1).values.tolist()
        [5.0]
        """
        return self._like(diagonals.diagonal(self, offset, axis1, axis2))

    def tril(self, k: int = 0) -> Self:
        """Return the lower triangles of the matrices in the last two axes, up to diagonal `k`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.tril().values.tolist()
        [-7.0]
        """
        return self._like(diagonals.tril(self, k))

    def triu(self, k: int = 0) -> Self:
        """Return the upper triangles of the matrices in the last two axes, from diagonal `k` on.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.triu().values.tolist()
        [5.0]
        """
        return self._like(diagonals.triu(self, k))

    def astype(self, dtype: Any, *, casting: Any = "unsafe", copy: bool = True) -> Self:
        """Return the tensor with its values converted; what becomes zero is not stored.

        Parameters
        ----------
        dtype : dtype
            What it becomes.
        casting : {"no", "equiv", "safe", "same_kind", "unsafe"}
            Which conversions are allowed, as in NumPy.
        copy : bool
            Of no effect: a tensor is never written to.

        Raises
        ------
        UnsupportedDtypeError
            If the lake does not store the dtype, or `casting` does not allow the conversion.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.astype("int8").values
        array([ 5, -7], dtype=int8)
        """
        dtype_name(dtype)
        return self._like(valuewise.astype(self, dtype, casting))

    def round(self, decimals: int = 0) -> Self:
        """Return the elements rounded, half to even; what becomes zero is not stored.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> (x / 10).round().values.tolist()
        [-1.0]
        """
        return self._like(valuewise.round(self, decimals))

    def clip(self, min: Any = None, max: Any = None) -> Self:  # noqa: A002
        """Return the elements within bounds, between which zero has to lie, as `numpy.clip`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.clip(-6, 6).values.tolist()
        [5.0, -6.0]
        """
        return self._like(valuewise.clip(self, min, max))

    @property
    def real(self) -> Self:
        """The real parts.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.real.values.tolist()
        [5.0, -7.0]
        """
        return self._like(valuewise.real(self))

    @property
    def imag(self) -> Self:
        """The imaginary parts.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.imag.nnz
        0
        """
        return self._like(valuewise.imag(self))

    def conj(self) -> Self:
        """Return the complex conjugates, as `numpy.conj`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.conj().values.tolist()
        [5.0, -7.0]
        """
        return self._like(valuewise.conj(self))

    def isnan(self) -> Self:
        """Return which elements are NaN, as a tensor of bools.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.isnan().nnz
        0
        """
        return self._like(valuewise.isnan(self))

    def unique(self, return_index: bool = False, return_counts: bool = False) -> Any:
        """Return the distinct values, zero among them, and where each is first and how often, as `numpy.unique`.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [5.0, -7.0], (2, 2))
        >>> x.unique(return_counts=True)
        (array([-7.,  0.,  5.]), array([1, 2, 1]))
        """
        return self._wrapped(comparing.unique(self, return_index, False, return_counts))


def _one(numbers: tuple[Any, ...]) -> Any:
    """Return the numbers that may be given as one sequence or one by one."""
    return numbers[0] if len(numbers) == 1 else numbers
