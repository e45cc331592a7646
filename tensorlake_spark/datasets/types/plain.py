"""Columns that a plain writer of Delta made: what type they have here."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from tensorlake_spark.datasets.types.base import Place, Type, shown
from tensorlake_spark.datasets.types.nested import Sequence
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.errors import InvalidOptionError


@dataclass(frozen=True, repr=False)
class Plain(Type):
    """Values of an Arrow type that no other type here stands for; they are read as Python's objects.

    Parameters
    ----------
    arrow : pyarrow.DataType
        Theirs.

    Examples
    --------
    >>> Plain(pa.map_(pa.string(), pa.int64())).encode([{"a": 1}], "x").to_pylist()
    [[('a', 1)]]
    """

    arrow: pa.DataType
    kind: ClassVar[str] = "plain"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.arrow, pa.DataType):
            raise InvalidOptionError(f"arrow={self.arrow!r:.80} is not a type of Arrow")

    def storage(self) -> pa.DataType:
        return self.arrow

    def to_json(self) -> dict[str, Any]:
        schema = pa.schema([pa.field("x", self.arrow)]).serialize().to_pybytes()
        return {**super().to_json(), "arrow": base64.b64encode(schema).decode("ascii")}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Type:
        try:
            data = base64.b64decode(fields["arrow"], validate=True)
            kind = pa.ipc.read_schema(pa.py_buffer(data)).field(0).type
        except (KeyError, ValueError, IndexError, OSError, pa.ArrowException) as error:
            raise InvalidOptionError(f"the type of Arrow cannot be read: {error}") from error
        return cls(**{**fields, "arrow": kind})

    def _from_list(self, values: list[Any], place: Place) -> pa.Array:
        try:
            return pa.array(values, self.arrow)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            for number, value in enumerate(values):
                try:
                    pa.array([value], self.arrow)
                except (pa.ArrowException, ValueError, TypeError, OverflowError):
                    raise place.wrong_type(
                        number, f"{self.arrow}", shown(value), f"{error}", error
                    ) from error
            raise

    def _from_arrow(self, values: pa.Array, place: Place) -> pa.Array:
        try:
            return values.cast(self.arrow)
        except pa.ArrowException as error:
            raise place.wrong_type(
                0, f"{self.arrow}", f"values of type {values.type}", cause=error
            ) from error

    def decode(self, array: pa.Array, native: bool = False) -> list[Any]:
        found: list[Any] = array.to_pylist()
        return found


def type_of_arrow(kind: pa.DataType, nullable: bool = True) -> Type:
    """Return the type of a column whose field says nothing of us.

    Examples
    --------
    >>> type_of_arrow(pa.int32()), type_of_arrow(pa.list_(pa.string()))
    (Scalar('int32'), Sequence(Scalar('string')))
    """
    name = _scalar(kind)
    if name:
        return Scalar(name, nullable=nullable)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = type_of_arrow(kind.value_type, kind.value_field.nullable)
        return Sequence(inner, nullable=nullable)
    return Plain(kind, nullable=nullable)


def types_of_numbers(columns: Mapping[str, Any]) -> dict[str, dict[str, Type]]:
    """Return the types of those columns that Arrow has as numbers, or as lists of them.

    Their values do not say it: in Python all integers are of one type.

    Examples
    --------
    >>> types_of_numbers({"a": pa.array([1], pa.uint64()), "b": pa.array(["x"]), "c": [1, 2]})
    {'a': {'a': Scalar('uint64')}}
    """
    arrays = {n: c for n, c in columns.items() if isinstance(c, (pa.Array, pa.ChunkedArray))}
    types = {name: type_of_numbers(array.type) for name, array in arrays.items()}
    return {name: {name: kind} for name, kind in types.items() if kind is not None}


def type_of_numbers(kind: pa.DataType) -> Type | None:
    """Return the type of numbers, or lists of them, that Arrow has as this; None for other values."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = type_of_numbers(kind.value_type)
        return None if inner is None else Sequence(inner)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    name = _scalar(kind) if is_number else None
    return None if name is None else Scalar(name)


def _scalar(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return str(kind)
    if pa.types.is_floating(kind):
        return {16: "float16", 32: "float32", 64: "float64"}[kind.bit_width]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return "string"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "binary_view":
        return "bytes"
    if pa.types.is_date32(kind):
        return "date"
    if pa.types.is_decimal128(kind) and kind.scale >= 0:
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp" if kind.tz else "timestamp_ntz"
    return None
