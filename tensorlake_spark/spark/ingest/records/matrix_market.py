"""Matrix Market files, in pieces: SciPy reads each of them under a head of its own."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from tensorlake_spark.ops.elements import nonzero_bits
from tensorlake_spark.spark.ingest.limits import LINE_BYTES, bounded_lines, check_bytes
from tensorlake_spark.spark.ingest.text_lines import opened

Array = np.ndarray[Any, Any]

_CHUNK = 16 << 20
_HEAD_BYTES = 16 << 20  # SciPy keeps the comments of a .mtx file

_DTYPES = {
    "real": "float64", "pattern": "float64", "integer": "int64", "unsigned-integer": "uint64",
    "complex": "complex128",
}  # fmt: skip
_VALUES = {
    "real": rb"[ \t]+\S+", "pattern": rb"", "integer": rb"[ \t]+[+-]?\d+", "complex": rb"[ \t]+\S+[ \t]+\S+",
    "unsigned-integer": rb"[ \t]+\+?\d+",
}  # fmt: skip

_NO_ELEMENT = re.compile(rb"(?m)^(?:%.*|[ \t]*\r*)\n")

_WORDS = {
    "real": "a number", "pattern": "nothing more", "integer": "an integer", "complex": "two numbers",
    "unsigned-integer": "an integer from 0 on",
}  # fmt: skip


class Sizes(NamedTuple):
    """What the head of a file says."""

    rows: int
    columns: int
    entries: int
    layout: str
    field: str
    symmetry: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return np.dtype(_DTYPES[self.field])


def read_sizes(path: str) -> Sizes:
    """Return what the head of a file says, without reading the rest of it."""
    with opened(path) as stream:
        return _sizes(_head(stream)[0])


def read_pieces(path: str) -> Iterator[tuple[Array, Array]]:
    """Yield coordinates (int64, ndim x n) and values of a file's stored elements, some at a time.

    Of a dense one, ``array``, those that are not zero. Symmetric ones are filled up.
    """
    with opened(path) as stream:
        head, number = _head(stream)
        sizes = _sizes(head)
        lines = _counted(_good_lines(stream, sizes, number), sizes)
        yield from _sparse(lines, sizes) if sizes.layout == "coordinate" else _dense(lines, sizes)


def _counted(
    lines: Iterable[tuple[bytes, int]], sizes: Sizes
) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield lines as they are, the number of the line before, and how many elements they and those before are."""
    total = sizes.entries
    if sizes.layout == "array" and sizes.symmetry != "general":
        side = min(sizes.rows, sizes.columns)
        total = side * (side + (-1 if sizes.symmetry == "skew-symmetric" else 1)) // 2
    seen = 0
    for chunk, number in lines:
        count = chunk.count(b"\n") - len(_NO_ELEMENT.findall(chunk))
        if seen + count > total:
            raise ValueError(f"it has more than the {total} elements that its head says")
        yield chunk, number, count, seen
        seen += count
    if seen != total:
        raise ValueError(f"it has {seen} of the {total} elements that its head says")


def _sparse(
    lines: Iterable[tuple[bytes, int, int, int]], sizes: Sizes
) -> Iterator[tuple[Array, Array]]:
    for chunk, number, count, _ in lines:
        head = f"coordinate {sizes.field} {sizes.symmetry}\n{sizes.rows} {sizes.columns} {count}"
        found = _parsed(head, chunk, number)
        yield np.stack(found.coords).astype(np.int64), found.data


