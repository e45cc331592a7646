"""A fold by executors: tasks fold shares, and partials are combined in a tree, the last one part by part."""

from __future__ import annotations

import gc
import math
import pickle  # nosec B403 # only what tasks of this session made is loaded
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
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
"""So many partials one task combines, one after the other: it holds two of them, or parts of them."""

_MOST_BYTES = 1 << 30  # of a partial: Spark's rows end at 2 GiB
_ROWS = "number int, part int, partial binary"

_PART_CELLS = 1 << 16
"""Elements of the answer that a part has, about: half a megabyte, as the JVM's heap is slow with larger arrays."""

_TASK_CELLS = 1 << 19
"""Elements of the answer that a task combines at the least, where there are as many: it takes a while to start."""

_MOST_PARTS = 256
"""Of a partial: each is a row for every task that sends one."""


def compute(session: SparkSession, fold: Fold[Any], stored: Stored) -> Any:
    """Return the answer of an operation on a selection, computed by a session's executors.

    Each task reads rows, and sends one partial. Tasks combine `FAN` partials at a time, level by level, and the
    driver finishes the last one. So the driver never has a block, and one partial at a time. Large partials are cut
    into parts of the answer, which several tasks combine at a time.

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
        If a partial, or a part of it, is too large for a row of Spark.
    """
    if stored.selection.is_empty:
        return compute_here(fold, stored)
    return fold.finish(fold.combine_all(_of_steps(session, fold, stored)))


def _of_steps(session: SparkSession, fold: Fold[Any], stored: Stored) -> Iterator[Any]:
    """Yield the partial of each step of a fold. What a step has in memory goes before the next one comes."""
    for step, part in fold.steps(stored):
        count = parts_of(step, part)
        found, totals = last(session, step, shares_of(part, cores_of(session)), count)
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


def parts_of(fold: Fold[Any], stored: Stored) -> int:
    """Return into how many parts a partial is cut, if the fold can cut it; one that is small is not."""
    cells = math.prod(fold.answer_shape or ())
    if stored.is_sparse:
        cells = min(cells, stored.meta.totals.nnz)
    return max(1, min(cells // _PART_CELLS, _MOST_PARTS))


def last(session: SparkSession, fold: Fold[Any], shares: Sequence[Share], parts: int = 1) -> Found:
    """Return the partial of all shares, and what was read for it."""
    out: Found = (None, Totals())
    if not shares:
        return out
    with plain_errors():
        # Not collect(), which makes text of bytes in the JVM of the driver, and bytes of text here.
        rows = tree(session, fold, shares, parts).toArrow()
    for row in rows.column("partial"):
        out = combine(fold, out, unpacked(row.as_buffer()))
    return out


def tree(
    session: SparkSession, fold: Fold[Any], shares: Sequence[Share], parts: int = 1
) -> DataFrame:
    """Return a DataFrame whose rows have the partial of all shares, at least one of them.

    Where partials are cut into parts, the tasks of a level are about as many as there are cores: each combines some
    parts of `FAN` partials. So the last level, which has one partial, is not the work of one core.

    Parameters
    ----------
    session : SparkSession
        Whose executors compute.
    fold : Fold
        The operation.
    shares : sequence of Share
        What the tasks of the first level fold.
    parts : int
        Into how many parts partials are cut, 1 for not at all; see `parts_of`.

    Returns
    -------
    DataFrame
        Parts, each in a row: of which task of the level, its number, and what `unpacked` takes.
    """
    count, cores = len(shares), cores_of(session)
    first = share([*enumerate(shares)], count, partial(_folded, fold, parts))
    frame = numbers(session, count).mapInArrow(first, _ROWS)
    while count > 1:
        count = -(-count // FAN)
        bands = max(1, min(parts * _PART_CELLS // _TASK_CELLS, cores // count))
        task = f.expr(f"cast(number DIV {FAN} * {bands} + part * {bands} DIV {parts} as int)")
        level = frame.repartitionById(count * bands, task)
        frame = level.mapInArrow(partial(_combined, fold, FAN), _ROWS)
    return frame


def _folded(
    fold: Fold[Any], parts: int, some: Sequence[tuple[int, Share]]
) -> Iterator[pa.RecordBatch]:
    """Fold shares: what a task of the first level does."""
    for number, one in some:
        found = one.fold(fold)
        _settle(len(sys.modules))
        if parts > 1 and found[0] is not None:
            for part, piece in fold.cut(found[0], parts):
                yield _row(fold, number, part, (piece, Totals()))
            found = None, found[1]
        yield _row(fold, number, 0, found)


@cache
def _settle(modules: int) -> None:
    """Have Python look for garbage only among what comes from now on, in a process that has loaded so many modules.

    A worker of Spark looks through all its objects after each task. For what numba and others have that takes 0.1 s.
    """
    gc.collect()
    gc.freeze()


def _combined(
    fold: Fold[Any], fan: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Combine the parts of partials that a task of a later level gets, as they come."""
    out: dict[int, Found] = {}
    number = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        number = batch.column("number")[0].as_py() // fan
        for part, row in zip(
            batch.column("part").to_pylist(), batch.column("partial"), strict=True
        ):
            out[part] = combine(fold, out.get(part, (None, Totals())), unpacked(row.as_buffer()))
    for part in sorted(out):
        yield _row(fold, number, part, out.pop(part))


def combine(fold: Fold[Any], one: Found, other: Found) -> Found:
    """Return the partial of two, and what was read for both."""
    totals = one[1] + other[1]
    if one[0] is None or other[0] is None:
        return (other[0] if one[0] is None else one[0]), totals
    return fold.combine(one[0], other[0]), totals


def _row(fold: Fold[Any], number: int, part: int, found: Found) -> pa.RecordBatch:
    sent = None if found[0] is None else fold.packed(found[0])
    data = pickle.dumps((sent, found[1]), pickle.HIGHEST_PROTOCOL)
    if len(data) > _MOST_BYTES:
        raise InvalidTensorError(
            f"a partial result takes {len(data)} bytes, and a row of Spark holds {_MOST_BYTES}: reduce more axes, "
            "compute a slice at a time, or send what is computed element by element to the lake with into="
        )
    columns = [pa.array([number], pa.int32()), pa.array([part], pa.int32()), pa.array([data])]
    return pa.RecordBatch.from_arrays(columns, ["number", "part", "partial"])


def unpacked(data: Any) -> Found:
    """Return what a task sent."""
    found: Found = pickle.loads(data)  # nosec B301 # of a task of this session
    return found
