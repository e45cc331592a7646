"""The numbers of samples, file by file: from the log where they follow one another, else from the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.log.replaying.live_files import LEAST, MOST
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.sample_files import AHEAD, SampleFiles
from tensorlake_spark.delta.samples.sample_writer import SORTED
from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]


def greatest_sid(snapshot: Snapshot) -> int:
    """Return the greatest number in the files of a version, the least int64 where there is none.

    Another writer may leave bounds out of the log; such files are read, also their rows that are marked as deleted.
    """
    files = snapshot.files
    is_told = (files.first_sid != LEAST) & (files.last_sid != MOST)
    out = int(files.last_sid[is_told].max(initial=LEAST))
    for numbers in _read(snapshot, ~is_told):
        most = pc.max(numbers).as_py()  # None without any number
        out = out if most is None else max(out, most)
    return out


def taken_sid(snapshot: Snapshot, spans: Sequence[tuple[int, int]]) -> int | None:
    """Return a number that another writer's row has in a version, of those in some spans; None where there is none.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    spans : sequence of (int, int)
        The first and the last number of each; no number is in two of them.
    """
    files = snapshot.files
    is_near = np.array([not path.startswith(SORTED) for path in files.path], bool)
    if not (is_near.any() and spans):
        return None
    firsts, lasts = np.array(sorted(spans), np.int64).T
    is_near &= (files.last_sid >= firsts[0]) & (files.first_sid <= lasts[-1])
    for numbers in _read(snapshot, is_near):
        given = numbers.drop_null().to_numpy()
        given = given[(given >= firsts[0]) & (given <= lasts[-1])]
        taken = given[given <= lasts[np.searchsorted(firsts, given, side="right") - 1]]
        if len(taken):
            return int(taken[0])
    return None


def _read(snapshot: Snapshot, chosen: Array) -> Iterator[pa.ChunkedArray]:
    """Yield the numbers in some of a version's files, also those of rows that are marked as deleted."""
    paths = [snapshot.files.path[place] for place in np.flatnonzero(chosen).tolist()]
    files = SampleFiles(snapshot, paths)
    for first in range(0, len(paths), AHEAD):
        files.footers(range(len(paths))[first : first + AHEAD])
        for file in files[first : first + AHEAD]:
            yield file.small((SID,)).column(SID)


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