def _dense(
    lines: Iterable[tuple[bytes, int, int, int]], sizes: Sizes
) -> Iterator[tuple[Array, Array]]:
    """Columns come one after the other; of a symmetric matrix what lies below the diagonal."""
    is_skew = sizes.symmetry == "skew-symmetric"
    lengths = np.full(sizes.columns, sizes.rows)
    if sizes.symmetry != "general":
        lengths -= np.arange(sizes.columns) + is_skew
    ends = np.cumsum(lengths)
    for chunk, number, count, seen in lines:
        if not count:
            continue
        values = _parsed(f"array {sizes.field} general\n{count} 1", chunk, number).ravel()
        place = seen + np.flatnonzero(nonzero_bits(values))
        values = values[place - seen]
        column = np.searchsorted(ends, place, "right")
        row = place - ends[column] + sizes.rows
        coords = np.stack([row, column])
        yield coords, values
        if sizes.symmetry != "general":
            below = row != column
            mirrored = values[below]
            mirrored = -mirrored if is_skew else mirrored
            yield (
                coords[::-1, below],
                mirrored.conj() if sizes.symmetry == "hermitian" else mirrored,
            )


def _parsed(head: str, chunk: bytes, number: int) -> Any:
    """Return what SciPy makes of lines under a head of two lines; errors name the line of the file."""
    import scipy.io

    text = f"%%MatrixMarket matrix {head}\n".encode() + chunk
    try:
        return scipy.io.mmread(io.BytesIO(text), spmatrix=False)
    except ValueError as error:
        place = re.match(r"Line (\d+)", str(error))
        if place is None:
            raise
        line = f"Line {int(place[1]) - 2 + number}"
        raise ValueError(str(error).replace(place[0], line, 1)) from error


def _head(stream: IO[bytes]) -> tuple[bytes, int]:
    """Read a file to the end of the line with its sizes; return that, and how many lines it is."""
    head = bytearray()
    for number, line in enumerate(bounded_lines(stream), 1):
        head += line
        if len(head) > _HEAD_BYTES:
            raise ValueError(f"the lines before its sizes have more than {_HEAD_BYTES} bytes")
        if line.strip() and not line.strip().startswith(b"%"):
            return bytes(head), number
    return bytes(head), 0


def _sizes(head: bytes) -> Sizes:
    """Return what the head of a file says; of a dense one, if it may be as large."""
    import scipy.io

    sizes = Sizes(*scipy.io.mminfo(io.BytesIO(head)))
    if sizes.field == "double":  # another word for real, as SciPy reads it too
        sizes = sizes._replace(field="real")
    if sizes.layout == "array":
        check_bytes(sizes.rows * sizes.columns * sizes.dtype.itemsize, "its matrix")
    return sizes


def _good_lines(stream: IO[bytes], sizes: Sizes, number: int) -> Iterator[tuple[bytes, int]]:
    """Yield the lines after the head, some at a time, with the number of the line before them.

    Raises ValueError for a line of the wrong length, or a fraction among integers: SciPy cuts them off.
    (SciPy 1.17 reads ``1 1 2.5`` of an integer matrix as 2, and ``1 1 2 7`` of a real one too.)
    """
    layout, field = sizes.layout, sizes.field
    good, places = _VALUES[field], "row, column and " if layout == "coordinate" else ""
    good = rb"\S+[ \t]+\S+" + good if layout == "coordinate" else good.removeprefix(rb"[ \t]+")
    good = good or rb"(?!)"
    # No two runs of blanks meet, which would be divided in every way that there is.
    wrong = re.compile(rb"(?m)^(?!%|[ \t]*(?:" + good + rb"[ \t\r]*|\r*)$).+")
    while chunk := stream.read(_CHUNK):
        rest = stream.readline(LINE_BYTES)
        if len(rest) == LINE_BYTES and not rest.endswith(b"\n"):
            raise ValueError(f"a line has more than {LINE_BYTES} bytes")
        chunk += rest
        found = wrong.search(chunk)
        if found:
            number += chunk.count(b"\n", 0, found.start()) + 1
            text = found[0][:100].decode("utf-8", "replace").strip()
            raise ValueError(
                f"Line {number}: {text!r} is not an element of the matrix, of which the first line says that it "
                f"is {layout} {field}: a line has {places}{_WORDS[field]}"
            )
        yield (chunk if chunk.endswith(b"\n") else chunk + b"\n"), number
        number += chunk.count(b"\n")
