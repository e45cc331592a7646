"""Elements: the stored elements of a sparse tensor, which every operation takes and gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing.coords import order, ravel, unravel

if TYPE_CHECKING:
    from typing_extensions import Self

Array = np.ndarray[Any, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


class Elements:
    """Coordinates and values of a tensor's stored elements, in C order, no coordinate twice; the others are zero.

    It is the base of `SparseTensor`, so that an operation takes one of those as it is. It cannot be changed.
    What an operation returns is *canonical*: also without explicit zeros (`canonical` drops them).

    Examples
    --------
    >>> some = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([5.0, 7.0]), (3, 2))
    >>> some.places.tolist(), some.nnz
    ([1, 4], 2)
    """

    __slots__ = ("__weakref__", "_cached", "_coords", "_places", "_shape", "_values")

    # One of the two may be missing until it is asked for: many operations need only places, which are cheaper.
    _coords: Array | None
    _places: Array | None
    _values: Array
    _shape: tuple[int, ...]
    _cached: dict[Any, Any]

    @classmethod
    def _trusted(
        cls,
        coords: Array | None,
        values: Array,
        shape: tuple[int, ...],
        places: Array | None = None,
    ) -> Self:
        """Make one of what is known to be right: sorted int64 coordinates or places, native values, Python ints."""
        out = object.__new__(cls)
        out._set(coords, values, shape, places)
        return out

    def _set(
        self,
        coords: Array | None,
        values: Array,
        shape: tuple[int, ...],
        places: Array | None = None,
    ) -> None:
        self._coords = None if coords is None else _locked(coords)
        self._places = None if places is None else _locked(places)
        self._values = _locked(values)
        self._shape = shape
        self._cached = {}

    @property
    def coords(self) -> Array:
        """Coordinates of the stored elements: int64, shape (ndim, nnz), in C order, read-only."""
        if self._coords is None:
            self._coords = _locked(unravel(self.places, self._shape))
        return self._coords

    @property
    def values(self) -> Array:
        """Values of the stored elements, shape (nnz,), read-only."""
        return self._values

    @property
    def places(self) -> Array:
        """Places of the stored elements in C order: int64, shape (nnz,), ascending, read-only; computed once."""
        if self._places is None:
            self._places = _locked(ravel(self.coords, self._shape))
        return self._places

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
        return 8 * self.ndim * self.nnz + self._values.nbytes

    def todense(self) -> Array:
        """Return the tensor as one array.

        Raises
        ------
        InvalidTensorError
            If no array can be so large.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[1]], [7], (3,)).todense()
        array([0, 7, 0])
        """
        nbytes = self.size * self.dtype.itemsize
        if nbytes > np.iinfo(np.intp).max:
            raise InvalidTensorError(
                f"a dense array of shape {self._shape} and dtype {self.dtype} would take {nbytes} bytes, and no array "
                f"takes more than {np.iinfo(np.intp).max}; take a part of the tensor"
            )
        out: Array = np.zeros(self._shape, self.dtype)
        out.reshape(-1)[self.places] = self._values
        return out

    def _wrapped(self, result: Any) -> Any:
        """Return the elements of a result as an object of this class, also in tuples and lists; all else as it is."""
        if isinstance(result, (tuple, list)) and any(isinstance(r, Elements) for r in result):
            return type(result)(self._wrapped(r) for r in result)
        if not isinstance(result, Elements) or isinstance(result, type(self)):
            return result
        out = self._trusted(result._coords, result._values, result._shape, result._places)
        out._cached = result._cached
        return out


def in_class_of_operands(function: Function) -> Function:
    """Have a function give elements in the class of the first ones that it takes, as what users call must.

    Examples
    --------
    >>> import tensorlake_spark as tl
    >>> same = in_class_of_operands(lambda x: canonical(x.coords, x.values, x.shape))
    >>> same(tl.SparseTensor([[1]], [7], (3,)))
    SparseTensor(shape=(3,), dtype=int64, nnz=1, density=0.333)
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        for given in (*args, *options.values()):
            for x in given if isinstance(given, (list, tuple)) else (given,):
                if isinstance(x, Elements):
                    return x._wrapped(found)
        return found

    return cast(Function, call)


