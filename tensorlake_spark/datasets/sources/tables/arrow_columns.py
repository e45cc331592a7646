"""Columns of Arrow, as columns of samples: by their types alone."""

from __future__ import annotations

import pyarrow as pa

from tensorlake_spark.datasets.sources.array_bytes import is_list
from tensorlake_spark.datasets.types import Sequence as SequenceOf
from tensorlake_spark.datasets.types import Tensor, Text, Type, as_type
from tensorlake_spark.errors import InvalidOptionError


def type_of(kind: pa.DataType, name: str) -> Type:
    """Return what a column of an Arrow type holds.

    Numbers, texts, bytes, times and lists of them are what they are. Lists of a fixed length, in lists of any
    depth, are tensors.

    Raises
    ------
    InvalidOptionError
        If no column of a dataset holds it.

    Examples
    --------
    >>> type_of(pa.list_(pa.list_(pa.float32(), 4)), "boxes").shape
    (None, 4)
    """
    simple = scalar_of(kind)
    if simple is not None:
        return simple
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type, name)
    shape = tensor_shape(kind)
    if shape is not None:
        return Tensor(dtype_of(leaf_of(kind)), shape)
    if is_list(kind):
        return SequenceOf(type_of(kind.value_type, name))
    raise InvalidOptionError(
        f"column {name!r} has the type {kind}, which no column of a dataset holds; leave it out by columns="
    )


def scalar_of(kind: pa.DataType) -> Type | None:
    """Return what a column of numbers, texts, bytes or times holds, None for other types."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Text()
    if types.is_null(kind):
        return Text()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return as_type("bytes")
    if types.is_boolean(kind):
        return as_type(bool)
    if types.is_integer(kind) or types.is_floating(kind):
        return as_type(dtype_of(kind))
    if types.is_timestamp(kind):
        return as_type("timestamp" if kind.tz else "timestamp_ntz")
    if types.is_date(kind):
        return as_type("date")
    if types.is_decimal(kind) and kind.precision <= 38:
        return as_type(f"decimal({kind.precision}, {kind.scale})")
    return None


def dtype_of(kind: pa.DataType) -> str:
    """Return NumPy's name of a type of numbers."""
    return str(kind.to_pandas_dtype().__name__).replace("bool_", "bool")


def tensor_shape(kind: pa.DataType) -> tuple[int | None, ...] | None:
    """Return the shape that nested lists of numbers always have, None if inner lengths may differ.

    Examples
    --------
    >>> tensor_shape(pa.list_(pa.list_(pa.int8(), 2), 3)), tensor_shape(pa.list_(pa.int8()))
    ((3, 2), None)
    """
    shape: list[int | None] = []
    while is_list(kind):
        shape.append(kind.list_size if pa.types.is_fixed_size_list(kind) else None)
        kind = kind.value_type
    fixed = shape and None not in shape[1:] and (len(shape) > 1 or shape[0] is not None)
    return tuple(shape) if is_number(kind) and fixed else None


def is_number(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of numbers or bools."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def leaf_of(kind: pa.DataType) -> pa.DataType:
    """Return the type inside lists of any depth."""
    while is_list(kind):
        kind = kind.value_type
    return kind
