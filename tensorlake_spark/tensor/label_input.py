"""Labels of axes as a user gives them: they become `labels`, and are checked against the tensor."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidTensorError, did_you_mean
from tensorlake_spark.tensor.labels import KINDS, Labels, Listed, Regular, regular_of


def labels_of(value: Any) -> Labels:
    """Return labels from what a user gives.

    Raises
    ------
    InvalidTensorError
        If they are neither a sequence of labels nor regular bins.

    Examples
    --------
    >>> labels_of(["a", "b"]), labels_of({"start": 0.0, "step": 0.5})
    (Listed(values=('a', 'b')), Regular(start=0.0, step=0.5, unit=None))
    >>> labels_of({"start": dt.date(2024, 1, 31), "step": np.int64(1), "unit": "D"})
    Regular(start='2024-01-31', step=1, unit='D')
    """
    if isinstance(value, (Listed, Regular)):
        return value
    if isinstance(value, Mapping):
        found = regular_of({name: _plain(one) for name, one in value.items()})
        _check_whole(found)
        return found
    as_list = getattr(value, "tolist", None)  # of an array, a Series, an Index
    if callable(as_list):
        value = as_list()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidTensorError(f"labels are a list or regular bins, not {type(value).__name__}")
    if {*map(type, value)} <= KINDS:
        return Listed(tuple(value))
    if any(isinstance(v, (dt.date, np.datetime64)) for v in value):
        raise InvalidTensorError(
            f"label {value[0]!r:.80} is a time; give times as texts, or bins if they are at equal distances, such as "
            "{'start': '2024-01-31', 'step': 1, 'unit': 'D'}"
        )
    return Listed(tuple(_plain(v) for v in value))


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python, and a time as text, which is what JSON has."""
    if isinstance(value, (dt.date, np.datetime64)):
        return str(np.datetime64(value))
    return value.item() if isinstance(value, np.generic) else value


def _check_whole(bins: Regular) -> None:
    """Raise InvalidTensorError if bins of time begin or end within a unit, which their numbers cannot say."""
    # `check_labels` says what a start is.
    if bins.unit is None or str(bins.start).lower() in ("none", "nat", ""):
        return
    if bins.step != int(bins.step):
        raise InvalidTensorError(
            f"bins of time are a whole number of units long, not {bins.step!r} {bins.unit}; take a smaller unit, such "
            "as 36 h in the place of 1.5 D"
        )
    try:
        start = np.datetime64(bins.start)
        first = start.astype(f"datetime64[{bins.unit}]")
    except (ValueError, TypeError):
        return
    if first != start:
        finer = "7 D in the place of 1 W" if bins.unit == "W" else "24 h in the place of 1 D"
        raise InvalidTensorError(
            f"bins in units of {bins.unit} start at a whole one, not at {bins.start!r}; take a smaller unit, such "
            f"as {finer}"
        )


def check_labels(
    labels: Mapping[str, Any], axes: Sequence[str] | None, shape: Sequence[int]
) -> dict[str, Labels]:
    """Return labels by axis name, if they fit a tensor.

    Raises
    ------
    InvalidTensorError
        If an axis is unknown, or has another number of labels than its length.
    """
    out = {}
    for name, value in labels.items():
        if axes is None or name not in axes:
            raise InvalidTensorError(
                f"labels for axis {name!r}{did_you_mean(str(name), axes or ())}; the axes are "
                f"{tuple(axes) if axes else 'not named'}"
            )
        try:
            found = labels_of(value)
        except InvalidTensorError as error:
            raise InvalidTensorError(f"labels for axis {name!r}: {error}") from error
        length = shape[list(axes).index(name)]
        if isinstance(found, Listed) and len(found.values) != length:
            raise InvalidTensorError(
                f"{len(found.values)} labels for axis {name!r} of length {length}"
            )
        if isinstance(found, Listed):
            _check_finite(name, found.values)
        if isinstance(found, Regular) and not _has_start(found):
            kind = "number" if found.unit is None else "time such as '2024-01-31'"
            raise InvalidTensorError(
                f"labels for axis {name!r}: bins start at a {kind}, not at {found.start!r}"
            )
        out[name] = found
    return out


def _check_finite(axis: str, values: Sequence[Any]) -> None:
    """Raise InvalidTensorError if a label is NaN, which nothing equals, or infinite, which JSON does not have."""
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidTensorError(
                f"labels for axis {axis!r}: label {value!r} is not finite; give a finite number or a string such as "
                "'nan'"
            )


def _has_start(bins: Regular) -> bool:
    """Whether bins begin somewhere: other ones could be written, and nothing be found by them."""
    try:
        first = bins.array(1)[0]
        return bool(math.isfinite(first) if bins.unit is None else not np.isnat(first))
    except (ValueError, TypeError):
        return False
