"""The numbers of samples, file by file: from the log where they follow one another, else from the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.sample_files import AHEAD, SampleFiles
from tensorlake_spark.delta.samples.sample_writer import SORTED
from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]


class SampleNumbers:
    """The numbers of the samples in the files of a version.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    files : SampleFiles
        Its files, in some order.
    leaf : LeafColumn
        The column of numbers in them.
    firsts, lasts, rows : int64 ndarray
        What the log says of each: the least and the greatest number, and how many rows it has.
    kept : sequence of (int64 ndarray or None)
        For each the rows that are still there, None for all.
    starts : int64 ndarray
        The place of each file's first sample, and after the last all samples.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        files: SampleFiles,
        leaf: LeafColumn,
        firsts: Array,
        lasts: Array,
        rows: Array,
        kept: Sequence[Array | None],
        starts: Array,
    ) -> None:
        self._snapshot, self._files, self._leaf = snapshot, files, leaf
        self._firsts, self._lasts, self._rows = firsts, lasts, rows
        self._kept, self._starts = kept, starts

    def in_file(self, number: int) -> Array:
        """Return the numbers of the samples in a file, as they lie there.

        Raises
        ------
        CorruptDataError
            If another writer added rows without numbers.
        """
        kept = self._kept[number]
        if self._is_told(number):
            return np.arange(self._firsts[number], self._lasts[number] + 1)
        file = self._files[number]
        stored = file.small((SID,)).column(SID)
        if stored.null_count:
            raise CorruptDataError(
                f"{stored.null_count} row(s) of {self._snapshot.storage.file_uri(file.path)} have no {SID}; another "
                f"writer added them: give them numbers that are free, or delete them, by Delta's SQL ({SID} IS NULL)"
            )
        column: Array = stored.to_numpy()
        return column if kept is None else column[kept]

    def all(self) -> Array:
        """Return the numbers of all samples, file by file."""
        found = (known for _, known in self._each(range(len(self._files))))
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _is_told(self, number: int) -> bool:
        """Whether the log says which numbers a file has."""
        count = int(self._lasts[number]) - int(self._firsts[number]) + 1
        is_ours = self._files.paths[number].startswith(SORTED)
        return self._kept[number] is None and is_ours and count == self._rows[number]

    def _each(self, numbers: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """Yield files with `in_file` of them; a store is asked for many at once."""
        read = [number for number in numbers if not self._is_told(number)]
        begins = {read[first]: first for first in range(0, len(read), AHEAD)}
        for number in numbers:
            first = begins.get(number)
            if first is not None:
                self._files.prepare(read[first : first + AHEAD], [self._leaf])
            yield number, self.in_file(number)

    def at(self, places: Array) -> Array:
        """Return the numbers at some places, as samples lie; other files are not looked at."""
        files = np.searchsorted(self._starts, places, side="right") - 1
        out = np.empty(len(places), np.int64)
        for number, known in self._each(np.unique(files).tolist()):
            here = files == number
            out[here] = known[places[here] - self._starts[number]]
        return out

    def places_of(self, sids: Array) -> Array:
        """Return where numbers lie, -1 where there is none; files and their rows are in order."""
        files = np.searchsorted(self._firsts, sids, side="right") - 1
        out = np.full(len(sids), -1, np.int64)
        for number, known in self._each(np.unique(files[files >= 0]).tolist()):
            if len(known):
                here = np.flatnonzero(files == number)
                found = np.minimum(np.searchsorted(known, sids[here]), len(known) - 1)
                is_there = known[found] == sids[here]
                out[here[is_there]] = found[is_there] + self._starts[number]
        return out
