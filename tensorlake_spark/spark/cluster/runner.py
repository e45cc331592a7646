"""Work on a table's files by executors: the counterpart of `tensorlake_spark.delta.files.runner.run_here`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tensorlake_spark.delta.files.runner import Output, Run, Task
from tensorlake_spark.spark.cluster.tasks import cores_of, numbers, share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OUTPUT = "index bigint, output string"
_WAVE = 8  # tasks for every core, after which commits are made


def run_in(session: SparkSession) -> Run:
    """Return what has tasks done by a session's executors: some for every core at a time.

    A task that is done twice leaves files that nothing names.
    """

    def run(work: Callable[[Task], Output], tasks: Sequence[Task]) -> Iterator[tuple[Task, Output]]:
        def done(some: Sequence[tuple[int, Task]]) -> Iterator[pa.RecordBatch]:
            for number, task in some:
                text = work(task).to_json()
                yield pa.RecordBatch.from_pydict({"index": [number], "output": [text]})

        wave = _WAVE * cores_of(session)
        for first in range(0, len(tasks), wave):
            some = list(enumerate(tasks[first : first + wave], first))
            frame = numbers(session, len(some)).mapInArrow(share(some, len(some), done), _OUTPUT)
            for number, text in frame.collect():
                yield tasks[number], Output.from_json(text)

    return run
