"""What one reduction computes: of a dense block over axes, of runs of sparse elements, and of states of both.

A state has an entry for each element of the answer. It is as narrow as a block allows, and `Kernel.wide` once other
states are put into it.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.computing.operations.accumulation import variances
from tensorlake_spark.computing.operations.cell_tables import Parts, in_cells, loops_of, table_sums
from tensorlake_spark.computing.operations.state_dtypes import identity, narrow, shortened
from tensorlake_spark.computing.operations.tiles import State
from tensorlake_spark.computing.operations.value_sums import (
    run_sums,
    square,
    square_of,
    sum_of,
    times,
)
from tensorlake_spark.thread_shares import PART, filled

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]
Count = int | Array

_REAL = "bBhHiIlLqQfd"  # what compiled loops add in double width


class Kernel(ABC):
    """How a reduction is computed. It has no state of its own, and can be pickled."""

    @property
    def loop(self) -> str:
        """Which loop of `dense_loops` reduces a block into a state, empty where none does."""
        return ""

    @abstractmethod
    def start(self, block: Array, axes: Axes, mask: Array | None = None) -> State:
        """Return the state of a dense block, reduced over axes, or of what a mask that broadcasts to it chooses."""

    @abstractmethod
    def blank(self, shape: Sequence[int]) -> State:
        """Return the state of elements of the answer that nothing has been reduced into."""

    @abstractmethod
    def wide(self, state: State) -> State:
        """Return a state of its own that others can be absorbed into."""

    @abstractmethod
    def absorb(self, state: State, other: State) -> None:
        """Reduce another state into a wide one."""

    def packed(self, state: State) -> State:
        """Return a state in few bytes, of which `wide` makes a state again, and others can absorb it."""
        return tuple(shortened(array) for array in state)

    @abstractmethod
    def groups(self, values: Array, starts: Array) -> State:
        """Return the state of each run of values of sparse elements, none of them empty."""

    @abstractmethod
    def scatter(self, at: Array, values: Array, counts: Array) -> State:
        """Return the states of cells from values in any order: which cell each is in, and how many each cell has."""

    def in_cells(self, parts: Parts, cells: int) -> tuple[Array, ...] | None:
        """Return the cells that have elements, how many each has, and their states, by one compiled loop; None if none.

        Parts have cells and values in any order, see `cell_tables.in_cells`.
        """
        return None

    @abstractmethod
    def merge(self, state: State, starts: Array) -> State:
        """Return the state of each run of states, none of them empty."""

    @abstractmethod
    def with_zeros(self, state: State, missing: Array) -> State:
        """Return a state after zeros that are not stored: so many of them for each entry, no matter where."""

    @abstractmethod
    def finish(self, state: State, count: Count) -> Array:
        """Return the answer of a state that `count` elements were reduced to, each entry as many or all the same."""

    def finish_with_zeros(self, state: State, stored: Array, count: Count) -> Array:
        """Return the answer of a state of `stored` elements, which zeros that are not stored make `count`."""
        return self.finish(self.with_zeros(state, count - stored), count)


@dataclass(frozen=True)
class UfuncKernel(Kernel):
    """A reduction by one ufunc.

    Attributes
    ----------
    ufunc : numpy.ufunc
        Associative and commutative.
    computed, result : dtype
        Of wide states, and of the answer.
    prepare : callable, optional
        Takes values to those that are reduced.
    after : callable, optional
        Takes what was reduced, and the number of elements, to the answer.
    held : dtype, optional
        Integers narrower than `computed` that hold every sum of as many elements as there are: dense states have them.
    initial : scalar, optional
        What is reduced together with every entry of the answer.
    """

    ufunc: np.ufunc
    computed: np.dtype[Any]
    result: np.dtype[Any]
    prepare: Callable[[Array], Array] | None = None
    after: Callable[[Array, Count], Array] | None = None
    held: np.dtype[Any] | None = None
    initial: Any = None

    @property
    def loop(self) -> str:
        state = self.held or self.computed
        if self.ufunc is not np.add or not (state.kind in "iu" or state.char == "d"):
            return ""
        if self.prepare is None:
            return "add"
        return "add_squares" if self.prepare is square_of else ""

    def _prepared(self, values: Array) -> Array:
        return values if self.prepare is None else self.prepare(values)

    def start(self, block: Array, axes: Axes, mask: Array | None = None) -> State:
        if mask is not None:
            nothing = np.asarray(identity(self.ufunc, block.dtype)).astype(block.dtype)
            block = np.where(mask, block, nothing)
        values = self._prepared(block)
        if self.held is not None:
            return (sum_of(values, axes, self.held),)
        dtype = self._dtype_of(values, math.prod(values.shape[k] for k in axes))
        with np.errstate(all="ignore"):
            return (np.asarray(self.ufunc.reduce(values, axis=axes, dtype=dtype)),)

    def _dtype_of(self, values: Array, count: int) -> np.dtype[Any] | None:
        """Return in which dtype a block is reduced: of sums the narrowest that holds any; None for NumPy's own."""
        if self.ufunc is np.add and self.computed.kind in "iu" and values.dtype.kind in "iub":
            return narrow(values.dtype, count, self.computed)
        if self.ufunc is np.add and values.dtype.kind in "fc" and self.computed.kind in "fc":
            # As NumPy does, in pairs; states of blocks are added in twice the width.
            return np.result_type(values.dtype, "f4")
        if self.ufunc in (np.add, np.multiply) and self.computed.kind not in "mM":
            return self.computed
        return None

    def blank(self, shape: Sequence[int]) -> State:
        dtype = self.held or self.computed
        return (np.full(shape, identity(self.ufunc, dtype), dtype),)

    def wide(self, state: State) -> State:
        return (np.array(state[0], self.held or self.computed),)

    def absorb(self, state: State, other: State) -> None:
        with np.errstate(all="ignore"):
            self.ufunc(state[0], other[0], out=state[0], casting="unsafe")

    def groups(self, values: Array, starts: Array) -> State:
        values = self._prepared(values)
        if self.ufunc not in _LOGICAL:
            values = values.astype(self.computed, copy=False)
        return self._runs(values, starts)

    def scatter(self, at: Array, values: Array, counts: Array) -> State:
        values = self._prepared(values)
        values = values.astype(bool if self.ufunc in _LOGICAL else self.computed, copy=False)
        with np.errstate(all="ignore"):
            if self.ufunc is np.add and self.computed.kind in "fc":
                return (table_sums(at, values, len(counts)).astype(self.computed, copy=False),)
            table = np.full(len(counts), identity(self.ufunc, values.dtype), values.dtype)
            self.ufunc.at(table, at, values)
        return (table.astype(self.computed, copy=False),)

    def in_cells(self, parts: Parts, cells: int) -> tuple[Array, ...] | None:
        if self.ufunc is not np.add or self.computed.char != "d":
            return None
        if self.prepare is square_of and parts[0][1].dtype.char in "fd":
            return in_cells("add_squares", parts, cells, "fd")
        if self.prepare is not None:
            parts = [(at, self._prepared(values)) for at, values in parts]
        return in_cells("add", parts, cells, _REAL)

    def merge(self, state: State, starts: Array) -> State:
        return self._runs(state[0], starts)

    def _runs(self, values: Array, starts: Array) -> State:
        if len(starts) == len(values):
            return (values.astype(self.computed, copy=False),)
        with np.errstate(all="ignore"):
            if self.ufunc is np.add and values.ndim == 1:
                return (run_sums(values, starts).astype(self.computed, copy=False),)
            return (self.ufunc.reduceat(values, starts).astype(self.computed, copy=False),)

    def with_zeros(self, state: State, missing: Array) -> State:
        zero = self._prepared(np.zeros(1, self.computed))[0]
        with np.errstate(all="ignore"):
            if self.ufunc is np.add and not zero:
                return state
            more = zero * missing if self.ufunc is np.add else zero
            return (np.where(missing > 0, self.ufunc(state[0], more), state[0]),)

    def finish(self, state: State, count: Count) -> Array:
        found = state[0]
        if self.after is None or np.ndim(count) or found.size <= PART:
            return self._finished(found, count)
        flat = found.reshape(-1)
        return filled(lambda here: self._finished(flat[here], count), found.shape, self.result)

    def _finished(self, found: Array, count: Count) -> Array:
        if self.initial is not None:
            # It is a number of the result, as in NumPy: a half, before it meets sums in more bits.
            first = np.asarray(self.initial).astype(self.result).astype(self.computed)
            found = self.ufunc(found.astype(self.computed, copy=False), first)
        if self.after is not None:
            with np.errstate(all="ignore"):
                found = self.after(found, count)
        return np.asarray(found.astype(self.result, copy=False))


