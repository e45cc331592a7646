"""Where the vectors of a column lie in files: blocks of them, multiplied by one vector without a copy of all.

A block is some row groups of a file whose vectors all have four bytes of their length before them and nothing else
between: a matrix with one more column. What is found of it, and the squares of the lengths of its vectors, are kept for
the next question on the same version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tensorlake_spark.delta.files.payload import uniform_pages
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.sample_values import SampleFile
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.memory_maps.mapped_files import MappedFiles
from tensorlake_spark.kernel_switch import compiled

Array = np.ndarray[Any, Any]

_LOOPS = "tensorlake_spark.query.nearest.vector_loops"

_ROWS = 1 << 15  # about as many vectors has a block

_PIECE = 1 << 20  # bytes that are copied and multiplied at once: they stay in a processor's cache

_KEPT = 1 << 24  # squares of lengths of no more vectors are kept

_MAPPED = 4 << 30
"""Bytes of files that stay mapped: to map them again takes longer than to look at them. The system takes the memory of
their pages back when others need it."""


class VectorBlock:
    """Vectors of some row groups of a file.

    Parameters
    ----------
    file : SampleFile
        The file.
    read : callable
        Returns bytes of it, from a place on.
    number : int
        Its number.
    groups : range
        The row groups.
    leaf, named : LeafColumn
        The vectors, and the names of their dtypes.
    size : int
        How many elements a vector has.

    Attributes
    ----------
    first, last : int
        The rows in the file.
    """

    def __init__(
        self,
        file: SampleFile,
        read: Callable[[SampleFile, int, int], memoryview],
        number: int,
        groups: range,
        leaf: LeafColumn,
        named: LeafColumn,
        size: int,
    ) -> None:
        self.number = number
        self.first, self.last = (int(file.starts[g]) for g in (groups.start, groups.stop))
        self._file, self._read, self._groups = file, read, groups
        self._leaf, self._named = leaf, named
        self._size = size
        self._pages: list[tuple[int, int]] | None = None
        self._norms: Array | None = None
        self._is_known = False

    def __len__(self) -> int:
        return self.last - self.first

    def products(self, vector: Array, buffer: Array, keep: bool) -> tuple[Array, Array] | None:
        """Return the products of all vectors with one, and the squares of their lengths.

        Parameters
        ----------
        vector : float32 ndarray
            The one.
        buffer : uint8 ndarray
            `_PIECE` bytes that nobody else uses meanwhile.
        keep : bool
            Whether the squares are kept for the next time.

        Returns
        -------
        (float32 ndarray, float32 ndarray), or None
            None if the vectors do not lie there as such a matrix.
        """
        if not self._is_known:
            self._pages = self._found()
            self._is_known = True
        if self._pages is None:
            return None
        values = np.empty(len(self), np.float32)
        known = self._norms
        norms = np.empty(len(self), np.float32) if known is None else known
        loops = compiled(_LOOPS, nbytes=4 * self._size * len(self))
        if loops is None:
            self._by_numpy(vector, buffer, values, norms if known is None else None)
        else:
            self._by_loops(loops, vector, values, norms if known is None else None)
        if keep:
            self._norms = norms
        return values, norms

    def _by_loops(self, loops: Any, vector: Array, values: Array, norms: Array | None) -> None:
        """Multiply the vectors where they lie."""
        raw, begin, step = self._raw()
        at = 0
        for start, rows in self._pages or ():
            words = np.ndarray((rows * step - 1,), "<f4", raw, start - begin + 4)
            loops.products(words, step, vector, values[at : at + rows])
            if norms is not None:
                loops.squares(words, step, self._size, norms[at : at + rows])
            at += rows

    def _by_numpy(self, vector: Array, buffer: Array, values: Array, norms: Array | None) -> None:
        """Multiply the vectors in pieces that are copied to where NumPy can take them."""
        at = 0
        with np.errstate(all="ignore"):
            for vectors in self._matrices(buffer):
                here = slice(at, at + len(vectors))
                # Not a matrix product: OpenBLAS would share it among threads, and lets one caller do that at a time.
                np.vecdot(vectors, vector, out=values[here])
                if norms is not None:
                    np.vecdot(vectors, vectors, out=norms[here])
                at = here.stop

    def _raw(self) -> tuple[Array, int, int]:
        """Return the bytes of all pages, where in the file they begin, and how many words a vector takes."""
        pages, step = self._pages or [], self._size + 1
        begin = pages[0][0]
        end = pages[-1][0] + pages[-1][1] * 4 * step
        return np.frombuffer(self._read(self._file, begin, end - begin), np.uint8), begin, step

    def _matrices(self, buffer: Array) -> Iterator[Array]:
        """Yield the vectors as matrices: in place if the processor can take them there, else copied."""
        raw, begin, words = self._raw()
        step = 4 * words
        address = raw.__array_interface__["data"][0]
        most = max(1, _PIECE // step)
        if most * step > len(buffer):
            buffer = np.empty(step, np.uint8)  # one vector is larger than that
        for start, rows in self._pages or ():
            for first in range(0, rows, most):
                count = min(most, rows - first)
                at = start - begin + first * step
                piece = raw[at : at + count * step]
                if (address + at) % 4:
                    aligned = buffer[: count * step]
                    aligned[...] = piece
                    piece = aligned
                yield piece.view("<f4").reshape(count, self._size + 1)[:, 1:]

    def _found(self) -> list[tuple[int, int]] | None:
        """Return where each page's first length is in the file, and how many vectors it has."""
        out: list[tuple[int, int]] = []
        for group in self._groups:
            chunk = self._file.chunk(group, self._leaf)
            if chunk is None or not _is_float32(self._file, group, self._named):
                return None
            start, nbytes = int(chunk.data_page_offset), int(chunk.total_compressed_size)
            data = self._read(self._file, start, nbytes)
            pages = uniform_pages(data, chunk.num_values, self._leaf.depth)
            if pages is None or any(length != 4 * self._size for _, _, length in pages):
                return None
            out += [(start + at - 4, rows) for at, rows, _ in pages]
        return out if sum(rows for _, rows in out) == len(self) else None


