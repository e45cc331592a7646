"""Payloads without a copy: where the bytes of a binary column lie in a data file, or in a part of one.

Our writer leaves payload columns plain and uncompressed, so their values lie in the file as they are:
after each page's header a run of definition levels, then for each value its length and its bytes (Parquet
format, "Data Pages" and "Plain encoding"). A column that was written otherwise, as by Spark, is read by
Arrow instead. Should a file lie about its pages, the checksum of the row does not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.store.ranges import Part
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.binary_views import INLINE, VIEW

Array = np.ndarray[Any, Any]

_LENGTH = struct.Struct("<I")
_unpack = _LENGTH.unpack_from
_DATA_PAGE, _PLAIN, _RLE = 0, 0, 3
_WORDS = np.dtype(f"V{VIEW.itemsize}")
_HEAD = 256  # bytes that a page's header has at most, without statistics
_LONGEST, _DEEPEST = 63, 8  # bits of a number before its last seven; structs in each other


def plain_column(group: pq.RowGroupMetaData, place: int) -> pq.ColumnChunkMetaData | None:
    """Return a column chunk if its values lie in the file as they are, else None."""
    chunk = group.column(place)
    plain = (
        chunk.compression == "UNCOMPRESSED"
        and chunk.dictionary_page_offset is None
        and set(chunk.encodings) <= {"PLAIN", "RLE"}
        and chunk.physical_type == "BYTE_ARRAY"
    )
    return chunk if plain else None


class PayloadViews:
    """Where the values of a column chunk lie: found once, then laid over the file as it is mapped.

    Parameters
    ----------
    file : pyarrow.Buffer or Part
        The whole data file, memory-mapped, or a part of it that has the column chunk.
    chunk : pyarrow.parquet.ColumnChunkMetaData
        As `plain_column` returned it.

    Raises
    ------
    CorruptDataError
        If the pages do not add up to the column chunk.
    """

    def __init__(self, file: pa.Buffer | Part, chunk: pq.ColumnChunkMetaData) -> None:
        self._start, self._size = chunk.data_page_offset, chunk.total_compressed_size
        data = memoryview(self.region(file)).cast("B")  # pyarrow hands out signed bytes
        spans = _spans(data, chunk.num_values)
        self.valid = np.array([span is not None for span in spans], bool)
        self.views = np.zeros(len(spans), VIEW)
        words = self.views.view(_WORDS)
        for place, span in enumerate(spans):
            if span is None:
                continue
            at, length = span
            if length <= INLINE:
                rest = bytes(data[at : at + length]).ljust(INLINE, b"\0")
            else:
                rest = bytes(data[at : at + 4]) + struct.pack("<ii", 0, at)
            words[place] = np.void(struct.pack("<i", length) + rest)
        bitmap = None if self.valid.all() else _bitmap(self.valid)
        self._buffers = [bitmap, pa.py_buffer(self.views)]

    def array(self, file: pa.Buffer | Part) -> pa.Array:
        """Return the values as views into a file, of type ``binary_view``; keeps the bytes alive."""
        return pa.Array.from_buffers(
            pa.binary_view(), len(self.views), [*self._buffers, self.region(file)]
        )

    def region(self, file: pa.Buffer | Part) -> pa.Buffer:
        """Return the part of a file that the views point into."""
        # Looked at anew for every map: a view past the end of a file that was cut short would crash.
        return _slice(file, self._start, self._size)


def over(
    file: pa.Buffer | Part, parts: Sequence[PayloadViews], mask: np.ndarray[Any, Any] | None = None
) -> pa.Array:
    """Return the values of some column chunks, or those of a mask, as views into a file.

    Parameters
    ----------
    file : pyarrow.Buffer or Part
        The whole data file, or a part of it that has the column chunks.
    parts : sequence of PayloadViews
        At least one; the values follow one another in this order.
    mask : bool ndarray, optional
        Which of all the values to take.

    Returns
    -------
    pyarrow.Array
        Of type ``binary_view``; keeps the bytes alive.
    """
    if len(parts) == 1 and mask is None:
        return parts[0].array(file)
    valid = np.concatenate([part.valid for part in parts])
    if mask is not None:
        valid = valid[mask]
    if not valid.any():  # as of dense rows, which have no index
        return pa.nulls(len(valid), pa.binary_view())
    # As bytes: NumPy takes five times as long to find out that dtypes with fields are the same.
    views = np.concatenate([part.views.view(_WORDS) for part in parts]).view(VIEW)
    apart = views["length"] > INLINE
    views["buffer"][apart] = np.repeat(np.arange(len(parts)), [len(p.views) for p in parts])[apart]
    if mask is not None:
        views = views[mask]
    bitmap = None if valid.all() else _bitmap(valid)
    buffers = [bitmap, pa.py_buffer(views), *(part.region(file) for part in parts)]
    return pa.Array.from_buffers(pa.binary_view(), len(views), buffers)


def _bitmap(valid: np.ndarray[Any, Any]) -> pa.Buffer:
    """Return which values are there as Arrow has it."""
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def stored_values(file: pa.Buffer | Part, chunk: pq.ColumnChunkMetaData) -> list[memoryview | None]:
    """Return the values of a column chunk where they lie in a file, None for a null.

    Parameters
    ----------
    file : pyarrow.Buffer or Part
        The whole data file, or a part of it that has the column chunk.
    chunk : pyarrow.parquet.ColumnChunkMetaData
        As `plain_column` returned it.

    Raises
    ------
    CorruptDataError
        If the pages do not add up to the column chunk.
    """
    region = _slice(file, chunk.data_page_offset, chunk.total_compressed_size)
    data = memoryview(region).cast("B")
    spans = _spans(data, chunk.num_values)
    return [None if span is None else data[span[0] : sum(span)] for span in spans]


def _slice(file: pa.Buffer | Part, start: int, size: int) -> pa.Buffer:
    """Return a column chunk of a file, which has to be as long."""
    if start + size > file.size:
        raise CorruptDataError(f"the file has {file.size} bytes, a column ends at {start + size}")
    return file.slice(start, size)


def _spans(data: memoryview, count: int) -> list[tuple[int, int] | None]:
    """Return ``(place, length)`` of every value of a column chunk, None for a null."""
    return nested_spans(data, count, 1)[0]


def nested_spans(
    data: memoryview, count: int, deepest: int
) -> tuple[list[tuple[int, int] | None], list[int]]:
    """Return where the values of a column chunk lie that may be inside structs.

    Parameters
    ----------
    data : memoryview
        The column chunk.
    count : int
        How many values it has.
    deepest : int
        The definition level of a value that is there: how many of the column and the structs around it may be null.

    Returns
    -------
    spans : list of ((int, int) or None)
        Place and length of each value, None for a null.
    levels : list of int
        The definition level of each value: of a null, how many of the structs around it are there.

    Raises
    ------
    CorruptDataError
        If the pages do not add up to the column chunk.
    """
    return _walked(
        lambda place: _struct(data, place),
        lambda place, nbytes: data[place : place + nbytes],
        lambda place: _LENGTH.unpack_from(data, place)[0],
        len(data),
        count,
        deepest,
    )


def uniform_pages(data: memoryview, count: int, deepest: int) -> list[tuple[int, int, int]] | None:
    """Return where the values of a column chunk lie if those of each page have one length, and none is null; else None.

    Parameters
    ----------
    data, count, deepest
        As for `nested_spans`.

    Returns
    -------
    list of (int, int, int), or None
        For each page where its first value begins, how many it has, and their length. Each value has its own length, in
        four bytes, before it. A chunk whose pages do not add up gives None: `nested_spans` says what is wrong.
    """
    out: list[tuple[int, int, int]] = []
    for at, end, rows in _full_pages(data, count, deepest) or [(0, 0, 0)]:
        length = _one_length(data, at, end, rows)
        if length is None:
            return None
        out.append((at + 4, rows, length))
    return out


def present_spans(data: memoryview, count: int, deepest: int) -> tuple[Array, Array] | None:
    """Return where each value of a column chunk begins, and its length, if none is null; else None.

    It is much faster than `nested_spans`, and gives None, too, where the pages do not add up.

    Parameters
    ----------
    data, count, deepest
        As for `nested_spans`.
    """
    pages = _full_pages(data, count, deepest)
    if pages is None:
        return None
    starts: list[Array] = [np.zeros(0, np.int64)]
    lengths: list[Array] = [np.zeros(0, np.int64)]
    for at, end, rows in pages:
        length = _one_length(data, at, end, rows)
        if length is not None:
            starts.append(at + 4 + np.arange(rows) * (length + 4))
            lengths.append(np.full(rows, length))
            continue
        here = []
        last = end - 4
        for _ in range(rows):
            if at > last:
                return None
            (length,) = _unpack(data, at)
            here.append(length)
            at += 4 + length
        if at != end:
            return None
        found = np.array(here, np.int64)
        lengths.append(found)
        starts.append(end - np.cumsum((found + 4)[::-1])[::-1] + 4)
    return np.concatenate(starts), np.concatenate(lengths)


def _full_pages(data: memoryview, count: int, deepest: int) -> list[tuple[int, int, int]] | None:
    """Return for each page where its values begin and end, and how many it has; None if one has a null, or is odd."""
    pages: list[tuple[int, int, int]] = []
    place = found = 0
    try:
        while place < len(data) and found < count:
            header, at = _struct(data, place)
            page, end = header[5], at + header[3]
            rows = page[1]
            if header[1] != _DATA_PAGE or page[2] != _PLAIN or page[3] != _RLE:
                return None
            if deepest:
                head, value = _varint(data, at + 4)
                if head & 1 or head >> 1 < rows or data[value] != deepest:
                    return None
                at += 4 + _unpack(data, at)[0]
            if rows < 1 or end > len(data) or end - at < 4 * rows:
                return None
            pages.append((at, end, rows))
            place, found = end, found + rows
    except (struct.error, IndexError, KeyError, TypeError, ValueError, CorruptDataError):
        return None
    return pages if found == count else None


def _one_length(data: memoryview, at: int, end: int, rows: int) -> int | None:
    """Return the length that all values of a page have, None if they differ."""
    if not rows or (end - at) % rows:
        return None
    step = (end - at) // rows
    found: Array = np.ndarray((rows,), "<u4", data, at, (step,))
    return step - 4 if (found == step - 4).all() else None


def distant_spans(
    read: Callable[[int, int], memoryview], size: int, count: int, deepest: int
) -> tuple[list[tuple[int, int] | None], list[int]]:
    """Return what `nested_spans` does, of a column chunk of few large values that is not read as a whole.

    Parameters
    ----------
    read : callable
        Returns so many bytes of the chunk from a place on.
    size : int
        Bytes of the chunk.
    count, deepest : int
        As for `nested_spans`.
    """

    def header_at(place: int) -> tuple[dict[int, Any], int]:
        header, nbytes = _struct(read(place, min(_HEAD, size - place)), 0)
        return header, place + nbytes

    def length_at(place: int) -> int:
        return int(_LENGTH.unpack(read(place, 4))[0])

    return _walked(header_at, read, length_at, size, count, deepest)


def _walked(
    header_at: Callable[[int], tuple[dict[int, Any], int]],
    read: Callable[[int, int], memoryview],
    length_at: Callable[[int], int],
    size: int,
    count: int,
    deepest: int,
) -> tuple[list[tuple[int, int] | None], list[int]]:
    """Go from page to page and from value to value; `header_at` returns a page's header and where it ends."""
    spans: list[tuple[int, int] | None] = []
    levels: list[int] = []
    place = 0
    try:
        while place < size and len(spans) < count:
            header, at = header_at(place)
            page, page_end = header[5], at + header[3]
            if header[1] != _DATA_PAGE or page[2] != _PLAIN or page[3] != _RLE:
                raise CorruptDataError(f"a page has type {header[1]} and encoding {page[2]}")
            here = [deepest] * page[1]
            if deepest:
                nbytes = length_at(at)
                here = _levels(read(at + 4, min(nbytes, size - at)), page[1], deepest.bit_length())
                at += 4 + nbytes
            levels += here
            for level in here:
                if level < deepest:
                    spans.append(None)
                    continue
                length = length_at(at)
                spans.append((at + 4, length))
                at += 4 + length
            if at != page_end or page_end > size:
                raise CorruptDataError("the values of a page do not fill it")
            place = page_end
    except (struct.error, IndexError, KeyError, TypeError) as error:
        raise CorruptDataError("a page header cannot be read") from error
    if len(spans) != count:
        raise CorruptDataError(f"{len(spans)} values instead of {count}")
    return spans, levels


