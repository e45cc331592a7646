"""A dataset becomes what it was at a version: its files come back, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    inner_storage,
    inner_tables,
    named,
    part_of,
    pinned,
    stored_names,
    unique_name,
)
from tensorlake_spark.datasets.apart.pinning import Written, pins
from tensorlake_spark.datasets.maintenance.inner_versions import restore_inner
from tensorlake_spark.datasets.samples.appending import kept_counter
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import Change, StaleChange, check_removable, commit
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.direct_commit import may_commit
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import FILES_KEPT
from tensorlake_spark.delta.samples.log_entries import log_entries
from tensorlake_spark.delta.samples.samples_table import table_schema
from tensorlake_spark.delta.store.s3_objects import check_client
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    InvalidOptionError,
    MissingDataError,
    UnsupportedFeatureError,
    outrun,
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
        If a vacuum deleted what it needs, also a deletion vector; nothing is committed then.
    UnsupportedFeatureError
        If files with deletion vectors come back or leave, and lie in another object store than S3, or the table has no
        deletion vectors any more.
    MissingDependencyError
        If such files lie on S3, and boto3 is not installed.
    ConcurrentWriteError
        If other writers won every attempt.
    """
    old = Snapshot.open(storage, version, kind=SAMPLES)
    _check_there(old)
    parts = {folder: _inner(old, folder, number) for folder, number in inner_tables(old).items()}
    before = _entries(old)
    now = Snapshot.newest(storage, SAMPLES)
    now.check_writable()
    _check_vectors(now, old, before)
    check_removable(now, _leaving(now, before, now.vectors(now.files.path)))
    seen: dict[str, int] = {}  # the pins of parts as they were when these were compared
    written: dict[str, Written] = {}
    for _ in range(ATTEMPTS):
        for folder, inner in parts.items():
            pin = pinned(now, folder)
            # What another writer has pinned since is taken back, too; if it follows ours, `pins` says so.
            if pin is not None and seen.get(folder) != pin and folder not in written:
                seen[folder] = pin
                done = restore_inner(old, folder, inner)
                if done is not None:
                    written[folder] = done
        change = _change(now, old, before, [*written.values()])
        if not (change.adds or change.removes or change.schema or change.counters):
            return now
        still = {part_of(folder): (pin, pin) for folder, pin in seen.items()}
        change = replace(change, counters={**still, **change.counters})
        try:
            return commit(storage, change)
        except StaleChange as stale:
            now = stale.snapshot
    raise outrun(storage.uri, ATTEMPTS)


def _entries(old: Snapshot) -> dict[str, DataFile]:
    """Return the files of a version, each with its deletion vector if it has one."""
    found = log_entries(old)
    vectors = old.vectors([*found])
    return {path: replace(file, vector=vectors.get(path)) for path, file in found.items()}


def _check_vectors(now: Snapshot, old: Snapshot, before: Mapping[str, DataFile]) -> None:
    """Raise if files would come back with deletion vectors, and a commit cannot say so."""
    has = now.vectors(now.files.path)
    live = set(now.files.path)
    marked = [
        path
        for path, file in before.items()
        if file.vector and not (path in live and has.get(path) == file.vector)
    ]
    if not marked:
        return
    if "deletionVectors" not in now.reader_features or not may_commit(now.storage):
        why = "on S3 and on a local disk only"
        if "deletionVectors" not in now.reader_features:
            why = "only while the table has the feature deletionVectors, which was dropped since"
        raise UnsupportedFeatureError(
            f"version {old.version} of {now.storage.uri} has {len(marked)} files with deletion vectors, such as "
            f"{marked[0]}, which this package can bring back {why}; RESTORE TABLE ... TO VERSION AS OF of Spark may, "
            "without what was replaced in apart columns and tiles since"
        )
    if not now.storage.is_local:
        check_client()


def _change(
    now: Snapshot, old: Snapshot, before: dict[str, DataFile], written: list[Written]
) -> Change:
    """Return what leads from one version to the files and columns of another."""
    live = set(now.files.path)
    vectors = now.vectors(now.files.path)
    removes = _leaving(now, before, vectors)
    gone = {*removes}
    columns = _columns(now, old)
    schema = None if now.schema.equals(columns, check_metadata=True) else table_schema(columns)
    return Change(
        {},
        [file for path, file in before.items() if path not in live or path in gone],
        removes,
        "restore",
        counters={**(kept_counter(now) if removes else {}), **pins(now.storage, now, written)},
        schema=schema,
        # Where all files are others, deltalake can write the former columns.
        is_whole=schema is not None and bool(live) and live == gone,
        kind=SAMPLES,
        vectors={path: vectors[path] for path in removes if path in vectors},
    )


def _columns(now: Snapshot, old: Snapshot) -> pa.Schema:
    """Return the columns of an old version, in which no apart column that was empty gets the values of later ones.

    The log names its table for ever. So the column gets parts of another name, of which there are none.
    """
    names, latest = stored_names(old.schema), stored_names(now.schema)
    others = {}
    for name, kind in SampleSchema.from_arrow(old.schema).items():
        folder = folder_of(names[name])
        if kind.apart and pinned(old, folder) is None and pinned(now, folder) is not None:
            known = latest.get(name)
            if known is None or pinned(now, folder_of(known)) is not None:
                known = unique_name(name)
            others[name] = known
    return named(old.schema, others)


def _leaving(
    now: Snapshot, before: Mapping[str, DataFile], vectors: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return the files that leave: those that were not there, and those that come back with other rows marked."""
    return [
        path
        for path in now.files.path
        if path not in before or vectors.get(path) != before[path].vector
    ]


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
