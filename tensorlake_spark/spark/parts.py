"""The arrays that files hold: looked at on executors, the good ones told from the bad.

The driver knows the names, shapes and dtypes of the files, never their elements.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark.array_files import members_of, opened
from tensorlake_spark.spark.files import carried
from tensorlake_spark.spark.outcome import Skipped
from tensorlake_spark.spark.sources import split
from tensorlake_spark.spark.tiling import Tiling, tiling
from tensorlake_spark.spec import dtype_name, dtype_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_TASKS = 4  # for every core
_LEAST_BYTES = 32 << 20
_OPEN_BYTES = 4 << 20


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
    def source(self) -> str:
        """The file, with the member where it has several."""
        return f"{self.path}::{self.member}" if self.member else self.path

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


def probe_all(source: str, channels_first: bool, is_each: bool) -> list[Part]:
    """Return every array of a source as `probe` does, after reading all of each."""
    parts = probe(source, channels_first, is_each)
    for part in parts:
        bands = part.tiling(())
        with opened(part.path, part.member, channels_first) as stored:
            for number in range(bands.count):
                stored.read(*bands.box(number))
    return parts


def find_parts(
    session: SparkSession, paths: Sequence[str], channels_first: bool, is_each: bool
) -> list[Part]:
    """Look at all files on executors and return their arrays in order."""
    parts, _ = _look(session, paths, lambda p: (probe(p, channels_first, is_each), None))
    return parts


def find_good_parts(
    session: SparkSession, paths: Sequence[str], channels_first: bool, is_each: bool
) -> tuple[list[Part], list[Skipped]]:
    """Read all files on executors, and return the arrays of the good ones in order, and the bad ones."""

    def look(path: str) -> tuple[list[Part], str | None]:
        try:
            return probe_all(path, channels_first, is_each), None
        except InvalidTensorError as error:
            return [], str(error)

    return _look(session, paths, look)


def _look(
    session: SparkSession,
    paths: Sequence[str],
    look: Callable[[str], tuple[list[Part], str | None]],
) -> tuple[list[Part], list[Skipped]]:
    """Return what a function says of all paths, in order: their arrays, or why they have none."""

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index, path in zip(*(batch.column(k).to_pylist() for k in (0, 1)), strict=True):
                parts, reason = look(path)
                found = [p.to_json() for p in parts] if reason is None else [None]
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array([index] * len(found), pa.int64()),
                        pa.array(found, pa.string()),
                        pa.array([reason] * len(found), pa.string()),
                    ],
                    names=["index", "part", "reason"],
                )

    frame = spread(session, [(i, p) for i, p in enumerate(paths)], "index bigint, path string")
    rows = frame.mapInArrow(carried(told), "index bigint, part string, reason string").collect()
    rows = sorted(rows, key=lambda r: r["index"])
    texts = [r["part"] for r in rows if r["reason"] is None]
    skipped = [Skipped(paths[r["index"]], r["reason"]) for r in rows if r["reason"] is not None]
    return [replace(Part.from_json(t), index=i) for i, t in enumerate(texts)], skipped


def spread(
    session: SparkSession, rows: Sequence[Any], schema: str, count: int | None = None
) -> DataFrame:
    """Return rows as a DataFrame in which neighbours stay together, in order.

    They are spread over `count` tasks; without it over four for every core, at the most one a row.
    """
    if count is None:
        count = max(1, min(len(rows), _TASKS * cores_of(session)))
    frame = session.createDataFrame(list(rows), schema).repartitionByRange(count, "index")
    return frame.sortWithinPartitions("index")


def tasks_of(rows: int, files: int, nbytes: int, cores: int, file_bytes: int) -> int:
    """Return how many tasks share the writing of arrays: all cores have work, and files become large.

    A task writes files of its own, which are no larger than what it reads. So there are as many tasks as
    files of the target size would be, up to four for every core, which evens them out. For less than that
    there is one for every core as long as each has 32 MiB to read: about a second's work, and what more
    tasks would save, readers would pay for with more files. To open a source counts as 4 MiB, as in Spark
    (``spark.sql.files.openCostInBytes``): many small ones are slow to read on a store.

    Parameters
    ----------
    rows : int
        Pieces that a task can take.
    files : int
        Sources that are opened.
    nbytes : int
        Bytes of their elements.
    cores : int
        Tasks that run at a time.
    file_bytes : int
        Target size of a data file.

    Examples
    --------
    >>> [tasks_of(120, 1, 2 << 30, cores, 128 << 20) for cores in (1, 2, 8, 40, 400)]
    [4, 8, 16, 40, 65]
    >>> tasks_of(1000, 1000, 1000 << 10, 8, 128 << 20)
    8
    >>> tasks_of(16, 1, 20 << 20, 8, 128 << 20)
    1
    """
    full = -(-nbytes // file_bytes)
    least = min(file_bytes, _LEAST_BYTES)
    busy = min(cores, -(-(nbytes + files * _OPEN_BYTES) // least))
    return max(1, min(rows, _TASKS * cores, max(full, busy)))


def cores_of(session: SparkSession) -> int:
    """Return how many tasks run at a time."""
    cores = int(session.conf.get("spark.default.parallelism", "2") or 2)
    with contextlib.suppress(Exception):  # Spark Connect has no such thing
        cores = max(cores, session.sparkContext.defaultParallelism)
    return cores
