"""Purge of samples: they leave the newest version, every file of the old ones, and all tables inside the dataset."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.audit import hashing
from tensorlake_spark.audit.byte_search import Probes, sha256_of
from tensorlake_spark.audit.files_of_tensor import Traces
from tensorlake_spark.audit.purge import doubts
from tensorlake_spark.audit.receipt import PurgedFile, PurgeReceipt, WrittenFile, ranges_text
from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, inner_storage, pinned
from tensorlake_spark.datasets.apart.pinning import Written, changes_in, settled
from tensorlake_spark.datasets.maintenance.kept_versions import inner_files, pins_of, tags_of
from tensorlake_spark.datasets.maintenance.purged_rows import SampleRows, TileRows
from tensorlake_spark.datasets.maintenance.purged_samples import chosen
from tensorlake_spark.datasets.samples.appending import commit_files, kept_counter
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.log.actions import commit_name, commit_times, read_actions
from tensorlake_spark.delta.log.commit import Change, StaleChange, check_removable, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SORTED, SampleWriter
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.paths import path_of
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    CorruptDataError,
    TableNotFoundError,
    outrun,
)
from tensorlake_spark.lake.lake import TensorLake

Array = np.ndarray[Any, Any]

ATTEMPTS = 20
_UNDONE = "not everything was purged, run it again"

_RUN_BYTES = 16 << 20  # that are written anew at a time, about


@dataclass(slots=True)
class _Table:
    """A table of the dataset: its own, whose folder is empty, or one inside it.

    Attributes
    ----------
    folder : str
        Where it lies in the dataset.
    traces : Traces
        What is known of its files.
    replaced : tuple of str
        Live files that held something.
    sizes : int
        Their bytes.
    written : tuple of str
        What came in their stead.
    """

    folder: str
    traces: Traces[SampleRows] | Traces[TileRows]
    replaced: tuple[str, ...] = ()
    nbytes: int = 0
    written: tuple[str, ...] = ()

    @property
    def storage(self) -> Storage:
        return self.traces.storage

    @property
    def kind(self) -> str:
        return TENSORS if self.folder == TENSORS_FOLDER else SAMPLES

    def newest(self) -> Snapshot:
        return Snapshot.open(self.storage, kind=self.kind)

    def named(self, path: str) -> str:
        return f"{self.folder}/{path}" if self.folder else path


def purge(
    storage: Storage,
    sids: Any,
    where: str | None,
    now: bool,
    dry_run: bool,
    run: Run = run_here,
) -> PurgeReceipt:
    """Remove samples for good; see `MaintenanceMethods.purge`. `run` reads files."""
    before = Snapshot.open(storage, kind=SAMPLES)
    before.check_writable()
    target = chosen(before, sids, where)
    tagged = tags_of(before)
    tables = _tables(storage, target, run)
    for table in tables:
        table.traces.look()
        _plan(table)
    after = before if dry_run else _remove(before, tables, target)
    retention = dt.timedelta(0) if now else before.retention
    probes = Probes()
    files: list[tuple[_Table, list[PurgedFile]]] = []
    for table in tables:
        if not dry_run:
            table.traces.look()
        due = table.traces.due(table.newest(), retention)
        files.append((table, table.traces.records(due, probes, dry_run)))
    last = _Last() if dry_run else _delete(files, probes)
    lost = _lost(after, files, last.late)
    every = [replace(file, path=table.named(file.path)) for table, some in files for file in some]
    uncertified = {t.named(p): why for t in tables for p, why in t.traces.uncertified.items()}
    written = _written(tables, run)
    reason = doubts(every, len(uncertified), last.late, last.found, dry_run)
    return PurgeReceipt(
        table=storage.uri,
        tensor_id="",
        region=None,
        at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        dry_run=dry_run,
        version_before=before.version,
        version_after=after.version,
        rewritten=tuple(table.named(path) for table in tables for path in table.replaced),
        written=written,
        deleted=tuple(f for f in every if f.due is None and f.path not in last.late),
        pending=tuple(file for file in every if file.due is not None),
        uncertified=tuple(sorted(uncertified.items())),
        staging=(),
        versions_lost=ranges_text(lost),
        tags_lost=tuple(name for name, version in tagged.items() if version in lost),
        searched=last.searched,
        found_elsewhere=last.found,
        verified=not reason,
        reason=reason,
        digest_before=None,
        digest_after=None,
        bytes_replaced=sum(table.nbytes for table in tables),
        bytes_written=sum(file.nbytes for file in written),
        bytes_hashed=0,
        samples=ranges_text(target.tolist()),
    )


def _tables(storage: Storage, sids: Array, run: Run) -> list[_Table]:
    """Return the dataset's own table, and those inside it, pinned or not."""
    out = [_Table("", Traces(storage, SampleRows(sids), run))]
    for folder in sorted(inner_files(storage)):
        inner = inner_storage(storage, folder)
        try:
            Snapshot.open(inner, kind=None)
        except TableNotFoundError:  # its files are orphans of the dataset's own table
            continue
        if folder == TENSORS_FOLDER:
            out.append(_Table(folder, Traces(inner, TileRows(sids), run)))
        else:
            out.append(_Table(folder, Traces(inner, SampleRows(sids), run)))
    return out


