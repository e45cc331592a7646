"""Sparse tensors of SciPy, of the package sparse and of PyTorch, from and to ours."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError
from tensorlake_spark.ops.elements import Elements, nonzero_bits
from tensorlake_spark.tensor.spec import dtype_of

if TYPE_CHECKING:
    from typing_extensions import Self

Array = np.ndarray[Any, Any]

# Old versions of SciPy take others too, and then fail at what one does with them.
_MASKABLE = (list, tuple, np.ma.MaskedArray)
_SCIPY_DTYPES = "?" + np.typecodes["AllInteger"] + "fdFD"


def check_unmasked(value: Any) -> None:
    """Check that no element of an array, or of arrays in lists, is masked: no row can hold a mask.

    Raises
    ------
    InvalidTensorError
        If one is. `numpy.asarray` would take what lies under the mask for its value.

    Examples
    --------
    >>> check_unmasked([np.ma.array([1, 2], mask=[False, True])])
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidTensorError: 1 element is masked; fill it, as values.filled(0) does
    """
    if isinstance(value, np.ma.MaskedArray):
        count = np.count_nonzero(np.ma.getmask(value))
        if count:
            are, them = ("element is", "it") if count == 1 else ("elements are", "them")
            raise InvalidTensorError(f"{count} {are} masked; fill {them}, as values.filled(0) does")
    elif isinstance(value, (list, tuple)):
        for kind in {*map(type, value)}:  # few, while there may be a million numbers
            if issubclass(kind, _MASKABLE):
                for part in value:
                    check_unmasked(part)
                return


class Interchange(Elements):
    """What `SparseTensor` takes from other packages and gives to them."""

    __slots__ = ()

    @classmethod
    def _sparse_of(cls, data: Any) -> Self | None:
        """Return sparse data of any package that we know, and None for anything else."""
        if isinstance(data, cls):
            return data
        scipy_sparse, pydata = map(sys.modules.get, ("scipy.sparse", "sparse"))
        if scipy_sparse is not None and scipy_sparse.issparse(data):
            return cls.from_scipy(data)
        if isinstance(data, getattr(pydata, "SparseArray", ())):
            return cls.from_pydata(data)
        if is_torch(data) and is_sparse_torch(data):
            return cls.from_torch(data)
        return None

    @classmethod
    def from_scipy(cls, matrix: Any) -> Self:
        """Convert a SciPy sparse matrix or array of any format. Duplicates are summed, as in SciPy.

        Examples
        --------
        >>> import scipy.sparse, tensorlake_spark as tl
        >>> tl.SparseTensor.from_scipy(scipy.sparse.csr_array(np.eye(2))).coords.tolist()
        [[0, 1], [0, 1]]
        """
        if not package("scipy").sparse.issparse(matrix):
            raise InvalidTensorError(f"{type(matrix).__name__} is not a sparse array of SciPy")
        coo = matrix.tocoo()
        new: Self = cast("Any", cls)(np.stack(coo.coords), coo.data, coo.shape, duplicates="sum")
        return new

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.coo_array`` that shares no memory. Only for tensors of rank 2.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[1], [0]], [7], (2, 2)).to_scipy().toarray().tolist()
        [[0, 0], [7, 0]]
        """
        if self.ndim != 2:
            raise InvalidTensorError(f"a SciPy matrix has rank 2, this tensor has {self.ndim}")
        if self.dtype.char not in _SCIPY_DTYPES:
            raise InvalidTensorError(
                f"scipy.sparse has no matrices of dtype {self.dtype}; convert it with .astype(...)"
            )
        parts = self._values, tuple(self.coords)
        return package("scipy").sparse.coo_array(parts, self._shape, copy=True)

    @classmethod
    def from_pydata(cls, array: Any) -> Self:
        """Convert an array of the package ``sparse``, of any format. What it does not store has to be zero."""
        if not isinstance(array, package("sparse").SparseArray):
            raise InvalidTensorError(
                f"{type(array).__name__} is not an array of the package sparse"
            )
        if nonzero_bits(np.asarray(array.fill_value)).any():
            raise InvalidTensorError(f"fill value {array.fill_value!r}: only zero can be left out")
        coo = array.asformat("coo")
        new: Self = cast("Any", cls)(coo.coords, coo.data, coo.shape, duplicates="sum")
        return new

    def to_pydata(self) -> Any:
        """Return a ``sparse.COO`` that shares no memory."""
        parts = self.coords.copy(), self._values.copy(), self._shape
        return package("sparse").COO(*parts, has_duplicates=False, sorted=True)

    @classmethod
    def from_torch(cls, tensor: Any) -> Self:
        """Convert a sparse PyTorch tensor of any layout. Duplicates are summed, as in PyTorch."""
        torch = package("torch")
        if not isinstance(tensor, torch.Tensor) or not is_sparse_torch(tensor):
            raise InvalidTensorError(f"{type(tensor).__name__} is not a sparse tensor of PyTorch")
        coo = tensor.detach().to_sparse_coo()
        if coo.dense_dim():
            raise InvalidTensorError(
                f"the last {coo.dense_dim()} axes of the tensor are dense; "
                "tensor.to_dense().to_sparse() makes all of them sparse"
            )
        # Not by coalesce(), which refuses some dtypes and believes every index.
        new: Self = cast("Any", cls)(
            array_of_torch(coo._indices()),
            array_of_torch(coo._values()),
            coo.shape,
            duplicates="sum",
        )
        return new

    def to_torch(self) -> Any:
        """Return a coalesced ``torch.sparse_coo_tensor`` that shares no memory."""
        torch, name = package("torch"), self.dtype.name
        if not isinstance(getattr(torch, name, None), torch.dtype):
            raise InvalidTensorError(f"PyTorch has no dtype {name}; convert it with .astype(...)")
        values = torch.from_numpy(self._values.copy().view(np.uint8)).view(getattr(torch, name))
        indices = torch.from_numpy(self.coords.copy())
        return torch.sparse_coo_tensor(
            indices, values, self._shape, is_coalesced=True, check_invariants=False
        )


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


def is_sparse_torch(tensor: Any) -> bool:
    """Return whether a tensor of PyTorch has one of its sparse layouts."""
    return str(tensor.layout).startswith("torch.sparse_")


def package(name: str) -> Any:
    """Return a package that this one does not need.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"this needs {name}: pip install {name}") from error
