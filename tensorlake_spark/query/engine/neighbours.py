"""The rows with the least or greatest values of an expression, found block by block without sorting all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.query.engine.all_samples import FEW, rows_of, source_of_all
from tensorlake_spark.query.engine.evaluation import Evaluation, in_one_piece, joined, one_a_row
from tensorlake_spark.query.nearest.vector_scan import VectorQuestion, candidates, question_of
from tensorlake_spark.query.planning.plan import Best, Computed, Step

_ROUNDED = 1 << 53  # float64 has every integer below it
_SHARE = 4  # where fewer than one of four samples are asked for, only those are read


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
        chosen = _near(evaluation, question, in_one_piece(table.column(question.leaf.key[1])), best)
        if chosen is not None:
            table = table.take(pa.array(chosen))
    return ranked(evaluation, computed, table, best)


def best_of_all(
    evaluation: Evaluation,
    step: Step,
    sources: Mapping[str, Any],
    ask: Callable[[Any], pa.Table],
) -> pa.Table | None:
    """Return the rows of a step with the least distances to a vector, None if that is not what it is.

    The step takes all samples of a dataset: their numbers are not read, and other columns only for few candidates.

    Parameters
    ----------
    evaluation : Evaluation
        Computes the distances.
    step : Step
        What is asked.
    sources : mapping of str to Source
        By what DuckDB calls them.
    ask : callable
        Returns the rows of a SELECT.
    """
    best = step.best
    source = source_of_all(step.tree, sources)
    if best is None or source is None or source.stored is None:
        return None
    question = question_of(step.computed[0], evaluation.parameters)
    if question is None or question.leaf.source is not source:
        return None
    chosen = candidates(question, None, best)
    if chosen is None or len(chosen) > FEW:
        return None
    _count(evaluation, question, len(source.stored) - len(chosen))
    found = rows_of(step.tree, source, chosen)
    table = found if isinstance(found, pa.Table) else ask(found)
    return ranked(evaluation, step.computed[0], table, best)


def _near(
    evaluation: Evaluation, question: VectorQuestion, sids: pa.Array, best: Best
) -> Any | None:
    """Return the rows whose samples may be among the best, None if few are asked for, or no sample has the key."""
    stored = question.leaf.source.stored
    if stored is None or sids.null_count or len(sids) * _SHARE < len(stored):
        return None
    positions = stored.positions_of(np.asarray(sids.to_numpy(zero_copy_only=False)))
    wanted = np.zeros(len(stored), bool)
    wanted[positions] = True
    if (positions < 0).any():
        return None
    chosen = candidates(question, None if wanted.all() else wanted, best)
    if chosen is None:
        return None
    wanted[:] = False
    wanted[chosen] = True
    rows = np.flatnonzero(wanted[positions])
    _count(evaluation, question, len(sids) - len(rows))
    return rows


def _count(evaluation: Evaluation, question: VectorQuestion, rows: int) -> None:
    """Count the vectors that were looked at and are not computed again."""
    leaf = question.leaf
    evaluation.counts.add(leaf.source_name, leaf.column, rows, rows * question.vector.nbytes)


def ranked(evaluation: Evaluation, computed: Computed, table: pa.Table, best: Best) -> pa.Table:
    """Return the rows that may be the best of a table, by their computed values, with these.

    Parameters
    ----------
    evaluation, computed, table, best
        As for `best_rows`.
    """
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
            rows, parts = _merged(rows, parts, computed, best)
    rows, parts = _merged(rows, parts, computed, best) if parts else (rows, parts)
    places = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    order = np.argsort(places)
    values = joined(parts, computed).combine_chunks() if parts else pa.array([], pa.float64())
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
    # Of integers from there on, several may be one float: the order of these is not known here.
    is_rounded = pa.types.is_integer(values.type) and abs(bound) >= _ROUNDED
    if np.isinf(bound) or is_rounded or not valid.all():
        return np.sort(np.concatenate([below, equal]))
    return np.sort(np.concatenate([below, equal[: best.count - len(below)]]))


def _merged(
    rows: list[np.ndarray], parts: list[pa.Array], computed: Computed, best: Best
) -> tuple[list[np.ndarray], list[pa.Array]]:
    whole = in_one_piece(joined(parts, computed))
    places = kept(whole, best)
    return [np.concatenate(rows)[places]], [whole.take(pa.array(places))]