_known: WeakKeyDictionary[StoredSamples, dict[str, list[VectorBlock]]] = WeakKeyDictionary()

_lock = threading.Lock()


def blocks_of(stored: StoredSamples, column: tuple[str, ...], size: int) -> list[VectorBlock]:
    """Return the blocks of a column of vectors, in the order of files and rows; they are kept with the version.

    Parameters
    ----------
    stored : StoredSamples
        The version.
    column : tuple of str
        The column.
    size : int
        How many elements a vector has.
    """
    leaf, named = stored.leaf((*column, "data")), stored.leaf((*column, "dtype"))
    with _lock:
        known = _known.setdefault(stored, {})
        found = known.get(leaf.path)
        if found is None:
            maps, storage = MappedFiles(_MAPPED), stored.snapshot.storage

            def read(file: SampleFile, start: int, nbytes: int) -> memoryview:
                mapped = maps.map(storage, file.path)
                if mapped is None or start + nbytes > mapped.size:
                    return file.read(start, nbytes)  # it says what is wrong
                return memoryview(mapped.slice(start, nbytes)).cast("B")

            found = known[leaf.path] = [
                VectorBlock(file, read, number, groups, leaf, named, size)
                for number, file in enumerate(stored.files)
                for groups in _cut(file.starts)
            ]
        return found


def buffers(count: int) -> list[Array]:
    """Return memory for `VectorBlock.products`, one for each thread."""
    return [np.empty(_PIECE, np.uint8) for _ in range(count)]


def is_kept(stored: StoredSamples) -> bool:
    """Whether so many squares are kept as there are samples."""
    return len(stored) <= _KEPT


def _cut(starts: Array) -> Iterator[range]:
    """Yield row groups that follow one another and have about `_ROWS` rows.

    Examples
    --------
    >>> list(_cut(np.array([0, 20_000, 40_000, 50_000])))
    [range(0, 2), range(2, 3)]
    """
    first = 0
    for group in range(1, len(starts)):
        if starts[group] - starts[first] >= _ROWS or group == len(starts) - 1:
            yield range(first, group)
            first = group


def _is_float32(file: SampleFile, group: int, named: LeafColumn) -> bool:
    """Whether the footer says that every vector of a row group is float32."""
    if not file.has(named):
        return False
    found = file.statistics(group, named)
    return found is not None and found.has_min_max and found.min == found.max == "float32"
