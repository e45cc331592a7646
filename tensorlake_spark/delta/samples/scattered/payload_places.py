"""Where payloads lie in local files, and how they are read from there into memory that somebody has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]

_IS_POSIX = hasattr(os, "preadv")
_GAP = 4 << 10  # bytes between two payloads that are read with them
_MOST = 500  # payloads of one request: the system takes 1,024 parts


@dataclass(frozen=True)
class PayloadPlaces:
    """Places of payloads, in the order in which they were asked for.

    The system copies from its cache straight to where a payload is wanted. A map would cost more: its pages are made
    and given back, one after the other.

    Attributes
    ----------
    storage : Storage
        The table.
    paths : mapping of int to str
        Data files by number.
    files : int ndarray
        The file of each payload.
    starts, lengths : sequence of int
        Where each begins in its file, and its bytes.

    Examples
    --------
    >>> import tempfile
    >>> storage = Storage(tempfile.mkdtemp())
    >>> with storage.open_output("a.parquet") as file:
    ...     _ = file.write(b"one.two")
    >>> places = PayloadPlaces(storage, {0: "a.parquet"}, np.array([0, 0]), [4, 0], [3, 3])
    >>> rows = np.zeros((2, 3), np.uint8)
    >>> places.copy_to(rows)
    >>> rows.tobytes()
    b'twoone'
    """

    storage: Storage
    paths: Mapping[int, str]
    files: Array
    starts: Sequence[int]
    lengths: Sequence[int]

    def __len__(self) -> int:
        return len(self.starts)

    def copy_to(self, rows: Array) -> None:
        """Read each payload into a row, which has to be as long.

        Parameters
        ----------
        rows : uint8 ndarray, shape (payloads, bytes)
            C-contiguous.

        Raises
        ------
        CorruptDataError
            If a file ends before a payload does.
        FileNotFoundError
            If a file is not there any more.
        """
        for number, path in self.paths.items():
            here = np.flatnonzero(self.files == number).tolist()
            if _IS_POSIX and self.storage.is_local:
                self._read(f"{self.storage.uri}/{path}", here, rows)
            else:
                with self.storage.open_input(path) as file:
                    for place in here:
                        data = file.read_at(self.lengths[place], self.starts[place])
                        self._check(path, place, len(data))
                        rows[place] = np.frombuffer(data, np.uint8)

    def _read(self, path: str, here: list[int], rows: Array) -> None:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for run in self._runs(here):
                self._read_run(file, path, run, rows)
        finally:
            os.close(file)

    def _runs(self, here: list[int]) -> list[list[int]]:
        """Return payloads of one file in runs that lie behind one another: a run is one request to the system."""
        runs: list[list[int]] = []
        end = -1
        for place in here:
            start = self.starts[place]
            if runs and 0 <= start - end <= _GAP and len(runs[-1]) < _MOST:
                runs[-1].append(place)
            else:
                runs.append([place])
            end = start + self.lengths[place]
        return runs

    def _read_run(self, file: int, path: str, run: list[int], rows: Array) -> None:
        if (
            len(run) == 1
            and os.preadv(file, [rows[run[0]]], self.starts[run[0]]) == self.lengths[run[0]]
        ):
            return
        begin = end = self.starts[run[0]]
        parts: list[Any] = []
        for place in run:
            start, length = self.starts[place], self.lengths[place]
            if start > end:
                parts.append(bytearray(start - end))
            if length:
                parts.append(memoryview(rows[place]))
            end = start + length
        done = os.preadv(file, parts, begin) if parts else 0
        if done == end - begin:
            return
        for place in run:  # the system may give less than it was asked for
            row = memoryview(rows[place])
            got = min(max(0, begin + done - self.starts[place]), len(row))
            while got < len(row):
                found = os.preadv(file, [row[got:]], self.starts[place] + got)
                if not found:
                    self._check(path, place, got)
                got += found

    def _check(self, path: str, place: int, found: int) -> None:
        if found < self.lengths[place]:
            raise CorruptDataError(
                f"{path} ends within a sample: {found} of its {self.lengths[place]} bytes are there; restore the file, "
                "or read a version without it"
            )
