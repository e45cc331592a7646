"""Expressions on tensors as functions of Spark: Arrow in, `evaluate` of the query room, Arrow out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql import types as t
from sqlglot import exp

from tensorlake_spark.query.functions.definitions import TensorFunction
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.registry import FUNCTIONS, find
from tensorlake_spark.query.functions.row_values import (
    beside_nulls,
    for_functions,
    gathered,
    items_of,
)
from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type, tensors_of

if TYPE_CHECKING:
    from tensorlake_spark.query.functions.row_values import Values

_RUN = 256  # rows that are computed at a time
_UNSIGNED = np.dtype(np.uint64)
_BYTES = 32 << 20  # of tensors that go to Spark at once

TYPES: dict[str, t.DataType] = {
    "number": t.DoubleType(),
    "int": t.LongType(),
    "bool": t.BooleanType(),
    "text": t.StringType(),
    "date": t.DateType(),
    "time": t.TimestampType(),
    "time_ntz": t.TimestampNTZType(),
    "array": TENSOR,
    "texts": t.ArrayType(t.StringType()),
}
"""The type that Spark has for what an expression gives."""


@dataclass(frozen=True)
class TensorWork:
    """An expression for batches of rows.

    Attributes
    ----------
    node : sqlglot expression
        What is computed.
    result : str
        What it gives: a key of `TYPES`.
    parameters : dict of str to object
        Values of ``:name``.
    users : tuple of TensorFunction
        Functions of the user that it calls, for executors, which have not registered them.
    names : tuple of str
        The names of its columns, in the order in which a batch has them.
    placed : bool
        Whether a batch has the sids of its rows behind them, for messages.
    """

    node: Any
    result: str
    parameters: Mapping[str, Any]
    users: tuple[TensorFunction, ...] = ()
    names: tuple[str, ...] = ()
    placed: bool = False

    @classmethod
    def of(
        cls,
        node: Any,
        result: str,
        parameters: Mapping[str, Any],
        names: Sequence[str],
        placed: bool = False,
    ) -> TensorWork:
        """Return the work for an expression, with the parameters and functions that it needs."""
        wanted = {one.name for one in node.find_all(exp.Placeholder)}
        given = {name: parameters[name] for name in wanted if name in parameters}
        return cls(node, result, given, users_in(node), tuple(names), placed)

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """Yield the values for batches of columns, in pieces of few bytes."""
        kind = arrow_type(TYPES[self.result])
        for batch in batches:
            columns = batch if isinstance(batch, tuple) else (batch,)
            if not len(columns[0]):  # as Spark wants an array for each batch
                yield pa.nulls(0, kind)
            for start in range(0, len(columns[0]), _RUN):
                yield from self._piece([one.slice(start, _RUN) for one in columns], kind)

    def _piece(self, columns: Sequence[pa.Array], kind: pa.DataType) -> Iterator[pa.Array]:
        rows = len(columns[0])
        values = {
            name: for_functions(values_of(column))
            for name, column in zip(self.names, columns, strict=False)
        }
        for function in self.users:  # of a process that may know an older one of this name
            FUNCTIONS.add(function)
        place = partial(_place, columns[-1]) if self.placed else None
        found = evaluate(self.node, values, rows, self.parameters, place)
        if self.result != "array":
            yield _scalars(found, kind)
            return
        yield from tensor_pieces("query", found)


def _place(sids: pa.Array, row: int) -> str:
    """Return what messages call a row, as the engine of this process does."""
    sid = sids[row].as_py()
    return "a row without a sample" if sid is None else f"sample with sid {sid}"


def tensor_pieces(name: str, values: Any) -> Iterator[pa.Array]:
    """Yield the tensors of a column in pieces of few bytes; the name is for messages."""
    held: list[Any] = []
    size = 0
    for one in values:
        held.append(None if one is None else np.asarray(one))
        size += 0 if one is None else held[-1].nbytes
        if size >= _BYTES:
            yield tensors_with_nulls(name, held)
            held, size = [], 0
    if held:
        yield tensors_with_nulls(name, held)


def users_in(node: Any) -> tuple[TensorFunction, ...]:
    """Return the functions of the user that an expression calls."""
    called = [find(one.name) for one in node.find_all(exp.Anonymous)]
    return tuple(one for one in called if one is not None and one.users)


def values_of(column: pa.Array) -> Values:
    """Return a column of Spark as functions on tensors take it.

    Examples
    --------
    >>> values_of(pa.array([1, None, 3], pa.int8()))
    [np.int8(1), None, np.int8(3)]
    >>> values_of(pa.array([[1, 2], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    kind = column.type
    if pa.types.is_list(kind) and _is_tensor(kind.value_type):
        items = items_of(values_of(column.flatten()), 0)
        counts = pc.list_value_length(column).to_pylist()
        return [None if n is None else gathered([*islice(items, n)]) for n in counts]
    if _is_tensor(kind):
        plain = pa.StructArray.from_arrays(
            [column.field(name) for name in TENSOR.names],
            fields=[kind.field(name) for name in TENSOR.names],
        )
        there = column.is_valid().to_pylist()
        arrays = tensors_of(plain.filter(column.is_valid()).cast(arrow_type(TENSOR)))
        return gathered([next(arrays) if ok else None for ok in there])
    if pa.types.is_list(kind):
        return gathered([None if v is None else np.asarray(v) for v in column.to_pylist()])
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return gathered(column.to_pylist())
    values = np.asarray(column.drop_null().to_numpy(zero_copy_only=False))
    return beside_nulls(values, np.asarray(column.is_valid())) if column.null_count else values


def _is_tensor(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and {*TENSOR.names} <= {one.name for one in kind}


def _scalars(found: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(found, np.ndarray) and found.ndim == 1 and found.dtype.kind in "biuf":
        return pa.array(found).cast(kind, safe=False)
    items = [None if one is None else np.asarray(one)[()] for one in found]
    plain = [one.tolist() if isinstance(one, (np.generic, np.ndarray)) else one for one in items]
    # Of Python's integers alone Arrow takes none that passes int64.
    is_unsigned = {getattr(one, "dtype", None) for one in items if one is not None} == {_UNSIGNED}
    of = pa.uint64() if is_unsigned else None
    made = pa.array(plain, of, from_pandas=False)
    return made.cast(kind, safe=False) if plain else pa.nulls(0, kind)


def as_udf(work: TensorWork) -> Any:
    """Return an expression as an Arrow UDF of its columns."""

    def computed(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return work(batches)

    spark: Any = f  # whose own type hints leave it out
    return spark.arrow_udf(computed, TYPES[work.result])
