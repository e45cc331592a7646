"""Columns of a `View` as Spark has them: what the view found is in a table, and executors compute the rest from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type
from sqlglot import exp

from tensorlake_spark.datasets.samples.sample_reading import read_column
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.query.engine.evaluation import Evaluation
from tensorlake_spark.query.engine.row_batches import row_batches
from tensorlake_spark.query.functions.definitions import TensorFunction
from tensorlake_spark.query.functions.registry import FUNCTIONS
from tensorlake_spark.query.sources.source_columns import CollectedLeaf, Lazy, TensorLeaf
from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
from tensorlake_spark.spark.frames.sample_decoding import is_tensor
from tensorlake_spark.spark.queries.batch_functions.tensor_udf import tensor_pieces, users_in
from tensorlake_spark.spark.source.schemas import SPARK_TYPES, TENSOR, arrow_type

if TYPE_CHECKING:
    from tensorlake_spark.query.view import View


@dataclass(frozen=True)
class ViewColumn:
    """A column of a view that is computed from columns of the table that the view found.

    Attributes
    ----------
    name : str
    lazy : Lazy
        What is computed.
    kind : Type, or None
        Of its values; None if there is none.
    schema : pyarrow.Schema
        The columns of the table that it needs: a batch has them in this order.
    parameters : dict of str to object
        Values of ``:name``.
    users : tuple of TensorFunction
        Functions of the user that it calls.
    """

    name: str
    lazy: Lazy
    kind: Type | None
    schema: pa.Schema
    parameters: Mapping[str, Any]
    users: tuple[TensorFunction, ...]

    @property
    def is_collected(self) -> bool:
        """Whether it has the tensors of a group."""
        node = self.lazy.node
        return isinstance(node, exp.Column) and isinstance(
            self.lazy.leaves[node.name], CollectedLeaf
        )

    @property
    def is_tensor(self) -> bool:
        """Whether it has a tensor a row."""
        return not self.is_collected and self.kind is not None and is_tensor(self.kind)

    @property
    def spark_type(self) -> t.DataType:
        """The type that Spark has for it."""
        if self.is_collected:
            return t.ArrayType(TENSOR)
        if self.is_tensor:
            return TENSOR
        stored = pa.float64() if self.kind is None else self.kind.storage()
        return SPARK_TYPES.get(stored) or from_arrow_type(stored)

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """Yield the values for batches of columns, in pieces of few bytes."""
        for function in self.users:  # a process may know an older one of this name
            FUNCTIONS.add(function)
        kind = arrow_type(self.spark_type)
        for batch in batches:
            columns = batch if isinstance(batch, tuple) else (batch,)
            if not len(columns[0]):  # as Spark wants an array for each batch
                yield pa.nulls(0, kind)
            arrays = [
                one.cast(field.type) for one, field in zip(columns, self.schema, strict=False)
            ]
            names = self.schema.names or ["__nothing"]
            table = pa.table(arrays or [columns[0]], names=names)
            start = 0
            for some in row_batches([self.lazy], table, self.parameters):
                for piece in self._pieces(some, start):
                    yield piece.cast(kind)
                start += some.num_rows

    def _pieces(self, table: pa.Table, first: int) -> Iterator[pa.Array]:
        bare = self.lazy.bare
        if bare is not None and not self.is_tensor:  # a file, as Spark has it of the dataset
            yield _as_stored(bare, table.column(bare.key[1]).combine_chunks())
            return
        values = Evaluation(self.parameters).values(self.lazy, table)
        if self.is_collected:
            for one in values:
                parts = tensors_with_nulls(self.name, [*map(_array, one)])
                yield pa.ListArray.from_arrays([0, len(parts)], parts)
        elif self.is_tensor:
            yield from tensor_pieces(self.name, values)
        elif self.kind is None:
            yield pa.nulls(table.num_rows, pa.float64())
        else:
            yield self.kind.encode(values, self.name, first)


def _as_stored(leaf: TensorLeaf, sids: pa.Array) -> pa.Array:
    """Return a column of a dataset for some sids as it is stored, null where there is no sample."""
    numbers = np.asarray(sids.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    parts = leaf.source.dataset.parts
    positions = parts.stored.positions_of(numbers)
    there = positions >= 0
    found = read_column(parts, leaf.column, positions[there])
    if there.all():
        return found
    return found.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _array(value: Any) -> Any:
    return None if value is None else np.asarray(value)


def computed_columns(view: View) -> dict[str, ViewColumn]:
    """Return the columns of a view that are computed, or read, when they are asked for."""
    plan, table = view._plan, view._table
    out = {}
    for name, output in plan.result.outputs.items():
        if not isinstance(output, Lazy):
            continue
        kind: Type | None
        try:
            kind = view._type(name)
        except InvalidOptionError:  # values differ
            kind = None
        if kind is not None and kind.storage() == pa.null():  # there is no value, so no type either
            kind = None
        names = dict.fromkeys(ref[1] for ref in output.refs())
        schema = pa.schema([table.schema.field(one) for one in names])
        users = users_in(output.node)
        out[name] = ViewColumn(name, output, kind, schema, plan.parameters, users)
    return out


def view_udf(column: ViewColumn) -> Any:
    """Return a column of a view as an Arrow UDF of the columns that it needs."""

    def computed(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return column(batches)

    spark: Any = f  # whose own type hints leave it out
    return spark.arrow_udf(computed, column.spark_type)
