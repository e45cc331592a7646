"""Samples drawn by weight, with and without replacement, and weights that make classes equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.loader.order.counter_random import exponential, key_of, uniform

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class Draw:
    """What is drawn for one epoch: `count` places of the array of weights.

    With replacement each draw takes place `i` with probability ``weights[i] / sum(weights)``. Without replacement a
    draw does so among what is left (Efraimidis and Spirakis, 2006: the smallest of exponential numbers, each divided
    by its weight). Draw anew for each epoch, with a key of that epoch.

    What is drawn goes sorted into an `EpochOrder`, as its `positions`; of a selection, ``selected[draw.places()]``.

    Parameters
    ----------
    weights : array of numbers, shape (n,)
        Not negative; they need not sum to 1. A weight of zero is never drawn.
    count : int, optional
        How many to draw; as many as there are weights when it is not given.
    replacement : bool, optional
        Whether a place may come more than once.
    key : int, optional
        64 bits; see `key_of`.

    Raises
    ------
    InvalidOptionError
        A weight is negative, infinite or no number, all are zero, or fewer than `count` are not.

    Examples
    --------
    >>> Draw([1, 0, 3], count=6, key=5).places()
    array([0, 0, 2, 2, 2, 2])
    >>> Draw([1, 0, 3], count=2, replacement=False).places()
    array([0, 2])
    """

    __slots__ = ("count", "key", "replacement", "weights")

    def __init__(
        self,
        weights: ArrayLike,
        count: int | None = None,
        *,
        replacement: bool = True,
        key: int = 0,
    ) -> None:
        self.weights = checked_weights(weights)
        self.count = len(self.weights) if count is None else count
        self.replacement = replacement
        self.key = key
        if self.count < 0:
            raise InvalidOptionError(f"count={count} of a draw is negative")
        drawable = int(np.count_nonzero(self.weights))
        if self.count and not drawable:
            raise InvalidOptionError(
                f"all {len(self.weights)} weights are zero: nothing can be drawn"
            )
        if not replacement and self.count > drawable:
            raise InvalidOptionError(
                f"{self.count} samples without replacement, and {drawable} weights are not zero: "
                "draw fewer, or set replacement=True"
            )

    def places(self) -> I64:
        """Return what is drawn, sorted: int64 of shape ``(count,)``."""
        if not self.count:
            return np.empty(0, np.int64)
        found = self._with_replacement() if self.replacement else self._without_replacement()
        found.sort()
        return found

    def _with_replacement(self) -> I64:
        sums = np.cumsum(self.weights)
        wanted = uniform(key_of(self.key, "with replacement"), np.arange(self.count)) * sums[-1]
        found = np.searchsorted(sums, wanted, side="right")
        # A product may be rounded up to the whole sum, where nothing lies any more.
        return np.asarray(np.minimum(found, np.flatnonzero(self.weights)[-1]), np.int64)

    def _without_replacement(self) -> I64:
        chosen = np.flatnonzero(self.weights)
        with np.errstate(over="ignore"):  # what is infinite comes last
            times = (
                exponential(key_of(self.key, "without replacement"), chosen) / self.weights[chosen]
            )
        if self.count < len(chosen):
            # Two equal times at the border are as good as impossible; the same one is taken everywhere all the same.
            chosen = chosen[np.argsort(times, kind="stable")[: self.count]]
        return np.asarray(chosen, np.int64)


def balanced(labels: ArrayLike) -> F64:
    """Return a weight for each sample, so that all classes have the same probability, and all samples of a class.

    Parameters
    ----------
    labels : array, shape (n,)
        Integers or texts.

    Raises
    ------
    InvalidOptionError
        `labels` has not one axis.

    Examples
    --------
    >>> balanced(["cat", "dog", "cat", "cat"]).tolist()
    [0.3333333333333333, 1.0, 0.3333333333333333, 0.3333333333333333]
    """
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise InvalidOptionError(
            f"labels have shape {labels.shape}: one label for each sample is needed"
        )
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray((1.0 / counts)[place], np.float64)


def checked_weights(weights: ArrayLike, count: int | None = None) -> F64:
    """Return weights as float64, scaled so that the largest is below 1 and not below 1/2: no sum overflows.

    Raises
    ------
    InvalidOptionError
        They are no numbers, have not one axis, are not `count`, or one of them is masked, negative, infinite or no
        number.

    Examples
    --------
    >>> checked_weights([2, 1, 0]).tolist()
    [0.5, 0.25, 0.0]
    """
    if np.ma.is_masked(weights):
        raise InvalidOptionError(
            "weights are masked in some places; fill them, as weights.filled(0) does"
        )
    try:
        found = np.asarray(weights).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        kind: Any = getattr(weights, "dtype", type(weights).__name__)
        raise InvalidOptionError(f"weights are {kind}: numbers are needed") from None
    if found.ndim != 1 or (count is not None and len(found) != count):
        wanted = (
            "one weight for each sample" if count is None else f"one for each of {count} samples"
        )
        raise InvalidOptionError(f"weights have shape {found.shape}: {wanted} is needed")
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InvalidOptionError(
            f"weight {found[place]} of sample {place} is not a finite number of at least 0"
        )
    # By a power of two, which rounds nothing; what would become zero is the smallest number that is not.
    scaled = np.ldexp(found, -np.frexp(found.max(initial=0.0))[1])
    scaled[(scaled == 0) & (found > 0)] = np.nextafter(0.0, 1.0)
    return np.asarray(scaled)
