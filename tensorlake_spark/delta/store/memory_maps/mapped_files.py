"""The data files of a local table that were read last, mapped still: a small read would spend its time on a new map."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

import pyarrow as pa

from tensorlake_spark.delta.store.memory_maps.mapped_pages import give_back_pages
from tensorlake_spark.delta.store.storage import Storage

_KEEP = 256 << 20
"""Bytes of files; their pages count as memory of the process."""

_FILES = 64
"""Files that stay mapped though their pages were given back; a deleted one takes room on the disk until then."""

_MANY = 4096
"""Files that stay mapped at most: Linux gives a process 65,530 maps, and a table may have more small files."""


class MappedFiles:
    """Maps of data files of one table, those that were asked for last.

    A map is made anew where the file at its place is not what was mapped. A file that was deleted is an error
    as it is without a map, and one that was cut short is never touched behind its end.

    Parameters
    ----------
    most : int, optional
        Bytes of files whose pages may count as memory of the process, 256 MiB by default: the pages of those that
        were read longest ago are given back. More files stay mapped. What was read may still point into their maps,
        and only pages of a map that is known can be given back.

    Examples
    --------
    >>> import tempfile
    >>> storage = Storage(tempfile.mkdtemp())
    >>> with storage.open_output("a.parquet") as file:
    ...     _ = file.write(b"PAR1")
    >>> maps = MappedFiles()
    >>> maps.map(storage, "a.parquet") is maps.map(storage, "a.parquet")
    True
    """

    def __init__(self, most: int = _KEEP) -> None:
        self._most = most
        self._maps: OrderedDict[str, tuple[tuple[int, int, int], pa.Buffer]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def map(self, storage: Storage, name: str) -> pa.Buffer | None:
        """Return what `Storage.map_file` does, from before where it can be."""
        try:
            found = os.stat(f"{storage.uri}/{name}") if storage.is_local else None
        except OSError:  # it lies in memory, or nowhere
            found = None
        if found is None:
            return storage.map_file(name)
        stamp = found.st_ino, found.st_size, found.st_mtime_ns
        with self._lock:
            kept = self._maps.get(name)
            if kept is not None and kept[0] == stamp:
                self._maps.move_to_end(name)
                return kept[1]
        mapped = storage.map_file(name)
        if mapped is not None and mapped.size == found.st_size <= self._most:
            with self._lock:
                before = self._maps.pop(name, None)
                self._nbytes += mapped.size - (0 if before is None else before[1].size)
                self._maps[name] = stamp, mapped
                self._make_room()
        return mapped

    def _make_room(self) -> None:
        """Give back the pages of files beyond `most`, and forget those beyond the number that may stay."""
        # From the oldest on: to look at all of them for each new one took quadratic time.
        while len(self._maps) > _FILES and (self._nbytes > self._most or len(self._maps) > _MANY):
            _, (_, gone) = self._maps.popitem(last=False)
            self._nbytes -= gone.size
        if self._nbytes <= self._most:
            return
        total = 0
        for _, buffer in reversed(self._maps.values()):
            total += buffer.size
            if total > self._most:
                give_back_pages(buffer.address, buffer.size)

    def give_back(self) -> None:
        """Give back the pages of all maps: they stay mapped, and no longer count as memory of the process."""
        with self._lock:
            buffers = [buffer for _, buffer in self._maps.values()]
        for buffer in buffers:
            give_back_pages(buffer.address, buffer.size)