def _levels(data: memoryview, count: int, bits: int) -> list[int]:
    """Decode definition levels of a few bits: runs of RLE and bit-packed groups."""
    out: list[int] = []
    place = 0
    while len(out) < count:
        head, place = _varint(data, place)
        if head & 1:
            nbytes = (head >> 1) * bits
            packed = np.frombuffer(data[place : place + nbytes], np.uint8)
            each = np.unpackbits(packed, bitorder="little").reshape(-1, bits)
            out += (each @ (1 << np.arange(bits))).tolist()
            place += nbytes
        else:
            out += [data[place]] * min(head >> 1, count - len(out))
            place += 1
    return out[:count]


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > _LONGEST:
            raise CorruptDataError("a page header has a number of more than 64 bits")


def _struct(data: memoryview, place: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Read a struct of Thrift's compact protocol: field number -> value."""
    if depth > _DEEPEST:
        raise CorruptDataError(f"a page header has more than {_DEEPEST} structs in each other")
    out: dict[int, Any] = {}
    field = 0
    while True:
        head = data[place]
        place += 1
        if not head & 15:  # the other bits mean nothing, as Arrow reads it
            return out, place
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            raw, place = _varint(data, place)
            field = (raw >> 1) ^ -(raw & 1)
        if kind in (1, 2):
            out[field] = kind == 1
        elif kind in (4, 5, 6):
            raw, place = _varint(data, place)
            out[field] = (raw >> 1) ^ -(raw & 1)
        elif kind == 8:
            length, place = _varint(data, place)
            out[field] = bytes(data[place : place + length])
            place += length
        elif kind == 12:
            out[field], place = _struct(data, place, depth + 1)
        else:
            raise CorruptDataError(f"a page header has a field of kind {kind}")
