"""What a task does: it reads pieces of a source, encodes their samples, and writes data files that no commit names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.samples.task_samples import SampleFiles, UncommittedSamples
from tensorlake_spark.datasets.sources.sample_source import Piece, Sample, SampleSource
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.snapshot import Snapshot
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
class Written(SampleFiles):
    """What came of a share.

    Attributes
    ----------
    pieces : list of [str, str]
        Names and marks of its pieces.
    bad : list of str
        Why samples were left out, the first thousand.
    left_out : int
        How many were.
    """

    pieces: list[list[str]] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    left_out: int = 0

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
    snapshot : Snapshot
        A version of it.
    schema : SampleSchema
        Its columns.
    skip_bad : bool
        Whether bad samples are left out and told.
    mark : str
        What the names of its files begin with.
    folder : str or None
        Where each share that is done leaves a note, for ``resume``.
    """

    source: SampleSource
    storage: Storage
    snapshot: Snapshot
    schema: SampleSchema
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
        with UncommittedSamples(self.storage, self.snapshot, self.schema, self.mark) as out:
            for piece, first in share.pieces:
                at, seen = first, 0
                on_bad = done.tell if self.skip_bad else None
                for given in _batches(self.source.samples(piece, on_bad)):
                    if seen + len(given) > piece.most:
                        raise InvalidSampleError(
                            f"{piece.name} has more than {piece.most} samples, which it had when the job began; "
                            "leave its files alone, and run the job again"
                        )
                    at += self._add(out, given, at, seen, piece, done)
                    seen += len(given)
                done.pieces.append([piece.name, piece.mark])
                done.samples += at - first
                done.end = max(done.end, at)
            out.finish(done)
        return done

    def _add(
        self, out: UncommittedSamples, given: list[Sample], sid: int, first: int, piece: Piece,
        done: Written,
    ) -> int:  # fmt: skip
        """Write samples, with ``skip_bad`` those that fit, and return how many."""
        columns, count = self._columns(given), len(given)
        try:
            if self.skip_bad and out.has_parts(columns, first):
                out.check(columns, first, count)  # before a part of a bad sample is written
            out.add(columns, sid, first, count)
        except InvalidSampleError as error:
            if not self.skip_bad:
                raise type(error)(f"{piece.name}: {error}") from error
            good = list(self._good(out, given, first, piece, done))
            count = len(good)
            if good:
                out.add(self._columns(good), sid, first, count)
        return count

    def _good(
        self, out: UncommittedSamples, given: list[Sample], first: int, piece: Piece, done: Written
    ) -> Iterator[Sample]:
        for number, sample in enumerate(given, first):
            try:
                out.check(self._columns([sample]), number, 1)
            except InvalidSampleError as error:
                done.tell(InvalidSampleError(f"{piece.name}: {error}"))
            else:
                yield sample

    def _columns(self, samples: list[Sample]) -> dict[str, list[Any]]:
        return {name: [sample[name] for sample in samples] for name in self.source.schema}


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
