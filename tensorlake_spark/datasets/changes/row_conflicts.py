"""What other writers did meanwhile to the samples that a change is about: rows are compared, for files only move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    inner_storage,
    inner_tables,
    stored_name,
    tensor_id,
)
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.samples.sample_reading import parts_of, runs_in, whole
from tensorlake_spark.datasets.types.schema import SampleSchema, column_of
from tensorlake_spark.delta.log.commit import app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import ConcurrentWriteError

Array = np.ndarray[Any, Any]

_RUN = 256  # samples of an apart column that are compared at a time


def check_unchanged(
    base: StoredSamples, newest: StoredSamples, sids: Array, operation: str
) -> None:
    """Raise ConcurrentWriteError if a sample is not what it was.

    Parameters
    ----------
    base : StoredSamples
        The version that the change is computed from.
    newest : StoredSamples
        The version that it will follow.
    sids : int64 ndarray
        The samples that it changes, all of which are in `base`.
    operation : str
        What it is, for messages.
    """
    if newest.snapshot.version == base.snapshot.version:
        return
    after = newest.positions_of(sids)
    if (after < 0).any():
        raise _conflict(base, newest, int(sids[after < 0][0]), operation, "no longer has it")
    before = base.positions_of(sids)
    _check_parts(base, newest, sids, operation)
    moved = _places(base, before) != _places(newest, after)
    if not moved.any():
        return
    before, after, sids = before[moved], after[moved], sids[moved]
    old, new = (SampleSchema.from_arrow(one.schema) for one in (base, newest))
    # Columns that were added or dropped meanwhile are not what the change was computed from.
    names = [name for name, kind in old.items() if new.get(name) == kind]
    if not names:
        return
    start = 0
    for run in runs_in(base, names, before):
        count = len(run)
        was, now = (
            one.rows([parts_of(name) for name in names], positions)
            for one, positions in ((base, run), (newest, after[start : start + count]))
        )
        for name in names:
            place = _difference(whole(column_of(was, name)), whole(column_of(now, name)))
            if place is not None:
                sid = int(sids[start + place])
                raise _conflict(base, newest, sid, operation, f"has another {name!r} for it")
        start += count


def _check_parts(base: StoredSamples, newest: StoredSamples, sids: Array, operation: str) -> None:
    """Raise ConcurrentWriteError if what lies in inner tables is not what it was."""
    was, now = inner_tables(base.snapshot), inner_tables(newest.snapshot)
    if was == now:
        return
    old, new = (SampleSchema.from_arrow(one.schema) for one in (base, newest))
    parts = StoredParts(base, old), StoredParts(newest, new)
    for name, kind in old.items():
        stored = stored_name(base.schema, name)
        if new.get(name) != kind or stored_name(newest.schema, name) != stored:
            continue
        if kind.apart and was.get(folder_of(stored)) != now.get(folder_of(stored)):
            for start in range(0, len(sids), _RUN):
                some = sids[start : start + _RUN]
                one, other = (
                    whole(part.column(name, part.stored.positions_of(some))) for part in parts
                )
                place = _difference(one, other)
                if place is not None:
                    what = f"has another {name!r} for it"
                    raise _conflict(base, newest, int(some[place]), operation, what)
    folders = was.get(TENSORS_FOLDER), now.get(TENSORS_FOLDER)
    if None in folders or folders[0] == folders[1]:
        return
    inner = inner_storage(base.snapshot.storage, TENSORS_FOLDER)
    lakes = [Snapshot.open(inner, version) for version in folders]
    for name in (name for name, kind in old.items() if is_tileable(kind)):
        stored = stored_name(base.schema, name)
        apps = [app_of(tensor_id(stored, sid)) for sid in sids.tolist()]
        first, second = (lake.transactions(apps) for lake in lakes)
        for sid, app in zip(sids.tolist(), apps, strict=True):
            if first[app] != second[app]:
                raise _conflict(base, newest, sid, operation, f"has other tiles of {name!r} for it")


def _places(stored: StoredSamples, positions: Array) -> Array:
    """Return for each sample the file that it is in, with its row there: files never change."""
    numbers, rows = stored.locate(positions)
    paths = [stored.files[number].path for number in numbers.tolist()]
    return np.array(
        [f"{path}#{row}" for path, row in zip(paths, rows.tolist(), strict=True)], object
    )


def _difference(was: pa.Array, now: pa.Array) -> int | None:
    """Return the place of the first value that is another one, None if there is none; NaN is itself."""
    if was.equals(now):
        return None
    low, step = 0, 64
    while low < len(was):
        if not was.slice(low, step).equals(now.slice(low, step)):
            for place in range(low, min(low + step, len(was))):
                if repr(was[place].as_py()) != repr(now[place].as_py()):
                    return place
        low += step
    return None


def _conflict(
    base: StoredSamples, newest: StoredSamples, sid: int, operation: str, what: str
) -> ConcurrentWriteError:
    return ConcurrentWriteError(
        f"another writer changed sample {sid}: this {operation} was computed from version {base.snapshot.version} "
        f"of {base.snapshot.storage.uri}, and version {newest.snapshot.version} {what}; nothing was committed, "
        "refresh() and do it again"
    )
