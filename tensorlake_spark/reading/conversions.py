"""What a stored tensor is to Python and to NumPy beside its methods: an array, a number, a truth, a sequence."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError
from tensorlake_spark.rows.metadata import Meta

Number = TypeVar("Number", int, float, complex)


class Selected(Protocol):
    """What of a stored tensor is converted."""

    @property
    def meta(self) -> Meta:
        """The tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the selection."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""

    def read(self) -> Any:
        """Return the elements."""


class Conversions(ABC):
    """``len``, ``iter``, ``bool``, ``int``, ``float``, ``complex``, an index and an array, as NumPy's arrays have them.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> ref = tl.open(tempfile.mkdtemp()).write("x", np.array([[3, 9], [5, 2]]))
    >>> len(ref), [row.tolist() for row in ref], float(ref.view[0, 1]), "abcde"[ref.view[1, 1]]
    (2, [[3, 9], [5, 2]], 9.0, 'c')
    """

    @property
    @abstractmethod
    def _stored(self) -> Selected:
        """What is read of it."""

    @abstractmethod
    def __getitem__(self, key: Any) -> Any: ...

    def __len__(self) -> int:
        if not self._stored.shape:
            raise UnsupportedFunctionError(f"{self._named} has no axis, and so no length")
        return self._stored.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._stored.shape:
            raise UnsupportedFunctionError(
                f"{self._named} has no axis to iterate over; read it: x[()]"
            )
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        shape = self._stored.shape
        if math.prod(shape) != 1:
            raise InvalidTensorError(
                f"the truth of {self._named} of shape {shape} is ambiguous, as it has {math.prod(shape)} elements; "
                "use x.any() or x.all()"
            )
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return self._number("int()", int)

    def __float__(self) -> float:
        return self._number("float()", float)

    def __complex__(self) -> complex:
        return self._number("complex()", complex)

    def __index__(self) -> int:
        return self._number("an index", operator.index)

    def _number(self, what: str, convert: Callable[[Any], Number]) -> Number:
        """Return the only element as a number of Python."""
        shape, dtype = self._stored.shape, self._stored.dtype
        if shape:
            raise UnsupportedFunctionError(
                f"{self._named} of shape {shape} is no number for {what}: only one without axes is; read an element: "
                f"x[{', '.join('0' * len(shape))}]"
            )
        try:
            return convert(np.asarray(self))
        except TypeError as error:
            raise UnsupportedFunctionError(
                f"the element of {self._named}, of dtype {dtype}, is no number for {what}: {error}"
            ) from error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise InvalidTensorError(f"{self._named} cannot become an array without a copy")
        out = np.asarray(self._stored.read())
        return out if dtype is None else out.astype(dtype, copy=False)

    @property
    def _named(self) -> str:
        return f"tensor {self._stored.meta.spec.id!r}"
