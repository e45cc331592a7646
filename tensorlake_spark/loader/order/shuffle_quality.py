"""How well an order is shuffled: how far samples moved, and what that makes of data sorted by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlake_spark.errors import InvalidOptionError


@dataclass(frozen=True)
class ShuffleQuality:
    """Measures of an order, on a table that is sorted by label.

    Attributes
    ----------
    displacement : float
        Mean distance of a sample from where it lies in the table, in parts of the number of samples. A true shuffle
        has 1/3.
    run_length : float
        Mean length of runs of one label. A true shuffle of equal classes has ``1 / (1 - 1 / classes)``.
    labels_in_a_batch : float
        Mean number of different labels in a batch.
    of_true_shuffle : float
        That number, divided by what a true shuffle is expected to have.
    """

    displacement: float
    run_length: float
    labels_in_a_batch: float
    of_true_shuffle: float


def quality_of(order: NDArray[Any], labels: NDArray[Any], batch: int) -> ShuffleQuality:
    """Return the measures of an order.

    Parameters
    ----------
    order : integer ndarray, shape (n,)
        Positions, in the order in which they are delivered.
    labels : integer ndarray, shape (m,)
        Of every position, at least 0.
    batch : int
        Samples in a batch; what does not fill the last one is left out.

    Raises
    ------
    InvalidOptionError
        There is not one whole batch.

    Examples
    --------
    >>> found = quality_of(np.arange(8), np.repeat([0, 1], 4), batch=4)
    >>> found.displacement, found.run_length, found.labels_in_a_batch, round(found.of_true_shuffle, 3)
    (0.0, 4.0, 1.0, 0.507)
    """
    if not 1 <= batch <= len(order):
        raise InvalidOptionError(
            f"batch={batch} is not in 1 to {len(order)}, the number of samples"
        )
    found = np.asarray(labels)[order]
    whole = found[: len(found) // batch * batch].reshape(-1, batch)
    ordered = np.sort(whole, axis=1)
    different = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)
    expected = expected_labels(np.bincount(found), batch)
    return ShuffleQuality(
        displacement=float(np.abs(order - np.arange(len(order))).mean() / len(order)),
        run_length=len(found) / (1 + int(np.count_nonzero(np.diff(found)))),
        labels_in_a_batch=float(different.mean()),
        of_true_shuffle=float(different.mean() / expected),
    )


def expected_labels(counts: NDArray[Any], batch: int) -> float:
    """Return how many different labels a batch of a true shuffle has on average.

    A label of `c` samples among `n` is missing with the probability that `batch` draws without replacement miss all
    of them.

    Examples
    --------
    >>> expected_labels(np.array([1, 1]), 1), expected_labels(np.array([5, 5]), 10)
    (1.0, 2.0)
    """
    count = int(counts.sum())
    gone = np.ones(len(counts))
    for drawn in range(batch):
        gone *= np.maximum(0, count - counts - drawn) / (count - drawn)
    return float((1 - gone)[counts > 0].sum())
