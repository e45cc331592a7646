"""Arrays of files as slabs or tensors: images, NumPy, Zarr, HDF5, NetCDF-4, TIFF.

The driver knows the names, shapes and dtypes of the files, never their elements. Executors share the bands of
a large file, read them one by one, and hand slabs to ``format("tensor")``.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing.plan import size_text
from tensorlake_spark.spark.array_files import members_of, opened
from tensorlake_spark.spark.sources import split
from tensorlake_spark.spark.tiling import Tiling, tiling
from tensorlake_spark.spark.views import TENSOR, tensor_column
from tensorlake_spark.spec import dtype_name, dtype_of, native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Array = np.ndarray[Any, Any]

_ROW_BYTES = (2 << 30) - (1 << 20)  # what a row of Arrow holds, and a little less

_RUNS = 16
"""So many runs of bands are made for every core, to be spread evenly."""

_LONGEST_RUN = 64


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
        Name of the array in a file that has several, else empty.
    shape : tuple of int
    dtype : str
    chunks : tuple of int
        What is read of it at once; empty where any part can be read alone.
    is_whole : bool
        Whether a part costs as much as the whole.
    """

    index: int
    path: str
    member: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...] = ()
    is_whole: bool = True

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * dtype_of(self.dtype).itemsize

    def tiling(self, block: Sequence[int]) -> Tiling:
        """Return the bands in which it is read, for a tensor that is stored in blocks."""
        return tiling(self.shape, dtype_of(self.dtype).itemsize, self.chunks, block)

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(self.__dict__)

    @classmethod
    def from_json(cls, text: str) -> Part:
        """Return what `to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "shape": tuple(fields["shape"]), "chunks": tuple(fields["chunks"])})

    @property
    def name(self) -> str:
        """The file's stem, with the member where a file has several."""
        stem = PurePath(self.path).stem
        return f"{stem}/{self.member}" if self.member else stem


def probe(source: str, channels_first: bool, is_each: bool) -> list[Part]:
    """Return every array of a source.

    Raises
    ------
    InvalidTensorError
        If it cannot be read, its dtype will not do, or one of its arrays has to be chosen.
    """
    path, member = split(source)
    members = [member] if member else members_of(path)
    if len(members) > 1 and not is_each and not path.lower().endswith(".npz"):
        raise InvalidTensorError(
            f"{path} has {len(members)} arrays; choose one as {path}::{members[0]}, or make a tensor of each "
            f"with --each: {', '.join(members[:20])}{', ...' if len(members) > 20 else ''}"
        )
    if not members:
        raise InvalidTensorError(f"{path} has no array that can be a tensor")
    out = []
    for one in members:
        try:
            with opened(path, one, channels_first) as stored:
                out.append(Part(0, path, one, stored.shape, dtype_name(stored.dtype), stored.chunks,
                                stored.is_whole))  # fmt: skip
        except InvalidTensorError as error:
            text = str(error)
            raise type(error)(text if text.startswith(path) else f"{path}: {text}") from error
    return out


