"""The arrays that files hold: looked at on executors, the good ones told from the bad.

The driver knows the names, shapes and dtypes of the files, never their elements.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark.cluster.tasks import TASKS, cores_of, numbers, share
from tensorlake_spark.spark.ingest.arrays.array_files import members_of, opened
from tensorlake_spark.spark.ingest.arrays.tiling import Tiling, tiling
from tensorlake_spark.spark.ingest.outcome import Skipped
from tensorlake_spark.spark.ingest.source_files import carried
from tensorlake_spark.spark.ingest.sources import split
from tensorlake_spark.tensor.spec import dtype_name, dtype_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HEADS = 16  # files of which a task reads the heads: that takes milliseconds, to start a task a tenth of a second


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
    parts, _ = _look(session, paths, lambda p: (probe(p, channels_first, is_each), None), _HEADS)
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

    return _look(session, paths, look, 1)


def _look(
    session: SparkSession,
    paths: Sequence[str],
    look: Callable[[str], tuple[list[Part], str | None]],
    least: int,
) -> tuple[list[Part], list[Skipped]]:
    """Return what a function says of all paths, in order: their arrays, or why they have none.

    A task takes `least` of them, or more.
    """

    def told(some: Sequence[tuple[int, str]]) -> Iterator[pa.RecordBatch]:
        for index, path in some:
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

    count = max(1, min(-(-len(paths) // least), TASKS * cores_of(session)))
    make = carried(share(list(enumerate(paths)), count, told))
    schema = "index bigint, part string, reason string"
    rows = numbers(session, count).mapInArrow(make, schema).collect()
    rows = sorted(rows, key=lambda r: r["index"])
    texts = [r["part"] for r in rows if r["reason"] is None]
    skipped = [Skipped(paths[r["index"]], r["reason"]) for r in rows if r["reason"] is not None]
    return [replace(Part.from_json(t), index=i) for i, t in enumerate(texts)], skipped
