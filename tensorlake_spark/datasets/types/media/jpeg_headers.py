"""The headers of many JPEG files at once: what `image_headers.jpeg_facts` says of each, without a loop over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.types.media.image_headers import DECODABLE, SEGMENTS

Array = np.ndarray[Any, Any]

MOST_SEGMENTS = 64
"""Segments before the frame header that are stepped over for all files at once."""

_HEADER = 10  # bytes of a frame header up to its number of components
_BEGINNING, _END = 512, 4  # bytes
_GAP = bytes(_HEADER - _END)  # no frame header ends in it: a number of components is not 0
_SEGMENT, _DECODED = 1, 2

_STEPS = np.zeros(256, np.uint8)
_STEPS[list(SEGMENTS)] = _SEGMENT
_STEPS[list(DECODABLE)] = _DECODED


def jpeg_sizes(column: pa.Array) -> tuple[Array, Array]:
    """Return the sizes of JPEG files.

    Parameters
    ----------
    column : pyarrow.Array
        Of type ``binary``, without nulls.

    Returns
    -------
    sizes : int32 ndarray, shape (3, files)
        Height, width and channels of each.
    known : bool ndarray, shape (files,)
        Which files have such a size. Others are damaged, or need a closer look: ask `image_headers.jpeg_facts`.

    Examples
    --------
    >>> from io import BytesIO
    >>> from PIL import Image
    >>> file = BytesIO()
    >>> Image.new("RGB", (5, 4)).save(file, "JPEG")
    >>> sizes, known = jpeg_sizes(pa.array([file.getvalue(), b"no picture"]))
    >>> sizes[:, 0].tolist(), known.tolist()
    ([4, 5, 3], [True, False])
    """
    count = len(column)
    sizes, known = np.zeros((3, count), np.int32), np.zeros(count, bool)
    _, offsets, values = column.buffers()
    if not count or values is None or values.size < _HEADER:
        return sizes, known
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: count + 1].astype(np.int64)
    data = np.frombuffer(values, np.uint8)
    # Numbers at any place: a segment's marker and length, and what a frame header says.
    four = np.ndarray(data.size - 3, ">u4", data, strides=(1,))
    eight = np.ndarray(data.size - 7, ">u8", data, strides=(1,))
    last = ends[1:] - _HEADER
    rest = np.flatnonzero(last >= ends[:-1] + 2)
    rest = rest[four[ends[rest]].astype(np.int64) >> 8 == 0xFFD8FF]
    if len(rest):
        rest = _unlike_first(data, eight, ends, last, rest, sizes, known)
    at = ends[rest] + 2
    for _ in range(MOST_SEGMENTS):
        head = four[at].astype(np.int64)
        step = _STEPS[head >> 16 & 0xFF]
        step[head >> 24 != 0xFF] = 0
        found = step == _DECODED
        if found.any():
            _read(rest[found], eight[at[found] + 2].astype(np.uint64), sizes, known)
        at = at + 2 + (head & 0xFFFF)
        more = (step == _SEGMENT) & (at <= last[rest])
        if not more.any():
            break
        if not more.all():
            at, rest = at[more], rest[more]
    places = np.flatnonzero(known)
    known[places] = four[ends[1:][places] - 4].astype(np.int64) & 0xFFFF == 0xFFD9
    return sizes, known


def beginnings(files: Sequence[bytes]) -> pa.Array:
    """Return what `jpeg_sizes` takes of files that do not lie in one piece: where most of them have their frame header.

    Of a file that has it further behind, the size is not known.

    Examples
    --------
    >>> beginnings([bytes(5000)]).nbytes < 2000
    True
    """
    most = _BEGINNING + len(_GAP) + _END
    parts = [
        file if len(file) <= most else b"".join((file[:_BEGINNING], _GAP, file[-_END:]))
        for file in files
    ]
    return pa.array(parts, pa.binary())


def _unlike_first(
    data: Array, eight: Array, ends: Array, last: Array, rest: Array, sizes: Array, known: Array
) -> Array:
    """Read the files whose segments lie where those of the first one do, and return the others.

    Files of one encoder are alike so, as a rule: then a few looks at each are enough.
    """
    start = int(ends[rest[0]])
    places = _places(data, start, int(last[rest[0]]))
    if places is None:
        return rest
    fits = last[rest] >= ends[rest] + places[-1]
    some = rest[fits]
    begins = ends[some]
    heads = np.ndarray(data.size - 3, np.uint32, data, strides=(1,))
    alike = np.ones(len(some), bool)
    for place in places:
        alike &= heads[begins + place] == heads[start + place]
    frames = eight[begins[alike] + places[-1] + 2]
    _read(some[alike], frames.astype(np.uint64), sizes, known)
    fits[fits] = alike
    others: Array = rest[~fits]
    return others


def _places(data: Array, start: int, last: int) -> list[int] | None:
    """Return where the segments of a file are, its frame header last; None where they lead to none."""
    at, found = start + 2, []
    for _ in range(MOST_SEGMENTS):
        mark, code, high, low = data[at : at + 4].tolist()
        step = _STEPS[code] if mark == 0xFF else 0
        found.append(at - start)
        if step == _DECODED:
            return found
        at += 2 + (high << 8 | low)
        if step != _SEGMENT or at > last:
            break
    return None


def _read(files: Array, frames: Array, sizes: Array, known: Array) -> None:
    """Take in frame headers: length, bits, height, width and components are eight bytes."""
    parts = (frames & 0xFF).astype(np.int32)
    height, width = (
        (frames >> 24 & 0xFFFF).astype(np.int32),
        (frames >> 8 & 0xFFFF).astype(np.int32),
    )
    is_right = (frames >> 40 & 0xFF == 8) & (frames >> 48 == 8 + 3 * parts.astype(np.uint64))
    is_right &= (parts == 1) | (parts == 3) | (parts == 4)
    is_right &= (height > 0) & (width > 0)
    sizes[0, files], sizes[1, files] = height, width
    sizes[2, files] = np.where(parts == 1, 1, 3)
    known[files] = is_right
