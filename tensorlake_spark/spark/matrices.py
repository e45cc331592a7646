"""Matrix Market files, and the ``.npz`` files of scipy.sparse and the package sparse: a task reads one whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError
from tensorlake_spark.indexing import select
from tensorlake_spark.spark.bounds import LINE_BYTES, bounded_lines, check_archive
from tensorlake_spark.spark.files import carried, is_object, seekable
from tensorlake_spark.spark.lines import FILE, ROW, opened, reading
from tensorlake_spark.spark.records import WRONG, Records
from tensorlake_spark.spark.views import arrow_schema, cell_schema, coordinate_batch
from tensorlake_spark.sparse import nonzero
from tensorlake_spark.spec import TensorSpec, dtype_name, native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Array = np.ndarray[Any, Any]

_ROWS = 1 << 18
_CHUNK = 16 << 20

_DTYPES = {
    "real": "float64", "pattern": "float64", "integer": "int64", "unsigned-integer": "uint64",
    "complex": "complex128",
}  # fmt: skip
_VALUES = {
    "real": rb"[ \t]+\S+", "pattern": rb"", "integer": rb"[ \t]+[+-]?\d+", "complex": rb"[ \t]+\S+[ \t]+\S+",
    "unsigned-integer": rb"[ \t]+\+?\d+",
}  # fmt: skip

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

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                coords, values = elements_of(path)
                for start in range(0, len(values), _ROWS):
                    some = slice(start, start + _ROWS)
                    piece = values[some].astype(dtype, copy=False)
                    cells = coordinate_batch(coords[:, some], piece, select(..., shape), spec)
                    columns = [*cells.columns, pa.repeat(path, cells.num_rows)]
                    yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))

    rows = session.createDataFrame(list(enumerate(paths)), "index int, path string")
    frame = rows.repartition(len(paths), "index").mapInArrow(carried(read), schema)
    hidden = frame.selectExpr("*", f"cast(null as bigint) {ROW}", f"cast(null as string) {WRONG}")
    return Records(hidden, tuple(cell_schema(spec).names)), shape, dtype


def header_of(path: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of a file's matrix, without reading the rest of it."""
    with reading(path):
        if not path.lower().endswith(".npz"):
            import scipy.io

            with _text(path) as source:
                rows, columns, _, _, field, _ = scipy.io.mminfo(source)
            return (rows, columns), np.dtype(_DTYPES[field])
        with (
            np.load(seekable(path), allow_pickle=False) as archive,
            archive.zip.open("data.npy") as stream,
        ):
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else (np.lib.format.read_array_header_2_0)
            )
            dtype = native(np.empty(0, read(stream)[2])).dtype
            shape = tuple(int(n) for n in archive["shape"])
        dtype_name(dtype)
        return shape, dtype


def _text(path: str) -> AbstractContextManager[Any]:
    """Return what SciPy reads: the path of a file, or the unpacked text of an object."""
    return opened(path) if is_object(path) else nullcontext(path)


def elements_of(path: str) -> tuple[Array, Array]:
    """Return coordinates (int64, ndim x nnz) and values of a file's stored elements.

    Of a dense one, Matrix Market's ``array``, those that are not zero. Symmetric ones are filled up.

    Raises
    ------
    InvalidTensorError
        If the file cannot be read as what its name says; of text the line is named.
    MissingDependencyError
        If it needs the package ``sparse``.
    """
    with reading(path):
        if path.lower().endswith(".npz"):
            coords, values, shape = _npz(path)
        else:
            import scipy.io

            _check_lines(path)
            with _text(path) as source:
                found = scipy.io.mmread(source, spmatrix=False)
            shape = found.shape
            if isinstance(found, np.ndarray):
                places = nonzero(found)
                coords, values = np.stack(np.nonzero(places)), found[places]
            else:
                coords, values = np.stack(found.coords), found.data
        coords = np.asarray(coords)
        if coords.dtype.kind not in "iu":
            raise ValueError(f"its coordinates are of dtype {coords.dtype}, and not integers")
        coords = coords.astype(np.int64)
        if coords.shape != (len(shape), len(values)):
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

    with np.load(seekable(path), allow_pickle=False) as archive:
        check_archive(archive.zip)
        if "fill_value" not in archive:
            loaded: Any = scipy.sparse.load_npz(seekable(path))
            coo = loaded.tocoo()
            return np.stack(coo.coords), coo.data, coo.shape
        if nonzero(archive["fill_value"]).any():
            raise ValueError(
                f"its fill value is {archive['fill_value']!r}, and only zero can be left out"
            )
        if "coords" in archive:
            return archive["coords"], archive["data"], tuple(archive["shape"].tolist())
    try:
        sparse: Any = import_module("sparse")
    except ImportError as error:
        raise MissingDependencyError(
            f"{path} was compressed by the package sparse: pip install sparse, or save array.tocoo()"
        ) from error
    coo = sparse.load_npz(path).tocoo()
    return coo.coords, coo.data, coo.shape


def _check_lines(path: str) -> None:
    """Raise ValueError for a line of the wrong length, or a fraction among integers: SciPy cuts them off.

    (SciPy 1.17 reads ``1 1 2.5`` of an integer matrix as 2, and ``1 1 2 7`` of a real one too.)
    """
    import scipy.io

    with _text(path) as source:
        *_, layout, field, _ = scipy.io.mminfo(source)
    good, places = _VALUES[field], "row, column and " if layout == "coordinate" else ""
    good = rb"\S+[ \t]+\S+" + good if layout == "coordinate" else good.removeprefix(rb"[ \t]+")
    wrong = re.compile(rb"(?m)^(?!%|[ \t]*(?:" + good + rb")?[ \t\r]*$).+")
    with opened(path) as stream:
        number = 0
        for line in bounded_lines(stream):  # to the line with the sizes
            number += 1
            if line.strip() and not line.startswith(b"%"):
                break
        while chunk := stream.read(_CHUNK) + stream.readline(LINE_BYTES):
            found = wrong.search(chunk)
            if found:
                number += chunk.count(b"\n", 0, found.start()) + 1
                text = found[0].decode("utf-8", "replace").strip()
                raise ValueError(
                    f"Line {number}: {text!r} is no element of the matrix, of which the first line says that it "
                    f"is {layout} {field}: a line has {places}{_WORDS[field]}"
                )
            number += chunk.count(b"\n")
