"""Arrays of files as slabs or tensors: images, ``.npy`` and ``.npz``.

The driver knows the names, shapes and dtypes of the files, never their elements. Executors read the
files, band by band, and hand slabs to ``format("tensor")``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError, MissingDependencyError
from tensorlake_spark.spark.views import TENSOR, tensor_column
from tensorlake_spark.spec import dtype_name, native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Array = np.ndarray[Any, Any]

_BAND_BYTES = 16 << 20
_PARTS = "index bigint, path string, member string, shape array<bigint>, dtype string"


@dataclass(frozen=True)
class Part:
    """One array of one file.

    Attributes
    ----------
    index : int
        Its place in the order of the sources.
    path : str
        The file.
    member : str
        Name of the array in an ``.npz`` file, else empty.
    shape : tuple of int
    dtype : str
    """

    index: int
    path: str
    member: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def name(self) -> str:
        """The file's stem, with the member where a file has several."""
        stem = PurePath(self.path).stem
        return f"{stem}/{self.member}" if self.member else stem


def load(path: str, member: str = "", channels_first: bool = False) -> Array:
    """Return the array of a file; an ``.npy`` file is memory-mapped.

    Parameters
    ----------
    path : str
        An image, ``.npy`` or ``.npz`` file.
    member : str
        Which array of an ``.npz`` file.
    channels_first : bool
        Give colour images the axes (channel, y, x) instead of (y, x, channel).

    Raises
    ------
    InvalidTensorError
        If the file cannot be read as what its name says; names the file.
    """
    try:
        if path.lower().endswith(".npy"):
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        if path.lower().endswith(".npz"):
            with np.load(path, allow_pickle=False) as archive:
                return np.asarray(archive[member])
        try:
            from PIL import Image
        except ImportError as error:
            raise MissingDependencyError(
                f"{path} needs Pillow: pip install 'tensorlake-spark[demo]'"
            ) from error
        with Image.open(path) as image:
            array = np.asarray(image)
    except (OSError, ValueError, KeyError, EOFError) as error:
        if isinstance(error, MissingDependencyError):
            raise
        raise InvalidTensorError(f"{path} cannot be read: {error}") from error
    return np.moveaxis(array, -1, 0) if channels_first and array.ndim == 3 else array


def probe(path: str, channels_first: bool) -> list[tuple[str, tuple[int, ...], str]]:
    """Return ``(member, shape, dtype)`` for every array of a file."""
    if path.lower().endswith(".npz"):
        try:
            with np.load(path, allow_pickle=False) as archive:
                members = list(archive.files)
        except (OSError, ValueError, EOFError) as error:
            raise InvalidTensorError(f"{path} cannot be read: {error}") from error
    else:
        members = [""]
    out = []
    for member in members:
        array = load(path, member, channels_first)
        try:
            out.append((member, tuple(array.shape), dtype_name(array.dtype)))
        except InvalidTensorError as error:
            raise type(error)(f"{path}: {error}") from error
    return out


