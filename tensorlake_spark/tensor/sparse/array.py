"""SparseTensor: coordinates and values of a tensor's stored elements, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, TensorLakeError
from tensorlake_spark.html_table import html_table
from tensorlake_spark.indexing import AnySelection
from tensorlake_spark.indexing.coords import check_coords, check_shape, order
from tensorlake_spark.indexing.keys.key import Indexer, select, select_orthogonal, select_points
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.ops.elements import nonzero_bits
from tensorlake_spark.ops.slicing import pick
from tensorlake_spark.tensor.sparse.array_functions import ArrayFunctions
from tensorlake_spark.tensor.sparse.array_namespace import ArrayNamespaceMethods
from tensorlake_spark.tensor.sparse.interchange import (
    Interchange,
    array_of_torch,
    check_unmasked,
    is_torch,
)
from tensorlake_spark.tensor.sparse.operator_methods import Arithmetic
from tensorlake_spark.tensor.sparse.product_methods import ProductMethods
from tensorlake_spark.tensor.sparse.reduction_methods import ReductionMethods
from tensorlake_spark.tensor.sparse.shape_methods import ShapeMethods
from tensorlake_spark.tensor.spec import dtype_name, native

if TYPE_CHECKING:
    from tensorlake_spark.tensor.sparse.builder import SparseBuilder

Array = np.ndarray[Any, Any]


class SparseTensor(
    Arithmetic,
    ShapeMethods,
    ReductionMethods,
    ProductMethods,
    ArrayNamespaceMethods,
    Interchange,
    ArrayFunctions,
):
    """A tensor of which only some elements are stored; the others are zero. It cannot be changed.

    An explicit zero is a stored element like any other. Indexing is NumPy's, as for a `TensorRef`. It returns a
    sparse tensor, or a scalar if the key has an integer for every axis.

    Parameters
    ----------
    coords : array_like of int, shape (ndim, nnz)
        Coordinates of the stored elements, in any order.
    values : array_like, shape (nnz,)
        Their values, of any dtype that can be stored.
    shape : sequence of int
        Length of every axis; fewer than 2**63 elements.
    duplicates : {"error", "sum", "last"}
        What to do if a coordinate is given twice: raise an error, add up (in the dtype of `values`), or keep
        the last value.

    Raises
    ------
    InvalidTensorError
        If coordinates are not integers, lie outside of `shape`, or are given twice with ``"error"``. If
        `coords`, `values` and `shape` do not fit each other. For a dtype that no row can hold it is
        UnsupportedDtypeError. The ``from_...`` and ``to_...`` methods also raise it if the other package's data
        is not sparse, or if that package does not know the dtype.
    InvalidOptionError
        If `duplicates` is none of the three.
    MissingDependencyError
        Raised by ``from_...`` and ``to_...`` if the other package is not installed.

    Notes
    -----
    Arrays that fit already are not copied, nor are those of other packages: `coords` that are int64, contiguous
    and in C order (the last axis fastest), and `values` in native byte order. Do not write to them afterwards.

    Examples
    --------
    >>> st = SparseTensor([[0, 2], [1, 0]], [5.0, 7.0], (3, 2))
    >>> st
    SparseTensor(shape=(3, 2), dtype=float64, nnz=2, density=0.333)
    >>> st[::-1].todense().tolist(), st[0, 1]
    ([[7.0, 0.0], [0.0, 0.0], [0.0, 5.0]], np.float64(5.0))
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, coords: Any, values: Any, shape: Sequence[int], *, duplicates: str = "error"
    ) -> None:
        lengths = check_shape(shape)
        places = check_coords(coords, lengths)
        data = array_of(values)
        dtype_name(data.dtype)
        if data.shape != places.shape[1:]:
            raise InvalidTensorError(
                f"values of shape {data.shape} for {places.shape[1]} coordinates; one value each"
            )
        self._set(*order(places, native(data), lengths, duplicates), lengths)

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseTensor._trusted, (self.coords, self._values, self._shape)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a sparse tensor without axes")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a sparse tensor without axes")
        return (self[k] for k in range(self._shape[0]))

    def equals(self, other: Any) -> bool:
        """Return whether shape, dtype, stored elements and their bits are the same.

        NaN equals NaN, and 0.0 does not equal -0.0. ``x == y`` is NumPy's, and compares element with element.

        Examples
        --------
        >>> x = SparseTensor([[1]], [2.5], (3,))
        >>> x.equals(SparseTensor.from_dense([0, 2.5, 0])), x.equals(2 * x)
        (True, False)
        """
        if not isinstance(other, SparseTensor):
            return False
        return (
            (self.shape, self.dtype, self.nnz) == (other.shape, other.dtype, other.nnz)
            and np.array_equal(self.coords, other.coords)
            and np.array_equal(self._values.view(np.uint8), other._values.view(np.uint8))
        )

    def __getitem__(self, key: Any) -> Any:
        return self._pick(select(key, self._shape))

    @property
    def oindex(self) -> Indexer:
        """Orthogonal indexing: ``st.oindex[[0, 2], :, mask]``, every axis on its own.

        Examples
        --------
        >>> SparseTensor.from_dense(np.eye(3)).oindex[[2, 0], [0, 2]].todense().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        return Indexer(lambda key: select_orthogonal(key, self._shape), self._pick)

    @property
    def vindex(self) -> Indexer:
        """Coordinate indexing: ``st.vindex[[0, 2], [1, 5]]`` is two elements; or a mask of the shape.

        Examples
        --------
        >>> SparseTensor.from_dense(np.eye(3)).vindex[[2, 0], [2, 1]].todense().tolist()
        [1.0, 0.0]
        """
        return Indexer(lambda key: select_points(key, self._shape), self._pick)

    def _pick(self, selection: AnySelection) -> Any:
        return self._wrapped(pick(self, selection))

    def builder(self) -> SparseBuilder:
        """Return a builder that begins with these elements: a tensor that may change.

        Examples
        --------
        >>> b = SparseTensor([[1]], [7], (3,)).builder()
        >>> b[0] = 5
        >>> b.build().todense()
        array([5, 7, 0])
        """
        from tensorlake_spark.tensor.sparse.builder import SparseBuilder  # which needs this class

        return SparseBuilder.of(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a sparse tensor cannot become an array without a copy")
        out = self.todense()
        return out if dtype is None else out.astype(dtype, copy=False)

    @classmethod
    def from_dense(cls, array: Any) -> SparseTensor:
        """Return an array as a sparse tensor of the elements whose bits are not all zero: also NaN and -0.0.

        Examples
        --------
        >>> SparseTensor.from_dense(np.array([0.0, -0.0, 3.0])).coords
        array([[1, 2]])
        """
        array = array_of(array)
        dtype_name(array.dtype)
        mask = nonzero_bits(array)
        found = np.flatnonzero(mask)  # and then their coordinates: four times as fast as np.nonzero
        coords = np.empty((array.ndim, len(found)), np.int64)
        if len(found) and array.ndim:
            coords[...] = np.unravel_index(found, array.shape)
        return cls._trusted(coords, native(array[mask]), array.shape)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(shape={self.shape}, dtype={self.dtype}, nnz={self.nnz}, "
            f"density={self.density:.3g})"
        )

    def _repr_html_(self) -> str:
        return html_table(
            {
                "shape": self.shape,
                "dtype": self.dtype,
                "stored": f"{self.nnz} of {self.size} elements, {self.density:.3g}",
                "in memory": size_text(self.nbytes),
            }
        )


def sparse_of(data: Any) -> SparseTensor | None:
    """Return sparse data of any package that we know as a SparseTensor, and None for anything else.

    No package is imported for it: what is not imported has made no data.

    Examples
    --------
    >>> import scipy.sparse
    >>> sparse_of(scipy.sparse.coo_array((2, 3)))
    SparseTensor(shape=(2, 3), dtype=float64, nnz=0, density=0)
    >>> sparse_of(np.eye(2)) is None
    True
    """
    return SparseTensor._sparse_of(data)


def array_of(data: Any, purpose: str = "") -> Array:
    """Return data as one array, as `numpy.asarray` does; also sparse data, and any tensor of PyTorch.

    Raises
    ------
    InvalidTensorError
        If no array can be made of it, or an element is masked; UnsupportedDtypeError for a dtype of PyTorch that no
        row can hold.

    Examples
    --------
    >>> import scipy.sparse
    >>> array_of(scipy.sparse.coo_array(np.eye(2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    sparse = sparse_of(data)
    if sparse is not None:
        return sparse.todense()
    check_unmasked(data)
    try:
        return array_of_torch(data) if is_torch(data) else np.asarray(data)
    except TensorLakeError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidTensorError(
            f"cannot make an array of {type(data).__name__}{purpose}: {error}"
        ) from error
