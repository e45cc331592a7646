"""Matrix Market files, and the ``.npz`` files of scipy.sparse and the package sparse: a task reads one.

Coordinates of a Matrix Market file are read in pieces; its dense arrays and ``.npz`` files whole.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import select
from tensorlake_spark.spark.bounds import LINE_BYTES, bounded_lines, check_archive, check_bytes
from tensorlake_spark.spark.files import carried, is_object, seekable
from tensorlake_spark.spark.lines import FILE, ROW, opened, reading
from tensorlake_spark.spark.npy_objects import read_header
from tensorlake_spark.spark.records import WRONG, Records
from tensorlake_spark.spark.tasks import numbers, share
from tensorlake_spark.spark.views import arrow_schema, cell_schema, coordinate_batch
from tensorlake_spark.sparse import nonzero
from tensorlake_spark.spec import TensorSpec, dtype_name, native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Array = np.ndarray[Any, Any]

_ROWS = 1 << 18
_CHUNK = 16 << 20
_HEAD_BYTES = 16 << 20  # SciPy keeps the comments of a .mtx file
_SHAPE_BYTES = 1 << 16  # of a member that holds a shape, which the driver reads
_PLACES = ("shape", "row", "col", "coords", "indices", "indptr", "offsets", "compressed_axes")

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


def matrix_records(
    session: SparkSession, paths: Sequence[str]
) -> tuple[Records, tuple[int, ...], np.dtype[Any]]:
    """Return the elements of sparse matrices, the shape that holds them all, and their dtype.

    Columns are ``i0`` .. and ``value``. The driver reads the headers only.

    Raises
    ------
    InvalidTensorError
        If a file cannot be read, or files have different ranks.
    """
    headers = [header_of(path) for path in paths]
    shape, dtype = headers[0]
    for path, (other, kind) in zip(paths, headers, strict=True):
        if len(other) != len(shape):
            raise InvalidTensorError(
                f"{path} has the shape {other}, {paths[0]} has {headers[0][0]}: files of one tensor have one "
                "rank, others go under another --id"
            )
        shape = tuple(max(sides) for sides in zip(shape, other, strict=True))
        try:
            dtype = np.result_type(dtype, kind)
        except TypeError:
            raise InvalidTensorError(
                f"{path} holds {kind}, {paths[0]} {headers[0][1]}: no dtype holds both"
            ) from None
    spec = TensorSpec("cells", shape, dtype, "coo", ())
    schema = cell_schema(spec).add(FILE, "string")

    def read(mine: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in mine:
            for coords, values in elements_of(path):
                for start in range(0, len(values), _ROWS):
                    some = slice(start, start + _ROWS)
                    piece = values[some].astype(dtype, copy=False)
                    cells = coordinate_batch(coords[:, some], piece, select(..., shape), spec)
                    columns = [*cells.columns, pa.repeat(path, cells.num_rows)]
                    yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))

    count = len(paths)
    frame = numbers(session, count).mapInArrow(carried(share(paths, count, read)), schema)
    hidden = frame.selectExpr("*", f"cast(null as bigint) {ROW}", f"cast(null as string) {WRONG}")
    return Records(hidden, tuple(cell_schema(spec).names)), shape, dtype


def header_of(path: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of a file's matrix, without reading the rest of it."""
    with reading(path):
        if not path.lower().endswith(".npz"):
            with opened(path) as stream:
                sizes = _sizes(_head(stream)[0])
            return (sizes.rows, sizes.columns), np.dtype(_DTYPES[sizes.field])
        with _archive(path) as archive:
            dtype = native(np.empty(0, _array_header(archive, "data")[1])).dtype
            shape = _shape(archive)
        dtype_name(dtype)
        return shape, dtype