def find_parts(session: SparkSession, paths: Sequence[str], channels_first: bool) -> list[Part]:
    """Look at all files on executors and return their arrays in order."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for index, path in zip(*(batch.column(k).to_pylist() for k in (0, 1)), strict=True):
                rows += [(index, path, m, s, d) for m, s, d in probe(path, channels_first)]
            types = (pa.int64(), pa.string(), pa.string(), pa.list_(pa.int64()), pa.string())
            columns = [
                pa.array(list(column), kind)
                for column, kind in zip(zip(*rows, strict=True), types, strict=True)
            ]
            if rows:
                yield pa.RecordBatch.from_arrays(
                    columns, names=["index", "path", "member", "shape", "dtype"]
                )

    frame = spread(session, [(i, p) for i, p in enumerate(paths)], "index bigint, path string")
    rows = frame.mapInArrow(look, _PARTS).collect()
    ordered = sorted(rows, key=lambda r: r["index"])
    return [
        Part(i, r["path"], r["member"], tuple(r["shape"]), r["dtype"])
        for i, r in enumerate(ordered)
    ]


def spread(session: SparkSession, rows: Sequence[Any], schema: str) -> DataFrame:
    """Return rows as a DataFrame in which neighbours stay together, spread over all cores."""
    cores = int(session.conf.get("spark.default.parallelism", "2") or 2)
    count = max(1, min(len(rows), 4 * cores))
    return session.createDataFrame(list(rows), schema).repartitionByRange(count, "index")


def joined_shape(parts: Sequence[Part], axis: int | None) -> tuple[int, ...]:
    """Return the shape of all parts stacked (`axis` None) or concatenated along `axis`.

    Raises
    ------
    InvalidTensorError
        If shapes or dtypes disagree; names both files.
    """
    first = parts[0]
    if axis is not None:
        rank = len(first.shape)
        if not -rank <= axis < rank:
            raise InvalidTensorError(
                f"{first.path} has shape {first.shape}; there is no axis {axis} to concatenate along"
            )
        axis %= rank
    for part in parts[1:]:
        same = len(part.shape) == len(first.shape) and all(
            a == b
            for k, (a, b) in enumerate(zip(part.shape, first.shape, strict=True))
            if k != axis
        )
        if not same or part.dtype != first.dtype:
            raise InvalidTensorError(
                f"{part.path} has shape {part.shape} and dtype {part.dtype}, which does not go with "
                f"{first.path} of shape {first.shape} and dtype {first.dtype}; --each writes a tensor per file"
            )
    if axis is None:
        return (len(parts), *first.shape)
    total = sum(p.shape[axis] for p in parts)
    return tuple(total if k == axis else n for k, n in enumerate(first.shape))


def slabs_of(
    part: Part, axis: int | None, offset: int, channels_first: bool
) -> Iterator[tuple[list[int], Array]]:
    """Yield ``(lo, slab)`` of one file, in bands of at most 16 MiB along its first axis."""
    array = load(part.path, part.member, channels_first)
    if tuple(array.shape) != part.shape:
        raise InvalidTensorError(
            f"{part.path} has shape {array.shape}, but had {part.shape} a moment ago"
        )
    if not array.ndim:
        yield [offset], np.asarray(array).reshape(1)
        return
    row = max(1, array.nbytes // max(1, array.shape[0]))
    step = max(1, _BAND_BYTES // row)
    for start in range(0, max(1, array.shape[0]), step):
        band = native(np.asarray(array[start : start + step]))
        if axis is None:
            yield [offset, start, *[0] * (array.ndim - 1)], band[None]
        else:
            lo = [start, *[0] * (array.ndim - 1)]
            lo[axis] += offset
            yield lo, band


def slab_frame(
    session: SparkSession, parts: Sequence[Part], axis: int | None, channels_first: bool
) -> DataFrame:
    offset, rows = 0, []
    for part in parts:
        rows.append((part.index, json.dumps(part.__dict__), offset))
        offset += 1 if axis is None or not part.shape else part.shape[axis]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ordered = sorted(zip(*(c.to_pylist() for c in batch.columns), strict=True))
            for _, text, start in ordered:
                fields = json.loads(text)
                part = Part(**{**fields, "shape": tuple(fields["shape"])})
                for lo, slab in slabs_of(part, axis, start, channels_first):
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([lo], pa.list_(pa.int64())), tensor_column([slab])],
                        names=["lo", "tensor"],
                    )

    schema = f"lo array<bigint>, tensor {TENSOR.simpleString()}"
    frame = spread(session, rows, "index bigint, part string, start bigint")
    return frame.mapInArrow(read, schema)


def tensor_frame(
    session: SparkSession, parts: Sequence[Part], ids: Sequence[str], channels_first: bool
) -> DataFrame:
    rows = [(p.index, p.path, p.member, i) for p, i in zip(parts, ids, strict=True)]
    repeated = {i for i in ids if ids.count(i) > 1}
    if repeated:
        raise InvalidTensorError(
            f"several files would become tensor {min(repeated)!r}; rename them or ingest them apart"
        )

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _, path, member, name in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                array = native(np.asarray(load(path, member, channels_first)))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([name]), tensor_column([array])], names=["id", "tensor"]
                )

    schema = f"id string, tensor {TENSOR.simpleString()}"
    frame = spread(session, rows, "index bigint, path string, member string, id string")
    return frame.mapInArrow(read, schema)
