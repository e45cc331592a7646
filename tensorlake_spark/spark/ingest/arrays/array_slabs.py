"""Arrays of files as slabs or tensors: images, NumPy, Zarr, HDF5, NetCDF-4, TIFF.

Executors share the bands of a large file, read them one by one, and make slabs of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.types import StructType

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.spark.cluster.tasks import cores_of, numbers, share, tasks_of
from tensorlake_spark.spark.ingest.arrays.array_discovery import Part
from tensorlake_spark.spark.ingest.arrays.array_files import opened
from tensorlake_spark.spark.ingest.arrays.tiling import Tiling
from tensorlake_spark.spark.ingest.outcome import Skipped
from tensorlake_spark.spark.ingest.pieces import Bands
from tensorlake_spark.spark.ingest.source_files import carried
from tensorlake_spark.spark.source.schemas import SLABS, TENSOR, tensor_column
from tensorlake_spark.tensor.spec import dtype_name, native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Array = np.ndarray[Any, Any]
Make = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Row = TypeVar("Row")

_ROW_BYTES = (2 << 30) - (1 << 20)  # what a row of Arrow holds, and a little less

TENSORS = StructType().add("id", t.StringType()).add("tensor", TENSOR)

_RUNS = 16
"""So many runs of bands are made for every core, to be spread evenly."""

_LONGEST_RUN = 64


@dataclass(frozen=True, eq=False)
class Work:
    """What tasks do.

    Attributes
    ----------
    tasks : DataFrame
        What they take.
    make : callable
        Takes batches of it, yields batches of `schema`.
    schema : StructType
        What they make.
    partitions : int
        How many tasks there are.
    """

    tasks: DataFrame
    make: Make
    schema: StructType
    partitions: int


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
        misfit = _misfit(part, first, axis)
        if misfit:
            raise InvalidTensorError(f"{misfit}; --each writes a tensor per file")
    if axis is None:
        return (len(parts), *first.shape)
    total = sum(p.shape[axis] for p in parts)
    return tuple(total if k == axis else n for k, n in enumerate(first.shape))


def fitting(parts: Sequence[Part], axis: int | None) -> tuple[list[Part], list[Skipped]]:
    """Return the parts that go with the first one along `axis`, as `joined_shape` has it, and the others."""
    first = parts[0]
    axis = None if axis is None else axis % max(1, len(first.shape))
    misfits = [_misfit(part, first, axis) for part in parts]
    good = [part for part, misfit in zip(parts, misfits, strict=True) if not misfit]
    skipped = [Skipped(p.source, m) for p, m in zip(parts, misfits, strict=True) if m]
    return [replace(part, index=i) for i, part in enumerate(good)], skipped


def _misfit(part: Part, first: Part, axis: int | None) -> str:
    """Return why a part does not go with the first one, empty if it does."""
    same = len(part.shape) == len(first.shape) and all(
        a == b for k, (a, b) in enumerate(zip(part.shape, first.shape, strict=True)) if k != axis
    )
    if same and part.dtype == first.dtype:
        return ""
    return (
        f"{part.source} has shape {part.shape} and dtype {part.dtype}, which does not go with "
        f"{first.source} of shape {first.shape} and dtype {first.dtype}"
    )


def bands_of(parts: Sequence[Part], axis: int | None, block: Sequence[int]) -> Bands:
    """Return the bands in which `slab_rows` reads the parts, those without elements left out."""
    hi: dict[tuple[int, ...], tuple[int, ...]] = {}
    source = {}
    for part, bands, offset in _tiled(parts, axis, block):
        for number in range(bands.count if math.prod(part.shape) else 0):
            lo, stop = bands.box(number)
            corner = _placed(lo, axis, offset)
            hi[corner] = (offset + 1, *stop) if axis is None else _placed(stop, axis, offset)
            source[corner] = part.index
    return Bands(hi, source)


def _placed(corner: Sequence[int], axis: int | None, offset: int) -> tuple[int, ...]:
    """Return where a lower corner of a part lies in the whole, or an upper one along `axis`."""
    if axis is None:
        return (offset, *corner)
    return tuple(a + offset * (k == axis) for k, a in enumerate(corner))


def _tiled(
    parts: Sequence[Part], axis: int | None, block: Sequence[int]
) -> Iterator[tuple[Part, Tiling, int]]:
    """Yield every part with its bands and where it begins on the axis of the whole."""
    inner = tuple(block)[1:] if axis is None else tuple(block)
    offset = 0
    for part in parts:
        yield part, part.tiling(inner), offset
        offset += 1 if axis is None or not part.shape else part.shape[axis]


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
            yield list(_placed(lo, axis, offset)), band[None] if axis is None else band


def slab_rows(
    parts: Sequence[Part],
    axis: int | None,
    block: Sequence[int],
    cores: int,
    done: Collection[tuple[int, ...]] = (),
) -> list[tuple[str, int, int, int]]:
    """Return ``(part, offset, first, last)``: runs of bands, each of which a task reads at a time.

    A file that can be read in parts becomes several runs, for executors to share; their number grows with
    the cores and not with the bytes, until a run is as long as one should be. Bands whose corner is in
    `done` are left out.
    """
    left = []
    for part, bands, offset in _tiled(parts, axis, block):
        left += [(part, offset, run) for run in _left(bands, axis, offset, done)]
    total = sum(len(run) for _, _, run in left)
    longest = max(1, min(_LONGEST_RUN, -(-total // (_RUNS * cores))))
    rows: list[tuple[str, int, int, int]] = []
    for part, offset, run in left:
        text = part.to_json()
        for first in range(run.start, run.stop, len(run) if part.is_whole else longest):
            stop = run.stop if part.is_whole else min(first + longest, run.stop)
            rows.append((text, offset, first, stop))
    return rows


def _left(
    bands: Tiling, axis: int | None, offset: int, done: Collection[tuple[int, ...]]
) -> list[range]:
    """Return the numbers of the bands that are not done, as runs of neighbours."""
    if not done:
        return [range(bands.count)]
    runs: list[range] = []
    for number in range(bands.count):
        if _placed(bands.box(number)[0], axis, offset) in done:
            continue
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def slab_frame(
    session: SparkSession,
    parts: Sequence[Part],
    axis: int | None,
    block: Sequence[int],
    channels_first: bool,
    file_bytes: int,
    done: Collection[tuple[int, ...]] = (),
) -> Work:
    """Return how slabs of all parts are made, but for the bands in `done`; files aim at `file_bytes`."""
    inner = tuple(block)[1:] if axis is None else tuple(block)
    rows = slab_rows(parts, axis, block, cores_of(session), done)

    def read(runs: Sequence[tuple[str, int, int, int]]) -> Iterator[pa.RecordBatch]:
        for text, start, first, last in runs:
            part = Part.from_json(text)
            bands, some = part.tiling(inner), range(first, last)
            for lo, slab in slabs_of(part, axis, start, bands, some, channels_first):
                yield pa.RecordBatch.from_arrays(
                    [pa.array([lo], pa.list_(pa.int64())), tensor_column([slab])],
                    names=["lo", "tensor"],
                )

    return _work(session, rows, parts, read, SLABS, file_bytes)


def tensor_frame(
    session: SparkSession,
    parts: Sequence[Part],
    ids: Sequence[str],
    channels_first: bool,
    file_bytes: int,
    done: Collection[str] = (),
) -> Work:
    """Return how a row for every part is made, its id and the whole of it; files aim at `file_bytes`.

    Parts whose id is in `done` are left out.
    """
    for part in parts:
        if part.nbytes > _ROW_BYTES:
            raise InvalidTensorError(
                f"{part.path} has {size_text(part.nbytes)}, and --each takes up to {size_text(_ROW_BYTES)} a "
                "file; --concat 0 reads one file of any size in pieces"
            )
    # Each task has a range of ids, so that those of its files do not meet those of others.
    pairs = sorted(zip(ids, parts, strict=True), key=lambda pair: pair[0])
    rows = [(p.path, p.member, i) for i, p in pairs if i not in done]

    def read(some: Sequence[tuple[str, str, str]]) -> Iterator[pa.RecordBatch]:
        for path, member, name in some:
            with opened(path, member, channels_first) as stored:
                whole = stored.read((0,) * len(stored.shape), stored.shape)
            array = native(whole)
            yield pa.RecordBatch.from_arrays(
                [pa.array([name]), tensor_column([array])], names=["id", "tensor"]
            )

    return _work(session, rows, parts, read, TENSORS, file_bytes)


def _work(
    session: SparkSession,
    rows: Sequence[Row],
    parts: Sequence[Part],
    make: Callable[[Sequence[Row]], Iterator[pa.RecordBatch]],
    schema: StructType,
    file_bytes: int,
) -> Work:
    nbytes = sum(part.nbytes for part in parts)
    count = tasks_of(len(rows), len(parts), nbytes, cores_of(session), file_bytes)
    return Work(numbers(session, count), carried(share(rows, count, make)), schema, count)
