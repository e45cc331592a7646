"""What may be written as features: tables of Arrow or pandas, with names that are there once and types of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.columns.feature_types import dtype_of_type
from tensorlake_spark.errors import InvalidTensorError, UnsupportedDtypeError, check_text


def table_of(data: Any) -> pa.Table:
    """Return what a user gives as an Arrow table, if its columns can be features.

    Parameters
    ----------
    data : pyarrow.Table, pandas.DataFrame, or any object with Arrow's C stream interface
        Of a DataFrame the index is left out. A NaN of a NumPy column stays a NaN; what pandas counts as NA in its
        own types is null.

    Raises
    ------
    InvalidTensorError
        If it is no table, has no column, or a name is empty, no string, or there twice.
    UnsupportedDtypeError
        If no tensor holds the type of a column.

    Examples
    --------
    >>> table_of(pa.table({"a": [1, None]})).num_rows
    2
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif _is_pandas(data):
        data = _of_pandas(data)
    elif not isinstance(data, pa.Table):
        if not hasattr(data, "__arrow_c_stream__"):
            raise InvalidTensorError(
                f"features are written from a pyarrow Table or a pandas DataFrame, and {type(data).__name__} is not "
                "a table; pyarrow.table({name: values, ...}) makes one"
            )
        data = pa.RecordBatchReader.from_stream(data).read_all()
    _check_names(data.column_names)
    for field in data.schema:
        dtype_of_type(field.name, field.type)
    return data.combine_chunks()


def cast_to(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return a table with the types of the features that it continues: Spark has fewer of them.

    Parameters
    ----------
    table : pyarrow.Table
        What is written.
    types : mapping of str to pyarrow.DataType
        The features' types by name; another column keeps its own.

    Raises
    ------
    InvalidTensorError
        If a value does not fit the type of its feature.
    """
    for place, field in enumerate(table.schema):
        kind = types.get(field.name, field.type)
        if field.type != kind:
            try:
                column = _cast(table.column(place), kind)
            except pa.ArrowException as error:
                raise InvalidTensorError(
                    f"column {field.name!r} of type {field.type} does not fit the feature, which has {kind}: {error}; "
                    "cast the column before the write"
                ) from error
            table = table.set_column(place, field.name, column)
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column in another type; raise ArrowInvalid if a value does not fit it."""
    if pa.types.is_integer(column.type) and pa.types.is_temporal(kind):
        # Arrow takes integers of the same width alone.
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    found = column.cast(kind)
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if pa.types.is_floating(kind) and is_number:
        too_large = np.isinf(found.to_numpy()) & np.isfinite(column.to_numpy())
        if too_large.any():  # Arrow makes them infinite
            value = column[int(np.argmax(too_large))]
            raise pa.ArrowInvalid(f"{value} is too large for {kind}")
    return found


def check_rows_of_spark(schema: pa.Schema, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the schema of a DataFrame as features may have it.

    Spark's only type for all values of uint64 is a decimal of 20 digits. So a feature of uint64 takes such a column,
    as the view ``features`` has it.

    Parameters
    ----------
    schema : pyarrow.Schema
        Its columns in Arrow.
    types : mapping of str to pyarrow.DataType
        The types of the features that it continues, by name.

    Raises
    ------
    InvalidTensorError, UnsupportedDtypeError
        As `table_of`.
    """
    unsigned, decimal = pa.uint64(), pa.decimal128(20, 0)
    fields = [
        field.with_type(unsigned)
        if field.type == decimal and types.get(field.name) == unsigned
        else field
        for field in schema
    ]
    return table_of(pa.schema(fields).empty_table()).schema


def _check_names(names: Sequence[Any]) -> None:
    if not names:
        raise InvalidTensorError(
            "a table without columns is not a table of features; give one at least"
        )
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidTensorError(
                f"{name!r} is not a name of a feature, which is a string of at least one character; rename the column"
            )
        check_text(name, "column", InvalidTensorError)
    check_once(names, "column", InvalidTensorError)


def check_once(names: Sequence[str], what: str, error: type[Exception]) -> None:
    """Raise an error if a name is there twice."""
    if len(set(names)) != len(names):
        name, count = Counter(names).most_common(1)[0]
        raise error(
            f"{what} {name!r} occurs {count} times; every feature needs a name of its own, so leave out or rename "
            "the others"
        )


def _is_pandas(data: Any) -> bool:
    """Whether it is a DataFrame of pandas; asked without importing pandas."""
    kind = type(data)
    return any(
        base.__name__ == "DataFrame" and base.__module__.partition(".")[0] == "pandas"
        for base in kind.__mro__
    )


def _of_pandas(frame: Any) -> pa.Table:
    names = [*frame.columns]
    _check_names(names)
    arrays = []
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        values = column
        if isinstance(column.dtype, np.dtype):  # Arrow takes the machine's byte order alone
            values = column.to_numpy().astype(column.dtype.newbyteorder("="), copy=False)
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise UnsupportedDtypeError(
                f"feature {name!r} has the dtype {column.dtype}, which is not a type of numbers ({error}); "
                "convert it with .astype(...), or leave it out"
            ) from error
    return pa.Table.from_arrays(arrays, names=names)
