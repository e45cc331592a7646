"""Who does a piece of work on a table's files: this process, or a cluster; and what has been written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.threads import threads

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Output:
    """Data files that no commit names yet.

    Attributes
    ----------
    files : tuple of DataFile
        The files.
    totals : Totals
        What was encoded into them; zeros where rows were moved as they are.
    """

    files: tuple[DataFile, ...]
    totals: Totals = field(default_factory=Totals)


class Run(Protocol):
    """Does tasks, and yields each with its result, in the order of the tasks.

    Implemented by `run_here`, and for Spark by `tensorlake_spark.spark.cluster.executor_runner.run_in`. The caller may
    commit between two results. Executors only read, write files that nothing names yet, and delete files that
    the caller has chosen.

    Parameters
    ----------
    work : callable
        Takes a task, returns a result. All three travel to executors, so they can be pickled.
    tasks : sequence
        What to do.
    sizes : sequence of int, optional
        Bytes that each task reads. They are given for tasks that only look, many of which may be done at
        once. A task without a size may write, and uses all threads of a process itself.
    """

    def __call__(
        self,
        work: Callable[[Task], Result],
        tasks: Sequence[Task],
        sizes: Sequence[int] | None = None,
    ) -> Iterator[tuple[Task, Result]]: ...


def run_here(
    work: Callable[[Task], Result], tasks: Sequence[Task], sizes: Sequence[int] | None = None
) -> Iterator[tuple[Task, Result]]:
    """Do tasks in this process: in its threads where `sizes` are given, else each when it is asked for.

    Examples
    --------
    >>> list(run_here(abs, [-1, 2, -3], sizes=[8, 8, 8]))
    [(-1, 1), (2, 2), (-3, 3)]
    """
    if sizes is not None:
        yield from zip(tasks, threads().map(work, tasks), strict=True)
        return
    for task in tasks:
        yield task, work(task)


def parcels(sizes: Sequence[int], most_bytes: int, least_size: int) -> list[tuple[int, int]]:
    """Cut tasks into runs of neighbours: ``(first, stop)`` of each, with at most so many bytes or one task.

    Parameters
    ----------
    sizes : sequence of int
        Bytes of each task.
    most_bytes : int
        Of a run with more than one task.
    least_size : int
        What a task counts at least: to open a file takes time, too.

    Examples
    --------
    >>> parcels([50, 10, 10, 10, 90], most_bytes=64, least_size=4)
    [(0, 2), (2, 4), (4, 5)]
    """
    out: list[tuple[int, int]] = []
    first = total = 0
    for place, size in enumerate(sizes):
        size = max(size, least_size)
        if place > first and total + size > most_bytes:
            out.append((first, place))
            first, total = place, 0
        total += size
    if len(sizes) > first:
        out.append((first, len(sizes)))
    return out
