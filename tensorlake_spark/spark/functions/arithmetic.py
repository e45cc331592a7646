"""NumPy's operations on stacks: every array has a first axis more, along which the rows lie."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import select_simple
from tensorlake_spark.spark.functions.decoding import check_runs
from tensorlake_spark.spark.functions.slice_predicate import parts_of
from tensorlake_spark.spark.functions.tensor_stacks import Numbers
from tensorlake_spark.tensor.spec import converted, dtype_of

Array = np.ndarray[Any, Any]

_PIECE = 1 << 15  # elements: as float64 they fit a core's cache


def _check_listed(what: str, given: Any) -> None:
    """Raise InvalidTensorError for a number of SQL, which comes as a column of them, in the place of an array."""
    if isinstance(given, Numbers):
        raise InvalidTensorError(f"{what} are an array of integers; write array(0), not 0")


def _axes(x: Array, axes: Sequence[int] | None) -> tuple[int, ...]:
    """Return axes of a tensor as axes of a stack; all of them for none."""
    ndim = x.ndim - 1
    if axes is None:
        return tuple(range(1, x.ndim))
    _check_listed("axes", axes)
    for axis in axes:
        if axis is None or not -ndim <= axis < ndim:
            raise InvalidTensorError(f"axis {axis} is out of bounds for shape {x.shape[1:]}")
    return tuple(axis % ndim + 1 for axis in axes)


def _real(x: Array) -> Array:
    """Return the elements as float64."""
    if x.dtype.kind in "cmM":
        raise InvalidTensorError(f"elements of dtype {x.dtype} are not real numbers")
    return x.astype(np.float64)


def _flat(x: Array) -> Array:
    return x.reshape(len(x), math.prod(x.shape[1:]))


def _inner(x: Array, y: Array) -> Array:
    return np.asarray(np.einsum("ni,ni->n", x, y))


def _added(function: Callable[..., Sequence[Array]], *stacks: Array) -> list[Array]:
    """Add up what a function makes of tensors of one shape, by pieces: float64 copies of whole ones are slow."""
    if len({x.shape for x in stacks}) > 1:
        shapes = " and ".join(str(x.shape[1:]) for x in stacks)
        raise InvalidTensorError(f"shapes {shapes} differ")
    flat = [_flat(x) for x in stacks]
    count, size = flat[0].shape
    step = max(1, _PIECE // max(1, size))
    out = []
    for row in range(0, count, step):
        parts = [
            function(*(_real(x[row : row + step, at : at + _PIECE]) for x in flat))
            for at in range(0, max(1, size), _PIECE)
        ]
        out.append(np.sum(parts, axis=0))
    return list(np.concatenate(out, axis=1))


def _sizes(x: Array) -> Array:
    """Return the elements as float64, of complex ones their distance from zero."""
    return np.abs(x.astype(np.complex128)) if x.dtype.kind == "c" else _real(x)


def _norm(x: Array, axis: tuple[int, ...]) -> Array:
    x = _sizes(x)
    return np.asarray(np.sqrt(np.sum(x * x, axis=axis)))


def _mean(x: Array, axis: tuple[int, ...], dtype: Any = None) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of no elements it is NaN
        return np.asarray(np.mean(x, axis=axis, dtype=dtype))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": _mean, "min": np.min, "max": np.max, "norm": _norm,
}  # fmt: skip
_ADDING = ("sum", "mean")


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether elements are real floats; NumPy counts those of ml_dtypes, such as bfloat16, as void."""
    return dtype.kind in "fV"


def reduction(name: str) -> Callable[..., Array]:
    """Return the function that makes one number of each tensor, as float64."""

    def reduce(x: Array) -> Array:
        if name == "norm":
            x = _sizes(x) if x.dtype.kind == "c" else x
            return np.asarray(np.sqrt(_added(lambda a: [_inner(a, a)], x)[0]))
        _real(x[:0])
        wide = {"dtype": np.float64} if name in _ADDING and is_float(x.dtype) else {}
        return _real(np.asarray(REDUCTIONS[name](x, axis=_axes(x, None), **wide)))

    return reduce


def reduction_along(name: str) -> Callable[..., Array]:
    """Return the function that reduces each tensor along some axes.

    Floats of two bytes and one are added up as float32: in float16 a sum of ones ends at 2048, in bfloat16 at 256.
    """

    def reduce(x: Array, axes: Sequence[int]) -> Array:
        axis = _axes(x, axes)
        if name in _ADDING and is_float(x.dtype) and x.dtype.itemsize <= 2:
            return np.asarray(REDUCTIONS[name](x, axis=axis, dtype=np.float32)).astype(x.dtype)
        return np.asarray(REDUCTIONS[name](x, axis=axis))

    return reduce


def argmax(x: Array) -> Array:
    """Return the place in C order of the first of the greatest elements."""
    return np.asarray(x.reshape(len(x), math.prod(x.shape[1:])).argmax(axis=1))


def argmax_along(x: Array, axes: Sequence[int]) -> Array:
    """Return along one axis the index of the first of the greatest elements."""
    _check_listed("axes", axes)
    if len(axes) != 1:
        raise InvalidTensorError(f"one axis, not {len(axes)}: {tuple(axes)}")
    return np.asarray(x.argmax(axis=_axes(x, axes)[0]))


