"""The functions of tensors in a DuckDB connection: ``tensorlake_spark.duckdb.register(con)``.

A tensor is a list, a list of lists, an array of fixed length, or the struct that this package stores (dtype, shape,
data). DuckDB hands functions at most 2,048 rows at a time, whatever their bytes. A function has one type of result
there: what gives arrays gives that struct, and what can be asked along an axis elsewhere is asked of the whole array.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.datasets.types.tensor_struct import TENSOR, Structs, struct_of
from tensorlake_spark.errors import InvalidOptionError, InvalidQueryError
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import FUNCTIONS, TensorFunction, find
from tensorlake_spark.query.functions.row_values import (
    Array,
    Constant,
    RowError,
    Values,
    expanded,
    gathered,
)
from tensorlake_spark.query.language.parsing import parse

STRUCT = "STRUCT(dtype VARCHAR, shape BIGINT[], data BLOB)"
"""The type of a tensor in DuckDB."""

PREFIXED = ("all", "any", "contains", "histogram")
"""DuckDB has a function or a word of this name: these are called ``tensor_all`` and so on."""

_RESULTS: dict[str, tuple[str, pa.DataType]] = {
    "number": ("DOUBLE", pa.float64()),
    "int": ("BIGINT", pa.int64()),
    "bool": ("BOOLEAN", pa.bool_()),
    "text": ("VARCHAR", pa.string()),
    "lengths": ("BIGINT[]", pa.list_(pa.int64())),
    "list": ("DOUBLE[]", pa.list_(pa.float64())),
    "array": (STRUCT, TENSOR),
}
_WHOLE = frozenset(
    {"array_mean", "array_sum", "array_min", "array_max", "array_std", "array_norm", "array_argmax"}
    | {"any", "all", "shape"}
)


def register(con: Any) -> list[str]:
    """Give a DuckDB connection the functions of tensors.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        Functions that were registered before are replaced.

    Returns
    -------
    list of str
        The names: those of queries, with ``tensor_`` before `all`, `any`, `contains` and `histogram`, which DuckDB has
        itself; those of `tl.register_function`; and two more. ``tensor_slice(x, '100:500, ::-1')`` is NumPy's
        ``x[100:500, ::-1]``, and ``tensor_list(x)`` gives the elements in C order as a list of DOUBLE.

    Raises
    ------
    InvalidOptionError
        If `con` is not a connection of DuckDB.

    Examples
    --------
    >>> import duckdb
    >>> con = duckdb.connect()
    >>> "array_mean" in register(con)
    True
    >>> con.sql("SELECT array_mean([1, 2, 6]) AS mean, l2_distance([0, 0], [3, 4]) AS distance").fetchall()
    [(3.0, 5.0)]
    >>> con.close()
    """
    if not callable(getattr(con, "create_function", None)):
        raise InvalidOptionError(
            f"con={con!r:.80} is not a connection of DuckDB; give what duckdb.connect() returns"
        )
    find("shape")  # all functions are there now
    made: dict[str, tuple[Callable[..., Any], str]] = {}
    for function in FUNCTIONS:
        name = f"tensor_{function.name}" if function.name in PREFIXED else function.name
        result = "lengths" if function.name == "shape" else str(function.result)
        made[name] = (_whole(function), result)
    made["tensor_slice"] = (_sliced, "array")
    made["tensor_list"] = (_listed, "list")
    for name, (call, result) in made.items():
        _create(con, name, call, result)
    return sorted(made)


def _create(con: Any, name: str, call: Callable[..., Any], result: str) -> None:
    import duckdb

    text, kind = _RESULTS[result]

    def function(*columns: pa.Array) -> pa.Array:
        rows = len(columns[0])
        try:
            return _to_arrow(call([_from_arrow(one) for one in columns], rows), rows, kind)
        except RowError as error:
            where = "" if error.row is None else f" (row {error.row} of {rows} that came together)"
            raise InvalidQueryError(f"{name}: {error}{where}") from error

    with contextlib.suppress(duckdb.Error):  # it is not there yet
        con.remove_function(name)
    try:
        con.create_function(name, function, None, text, type="arrow", null_handling="special")
    except duckdb.CatalogException as error:
        raise InvalidOptionError(
            f"DuckDB has a function {name!r} of its own; register yours under another name"
        ) from error


def _whole(function: TensorFunction) -> Callable[..., Values]:
    def called(arguments: list[Values], rows: int) -> Values:
        if function.name in _WHOLE and len(arguments) > 1:
            raise RowError(None, "in DuckDB it takes the whole array, no axis")
        return function(arguments, rows)

    return called


def _sliced(arguments: list[Values], rows: int) -> Values:
    if len(arguments) != 2:
        raise RowError(None, "it takes a tensor, and a text such as '100:500, ::-1'")
    key = arguments[1]
    if not isinstance(key, Constant) or not isinstance(key.value, str):
        raise RowError(None, "its key is one text for all rows, such as '100:500, ::-1'")
    node = parse(f"SELECT x[{key.value}] FROM t").selects  # nosec B608 # read by our parser, which knows x alone
    if len(node) != 1:
        raise RowError(None, f"{key.value!r:.60} is no key")
    return evaluate(node[0], {"x": arguments[0]}, rows)


def _listed(arguments: list[Values], rows: int) -> Values:
    if len(arguments) != 1:
        raise RowError(None, "it takes one tensor")
    return [
        None if one is None else np.asarray(one).reshape(-1) for one in expanded(arguments[0], rows)
    ]


# ---------------------------------------------------------------------------- Arrow


def _from_arrow(column: Any) -> Values:
    """Return a column of Arrow as values; single values that are the same in all rows as a constant."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_struct(kind):
        if not {field.name for field in kind} >= {"dtype", "shape", "data"}:
            raise RowError(None, f"a tensor is a list, or {STRUCT}, not {kind}")
        return gathered(Structs(array).arrays())
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return _lists(array)
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    items = array.to_pylist() if len(array) else []
    if items and all(item == items[0] for item in items):
        return Constant(items[0])
    if array.null_count or not pa.types.is_primitive(kind):
        return items
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _lists(array: Any) -> Values:
    inside = array.type
    while hasattr(inside, "value_type"):
        inside = inside.value_type
    if not (pa.types.is_primitive(inside) or pa.types.is_decimal(inside)):
        return [None if one is None else np.asarray(one) for one in array.to_pylist()]
    stack = None if array.null_count else _stack(array)
    if stack is not None:
        return stack
    out: list[Any] = []
    for i in range(len(array)):
        one = _stack(array.slice(i, 1)) if array[i].is_valid else None
        if one is None and array[i].is_valid:
            raise RowError(i, "its lists inside have different lengths")
        out.append(None if one is None else one[0])
    return out


