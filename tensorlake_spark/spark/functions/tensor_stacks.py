"""Columns of tensors as stacks: rows that are alike become one array, so that NumPy is called once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError, TensorLakeError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.spark.source.schemas import TensorColumn, stack_column

Array = np.ndarray[Any, Any]

_MOST_BYTES = 2**31 - 1  # Arrow's offsets have 32 bits

Value = Any
"""An argument of a function on stacks: a stack (tensors, or lists of floats), `Numbers`, or a text or tuple of
integers that all rows have in common."""


class Numbers(NamedTuple):
    """A number for every row, told apart from a stack of tensors of rank 0."""

    values: Array


@dataclass(frozen=True, eq=False)
class _Column:
    """A column, with what its rows have to have in common to be taken together."""

    valid: Array
    kinds: list[Any]
    take: Callable[[Array], Value]


def _tensors(column: pa.StructArray) -> _Column:
    tensors = TensorColumn(column)
    return _Column(tensors.valid, tensors.kinds, tensors.stack)


def _numbers(column: pa.Array) -> _Column:
    """A number for every row; decimals are what SQL makes of ``2.5``."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return _Column(
        valid,
        [None] * len(column),
        lambda numbers: Numbers(column.take(pa.array(numbers)).to_numpy(zero_copy_only=False)),
    )


def _vectors(column: pa.ListArray) -> _Column:
    """Lists of floats: those of one length are stacked."""
    lengths = pc.list_value_length(column)

    def take(numbers: Array) -> Array:
        flat = column.take(pa.array(numbers)).flatten()
        if flat.null_count:
            raise InvalidTensorError(
                f"an element of a list is null (row {numbers[0]} of the batch)"
            )
        return np.asarray(flat.to_numpy()).reshape(len(numbers), lengths[int(numbers[0])].as_py())

    return _Column(column.is_valid().to_numpy(zero_copy_only=False), lengths.to_pylist(), take)


def _values(column: pa.Array) -> _Column:
    """Texts and lists: rows with the same one are taken together."""
    found = [tuple(v) if isinstance(v, list) else v for v in column.to_pylist()]
    valid = np.array([v is not None for v in found], bool)
    return _Column(valid, found, lambda numbers: found[numbers[0]])


def _column(column: pa.Array) -> _Column:
    if pa.types.is_struct(column.type):
        return _tensors(column)
    if pa.types.is_list(column.type) and pa.types.is_floating(column.type.value_type):
        return _vectors(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_list(kind):
        return _values(column)
    return _numbers(column)


def stacks(columns: Sequence[pa.Array]) -> Iterator[tuple[Array, list[Value]]]:
    """Yield the arguments of a function, for rows that are alike, and where these rows are.

    Rows with a null argument are left out.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        Of type `TENSOR`, numbers, texts or lists; lists of floats are stacked too.
    """
    found = [_column(c) for c in columns]
    groups: dict[Any, list[int]] = {}
    valid = np.logical_and.reduce([c.valid for c in found])
    for number in np.flatnonzero(valid).tolist():
        groups.setdefault(tuple(c.kinds[number] for c in found), []).append(number)
    for some in groups.values():
        numbers = np.array(some)
        yield numbers, [c.take(numbers) for c in found]


def apply(
    name: str, function: Callable[..., Array], columns: Sequence[pa.Array], kind: pa.DataType
) -> pa.Array:
    """Return what a function on stacks makes of columns, null where an argument is null.

    Parameters
    ----------
    name : str
        The function's, for messages.
    function : callable
        Takes what `stacks` yields, and returns an array with a value for every row.
    columns : sequence of pyarrow.Array
        All of one length.
    kind : pyarrow.DataType
        Of the result: that of tensors, a list, or a number.

    Raises
    ------
    InvalidTensorError
        If the function refuses some rows; names it, what it was given, and the first of the rows.
    """
    parts = []
    try:
        for numbers, args in stacks(columns):
            try:
                with np.errstate(all="ignore"):
                    out = function(*args)
            except (ValueError, TypeError, IndexError, OverflowError) as error:
                given = ", ".join(map(_described, args))
                # Of a TypeError the text is Python's, on types that the caller of SQL does not see.
                is_python = isinstance(error, TypeError) and not isinstance(error, TensorLakeError)
                says = "it does not take arguments of these kinds" if is_python else error
                raise InvalidTensorError(
                    f"{says}; its arguments are {given} (row {numbers[0]} of the batch)"
                ) from error
            parts.append((numbers, _packed(out, kind)))
    except TensorLakeError as error:
        raise type(error)(f"{name}: {error}") from error
    return spread(parts, len(columns[0]), kind)


def _described(value: Value) -> str:
    if isinstance(value, Numbers):
        return f"{value.values[0]}"
    if not isinstance(value, np.ndarray):
        return repr(value)
    return f"{value.dtype} of shape {value.shape[1:]}"


def _packed(out: Array, kind: pa.DataType) -> pa.Array:
    check_bytes(out.nbytes, len(out))
    if pa.types.is_struct(kind):
        return stack_column(out).cast(kind)
    if pa.types.is_list(kind):
        ends = np.arange(len(out) + 1) * (out.size // max(1, len(out)))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(out.reshape(-1)))
    return pa.array(out).cast(kind)


def check_bytes(size: int, rows: int) -> None:
    """Raise InvalidOptionError if arrays are too many for one batch of Spark.

    Examples
    --------
    >>> check_bytes(1 << 20, 4)
    """
    if size > _MOST_BYTES:
        raise InvalidOptionError(
            f"the tensors of {rows} rows take {size_text(size)}, and a column of one batch holds less than "
            f"{size_text(_MOST_BYTES + 1)}; take a smaller slice, use read_tensor(), which cuts batches by "
            f"size, or set spark.sql.execution.arrow.maxRecordsPerBatch below {rows}"
        )


def spread(parts: Sequence[tuple[Array, pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """Return a column with values in some places, and nulls in the others.

    Parameters
    ----------
    parts : sequence of (places, values)
        Places are distinct.
    count : int
        Length of the column.
    kind : pyarrow.DataType
        Its type.

    Examples
    --------
    >>> spread([(np.array([2, 0]), pa.array([5, 6]))], 3, pa.int64()).to_pylist()
    [6, None, 5]
    """
    if not parts:
        return pa.nulls(count, kind)
    places = np.concatenate([at for at, _ in parts])
    values = parts[0][1] if len(parts) == 1 else pa.concat_arrays([v for _, v in parts])
    if np.array_equal(places, np.arange(count)):
        return values
    source = np.full(count, -1)
    source[places] = np.arange(len(places))
    return values.take(pa.array(source, mask=source < 0))
