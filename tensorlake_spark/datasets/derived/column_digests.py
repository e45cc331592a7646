"""Digests of columns of samples: the same values give the same digest, however they lie in batches and files.

Rows count in blocks of `BLOCK`. What belongs to a block's values in each buffer is one SHA-256; those of a block
are one again, and those of all blocks are the column's. So tasks that begin at a block can work side by side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.datasets.types.base import is_valid

BLOCK = 256
"""Rows of a block."""

Array = np.ndarray[Any, Any]
_Path = tuple[int, ...]


class RowDigest:
    """Takes rows in order, and gives the digests of their columns by blocks.

    Examples
    --------
    >>> whole, parts = RowDigest(), RowDigest()
    >>> whole.add({"x": pa.array([1, None, 3])})
    >>> for values in ([1], [None, 3]):
    ...     parts.add({"x": pa.array(values, pa.int64())})
    >>> whole.finish() == parts.finish()
    True
    """

    def __init__(self) -> None:
        self._blocks: dict[str, bytearray] = {}
        self._open: dict[tuple[str, _Path], Any] = {}
        self._rows = 0

    def add(self, columns: Mapping[str, pa.Array]) -> None:
        """Add rows: columns of equal length, as they are stored."""
        count = len(next(iter(columns.values()), ()))
        if not count:
            return
        ends = np.unique([0, *range(BLOCK - self._rows, count, BLOCK), count])
        parts = [
            ((name, path), data, marks.tolist())
            for name, array in columns.items()
            for path, data, marks in _buffers(array, ends, ())
        ]
        for number, taken in enumerate(np.diff(ends).tolist()):
            for key, data, marks in parts:
                hasher = self._open.get(key)
                if hasher is None:
                    hasher = self._open[key] = hashlib.sha256()
                hasher.update(data[marks[number] : marks[number + 1]])
            self._rows += taken
            if self._rows == BLOCK:
                self._close()

    def finish(self) -> dict[str, bytes]:
        """Return for each column the digests of its blocks, one after the other."""
        if self._rows:
            self._close()
        return {name: bytes(found) for name, found in self._blocks.items()}

    def _close(self) -> None:
        of: dict[str, Any] = {}
        for (name, path), hasher in sorted(self._open.items(), key=lambda item: item[0]):
            of.setdefault(name, hashlib.sha256()).update(repr(path).encode() + hasher.digest())
        for name, hasher in of.items():
            self._blocks.setdefault(name, bytearray()).extend(hasher.digest())
        self._open, self._rows = {}, 0


def digests(parts: Iterable[Mapping[str, bytes]]) -> dict[str, str]:
    """Return the digests of columns whose blocks come in parts, in order: hexadecimal digits by name.

    Examples
    --------
    >>> digests([{"x": b"ab"}, {"x": b"c"}]) == digests([{"x": b"abc"}])
    True
    """
    found: dict[str, Any] = {}
    for part in parts:
        for name, blocks in part.items():
            found.setdefault(name, hashlib.sha256()).update(blocks)
    return {name: hasher.hexdigest() for name, hasher in found.items()}


def whole_digest(columns: Mapping[str, str]) -> str:
    """Return one digest for those of all columns, in whatever order they are.

    Examples
    --------
    >>> whole_digest({"a": "00", "b": "11"}) == whole_digest({"b": "11", "a": "00"})
    True
    """
    text = "\n".join(f"{name}\t{digest}" for name, digest in sorted(columns.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def _buffers(array: pa.Array, ends: Array, path: _Path) -> Iterator[tuple[_Path, Any, Array]]:
    """Yield what makes the values of an array, each with its place: whether they are there, lengths, elements.

    Parameters
    ----------
    array : pyarrow.Array
        The values.
    ends : int64 ndarray
        Where the values of each block begin, and where those of the last one end.
    path : tuple of int
        Of the array in its column.

    Yields
    ------
    (tuple of int, buffer, int64 ndarray)
        The place, the bytes of all blocks, and where in these those of each block begin, as in `ends`.
    """
    kind = array.type
    valid = is_valid(array)
    yield (*path, 0), memoryview(valid.tobytes()), ends
    if pa.types.is_struct(kind):
        for number, field in enumerate(array.flatten()):  # null where the struct is
            yield from _buffers(field, ends, (*path, 1, number))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = _lengths(pc.list_value_length(array))
        yield (*path, 1), memoryview(lengths.tobytes()), ends * lengths.itemsize
        yield from _buffers(array.flatten(), _sums(lengths)[ends], (*path, 2))
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        lengths = _text_lengths(array)
        yield (*path, 1), memoryview(lengths.tobytes()), ends * lengths.itemsize
        marks, data = _sums(lengths)[ends], _bytes(array)
        # Nulls have no bytes, as a rule; then none need be copied to leave these out.
        yield (*path, 2), data if len(data) == marks[-1] else _bytes(array.drop_null()), marks
    else:
        if array.null_count:
            array, ends = array.drop_null(), _sums(valid)[ends]
        yield (*path, 1), *_elements(array, ends)


def _sums(sizes: Array) -> Array:
    """Return what comes before each of some sizes, and all of them after the last."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _lengths(lengths: pa.Array) -> Array:
    found = lengths.fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray(found).astype("<i8")


def _text_lengths(array: pa.Array) -> Array:
    if array.null_count or array.buffers()[1] is None:
        return _lengths(pc.binary_length(array))
    return np.diff(_marks(array)).astype("<i8")


def _marks(array: pa.Array) -> Array:
    """Return where in the bytes of all texts each begins, and where the last one ends."""
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]


def _bytes(array: pa.Array) -> memoryview:
    """Return the bytes of all texts of an array, one after the other."""
    data = array.buffers()[2]
    if data is None or not len(array):
        return memoryview(b"")
    marks = _marks(array)
    return memoryview(data)[int(marks[0]) : int(marks[-1])]


def _elements(array: pa.Array, ends: Array) -> tuple[memoryview, Array]:
    """Return the elements of an array without nulls: those of a fixed width as they lie, others by their texts.

    The second is where those of each block begin, as in `_buffers`.
    """
    try:
        width = array.type.bit_width
    except ValueError:
        width = 0
    if pa.types.is_boolean(array.type):
        return memoryview(np.asarray(array.to_numpy(zero_copy_only=False)).tobytes()), ends
    if not width or width % 8 or pa.types.is_fixed_size_list(array.type):
        texts = [f"{value!r}\n".encode() for value in array.to_pylist()]
        return memoryview(b"".join(texts)), _sums(np.array([*map(len, texts)], np.int64))[ends]
    data = array.buffers()[1]
    if data is None or not len(array):
        return memoryview(b""), ends * 0
    start = array.offset * width // 8
    return memoryview(data)[start : start + len(array) * width // 8], ends * (width // 8)
