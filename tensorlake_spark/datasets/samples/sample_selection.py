"""Which samples are meant: by a key, with NumPy's rules for one axis, or by a condition that `where` has read."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError, InvalidOptionError

Array = np.ndarray[Any, Any]
Parts = tuple[str, ...]

_RUN = 1 << 16  # samples whose apart columns are looked at at a time
_PLACE = "place of the sample"


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
            raise InvalidKeyTypeError(f"{key!r} is not a slice of samples: {error}") from error
        return np.arange(chosen.start, chosen.stop, chosen.step, dtype=np.int64)
    if key is Ellipsis:
        return np.arange(count)
    if not isinstance(key, (bool, np.bool_)):
        try:
            return _inside(operator.index(key), count, what)
        except TypeError:
            pass
    return _several(key, count, what)


def whole_numbers(values: Any) -> Array:
    """Return numbers as an array: int64 where they are whole, and as NumPy has them where they are something else.

    A number that no int64 holds becomes the nearest that one does: there is no sample of that number either.

    Examples
    --------
    >>> whole_numbers([3, 2**70]), whole_numbers([0.5])
    (array([                  3, 9223372036854775807]), array([0.5]))
    """
    try:
        found = np.asarray(values)
    except ValueError:  # lists of unequal length in a list
        found = np.full(len(values), None, object)
    bounds = np.iinfo(np.int64)
    if found.dtype.kind in "Of" and found.ndim == 1:  # what is in a list need not fit into a dtype
        given = [*values]
        if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in given):
            found = np.array([min(max(int(v), bounds.min), bounds.max) for v in given], np.int64)
    if found.dtype == np.uint64:
        found = np.minimum(found, np.uint64(bounds.max))
    return found.astype(np.int64) if found.dtype.kind in "iu" else found


def _several(key: Any, count: int, what: str) -> Array:
    if isinstance(key, (str, bytes)) or not hasattr(key, "__len__"):
        raise InvalidKeyTypeError(
            f"{key!r:.80} does not choose samples of {what}; an int, a slice, a list or an array of ints, or a "
            "mask does"
        )
    found = whole_numbers(key)
    if found.dtype == bool and found.ndim == 1:
        if len(found) != count:
            raise InvalidKeyError(
                f"the mask has {len(found)} entries, and {what} has {count} samples; give one for each"
            )
        return np.flatnonzero(found)
    if not found.size:
        return np.zeros(0, np.int64)
    if isinstance(found.flat[0], str):
        raise InvalidKeyTypeError(
            f"{key!r:.80} does not choose samples of {what}; name one column at a time, as in ds['image'][3], or "
            "several in ds.to_pandas([...])"
        )
    if found.ndim != 1 or found.dtype != np.int64:
        raise InvalidKeyTypeError(
            f"an array of dtype {found.dtype} and {found.ndim} axes does not choose samples of {what}; one axis of "
            "ints or bools does"
        )
    wrong = (found < -count) | (found >= count)
    if wrong.any():
        _inside(int([*key][int(np.argmax(wrong))]), count, what)
    return np.asarray(found + count * (found < 0))


def _inside(position: int, count: int, what: str) -> int:
    if not -count <= position < count:
        bound = f"it has {count}, from {-count} to {count - 1}" if count else "it has none"
        raise InvalidKeyError(f"sample {position} is out of bounds for {what}; {bound}")
    return position + count if position < 0 else position


@dataclass(frozen=True)
class Beside:
    """A condition in which columns are asked that are kept apart.

    Attributes
    ----------
    exact : pyarrow.compute.Expression
        On columns of the table, and on those of `apart` by their names here.
    needed : tuple of tuple of str
        The columns of the table.
    apart : dict of str to (str, tuple of str)
        By names for the expression, a column that is kept apart, and the field of it that is asked.
    """

    exact: pc.Expression
    needed: tuple[Parts, ...]
    apart: dict[str, tuple[str, Parts]]

    def among(self, parts: StoredParts, positions: Array) -> Array:
        """Return those of some positions for which it is true."""
        found = [np.zeros(0, np.int64)]
        for start in range(0, len(positions), _RUN):
            some = positions[start : start + _RUN]
            rows = parts.stored.rows(self.needed or [(SID,)], some)
            for name, (column, inside) in self.apart.items():
                values = parts.column(column, some, inside=inside)
                rows = rows.append_column(name, values)
            rows = rows.append_column(_PLACE, pa.array(some)).filter(self.exact)
            found.append(rows.column(_PLACE).to_numpy())
        return np.concatenate(found)


@dataclass(frozen=True)
class Where:
    """A condition on samples.

    Attributes
    ----------
    text : str
        The SQL.
    exact, ordered, loose : pyarrow.compute.Expression
        On columns of the table: what is true of the samples, and what bounds are compared with, see
        `comparisons.Condition`.
    needed : tuple of tuple of str
        The columns that it asks: for each the names of the structs around it and its own.
    beside : Beside, optional
        What else has to be true, in which columns are asked that are kept apart.
    """

    text: str
    exact: pc.Expression
    ordered: pc.Expression
    loose: pc.Expression
    needed: tuple[Parts, ...]
    beside: Beside | None = None

    def positions(self, parts: StoredParts) -> Array:
        """Return the positions of the samples of a version for which it is true, in order.

        Raises
        ------
        InvalidOptionError
            If a number that it computes does not fit into 64 bits.
        """
        try:
            found = parts.stored.select(self.exact, self.needed, (self.loose, self.ordered))
            return found if self.beside is None else self.beside.among(parts, found)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidOptionError(
                f"where={self.text!r:.200} cannot be computed: {error}"
            ) from error
