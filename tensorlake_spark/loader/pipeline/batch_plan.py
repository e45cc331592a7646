"""Which samples a batch has, worked out where the order is known, for a process that makes the batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tensorlake_spark.loader.columns.values import Array
from tensorlake_spark.loader.order.epoch_order import EpochOrder, Shuffle


class BatchPlan(NamedTuple):
    """The samples of one rank's batch.

    Attributes
    ----------
    number : int
        Of the batch.
    positions : int64 ndarray
        Of its samples.
    repeats : int64 ndarray
        How often each was drawn for this epoch before; see `EpochOrder.repeats`.
    later : int64 ndarray, shape (tries, samples)
        Positions of samples that take the place of each, one after the other, where it cannot be read.
    """

    number: int
    positions: Array
    repeats: Array
    later: Array


def plan_of(
    order: EpochOrder, lying: Array | None, number: int, rank: int, world_size: int, tries: int
) -> BatchPlan:
    """Return the plan of a batch.

    Parameters
    ----------
    order : EpochOrder
        Of the epoch.
    lying : int64 ndarray, or None
        The positions of samples by their places in the order, where the two are not the same.
    number, rank, world_size : int
        Whose part of which batch.
    tries : int
        How many samples may take the place of one that cannot be read.

    Examples
    --------
    >>> plan = plan_of(EpochOrder(10, 4, None), None, 1, rank=1, world_size=2, tries=1)
    >>> plan.positions.tolist(), plan.later.tolist()
    ([6, 7], [[0, 1]])
    """
    positions = order.share(number, rank, world_size)
    repeats = order.repeats(number, rank, world_size)
    wanted = order.later(number, rank, world_size, tries)
    places = np.unique(wanted)
    parts = [np.zeros(0, np.int64)]
    for run in np.split(places, np.flatnonzero(np.diff(places) > order.batch_size) + 1):
        if len(run):
            parts.append(order.sequence(int(run[0]), int(run[-1]) + 1)[run - run[0]])
    later = np.concatenate(parts)[np.searchsorted(places, wanted)]
    if lying is not None:
        positions, later = lying[positions], lying[later]
    return BatchPlan(number, positions, repeats, later)


class PlannedOrder:
    """The part of an `EpochOrder` that makes batches, from the plans of these."""

    shuffle: Shuffle = None  # positions are those of samples already

    def __init__(self) -> None:
        self._plans: dict[int, BatchPlan] = {}

    def add(self, plan: BatchPlan) -> None:
        """Know a batch."""
        self._plans[plan.number] = plan

    def drop(self, number: int) -> None:
        """Forget a batch that is made."""
        del self._plans[number]

    def share(self, number: int, rank: int, world_size: int) -> Array:
        """Return the positions of one rank in a batch: of the rank for which it was planned."""
        return self._plans[number].positions

    def repeats(self, number: int, rank: int, world_size: int) -> Array:
        """Return how often each sample of the batch was drawn for this epoch before."""
        return self._plans[number].repeats

    def standing_in(self, number: int, rank: int, world_size: int, place: int, step: int) -> int:
        """Return the position of the sample that takes the place of another; see `EpochOrder.standing_in`."""
        return int(self._plans[number].later[step - 1, place])
