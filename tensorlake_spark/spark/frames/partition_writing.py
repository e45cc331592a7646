"""What a task does with a partition of samples: it checks and encodes them, and writes files that no commit names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa
from pyspark import TaskContext

from tensorlake_spark.datasets.samples.task_samples import SampleFiles, UncommittedSamples
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    InvalidSampleError,
    UnsupportedDtypeError,
)
from tensorlake_spark.spark.frames.frame_columns import (
    Path,
    column_at,
    damaged_tensor,
    values_for,
)

RUN = 1 << 20
"""Numbers that a partition has in a row."""

PARTITIONS = 1 << 16
"""Partitions that a DataFrame may have."""

RUNS = 16
"""Runs of numbers that a partition may use."""

RESERVED = RUN * PARTITIONS * RUNS
"""Numbers that a job reserves: nobody knows beforehand how many rows a partition has. What is left goes back."""

_BATCH_BYTES = 16 << 20
_BATCH_ROWS = 1024


def number_of(first: int, partition: int, row: int) -> int:
    """Return the number of a row: a run for each partition, one after the other; then their second ones.

    Examples
    --------
    >>> number_of(100, 0, 0), number_of(0, 3, 5) == 3 * RUN + 5, number_of(0, 1, RUN) == (PARTITIONS + 1) * RUN
    (100, True, True)
    """
    return first + (row // RUN * PARTITIONS + partition) * RUN + row % RUN


@dataclass(frozen=True)
class PartitionWriting:
    """What all tasks of a job know.

    Attributes
    ----------
    storage : Storage
        The dataset.
    snapshot : Snapshot
        A version of it.
    schema : SampleSchema
        Its columns.
    paths : dict
        Where its columns are in the DataFrame.
    mark : str
        What the names of its files begin with.
    first : int
        The first of the numbers that were reserved.
    """

    storage: Storage
    snapshot: Snapshot
    schema: SampleSchema
    paths: dict[str, Path]
    mark: str
    first: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write a partition, and yield one row: what came of it, as JSON."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        if partition >= PARTITIONS:
            raise InvalidOptionError(
                f"the DataFrame has more than {PARTITIONS} partitions; bring them together by df.coalesce"
            )
        done = asdict(self.written(batches, partition))
        yield pa.RecordBatch.from_pydict({"written": [json.dumps(done)]})

    def written(self, batches: Iterator[pa.RecordBatch], partition: int) -> SampleFiles:
        """Write one partition; its files are deleted again if an error leaves it."""
        done = SampleFiles()
        with UncommittedSamples(self.storage, self.snapshot, self.schema, self.mark) as out:
            for batch in batches:
                start = 0
                while start < batch.num_rows:
                    taken = self._taken(batch, start, done.samples, partition)
                    first = number_of(self.first, partition, done.samples)
                    self._add(out, batch.slice(start, taken), first, done.samples, partition)
                    start += taken
                    done.samples += taken
                    done.end = first + taken
            out.finish(done)
        return done

    def _taken(self, batch: pa.RecordBatch, start: int, before: int, partition: int) -> int:
        """Return how many rows of a batch are encoded at once: of few bytes, and of one run of numbers."""
        each = max(1, int(batch.nbytes) // batch.num_rows)
        rest = min(RUN - before % RUN, int(batch.num_rows) - start)
        taken: int = max(1, min(_BATCH_ROWS, _BATCH_BYTES // each, rest))
        if before + taken > RUN * RUNS:
            raise InvalidOptionError(
                f"partition {partition} of the DataFrame has more than {RUN * RUNS} rows; make more of it by "
                "df.repartition"
            )
        return taken

    def _add(
        self, out: UncommittedSamples, part: pa.RecordBatch, sid: int, first: int, partition: int
    ) -> None:
        columns = {name: column_at(part, path) for name, path in self.paths.items()}
        try:
            given = {name: values_for(self.schema[name], of) for name, of in columns.items()}
            out.add(given, sid, first, part.num_rows)
        except InvalidSampleError as error:
            raise type(error)(f"partition {partition} of the DataFrame: {error}") from error
        except (CorruptDataError, UnsupportedDtypeError) as error:
            # Said of what is stored; here it may be a tensor that the caller made.
            found = damaged_tensor(columns)
            if found is None:
                raise
            name, row, said = found
            raise InvalidSampleError(
                f"partition {partition} of the DataFrame: column {name!r}, sample {first + row}: {said}"
            ) from error
