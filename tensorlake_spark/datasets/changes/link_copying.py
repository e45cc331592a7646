"""Files that links lead to, copied into a dataset: samples are written again by tasks, each with a share of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.apart_writer import ApartWriter
from tensorlake_spark.datasets.apart.inner_tables import folder_of
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.changes.workers import marked_files, run_of, share_bytes
from tensorlake_spark.datasets.links.link_columns import linked_bytes, target_bytes
from tensorlake_spark.datasets.samples.sample_reading import (
    read_column,
    row_bytes,
    runs_of,
    whole,
)
from tensorlake_spark.datasets.types.schema import SampleSchema, column_of
from tensorlake_spark.delta.files.runner import parcels
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.samples.sample_writer import SampleWriter

Array = np.ndarray[Any, Any]
Share = list[Array]
"""Positions of samples in batches: what one task writes."""

BATCH_BYTES = 32 << 20
"""Bytes of targets that a task has in memory at a time, about."""


@dataclass(frozen=True)
class LinkCopying:
    """What all tasks know; called with a share it writes these samples again, with files in the place of links.

    Attributes
    ----------
    parts : StoredParts
        The version whose samples are written again, with the rules of its links.
    schema : SampleSchema
        The new columns.
    links : tuple of str
        The columns of links.
    apart : dict of str to str
        For those of them that are kept apart, the names by which their new values are stored.
    mark : str
        What the names of files begin with.
    """

    parts: StoredParts
    schema: SampleSchema
    links: tuple[str, ...]
    apart: Mapping[str, str]
    mark: str

    def __call__(self, share: Share) -> tuple[list[DataFile], dict[str, list[DataFile]]]:
        """Write the samples of a share, and return files that no commit names: theirs, and by columns those apart."""
        snapshot = self.parts.stored.snapshot
        apart = self.apart_writers()
        with ExitStack() as stack:
            stack.push(lambda kind, *_: _abort(apart) if kind is not None else None)
            writer = SampleWriter(
                snapshot.storage, self.schema.to_arrow(), 2 * snapshot.file_bytes, mark=self.mark
            )
            stack.enter_context(writer)
            for positions in share:
                columns, sids = self._columns(positions)
                for name, column in apart.items():
                    column.take(columns[name], sids.tolist())
                    columns[name] = pa.nulls(len(sids), self.schema[name].storage())
                batch = self.schema.to_batch(columns, pa.array(sids, pa.int64()))
                writer.add(pa.Table.from_batches([batch]))
            return writer.finish(), {name: column.files() for name, column in apart.items()}

    def apart_writers(self) -> dict[str, ApartWriter]:
        """Return what writes the new values of columns that are kept apart."""
        storage = self.parts.stored.snapshot.storage
        return {
            name: ApartWriter(storage, stored_as, self.schema[name], mark=self.mark)
            for name, stored_as in self.apart.items()
        }

    def _columns(self, positions: Array) -> tuple[dict[str, pa.Array], Array]:
        """Return the new columns of some samples, and their sids."""
        table = self.parts.stored.rows(None, positions)
        columns = {name: whole(column_of(table, name)) for name in self.schema}
        for name in self.links:
            links = read_column(self.parts, name, positions, views=False)
            kind, rules = self.parts.schema[name], self.parts.rules
            columns[name] = linked_bytes(links, kind, rules, name, positions.tolist())
        return columns, table.column(SID).to_numpy()


def copy_links(work: LinkCopying, workers: Any) -> tuple[list[DataFile], list[Written]]:
    """Write all samples again, and return the files that no commit names yet, and what lies in tables of its own.

    Parameters
    ----------
    work : LinkCopying
        What is written.
    workers : int, SparkSession, or None
        How many threads do it, or whose executors; a few threads by default.
    """
    run = run_of(workers)
    storage = work.parts.stored.snapshot.storage
    with marked_files(storage, [folder_of(name) for name in work.apart.values()], work.mark):
        files: list[DataFile] = []
        apart: dict[str, list[DataFile]] = {name: [] for name in work.apart}
        for _, (some, beside) in run(work, [*_shares(work.parts, work.links, workers)]):
            files += some
            for name, more in beside.items():
                apart[name] += more
        written: list[Written] = []
        for name, column in work.apart_writers().items():
            written += column.committed(apart[name])
        return files, written


def _shares(parts: StoredParts, links: Sequence[str], workers: Any) -> Iterator[Share]:
    """Yield the samples of each file in shares, so that the new files have them in the order of the old ones."""
    stored = parts.stored
    own = row_bytes(parts, [*parts.schema], np.arange(len(stored)))
    files = [stored.positions_in(number) for number in range(len(stored.files))]
    sizes = [_sizes(parts, links, positions, own) for positions in files]
    most = share_bytes(sum(int(one.sum()) for one in sizes), workers)
    for positions, nbytes in zip(files, sizes, strict=True):
        for start, stop in parcels(nbytes.tolist(), most, 0):
            cuts = parcels(nbytes[start:stop].tolist(), BATCH_BYTES, 0)
            yield [positions[start + first : start + last] for first, last in cuts]


def _sizes(parts: StoredParts, links: Sequence[str], positions: Array, own: int) -> Array:
    """Return for each sample how many bytes it has, about, with what its links lead to."""
    out = np.full(len(positions), own, np.int64)
    at = 0
    for some in runs_of(parts, links, positions):
        for name in links:
            out[at : at + len(some)] += target_bytes(read_column(parts, name, some, views=False))
        at += len(some)
    return out


def _abort(apart: Mapping[str, ApartWriter]) -> None:
    for column in apart.values():
        column.abort()
