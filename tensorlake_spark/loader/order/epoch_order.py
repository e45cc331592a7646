"""The samples of one epoch in order, cut into batches and into shares of ranks."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidKeyError, InvalidOptionError
from tensorlake_spark.loader.order.block_shuffle import BlockShuffle
from tensorlake_spark.loader.order.chunk_cache import ChunkCache
from tensorlake_spark.loader.order.permutation import Permutation

I64 = NDArray[np.int64]
Shuffle = Literal["global", "block"] | None

SHUFFLES: tuple[Shuffle, ...] = (None, "global", "block")
_MOST_SPLITS = 16
_CHUNK = 1024


def default_splits(batch: int) -> int:
    """Return how many runs are read side by side when nobody says so: the largest divisor of `batch` and of 16.

    Examples
    --------
    >>> default_splits(64), default_splits(24), default_splits(7)
    (16, 8, 1)
    """
    return math.gcd(batch, _MOST_SPLITS)


class EpochOrder:
    """The samples of an epoch, in an order that is a function of `key` and of what is chosen from.

    The order is one sequence of samples. It depends neither on batches nor on ranks, which are slices of it: batch
    `k` has the places ``begin + k * batch`` and on. So with one `batch`, each batch has the same samples however many
    ranks there are; and whoever knows how many samples were delivered goes on from there, with other batches too.

    Inside a batch the samples are sorted by split, because a rank takes a slice of the batch: it reads few of the runs
    that ``"block"`` reads side by side.

    When the samples do not divide by `batch`, the last batch has what is left. All ranks get equally many of them: the
    batch is filled up with samples from the beginning of the epoch, at most ``world_size - 1``, which are delivered
    twice. On one rank each sample is delivered once.

    Laws: all batches together are all samples, each once; `batch(k)` and `share` do not depend on what was asked for
    before; the shares of a batch, one after the other, are the batch and what fills it up.

    Parameters
    ----------
    count : int
        Samples in an epoch.
    batch : int
        Samples in a batch of all ranks together.
    shuffle : None, "global" or "block"
        In the order given, a true permutation, or a `BlockShuffle`.
    key : int
        64 bits, of seed, epoch and what was selected; see `key_of`.
    starts : int64 ndarray, shape (n + 1,), optional
        For ``"block"``: the first position of each block, and where the last one ends. None is one block.
    buffer : int, optional
        For ``"block"``: samples that are held to shuffle, by all ranks together.
    splits : int, optional
        For ``"block"``: runs that are read side by side. `default_splits` when it is not given. It is part of the order:
        who goes on with another `batch` names it.
    drop_last : bool, optional
        Leave out a last batch that is not full.
    positions : int64 ndarray, shape (count,), optional
        The positions that are chosen from: a selection, or what was drawn, with repetitions. Place `i` of the table is
        then ``positions[i]``. ``"block"`` takes them sorted, and cuts them where blocks begin. None is all.
    begin : int, optional
        Samples that were delivered before: batch 0 begins there.

    Raises
    ------
    InvalidOptionError
        One of these is out of range, or they do not fit each other.

    Examples
    --------
    >>> order = EpochOrder(10, batch=4, shuffle="global", key=1)
    >>> [order.batch(k).tolist() for k in range(order.n_batches)]
    [[8, 4, 3, 7], [0, 1, 5, 9], [6, 2]]
    >>> [order.share(2, rank, world_size=4).tolist() for rank in range(4)]
    [[6], [2], [8], [4]]
    >>> EpochOrder(10, batch=3, shuffle="global", key=1, begin=4).batch(0)
    array([0, 1, 5])
    """

    __slots__ = (
        "_places",
        "batch_size",
        "begin",
        "buffer",
        "count",
        "drop_last",
        "positions",
        "shuffle",
        "splits",
    )

    def __init__(
        self,
        count: int,
        batch: int,
        shuffle: Shuffle,
        key: int = 0,
        *,
        starts: NDArray[Any] | None = None,
        buffer: int = 16_384,
        splits: int | None = None,
        drop_last: bool = False,
        positions: NDArray[Any] | None = None,
        begin: int = 0,
    ) -> None:
        if batch < 1:
            raise InvalidOptionError(f"batch={batch} of an epoch: at least 1 sample")
        if shuffle not in SHUFFLES:
            raise InvalidOptionError(f"shuffle={shuffle!r} is none of None, 'global' and 'block'")
        if not 0 <= begin <= count:
            raise InvalidOptionError(f"begin={begin} is not in an epoch of {count} samples")
        if positions is not None and np.shape(positions) != (count,):
            raise InvalidOptionError(
                f"positions have shape {np.shape(positions)}, and count={count}"
            )
        self.count = count
        self.batch_size = batch
        self.shuffle = shuffle
        self.buffer = buffer
        self.splits = (splits or default_splits(batch)) if shuffle == "block" else 1
        self.drop_last = drop_last
        self.begin = begin
        self.positions = None if positions is None else np.asarray(positions, np.int64)
        self._places: ChunkCache | BlockShuffle = ChunkCache(np.arange, count, batch)
        if shuffle == "global":
            whole = Permutation(count, key)
            self._places = ChunkCache(
                lambda low, high: whole.at(np.arange(low, high)), count, _CHUNK
            )
        elif shuffle == "block":
            edges = np.array([0, count] if starts is None else starts, np.int64)
            if self.positions is not None:
                self.positions = np.sort(self.positions)
                edges = chosen_blocks(self.positions, edges)
            blocks = BlockShuffle(edges, key, buffer, self.splits)
            if len(blocks) != count:
                raise InvalidOptionError(
                    f"the blocks hold {len(blocks)} samples, and the epoch has {count}"
                )
            self._places = blocks

    @property
    def n_batches(self) -> int:
        """How many batches come from `begin` on."""
        left = self.count - self.begin
        return left // self.batch_size if self.drop_last else -(-left // self.batch_size)

    def __len__(self) -> int:
        return self.n_batches

    def sequence(self, start: int, stop: int) -> I64:
        """Return the positions at the places `start` to `stop`, exclusive, of the whole epoch: `begin` is not added.

        Raises
        ------
        InvalidKeyError
            The places are not in the epoch.
        """
        places = self._places.at(start, stop)
        return places if self.positions is None else self.positions[places]

    def span(self, k: int) -> tuple[int, int]:
        """Return where batch `k` begins in the sequence, and where it ends: so many samples were delivered then.

        Raises
        ------
        InvalidKeyError
            There is no batch `k`.
        """
        if not 0 <= k < self.n_batches:
            raise InvalidKeyError(f"batch {k} of {self.n_batches}: they are counted from 0")
        start = self.begin + k * self.batch_size
        return start, min(self.count, start + self.batch_size)

    def batch(self, k: int) -> I64:
        """Return the positions of batch `k`, of all ranks together.

        Raises
        ------
        InvalidKeyError
            There is no batch `k`.
        """
        start, stop = self.span(k)
        found = self.sequence(start, stop)
        if self.splits == 1:
            return found
        return found[np.argsort(np.arange(start, stop) % self.splits, kind="stable")]

    def share(self, k: int, rank: int, world_size: int) -> I64:
        """Return the positions of one rank in batch `k`; all ranks have equally many.

        Raises
        ------
        InvalidKeyError
            There is no batch `k`.
        InvalidOptionError
            `rank` is not one of `world_size`, or the batch does not divide by it.
        """
        if world_size < 1 or not 0 <= rank < world_size:
            raise InvalidOptionError(
                f"rank={rank} of world_size={world_size}: ranks go from 0 to world_size - 1"
            )
        if self.batch_size % world_size:
            raise InvalidOptionError(
                f"a batch of {self.batch_size} does not divide by world_size={world_size}: take a multiple of it"
            )
        whole = self.batch(k)
        if missing := -len(whole) % world_size:
            whole = np.concatenate([whole, self._first(missing)])
        each = len(whole) // world_size
        return whole[rank * each : (rank + 1) * each]

    def _first(self, wanted: int) -> I64:
        """Return the first samples of the epoch, all over again when there are fewer than are wanted."""
        return np.resize(self.sequence(0, min(wanted, self.count)), wanted)


def chosen_blocks(positions: NDArray[Any], starts: NDArray[Any]) -> I64:
    """Return where the blocks of a selection begin: the places in `positions` at which another block begins.

    Parameters
    ----------
    positions : int64 ndarray, shape (n,)
        Sorted; repetitions are allowed.
    starts : int64 ndarray, shape (m + 1,)
        Of all blocks, and where the last one ends.

    Raises
    ------
    InvalidOptionError
        A position lies in none of the blocks.

    Examples
    --------
    >>> chosen_blocks(np.array([1, 2, 2, 9]), np.array([0, 3, 6, 10]))
    array([0, 3, 3, 4])
    """
    if len(positions) and not starts[0] <= positions[0] <= positions[-1] < starts[-1]:
        raise InvalidOptionError(
            f"positions {positions[0]} to {positions[-1]} are not in the blocks, {starts[0]} to {starts[-1] - 1}"
        )
    return np.searchsorted(positions, starts).astype(np.int64)
