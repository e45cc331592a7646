"""What a task does with a partition of samples: it checks and encodes them, and writes files that no commit names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.samples.sample_encoding import encoded, numbered
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError, InvalidSampleError
from tensorlake_spark.spark.frames.frame_columns import Path, column_at, values_for

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


@dataclass
class PartitionFiles:
    """What came of a partition.

    Attributes
    ----------
    files : list of [str, int, str]
        Its data files: names, bytes and statistics.
    samples : int
        How many it wrote.
    end : int
        The number after the greatest that it used.
    apart : dict of str to list
        By columns that are kept apart, files as in `files`.
    tiles : list of [str, int]
        Folders of inner lakes with tiles, and the version that has them.
    """

    files: list[list[Any]] = field(default_factory=list)
    samples: int = 0
    end: int = 0
    apart: dict[str, list[list[Any]]] = field(default_factory=dict)
    tiles: list[list[Any]] = field(default_factory=list)

    def data_files(self) -> list[DataFile]:
        return _read(self.files)

    def apart_files(self) -> dict[str, list[DataFile]]:
        return {name: _read(files) for name, files in self.apart.items()}


def inner_of(done: Sequence[PartitionFiles]) -> tuple[list[Written], dict[str, list[DataFile]]]:
    """Return of all partitions the newest version of each lake of tiles, and the files of apart columns."""
    versions: dict[str, int] = {}
    files: dict[str, list[DataFile]] = {}
    for one in done:
        for folder, version in one.tiles:
            versions[folder] = max(version, versions.get(folder, 0))
        for name, some in one.apart_files().items():
            files.setdefault(name, []).extend(some)
    return [Written(folder, version) for folder, version in versions.items()], files


def _read(files: list[list[Any]]) -> list[DataFile]:
    return [DataFile(name, size, statistics) for name, size, statistics in files]


def _said(files: Sequence[DataFile]) -> list[list[Any]]:
    return [[file.path, file.size, file.stats] for file in files]


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

    def written(self, batches: Iterator[pa.RecordBatch], partition: int) -> PartitionFiles:
        """Write one partition; its files are deleted again if an error leaves it."""
        done = PartitionFiles()
        with ExitStack() as stack:
            columns, size = self.schema.to_arrow(), self.snapshot.file_bytes
            writer = stack.enter_context(SampleWriter(self.storage, columns, size, mark=self.mark))
            parts = PartsWriter(self.storage, self.snapshot, self.schema, mark=self.mark)
            stack.push(lambda kind, *_: parts.abort() if kind is not None else None)
            for batch in batches:
                start = 0
                while start < batch.num_rows:
                    taken = self._taken(batch, start, done.samples, partition)
                    first = number_of(self.first, partition, done.samples)
                    arrays = self._encoded(
                        batch.slice(start, taken), parts, first, done.samples, partition
                    )
                    writer.add(numbered(arrays, self.schema, first))
                    start += taken
                    done.samples += taken
                    done.end = first + taken
            tiles, apart = parts.files()
            done.tiles = [[one.folder, one.version] for one in tiles]
            done.apart = {name: _said(files) for name, files in apart.items()}
            done.files = _said(writer.finish())
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

    def _encoded(
        self, part: pa.RecordBatch, parts: PartsWriter, sid: int, first: int, partition: int
    ) -> dict[str, pa.Array]:
        given = {
            name: values_for(self.schema[name], column_at(part, path))
            for name, path in self.paths.items()
        }
        try:
            left = parts.take(parts.opened(given, first), range(sid, sid + part.num_rows), first)
            return encoded(left, self.schema, first, part.num_rows)
        except InvalidSampleError as error:
            raise type(error)(f"partition {partition} of the DataFrame: {error}") from error
