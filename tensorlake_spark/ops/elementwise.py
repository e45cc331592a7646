"""Functions of one element of each operand: every ufunc of NumPy, and what else is one, such as of `scipy.special`.

The function itself says what it makes of zeros: it is computed once for the zeros of the operands' dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlake_spark.errors import DenseResultError, UnsupportedFunctionError
from tensorlake_spark.indexing.coords import sort_places
from tensorlake_spark.ops.broadcasting import (
    broadcast_shapes,
    broadcast_to,
    matches,
    repeated,
    values_at,
)
from tensorlake_spark.ops.elements import (
    Elements,
    elements_at,
    nonzero,
    nonzero_elements,
)
from tensorlake_spark.ops.lookup import look_up
from tensorlake_spark.ops.loop_choice import loops_for
from tensorlake_spark.ops.merging import merge
from tensorlake_spark.thread_shares import by_parts

Array = np.ndarray[Any, Any]
Values = tuple[Array, ...]  # one for each output
Call = Callable[..., Values]

_LOOPS = "tensorlake_spark.ops.element_loops"
_FLOATS = "fdFD"  # that a compiled loop looks at

_AT_ONCE = (
    1 << 16
)  # elements of a dense operand that are looked at together, so that they stay in the cache


def apply(
    ufunc: np.ufunc, *operands: Any, out: Any = None, where: Any = True, **options: Any
) -> Any:
    """Return a function of each element of the operands, of which one or two are sparse.

    Parameters
    ----------
    ufunc : numpy.ufunc
        The function.
    *operands : Elements, array_like, scalar
        They broadcast. The dtype of the result is NumPy's: scalars of Python are weak.
    out : ndarray or tuple of ndarray, optional
        Where a dense result is written; the operands become dense for it.
    where : array_like or Elements of bool
        Where the function is computed, broadcast with the operands. Anywhere else the result is zero, or what `out`
        holds. With it the result is sparse, whatever the function makes of zeros.
    **options
        ``dtype``, ``casting`` and ``signature``.

    Returns
    -------
    Elements or ndarray, or a tuple of them
        Sparse and canonical if zeros stay zero. With a dense operand that is not a scalar: sparse if the function
        makes zero or NaN of zero beside each of its elements, and zero beside one, as a product does; the NaN,
        such as those of ``0 * inf``, are stored. Otherwise an ndarray, as of a sum. To find NaN, and in no other
        case, the whole dense operand is read.

    Raises
    ------
    DenseResultError
        If the result is not sparse, and no operand is a dense array.
    InvalidTensorError
        If the shapes do not broadcast, or if they do to 2**63 elements or more.
    UnsupportedFunctionError
        For an `out` that is sparse, and for two sparse operands beside a dense array, or three.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[0, 2], [1, 0]]), np.array([4.0, 9.0]), (3, 2))
    >>> apply(np.sqrt, x).values.tolist(), apply(np.multiply, x, 2).values.tolist()
    ([2.0, 3.0], [8.0, 18.0])
    >>> apply(np.add, x, [1, 0]).tolist()
    [[1.0, 4.0], [1.0, 0.0], [10.0, 0.0]]
    """
    given = [
        x if isinstance(x, (Elements, int, float, complex)) else np.asarray(x) for x in operands
    ]
    if out is not None:
        return _into(ufunc, given, out, where, options)
    shape = broadcast_shapes(
        *(np.shape(x) if not isinstance(x, Elements) else x.shape for x in given)
    )
    if where is not True:
        return _masked(ufunc, given, where, shape, options)
    call, sparse, dense = _bound(ufunc, given, options)
    if len(sparse) == 1 and dense:
        is_product = ufunc is np.multiply and not options
        return _single(_with_dense(call, sparse[0], dense, shape, is_product))
    if len(sparse) > 2 or dense:
        raise UnsupportedFunctionError(
            f"{_name(ufunc)} of two sparse operands beside a dense array, or of three, is not there; "
            "todense() makes arrays of them"
        )
    _check_zeros(ufunc, call, sparse, shape, given)
    if len(sparse) == 1 or sparse[0] is sparse[1]:
        return _single(_of_pattern(sparse[0], call(*(x.values for x in sparse))))
    a, b = sparse
    if a.shape != b.shape:
        return _single(_broadcast(call, a, b, shape))
    found = merge(ufunc, a, b) if len(given) == 2 and not options else None
    return _single(_merged(call, a, b)) if found is None else found


def outer(ufunc: np.ufunc, a: Any, b: Any, **options: Any) -> Any:
    """Return a function of every pair of elements, as ``ufunc.outer`` does.

    Examples
    --------
    >>> x = Elements._trusted(np.array([[1]]), np.array([5]), (3,))
    >>> table = outer(np.multiply, x, [1, 2])
    >>> table.shape, table.coords.tolist(), table.values.tolist()
    ((3, 2), [[1, 1], [0, 1]], [5, 10])
    """
    ones = (1,) * (b.ndim if isinstance(b, Elements) else np.ndim(b))
    if isinstance(a, Elements):
        a = Elements._trusted(None, a.values, a.shape + ones, a.places)
    else:
        a = np.reshape(a, np.shape(a) + ones)
    return apply(ufunc, a, b, **options)


def _single(outputs: tuple[Any, ...]) -> Any:
    return outputs[0] if len(outputs) == 1 else outputs


def _name(ufunc: np.ufunc) -> str:
    """Return the name under which a function is called."""
    name = ufunc.__name__
    return f"np.{name}" if getattr(np, name, None) is ufunc else name


def _bound(
    ufunc: np.ufunc, given: list[Any], options: dict[str, Any]
) -> tuple[Call, list[Elements], list[Array]]:
    """Return the function of the operands that are no scalars, sparse ones first, and those operands."""
    sparse = [k for k, x in enumerate(given) if isinstance(x, Elements)]
    dense = [k for k, x in enumerate(given) if isinstance(x, np.ndarray) and x.ndim]

    def call(*some: Array) -> Values:
        inputs = list(given)
        for k, x in zip(sparse + dense, some, strict=True):
            inputs[k] = x
        found = ufunc(*inputs, **options)
        return found if isinstance(found, tuple) else (found,)

    return call, [given[k] for k in sparse], [given[k] for k in dense]


def _of_zeros(call: Call, x: Elements, *dense: Array) -> Values:
    """Return what a function makes of a tensor's zeros beside dense arrays, without warnings."""
    with np.errstate(all="ignore"):
        return call(np.zeros(1, x.dtype), *dense)