def _locked(array: Array) -> Array:
    """Return a view that cannot be written to, for the flag belongs to the caller's array."""
    view: Array = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def canonical(
    coords: Array,
    values: Array,
    shape: tuple[int, ...],
    duplicates: str = "error",
    places: Array | None = None,
) -> Elements:
    """Return elements in C order, each coordinate once, without zeros. NaN stays, -0.0 goes: it equals zero.

    Parameters
    ----------
    coords : int64 ndarray, shape (ndim, n)
        Within `shape`, in any order.
    values : ndarray, shape (n,)
        What belongs to them.
    shape : tuple of int
        Fewer than 2**63 elements.
    duplicates : {"error", "sum", "last"}
        What becomes of a coordinate that is given twice.
    places : int64 ndarray, optional
        Their places in C order, ascending, each once. Given, `coords` are known to be in that order.

    Examples
    --------
    >>> canonical(np.array([[4, 1, 4]]), np.array([5, 3, -5]), (9,), "sum").coords.tolist()
    [[1]]
    """
    if places is None:
        coords, values = order(coords, values, shape, duplicates)
    return nonzero_elements(coords, values, shape, places)


def elements_at(places: Array, values: Array, shape: tuple[int, ...]) -> Elements:
    """Return the canonical elements of ascending places in C order, each of them once.

    Their coordinates are computed when they are asked for.

    Examples
    --------
    >>> elements_at(np.array([1, 4]), np.array([5, 0]), (3, 2)).coords.tolist()
    [[0], [1]]
    """
    return nonzero_elements(None, values, shape, places)


def nonzero_elements(
    coords: Array | None, values: Array, shape: tuple[int, ...], places: Array | None
) -> Elements:
    """Return the elements that are not zero, of some in C order, each of them once, by coordinates, places or both.

    Examples
    --------
    >>> nonzero_elements(np.array([[0, 2]]), np.array([0, 7]), (3,), None).coords.tolist()
    [[2]]
    """
    mask = nonzero(values)
    if not mask.all():
        kept = np.flatnonzero(mask)  # numbers are quicker to take than those of a mask
        values = values[kept]
        coords = None if coords is None else coords.take(kept, axis=1)
        places = None if places is None else places[kept]
    return Elements._trusted(coords, values, shape, places)


def nonzero(array: Array) -> Array:
    """Return for each element whether it differs from zero: NaN and NaT do, -0.0 does not.

    Examples
    --------
    >>> nonzero(np.array([0.0, -0.0, np.nan])).tolist()
    [False, False, True]
    """
    # A zero of the dtype: a date is unlike every number, and booleans need not become integers.
    return np.asarray(array != np.zeros((), array.dtype))


def without_zeros(elements: Elements) -> Elements:
    """Return elements without those that are stored and zero; themselves where there is none.

    Examples
    --------
    >>> without_zeros(Elements._trusted(np.array([[0, 2]]), np.array([0, 7]), (3,))).coords.tolist()
    [[2]]
    """
    if elements._cached.get("canonical"):
        return elements
    found = nonzero_elements(elements._coords, elements.values, elements.shape, elements._places)
    if found.nnz < elements.nnz:
        return found
    elements._cached["canonical"] = True
    return elements


def known_canonical(
    coords: Array | None, values: Array, shape: tuple[int, ...], places: Array | None = None
) -> Elements:
    """Return elements of which none is zero, so that nobody has to look for zeros again.

    Examples
    --------
    >>> x = known_canonical(np.array([[2]]), np.array([7]), (3,))
    >>> without_zeros(x) is x
    True
    """
    out = Elements._trusted(coords, values, shape, places)
    out._cached["canonical"] = True
    return out


def nonzero_bits(array: Array) -> Array:
    """Return for each element whether its bits are not all zero: NaN's are not, and -0.0's neither.

    Examples
    --------
    >>> nonzero_bits(np.array([0.0, -0.0, 3.0])).tolist()
    [False, True, True]
    """
    # Each part of a complex number by itself: views of those need no array without gaps.
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    first, *second = (part.view(f"u{part.itemsize}") != 0 for part in parts)
    return np.asarray(first | second[0] if second else first)
