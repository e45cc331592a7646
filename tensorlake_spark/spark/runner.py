"""Work on a table's files by executors: the counterpart of `tensorlake_spark.delta.output.run_here`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tensorlake_spark.delta.output import Output, Run, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_in(session: SparkSession) -> Run:
    """Return what has tasks done by a session's executors, one partition each, and yields as they end.

    Results come in the order of the tasks. A task that is done twice leaves files that nothing names.
    """

    def run(work: Callable[[Task], Output], tasks: Sequence[Task]) -> Iterator[tuple[Task, Output]]:
        def done(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column("index").to_pylist():
                    text = work(tasks[number]).to_json()
                    yield pa.RecordBatch.from_pydict({"index": [number], "output": [text]})

        rows = [(i,) for i in range(len(tasks))]
        frame = session.createDataFrame(rows, "index bigint").repartitionByRange(len(rows), "index")
        outputs = frame.mapInArrow(done, "index bigint, output string")
        for number, text in outputs.toLocalIterator(prefetchPartitions=True):
            yield tasks[number], Output.from_json(text)

    return run