def _check_zeros(
    ufunc: np.ufunc, call: Call, sparse: list[Elements], shape: tuple[int, ...], given: list[Any]
) -> None:
    """Raise DenseResultError if a function makes something else of zeros; also if all elements are stored."""
    with np.errstate(all="ignore"):
        outputs = call(*(np.zeros(min(1, math.prod(shape)), x.dtype) for x in sparse))
    for found in outputs:
        if nonzero(found).any():
            zeros = " and ".join("0" if isinstance(x, Elements) else str(x) for x in given)
            size = math.prod(shape) * found.dtype.itemsize
            raise DenseResultError(
                f"{_name(ufunc)} of {zeros} is {found[0]}, so that the result is dense and takes {size} bytes; "
                "todense() of the operand computes it"
                + ("; x.equals(y) compares whole tensors" if ufunc is np.equal else "")
            )


def _of_pattern(x: Elements, outputs: Values) -> tuple[Elements, ...]:
    """Return values at the places of a tensor, without zeros."""
    return tuple(nonzero_elements(x._coords, values, x.shape, x._places) for values in outputs)


def _beside_zero(call: Call, a: Elements, b: Elements) -> tuple[Values, Values]:
    """Return the function of each tensor's elements beside a zero of the other; warnings are of what is kept."""
    with np.errstate(all="ignore"):
        of_a = call(a.values, np.zeros(1, b.dtype))
        of_b = call(np.zeros(1, a.dtype), b.values)
    return of_a, of_b


def _merged(call: Call, a: Elements, b: Elements) -> tuple[Elements, ...]:
    """Return a function of two tensors of one shape."""
    places, by = sort_places(np.concatenate((a.places, b.places)))
    twice = np.flatnonzero(places[1:] == places[:-1])
    both = call(a.values[by[twice]], b.values[by[twice + 1] - a.nnz])
    out = []
    for of_a, of_b, of_both in zip(*_beside_zero(call, a, b), both, strict=True):
        values = np.concatenate((of_a, of_b))[by]
        values[twice] = of_both
        kept = nonzero(values)
        kept[twice + 1] = False
        out.append(Elements._trusted(None, values[kept], a.shape, places[kept]))
    return tuple(out)