@dataclass(frozen=True)
class Moments(Kernel):
    """Variance by counts, means and sums of squares, which Chan's update puts together.

    Attributes
    ----------
    computed, result : dtype
        Of means, and of the answer.
    ddof : float
        Taken from the number of elements.
    is_root : bool
        Whether the answer is the standard deviation.
    is_asked : bool
        Whether `computed` was asked for, so that blocks are computed with no less.
    """

    computed: np.dtype[Any]
    result: np.dtype[Any]
    ddof: float = 0
    is_root: bool = False
    is_asked: bool = False

    @property
    def loop(self) -> str:
        return "add_variance" if self.computed.char == "d" else ""

    @property
    def _real(self) -> np.dtype[Any]:
        return np.zeros(0, self.computed).real.dtype

    def start(self, block: Array, axes: Axes, mask: Array | None = None) -> State:
        least = self.computed if self.is_asked else "f4"
        dtype = np.result_type(block.dtype, least) if block.dtype.kind in "fc" else self.computed
        where: Any = True if mask is None else np.broadcast_to(mask, block.shape)
        with np.errstate(all="ignore"):
            mean = np.asarray(
                np.add.reduce(block, axis=axes, dtype=dtype, keepdims=True, where=where)
            )
            count: Any = math.prod(block.shape[k] for k in axes)
            if mask is not None:
                count = np.count_nonzero(where, axis=axes, keepdims=True)
            mean = np.true_divide(mean, np.maximum(count, 1), dtype=self.computed, casting="unsafe")
            apart = np.subtract(block, mean.astype(dtype))
            squares = square(apart)
            sums = np.asarray(np.add.reduce(squares, axis=axes, dtype=None, where=where))
        counts = np.asarray(count, np.float64)
        if counts.ndim:
            counts = counts.reshape(sums.shape)
        return np.broadcast_to(counts, sums.shape), mean.reshape(sums.shape), sums

    def blank(self, shape: Sequence[int]) -> State:
        return np.zeros(shape), np.zeros(shape, self.computed), np.zeros(shape, self._real)

    def wide(self, state: State) -> State:
        n, mean, sums = state
        return np.array(n, "f8"), np.array(mean, self.computed), np.array(sums, self._real)

    def packed(self, state: State) -> State:
        return shortened(state[0].astype(np.int64)), *state[1:]

    def absorb(self, state: State, other: State) -> None:
        (n, mean, sums), (m, other_mean, other_sums) = state, other
        with np.errstate(all="ignore"):
            apart = other_mean - mean
            share = m / np.maximum(n + m, 1)
            sums += other_sums + times(square(apart), n * share)
            mean += apart * share
        n += m

    def groups(self, values: Array, starts: Array) -> State:
        counts = np.diff(starts, append=len(values))
        values, beside = self._taken(values)
        if len(starts) == len(values):
            with np.errstate(all="ignore"):  # NaN and infinity are not 0 apart from themselves
                return counts, values, square(values - values, beside)
        of = np.repeat(np.arange(len(starts)), counts)
        with np.errstate(all="ignore"):
            mean = run_sums(values, starts, of) / counts
            apart = mean[of]
            np.subtract(values, apart, out=apart)
            return counts, mean, run_sums(square(apart, beside), starts, of)

    def scatter(self, at: Array, values: Array, counts: Array) -> State:
        values, beside = self._taken(values)
        with np.errstate(all="ignore"):
            mean = (table_sums(at, values, len(counts)) / counts).astype(self.computed, copy=False)
            apart = mean[at]
            np.subtract(values, apart, out=apart)
            squares = square(apart, beside)
            sums = table_sums(at, squares, len(counts)).astype(self._real, copy=False)
        return counts, mean, sums

    def in_cells(self, parts: Parts, cells: int) -> tuple[Array, ...] | None:
        if self.computed.char != "d":
            return None
        found = in_cells("add_moments", parts, cells, _REAL)
        return found and (*found[:2], *found[1:])

    def _taken(self, values: Array) -> tuple[Array, Array | None]:
        """Return values as they are computed with; of complex ones in a real dtype also the squares of what it cuts."""
        if values.dtype.kind == "c" and self.computed.kind != "c":
            return values.real.astype(self.computed), np.square(values.imag)
        return values.astype(self.computed, copy=False), None

    def merge(self, state: State, starts: Array) -> State:
        n, mean, sums = state
        if len(starts) == len(n):
            return state
        with np.errstate(all="ignore"):
            total = run_sums(n, starts)
            middle = run_sums(n * mean, starts) / total
            apart = mean - np.repeat(middle, np.diff(starts, append=len(n)))
            return total, middle, run_sums(sums + n * square(apart), starts)

    def with_zeros(self, state: State, missing: Array) -> State:
        n, mean, sums = state
        with np.errstate(all="ignore"):
            total = np.maximum(n + missing, 1)
            more = times(square(mean), n * (missing / total))
            return n + missing, mean * (n / total), sums + more

    def finish(self, state: State, count: Count) -> Array:
        self.check(count)
        return self.answer(state[2], count)

    def finish_with_zeros(self, state: State, stored: Array, count: Count) -> Array:
        is_one = np.ndim(count) == 0 and count > self.ddof and self.result.char == "d"
        loops = loops_of("variances", state[1], "d") if is_one else None
        if loops is None:
            return super().finish_with_zeros(state, stored, count)
        left = float(count - self.ddof)
        out: Array = loops.variances(stored, *state[1:], count, left, self.is_root)
        return out

    def check(self, count: Count) -> None:
        """Warn as NumPy does where so many elements are too few."""
        if np.any(count <= self.ddof):
            warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)

    def answer(self, squares: Array, count: Count) -> Array:
        """Return the answer of sums of squares of what elements are apart from their mean."""
        with np.errstate(all="ignore"):
            left = count - self.ddof
            out = np.true_divide(squares, np.maximum(left, 0) if np.ndim(left) else max(left, 0))
            out = np.sqrt(out) if self.is_root else out
            return np.asarray(out.astype(self.result, copy=False))


