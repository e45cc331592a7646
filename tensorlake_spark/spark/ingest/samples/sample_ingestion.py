"""Files of others to a dataset: executors read and write, the driver commits once."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tensorlake_spark.datasets.apart.inner_tables import stored_names, with_stored_names
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.changes.workers import discard_all_marked
from tensorlake_spark.datasets.samples.appending import commit_files, reserve
from tensorlake_spark.datasets.samples.task_samples import inner_of
from tensorlake_spark.datasets.sources.sample_source import Piece, SampleSource
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.nested import check_links
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import RepeatedBatch, transaction_done
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    FormatError,
    InvalidOptionError,
    TableNotFoundError,
    did_you_mean,
)
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_session
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.cluster.tasks import numbers, share
from tensorlake_spark.spark.ingest.outcome import DONE, PLANNED, REPEATED
from tensorlake_spark.spark.ingest.samples import sample_notes
from tensorlake_spark.spark.ingest.samples.sample_tasks import SampleTask, Share, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STOPPING = 0.5
"""Seconds after which the files of a failed job are deleted again: a task that Spark stops may write until it ends."""

_SHARE_BYTES = (8 << 20, 128 << 20)  # a share has no less, if there is as much, and not much more


@dataclass(frozen=True)
class SampleOptions:
    """How an ingestion goes on.

    Attributes
    ----------
    storage_options : mapping of str to str
        Of the dataset's store.
    dry_run : bool
        Only say what would be done.
    resume : bool
        Keep what is completed if the job fails, and go on from what an earlier run kept; a job whose files are all
        in the dataset changes nothing.
    skip_bad : bool
        Leave out samples that are bad, and tell them.
    apart : sequence of str
        Columns that get a table of their own, if the dataset is not there yet.
    batch : (str, int), optional
        Name of a series of batches, and the number of this one: if it or a later one is in the dataset, nothing
        changes, whatever the source has now.
    """

    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    dry_run: bool = False
    resume: bool = False
    skip_bad: bool = False
    apart: Sequence[str] = ()
    batch: tuple[str, int] | None = None


@dataclass(frozen=True)
class SampleOutcome:
    """What came of an ingestion.

    Attributes
    ----------
    status : str
        ``"done"``, ``"repeated"`` (it was there) or ``"planned"``.
    schema : SampleSchema
        The columns.
    pieces : int
        In how many pieces the source is read.
    source_bytes : int
        Its bytes, roughly.
    samples : int
        How many were added.
    left_out : int
        How many bad ones were not.
    bad : tuple of str
        Why, of the first ones.
    reused : int
        Pieces that an earlier run had written.
    version : int or None
        Of the dataset afterwards; None of a plan.
    """

    status: str
    schema: SampleSchema
    pieces: int
    source_bytes: int
    samples: int = 0
    left_out: int = 0
    bad: tuple[str, ...] = ()
    reused: int = 0
    version: int | None = None


_USUAL = SampleOptions()


def ingest_samples(
    session: SparkSession, source: SampleSource, uri: str, options: SampleOptions = _USUAL
) -> SampleOutcome:
    """Add all samples of a source to a dataset, in one commit; the dataset is created where there is none.

    Parameters
    ----------
    session : SparkSession
        Whose executors read the source, and write the dataset's files.
    source : SampleSource
        From `source_of`.
    uri : str
        The dataset.
    options : SampleOptions
        How.

    Raises
    ------
    InvalidSampleError
        At the first bad sample, without ``skip_bad``; nothing is committed then.
    InvalidOptionError
        If there are no samples, or with ``skip_bad`` no good ones.
    FormatError
        If the dataset has other columns.
    """
    settings = settings_of_session(session)
    storage = Storage(uri, completed(options.storage_options, settings, uri))
    folder = source.folder
    source = replace(
        source, folder=replace(folder, options=completed(folder.options, settings, folder.uri))
    )
    with plain_errors():
        pieces = source.pieces()
        schema = _with_apart(source.schema, options.apart)
        outcome = SampleOutcome(PLANNED, schema, len(pieces), sum(p.nbytes for p in pieces))
        if not pieces:
            raise InvalidOptionError(f"{source.folder.uri} has no samples")
        snapshot = _opened(storage)
        if snapshot is not None:
            known = _checked(snapshot, schema, storage, source.names_classes)
            outcome = replace(outcome, schema=known)
        names = {} if snapshot is None else stored_names(snapshot.schema)
        notes = sample_notes.folder_of(
            source, outcome.schema, names, pieces, options.skip_bad, options.batch
        )
        job = _Job(session, source, storage, outcome, pieces, notes, names, options)
        return job.planned(snapshot) if options.dry_run else job.done(snapshot)


def repeated_batch(session: SparkSession, uri: str, options: SampleOptions) -> SampleOutcome | None:
    """Return what a dataset is if it has a batch, or a later one of its name, already; else None.

    No source is read for it: who repeats a batch need not keep its files.
    """
    if options.batch is None:
        return None
    settings = settings_of_session(session)
    snapshot = _opened(Storage(uri, completed(options.storage_options, settings, uri)))
    if snapshot is None or not transaction_done(snapshot, options.batch):
        return None
    return SampleOutcome(
        REPEATED, SampleSchema.from_arrow(snapshot.schema), 0, 0, version=snapshot.version
    )


@dataclass(frozen=True)
class _Job:
    session: SparkSession
    source: SampleSource
    storage: Storage
    outcome: SampleOutcome
    pieces: Sequence[Piece]
    notes: str
    names: Mapping[str, str]
    options: SampleOptions

    @property
    def transaction(self) -> tuple[str, int] | None:
        if self.options.batch is not None or not self.options.resume:
            return self.options.batch
        return sample_notes.transaction_of(self.notes, self.pieces)

    def planned(self, snapshot: Snapshot | None) -> SampleOutcome:
        """Return what would be done."""
        if snapshot is None:
            return self.outcome
        if transaction_done(snapshot, self.transaction):
            return replace(self.outcome, status=REPEATED, version=snapshot.version)
        if not self.options.resume:
            return self.outcome
        found = sample_notes.earlier(snapshot, self.notes, self.names, self.pieces) or []
        return replace(self.outcome, reused=sum(len(one.pieces) for one in found))

    def done(self, snapshot: Snapshot | None) -> SampleOutcome:
        """Write what is not there, and commit all of it."""
        if snapshot is None:
            check_links(self.outcome.schema)
            columns = with_stored_names(self.outcome.schema.to_arrow())
            snapshot = create_samples_table(self.storage, columns)
            _checked(snapshot, self.outcome.schema, self.storage)
        if transaction_done(snapshot, self.transaction):
            sample_notes.forget(self.storage, self.notes)
            return replace(self.outcome, status=REPEATED, version=snapshot.version)
        snapshot.check_writable()
        resume = self.options.resume
        found = (
            sample_notes.earlier(snapshot, self.notes, self.names, self.pieces) if resume else []
        )
        if found is None:
            sample_notes.forget(self.storage, self.notes)
            found = []
        known = {name for one in found for name, _ in one.pieces}
        left = [piece for piece in self.pieces if piece.name not in known]
        mark = f"{uuid.uuid4().hex[:8]}-"
        parts = PartsWriter(self.storage, snapshot, self.outcome.schema)
        discard = partial(discard_all_marked, self.storage, parts.folders(), mark)
        try:
            fresh, reserved = self._written(snapshot, left, mark) if left else ([], None)
            version = self._committed(found, fresh, reserved, parts)
        except RepeatedBatch as repeated:  # another run of the job was faster
            discard()
            if resume:
                sample_notes.forget(self.storage, self.notes)
            return replace(self.outcome, status=REPEATED, version=repeated.snapshot.version)
        except BaseException:
            if not resume:
                discard()
                time.sleep(_STOPPING)
                discard()
            raise
        discard()  # what tasks wrote that Spark began twice
        if resume:
            sample_notes.forget(self.storage, self.notes)
        every = [*found, *fresh]
        return replace(
            self.outcome,
            status=DONE,
            samples=sum(one.samples for one in every),
            left_out=sum(one.left_out for one in every),
            bad=tuple(said for one in every for said in one.bad),
            reused=len(known),
            version=version,
        )

    def _written(
        self, snapshot: Snapshot, left: Sequence[Piece], mark: str
    ) -> tuple[list[Written], tuple[int, int]]:
        """Have executors write pieces; return what came of them, and the numbers that were reserved."""
        total = sum(piece.most for piece in left)
        snapshot, first = reserve(self.storage, snapshot, total)
        shares = shares_of(left, first, self.session.sparkContext.defaultParallelism)
        task = SampleTask(
            self.source,
            self.storage,
            snapshot,
            self.outcome.schema,
            self.options.skip_bad,
            mark,
            self.notes if self.options.resume else None,
        )
        made = share(shares, len(shares), task)
        rows = numbers(self.session, len(shares)).mapInArrow(made, "written string").collect()
        return [Written(**json.loads(row.written)) for row in rows], (first, first + total)

    def _committed(
        self,
        found: Sequence[Written],
        fresh: Sequence[Written],
        reserved: tuple[int, int] | None,
        parts: PartsWriter,
    ) -> int:
        files = [file for one in [*found, *fresh] for file in one.data_files()]
        if not files:
            raise InvalidOptionError(
                f"{self.source.folder.uri} has no good sample; nothing was committed"
            )
        back = None
        if reserved is not None:
            back = reserved[1], max([reserved[0], *(one.end for one in fresh)])
        tiles, apart = inner_of([*found, *fresh])
        if found:
            self._check_uncommitted(found)
        if self.options.resume:
            sample_notes.announce(self.storage, self.notes, self.pieces)
        snapshot = commit_files(
            self.storage,
            files,
            "ingest",
            [*tiles, *parts.committed(apart, again=bool(found))],
            back,
            self.transaction,
            self.outcome.schema,
            parts.names,
        )
        return int(snapshot.version)

    def _check_uncommitted(self, found: Sequence[Written]) -> None:
        """Raise ConcurrentWriteError if what earlier runs had written is gone, or was committed meanwhile."""
        newest = Snapshot.newest(self.storage, SAMPLES)
        if transaction_done(newest, self.transaction):
            return  # the commit says so
        there = sample_notes.earlier(newest, self.notes, self.names, self.pieces) or []
        if any(one not in there for one in found):
            raise ConcurrentWriteError(
                f"what an earlier run had written to {self.storage.uri} is committed, or gone: another run of this "
                "job, or a vacuum, took it meanwhile; nothing was committed, run the job again"
            )


def shares_of(pieces: Sequence[Piece], first: int, cores: int) -> list[Share]:
    """Return pieces in shares of tasks, neighbours together, each with the first number of its samples.

    A task writes files of its own, so it reads 128 MiB where there is as much; less where cores would be idle.

    Examples
    --------
    >>> made = shares_of([Piece(str(n), "", (), nbytes=6 << 20, rows=10) for n in range(4)], 100, 2)
    >>> [[(piece.name, at) for piece, at in share.pieces] for share in made]
    [[('0', 100), ('1', 110)], [('2', 120), ('3', 130)]]
    """
    least, most = _SHARE_BYTES
    wanted = min(max(sum(piece.nbytes for piece in pieces) // (2 * cores), least), most)
    shares: list[Share] = []
    held: list[tuple[Piece, int]] = []
    nbytes = 0
    for piece in pieces:
        held.append((piece, first))
        first += piece.most
        nbytes += piece.nbytes
        if nbytes >= wanted:
            shares.append(Share(tuple(held)))
            held, nbytes = [], 0
    return [*shares, Share(tuple(held))] if held else shares


def _with_apart(columns: Mapping[str, Type], names: Sequence[str]) -> SampleSchema:
    """Return columns, some of which get a table of their own."""
    for name in names:
        if name not in columns:
            raise InvalidOptionError(
                f"the source has no column {name!r} to keep apart{did_you_mean(name, columns)}; it has "
                f"{', '.join(columns)}"
            )
    apart = {name: replace(columns[name], apart=True) for name in names}
    return SampleSchema({**columns, **apart})


def _opened(storage: Storage) -> Snapshot | None:
    try:
        return Snapshot.open(storage, kind=SAMPLES)
    except TableNotFoundError:
        return None


def _checked(
    snapshot: Snapshot, schema: SampleSchema, storage: Storage, names_classes: bool = False
) -> SampleSchema:
    """Return the columns of a dataset, if those of the source are among them, apart or not.

    Where the source names classes, the dataset may have more of them.

    Raises
    ------
    FormatError
        If they are not, or differ.
    """
    known = SampleSchema.from_arrow(snapshot.schema)
    hint = "; it has no samples: if a job that failed left it, delete it"
    remedy = "" if len(snapshot.files.path) else hint
    for name, kind in schema.items():
        said = _difference(known, name, kind, names_classes)
        if said is not None:
            raise FormatError(f"the dataset at {storage.uri} {said}{remedy}")
    return known


def _difference(known: SampleSchema, name: str, kind: Type, names_classes: bool) -> str | None:
    """Return in what columns of a dataset differ from a column of a source, None if it fits."""
    if name not in known:
        return f"has no column {name!r}, which the source has; it has {', '.join(known)}"
    there = known[name]
    if kind.apart and not there.apart:
        return f"has column {name!r} not apart, and that stays so; leave apart out"
    if names_classes and isinstance(kind, ClassLabel) and isinstance(there, ClassLabel):
        new = [one for one in kind.names if one not in there.names]
        if new:
            return (
                f"has no class {new[0]!r:.80} in column {name!r}, which the source has; its classes are "
                f"{', '.join(there.names):.400}, and stay so: leave the files out, or make a new dataset"
            )
        kind = replace(kind, names=there.names)
    if there != replace(kind, apart=there.apart):
        return f"has column {name!r} as {there}, and the source has {kind}"
    return None
