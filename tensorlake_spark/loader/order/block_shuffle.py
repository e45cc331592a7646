"""A shuffle for samples that lie together on a disk: blocks in random order, samples moved by less than a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.order.chunk_cache import ChunkCache
from tensorlake_spark.loader.order.counter_random import key_of
from tensorlake_spark.loader.order.permutation import Permutation
from tensorlake_spark.loader.order.sliding_shuffle import SlidingShuffle

I64 = NDArray[np.int64]

_CHUNK = 4096


class BlockOrder:
    """The samples of a table block after block, the blocks in an order that `key` chooses.

    Parameters
    ----------
    starts : int64 ndarray, shape (n + 1,)
        Where each block begins, and where the last one ends; sorted. A block without samples is left out.
    key : int

    Raises
    ------
    InvalidOptionError
        `starts` is empty, has two axes, or is not sorted.

    Examples
    --------
    >>> BlockOrder(np.array([0, 3, 5, 9]), key=2).at(np.arange(9)).tolist()
    [0, 1, 2, 5, 6, 7, 8, 3, 4]
    """

    __slots__ = ("_begins", "_first", "count")

    def __init__(self, starts: NDArray[Any], key: int) -> None:
        starts = np.asarray(starts, np.int64)
        if starts.ndim != 1 or not len(starts):
            raise InvalidOptionError(
                f"starts of blocks need one axis and the end; their shape is {starts.shape}"
            )
        sizes = np.diff(starts)
        if (sizes < 0).any():
            place = int(np.argmax(sizes < 0))
            raise InvalidOptionError(
                f"block {place} begins at {starts[place]} and ends at {starts[place + 1]}"
            )
        full = np.flatnonzero(sizes)
        order = full[Permutation(len(full), key).at(np.arange(len(full)))]
        self._first = starts[order]
        self._begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[order])])
        self.count = int(self._begins[-1])

    def at(self, places: NDArray[Any]) -> I64:
        """Return the positions of the samples at these places of the order."""
        block = np.searchsorted(self._begins, places, side="right") - 1
        return np.asarray(self._first[block] + (places - self._begins[block]))


class BlockShuffle:
    """All samples of a table: blocks permuted, then cut into runs, and each run shuffled by a sliding buffer.

    Place `p` of the sequence is place ``p // splits`` of run ``p % splits``. So `splits` runs are read side by side,
    and who takes only some of them reads only their blocks. When all samples fit into the buffer the sequence is a
    true permutation.

    Laws: every position comes once; within its run a sample moves by less than ``ceil(buffer / splits)`` places from
    where the order of blocks has it; `at(a, b)` is that part of the whole, however it is cut.

    Parameters
    ----------
    starts : int64 ndarray, shape (n + 1,)
        Where each block begins, and where the last one ends; see `BlockOrder`.
    key : int
        64 bits; see `key_of`.
    buffer : int
        In samples, of all runs together.
    splits : int, optional
        How many runs, at least 1.

    Raises
    ------
    InvalidOptionError
        `starts`, `buffer` or `splits` is out of range.

    Examples
    --------
    >>> shuffled = BlockShuffle(np.arange(0, 1001, 50), key=3, buffer=100)
    >>> shuffled.at(0, 8).tolist()
    [803, 802, 800, 808, 805, 816, 807, 825]
    >>> bool((shuffled.at(400, 500) == shuffled.at(0, 1000)[400:500]).all())
    True
    """

    __slots__ = (
        "_chunks",
        "_cuts",
        "_order",
        "_runs",
        "_whole",
        "buffer",
        "count",
        "splits",
    )

    def __init__(self, starts: NDArray[Any], key: int, buffer: int, splits: int = 1) -> None:
        if splits < 1:
            raise InvalidOptionError(f"splits={splits} of a shuffle: at least 1")
        self._order = BlockOrder(starts, key_of(key, "blocks"))
        self.count = self._order.count
        self.buffer = buffer
        self.splits = splits
        self._whole = (
            Permutation(self.count, key_of(key, "whole")) if self.count <= buffer else None
        )
        sizes = [(self.count - split + splits - 1) // splits for split in range(splits)]
        each = -(-buffer // splits)
        self._runs = [
            SlidingShuffle(size, key_of(key, "run", split), each)
            for split, size in enumerate(sizes)
        ]
        self._cuts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self._chunks = ChunkCache(self._computed, self.count, max(_CHUNK, buffer // 4))

    def __len__(self) -> int:
        return self.count

    def at(self, start: int, stop: int) -> I64:
        """Return the positions at the places `start` to `stop`, which is exclusive.

        What lies before is not computed. Some thousand places more are, and kept for the next call.

        Raises
        ------
        InvalidKeyError
            The places are not in the sequence, or `stop` lies before `start`.
        """
        return self._chunks.at(start, stop)

    def _computed(self, start: int, stop: int) -> I64:
        if self._whole is not None:
            return self._order.at(self._whole.at(np.arange(start, stop)))
        places = np.empty(stop - start, np.int64)
        for split, run in enumerate(self._runs):
            low, high = (-(-(edge - split) // self.splits) for edge in (start, stop))
            places[low * self.splits + split - start :: self.splits] = (
                run.at(low, high) + self._cuts[split]
            )
        return self._order.at(places)
