"""The rows with the least, or the greatest, values of an expression: found block by block, without a sort of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.query.engine.evaluation import Evaluation, joined, one_a_row
from tensorlake_spark.query.engine.vector_scan import candidates, question_of
from tensorlake_spark.query.planning.plan import Best, Computed


def best_rows(evaluation: Evaluation, computed: Computed, table: pa.Table, best: Best) -> pa.Table:
    """Return the rows with the least values of a computed column, with that column; nulls come last.

    Parameters
    ----------
    evaluation : Evaluation
        Computes the column.
    computed : Computed
        The column.
    table : pyarrow.Table
        All rows.
    best : Best
        How many are kept, and of which end.
    """
    question = question_of(computed, evaluation.parameters)
    if question is not None:
        sids = table.column(question.leaf.key[1]).combine_chunks()
        chosen = candidates(question, _array(sids), best)
        if chosen is not None:
            evaluation.counts.add(
                question.leaf.source_name, question.leaf.column, table.num_rows - len(chosen),
                (table.num_rows - len(chosen)) * question.vector.nbytes,
            )  # fmt: skip
            table = table.take(pa.array(chosen))
    offsets = iter(
        np.cumsum([0] + [b.num_rows for b in evaluation.batches([computed.lazy], table)]).tolist()
    )

    def work(some: pa.Table) -> tuple[pa.Array, np.ndarray]:
        values = one_a_row(evaluation.values(computed.lazy, some), computed, some)
        return values, kept(values, best)

    rows, parts = [], []
    for values, places in evaluation.each([computed.lazy], table, work):
        rows.append(places + next(offsets))
        parts.append(values.take(pa.array(places)))
        if sum(map(len, parts)) > 8 * best.count + 4096:
            rows, parts = _merged(rows, parts, best)
    rows, parts = _merged(rows, parts, best) if parts else (rows, parts)
    places = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    order = np.argsort(places)
    values = joined(parts).combine_chunks() if parts else pa.array([], pa.float64())
    return table.take(pa.array(places[order])).append_column(
        computed.name, values.take(pa.array(order))
    )


def kept(values: pa.Array, best: Best) -> np.ndarray:
    """Return the places of the values that may be among the best, in order: ties go to those that come first.

    Examples
    --------
    >>> kept(pa.array([5.0, 1.0, None, 3.0, 1.0]), Best(2, False)).tolist()
    [1, 4]
    """
    count = len(values)
    if count <= best.count:
        return np.arange(count)
    if best.count == 0:
        return np.arange(0)
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        order = pc.sort_indices(
            values, sort_keys=[("", "descending" if best.descending else "ascending")]
        )
        return np.sort(np.asarray(order.to_numpy())[: best.count])
    keys = np.asarray(values.to_numpy(zero_copy_only=False))
    if values.null_count or keys.dtype.kind != "f":
        keys = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
    keys = -keys if best.descending else keys
    # NaN is above all numbers, and a null comes after it.
    ranks = np.where(np.isnan(keys), -np.inf if best.descending else np.inf, keys)
    ranks = np.where(valid, ranks, np.inf)
    bound = np.partition(ranks, best.count - 1)[best.count - 1]
    below = np.flatnonzero(ranks < bound)
    equal = np.flatnonzero(ranks == bound)
    if np.isinf(bound) or not valid.all():
        return np.sort(np.concatenate([below, equal]))
    return np.sort(np.concatenate([below, equal[: best.count - len(below)]]))


def _array(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    return column


def _merged(
    rows: list[np.ndarray], parts: list[pa.Array], best: Best
) -> tuple[list[np.ndarray], list[pa.Array]]:
    whole = joined(parts).combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    places = kept(whole, best)
    return [np.concatenate(rows)[places]], [whole.take(pa.array(places))]
