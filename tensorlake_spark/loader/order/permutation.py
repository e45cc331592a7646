"""Permutations of a range with random access: item `i` is computed, nothing is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.counter_random import hashed, key_of

I64 = NDArray[np.int64]

_SMALL = 1024
_ROUNDS = 8
_MOST = 1 << 62
_HALF = np.uint64(32)


class Permutation:
    """A permutation of ``range(count)`` that `key` chooses.

    It is a Feistel network on a rectangle that is just as large as needed: a number is a row and a column, and each
    round moves one of them around by a random function of the other. What falls into the few places past the end
    goes through once more (cycle walking). A small range is sorted by random numbers, which makes all its
    permutations equally likely.

    Laws: every number of the range comes once; item `i` does not depend on what else is asked for.

    Parameters
    ----------
    count : int
        Less than 2**62.
    key : int
        64 bits; see `key_of`.

    Raises
    ------
    InvalidOptionError
        `count` is negative or too large.

    Examples
    --------
    >>> shuffled = Permutation(10_000_000, key=7)
    >>> shuffled.at(np.array([0, 1, 9_999_999])).tolist()
    [9588214, 5404398, 8914690]
    >>> sorted(Permutation(5, key=7).at(np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    __slots__ = ("_columns", "_keys", "_rows", "_table", "count", "key")

    def __init__(self, count: int, key: int) -> None:
        if not 0 <= count < _MOST:
            raise InvalidOptionError(f"count={count} of a permutation is not in 0 to 2**62 - 1")
        self.count = count
        self.key = key
        self._table: I64 | None = None
        if count <= _SMALL:
            self._table = np.argsort(hashed(key, np.arange(count)), kind="stable")
        self._rows = max(1, math.isqrt(max(0, count - 1)) + 1)
        self._columns = max(1, -(-count // self._rows))
        self._keys = [key_of(key, "round", turn) for turn in range(_ROUNDS)]

    def __len__(self) -> int:
        return self.count

    def at(self, places: NDArray[Any]) -> I64:
        """Return the items at these places, as int64 of the same shape.

        Raises
        ------
        InvalidKeyError
            A place is not in ``range(count)``.
        """
        places = np.asarray(places, np.int64)
        if places.size and (places.min() < 0 or places.max() >= self.count):
            raise InvalidKeyError(
                f"places {places.min()} to {places.max()} of a permutation of {self.count}; "
                f"they go from 0 to {self.count - 1}"
            )
        if self._table is not None:
            return np.asarray(self._table[places])
        out = self._turned(places.astype(np.uint64))
        while (outside := out >= np.uint64(self.count)).any():
            out[outside] = self._turned(out[outside])
        return out.astype(np.int64)

    def _turned(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        columns = np.uint64(self._columns)
        row, column = np.divmod(numbers, columns)
        for turn, key in enumerate(self._keys):
            if turn % 2:
                _move(column, self._columns, hashed(key, row))
            else:
                _move(row, self._rows, hashed(key, column))
        return np.asarray(row * columns + column)


def _move(numbers: NDArray[np.uint64], length: int, chance: NDArray[np.uint64]) -> None:
    """Move numbers below `length` around in their circle, each by a random distance."""
    whole = np.uint64(length)
    numbers += ((chance >> _HALF) * whole) >> _HALF  # 32 random bits, scaled without a division
    numbers -= np.where(numbers >= whole, whole, np.uint64(0))
