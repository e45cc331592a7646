"""A fold by executors: tasks fold shares, and partials are combined in a tree; the driver gets one of them."""

from __future__ import annotations

import pickle  # nosec B403 # only what tasks of this session made is loaded
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyspark.sql import functions as f

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.thread_runner import compute as compute_here
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.reading.read import check_totals
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.cluster.tasks import TASKS, cores_of, numbers, share
from tensorlake_spark.spark.computing.gathering import Gather, MappedShare
from tensorlake_spark.spark.computing.shares import shares_of
from tensorlake_spark.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Found = tuple[Any, Totals]
"""A partial, None where no block had anything, and what was read for it."""


class Share(Protocol):
    """What one task folds; it travels there."""

    def fold(self, fold: Fold[Any]) -> Found:
        """Return the partial of the share, and what was read for it."""


FAN = 8
"""So many partials one task combines, one after the other: it holds two of them."""

_MOST_BYTES = 1 << 30  # of a partial: Spark's rows end at 2 GiB
_PARTIAL = "place bigint, partial binary"


def compute(session: SparkSession, fold: Fold[Any], stored: Stored) -> Any:
    """Return the answer of an operation on a selection, computed by a session's executors.

    Each task reads rows, and sends one partial. Tasks combine `FAN` partials at a time, level by level, and the
    driver finishes the last one. So the driver never has a block, and one partial at a time.

    Parameters
    ----------
    session : SparkSession
        Whose executors compute.
    fold : Fold
        The operation; it travels to the tasks.
    stored : Stored
        The selection.

    Raises
    ------
    CorruptDataError
        If stored bytes are not what was written, or rows are missing, as a read of the same selection would find.
    InvalidTensorError
        If a partial is too large for a row of Spark.
    """
    if stored.selection.is_empty:
        return compute_here(fold, stored)
    return fold.finish(fold.combine_all(_of_steps(session, fold, stored)))


def _of_steps(session: SparkSession, fold: Fold[Any], stored: Stored) -> Iterator[Any]:
    """Yield the partial of each step of a fold. What a step has in memory goes before the next one comes."""
    for step, part in fold.steps(stored):
        found, totals = last(session, step, shares_of(part, cores_of(session)))
        if part.verify and part.has_blocks and not part.has_duplicates:
            check_totals(part.meta, part.selection, totals)
        if found is not None:
            yield found
        del step, part, found


def gather(session: SparkSession, mapped: Mapped) -> Any:
    """Return an elementwise result in memory: tasks compute parts of it, which a tree puts together.

    Raises
    ------
    InvalidTensorError
        If the result is too large for a row of Spark; with ``into=`` it goes to the lake.
    """
    boxes = tuple(mapped.boxes())
    if not boxes:
        return mapped.computed()
    count = min(len(boxes), TASKS * cores_of(session))
    cuts = pairwise(len(boxes) * k // count for k in range(count + 1))
    fold = Gather(mapped.shape, mapped.dtype)
    found, _ = last(session, fold, [MappedShare(mapped, boxes[a:b]) for a, b in cuts])
    out = fold.finish(found)
    if not isinstance(out, Elements):
        return out
    return SparseTensor._trusted(out.coords, out.values, out.shape)


def last(session: SparkSession, fold: Fold[Any], shares: Sequence[Share]) -> Found:
    """Return the partial of all shares, and what was read for it."""
    if not shares:
        return None, Totals()
    with plain_errors():
        # Not collect(), which makes text of bytes in the JVM of the driver, and bytes of text here.
        rows = tree(session, fold, shares).toArrow()
    return unpacked(rows.column("partial")[0].as_buffer())


def tree(session: SparkSession, fold: Fold[Any], shares: Sequence[Share]) -> DataFrame:
    """Return a DataFrame whose only row has the partial of all shares, at least one of them."""
    count = len(shares)
    first = share([*enumerate(shares)], count, partial(_folded, fold))
    frame = numbers(session, count).mapInArrow(first, _PARTIAL)
    while count > 1:
        count = -(-count // FAN)
        level = frame.selectExpr(f"place DIV {FAN} AS place", "partial")
        level = level.repartitionById(count, f.col("place").cast("int"))
        frame = level.mapInArrow(partial(_combined, fold), _PARTIAL)
    return frame


def _folded(fold: Fold[Any], some: Sequence[tuple[int, Share]]) -> Iterator[pa.RecordBatch]:
    """Fold shares: what a task of the first level does."""
    for place, one in some:
        yield _row(place, one.fold(fold))


def _combined(fold: Fold[Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine the partials that a task of a later level gets, as they come."""
    out: Found = (None, Totals())
    places: list[int] = []
    for batch in batches:
        places += batch.column("place").to_pylist()
        for row in batch.column("partial"):
            out = combine(fold, out, unpacked(row.as_buffer()))
    yield _row(places[0], out)


def combine(fold: Fold[Any], one: Found, other: Found) -> Found:
    """Return the partial of two, and what was read for both."""
    totals = one[1] + other[1]
    if one[0] is None or other[0] is None:
        return (other[0] if one[0] is None else one[0]), totals
    return fold.combine(one[0], other[0]), totals


def _row(place: int, found: Found) -> pa.RecordBatch:
    data = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    if len(data) > _MOST_BYTES:
        raise InvalidTensorError(
            f"a partial result takes {len(data)} bytes, and a row of Spark holds {_MOST_BYTES}: reduce more axes, "
            "compute a slice at a time, or send what is computed element by element to the lake with into="
        )
    return pa.RecordBatch.from_pydict({"place": [place], "partial": [data]})


def unpacked(data: Any) -> Found:
    """Return what a task sent."""
    found: Found = pickle.loads(data)  # nosec B301 # of a task of this session
    return found
