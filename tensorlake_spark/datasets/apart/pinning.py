"""Which versions of the inner tables the samples' commit names, when others write at the same time.

What is added to an inner table does no harm before it is pinned: no sample has its number. What is replaced there
does: whoever pins a later version would show it. So a change that replaces something counts up a number of the inner
table, and a version is pinned only if all such changes in it are pinned, or the writer's own. A change whose
writer was killed is undone by the next writer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    inner_storage,
    part_of,
    pinned,
)
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.log_entries import log_entries
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError, outrun
from tensorlake_spark.lake.lake import TensorLake

CHANGES = "dataset/changes"
"""The application transaction of an inner table that counts the changes which replaced something."""

PATIENCE = 2.0
"""Seconds that a writer waits for another one to pin what it has replaced, before that is undone."""

ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Written:
    """What was written to an inner table.

    Attributes
    ----------
    folder : str
        Of the inner table.
    version : int
        Its version that has it.
    replaces : bool
        Whether something was replaced, and not only added.
    """

    folder: str
    version: int
    replaces: bool = False


def changes_in(snapshot: Snapshot) -> int:
    """Return how many changes of an inner table have replaced something."""
    return snapshot.transaction(CHANGES) or 0


def pins(
    storage: Storage, snapshot: Snapshot, written: Sequence[Written]
) -> dict[str, tuple[int | None, int]]:
    """Return the application transactions that a commit of samples carries, as `Change.counters` has them.

    Parameters
    ----------
    storage : Storage
        The dataset.
    snapshot : Snapshot
        The version that the commit will follow. If another writer pins something first, the commit is stale:
        call this again then.
    written : sequence of Written
        What belongs to the samples.

    Raises
    ------
    ConcurrentWriteError
        If another writer has undone, or followed, what was replaced.
    """
    out: dict[str, tuple[int | None, int]] = {}
    for part in written:
        known = pinned(snapshot, part.folder)
        out[part_of(part.folder)] = known, _version_of(storage, part, known)
    return out


def _version_of(storage: Storage, part: Written, known: int | None) -> int:
    if known is None or known == part.version:
        return part.version
    if part.replaces:
        if known > part.version:
            raise ConcurrentWriteError(
                f"another writer changed {part.folder} of {storage.uri} at the same time; nothing of this update is "
                "visible, run it again if you still want it"
            )
        return part.version
    if known > part.version:
        return known  # later versions have what was added too
    if known + 1 == part.version:
        return part.version
    return settled(storage, part.folder, part.version).version


def settled(storage: Storage, folder: str, least: int = 0) -> Snapshot:
    """Return the newest version of an inner table, without changes that replace something and are not pinned.

    Parameters
    ----------
    storage : Storage
        The dataset.
    folder : str
        Of the inner table.
    least : int
        A version that is needed: it is returned if it will do.
    """
    inner = inner_storage(storage, folder)
    kind = TENSORS if folder == TENSORS_FOLDER else SAMPLES
    until = time.monotonic() + PATIENCE
    for attempt in range(ATTEMPTS):
        known = pinned(Snapshot.newest(storage, SAMPLES), folder)
        newest = Snapshot.open(inner, least or None, kind=kind)
        if known is None or known >= newest.version:
            return newest
        base = Snapshot.open(inner, known, kind=kind)
        if changes_in(base) == changes_in(newest):
            return newest
        if time.monotonic() < until:
            time.sleep(min(0.4, 0.02 * 1.5**attempt))
            continue
        least = 0
        undo = _undo_tensors if kind == TENSORS else _undo_rows
        undone = undo(inner, known, Snapshot.open(inner, kind=kind))
        if undone is not None:
            return undone
    raise outrun(f"{folder} of {storage.uri}", ATTEMPTS)


def _undo_tensors(inner: Storage, known: int, newest: Snapshot) -> Snapshot | None:
    """Give tensors back what they had at a version; None if another writer was faster."""
    base = Snapshot.open(inner, known)
    apps = [app_of(name) for name in catalog.ids(base)]
    before, after = base.transactions(apps), newest.transactions(apps)
    old = TensorLake(inner)
    old._pinned = base
    try:
        with TensorLake(inner).transaction((CHANGES, changes_in(newest) + 1)) as changes:
            if changes.is_repeated:
                return None
            for name in catalog.ids(base):
                if before[app_of(name)] != after[app_of(name)]:
                    changes.write(name, old[name], mode="overwrite", layout="ftsf")
    except ConcurrentWriteError:  # in the commit itself
        return None
    if changes.is_repeated or changes.version is None:
        return None
    return Snapshot.open(inner, changes.version)


def _undo_rows(inner: Storage, known: int, newest: Snapshot) -> Snapshot | None:
    """Give a table of a column the files back that it had at a version, with those that were added since."""
    before = Snapshot.open(inner, known, kind=SAMPLES)
    described = log_entries(before)
    wanted = set(described)
    for version in range(known + 1, newest.version + 1):
        after = Snapshot.open(inner, version, kind=SAMPLES)
        described |= log_entries(after)
        gone = set(before.files.path) - set(after.files.path)
        added = set(after.files.path) - set(before.files.path)
        if changes_in(before) == changes_in(after):
            if added and not gone <= wanted:  # moved by a compaction, with what has to go
                raise ConcurrentWriteError(
                    f"{inner.uri} has changes that no version of the dataset names, and files that were written "
                    "anew since; RESTORE it to version " + str(known)
                )
            wanted = (wanted - gone) | added
        before = after
    live = set(newest.files.path)
    number = newest.transaction(CHANGES)
    removes = sorted(live - wanted)
    change = Change(
        {},
        [described[path] for path in sorted(wanted - live)],
        removes,
        "undo",
        counters={CHANGES: (number, changes_in(newest) + 1)},
        kind=SAMPLES,
        vectors=newest.vectors(removes),
    )
    try:
        return commit(inner, change)
    except StaleChange:
        return None
