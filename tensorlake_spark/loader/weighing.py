"""How likely each sample is drawn: what a user says of it, as weights."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, check_flag
from tensorlake_spark.loader.loader_options import whole
from tensorlake_spark.loader.order.sampling import balanced, checked_weights

Array = np.ndarray[Any, Any]


def drawing_weights(
    weights: Any,
    balance: str | None,
    samples: Any,
    replacement: Any,
    column: Callable[[str], Any],
    total: int,
    chosen: Array | None = None,
) -> Array | None:
    """Return a weight for each sample that is chosen from, or None where each comes once.

    Parameters
    ----------
    weights : str or array, or None
        A column of numbers, or a number for each sample.
    balance : str, or None
        A column of labels.
    samples : int, or None
        How many are drawn.
    replacement : bool
        Whether one may be drawn several times.
    column : callable
        Returns the values of a column by its name, for the samples that are chosen from.
    total : int
        How many samples there are.
    chosen : int64 ndarray, optional
        The positions of those that are chosen from; all where None. `weights` has a number for each of these, or for
        each of all.

    Raises
    ------
    InvalidOptionError
        If these do not say it.

    Examples
    --------
    >>> drawing_weights(None, "label", None, True, {"label": ["a", "b", "b", "b"]}.get, 4).round(2).tolist()
    [1.0, 0.33, 0.33, 0.33]
    """
    check_flag("replacement", replacement)
    if samples is not None:
        whole("samples", samples, 1)
    if weights is not None and balance is not None:
        raise InvalidOptionError("weights and balance both say how likely a sample is; give one")
    if balance is not None:
        return balanced(_labels(balance, column(balance)))
    if weights is None:
        if samples is not None:
            raise InvalidOptionError(
                f"samples={samples} is how many are drawn by weights; give weights or balance too"
            )
        return None
    if isinstance(weights, str):
        weights = _numbers(weights, column(weights))
    elif chosen is not None and len(chosen) != total:
        with suppress(ValueError):  # lists of several lengths, which are refused below
            weights = np.asanyarray(weights)
            weights = weights[chosen] if weights.shape == (total,) else weights
    return checked_weights(weights, total if chosen is None else len(chosen))


def _numbers(name: str, values: Any) -> Array:
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InvalidOptionError(
            f"column {name!r} is not one number a sample, without nulls; choose another, or give an array"
        )
    return values


def _labels(name: str, values: Any) -> Array:
    if isinstance(values, list) and all(isinstance(value, str | bytes) for value in values):
        values = np.array(values)
    is_array = isinstance(values, np.ndarray) and values.ndim == 1
    if not is_array or values.dtype.kind not in "biufSUM":
        raise InvalidOptionError(
            f"column {name!r} is not one label a sample, a number or a text, without nulls; choose another"
        )
    found: Array = values
    return found
