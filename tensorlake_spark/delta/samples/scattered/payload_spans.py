"""Where the payloads of a column lie in a file, learned by row group and looked up for many rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.sample_values import SampleFile

Array = np.ndarray[Any, Any]


class PayloadSpans:
    """Places of the payloads of one column in one file.

    A batch has samples of many row groups, so that looking at these one by one would cost more than the samples do.

    Parameters
    ----------
    file : SampleFile
        The file.
    leaf : LeafColumn
        The column.

    Attributes
    ----------
    starts, lengths : int64 ndarray, shape (rows,)
        Where each payload begins in its column chunk, and its bytes, -1 for a null; set for the groups that are known.
    firsts, sizes : int64 ndarray, shape (row groups,)
        Where each column chunk begins in the file, and its bytes.
    regions : list of memoryview or None
        The bytes of the column chunks that are in use.
    used : int64 ndarray, shape (row groups,)
        When each region was asked for last; 0 where it is not in use.
    """

    def __init__(self, file: SampleFile, leaf: LeafColumn) -> None:
        self.file, self._leaf = file, leaf
        rows, groups = int(file.starts[-1]), len(file.starts) - 1
        self.starts, self.lengths = np.zeros(rows, np.int64), np.full(rows, -1, np.int64)
        self.firsts, self.sizes = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        self.regions: list[memoryview | None] = [None] * groups
        self.used = np.zeros(groups, np.int64)
        self._known = np.zeros(groups, bool)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept of the places."""
        return self.starts.nbytes + self.lengths.nbytes

    def learn(self, groups: Array, keeps_pages: bool) -> bool:
        """Find out where the payloads of row groups lie; False if Arrow has to read one of them.

        Parameters
        ----------
        groups : int64 ndarray
            Row groups, some perhaps twice.
        keeps_pages : bool
            Whether the pages that are looked at for it are wanted again soon.
        """
        if self._known[groups].all():
            return True
        for group in np.unique(groups[~self._known[groups]]).tolist():
            chunk = self.file.chunk(group, self._leaf)
            if chunk is None:
                return False
            region = self.file.region(chunk)
            starts, lengths, _ = self.file.spans(group, self._leaf, chunk, region)
            first, last = self.file.starts[group : group + 2].tolist()
            self.starts[first:last], self.lengths[first:last] = starts, lengths
            self.firsts[group], self.sizes[group] = chunk.data_page_offset, len(region)
            self._known[group] = True  # last: another thread may look
            if not keeps_pages:
                self.file.give_back(int(self.firsts[group]), len(region))
        return True

    def region(self, group: int) -> memoryview:
        """Return the bytes of a column chunk that is known."""
        return self.file.read(int(self.firsts[group]), int(self.sizes[group]))

    def give_back(self, group: int) -> int:
        """Say that a column chunk is not needed now; return its bytes."""
        self.regions[group] = None
        self.used[group] = 0
        self.file.give_back(int(self.firsts[group]), int(self.sizes[group]))
        return int(self.sizes[group])
