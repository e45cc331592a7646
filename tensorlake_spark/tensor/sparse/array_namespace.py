"""The Python array API of sparse tensors, version 2023.12, as far as a sparse array can go.

Its functions are NumPy's, which come back to ours; what makes arrays makes sparse tensors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, did_you_mean
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops import valuewise
from tensorlake_spark.ops.elements import Elements, elements_at
from tensorlake_spark.ops.numpy_arguments import axis_of
from tensorlake_spark.ops.shapes import joining

if TYPE_CHECKING:
    from typing_extensions import Self

VERSION = "2023.12"

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
]

CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]

ELEMENTWISE = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "positive",
    "pow",
    "real",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

OTHERS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "broadcast_to",
    "can_cast",
    "concat",
    "count_nonzero",
    "expand_dims",
    "finfo",
    "flip",
    "iinfo",
    "isdtype",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "moveaxis",
    "nonzero",
    "permute_dims",
    "prod",
    "reshape",
    "result_type",
    "roll",
    "squeeze",
    "stack",
    "std",
    "sum",
    "tensordot",
    "tril",
    "triu",
    "unique_counts",
    "unique_values",
    "var",
    "where",
    "zeros_like",
]
"""What is not elementwise and has NumPy's name."""


class ArrayNamespace:
    """What ``x.__array_namespace__()`` returns: functions, dtypes and constants, as attributes.

    Functions that are not there raise AttributeError.

    Examples
    --------
    >>> import tensorlake_spark as tl
    >>> xp = tl.SparseTensor([[1]], [5.0], (3,)).__array_namespace__()
    >>> xp.sum(xp.asarray([0, 2, 5], dtype=xp.float32)), xp.zeros((2, 3))
    (np.float32(7.0), SparseTensor(shape=(2, 3), dtype=float64, nnz=0, density=0))
    """

    __array_api_version__ = VERSION

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        for name in (*DTYPES, *CONSTANTS, *ELEMENTWISE, *OTHERS):
            setattr(self, name, getattr(np, name))

    def __getattr__(self, name: str) -> Any:
        near = did_you_mean(name, vars(self))
        raise AttributeError(
            f"the array API of sparse tensors has no {name!r}{near}; x.todense() is a NumPy array, which has all of it"
        )

    def __repr__(self) -> str:
        return f"<array API {VERSION} of {self._kind.__name__}>"

    def __array_namespace_info__(self) -> ArrayNamespaceInfo:
        """Return what can be asked about the namespace itself."""
        return ArrayNamespaceInfo()

    def asarray(
        self, obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: Any = None
    ) -> Any:
        """Return a sparse tensor, an array or nested lists as a sparse tensor; also sparse arrays of other packages."""
        check_device(device)
        sparse = self._kind._sparse_of(obj)
        x = joining.elements_of(obj if sparse is None else sparse)
        x = x if dtype is None else valuewise.astype(x, dtype)
        return self._kind._trusted(x._coords, x.values, x.shape, x._places)

    def astype(self, x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Any:
        """Return a tensor with its values converted."""
        check_device(device)
        return x.astype(dtype)

    def zeros(self, shape: Any, *, dtype: Any = None, device: str | None = None) -> Any:
        """Return a tensor of zeros."""
        check_device(device)
        lengths = check_shape((shape,) if hasattr(shape, "__index__") else shape)
        values = np.zeros(0, np.float64 if dtype is None else dtype)
        return self._kind._trusted(np.zeros((len(lengths), 0), np.int64), values, lengths)

    empty = zeros

    def eye(
        self,
        n_rows: int,
        n_cols: int | None = None,
        /,
        *,
        k: int = 0,
        dtype: Any = None,
        device: str | None = None,
    ) -> Any:
        """Return a matrix with ones in one diagonal."""
        check_device(device)
        shape = check_shape((n_rows, n_rows if n_cols is None else n_cols))
        rows = np.arange(max(0, -k), max(0, -k, min(shape[0], shape[1] - k)))
        x = elements_at(rows * shape[1] + rows + k, np.ones(len(rows), dtype), shape)
        return self._kind._trusted(None, x.values, shape, x.places)

    def take(self, x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
        """Return the slices at some indices along an axis."""
        if axis is None and x.ndim != 1:
            raise InvalidOptionError(f"take from a tensor of {x.ndim} axes needs an axis")
        along = axis_of(0 if axis is None else axis, x.ndim)
        return x[(slice(None),) * along + (np.asarray(indices),)]

    def vecdot(self, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
        """Return the dot products of vectors that lie along an axis; those of the first are conjugated."""
        return np.sum(np.conj(x1) * x2, axis=axis, dtype=np.result_type(x1.dtype, x2.dtype))


class ArrayNamespaceInfo:
    """What can be asked about the namespace: devices, dtypes, and what it cannot do.

    Examples
    --------
    >>> ArrayNamespaceInfo().default_device()
    'cpu'
    """

    def capabilities(self) -> dict[str, Any]:
        """Return what depends on the library: masks as keys work, shapes are always known."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the only device."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return all devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of what is made without one."""
        check_device(device)
        names = {
            "real floating": "float64",
            "complex floating": "complex128",
            "integral": "int64",
            "indexing": "int64",
        }
        return {use: np.dtype(name) for use, name in names.items()}

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of a kind, by name."""
        check_device(device)
        found = {name: np.dtype(name) for name in DTYPES}
        return {n: d for n, d in found.items() if kind is None or np.isdtype(d, kind)}


class ArrayNamespaceMethods(Elements):
    """The array API's protocol: where an array's functions are, and on which device it lies."""

    __slots__ = ()

    def __array_namespace__(self, *, api_version: str | None = None) -> ArrayNamespace:
        if api_version not in (None, "2021.12", "2022.12", VERSION):
            raise InvalidOptionError(f"array API {api_version!r} is not there; {VERSION} is")
        return _namespace(type(self))  # type: ignore[arg-type]

    @property
    def device(self) -> str:
        """The device on which the tensor lies: always ``"cpu"``.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[1]], [5.0], (3,)).device
        'cpu'
        """
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Self:
        """Return the tensor on a device, of which there is one.

        Raises
        ------
        InvalidOptionError
            For any device but ``"cpu"``.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[1]], [5.0], (3,)).to_device("cpu").nnz
        1
        """
        check_device(device)
        return self


def check_device(device: Any) -> None:
    """Raise InvalidOptionError unless a device is none in particular, or the only one.

    Examples
    --------
    >>> check_device("cpu")
    """
    if device not in (None, "cpu"):
        raise InvalidOptionError(f"no device {device!r}; sparse tensors lie on 'cpu'")


@lru_cache
def _namespace(kind: type[Elements]) -> ArrayNamespace:
    return ArrayNamespace(kind)
