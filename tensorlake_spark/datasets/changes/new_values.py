"""The values that samples get: one for each of them, or one for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tensorlake_spark.datasets.apart.large_samples import element_type, is_tileable
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.types.base import Tiled, Type
from tensorlake_spark.datasets.types.nested import Reference
from tensorlake_spark.errors import InvalidSampleError
from tensorlake_spark.rows.extension_arrays import plain_column

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NewValues:
    """Values of one column, as they are stored.

    Attributes
    ----------
    array : pyarrow.Array
        One value for each sample, or one only.
    is_one : bool
        Whether that one is for all samples.
    """

    array: pa.Array
    is_one: bool

    def at(self, places: Array) -> pa.Array:
        """Return the values of the samples at some places."""
        return self.array.take(pa.array(np.zeros_like(places) if self.is_one else places))


def is_many(value: Any, kind: Type) -> bool:
    """Return whether a value has one for each sample: a list has, and an array that is no value of the column.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types import Tensor, as_type
    >>> is_many([1, 2], as_type("int64")), is_many(np.array([1, 2]), as_type("int64"))
    (True, True)
    >>> is_many(np.array([1, 2]), Tensor("int64"))
    False
    """
    if isinstance(value, Reference):  # a tuple, and one value
        return False
    if isinstance(value, (list, tuple, range, pa.Array, pa.ChunkedArray, pd.Series, pd.Index)):
        return True
    shape = getattr(value, "shape", ())
    if not (isinstance(value, np.ndarray) or hasattr(value, "__array__")) or not shape:
        return False
    one = value
    if is_tileable(kind) and not isinstance(value, np.ndarray):  # it may be too large to be loaded
        one = Tiled(tuple(map(int, shape)), element_type(kind).name)
    try:
        kind.encode([one], "")
    except InvalidSampleError:
        return True
    return False


def new_values(value: Any, kind: Type, column: str, count: int | None, first: int = 0) -> NewValues:
    """Return values that a user gave, checked.

    Parameters
    ----------
    value : object
        One value a sample, or one for all.
    kind : Type
        The column's.
    column : str
        Its name, for messages.
    count : int, or None
        How many samples there are; None for one that was chosen by its number, whose value it is.
    first : int
        The number of the first sample, for messages.

    Raises
    ------
    InvalidSampleError
        If there are fewer or more values than samples, or one does not fit.
    """
    if count is None or not is_many(value, kind):
        return NewValues(kind.encode([value], column, first), True)
    if len(value) != count:
        raise InvalidSampleError(
            f"column {column!r} has {len(value)} values for {count} samples; give one for each, or one value that is "
            "no list for all of them"
        )
    return NewValues(kind.encode(as_given(value), column, first), False)


def as_given(values: Any) -> Any:
    """Return one value a sample as `Type.encode` takes them: an array of NumPy or Arrow, or a list."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return plain_column(values)
    return values if isinstance(values, np.ndarray) else [*values]


def picked(values: Any, places: Array) -> list[Any]:
    """Return some of the values that `as_given` returned, None where a place is -1.

    Examples
    --------
    >>> picked(pa.array([5, 6]), np.array([1, -1]))
    [6, None]
    """
    found = [None if place < 0 else values[place] for place in places.tolist()]
    return [one.as_py() if isinstance(one, pa.Scalar) else one for one in found]


def spread(new: NewValues, kind: Type, column: str, places: Array) -> NewValues:
    """Return values in another order, null where a place is -1.

    Raises
    ------
    InvalidSampleError
        If the column takes no null.
    """
    absent = places < 0
    if absent.any() and not kind.nullable:
        raise InvalidSampleError(
            f"column {column!r} takes no null ({kind}), and {int(absent.sum())} samples would have no value; extend "
            "the dataset with whole samples"
        )
    index = np.where(absent, 0, 0 if new.is_one else places)
    return NewValues(new.array.take(pa.array(index, mask=absent)), False)


def written_values(
    parts: PartsWriter,
    values: Mapping[str, Any],
    sids: Array,
    count: int | None,
    first: int = 0,
) -> dict[str, NewValues]:
    """Return checked values, of which those that lie in inner tables are written: an apart column has none left.

    Parameters
    ----------
    parts : PartsWriter
        Writes them; it is neither finished nor aborted.
    values : mapping of str to object
        For each column one value a sample, or one for all.
    sids : int64 ndarray
        The samples.
    count : int, or None
        How many there are; None for one that was chosen by its number.
    first : int
        The number of the first one, for messages.
    """
    out = {}
    for name, value in values.items():
        kind = parts.schema[name]
        if not (kind.apart or is_tileable(kind)):
            out[name] = new_values(value, kind, name, count, first)
            continue
        many = count is not None and is_many(value, kind)
        if many and len(value) != count:
            new_values(value, kind, name, count, first)  # raises
        opened = parts.opened({name: as_given(value) if many else [value]}, first)
        if not (kind.apart or parts.has_large(opened)):
            out[name] = NewValues(kind.encode(opened[name], name, first), not many)
            continue
        if not many:
            opened = {name: [*opened[name]] * len(sids)}
        left = parts.take(opened, sids.tolist(), first)
        if name in left:
            out[name] = NewValues(kind.encode(left[name], name, first), False)
    return out
