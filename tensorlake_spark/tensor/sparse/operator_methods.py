"""Operators of a sparse tensor, and NumPy's ufuncs of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, UnsupportedFunctionError
from tensorlake_spark.ops import elementwise
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import power_ufunc, refused_dtypes
from tensorlake_spark.tensor.sparse.array_functions import ArrayFunctions
from tensorlake_spark.tensor.sparse.interchange import Interchange

Method = Callable[[Any, Any], Any]

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
"""What ``ufunc.reduce`` is called as a function."""


def _both(ufunc: np.ufunc) -> tuple[Method, Method]:
    """Return the methods for an operator with the tensor on its left, and on its right."""

    def left(self: Any, other: Any) -> Any:
        return self.__array_ufunc__(ufunc, "__call__", self, other)

    def right(self: Any, other: Any) -> Any:
        return self.__array_ufunc__(ufunc, "__call__", other, self)

    return left, right


def _alone(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return self.__array_ufunc__(ufunc, "__call__", self)

    return method


class Arithmetic(Interchange, ArrayFunctions):
    """What makes ``2 * x``, ``x > y`` and ``np.sqrt(x)`` of a sparse tensor.

    There are no methods that work in place: ``x += y`` makes a new tensor.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # of matrices that know no __array_ufunc__, before their own 10
    # Above those of pandas, which would take the tensor for a list of rows.
    __pandas_priority__ = 5000

    __add__, __radd__ = _both(np.add)
    __sub__, __rsub__ = _both(np.subtract)
    __mul__, __rmul__ = _both(np.multiply)
    __truediv__, __rtruediv__ = _both(np.true_divide)
    __floordiv__, __rfloordiv__ = _both(np.floor_divide)
    __mod__, __rmod__ = _both(np.remainder)
    __divmod__, __rdivmod__ = _both(np.divmod)
    _power, __rpow__ = _both(np.power)
    __and__, __rand__ = _both(np.bitwise_and)
    __or__, __ror__ = _both(np.bitwise_or)
    __xor__, __rxor__ = _both(np.bitwise_xor)
    __lshift__, __rlshift__ = _both(np.left_shift)
    __rshift__, __rrshift__ = _both(np.right_shift)
    __lt__, __gt__ = _both(np.less)[0], _both(np.greater)[0]
    __le__, __ge__ = _both(np.less_equal)[0], _both(np.greater_equal)[0]
    __eq__ = _both(np.equal)[0]
    __ne__ = _both(np.not_equal)[0]
    __neg__ = _alone(np.negative)
    __pos__ = _alone(np.positive)
    __abs__ = _alone(np.absolute)
    __invert__ = _alone(np.invert)

    def __pow__(self, other: Any) -> Any:
        ufunc = power_ufunc(self.dtype, other)
        return self._power(other) if ufunc is None else ufunc(self)

    def __bool__(self) -> bool:
        return bool(self._only("the truth of", InvalidTensorError))

    def __int__(self) -> int:
        return int(self._number(int))

    def __float__(self) -> float:
        return float(self._number(float))

    def __complex__(self) -> complex:
        return complex(self._number(complex))

    def _number(self, of: type) -> Any:
        """Return the element of a tensor that has one, if nothing of it is lost as a number of this type."""
        value = self._only(f"{of.__name__}() of")
        if self.dtype.kind in "mM" or (self.dtype.kind == "c" and of is not complex):
            remedy = (
                ".real is its real part"
                if self.dtype.kind == "c"
                else "astype('int64') counts units"
            )
            raise UnsupportedFunctionError(
                f"{of.__name__}() of a sparse tensor of dtype {self.dtype} is not there; {remedy}"
            )
        return value

    def _only(self, what: str, error: type[Exception] = UnsupportedFunctionError) -> Any:
        """Return the element of a tensor that has one."""
        if self.size != 1:
            raise error(
                f"{what} a sparse tensor of shape {self.shape}: it has {self.size} elements, not one"
            )
        return self.values[0] if self.nnz else np.zeros((), self.dtype)[()]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute a ufunc of NumPy: see `tensorlake_spark.ops.elementwise.apply`."""
        if ufunc.signature is not None and method == "__call__":  # np.matmul and its like
            types = {type(x) for x in inputs if hasattr(x, "__array_function__")}
            return self.__array_function__(ufunc, (*types,), inputs, kwargs)
        if method == "reduce" and ufunc in REDUCTIONS:
            axis = kwargs.pop("axis", 0)
            return self.__array_function__(REDUCTIONS[ufunc], (), inputs, {"axis": axis, **kwargs})
        if method not in ("__call__", "outer"):
            raise UnsupportedFunctionError(
                f"np.{ufunc.__name__}.{method} of a sparse tensor is not there; todense() makes an array of it"
            )
        outs = [x for x in kwargs.get("out") or () if not isinstance(x, (np.ndarray, Elements))]
        if any(hasattr(x, "__array_ufunc__") for x in outs):
            return NotImplemented  # a builder writes to itself
        operands = [self._operand(x) for x in inputs]
        if any(x is NotImplemented for x in operands):
            return NotImplemented
        compute = elementwise.apply if method == "__call__" else elementwise.outer
        with refused_dtypes(ufunc, operands):
            return self._wrapped(compute(ufunc, *operands, **kwargs))

    def _operand(self, data: Any) -> Any:
        """Return what can be computed with: elements, an array or a scalar; else NotImplemented."""
        if isinstance(data, (Elements, int, float, complex)):
            return data
        if data is None or isinstance(data, (str, bytes, np.ma.MaskedArray)):
            return NotImplemented
        sparse = self._sparse_of(data)
        if sparse is not None:
            return sparse
        is_array = isinstance(data, (np.ndarray, np.generic)) or hasattr(
            data, "__pandas_priority__"
        )
        if not is_array and hasattr(data, "__array_ufunc__"):
            return NotImplemented  # it knows best
        array = np.asarray(data)
        return NotImplemented if array.dtype.kind == "O" else array
