"""Compiled loops reduce a dense block straight into the state of an answer, without an array in between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.computing.fold import Place
from tensorlake_spark.computing.operations.tiles import State
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.thread_shares import PART, by_parts

Array = np.ndarray[Any, Any]

_LOOPS = "tensorlake_spark.computing.operations.dense_loops"
_SHORT = 64  # below so many elements a line costs more than they do
_RUNS = {"add": 2, "add_squares": 2, "add_moments": 2, "best": 8}
"""Loops that have another one where the last axis is reduced, and the widest integers that it takes."""


class _Lines(NamedTuple):
    """Lines of a block, what is reduced into each, how long they are, and where they lie in the answer."""

    lines: Array
    steps: Array
    length: int
    places: Array


def has_loop(loop: str, block: Array, axes: Sequence[int], blank: State) -> bool:
    """Return whether a compiled loop may reduce a block.

    Parameters
    ----------
    loop : str
        One of the loops over lines of `dense_loops`, or none.
    block : ndarray
        The block.
    axes : sequence of int
        The axes to reduce, ascending.
    blank : tuple of ndarray
        Any state, for its dtypes.
    """
    if not (loop and axes and block.size and block.flags.c_contiguous and is_known(block.dtype)):
        return False
    name = _name(loop, block, axes)
    return bool(name) and _loops(name, block, blank, block.nbytes) is not None


def accumulate(
    loop: str, block: Array, axes: Sequence[int], state: State, kept: Place, *more: Any
) -> bool:
    """Reduce a block that `has_loop` into the state of an answer; False if it was not done, as lines are short.

    Parameters
    ----------
    loop, block, axes
        As for `has_loop`.
    state : tuple of ndarray
        Of the answer, C-contiguous, to be changed.
    kept : tuple of slice
        Where in the answer the block lies.
    *more
        What else the loop takes.
    """
    name = _name(loop, block, axes)
    loops = _loops(name, block, state, 0)
    found = _lines(block, axes, state[0].shape, kept)
    if found is None or loops is None:
        return False
    flat = block.reshape(-1).view(_word(block.dtype))
    getattr(loops, name)(flat, *found, *(array.reshape(-1) for array in state), *more)
    return True


def variances(sums: Array, squares: Array, count: int, left: float, is_root: bool) -> Array | None:
    """Return variances of integers from their sums and sums of squares, by a compiled loop; None where NumPy does it.

    Parameters
    ----------
    sums, squares : ndarray of int
        What `IntegerMoments` has for each element of the answer, of one shape.
    count : int
        Of how many elements.
    left : float
        What the squares of their distances are divided by.
    is_root : bool
        Whether the answer is the standard deviation.

    Returns
    -------
    float64 ndarray, or None
    """
    chars = sums.dtype.char, squares.dtype.char
    loops = compiled(_LOOPS, "variances", *chars, nbytes=8 * sums.size)
    if loops is None:
        return None
    out: Array = np.empty(sums.shape)
    arrays = sums.reshape(-1), squares.reshape(-1), out.reshape(-1)

    def some(here: slice) -> None:
        total, square, into = (array[here] for array in arrays)
        loops.variances(total, square, count, left, is_root, into)

    by_parts(some, out.size, PART)
    return out


def _name(loop: str, block: Array, axes: Sequence[int]) -> str:
    """Return the name of the loop: another one, of integers, where the last axis is reduced; empty for none."""
    if axes[-1] != block.ndim - 1:
        return loop
    widest = _RUNS.get(loop, 0)
    return f"{loop}_runs" if block.dtype.kind in "iub" and block.dtype.itemsize <= widest else ""


def _loops(name: str, block: Array, state: State, nbytes: int) -> Any:
    chars = "".join(array.dtype.char for array in state)
    return compiled(_LOOPS, name, _word(block.dtype), chars, nbytes=nbytes)


def is_known(dtype: np.dtype[Any]) -> bool:
    """Return whether numba compiles loops over elements of a dtype.

    Examples
    --------
    >>> [is_known(np.dtype(name)) for name in ("u1", "?", "f4", "f2", "c8", "M8[s]")]
    [True, True, True, False, False, False]
    """
    return dtype.isnative and (dtype.kind in "iub" or dtype.char in "fd")


def _word(dtype: np.dtype[Any]) -> str:
    return "B" if dtype.kind == "b" else dtype.char


def _lines(block: Array, axes: Sequence[int], shape: Sequence[int], kept: Place) -> _Lines | None:
    """Return the lines of a block that lies in an answer of a shape, None if there are none that are long.

    Examples
    --------
    >>> found = _lines(np.zeros((2, 3, 100)), (1,), (2, 500), (slice(0, 2), slice(50, 150)))
    >>> [part if isinstance(part, int) else part.tolist() for part in found]
    [[0, 300], [0, 100, 200], 100, [50, 550]]
    """
    strides = [math.prod(block.shape[k + 1 :]) for k in range(block.ndim)]
    outer = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    rest = [k for k in range(block.ndim) if k not in axes]
    first = sum(part.start * step for part, step in zip(kept, outer, strict=True))  # type: ignore[union-attr]
    is_run = axes[-1] == block.ndim - 1
    ends = list(axes) if is_run else rest  # of the axes in question the last ones become a line
    length = 1
    while ends:
        count, step = block.shape[ends[-1]], strides[ends[-1]]
        if count > 1 and not (step == length and (is_run or outer[rest.index(ends[-1])] == length)):
            break
        length *= count
        ends.pop()
    if length < _SHORT:
        return None
    whole = rest if is_run else ends
    begins = _offsets([(block.shape[k], strides[k]) for k in whole])
    places = first + _offsets([(block.shape[k], outer[rest.index(k)]) for k in whole])
    steps = _offsets([(block.shape[k], strides[k]) for k in (ends if is_run else axes)])
    return _Lines(begins, steps, length, places)


def _offsets(axes: Sequence[tuple[int, int]]) -> Array:
    """Return the places of the cells of a grid, in C order, from the lengths and steps of its axes."""
    out = np.zeros(1, np.int64)
    for count, step in axes:
        out = (out[:, None] + np.arange(count) * step).reshape(-1)
    return out
