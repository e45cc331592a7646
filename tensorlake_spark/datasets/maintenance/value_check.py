"""Stored values held against the type of their column: what somebody's plain Delta write may have broken.

A stored column is given to its type as new values are, so that all that is checked at the door is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.types.base import Tiled, Type, field_of, is_valid
from tensorlake_spark.datasets.types.nested import Sequence
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidSampleError,
    MissingDependencyError,
    TensorLakeError,
)

Array = np.ndarray[Any, Any]

MOST = 20
"""Faults of one column that are looked for in one batch; there may be more."""

_DAMAGE = (TensorLakeError, pa.ArrowException, ValueError, TypeError, KeyError, OverflowError)


def value_faults(kind: Type, array: pa.Array, deep: bool) -> list[tuple[int, str]]:
    """Return which values of a stored column are not what their type says, and why.

    Parameters
    ----------
    kind : Type
        Of the column.
    array : pyarrow.Array
        As it is stored.
    deep : bool
        Whether media are decoded too. Otherwise their checksums and their headers are looked at.

    Examples
    --------
    >>> from tensorlake_spark.datasets.types.class_label import ClassLabel
    >>> [row for row, _ in value_faults(ClassLabel(["cat", "dog"]), pa.array([0, 5, None], pa.int32()), False)]
    [1]
    """
    if isinstance(kind, Sequence) and pa.types.is_list(array.type):
        return _of_items(kind, array, deep)
    found = dict(_without_data(kind, array))
    good = np.array([row for row in range(len(array)) if row not in found], np.int64)
    some = array if len(good) == len(array) else array.take(pa.array(good))
    checks: list[Callable[[pa.Array], str | None]] = [lambda part: _encodes(kind, part)]
    if deep or not _is_media(array.type):
        checks.append(lambda part: _decodes(kind, part))
    for check in checks:
        for row, text in _culprits(check, some):
            found.setdefault(int(good[row]), text)
    return sorted(found.items())


def tiled_samples(kind: Type, array: pa.Array) -> list[tuple[int, Tiled]]:
    """Return the samples of a stored column that are kept as tiles, with what their rows say of them."""
    if not is_tileable(kind):
        return []
    rows = np.flatnonzero(is_valid(array) & ~is_valid(field_of(array, "data")))
    out = []
    for row in rows.tolist():
        try:
            (value,) = kind.decode(array.slice(row, 1))
        except _DAMAGE:  # told by `value_faults`
            continue
        if isinstance(value, Tiled):
            out.append((row, value))
    return out


def _of_items(kind: Sequence, array: pa.Array, deep: bool) -> list[tuple[int, str]]:
    """Return the faults of values that have items, each with the first of its items that has one."""
    out = {}
    if not kind.nullable:
        out = dict.fromkeys(_nulls(array), "null, and the column is not nullable")
    counts = np.where(is_valid(array), _lengths(array), 0)
    owner = np.repeat(np.arange(len(array)), counts)
    first = np.cumsum(counts) - counts
    for item, text in value_faults(kind.of, array.flatten(), deep):
        row = int(owner[item])
        out.setdefault(row, f"item {item - int(first[row])}: {text}")
    return sorted(out.items())


def _lengths(array: pa.Array) -> Array:
    lengths = array.value_lengths().fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False)).astype(np.int64)


def _nulls(array: pa.Array) -> list[int]:
    rows: list[int] = np.flatnonzero(~is_valid(array)).tolist()
    return rows


def _is_media(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and kind.get_field_index("crc") >= 0


def _without_data(kind: Type, array: pa.Array) -> Iterator[tuple[int, str]]:
    """Yield the media that have facts and no bytes, where these cannot be tiles."""
    if not _is_media(array.type) or is_tileable(kind):
        return
    bare = is_valid(array) & ~is_valid(field_of(array, "data"))
    for row in np.flatnonzero(bare).tolist():
        yield row, "it has no data; write the sample again, or set it to null as a whole"


def _encodes(kind: Type, array: pa.Array) -> str | None:
    """Return what the type says of stored values as if they were new, None if it takes them as they are."""
    try:
        again = kind.encode(array, "it")
    except MissingDependencyError:
        raise
    except _DAMAGE as error:
        return _sentence(error)
    return _other_facts(array, again) if _is_media(array.type) else None


def _decodes(kind: Type, array: pa.Array) -> str | None:
    try:
        values = kind.decode(array)
    except MissingDependencyError:
        raise
    except _DAMAGE as error:
        return _sentence(error)
    faults = (kind.fault(value) for value in values if value is not None)
    return next((text for text in faults if text is not None), None)


def _other_facts(array: pa.Array, again: pa.Array) -> str | None:
    """Return which fact of media is not that of their bytes: the checksum, the height, ..."""
    for field in sorted(array.type, key=lambda field: field.name != "crc"):
        if pa.types.is_binary(field.type) or again.type.get_field_index(field.name) < 0:
            continue
        said, is_so = field_of(array, field.name), field_of(again, field.name)
        both = is_valid(said) & is_valid(is_so)
        some = pa.array(np.flatnonzero(both))
        said, is_so = said.take(some).to_pylist(), is_so.take(some).to_pylist()
        for one, other in zip(said, is_so, strict=True):
            if one != other and field.name == "crc":
                return (
                    f"its bytes are not those that were written: their CRC-32 is {other}, not {one}"
                )
            if one != other:
                return f"its {field.name} is {one!r:.60}, and that of its bytes {other!r:.60}"
    return None


def _culprits(
    check: Callable[[pa.Array], str | None], array: pa.Array
) -> Iterator[tuple[int, str]]:
    """Yield the values for which a check says something: halves of what is wrong are looked at, until it is one."""
    left, count = [(0, len(array))], 0
    while left and count < MOST:
        start, stop = left.pop()
        text = check(array.slice(start, stop - start)) if stop > start else None
        if text is None:
            continue
        if stop - start == 1:
            count += 1
            yield start, text
            continue
        middle = (start + stop) // 2
        left += [(middle, stop), (start, middle)]


def _sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, InvalidSampleError):
        text = text.partition(", sample ")[2].partition(": ")[2] or text
    elif isinstance(error, CorruptDataError):
        text = text.replace(" of sample 0", "").replace("sample 0", "it")
    return text
