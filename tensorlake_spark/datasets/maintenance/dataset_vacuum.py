"""Files of a dataset that no version needs any more: of the samples first, then of the tables inside its folder.

A version of an inner table stays that a kept version of the samples names.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections import defaultdict
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, inner_storage, pinned
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.maintenance.kept_versions import (
    inner_files,
    kept_versions,
    pins_of,
    sids_of,
)
from tensorlake_spark.datasets.samples.appending import commit_files
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.table_folder import LOG, everything
from tensorlake_spark.delta.log.commit import Change, StaleChange, commit
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage, is_full, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    StorageError,
    TableNotFoundError,
)
from tensorlake_spark.lake.lake import TensorLake
from tensorlake_spark.upkeep import vacuum as table_vacuum

logger = logging.getLogger("tensorlake_spark")

Array = np.ndarray[Any, Any]


def vacuum(storage: Storage, retention_hours: float | None, dry_run: bool) -> list[str]:
    """Delete files that no kept version needs, and return their paths in the dataset's folder.

    Parameters
    ----------
    storage : Storage
        The dataset.
    retention_hours : float, optional
        Versions that are younger are kept; by default what the table says, a week.
    dry_run : bool
        Whether to delete nothing.
    """
    retention_hours = table_vacuum.check_retention(retention_hours)
    newest = Snapshot.newest(storage, SAMPLES)
    age = newest.retention if retention_hours is None else dt.timedelta(hours=retention_hours)
    until = dt.datetime.now(dt.timezone.utc) - age
    hours = age.total_seconds() / 3600  # the dataset's, also for the tables in it
    folders = inner_files(storage)
    pins = _pins(newest, until, [*folders])
    if pins and not dry_run:  # what no kept version names goes as a whole
        try:
            newest = _without_orphans(newest, [*pins], until)
        except StorageError as error:
            if not is_full(error):
                raise
            # What takes a commit has to wait until the files are deleted that need none.
            logger.warning("parts of deleted samples stay until the next vacuum: %s", error)
        until = dt.datetime.now(dt.timezone.utc) - age
        pins = _pins(newest, until, [*folders])
    out = table_vacuum.vacuum(newest, retention_hours, dry_run)
    for folder in folders:
        inner = inner_storage(storage, folder)
        if folder not in pins:
            out += [f"{folder}/{name}" for name in _delete_all(inner, until, dry_run)]
            continue
        now = Snapshot.open(inner, kind=None)
        gone = table_vacuum.vacuum(now, hours, dry_run, keep=sorted(pins[folder]))
        out += [f"{folder}/{name}" for name in gone]
    return out


def _pins(newest: Snapshot, until: dt.datetime, folders: list[str]) -> dict[str, set[int]]:
    """Return the versions of inner tables that kept versions name, by their folders."""
    out: defaultdict[str, set[int]] = defaultdict(set)
    for said in pins_of(newest.storage, kept_versions(newest, until), folders).values():
        for folder, version in said.items():
            out[folder].add(version)
    return dict(out)


def _without_orphans(newest: Snapshot, folders: list[str], until: dt.datetime) -> Snapshot:
    """Take out of inner tables the parts of samples that no kept version has, and return the version that is so.

    A writer that was killed has left them, or the samples were deleted.
    """
    storage = newest.storage
    sids: Array | None = None
    written: list[Written] = []
    for folder in folders:
        inner = inner_storage(storage, folder)
        try:
            old = Snapshot.open(inner, timestamp=until, kind=None)
        except (TableNotFoundError, InvalidOptionError):  # all of it is younger
            continue
        if sids is None:
            sids = sids_of(storage, kept_versions(newest, until))
        drop = _drop_tensors if folder == TENSORS_FOLDER else _drop_rows
        version = drop(inner, old, sids)
        if version is not None and pinned(newest, folder) is not None:
            written.append(Written(folder, version))
    return commit_files(storage, [], "vacuum", written) if written else newest


def _drop_tensors(inner: Storage, old: Snapshot, sids: Array) -> int | None:
    """Delete the tensors that an old version has and whose samples are none of some; return the version without."""
    orphans = [name for name in catalog.ids(old) if not _is_of(name, sids)]
    if not orphans:
        return None
    try:
        with TensorLake(inner).transaction() as changes:
            gone = [name for name in orphans if name in changes]
            for name in gone:
                changes.delete(name)
    except ConcurrentWriteError:  # somebody took them away: the next vacuum looks again
        return None
    return changes.version if gone else None


def _is_of(name: str, sids: Array) -> bool:
    """Whether the sample of a tensor with tiles is among some."""
    number = name.rpartition("/")[2]
    return not number.isdecimal() or bool(np.isin(int(number), sids))


def _drop_rows(inner: Storage, old: Snapshot, sids: Array) -> int | None:
    """Take files out that an old version has and that hold rows of none of some samples."""
    stored = StoredSamples(old)
    live = {*Snapshot.open(inner, kind=SAMPLES).files.path}
    orphans = [
        file.path
        for number, file in enumerate(stored.files)
        if file.path in live
        and not stored.is_marked(number)
        and not np.isin(stored.sids_of(stored.positions_in(number)), sids).any()
    ]
    if not orphans:
        return None
    try:
        return commit(inner, Change({}, (), orphans, "vacuum", kind=SAMPLES)).version
    except StaleChange:  # somebody moved them: the next vacuum finds them
        return None


def _delete_all(inner: Storage, until: dt.datetime, dry_run: bool) -> list[str]:
    """Delete the files of a folder that no kept version names, unless one of them is young.

    The folder is listed anew, for a writer may have begun to use it meanwhile. The log goes first, its newest version
    first of all: a vacuum that is killed leaves no version that lacks one before it, or a file.
    """
    files = everything(inner)
    if any(file.modified > until for file in files):
        return []
    files.sort(key=lambda file: (file.path.startswith(LOG), file.path), reverse=True)
    if not dry_run:
        with reaching(inner):
            for file in files:
                inner.delete(file.path)
    return [file.path for file in files]