def elements_of(path: str) -> Iterator[tuple[Array, Array]]:
    """Yield coordinates (int64, ndim x n) and values of a file's stored elements, some at a time.

    Of a dense one, Matrix Market's ``array``, those that are not zero. Symmetric ones are filled up.

    Raises
    ------
    InvalidTensorError
        If the file cannot be read as what its name says; of text the line is named.
    """
    with reading(path):
        if path.lower().endswith(".npz"):
            yield _checked(*_npz(path))
        else:
            for found in _matrices(path):
                if isinstance(found, np.ndarray):
                    places = nonzero(found)
                    coords, values = np.stack(np.nonzero(places)), found[places]
                else:
                    coords, values = np.stack(found.coords), found.data
                yield _checked(coords, values, found.shape)


def _checked(coords: Array, values: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return coordinates and values as Spark gets them, if they fit each other and the shape."""
    coords = np.asarray(coords).astype(np.int64)
    if np.ndim(values) != 1 or coords.shape != (len(shape), len(values)):
        raise ValueError(
            f"it has {len(values)} values, and coordinates of shape {coords.shape} in place of "
            f"{(len(shape), len(values))}"
        )
    ends = np.array(shape)[:, None]
    if coords.size and (coords.min() < 0 or (coords.max(axis=1, keepdims=True) >= ends).any()):
        outside = ((coords < 0) | (coords >= ends)).any(axis=0)
        at = tuple(coords[:, np.argmax(outside)].tolist())
        raise ValueError(f"its element {at} lies outside of its shape {tuple(shape)}")
    return coords, native(np.asarray(values))


def _npz(path: str) -> tuple[Array, Array, tuple[int, ...]]:
    import scipy.sparse

    with _archive(path) as archive:
        shape = _shape(archive)
        _check_places(archive)
        if "offsets" in archive:
            return *_diagonals(archive, shape), shape
        if "fill_value" not in archive:
            loaded: Any = scipy.sparse.load_npz(seekable(path))
            if loaded.format in ("csr", "csc", "bsr"):
                loaded.check_format()  # SciPy expands them without a look
            coo = loaded.tocoo()
            return np.stack(coo.coords), coo.data, coo.shape
        if nonzero(archive["fill_value"]).any():
            raise ValueError(
                f"its fill value is {archive['fill_value']!r}, and only zero can be left out"
            )
        coords = archive["coords"] if "coords" in archive else _uncompressed(archive, shape)
        return coords, archive["data"], shape


def _diagonals(archive: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return coordinates and values of a DIA matrix; SciPy takes memory for every row that its shape has."""
    data, offsets = archive["data"], archive["offsets"].astype(np.int64)
    columns = np.arange(data.shape[1])
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1]) & nonzero(data)
    return np.stack([rows[inside], np.broadcast_to(columns, data.shape)[inside]]), data[inside]


def _uncompressed(archive: Any, shape: tuple[int, ...]) -> Array:
    """Return the coordinates of a GCXS array of the package sparse: CSR of some axes by the others."""
    indices = archive["indices"].astype(np.int64)
    if len(shape) == 1:
        return np.asarray(indices[None])
    axes = archive["compressed_axes"].tolist()
    order = [*axes, *(k for k in range(len(shape)) if k not in axes)]
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"its compressed axes {axes} are not some of its {len(shape)} axes")
    rows, columns = ([shape[k] for k in some] for some in (axes, order[len(axes) :]))
    counts = np.diff(archive["indptr"].astype(np.int64))
    if len(counts) != math.prod(rows):
        raise ValueError(f"its indptr is of {len(counts)} rows, of which it has {math.prod(rows)}")
    row = np.repeat(np.arange(len(counts)), counts)
    coords = [*np.unravel_index(row, rows), *np.unravel_index(indices, columns)]
    return np.stack(coords)[np.argsort(order)]


@contextmanager
def _archive(path: str) -> Iterator[Any]:
    """Open an ``.npz`` file whose members may be unpacked."""
    with np.load(seekable(path), allow_pickle=False) as archive:
        check_archive(archive.zip)
        yield archive