@dataclass(frozen=True)
class IntegerMoments(Kernel):
    """Variance of short integers by their sums and sums of squares, which int64 holds, so that nothing is lost.

    Attributes
    ----------
    moments : Moments
        The variance that this one computes.
    held : tuple of dtype
        The narrowest integers that hold both sums.
    """

    moments: Moments
    held: tuple[np.dtype[Any], np.dtype[Any]]

    @property
    def loop(self) -> str:
        return "add_moments"

    def start(self, block: Array, axes: Axes, mask: Array | None = None) -> State:
        block = block if mask is None else np.where(mask, block, block.dtype.type(0))
        sums, squares = self.held
        return sum_of(block, axes, sums), sum_of(square(block), axes, squares)

    def blank(self, shape: Sequence[int]) -> State:
        return tuple(np.zeros(shape, dtype) for dtype in self.held)

    def wide(self, state: State) -> State:
        return tuple(np.array(array, dtype) for array, dtype in zip(state, self.held, strict=True))

    def absorb(self, state: State, other: State) -> None:
        for array, more in zip(state, other, strict=True):
            np.add(array, more, out=array, casting="unsafe")

    def groups(self, values: Array, starts: Array) -> State:
        found = values.astype(np.int64)
        return np.add.reduceat(found, starts), np.add.reduceat(found * found, starts)

    def scatter(self, at: Array, values: Array, counts: Array) -> State:
        sums, squares = np.zeros((2, len(counts)), np.int64)
        found = values.astype(np.int64)
        np.add.at(sums, at, found)
        np.add.at(squares, at, found * found)
        return sums, squares

    def merge(self, state: State, starts: Array) -> State:
        return tuple(np.add.reduceat(array, starts) for array in state)

    def with_zeros(self, state: State, missing: Array) -> State:
        return state

    def finish(self, state: State, count: Any) -> Array:
        self.moments.check(count)
        left = float(max(count - self.moments.ddof, 0))
        found = variances(state[0], state[1], count, left, self.moments.is_root)
        if found is not None:
            return found
        sums, squares = (array.reshape(-1) for array in state)

        def some(here: slice) -> Array:
            total, square = sums[here].astype(np.int64), squares[here].astype(np.int64)
            square *= count
            np.multiply(total, total, out=total)
            square -= total
            return self.moments.answer(square / max(1, count), count)

        return filled(some, state[0].shape, self.moments.result)


_LOGICAL = (np.logical_or, np.logical_and)
