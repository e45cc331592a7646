"""The samples of one epoch in order, cut into batches and into shares of ranks."""

from __future__ import annotations

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
SPLITS = 16
"""Runs that are read side by side when nobody says how many: whatever a batch is, or the order would depend on it."""

MOST_SPLITS = 1024
"""As many runs are read side by side at most."""

_CHUNK = 1024


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
    before; the shares of a batch, one after the other, are the batch and what fills it up; the sequence does not depend
    on `batch`.

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
        For ``"block"``: runs that are read side by side, 16 when it is not given. It is part of the order. Where it
        divides a batch, each rank reads runs of its own; else neighbours share some.
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
        "_firsts",
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
            raise InvalidOptionError(
                f"shuffle={shuffle!r} is not one of None, 'global' and 'block'"
            )
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
        self.splits = (splits or SPLITS) if shuffle == "block" else 1
        self.drop_last = drop_last
        self.begin = begin
        self.positions = None if positions is None else np.asarray(positions, np.int64)
        self._firsts: I64 | None = None
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
        return self._chosen(self._places.at(start, stop))

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
        return self._chosen(self._batch(k))

    def share(self, k: int, rank: int, world_size: int) -> I64:
        """Return the positions of one rank in batch `k`; all ranks have equally many.

        Raises
        ------
        InvalidKeyError
            There is no batch `k`.
        InvalidOptionError
            `rank` is not one of `world_size`, or the batch does not divide by it.
        """
        return self._chosen(self._share(k, rank, world_size))

    def repeats(self, k: int, rank: int, world_size: int) -> I64:
        """Return how often each sample of a `share` was drawn for this epoch before it: 0 where each comes once.

        A position and this number name a sample of an epoch, whatever batch it is in. What fills the last batch up has
        the numbers of the samples that it repeats.

        Examples
        --------
        >>> EpochOrder(4, 4, None, positions=np.array([2, 5, 5, 5])).repeats(0, rank=0, world_size=1)
        array([0, 0, 1, 2])
        """
        places = self._share(k, rank, world_size)
        if self.positions is None:
            return np.zeros(len(places), np.int64)
        if self._firsts is None:  # those that are drawn several times lie side by side
            self._firsts = np.append(0, 1 + np.flatnonzero(np.diff(self.positions)))
        return places - self._firsts[np.searchsorted(self._firsts, places, side="right") - 1]

    def later(self, k: int, rank: int, world_size: int, tries: int) -> I64:
        """Return places in the sequence of samples that may stand in for those of a `share`, which cannot be read.

        They are the next of the same split behind the batch, so that a rank reads no other blocks for them. Where the
        split has no more, they are what comes next in the epoch, and after its end the samples at its beginning.

        Parameters
        ----------
        k, rank, world_size : int
            As for `share`.
        tries : int
            How many for each sample.

        Returns
        -------
        int64 ndarray, shape (tries, samples of the share)

        Examples
        --------
        >>> EpochOrder(10, 4, None).later(1, rank=1, world_size=2, tries=2).tolist()
        [[0, 1], [1, 2]]
        """
        start, stop = self.span(k)
        place, turn = self._in_sequence(k, rank, world_size), np.arange(1, tries + 1)[:, None]
        step = -(-self.batch_size // self.splits) * self.splits
        past = turn - (self.count - 1 - place) // step  # above 0 where the split has no more
        then = place + min(stop - start, max(1, self.count - 1)) + past - 1
        return np.where(past > 0, then % self.count, place + turn * step)

    def standing_in(self, k: int, rank: int, world_size: int, place: int, step: int) -> int:
        """Return the position of the sample that stands in, as the `step`-th, for one of a share; see `later`."""
        later = int(self.later(k, rank, world_size, step)[step - 1, place])
        return int(self.sequence(later, later + 1)[0])

    def _chosen(self, places: I64) -> I64:
        return places if self.positions is None else self.positions[places]

    def _batch(self, k: int) -> I64:
        """Return the places in the table, or among what is chosen, of batch `k`."""
        start, stop = self.span(k)
        found = self._places.at(start, stop)
        if self.splits == 1:
            return found
        return found[np.argsort(np.arange(start, stop) % self.splits, kind="stable")]

    def _share(self, k: int, rank: int, world_size: int) -> I64:
        """Return the places in the table, or among what is chosen, of one rank's samples."""
        wanted = self._in_sequence(k, rank, world_size)
        start, stop = self.span(k)
        found = self._places.at(start, stop)[np.maximum(wanted - start, 0)]
        if len(before := np.flatnonzero(wanted < start)):  # what fills the batch up
            found[before] = self._places.at(0, int(wanted[before].max()) + 1)[wanted[before]]
        return found

    def _in_sequence(self, k: int, rank: int, world_size: int) -> I64:
        """Return the places in the sequence of one rank's samples of batch `k`."""
        if world_size < 1 or not 0 <= rank < world_size:
            raise InvalidOptionError(
                f"rank={rank} of world_size={world_size}: ranks go from 0 to world_size - 1"
            )
        if self.batch_size % world_size:
            raise InvalidOptionError(
                f"a batch of {self.batch_size} does not divide by world_size={world_size}: take a multiple of it"
            )
        start, stop = self.span(k)
        whole = np.arange(start, stop)
        if self.splits > 1:
            whole = whole[np.argsort(whole % self.splits, kind="stable")]
        if missing := -len(whole) % world_size:
            # The first of the epoch, all over again when there are fewer than are wanted.
            whole = np.concatenate([whole, np.resize(np.arange(min(missing, self.count)), missing)])
        each = len(whole) // world_size
        return whole[rank * each : (rank + 1) * each]


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
