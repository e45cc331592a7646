"""Which Arrow types features may have, and which dtype their tensor has for each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError, UnsupportedDtypeError

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
)  # fmt: skip
"""Dtypes of the tensors; a table of features has at most one tensor of each."""

_PLAIN: dict[str, pa.DataType] = {
    name: pa.from_numpy_dtype(np.dtype(name)) for name in DTYPES if name != "bool"
} | {"bool": pa.bool_()}
_NAMES = {kind: name for name, kind in _PLAIN.items()}

_TIMES: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    )
}  # fmt: skip
"""Types that are integers with a meaning; a tensor holds the integers, its attributes the meaning."""

_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", re.DOTALL)


def dtype_of_type(name: str, kind: pa.DataType) -> str:
    """Return the dtype of the tensor that holds a feature of an Arrow type.

    Parameters
    ----------
    name : str
        The feature, for the message.
    kind : pyarrow.DataType
        Its type.

    Raises
    ------
    UnsupportedDtypeError
        If no tensor holds the type; the message says what to do.

    Examples
    --------
    >>> dtype_of_type("age", pa.int16()), dtype_of_type("seen", pa.timestamp("us", tz="UTC"))
    ('int16', 'int64')
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return "int32" if kind.bit_width == 32 else "int64"
    raise UnsupportedDtypeError(
        f"feature {name!r} has the type {kind}, which is not a type of numbers; {_remedy(kind)}"
    )


def _remedy(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return "write its codes (column.combine_chunks().indices) and keep the dictionary beside"
    if pa.types.is_decimal(kind):
        return "cast it to float64, or to int64 in its smallest unit"
    if pa.types.is_null(kind):
        return "cast it to the type that it would have with values"
    if pa.types.is_nested(kind):
        return "write it as a tensor of its own with lake.write"
    return (
        "write integer codes (column.combine_chunks().dictionary_encode().indices has them) and keep the dictionary "
        "beside, or leave it out"
    )


def meaning_of(kind: pa.DataType) -> str | None:
    """Return the text under which a tensor's attributes keep a type; None where the dtype says it all.

    Examples
    --------
    >>> meaning_of(pa.timestamp("us", tz="UTC")), meaning_of(pa.float32())
    ('timestamp[us, tz=UTC]', None)
    """
    return None if kind in _NAMES else str(kind)


def type_of(dtype: str, meaning: Any = None) -> pa.DataType:
    """Return the Arrow type of a feature in a tensor of a dtype.

    Raises
    ------
    CorruptDataError
        If the text is not one that `meaning_of` returns.

    Examples
    --------
    >>> type_of("int64", "timestamp[us, tz=UTC]"), type_of("float32")
    (TimestampType(timestamp[us, tz=UTC]), DataType(float))
    """
    if meaning is None:
        return _PLAIN[dtype]
    zoned = _ZONED.fullmatch(meaning) if isinstance(meaning, str) else None
    kind = pa.timestamp(zoned[1], tz=zoned[2]) if zoned else _TIMES.get(meaning)
    if kind is None or dtype_of_type("", kind) != dtype:
        raise CorruptDataError(
            f"{meaning!r:.100} is not a type of features that {dtype} holds; the attributes of the tensor "
            "were changed, read an earlier version"
        )
    return kind