def elementwise(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function of two tensors that broadcast, or of a tensor and a number."""

    def combine(x: Array | Numbers, y: Array | Numbers) -> Array:
        if any(isinstance(z, np.ndarray) and z.dtype.kind in "mM" for z in (x, y)):
            raise InvalidTensorError("datetime64 and timedelta64 have no arithmetic here")
        if isinstance(x, Numbers):
            if isinstance(y, Numbers):
                raise InvalidTensorError("neither of the two is a tensor")
            x = _weak(x, y, function)
        elif isinstance(y, Numbers):
            y = _weak(y, x, function)
        return np.asarray(function(*_aligned(x, y)))

    return combine


def _weak(numbers: Numbers, tensors: Array, function: Callable[..., Any]) -> Array:
    """Give numbers the dtype that NumPy gives Python's: that of the tensor, or a float, as for every division."""
    values = numbers.values
    # What NumPy makes of it: result_type() knows less of the small floats.
    dtype = function(np.empty(0, tensors.dtype), 1.0 if values.dtype.kind == "f" else 1).dtype
    cast = values.astype(dtype)
    if dtype.kind in "iu" and (cast != values).any():
        wrong = values[np.argmax(cast != values)]
        raise InvalidTensorError(f"{wrong} does not fit dtype {dtype}; cast the tensor first")
    return np.asarray(cast)


def _aligned(*stacks: Array) -> list[Array]:
    """Put axes of length 1 behind the first, so that tensors broadcast as they do alone."""
    ndim = max(x.ndim for x in stacks)
    return [x.reshape(len(x), *(1,) * (ndim - x.ndim), *x.shape[1:]) for x in stacks]


def dot(x: Array, y: Array) -> Array:
    """Return the sum of the products of all elements."""
    return _added(lambda a, b: [_inner(a, b)], x, y)[0]


def cosine(x: Array, y: Array) -> Array:
    """Return the cosine of the angle between two tensors; NaN where one is zero."""
    xy, xx, yy = _added(lambda a, b: [_inner(a, b), _inner(a, a), _inner(b, b)], x, y)
    return np.asarray(xy / (np.sqrt(xx) * np.sqrt(yy)))


def distance(x: Array, y: Array) -> Array:
    """Return the Euclidean distance of two tensors."""
    return np.asarray(np.sqrt(_added(lambda a, b: [_inner(a - b, a - b)], x, y)[0]))


def matmul(x: Array, y: Array) -> Array:
    """Return NumPy's matrix product of each pair."""
    if x.ndim == 1 or y.ndim == 1:
        raise InvalidTensorError("a tensor of rank 0 is not a matrix")
    row, column = x.ndim == 2, y.ndim == 2  # vectors
    x = x[:, None, :] if row else x
    y = y[:, :, None] if column else y
    out = np.matmul(*_aligned(x, y))
    out = out[..., 0] if column else out
    if row:
        out = out[..., 0, :] if not column else out[..., 0]
    return np.asarray(out)


def take_slice(x: Array, text: str) -> Array:
    """Return a slice of each tensor."""
    if isinstance(text, Numbers):  # a tuple, which would count as an index list
        raise InvalidTensorError(
            f"a slice is a text; write '{text.values[0]}', not {text.values[0]}"
        )
    key = parts_of(text)
    check_runs(select_simple(key, x.shape[1:]))
    every: tuple[Any, ...] = (slice(None), *key)
    return np.asarray(x[every])


def get(x: Array, index: Sequence[int]) -> Array:
    """Return one element of each tensor."""
    _check_listed("indices", index)
    if len(index) != x.ndim - 1 or None in index:
        raise InvalidTensorError(f"one index for each of {x.ndim - 1} axes, not {tuple(index)}")
    select_simple(tuple(index), x.shape[1:])
    every: tuple[Any, ...] = (slice(None), *index)
    return _real(np.asarray(x[every]))


def cast(x: Array, dtype: str) -> Array:
    """Return each tensor in another dtype."""
    return x.astype(dtype_of(dtype))


def reshape(x: Array, shape: Sequence[int]) -> Array:
    """Return each tensor in another shape of as many elements."""
    _check_listed("lengths", shape)
    shape = shape[0].tolist() if isinstance(shape, np.ndarray) else shape  # a list of floats
    wrong = [length for length in shape if not isinstance(length, int)]
    if wrong:
        raise InvalidTensorError(f"lengths are integers, not {wrong[0]}")
    return x.reshape(
        len(x), *x[0].reshape(shape).shape
    )  # of one alone, so that an error names its shape


def to_array(x: Array) -> Array:
    """Return the elements of each in C order, as float64."""
    return _flat(_real(x))


def from_array(values: Array, shape: Sequence[int], dtype: str) -> Array:
    """Return tensors of numbers in C order; none may become another one."""
    kind = dtype_of(dtype)
    if kind.kind in "mM":  # they count units
        out = converted(values, np.dtype(np.int64), f"units of {kind}").view(kind)
    else:
        out = converted(values, kind, "a tensor")
    return reshape(out, shape)