def find_parts(
    session: SparkSession, paths: Sequence[str], channels_first: bool, is_each: bool
) -> list[Part]:
    """Look at all files on executors and return their arrays in order."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index, path in zip(*(batch.column(k).to_pylist() for k in (0, 1)), strict=True):
                parts = probe(path, channels_first, is_each)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([index] * len(parts)), pa.array([p.to_json() for p in parts])],
                    names=["index", "part"],
                )

    frame = spread(session, [(i, p) for i, p in enumerate(paths)], "index bigint, path string")
    rows = frame.mapInArrow(look, "index bigint, part string").collect()
    ordered = sorted(rows, key=lambda r: r["index"])
    return [replace(Part.from_json(r["part"]), index=i) for i, r in enumerate(ordered)]


def spread(session: SparkSession, rows: Sequence[Any], schema: str) -> DataFrame:
    """Return rows as a DataFrame in which neighbours stay together, spread over all cores."""
    count = partitions_of(session, len(rows))
    return session.createDataFrame(list(rows), schema).repartitionByRange(count, "index")


def partitions_of(session: SparkSession, rows: int) -> int:
    """Return how many tasks `spread` makes of so many rows: four for every core, at the most one a row."""
    return max(1, min(rows, 4 * cores_of(session)))


def cores_of(session: SparkSession) -> int:
    """Return how many tasks run at a time."""
    cores = int(session.conf.get("spark.default.parallelism", "2") or 2)
    with contextlib.suppress(Exception):  # Spark Connect has no such thing
        cores = max(cores, session.sparkContext.defaultParallelism)
    return cores


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
    part: Part, axis: int | None, offset: int, bands: Tiling, numbers: range, channels_first: bool
) -> Iterator[tuple[list[int], Array]]:
    """Yield ``(lo, slab)`` for some bands of a file."""
    with opened(part.path, part.member, channels_first) as stored:
        now = (stored.shape, dtype_name(stored.dtype))
        if now != (part.shape, part.dtype):
            raise InvalidTensorError(
                f"{part.path} has shape {now[0]} and dtype {now[1]}, but had {part.shape} and {part.dtype} a "
                "moment ago"
            )
        for number in numbers:
            lo, hi = bands.box(number)
            # C order, which a mapped file need not have, before it goes through Arrow.
            band = np.ascontiguousarray(native(stored.read(lo, hi))).reshape(
                [b - a for a, b in zip(lo, hi, strict=True)]
            )
            if axis is None:
                yield [offset, *lo], band[None]
            else:
                yield [a + offset * (k == axis) for k, a in enumerate(lo)], band


def slab_rows(
    parts: Sequence[Part], axis: int | None, block: Sequence[int], cores: int
) -> list[tuple[int, str, int, int, int]]:
    """Return ``(index, part, offset, first, last)``: runs of bands, each of which a task reads at a time.

    A file that can be read in parts becomes several runs, for executors to share; their number grows with
    the cores and not with the bytes, until a run is as long as one should be.
    """
    inner = tuple(block)[1:] if axis is None else tuple(block)
    counts = [part.tiling(inner).count for part in parts]
    longest = max(1, min(_LONGEST_RUN, -(-sum(counts) // (_RUNS * cores))))
    rows: list[tuple[int, str, int, int, int]] = []
    offset = 0
    for part, count in zip(parts, counts, strict=True):
        text = part.to_json()
        step = count if part.is_whole else longest
        for first in range(0, count, step):
            rows.append((len(rows), text, offset, first, min(first + step, count)))
        offset += 1 if axis is None or not part.shape else part.shape[axis]
    return rows


def slab_frame(
    session: SparkSession,
    parts: Sequence[Part],
    axis: int | None,
    block: Sequence[int],
    channels_first: bool,
) -> tuple[DataFrame, int]:
    """Return slabs of all parts, and in how many partitions they are."""
    inner = tuple(block)[1:] if axis is None else tuple(block)
    rows = slab_rows(parts, axis, block, cores_of(session))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ordered = sorted(zip(*(c.to_pylist() for c in batch.columns), strict=True))
            for _, text, start, first, last in ordered:
                part = Part.from_json(text)
                bands, numbers = part.tiling(inner), range(first, last)
                for lo, slab in slabs_of(part, axis, start, bands, numbers, channels_first):
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([lo], pa.list_(pa.int64())), tensor_column([slab])],
                        names=["lo", "tensor"],
                    )

    schema = f"lo array<bigint>, tensor {TENSOR.simpleString()}"
    frame = spread(
        session, rows, "index bigint, part string, start bigint, first bigint, last bigint"
    )
    return frame.mapInArrow(read, schema), partitions_of(session, len(rows))


def tensor_frame(
    session: SparkSession, parts: Sequence[Part], ids: Sequence[str], channels_first: bool
) -> DataFrame:
    """Return a row for every part: its id, and the whole of it."""
    for part in parts:
        if part.nbytes > _ROW_BYTES:
            raise InvalidTensorError(
                f"{part.path} has {size_text(part.nbytes)}, and --each takes up to {size_text(_ROW_BYTES)} a "
                "file; --concat 0 reads one file of any size in pieces"
            )
    rows = [(p.index, p.path, p.member, i) for p, i in zip(parts, ids, strict=True)]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _, path, member, name in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                with opened(path, member, channels_first) as stored:
                    whole = stored.read((0,) * len(stored.shape), stored.shape)
                array = native(whole)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([name]), tensor_column([array])], names=["id", "tensor"]
                )

    schema = f"id string, tensor {TENSOR.simpleString()}"
    frame = spread(session, rows, "index bigint, path string, member string, id string")
    return frame.mapInArrow(read, schema)
