"""Which samples a key means: NumPy's rules for one axis."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError

Array = np.ndarray[Any, Any]


def select_samples(key: Any, count: int, what: str) -> int | Array:
    """Return the position of one sample, or the positions of several.

    Parameters
    ----------
    key : int, slice, or 1-d sequence or array of int or bool
        As NumPy takes it for one axis.
    count : int
        How many samples there are.
    what : str
        What is indexed, for messages.

    Raises
    ------
    InvalidKeyError
        If a sample is out of bounds, or a mask has another length.
    InvalidKeyTypeError
        If the key is of another kind.

    Examples
    --------
    >>> select_samples(-1, 5, "the dataset")
    4
    >>> select_samples(slice(None, None, -2), 5, "the dataset").tolist()
    [4, 2, 0]
    """
    if isinstance(key, slice):
        try:
            chosen = range(count)[key]
        except (TypeError, ValueError) as error:
            raise InvalidKeyTypeError(f"{key!r} is no slice of samples: {error}") from error
        return np.arange(chosen.start, chosen.stop, chosen.step, dtype=np.int64)
    if key is Ellipsis:
        return np.arange(count)
    if not isinstance(key, (bool, np.bool_)):
        try:
            return _inside(operator.index(key), count, what)
        except TypeError:
            pass
    return _several(key, count, what)


def _several(key: Any, count: int, what: str) -> Array:
    if isinstance(key, (str, bytes)) or not hasattr(key, "__len__"):
        raise InvalidKeyTypeError(
            f"{key!r:.80} does not choose samples of {what}; an int, a slice, a list or an array of ints, or a "
            "mask does"
        )
    found = np.asarray(key)
    if found.dtype == bool and found.ndim == 1:
        if len(found) != count:
            raise InvalidKeyError(
                f"the mask has {len(found)} entries, and {what} has {count} samples; give one for each"
            )
        return np.flatnonzero(found)
    if not found.size:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidKeyTypeError(
            f"an array of dtype {found.dtype} and {found.ndim} axes does not choose samples of {what}; one axis of "
            "ints or bools does"
        )
    positions = found.astype(np.int64)
    wrong = (positions < -count) | (positions >= count)
    if wrong.any():
        _inside(int(positions[wrong][0]), count, what)
    return np.where(positions < 0, positions + count, positions)


def _inside(position: int, count: int, what: str) -> int:
    if not -count <= position < count:
        bound = f"it has {count}, from {-count} to {count - 1}" if count else "it has none"
        raise InvalidKeyError(f"sample {position} is out of bounds for {what}; {bound}")
    return position + count if position < 0 else position
