"""Parts of samples become what they were at a version of their table: only those that were replaced are written.

A pin never goes back to an earlier version, so that what other writers have added to the table meanwhile is kept. A
RESTORE of another program leaves pins as they are, so that it brings no parts back: `parts_left` finds that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.audit.check import Finding
from tensorlake_spark.datasets.apart.apart_writer import ApartWriter
from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    inner_storage,
    inner_tables,
    pinned,
    stored_names,
)
from tensorlake_spark.datasets.apart.pinning import CHANGES, Written, changes_in, settled
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.history import restored_by_others
from tensorlake_spark.delta.log.requirements import SAMPLES, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import ConcurrentWriteError, TensorLakeError
from tensorlake_spark.lake.lake import TensorLake

Array = np.ndarray[Any, Any]

_RUN = 1024  # samples that are compared at a time at most
_RUN_BYTES = 16 << 20  # and their bytes, about


def restore_inner(old: Snapshot, folder: str, inner: Snapshot) -> Written | None:
    """Give samples of a version the parts back that they had; None if none of them was replaced since.

    Parameters
    ----------
    old : Snapshot
        The version of the dataset.
    folder : str
        Of the inner table.
    inner : Snapshot
        Its version that belongs to `old`.

    Raises
    ------
    ConcurrentWriteError
        If another writer was faster.
    """
    base = settled(old.storage, folder)
    if folder == TENSORS_FOLDER:
        return _tensors(old, inner, base)
    if changes_in(base) == changes_in(inner) and {*inner.files.path} <= {*base.files.path}:
        return None
    return _rows(old, folder, inner, base)


def _tensors(old: Snapshot, inner: Snapshot, base: Snapshot) -> Written | None:
    names = catalog.ids(inner)
    apps = [app_of(name) for name in names]
    was, now = inner.transactions(apps), base.transactions(apps)
    replaced = [name for name in names if was[app_of(name)] != now[app_of(name)]]
    if replaced:  # a vacuum takes away what belongs to no sample
        sids = {*map(str, StoredSamples(old).sids.tolist())}
        replaced = [name for name in replaced if name.rpartition("/")[2] in sids]
    if not replaced:
        return None
    before = TensorLake(inner.storage)
    before._pinned = inner
    lost = ConcurrentWriteError(
        f"another writer changed {inner.storage.uri} at the same time; nothing was restored, run it again"
    )
    try:
        with TensorLake(inner.storage).transaction((CHANGES, changes_in(base) + 1)) as changes:
            for name in () if changes.is_repeated else replaced:
                changes.write(name, before[name], mode="overwrite", layout="ftsf")
    except ConcurrentWriteError as error:  # it speaks of a block that the caller never saw
        raise lost from error
    if changes.is_repeated or changes.version is None:
        raise lost
    return Written(TENSORS_FOLDER, changes.version, True)


def _rows(old: Snapshot, folder: str, inner: Snapshot, base: Snapshot) -> Written | None:
    schema = SampleSchema.from_arrow(old.schema)
    names = stored_names(old.schema)
    column = next(c for c, name in names.items() if schema[c].apart and folder_of(name) == folder)
    before, after = StoredSamples(inner), StoredSamples(base)
    field = next(iter(SampleSchema.from_arrow(inner.schema)))
    writer = ApartWriter(old.storage, names[column], schema[column], replaces=True)
    sids = StoredSamples(old).sids
    # Where nothing was replaced, a compaction has moved rows, and a purge has taken some away.
    changed = _moved if changes_in(inner) != changes_in(base) else _lost
    candidates = sids[changed(before, after, sids)]
    step = _step(before)
    try:
        for start in range(0, len(candidates), step):
            some = candidates[start : start + step]
            was, now = _values(before, field, some), _values(after, field, some)
            if not was.equals(now):
                writer.take(was, some.tolist())
        done = writer.finish()
    except BaseException:
        writer.abort()
        raise
    return done[0] if done else None


def _moved(before: StoredSamples, after: StoredSamples, sids: Array) -> Array:
    """Return which samples may have another value in a later version: files never change."""
    was, now = before.positions_of(sids), after.positions_of(sids)
    out: Array = (was >= 0) != (now >= 0)
    both = np.flatnonzero((was >= 0) & (now >= 0))
    live = np.array([file.path in after.snapshot.places for file in before.files], bool)
    if len(both):
        out[both] = ~live[before.locate(was[both])[0]]
    return out


def _lost(before: StoredSamples, after: StoredSamples, sids: Array) -> Array:
    """Return which samples have a value in a version and none in a later one."""
    out: Array = (before.positions_of(sids) >= 0) & (after.positions_of(sids) < 0)
    return out


def _step(stored: StoredSamples) -> int:
    nbytes = sum(stored.file_sizes)
    return int(max(1, min(_RUN, _RUN_BYTES * len(stored) // max(1, nbytes))))


def _values(stored: StoredSamples, field: str, sids: Array) -> pa.Array:
    """Return the values of samples, null where they have no row."""
    positions = stored.positions_of(sids)
    there = positions >= 0
    found = stored.rows([(field,)], positions[there]).column(field).combine_chunks()
    if there.all():
        return found
    return found.take(pa.array(np.where(there, np.cumsum(there) - 1, 0), mask=~there))


def parts_left(snapshot: Snapshot) -> list[Finding]:
    """Return a finding for each inner table in which a RESTORE of another program left what was replaced.

    Delta keeps the numbers of application transactions at a RESTORE, and these name the versions of inner tables.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the dataset that is checked.
    """
    done = restored_by_others(snapshot)
    if done is None:
        return []
    storage = snapshot.storage
    version, time = done.parameters.get("version"), done.parameters.get("timestamp")
    try:
        number, at = (None, str(time)) if version is None else (int(version), None)
        old = Snapshot.open(storage, number, at, kind=SAMPLES)
        new = Snapshot.open(storage, done.version, kind=SAMPLES)
        parts = inner_tables(old)
    except (TensorLakeError, ValueError):  # the log has it no more
        return []
    out = []
    for folder, pin in parts.items():
        if _is_replaced(old, folder, pin, pinned(new, folder)):
            text = (
                f"version {done.version} of the dataset is a RESTORE by another program to version {old.version}, "
                "which left what is in this folder as it was before: its values may not be those of the samples; "
                f"ds.restore({old.version}) brings these back too"
            )
            out.append(Finding("pin", folder, text))
    return out


def _is_replaced(old: Snapshot, folder: str, was: int, now: int | None) -> bool:
    """Whether something in an inner table was replaced between two of its versions."""
    if now is None or now == was:
        return False
    kind = TENSORS if folder == TENSORS_FOLDER else SAMPLES
    storage = inner_storage(old.storage, folder)
    try:
        counts = [changes_in(Snapshot.open(storage, one, kind=kind)) for one in (was, now)]
    except TensorLakeError:  # the log of the folder has the version no more
        return True
    return counts[0] != counts[1]
