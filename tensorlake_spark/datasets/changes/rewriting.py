"""Data files with samples that change, written again: media of the others are copied as bytes, and not decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.appending import kept_counter
from tensorlake_spark.datasets.samples.sample_reading import runs_in, whole
from tensorlake_spark.datasets.types.schema import SampleSchema, column_of
from tensorlake_spark.delta.log.commit import ATTEMPTS, Change, StaleChange, check_removable, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TensorLakeError, outrun

Array = np.ndarray[Any, Any]
Columns = dict[str, pa.Array]
Edit = Callable[[Columns, Array], tuple[Columns, Array]]
"""Takes the columns of some samples and their sids, and returns what is written in their stead."""


def batches_of_file(stored: StoredSamples, number: int) -> Iterator[tuple[Columns, Array]]:
    """Yield the samples of one data file in the order of their sids: columns as they are stored, and the sids."""
    schema = SampleSchema.from_arrow(stored.schema)
    for positions in runs_in(stored, [*schema], stored.positions_in(number)):
        table = stored.rows(None, positions)
        columns = {name: whole(column_of(table, name)) for name in schema}
        yield columns, table.column(SID).to_numpy()


def rewritten(
    stored: StoredSamples, numbers: Iterable[int], schema: SampleSchema, edit: Edit
) -> list[DataFile]:
    """Write data files again and return the new ones, which no commit names yet.

    Each file becomes one of its own, so that files stay in the order of their sids. Memory is bounded by a batch.

    Parameters
    ----------
    stored : StoredSamples
        The version that has the files.
    numbers : iterable of int
        Which of its files.
    schema : SampleSchema
        The columns of the new files.
    edit : callable
        What becomes of a batch of samples.
    """
    snapshot, arrow = stored.snapshot, schema.to_arrow()
    out: list[DataFile] = []
    with ExitStack() as stack:
        for number in numbers:
            # A file that is full stays one file, also when its samples have grown a little.
            writer = SampleWriter(snapshot.storage, arrow, 2 * snapshot.file_bytes)
            stack.enter_context(writer)
            for columns, sids in batches_of_file(stored, number):
                columns, sids = edit(columns, sids)
                if len(sids):
                    batch = schema.to_batch(columns, pa.array(sids, pa.int64()))
                    writer.add(pa.Table.from_batches([batch]))
            out += writer.finish()
    return out


def committed(
    storage: Storage, newest: Snapshot, compute: Callable[[Snapshot], Change]
) -> Snapshot:
    """Commit a change that is computed anew whenever another writer has moved the files that it is about.

    Parameters
    ----------
    storage : Storage
        The dataset.
    newest : Snapshot
        Its newest version, as far as is known.
    compute : callable
        Returns the change for a version, with files that are written. It raises ConcurrentWriteError where
        the version does not allow it.

    Raises
    ------
    ConcurrentWriteError
        If `compute` says so, or other writers won every attempt.
    UnsupportedFeatureError
        If the table takes appends only, or a file to be written again has a deletion vector and lies in another
        object store than S3.
    MissingDependencyError
        If such a file lies on S3, and boto3 is not installed.
    """
    for _ in range(ATTEMPTS):
        newest.check_writable()
        change = compute(newest)
        try:
            return commit(storage, change)
        except StaleChange as stale:
            discard(storage, [file.path for file in change.adds])
            newest = stale.snapshot
        except TensorLakeError:
            discard(storage, [file.path for file in change.adds])
            raise
    raise outrun(storage.uri, ATTEMPTS)


def check_files(snapshot: Snapshot, paths: list[str], operation: str) -> None:
    """Raise UnsupportedFeatureError before files are written that could not leave the table."""
    check_removable(snapshot, paths)
    snapshot.check_removing(operation)


def change_of(
    snapshot: Snapshot, adds: list[DataFile], removes: list[str], operation: str, **others: Any
) -> Change:
    """Return a change of samples, which is stale when another writer changes the columns."""
    counters = {**(kept_counter(snapshot) if removes else {}), **others.pop("counters", {})}
    return Change(
        {}, adds, removes, operation, counters=counters,
        columns=snapshot.schema, kind=SAMPLES, vectors=snapshot.vectors(removes), **others,
    )  # fmt: skip