def _plan(table: _Table) -> None:
    """Find the live files that hold something; raise before anything is done if they cannot be replaced."""
    live = table.newest()
    table.replaced = tuple(table.traces.held_by(live))
    table.nbytes = sum(int(live.files.size[live.places[path]]) for path in table.replaced)
    check_removable(live, table.replaced)
    damaged = [path for path in live.files.path if path in table.traces.uncertified]
    if damaged:
        raise CorruptDataError(
            f"{table.traces.uncertified[damaged[0]]}; it may hold the samples, and nothing was purged: bring the file "
            "back from a backup, then purge again"
        )


def _remove(before: Snapshot, tables: list[_Table], sids: Array) -> Snapshot:
    """Commit versions without the samples: first of the samples, so that nobody misses their parts."""
    after, pins = before, list[Written]()
    for table in tables:
        known = pinned(after, table.folder) if table.folder else None
        if not table.replaced and not _held_in(table, known):
            continue
        if not table.folder:
            after, table.written = _without(table, partial(Snapshot.newest, table.storage, SAMPLES))
            continue
        if known is None:
            newest = table.newest
        else:
            _pin_undone(before.storage, table)
            newest = partial(settled, before.storage, table.folder)
        if table.kind == TENSORS:
            version, table.written = _without_tiles(table, sids, newest)
        else:
            done, table.written = _without(table, newest)
            version = done.version
        if known is not None:
            pins.append(Written(table.folder, version))
    if pins:
        after = commit_files(before.storage, [], "purge", pins)
    for table in tables:
        left = table.traces.held_by(table.newest())
        if left:
            raise ConcurrentWriteError(
                f"another writer brought {len(left)} files with the samples back, such as {table.named(left[0])}; "
                "purge again"
            )
    return after


def _held_in(table: _Table, version: int | None) -> bool:
    """Whether a version that the dataset names holds something: a purge was killed before it named the next one."""
    if version is None:
        return False
    return bool(table.traces.held_by(Snapshot.open(table.storage, version, kind=table.kind)))


def _pin_undone(storage: Storage, table: _Table) -> None:
    """Undo the change of a killed writer and name the result: undone later, it would bring tiles of samples back."""
    base = settled(storage, table.folder)
    known = pinned(Snapshot.newest(storage, SAMPLES), table.folder)
    if changes_in(Snapshot.open(table.storage, known, kind=table.kind)) != changes_in(base):
        commit_files(storage, [], "purge", [Written(table.folder, base.version, True)])


def _without(table: _Table, newest: Any) -> tuple[Snapshot, tuple[str, ...]]:
    """Commit a version of a table of samples without theirs, and return it with the files that it has instead."""
    storage = table.storage
    target = table.traces.target
    for _ in range(ATTEMPTS):
        now: Snapshot = newest()
        removes = table.traces.held_by(now)
        if not removes:
            return now, ()
        check_removable(now, removes)
        stored = StoredSamples(now)
        adds: list[DataFile] = []
        try:
            for number, file in enumerate(stored.files):
                if file.path in set(removes):
                    adds += _rest(stored, number, target.sids)
            vectors = now.vectors(removes)
            change = Change(
                {}, adds, removes, "purge", counters=kept_counter(now), kind=SAMPLES, vectors=vectors
            )  # fmt: skip
            return commit(storage, change), tuple(file.path for file in adds)
        except StaleChange:
            discard(storage, [file.path for file in adds])
        except BaseException:
            discard(storage, [file.path for file in adds])
            raise
    raise outrun(table.storage.uri, ATTEMPTS, _UNDONE)


