"""Housekeeping of a table."""

from __future__ import annotations

import datetime as dt
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any
from urllib.parse import unquote

from tensorlake_spark.delta.files import catalog_file, digest_file
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.files.table_folder import (
    empty_commits,
    everything,
    inner_tables,
    linked_folders,
    vacuumed,
)
from tensorlake_spark.delta.log import direct_commit
from tensorlake_spark.delta.log.actions import LOG
from tensorlake_spark.delta.log.replaying.past_files import past_files
from tensorlake_spark.delta.log.requirements import VACUUM_CHECK
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.tags import tags
from tensorlake_spark.delta.log.time_travel import no_longer
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.storage import Storage, is_full, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    FormatError,
    InvalidOptionError,
    StorageError,
)
from tensorlake_spark.threads import io_threads

logger = logging.getLogger("tensorlake_spark")

MOST_HOURS = 24 * 365 * 1000
"""The longest retention that a call may ask for, a thousand years: dates do not go much further."""

_SHARE = 1024  # files that a task deletes: a second's work in a store, more than its start

_FEW = 32  # versions that deltalake keeps: it reads the log for each, the longer the later

_VECTOR = re.compile(r"deletion_vector_.*\.bin")


def check_retention(hours: Any) -> float | None:
    """Return a retention as a float, for dates take no number of NumPy; None is the table's own.

    Raises
    ------
    InvalidOptionError
        If it is not a number of hours, or too many.

    Examples
    --------
    >>> check_retention(24)
    24.0
    """
    if hours is None:
        return None
    is_number = isinstance(hours, Real) and not isinstance(hours, bool)
    if not is_number or not 0 <= hours <= MOST_HOURS:
        raise InvalidOptionError(
            f"retention_hours is {hours!r}; it is a number of hours from 0 to {MOST_HOURS}, or None for the "
            "table's own retention"
        )
    return float(hours)


def vacuum(
    snapshot: Snapshot,
    retention_hours: float | None,
    dry_run: bool,
    run: Run = run_here,
    keep: Sequence[int] = (),
) -> list[str]:
    """Delete files that no version within the retention needs; see `TensorLake.vacuum`.

    Files of the versions in `keep` stay, as those of tagged versions do. Commits that a killed writer left
    unfinished go too. What an ingestion left to be resumed goes when it is older, a week where `retention_hours` is
    None. deltalake counts in whole hours, so a part of one counts as one.

    deltalake deletes, and puts two entries into the history: it gives S3 a thousand names in one request, where a task
    of `run` needs three requests a name. It cannot where the table has deletion vectors, or where another table or a
    link to a folder lies in its folder, and it takes minutes to keep hundreds of versions. Then tasks delete in a store
    what was found here, and the history has no entry. They do so too where another writer replaces files meanwhile:
    deltalake takes this for a conflict with its entries, and gives up. It also gives up on a full disk, which has no
    space for the entries and needs the vacuum most.
    """
    retention_hours = check_retention(retention_hours)
    storage = snapshot.storage
    if VACUUM_CHECK in snapshot.reader_features:
        snapshot.check_writable()
    _ = snapshot.files  # refuses names by which deltalake would not know a live file, and delete it
    files = everything(storage)
    for path, text in empty_commits(files).items():
        raise FormatError(f"nothing was deleted in {storage.uri}, because of {path}: {text}")
    inner = (*inner_tables(files), *linked_folders(storage, files))
    vectors = "deletionVectors" in snapshot.reader_features
    kept = _kept(snapshot, keep)
    is_deltalakes = not (vectors or inner or len(kept.versions) > _FEW)
    taken: list[str] = []
    try:
        named = _by_deltalake(snapshot, retention_hours, dry_run or not is_deltalakes, kept)
    except (ConcurrentWriteError, StorageError) as error:
        if isinstance(error, StorageError) and not is_full(error):
            raise
        # Its second entry comes when the files are deleted, so that they may be gone.
        is_deltalakes = False
        snapshot = Snapshot.newest(storage, kind=None)
        kept = _kept(snapshot, keep)
        named = _by_deltalake(snapshot, retention_hours, True, kept)
        left = {file.path for file in everything(storage)}
        taken = [f.path for f in files if f.path not in left and not f.path.startswith("_")]
    # deltalake also names files that the log has removed and an earlier vacuum deleted: by their whole paths.
    starts = tuple(f"{start}/" for start in (storage.uri, storage.place[1]))
    paths = dict.fromkeys(_without(name, starts) for name in named)
    before = {file.path for file in files}
    gone = [name for name in paths if name in before or unquote(name) in before]
    if dry_run or not is_deltalakes:
        gone = [name for name in gone if kept.paths.isdisjoint((name, unquote(name)))]
    if not is_deltalakes:
        # deltalake takes the files of deletion vectors for orphans, even of those that are in use, and so
        # it does those of another table.
        gone = [name for name in gone if not _is_kept(name, inner)]
        if not dry_run:
            _delete(storage, gone, run)
        gone = [*dict.fromkeys([*taken, *gone])]
    if not dry_run:
        digest_file.forget(snapshot)
    age = snapshot.retention if retention_hours is None else dt.timedelta(hours=retention_hours)
    return [
        *gone,
        *staging.expire(storage, retention_hours, dry_run),
        *direct_commit.expire(storage, age, dry_run),
        *catalog_file.expire(storage, age, dry_run),
    ]


