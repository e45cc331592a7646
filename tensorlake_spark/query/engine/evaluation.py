"""Expressions on tensors for the rows of a table: read and computed in batches, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tensorlake_spark.datasets.samples.sample_reading import BATCH_BYTES
from tensorlake_spark.errors import InvalidQueryError
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.query.engine.leaf_values import (
    ReadCounts,
    grouped,
    operand_values,
    tensor_values,
)
from tensorlake_spark.query.engine.row_batches import row_batches
from tensorlake_spark.query.engine.value_digests import value_digests
from tensorlake_spark.query.functions.expressions import evaluate
from tensorlake_spark.query.functions.needed_parts import boxes_needed
from tensorlake_spark.query.functions.row_values import RowError, for_functions, gathered
from tensorlake_spark.query.functions.tree_names import arguments_of, cast_dtype, function_name
from tensorlake_spark.query.planning.plan import DIGEST, LENGTH, VALUE, Computed
from tensorlake_spark.query.sources.source_columns import (
    BranchLeaf,
    CollectedLeaf,
    ItemLeaf,
    Lazy,
    Leaf,
    ScalarLeaf,
    TensorLeaf,
)
from tensorlake_spark.threads import in_order

Array = np.ndarray[Any, Any]

_UNSIGNED = np.dtype(np.uint64)
_MEMORY = 8 * BATCH_BYTES  # of pixels, for a condition


class Evaluation:
    """Computes expressions for a query.

    Parameters
    ----------
    parameters : mapping of str to object
        Values of ``:name``.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters
        self.counts = ReadCounts()

    # ------------------------------------------------------------------ some rows

    def values(self, lazy: Lazy, table: pa.Table, memory: BatchBuffers | None = None) -> Any:
        """Return the values of an expression for all rows of a table: an array, or a list with one a row.

        Images are decoded into `memory`, if there is any.

        Raises
        ------
        InvalidQueryError
            If a value cannot be computed; it names the row, and the sample.
        """
        bare = isinstance(lazy.node, exp.Column)
        if bare:
            return self._leaf(lazy.leaves[lazy.node.name], table, None, memory)
        keys = boxes_needed([lazy.node], self.parameters)
        columns = {
            name: for_functions(self._leaf(leaf, table, keys.get(name), memory))
            for name, leaf in lazy.leaves.items()
        }
        rows = table.num_rows
        return evaluate(lazy.node, columns, rows, self.parameters, _placing(lazy, table))

    def _leaf(self, leaf: Leaf, table: pa.Table, key: Any, memory: BatchBuffers | None) -> Any:
        if isinstance(leaf, TensorLeaf):
            sids = table.column(leaf.key[1]).combine_chunks()
            return tensor_values(leaf, in_one_piece(sids), key, self.counts, memory)
        if isinstance(leaf, ScalarLeaf):
            return operand_values(
                in_one_piece(table.column(leaf.ref[1]).combine_chunks()), leaf.type
            )
        if isinstance(leaf, CollectedLeaf):
            return self._collected(leaf.lazy, table)
        if isinstance(leaf, ItemLeaf):
            items = self.values(leaf.lazy, table)
            places = table.column(leaf.index[1]).to_pylist()
            return gathered(
                [None if item is None else item[n] for item, n in zip(items, places, strict=True)]
            )
        return self._branches(leaf, table)

    def _collected(self, lazy: Lazy, table: pa.Table) -> list[Any]:
        """Return the values of groups: keys are lists, of which all have the same lengths."""
        arrays = {}
        ends = np.zeros(1, np.int64)
        for ref in lazy.refs():
            lists = in_one_piece(table.column(ref[1]).combine_chunks())
            arrays[ref[1]] = lists.flatten()
            counts = np.asarray(
                pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
            )
            ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return grouped(self.values(lazy, pa.table(arrays)), ends)

    def _branches(self, leaf: BranchLeaf, table: pa.Table) -> list[Any]:
        chosen = np.asarray(table.column(leaf.chosen[1]).to_numpy())
        out: list[Any] = [None] * table.num_rows
        for number, branch in enumerate(leaf.branches):
            here = np.flatnonzero(chosen == number)
            if len(here):
                for place, value in zip(
                    here.tolist(), self.values(branch, table.take(here)), strict=True
                ):
                    out[place] = value
        return out

    # ------------------------------------------------------------------ many rows

    def batches(self, lazies: list[Lazy], table: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows of a table in batches of which tensors take about `BATCH_BYTES`."""
        yield from row_batches(lazies, table, self.parameters)

    def each(
        self, lazies: list[Lazy], table: pa.Table, work: Callable[[pa.Table], Any]
    ) -> Iterator[Any]:
        """Yield what `work` makes of each batch, in order; several are done at once."""
        yield from self.ahead(lazies, self.batches(lazies, table), work)

    def ahead(
        self, lazies: list[Lazy], tables: Iterable[pa.Table], work: Callable[[pa.Table], Any]
    ) -> Iterator[Any]:
        """Yield what `work` makes of tables, in order; several are done at once."""
        if not lazies or _waits(lazies):  # links are fetched by pools of their own
            yield from map(work, tables)
        else:
            yield from in_order(work, tables)

    def column(self, computed: Computed, table: pa.Table) -> pa.ChunkedArray:
        """Return a computed column.

        Raises
        ------
        InvalidQueryError
            If a row has a value of which it cannot have that form, such as an array; it names the sample.
        """
        form, memory = _FORMS[computed.form], BatchBuffers(_MEMORY)

        def work(some: pa.Table) -> pa.Array:
            return form(self.values(computed.lazy, some, memory), computed, some)

        parts = list(self.each([computed.lazy], table, work))
        if computed.form in _TYPES:
            return pa.chunked_array(parts, _TYPES[computed.form])
        return joined(parts, computed, _type_of_nulls(computed, table))


def one_a_row(values: Any, computed: Computed, table: pa.Table) -> pa.Array:
    """Return computed values as an Arrow array; floats that DuckDB does not have are float32.

    Raises
    ------
    InvalidQueryError
        If a row has more than one, or a complex one, or rows have values of several types.
    """
    is_flat = isinstance(values, np.ndarray) and values.ndim == 1
    # bfloat16 and its like, which Arrow does not have either
    if is_flat and values.dtype.isbuiltin == 2:
        return pa.array(values.astype(np.float32))
    if is_flat and values.dtype.kind not in "Oc":
        return pa.array(values)
    for number, value in enumerate(values):
        if np.iscomplexobj(value) and not np.ndim(value):
            where = _placing(computed.lazy, table)(number)
            raise InvalidQueryError(
                f"{computed.what:.200} gives a complex number ({where}), and complex numbers have no order here; take "
                "its size, as abs(x) does"
            )
        if np.ndim(value):
            where = _placing(computed.lazy, table)(number)
            raise InvalidQueryError(
                f"{computed.what:.200} gives an array of shape {np.shape(value)} ({where}), and here a value a row is "
                "needed; reduce it, as array_mean(x), any(x) or all(x) do, or choose an element"
            )
    # Of Python's integers alone Arrow takes none that passes int64.
    is_unsigned = {getattr(v, "dtype", None) for v in values if v is not None} == {_UNSIGNED}
    found = [v.item() if isinstance(v, (np.generic, np.ndarray)) else v for v in values]
    try:
        return pa.array(found, pa.uint64() if is_unsigned else None)
    except (pa.ArrowException, OverflowError) as error:
        raise _unlike(computed, {type(v).__name__ for v in found if v is not None}) from error


def _unlike(computed: Computed, kinds: Iterable[str]) -> InvalidQueryError:
    """Return the error for values that are not of one type."""
    return InvalidQueryError(
        f"{computed.what:.200} gives values that no one type has ({', '.join(sorted(kinds))}), and here a column of "
        "one type is needed; make them alike, as CAST(x AS DOUBLE) or CAST(x AS VARCHAR) does"
    )


def digests(values: Any, computed: Computed, table: pa.Table) -> pa.Array:
    """Return the digests of computed values.

    Raises
    ------
    InvalidQueryError
        If a row has a value that cannot be compared.
    """
    try:
        return value_digests(values, table.num_rows)
    except RowError as error:
        where = _placing(computed.lazy, table)(error.row or 0)
        raise InvalidQueryError(f"{computed.what:.200}: {error} ({where})") from error


def lengths(values: Any, computed: Computed, table: pa.Table) -> pa.Array:
    """Return the lengths of the first axis, of shapes.

    Raises
    ------
    InvalidQueryError
        If a row has a value without axes.
    """
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1]:
        return pa.array(values[:, 0])
    out = [None if shape is None else list(shape[:1]) for shape in values]
    for row, length in enumerate(out):
        if length == []:
            where = _placing(computed.lazy, table)(row)
            raise InvalidQueryError(
                f"{computed.what:.200}, which is a value a row, not an array ({where})"
            )
    return pa.array([None if length is None else int(length[0]) for length in out], pa.int64())


_FORMS = {VALUE: one_a_row, DIGEST: digests, LENGTH: lengths}
_TYPES = {DIGEST: pa.binary(), LENGTH: pa.int64()}


def _type_of_nulls(computed: Computed, table: pa.Table) -> pa.DataType:
    """Return the type of a column without values: of a choice that of a column in it, or DuckDB finds one that fits."""
    results = [*_results(computed.lazy.node)]
    for node in results:
        if isinstance(node, (exp.Cast, exp.TryCast)):
            dtype = cast_dtype(node)
            return pa.string() if dtype.kind == "U" else pa.from_numpy_dtype(dtype)
        leaf = computed.lazy.leaves.get(node.name) if isinstance(node, exp.Column) else None
        if isinstance(leaf, ScalarLeaf):
            kind = table.schema.field(leaf.ref[1]).type
            return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind
    if results != [computed.lazy.node]:
        return pa.null()
    return pa.bool_() if computed.condition else pa.float64()


def _results(node: Any) -> Iterator[Any]:
    """Yield what a choice may give; of any other expression, itself."""
    parts = [node]
    if isinstance(node, exp.Case):
        parts = [*(one.args["true"] for one in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        parts = [node.args["true"], node.args.get("false")]
    elif function_name(node) in ("coalesce", "ifnull", "nvl"):
        parts = arguments_of(node)
    elif function_name(node) == "nullif":
        parts = arguments_of(node)[:1]
    for part in parts:
        if part is node:
            yield node
        elif part is not None:
            yield from _results(part)


def joined(
    parts: list[pa.Array], computed: Computed, nulls: pa.DataType | None = None
) -> pa.ChunkedArray:
    """Return arrays of batches as one column: batches of nulls alone take the type of the others, or `nulls`.

    Raises
    ------
    InvalidQueryError
        If no one type has the values of all.
    """
    kinds = [part.type for part in parts if not pa.types.is_null(part.type)]
    try:
        if not kinds:
            kind = pa.float64() if nulls is None else nulls
        elif any(k != kinds[0] for k in kinds):
            kind = pa.unify_schemas(
                [pa.schema([("x", k)]) for k in kinds], promote_options="permissive"
            ).field(0).type  # fmt: skip
        else:
            kind = kinds[0]
        return pa.chunked_array([part.cast(kind) for part in parts], kind)
    except pa.ArrowException as error:
        raise _unlike(computed, {str(kind) for kind in kinds}) from error


def _waits(lazies: list[Lazy]) -> bool:
    from tensorlake_spark.datasets.types.nested import link_in

    return any(
        link_in(leaf.source.dataset.schema[leaf.column]) is not None
        for lazy in lazies
        for leaf in lazy.tensors()
    )


def _placing(lazy: Lazy, table: pa.Table) -> Callable[[int], str]:
    """Return what names a row in messages: the sample that it is. The table may be one batch of many."""
    keys = [leaf.key[1] for leaf in lazy.tensors() if leaf.key[1] in table.column_names]

    def place(row: int) -> str:
        sid = table.column(keys[0])[row].as_py() if keys else None
        return (
            "one of the rows" if sid is None or isinstance(sid, list) else f"sample with sid {sid}"
        )

    return place


def in_one_piece(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; of no rows it may have no piece."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return (
        array.chunk(0)
        if array.num_chunks == 1
        else pa.concat_arrays(array.chunks)
        if array.num_chunks
        else pa.array([], array.type)
    )
