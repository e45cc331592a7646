"""What a task does: it reads pieces of a source, encodes their samples, and writes data files that no commit names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_encoding import encoded, numbered
from tensorlake_spark.datasets.sources.sample_source import Piece, Sample, SampleSource
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.store.staging import Staging
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidSampleError

_BATCH_ROWS = 512
_BATCH_BYTES = 8 << 20
_TOLD = 1000
"""Bad samples of a share whose reasons are kept; others are counted."""


@dataclass(frozen=True)
class Share:
    """Pieces that one task reads, with the first number of each one's samples."""

    pieces: tuple[tuple[Piece, int], ...]


@dataclass
class Written:
    """What came of a share.

    Attributes
    ----------
    pieces : list of [str, str]
        Names and marks of its pieces.
    files : list of [str, int, str]
        Its data files: names, bytes and statistics.
    samples : int
        How many it wrote.
    end : int
        The number after the greatest that it used.
    bad : list of str
        Why samples were left out, the first thousand.
    left_out : int
        How many were.
    """

    pieces: list[list[str]] = field(default_factory=list)
    files: list[list[Any]] = field(default_factory=list)
    samples: int = 0
    end: int = 0
    bad: list[str] = field(default_factory=list)
    left_out: int = 0

    def data_files(self) -> list[DataFile]:
        return [DataFile(name, size, statistics) for name, size, statistics in self.files]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def tell(self, error: InvalidSampleError) -> None:
        """Count a sample that is left out."""
        self.left_out += 1
        if len(self.bad) < _TOLD:
            self.bad.append(str(error))


@dataclass(frozen=True)
class SampleTask:
    """What all tasks of a job know.

    Attributes
    ----------
    source : SampleSource
        What is read.
    storage : Storage
        The dataset.
    schema : SampleSchema
        Its columns.
    file_bytes : int
        Target size of a data file.
    skip_bad : bool
        Whether bad samples are left out and told.
    mark : str
        What the names of its files begin with.
    folder : str or None
        Where each share that is done leaves a note, for ``resume``.
    """

    source: SampleSource
    storage: Storage
    schema: SampleSchema
    file_bytes: int
    skip_bad: bool
    mark: str = ""
    folder: str | None = None

    def __call__(self, shares: Sequence[Share]) -> Iterator[pa.RecordBatch]:
        """Write shares, and yield a row for each: what came of it, as JSON."""
        for share in shares:
            text = self.written(share).to_json()
            if self.folder is not None:
                name = hashlib.sha256(text.encode()).hexdigest()[:24]
                Staging(self.storage, self.folder).write(f"share-{name}", text)
            yield pa.RecordBatch.from_pydict({"written": [text]})

    def written(self, share: Share) -> Written:
        """Write one share; its files are deleted again if an error leaves it."""
        done = Written()
        columns = self.schema.to_arrow()
        with SampleWriter(self.storage, columns, self.file_bytes, mark=self.mark) as writer:
            for piece, first in share.pieces:
                at = first
                for rows in self._rows(piece, done):
                    count = len(next(iter(rows.values())))
                    if at + count > first + piece.most:
                        raise InvalidSampleError(
                            f"{piece.name} has more than {piece.most} samples, which it had when the job began; "
                            "leave its files alone, and run the job again"
                        )
                    writer.add(numbered(rows, self.schema, at))
                    at += count
                done.pieces.append([piece.name, piece.mark])
                done.samples += at - first
                done.end = max(done.end, at)
            done.files = [[file.path, file.size, file.stats] for file in writer.finish()]
        return done

    def _rows(self, piece: Piece, done: Written) -> Iterator[dict[str, pa.Array]]:
        """Yield encoded columns of some samples each."""
        on_bad: Callable[[InvalidSampleError], None] | None = done.tell if self.skip_bad else None
        seen = 0
        for samples in _batches(self.source.samples(piece, on_bad)):
            try:
                yield self._encoded(samples, seen)
            except InvalidSampleError as error:
                if not self.skip_bad:
                    raise type(error)(f"{piece.name}: {error}") from error
                good = list(self._good(samples, seen, piece, done))
                if good:
                    yield self._encoded(good, seen)
            seen += len(samples)

    def _encoded(self, samples: Sequence[Sample], first: int) -> dict[str, pa.Array]:
        columns = {name: [sample[name] for sample in samples] for name in self.source.schema}
        return encoded(columns, self.schema, first)

    def _good(
        self, samples: Sequence[Sample], first: int, piece: Piece, done: Written
    ) -> Iterator[Sample]:
        for number, sample in enumerate(samples, first):
            try:
                self._encoded([sample], number)
            except InvalidSampleError as error:
                done.tell(InvalidSampleError(f"{piece.name}: {error}"))
            else:
                yield sample


def _batches(samples: Iterator[Sample]) -> Iterator[list[Sample]]:
    """Yield samples in lists of few bytes."""
    batch: list[Sample] = []
    nbytes = 0
    for sample in samples:
        batch.append(sample)
        nbytes += sum(map(_size, sample.values()))
        if nbytes >= _BATCH_BYTES or len(batch) >= _BATCH_ROWS:
            yield batch
            batch, nbytes = [], 0
    if batch:
        yield batch


def _size(value: Any) -> int:
    """Return roughly how many bytes a value has.

    Examples
    --------
    >>> _size(b"four"), _size([b"two", b"2"]), _size(None)
    (4, 4, 8)
    """
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    return int(getattr(value, "nbytes", 8))