def _broadcast(
    call: Call, a: Elements, b: Elements, shape: tuple[int, ...]
) -> tuple[Elements, ...]:
    """Return a function of two tensors of different shapes; only what does not become zero is repeated."""
    if not math.prod(shape):  # no element is beside another, and NumPy asks nothing of any
        empty = call(a.values[:0], b.values[:0])
        return tuple(elements_at(np.zeros(0, np.int64), values, shape) for values in empty)
    of_a, of_b, places = matches(a, b, shape)
    both = call(a.values[of_a], b.values[of_b])
    out = []
    for alone_a, alone_b, of_both in zip(*_beside_zero(call, a, b), both, strict=True):
        alone = [_of_pattern(x, (v,))[0] for x, v in ((a, alone_a), (b, alone_b))]
        out.append(_overlaid(alone, places, of_both, shape))
    return tuple(out)


def _overlaid(
    under: list[Elements], places: Array, values: Array, shape: tuple[int, ...]
) -> Elements:
    """Return values at places, and tensors that are repeated to a shape where there are none."""
    at, found = [], []
    for x in under:
        some = repeated(x, shape)
        at.append(some)
        found.append(np.repeat(x.values, len(some) // max(1, x.nnz)))
    ordered, by = sort_places(np.concatenate([*at, places]))
    last = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=last[:-1])
    return elements_at(ordered[last], np.concatenate([*found, values])[by[last]], shape)


def _with_dense(
    call: Call, x: Elements, dense: list[Array], shape: tuple[int, ...], is_product: bool
) -> tuple[Any, ...]:
    """Return a function of a sparse tensor and of dense arrays."""
    if not math.prod(shape):  # no element is beside another, and NumPy asks nothing of any
        dense = [np.zeros(shape, y.dtype) for y in dense]
    ones = _of_zeros(call, x, *(np.ones(1, y.dtype) for y in dense))
    is_dense = any(nonzero(one).any() for one in ones)
    if is_product and not is_dense and dense[0].shape == shape == x.shape:
        beside_x = _finite_at(dense[0], x.places)
        if beside_x is not None:
            return tuple(_of_pattern(x, (some,))[0] for some in call(x.values, beside_x))
    beside = None if is_dense else _nan_beside(call, x, dense, is_product)
    wide = broadcast_to(x, shape)
    values = call(wide.values, *(values_at(y, wide, shape) for y in dense))
    if beside is not None:
        pairs = zip(beside, values, strict=True)
        return tuple(
            _overlaid([nan], wide.places, some, shape) if nan.nnz else _of_pattern(wide, (some,))[0]
            for nan, some in pairs
        )
    out = []
    for zeros, some in zip(_of_zeros(call, x, *dense), values, strict=True):
        fresh = zeros.shape == shape and zeros.flags.c_contiguous and zeros.flags.owndata
        array = zeros if fresh else np.array(np.broadcast_to(zeros, shape), order="C")
        array.reshape(-1)[wide.places] = some
        out.append(array)
    return tuple(out)


def _nan_beside(
    call: Call, x: Elements, dense: list[Array], is_product: bool
) -> list[Elements] | None:
    """Return the NaN that a function makes of zeros beside dense arrays; None if it makes numbers of them too."""
    shape = broadcast_shapes(*(y.shape for y in dense))
    flat = [np.broadcast_to(y, shape).reshape(-1) for y in dense]
    found: list[list[tuple[Array, Array]]] = []
    # A part at a time: what is not kept stays in the cache.
    for first in range(0, max(1, len(flat[0])), _AT_ONCE):
        parts = [y[first : first + _AT_ONCE] for y in flat]
        if found and is_product and _is_finite(parts[0]):
            continue
        outputs = _of_zeros(call, x, *parts)
        found = found or [[] for _ in outputs]
        for some, zeros in zip(found, outputs, strict=True):
            odd = np.flatnonzero(nonzero(zeros))
            values = zeros[odd]
            if (values == values).any():
                return None
            some.append((odd + first, values))
    columns = [[np.concatenate(column) for column in zip(*some, strict=True)] for some in found]
    return [Elements._trusted(None, values, shape, places) for places, values in columns]


def _finite_at(dense: Array, places: Array) -> Array | None:
    """Return the elements of a dense array at ascending places, None if one of all is not finite.

    A part at a time is looked at, and taken from while it is in the cache.
    """
    flat = dense.reshape(-1)
    if flat.dtype.kind in "biu":
        return np.asarray(flat[places])
    if flat.dtype.char in _FLOATS and flat.dtype.isnative:
        loops = loops_for(_LOOPS, "take_finite", flat.dtype, flat.nbytes)
        if loops is not None:
            found: Array | None = loops.take_finite(flat, places)
            return found
    out = np.empty(len(places), flat.dtype)
    wild: list[slice] = []

    def take(here: slice) -> None:
        part = flat[here]
        if not wild and not _is_finite(part):
            wild.append(here)
        if wild:
            return
        first, last = np.searchsorted(places, (here.start, here.stop))
        np.take(part, places[first:last] - here.start, out=out[first:last], mode="clip")

    by_parts(take, len(flat), _AT_ONCE)
    return None if wild else out


def _is_finite(array: Array) -> bool:
    """Return whether numbers are neither NaN nor infinite, so that zero times each is zero."""
    kind = array.dtype.kind
    return kind in "biu" or (kind in "fc" and bool(np.isfinite(array).all()))


def _masked(
    ufunc: np.ufunc, given: list[Any], where: Any, shape: tuple[int, ...], options: dict[str, Any]
) -> Any:
    """Return a function that is computed only where a mask is true."""
    mask = where if isinstance(where, Elements) else np.asarray(where)
    if mask.dtype != bool:
        raise UnsupportedFunctionError(f"where= has dtype {mask.dtype}; it is an array of bool")
    shape = broadcast_shapes(shape, mask.shape)
    call, sparse, dense = _bound(ufunc, given, options)
    if not dense and _is_stored_only(call, sparse, shape):
        return apply(
            ufunc, *(_chosen(x, mask) if isinstance(x, Elements) else x for x in given), **options
        )
    if not isinstance(mask, Elements):
        mask = Elements._trusted(None, mask[mask], mask.shape, np.flatnonzero(mask))
    wide = broadcast_to(_of_pattern(mask, (mask.values,))[0], shape)
    inputs = [look_up(x, wide.coords) for x in sparse]
    inputs += [values_at(x, wide, shape) for x in dense]
    outputs = call(*inputs)
    return _single(
        _of_pattern(wide, tuple(np.broadcast_to(values, wide.nnz) for values in outputs))
    )


def _is_stored_only(call: Call, sparse: list[Elements], shape: tuple[int, ...]) -> bool:
    """Return whether a function of tensors that are not repeated is zero but at their elements."""
    if len(sparse) > 2 or any(x.shape != shape for x in sparse):
        return False
    with np.errstate(all="ignore"):
        zeros = call(*(np.zeros(1, x.dtype) for x in sparse))
    return not any(nonzero(found).any() for found in zeros)


def _chosen(x: Elements, mask: Any) -> Elements:
    """Return the elements at which a mask, which broadcasts to the tensor, is true."""
    is_sparse = isinstance(mask, Elements)
    found = look_up(mask, x.coords) if is_sparse else values_at(mask, x, x.shape)
    kept = np.flatnonzero(np.broadcast_to(found, x.nnz))
    return Elements._trusted(None, x.values[kept], x.shape, x.places[kept])


def _into(ufunc: np.ufunc, given: list[Any], out: Any, where: Any, options: dict[str, Any]) -> Any:
    """Write a result into arrays of the caller."""
    if any(isinstance(x, Elements) for x in (out if isinstance(out, tuple) else (out,))):
        raise UnsupportedFunctionError(
            f"{_name(ufunc)} with a sparse out=: sparse tensors cannot be changed; a builder of one can"
        )
    inputs = [x.todense() if isinstance(x, Elements) else x for x in given]
    mask = where.todense() if isinstance(where, Elements) else where
    return ufunc(*inputs, out=out, where=mask, **options)
