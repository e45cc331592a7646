"""Files of matrices as cells, some at a time: one task for each of Matrix Market, several for an ``.npz``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import select_simple
from tensorlake_spark.spark.cluster.tasks import numbers, share
from tensorlake_spark.spark.ingest.records.matrix_market import read_pieces, read_sizes
from tensorlake_spark.spark.ingest.records.record_files import WRONG, Records
from tensorlake_spark.spark.ingest.records.sparse_npz import open_sparse
from tensorlake_spark.spark.ingest.source_files import carried
from tensorlake_spark.spark.ingest.text_lines import FILE, ROW, reading
from tensorlake_spark.spark.source.schemas import arrow_schema, cell_schema, coordinate_batch
from tensorlake_spark.tensor.spec import TensorSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Array = np.ndarray[Any, Any]

_ROWS = 1 << 18
_PART_BYTES = 128 << 20  # of an .npz file for a task, which unpacks what lies before them too


class Header(NamedTuple):
    """What a file says of its matrix; `parts` are the ranges that tasks read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    parts: tuple[tuple[int, int | None], ...] = ((0, None),)


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
    shape, dtype, _ = headers[0]
    for path, (other, kind, _) in zip(paths, headers, strict=True):
        if len(other) != len(shape):
            raise InvalidTensorError(
                f"{path} has the shape {other}, {paths[0]} has {headers[0].shape}: files of one tensor have one "
                "rank, others go under another --id"
            )
        shape = tuple(max(sides) for sides in zip(shape, other, strict=True))
        try:
            dtype = np.result_type(dtype, kind)
        except TypeError:
            raise InvalidTensorError(
                f"{path} holds {kind}, {paths[0]} {headers[0].dtype}: no dtype holds both"
            ) from None
    spec = TensorSpec("cells", shape, dtype, "coo", ())
    schema = cell_schema(spec).add(FILE, "string")

    def read(mine: Sequence[tuple[str, int, int | None]]) -> Iterator[pa.RecordBatch]:
        for path, begin, end in mine:
            for coords, values in elements_of(path, begin, end):
                for start in range(0, len(values), _ROWS):
                    some = slice(start, start + _ROWS)
                    piece = values[some].astype(dtype, copy=False)
                    cells = coordinate_batch(
                        coords[:, some], piece, select_simple(..., shape), spec
                    )
                    columns = [*cells.columns, pa.repeat(path, cells.num_rows)]
                    yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema))

    parts = [
        (path, *part) for path, found in zip(paths, headers, strict=True) for part in found.parts
    ]
    make = carried(share(parts, len(parts), read))
    frame = numbers(session, len(parts)).mapInArrow(make, schema)
    hidden = frame.selectExpr("*", f"cast(null as bigint) {ROW}", f"cast(null as string) {WRONG}")
    return Records(hidden, tuple(cell_schema(spec).names)), shape, dtype


def header_of(path: str) -> Header:
    """Return what a file says of its matrix, without reading the rest of it."""
    with reading(path):
        if not path.lower().endswith(".npz"):
            sizes = read_sizes(path)
            return Header((sizes.rows, sizes.columns), sizes.dtype)
        with open_sparse(path) as found:
            count = max(1, min(found.count, -(-found.nbytes // _PART_BYTES)))
            ends = [found.count * k // count for k in range(count + 1)]
            return Header(found.shape, found.dtype, tuple(itertools.pairwise(ends)))


def elements_of(
    path: str, start: int = 0, stop: int | None = None
) -> Iterator[tuple[Array, Array]]:
    """Yield coordinates (int64, ndim x n) and values of a file's stored elements, some at a time.

    Of a dense one, Matrix Market's ``array``, those that are not zero. Symmetric ones are filled up.

    Parameters
    ----------
    path : str
    start, stop : int, optional
        One of the parts that the header says.

    Raises
    ------
    InvalidTensorError
        If the file cannot be read as what its name says; of text the line is named.
    """
    with reading(path):
        if not path.lower().endswith(".npz"):
            yield from read_pieces(path)
            return
        with open_sparse(path) as found:
            stop = found.count if stop is None else stop
            step = max(1, _ROWS // found.width)
            for begin in range(start, stop, step):
                yield found.read(begin, min(begin + step, stop))
