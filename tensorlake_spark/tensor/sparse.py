"""SparseTensor: coordinates and values of a tensor's stored elements, in memory."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError, TensorLakeError
from tensorlake_spark.html_table import html_table
from tensorlake_spark.indexing import PointSelection, Selection, locate, place
from tensorlake_spark.indexing.coords import check_coords, check_shape, order, ravel
from tensorlake_spark.indexing.key import Indexer, select, select_orthogonal, select_points
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.tensor.spec import dtype_name, dtype_of, native

Array = np.ndarray[Any, Any]

# Old versions of SciPy take others too, and then fail at what one does with them.
_SCIPY_DTYPES = "?" + np.typecodes["AllInteger"] + "fdFD"


class SparseTensor:
    """A tensor of which only some elements are stored; the others are zero. It cannot be changed.

    An explicit zero is a stored element like any other. Indexing works as for a `TensorRef`. It returns a
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

    __slots__ = ("__weakref__", "_coords", "_shape", "_values")
    __hash__ = None  # type: ignore[assignment]

    _coords: Array
    _values: Array
    _shape: tuple[int, ...]

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

    @classmethod
    def _trusted(cls, coords: Array, values: Array, shape: tuple[int, ...]) -> SparseTensor:
        """Make one of what is known to be right: sorted int64 coordinates, native values, Python ints."""
        out = object.__new__(cls)
        out._set(coords, values, shape)
        return out

    def _set(self, coords: Array, values: Array, shape: tuple[int, ...]) -> None:
        # Views, for the flag belongs to the caller's arrays.
        self._coords = np.ascontiguousarray(coords).view()
        self._values = np.ascontiguousarray(values).view()
        self._coords.flags.writeable = self._values.flags.writeable = False
        self._shape = shape

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseTensor._trusted, (self._coords, self._values, self._shape)

    @property
    def coords(self) -> Array:
        """Coordinates of the stored elements: int64, shape (ndim, nnz), in C order, read-only."""
        return self._coords

    @property
    def values(self) -> Array:
        """Values of the stored elements, shape (nnz,), read-only."""
        return self._values

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in the machine's byte order."""
        dtype: np.dtype[Any] = self._values.dtype
        return dtype

    @property
    def nnz(self) -> int:
        """Number of stored elements, explicit zeros among them."""
        return len(self._values)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        return math.prod(self._shape)

    @property
    def density(self) -> float:
        """Share of the elements that are stored; 0 for a tensor without elements."""
        return self.nnz / self.size if self.size else 0.0

    @property
    def nbytes(self) -> int:
        """Bytes in memory of coordinates and values."""
        return self._coords.nbytes + self._values.nbytes

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a sparse tensor without axes")
        return self._shape[0]

    def __eq__(self, other: object) -> Any:
        """Compare shape, dtype, stored elements and their bits: NaN equals NaN, and 0.0 does not equal -0.0."""
        if not isinstance(other, SparseTensor):
            return NotImplemented
        return (
            (self.shape, self.dtype, self.nnz) == (other.shape, other.dtype, other.nnz)
            and np.array_equal(self._coords, other._coords)
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

    def _pick(self, selection: Selection | PointSelection) -> Any:
        take, out = locate(selection, self._coords)
        if selection.is_scalar:
            return self._values[take[0]] if len(take) else np.zeros((), self.dtype)[()]
        # Index arrays that repeat indices can ask for more elements than the tensor has.
        shape = check_shape(selection.result_shape)
        values = self._values if out is self._coords else self._values[take]
        return SparseTensor._trusted(*order(place(selection, out), values, shape), shape)

    def astype(self, dtype: Any) -> SparseTensor:
        """Return the tensor with its values converted. Values that become zero stay stored.

        Examples
        --------
        >>> SparseTensor([[1]], [2.5], (3,)).astype("int8").values
        array([2], dtype=int8)
        """
        dtype_name(np.dtype(dtype))
        values = native(self._values.astype(dtype, copy=False))
        return SparseTensor._trusted(self._coords, values, self._shape)

    def todense(self) -> Array:
        """Return the tensor as one array.

        Examples
        --------
        >>> SparseTensor([[1]], [7], (3,)).todense()
        array([0, 7, 0])
        """
        out = np.zeros(self._shape, self.dtype)
        out.reshape(-1)[ravel(self._coords, self._shape)] = self._values
        return out

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
        mask = nonzero(array)
        found = np.flatnonzero(mask)  # and then their coordinates: four times as fast as np.nonzero
        coords = np.empty((array.ndim, len(found)), np.int64)
        if len(found) and array.ndim:
            coords[...] = np.unravel_index(found, array.shape)
        return cls._trusted(coords, native(array[mask]), array.shape)

    @classmethod
    def from_scipy(cls, matrix: Any) -> SparseTensor:
        """Convert a SciPy sparse matrix or array of any format. Duplicates are summed, as in SciPy.

        Examples
        --------
        >>> import scipy.sparse
        >>> SparseTensor.from_scipy(scipy.sparse.csr_array(np.eye(2))).coords.tolist()
        [[0, 1], [0, 1]]
        """
        if not _package("scipy").sparse.issparse(matrix):
            raise InvalidTensorError(f"{type(matrix).__name__} is not a sparse array of SciPy")
        coo = matrix.tocoo()
        return cls(np.stack(coo.coords), coo.data, coo.shape, duplicates="sum")

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.coo_array`` that shares no memory. Only for tensors of rank 2.

        Examples
        --------
        >>> SparseTensor([[1], [0]], [7], (2, 2)).to_scipy().toarray().tolist()
        [[0, 0], [7, 0]]
        """
        if self.ndim != 2:
            raise InvalidTensorError(f"a SciPy matrix has rank 2, this tensor has {self.ndim}")
        if self.dtype.char not in _SCIPY_DTYPES:
            raise InvalidTensorError(
                f"scipy.sparse has no matrices of dtype {self.dtype}; convert it with .astype(...)"
            )
        parts = self._values, tuple(self._coords)
        return _package("scipy").sparse.coo_array(parts, self._shape, copy=True)

    @classmethod
    def from_pydata(cls, array: Any) -> SparseTensor:
        """Convert an array of the package ``sparse``, of any format. What it does not store has to be zero."""
        if not isinstance(array, _package("sparse").SparseArray):
            raise InvalidTensorError(
                f"{type(array).__name__} is not an array of the package sparse"
            )
        if nonzero(np.asarray(array.fill_value)).any():
            raise InvalidTensorError(f"fill value {array.fill_value!r}: only zero can be left out")
        coo = array.asformat("coo")
        return cls(coo.coords, coo.data, coo.shape, duplicates="sum")

    def to_pydata(self) -> Any:
        """Return a ``sparse.COO`` that shares no memory."""
        parts = self._coords.copy(), self._values.copy(), self._shape
        return _package("sparse").COO(*parts, has_duplicates=False, sorted=True)

    @classmethod
    def from_torch(cls, tensor: Any) -> SparseTensor:
        """Convert a sparse PyTorch tensor of any layout. Duplicates are summed, as in PyTorch."""
        torch = _package("torch")
        if not isinstance(tensor, torch.Tensor) or not _is_sparse_torch(tensor):
            raise InvalidTensorError(f"{type(tensor).__name__} is not a sparse tensor of PyTorch")
        coo = tensor.detach().to_sparse_coo()
        if coo.dense_dim():
            raise InvalidTensorError(
                f"the last {coo.dense_dim()} axes of the tensor are dense; "
                "tensor.to_dense().to_sparse() makes all of them sparse"
            )
        # Not by coalesce(), which refuses some dtypes and believes every index.
        return cls(array_of(coo._indices()), array_of(coo._values()), coo.shape, duplicates="sum")

    def to_torch(self) -> Any:
        """Return a coalesced ``torch.sparse_coo_tensor`` that shares no memory."""
        torch, name = _package("torch"), self.dtype.name
        if not isinstance(getattr(torch, name, None), torch.dtype):
            raise InvalidTensorError(f"PyTorch has no dtype {name}; convert it with .astype(...)")
        values = torch.from_numpy(self._values.copy().view(np.uint8)).view(getattr(torch, name))
        indices = torch.from_numpy(self._coords.copy())
        return torch.sparse_coo_tensor(
            indices, values, self._shape, is_coalesced=True, check_invariants=False
        )

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
    if isinstance(data, SparseTensor):
        return data
    scipy_sparse, pydata = map(sys.modules.get, ("scipy.sparse", "sparse"))
    if scipy_sparse is not None and scipy_sparse.issparse(data):
        return SparseTensor.from_scipy(data)
    if isinstance(data, getattr(pydata, "SparseArray", ())):
        return SparseTensor.from_pydata(data)
    if is_torch(data) and _is_sparse_torch(data):
        return SparseTensor.from_torch(data)
    return None


def array_of(data: Any, purpose: str = "") -> Array:
    """Return data as one array, as `numpy.asarray` does; also sparse data, and any tensor of PyTorch.

    Raises
    ------
    InvalidTensorError
        If no array can be made of it; UnsupportedDtypeError for a dtype of PyTorch that no row can hold.

    Examples
    --------
    >>> import scipy.sparse
    >>> array_of(scipy.sparse.coo_array(np.eye(2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    sparse = sparse_of(data)
    if sparse is not None:
        return sparse.todense()
    try:
        return array_of_torch(data) if is_torch(data) else np.asarray(data)
    except TensorLakeError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidTensorError(
            f"cannot make an array of {type(data).__name__}{purpose}: {error}"
        ) from error


def array_of_torch(tensor: Any, force: bool = True) -> Array:
    """Return the array over a dense tensor of PyTorch, by force a copy from any device and without its gradient."""
    torch, dtype = sys.modules["torch"], dtype_of(str(tensor.dtype).removeprefix("torch."))
    # bfloat16 and float8 as integers: NumPy knows them through ml_dtypes only, PyTorch not even so.
    if dtype.isbuiltin != 1:
        tensor = tensor.view(torch.uint8 if dtype.itemsize == 1 else torch.int16)
    array: Array = tensor.numpy(force=force)
    return array.view(dtype)


def is_torch(data: Any) -> bool:
    """Return whether data is a tensor of PyTorch; no package is imported for it."""
    return isinstance(data, getattr(sys.modules.get("torch"), "Tensor", ()))


def _is_sparse_torch(tensor: Any) -> bool:
    return str(tensor.layout).startswith("torch.sparse_")


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"this needs {name}: pip install {name}") from error


def nonzero(array: Array) -> Array:
    """Return for each element whether its bits are not all zero: NaN's are not, and -0.0's neither.

    Examples
    --------
    >>> nonzero(np.array([0.0, -0.0, 3.0])).tolist()
    [False, True, True]
    """
    # Each part of a complex number by itself: views of those need no array without gaps.
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    first, *second = (part.view(f"u{part.itemsize}") != 0 for part in parts)
    return np.asarray(first | second[0] if second else first)