def _rest(stored: StoredSamples, number: int, sids: Array) -> list[DataFile]:
    """Write a file anew without some samples, in the order in which they lie."""
    positions = stored.positions_within([number])
    kept = positions[~np.isin(stored.sids_of(positions), sids)]
    step = max(1, _RUN_BYTES * len(positions) // max(1, stored.file_sizes[number]))
    ordered = stored.files[number].path.startswith(SORTED)
    snapshot = stored.snapshot
    with SampleWriter(
        snapshot.storage, stored.schema, 2 * snapshot.file_bytes, in_order=ordered
    ) as writer:
        for start in range(0, len(kept), step):
            writer.add(stored.rows(None, kept[start : start + step], views=True))
        return writer.finish()


def _without_tiles(table: _Table, sids: Array, newest: Any) -> tuple[int, tuple[str, ...]]:
    """Delete the tensors of samples, and return the version without them and what its commit wrote."""
    lake, rows = TensorLake(table.storage), TileRows(sids)
    for _ in range(ATTEMPTS):
        newest()
        try:
            with lake.transaction() as changes:
                gone = [name for name in changes if rows.has(name)]
                for name in gone:
                    changes.delete(name)
            break
        except ConcurrentWriteError:  # an update wrote tiles of such a sample: they go too
            continue
    else:
        raise outrun(table.storage.uri, ATTEMPTS, _UNDONE)
    version = changes.version
    assert version is not None  # nosec B101 # for mypy
    if not gone:
        return version, ()
    with reaching(table.storage):
        said = [*read_actions(table.storage, commit_name(version), ("add.path",))]
    return version, tuple(path_of(action) for _, action in said)


def _lost(
    after: Snapshot, files: Iterable[tuple[_Table, list[PurgedFile]]], late: Collection[str]
) -> set[int]:
    """Return the versions of the dataset that need a deleted file, in whatever table; those in `late` are there."""
    storage = after.storage
    with reaching(storage):
        versions = {version for version in commit_times(storage) if version <= after.version}
    out: set[int] = set()
    inner: dict[str, set[int]] = {}
    for table, some in files:
        paths = [f.path for f in some if f.due is None and table.named(f.path) not in late]
        found = table.traces.versions(paths, table.newest().version) if paths else set[int]()
        if table.folder:
            inner[table.folder] = found
        else:
            out |= found
    for version, pins in pins_of(storage, versions, [*inner]).items():
        if any(pins.get(folder) in lost for folder, lost in inner.items()):
            out.add(version)
    return out


@dataclass(frozen=True, slots=True)
class _Last:
    """What was seen after files had been deleted; nothing in a dry run."""

    late: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    searched: Any = None

    def __post_init__(self) -> None:
        if self.searched is None:
            object.__setattr__(self, "searched", {})


def _delete(files: list[tuple[_Table, list[PurgedFile]]], probes: Probes) -> _Last:
    """Delete the files that are due; then look for the samples, and for their bytes, once more in all tables."""
    late, found = list[str](), list[str]()
    searched: dict[str, int] = {}
    for table, some in files:
        table.traces.delete({file.path for file in some if file.due is None})
        if table.kind == TENSORS:
            newest = table.newest()
            catalog.forget(newest)
            hashing.forget(newest)
    for table, some in files:
        kept = {file.path for file in some if file.due is not None}
        table.traces.look()
        late += [table.named(path) for path in table.traces.held if path not in kept]
        counts, hits = table.traces.search(probes, kept)
        found += map(table.named, hits)
        for name, count in counts.items():
            added = name in ("files", "bytes")
            searched[name] = searched.get(name, 0) + count if added else count
    return _Last(tuple(late), tuple(found), searched)


def _written(tables: list[_Table], run: Run) -> tuple[WrittenFile, ...]:
    out = []
    for table in tables:
        for path, said in run(partial(_sealed, table.storage), table.written):
            if said is not None:  # another writer, and a vacuum, may have been faster
                out.append(WrittenFile(table.named(path), *said))
    return tuple(out)


def _sealed(storage: Storage, path: str) -> tuple[int, str] | None:
    with reaching(storage):
        (info,) = storage.infos([path])
        return (int(info.size), sha256_of(storage, path)) if info.is_file else None
