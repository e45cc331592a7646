"""A file of which only the ranges that are asked for are read, for those who want `read`, `seek` and `tell`."""

from __future__ import annotations

import os
from collections.abc import Callable

from tensorlake_spark.errors import CorruptDataError

ReadRange = Callable[[int, int], bytes]
"""From start and stop to the bytes between them, as many as that."""

FIRST, MOST = 64 << 10, 4 << 20
"""Bytes of one request: the first, and at most, when one follows the other."""

KEPT = 16 << 20
"""Bytes of headers that are kept, at most, for those who open the file again."""


class RangeFile:
    """A file whose bytes come by ranges, larger ones while it is read on.

    What is read before `bound` is the headers; it goes to `kept`, where the next one to open the file finds it.

    Parameters
    ----------
    read_range : callable
        From start and stop to bytes.
    size : int
        Of the file.
    kept : dict of int to bytes, optional
        Headers by their place in the file.

    Examples
    --------
    >>> file = RangeFile(lambda start, stop: bytes(range(start, stop)), 100)
    >>> file.seek(90), file.read(4), file.tell()
    (90, b'Z[\\\\]', 94)
    """

    def __init__(
        self, read_range: ReadRange, size: int, kept: dict[int, bytes] | None = None
    ) -> None:
        self._read_range = read_range
        self._size = size
        self._kept = {} if kept is None else kept
        self._piece: tuple[int, bytes] = 0, b""
        self._place = 0
        self._ahead = FIRST
        self._bounds: tuple[int, int] | None = None

    def bound(self, start: int, stop: int) -> None:
        """Say that what is needed from now on lies between two places: nothing past them is read ahead."""
        self._bounds = start, max(start, stop)

    def read(self, nbytes: int = -1) -> bytes:
        """Return the next bytes, at least one before the end; fewer than asked for where a range ends."""
        rest = self._size - self._place
        nbytes = rest if nbytes < 0 else min(nbytes, rest)
        if nbytes <= 0:
            return b""
        start, data = self._found() or self._fetched(nbytes)
        out = data[self._place - start : self._place - start + nbytes]
        self._place += len(out)
        return out

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place of the file, and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = max(0, base + place)
        return self._place

    def tell(self) -> int:
        """Return the place in the file."""
        return self._place

    def _found(self) -> tuple[int, bytes] | None:
        for start, data in (self._piece, *self._kept.items()):
            if start <= self._place < start + len(data):
                return start, data
        return None

    def _fetched(self, nbytes: int) -> tuple[int, bytes]:
        start, data = self._piece
        follows = self._place == start + len(data) and bool(data)
        self._ahead = min(2 * self._ahead, MOST) if follows else FIRST
        stop = self._place + max(nbytes, self._ahead)
        if self._bounds is not None and self._bounds[0] <= self._place < self._bounds[1]:
            stop = min(max(stop, self._place + MOST), self._bounds[1])  # all of it will be needed
        elif self._bounds is not None:
            stop = self._place + nbytes
        stop = min(stop, self._size)
        found = bytes(self._read_range(self._place, stop))
        if len(found) != stop - self._place:
            raise CorruptDataError(
                f"the store returned {len(found)} bytes for the range {self._place} to {stop} of {self._size} bytes"
            )
        self._piece = self._place, found
        if self._bounds is None and sum(map(len, self._kept.values())) + len(found) <= KEPT:
            self._kept[self._place] = found
        return self._piece
