"""The data files of a version of samples, each looked at when it is asked for; what is kept of them is bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, overload

import numpy as np
import pyarrow.parquet as pq

from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.leaf_columns import KEPT_BYTES, LeafColumn, SmallColumns
from tensorlake_spark.delta.samples.sample_values import SampleFile
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.threads import IO_THREADS, io_threads

Array = np.ndarray[Any, Any]

AHEAD = IO_THREADS
"""Files whose footers are read at once."""

KEPT_FILES = 512
"""Files whose footers are kept, of those that were asked for last."""


class SampleFiles(Sequence[SampleFile]):
    """Data files in an order.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    paths : list of str
        The files.

    Attributes
    ----------
    paths
        As they were given.
    """

    def __init__(self, snapshot: Snapshot, paths: list[str]) -> None:
        self._snapshot = snapshot
        self.paths = paths
        self._files: OrderedDict[int, SampleFile] = OrderedDict()
        self._small = SmallColumns()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, number: int) -> SampleFile: ...
    @overload
    def __getitem__(self, number: slice) -> list[SampleFile]: ...
    def __getitem__(self, number: int | slice) -> SampleFile | list[SampleFile]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        number = range(len(self))[number]
        with self._lock:
            found = self._files.get(number)
            if found is None:
                found = SampleFile(self._snapshot, self.paths[number], self._small)
                found.records = self._records(found.path)
                self._files[number] = found
                if len(self._files) > KEPT_FILES:
                    self._files.popitem(last=False)
            else:
                self._files.move_to_end(number)
            return found

    def _records(self, path: str) -> int:
        """Return how many rows a file has by the log, -1 where it does not say."""
        place = self._snapshot.places.get(path)
        return -1 if place is None else int(self._snapshot.files.rows[place])

    def prepare(self, numbers: Sequence[int], leaves: Sequence[LeafColumn]) -> None:
        """Read what many files need for leaf columns, all at once where they lie in an object store."""
        files = self.footers(numbers)
        if files and not any(leaf.is_payload for leaf in leaves):
            self._prepare_small(files, leaves)

    def footers(self, numbers: Sequence[int]) -> list[SampleFile]:
        """Read the footers of many files, all at once, and return these; none of a local table, or of one file."""
        if self._snapshot.remote is None or len(numbers) < 2:
            return []
        files = [self[number] for number in numbers]
        unread = [file for file in files if not file.is_opened]  # a thread costs more than a look
        if unread:
            list(io_threads().map(lambda file: file.metadata, unread))
        return files

    def opened(self, numbers: Sequence[int]) -> dict[int, pq.FileMetaData]:
        """Return the footers of files by their numbers, all read at once; without those that cannot be read."""
        files = {number: self[number] for number in numbers}  # held here: more than are kept
        unread = [file for file in files.values() if not file.is_opened]
        if len(unread) > 1:
            list(io_threads().map(self._open, unread))
        for file in unread[:1]:
            self._open(file)
        return {number: file.metadata for number, file in files.items() if file.is_opened}

    def _open(self, file: SampleFile) -> None:
        with suppress(TensorLakeError), reaching(self._snapshot.storage):  # who reads it says it
            _ = file.metadata

    def learn(self, footers: Mapping[int, pq.FileMetaData]) -> None:
        """Know the footers of files, as `opened` returned them in another process."""
        for number, footer in footers.items():
            self[number].metadata = footer

    def ranges(
        self, numbers: Array, rows: Array, leaves: Sequence[LeafColumn]
    ) -> list[tuple[str, int, int]]:
        """Return where the row groups of some rows have columns, without the large gaps between these.

        Parameters
        ----------
        numbers, rows : int64 ndarray
            The file of each, and its place there.
        leaves : sequence of LeafColumn
            The columns.

        Returns
        -------
        list of (str, int, int)
            The path of a file, where bytes begin in it, and how many they are.
        """
        met = np.unique(numbers).tolist()
        out: list[tuple[str, int, int]] = []
        for count, number in enumerate(met):
            if not count % AHEAD:
                self.footers(met[count : count + AHEAD])
            file = self[number]
            paths = [leaf.path for leaf in leaves if file.has(leaf)]
            for group in np.unique(file.groups_of(rows[numbers == number])).tolist():
                out += [(file.path, a, b - a) for a, b in file.spans_of_group(group, paths)]
        return out

    def _prepare_small(self, files: Sequence[SampleFile], leaves: Sequence[LeafColumn]) -> None:
        """Read small columns of files, as many as can be kept."""
        jobs: list[tuple[SampleFile, tuple[int, int]]] = []
        wanted: list[tuple[SampleFile, tuple[str, ...], int]] = []
        left = KEPT_BYTES // 2
        for file in files:
            paths = tuple(leaf.path for leaf in leaves if file.has(leaf))
            left -= file.size_of(paths)
            if left < 0:
                break
            if paths and len(file.starts) > 1 and not file.has_small(paths):
                spans = file.spans_of(range(len(file.starts) - 1), paths)
                jobs += [(file, span) for span in spans]
                wanted.append((file, paths, len(spans)))
        parts = io_threads().map(lambda job: job[0].part(job[1]), jobs)
        for file, paths, count in wanted:
            table = file.table_in(list(islice(parts, count)), range(len(file.starts) - 1), paths)
            file.keep_small(paths, table)

    def __iter__(self) -> Iterator[SampleFile]:
        return (self[number] for number in range(len(self)))