def _array_header(archive: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of a member, without reading the rest of it."""
    with archive.zip.open(f"{name}.npy") as stream:
        shape, _, dtype = read_header(stream)
    return shape, dtype


def _shape(archive: Any) -> tuple[int, ...]:
    size = archive.zip.getinfo("shape.npy").file_size
    if size > _SHAPE_BYTES:
        raise ValueError(f"its shape has {size} bytes, and no array has so many axes")
    return tuple(int(n) for n in archive["shape"])


def _check_places(archive: Any) -> None:
    """Raise ValueError for places that are no integers, and for rows that do not follow each other."""
    for name in _PLACES:
        if name in archive:
            shape, dtype = _array_header(archive, name)
            if dtype.kind not in "iu" and 0 not in shape:
                raise ValueError(f"its {name} are of dtype {dtype}, and not integers")
    if "indptr" in archive:
        ends, (count,) = archive["indptr"], _array_header(archive, "indices")[0]
        if ends.size and (ends[0] != 0 or (ends[1:] < ends[:-1]).any() or ends[-1] != count):
            raise ValueError(
                f"its indptr does not rise from 0 to {count}, the number of its indices"
            )


def _head(stream: IO[bytes]) -> tuple[bytes, int]:
    """Read a Matrix Market file to the end of the line with its sizes; return that, and how many lines it is."""
    head = bytearray()
    for number, line in enumerate(bounded_lines(stream), 1):
        head += line
        if len(head) > _HEAD_BYTES:
            raise ValueError(f"the lines before its sizes have more than {_HEAD_BYTES} bytes")
        if line.strip() and not line.strip().startswith(b"%"):
            return bytes(head), number
    return bytes(head), 0


class _Sizes(NamedTuple):
    """What the head of a Matrix Market file says."""

    rows: int
    columns: int
    entries: int
    layout: str
    field: str
    symmetry: str


def _sizes(head: bytes) -> _Sizes:
    """Return what the head of a Matrix Market file says; of a dense one, if it may be as large."""
    import scipy.io

    sizes = _Sizes(*scipy.io.mminfo(io.BytesIO(head)))
    if sizes.layout == "array":
        check_bytes(
            sizes.rows * sizes.columns * np.dtype(_DTYPES[sizes.field]).itemsize, "its matrix"
        )
    return sizes


def _matrices(path: str) -> Iterator[Any]:
    """Yield the matrix of a Matrix Market file: an array as it is, a sparse one as several that add up to it."""
    import scipy.io

    with opened(path) as stream:
        head, number = _head(stream)
        sizes = _sizes(head)
        lines = _good_lines(stream, sizes, number)
        if sizes.layout == "coordinate":
            yield from _sparse(lines, sizes)
            return
        for _ in lines:
            pass
    with opened(path) if is_object(path) else nullcontext(path) as source:
        yield scipy.io.mmread(source, spmatrix=False)


def _sparse(lines: Iterable[tuple[bytes, int]], sizes: _Sizes) -> Iterator[Any]:
    """Yield matrices of some lines each: SciPy reads them under a head of their own, so that none is held for long."""
    import scipy.io

    seen = 0
    for chunk, number in lines:
        count = chunk.count(b"\n") - len(_NO_ELEMENT.findall(chunk))
        seen += count
        if seen > sizes.entries:
            raise ValueError(f"it has more than the {sizes.entries} elements that its head says")
        kind = f"%%MatrixMarket matrix coordinate {sizes.field} {sizes.symmetry}\n"
        text = f"{kind}{sizes.rows} {sizes.columns} {count}\n".encode() + chunk
        try:
            yield scipy.io.mmread(io.BytesIO(text), spmatrix=False)
        except ValueError as error:
            place = re.match(r"Line (\d+)", str(error))
            if place is None:
                raise
            line = f"Line {int(place[1]) - 2 + number}"
            raise ValueError(str(error).replace(place[0], line, 1)) from error
    if seen != sizes.entries:
        raise ValueError(f"it has {seen} of the {sizes.entries} elements that its head says")


def _good_lines(stream: IO[bytes], sizes: _Sizes, number: int) -> Iterator[tuple[bytes, int]]:
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
                f"Line {number}: {text!r} is no element of the matrix, of which the first line says that it "
                f"is {layout} {field}: a line has {places}{_WORDS[field]}"
            )
        yield (chunk if chunk.endswith(b"\n") else chunk + b"\n"), number
        number += chunk.count(b"\n")
