"""Samples that are read part by part, because there is no room for all that they need at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.sources.loader_source import FetchedSamples


def parts_within(positions: Array, nbytes: Callable[[Array], int], most: int) -> list[Array]:
    """Return places of samples in parts, each of which needs few bytes to be held; one sample may need more.

    Parameters
    ----------
    positions : int64 ndarray
        Of the samples.
    nbytes : callable
        Returns the bytes that are held while some of them, ascending, are read.
    most : int
        Of one part.

    Examples
    --------
    >>> parts_within(np.array([9, 2, 5, 2]), lambda some: 10 * len(np.unique(some)), 20)
    [array([1, 3]), array([2, 0])]
    """
    order = np.argsort(positions, kind="stable")
    waiting, out = [order], []
    while waiting:
        some = waiting.pop()
        middle = len(some) // 2
        if middle and nbytes(positions[some]) > most:
            waiting += [some[middle:], some[:middle]]
        else:
            out.append(some)
    return out


class FetchedParts:
    """Samples in several parts, as one.

    Parameters
    ----------
    parts : sequence of FetchedSamples
        The parts.
    places : sequence of int64 ndarray
        Where the samples of each lie among all.
    """

    def __init__(self, parts: Sequence[FetchedSamples], places: Sequence[Array]) -> None:
        self._parts, self._places = [*parts], [*places]
        self.raw_nbytes = sum(part.raw_nbytes for part in parts)
        self.hits = sum(part.hits for part in parts)
        self.misses = sum(part.misses for part in parts)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the values, and of the largest part beside them while they are put together."""
        each = [part.nbytes for part in self._parts]
        return sum(each) + max(each)

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        """Return the values of all columns, in the order in which the samples were asked for."""
        count = sum(map(len, self._places))
        joined: dict[str, _Joined] = {}
        for part, places in zip(self._parts, self._places, strict=True):
            own = {name: random[places] for name, random in draws.items()}
            for name, values in part.values(own).items():
                joined.setdefault(name, _Joined(count)).add(places, values)
        return {name: one.values() for name, one in joined.items()}


class _Joined:
    """The values of a column: an array as long as all parts have one shape, then a list."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._array: Array | None = None
        self._list: list[Any] | None = None
        self._done: list[Array] = []

    def add(self, places: Array, values: Values) -> None:
        """Put the values of a part where they belong."""
        if self._list is None and isinstance(values, np.ndarray):
            if self._array is None:
                self._array = np.empty((self._count, *values.shape[1:]), values.dtype)
            if (self._array.shape[1:], self._array.dtype) == (values.shape[1:], values.dtype):
                self._array[places] = values
                self._done.append(places)
                return
        if self._list is None:
            self._list = [None] * self._count
            for some in self._done:
                for place in some.tolist():
                    self._list[place] = self._array[place]  # type: ignore[index]
        for place, value in zip(places.tolist(), values, strict=True):
            self._list[place] = value

    def values(self) -> Values:
        if self._list is not None:
            return self._list
        found: Values = self._array  # type: ignore[assignment]
        return found