def _stack(array: Any) -> Array | None:
    """Return lists of lists of equal lengths as an array, or None if they are not equal."""
    shape = [len(array)]
    while not pa.types.is_primitive(array.type):
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.float64())
            break
        if array.null_count or not hasattr(array, "flatten"):
            return None
        lengths = pc.list_value_length(array)
        one = lengths[0].as_py() if len(lengths) else 0
        if len(lengths) and pc.min_max(lengths).as_py() != {"min": one, "max": one}:
            return None
        shape.append(one)
        array = array.flatten()
    return np.asarray(array.to_numpy(zero_copy_only=False)).reshape(shape)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value as Arrow takes it; of an integer that no float is it would make none."""
    inside = kind.value_type if pa.types.is_list(kind) else kind
    if isinstance(value, int) and not isinstance(value, bool):
        value = np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    is_rounded = pa.types.is_floating(inside) and value.dtype.kind in "iu"
    return (value.astype(np.float64) if is_rounded else value).tolist()


def _to_arrow(values: Values, rows: int, kind: pa.DataType) -> pa.Array:
    found: Sequence[Any] = list(expanded(values, rows))
    if kind != TENSOR:
        return pa.array([_plain(one, kind) for one in found], kind)
    arrays = [None if one is None else np.asarray(one) for one in found]
    dtypes = {one.dtype for one in arrays if one is not None}
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    return struct_of(arrays, dtype.name, Place("the result"))


__all__ = ["PREFIXED", "STRUCT", "register"]
