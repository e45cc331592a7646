"""How full arrays are, by a sample of their bands that executors read before the write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.spark.cluster.tasks import cores_of, numbers, share
from tensorlake_spark.spark.ingest.arrays.array_discovery import Part
from tensorlake_spark.spark.ingest.arrays.array_slabs import slabs_of
from tensorlake_spark.spark.ingest.source_files import carried
from tensorlake_spark.writing.source import ArraySource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BANDS = 8
"""So many bands are read, of files and of places in them that lie evenly; a band has about 16 MiB."""


def sample_density(session: SparkSession, parts: Sequence[Part], channels_first: bool) -> float:
    """Return the share of elements that are not zero, by a sample that executors read; 1 if none can be read.

    Parameters
    ----------
    session : SparkSession
        Whose executors read.
    parts : sequence of Part
        The arrays, at least one.
    channels_first : bool
        As the job reads colour images.
    """
    rows = [(part.to_json(), number) for part, number in chosen_bands(parts)]

    def looked(some: Sequence[tuple[str, int]]) -> Iterator[pa.RecordBatch]:
        for text, number in some:
            part = Part.from_json(text)
            bands, one = part.tiling(()), range(number, number + 1)
            with suppress(InvalidTensorError):  # the write tells of a damaged file
                for _, slab in slabs_of(part, 0, 0, bands, one, channels_first):
                    density = ArraySource(slab, slab.shape, slab.dtype).density()
                    yield pa.RecordBatch.from_pydict(
                        {"nonzero": [density * slab.size], "size": [slab.size]}
                    )

    count = min(len(rows), cores_of(session))
    make = carried(share(rows, count, looked))
    found = numbers(session, count).mapInArrow(make, "nonzero double, size bigint").collect()
    size = sum(row["size"] for row in found)
    return sum(row["nonzero"] for row in found) / size if size else 1.0


def chosen_bands(parts: Sequence[Part]) -> list[tuple[Part, int]]:
    """Return which bands are read: of some parts that lie evenly, of each some that lie evenly."""
    some = [parts[k] for k in _evenly(len(parts), BANDS)]
    each = BANDS // len(some)
    return [(part, k) for part in some for k in _evenly(part.tiling(()).count, each)]


def _evenly(count: int, most: int) -> list[int]:
    """Return at most so many of the numbers below a count, in the middle of equal shares.

    Examples
    --------
    >>> _evenly(3, 16), _evenly(100, 4)
    ([0, 1, 2], [12, 37, 62, 87])
    """
    chosen = min(count, most)
    return [(2 * k + 1) * count // (2 * chosen) for k in range(chosen)]