def _by_deltalake(
    snapshot: Snapshot, retention_hours: float | None, dry_run: bool, kept: _Kept
) -> list[str]:
    """Have deltalake delete files, or name them: then it names those of kept versions too."""
    hours = None if retention_hours is None else math.ceil(retention_hours)
    with reaching(snapshot.storage):
        return vacuumed(snapshot, hours, dry_run, [] if dry_run else kept.versions)


def _without(name: str, starts: Sequence[str]) -> str:
    """Return a path without the folder of its table."""
    return next((name.removeprefix(start) for start in starts if name.startswith(start)), name)


def _delete(storage: Storage, names: list[str], run: Run) -> None:
    """Delete files, in a store by tasks; what is gone already is fine.

    A disk takes the names of one folder out one after the other, 20,000 in less than a second.
    """
    if storage.is_local:
        run = run_here
    shares = [names[i : i + _SHARE] for i in range(0, len(names), _SHARE)]
    for _ in run(partial(_delete_some, storage), shares):
        pass


def _delete_some(storage: Storage, names: list[str]) -> None:
    with reaching(storage):
        list(io_threads().map(storage.delete, names))


def _is_kept(name: str, inner: tuple[str, ...]) -> bool:
    if _VECTOR.fullmatch(name.rsplit("/", 1)[-1]):
        return True
    place = f"{name}/"  # S3 may list a folder as an object
    return any(place.startswith(folder) or folder.startswith(place) for folder in inner)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Versions whose files stay, and these files."""

    versions: list[int]
    paths: set[str]


def _kept(snapshot: Snapshot, keep: Sequence[int]) -> _Kept:
    """Return what is kept: some versions, and those that have a tag.

    A tag whose version the log does not have any more is logged and left out. One whose version is damaged is an error:
    the log may be mended, and the files would be gone by then.
    """
    storage = snapshot.storage
    by_version: dict[int, list[str]] = {}  # each stored view has a tag, and many are of one version
    for name, version in tags(snapshot).items():
        by_version.setdefault(version, []).append(name)
    found = past_files(storage, {*by_version, *keep})
    lost = {version: no_longer(storage, f"version {version}") for version in found.gone}
    for version in found.unread:  # deltalake may know better
        try:
            found.paths.update(Snapshot.open(storage, version, kind=None).files.path)
        except InvalidOptionError as error:
            if version in found.damaged and version in by_version:
                name = by_version[version][0]
                raise FormatError(
                    f"version {version} of {storage.uri}, whose files the tag {name!r} keeps, cannot be read, and "
                    f"nothing was deleted: bring the files of {LOG} back from a backup, or remove the tag ({error})"
                ) from error
            lost[version] = error
    for version, reason in lost.items():
        if version in keep:
            raise reason
        for name in by_version[version]:
            logger.warning("files of tag %r cannot be kept: %s", name, reason)
    return _Kept(sorted({*by_version, *keep} - lost.keys()), found.paths)
