"""A dataset becomes what it was at a version: its files come back, in one commit."""

from __future__ import annotations

from collections.abc import Mapping

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, inner_storage, inner_tables
from tensorlake_spark.datasets.apart.pinning import Written, pins
from tensorlake_spark.datasets.maintenance.inner_versions import restore_inner
from tensorlake_spark.delta.log.commit import Change, StaleChange, check_removable, commit
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import FILES_KEPT
from tensorlake_spark.delta.samples.log_entries import log_entries
from tensorlake_spark.delta.samples.samples_table import table_schema
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    MissingDataError,
    UnsupportedFeatureError,
)

ATTEMPTS = 20


def restore(storage: Storage, version: int | str) -> Snapshot:
    """Make a dataset what it was at a version, and return the version that is so.

    Numbers of samples that were given since are not given again.

    Raises
    ------
    InvalidOptionError
        If the log does not have that version.
    MissingDataError
        If a vacuum deleted what it needs; nothing is committed then.
    UnsupportedFeatureError
        If one of its files has a deletion vector, or the files that have one now lie in another object store
        than S3.
    ConcurrentWriteError
        If other writers won every attempt.
    """
    old = Snapshot.open(storage, version, kind=SAMPLES)
    _check_there(old)
    parts = {folder: _inner(old, folder, number) for folder, number in inner_tables(old).items()}
    before = log_entries(old)
    marked = [path for path in before if old.kept(path) is not None]
    if marked:
        raise UnsupportedFeatureError(
            f"version {old.version} of {storage.uri} has {len(marked)} files with deletion vectors, such as "
            f"{marked[0]}, which this package cannot write; RESTORE TABLE ... TO VERSION AS OF of Spark does"
        )
    now = Snapshot.newest(storage, SAMPLES)
    now.check_writable()
    check_removable(now, _leaving(now, before))
    written = [
        done
        for folder, inner in parts.items()
        if (done := restore_inner(old, folder, inner)) is not None
    ]
    for _ in range(ATTEMPTS):
        change = _change(now, old, before, written)
        if not (change.adds or change.removes or change.schema or change.counters):
            return now
        try:
            return commit(storage, change)
        except StaleChange as stale:
            now = stale.snapshot
    raise ConcurrentWriteError(
        f"other writers of {storage.uri} won {ATTEMPTS} times in a row; nothing was committed, try again later"
    )


def _change(
    now: Snapshot, old: Snapshot, before: dict[str, DataFile], written: list[Written]
) -> Change:
    """Return what leads from one version to the files and columns of another."""
    live = set(now.files.path)
    removes = _leaving(now, before)
    gone = {*removes}
    schema = (
        None if now.schema.equals(old.schema, check_metadata=True) else table_schema(old.schema)
    )
    return Change(
        {},
        [file for path, file in before.items() if path not in live or path in gone],
        removes,
        "restore",
        counters=pins(now.storage, now, written),
        schema=schema,
        # Where all files are others, deltalake can write the former columns.
        is_whole=schema is not None and bool(live) and live == gone,
        kind=SAMPLES,
        vectors=now.vectors(removes),
    )


def _leaving(now: Snapshot, before: Mapping[str, DataFile]) -> list[str]:
    """Return the files that leave: those that were not there, and those that come back with all of their rows."""
    return [path for path in now.files.path if path not in before or now.kept(path) is not None]


def _inner(old: Snapshot, folder: str, number: int) -> Snapshot:
    """Return a version of an inner table whose files are all there."""
    kind = TENSORS if folder == TENSORS_FOLDER else SAMPLES
    try:
        found = Snapshot.open(inner_storage(old.storage, folder), number, kind=kind)
    except InvalidOptionError as error:
        raise MissingDataError(
            f"version {old.version} of {old.storage.uri} cannot be restored: {error}"
        ) from error
    _check_there(found)
    return found


def _check_there(snapshot: Snapshot) -> None:
    """Raise MissingDataError if a data file of a version is not in the store any more."""
    paths = snapshot.files.path
    with reaching(snapshot.storage):
        found = snapshot.storage.modified(paths)
    gone = [path for path, time in zip(paths, found, strict=True) if time is None]
    if gone:
        raise MissingDataError(
            f"version {snapshot.version} of {snapshot.storage.uri} cannot be restored: {len(gone)} of its data files "
            f"were deleted, such as {gone[0]}. {FILES_KEPT}"
        )
