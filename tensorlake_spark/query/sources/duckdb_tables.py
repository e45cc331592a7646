"""What a source needs of DuckDB: a place for views and tables, and the names of types."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError

_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT",
    "halffloat": "FLOAT", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR",
    "large_string": "VARCHAR", "binary": "BLOB", "large_binary": "BLOB", "date32[day]": "DATE",
}  # fmt: skip


class Session(Protocol):
    """Where sources make their tables."""

    def make_view(self, name: str, sql: str) -> None:
        """Give a name to a query that this package wrote."""

    def register(self, name: str, table: pa.Table) -> None:
        """Give a name to a table in memory."""


def duckdb_type(kind: pa.DataType) -> str:
    """Return DuckDB's name of a type of scalars.

    Examples
    --------
    >>> duckdb_type(pa.int32()), duckdb_type(pa.decimal128(10, 2))
    ('INTEGER', 'DECIMAL(10, 2)')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP WITH TIME ZONE" if kind.tz else "TIMESTAMP"
    return _TYPES.get(str(kind), "VARCHAR")


def without_half_floats(table: pa.Table) -> pa.Table:
    """Return a table with float32 in place of float16, which DuckDB refuses, also inside of lists and structs.

    Examples
    --------
    >>> import numpy as np
    >>> without_half_floats(pa.table({"x": np.float16([1, 2]), "n": [1, 2]})).schema.types
    [DataType(float), DataType(int64)]
    """
    kinds = [_wider(field.type) for field in table.schema]
    for place, (field, kind) in enumerate(zip(table.schema, kinds, strict=True)):
        if kind != field.type:
            column = table.column(place).cast(kind)
            table = table.set_column(place, field.with_type(kind), column)
    return table


def _wider(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_wider(field.type)) for field in kind])
    for is_kind, made in (
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_fixed_size_list, lambda field: pa.list_(field, kind.list_size)),
    ):
        if is_kind(kind):
            return made(kind.value_field.with_type(_wider(kind.value_type)))
    return kind


def quoted(name: str) -> str:
    """Return a name as DuckDB reads it.

    Examples
    --------
    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def as_arrow(value: Any, called: str) -> pa.Table:
    """Return a DataFrame as a table without its index.

    Raises
    ------
    InvalidOptionError
        If a column has values of several types or of one that Arrow has not, or two columns have one name.
    """
    try:
        table: pa.Table = pa.Table.from_pandas(value, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidOptionError(
            f"source {called}: the DataFrame cannot be made a table of Arrow: {error!s:.300}"
        ) from error
    return table
