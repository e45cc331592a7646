"""A dataset laid out anew in its place: all files are written again, in an order."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    inner_tables,
    stored_name,
)
from tensorlake_spark.datasets.apart.large_samples import tile_bytes_of
from tensorlake_spark.datasets.apart.pinning import Written, pins, settled
from tensorlake_spark.datasets.changes.workers import marked_files, run_of
from tensorlake_spark.datasets.derived.dataset_copy import (
    committed_parts,
    copied,
)
from tensorlake_spark.datasets.derived.sample_copying import Origin, SampleCopying
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.maintenance.sample_compaction import compact
from tensorlake_spark.datasets.samples.appending import commit_files, reserve
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import Change, StaleChange, check_removable, commit
from tensorlake_spark.delta.log.properties import ROW_GROUP_BYTES
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError, InvalidOptionError

Array = np.ndarray[Any, Any]


def relayout(
    storage: Storage, order: Any, file_bytes: int | None, row_group_bytes: int | None
) -> Snapshot:
    """Write all files again in an order; samples keep their numbers. See `DerivedMethods.rechunk`."""
    check_bytes(file_bytes, row_group_bytes)
    stored = StoredSamples(Snapshot.newest(storage, SAMPLES))
    sids = _sids_in(stored, order)
    group = row_group_bytes or ROW_GROUP_BYTES

    def of_all(now: Array) -> Array:
        if len(now) != len(sids) or not np.isin(now, sids).all():
            raise ConcurrentWriteError(
                f"another writer added or deleted samples of {storage.uri} meanwhile; nothing was committed, do it "
                "again"
            )
        return sids

    def of_some(now: Array) -> Array:
        return np.concatenate([sids[np.isin(sids, now)], now[~np.isin(now, sids)]])

    now = compact(partial(Snapshot.newest, storage, SAMPLES), file_bytes, of_all, group, "rechunk")
    written = []
    for folder in inner_tables(now):
        if folder == TENSORS_FOLDER:  # a sample's tiles lie together already
            continue
        base = settled(storage, folder)
        after = compact(partial(settled, storage, folder), file_bytes, of_some, group, "rechunk")
        if after.version > base.version:
            written.append(Written(folder, after.version))
    return commit_files(storage, [], "rechunk", written) if written else now


def renumber(
    storage: Storage,
    order: Any,
    file_bytes: int | None,
    row_group_bytes: int | None,
    workers: Any,
) -> Snapshot:
    """Write all samples again in an order, with new numbers that ascend in it. See `DerivedMethods.rechunk`."""
    check_bytes(file_bytes, row_group_bytes)
    run = run_of(workers)
    base = Snapshot.newest(storage, SAMPLES)
    base.check_writable()
    base.check_removing("rechunk")
    removes = list(base.files.path)
    check_removable(base, removes)
    origin = Origin(
        base, {name: name for name in SampleSchema.from_arrow(base.schema)}, LinkRules()
    )
    stored = origin.parts.stored
    sids = _sids_in(stored, order)
    schema, count = origin.parts.schema, len(sids)
    names = {name: stored_name(base.schema, name) for name in schema}
    reserved, first = reserve(storage, base, count)
    mark = f"{uuid.uuid4().hex[:16]}-"
    work = SampleCopying(
        storage, schema, names, (origin,), None, first, tile_bytes_of(base.configuration),
        file_bytes or base.file_bytes, row_group_bytes or ROW_GROUP_BYTES, mark,
    )  # fmt: skip
    folders = [folder_of(names[name]) for name, kind in schema.items() if kind.apart]
    with marked_files(storage, folders, mark):
        done = copied(work, count, [stored.positions_of(sids)], run, workers)
        files, written = committed_parts(work, done)
        change = Change(
            {}, files, removes, "rechunk",
            counters=pins(storage, reserved, written), columns=base.schema, is_whole=True, kind=SAMPLES,
            vectors=base.vectors(removes),
        )  # fmt: skip
        try:
            return commit(storage, change)
        except StaleChange as stale:
            raise ConcurrentWriteError(
                f"another writer changed {storage.uri} in version {stale.snapshot.version} or before; nothing was "
                "committed, do it again"
            ) from stale


def _sids_in(stored: StoredSamples, order: Any) -> Array:
    """Return the numbers of all samples in an order; None for their own."""
    if order is None:
        return stored.sids
    from tensorlake_spark.datasets.derived.sample_order import ordered_sids  # sqlglot takes a while

    return ordered_sids(stored, order)


def check_bytes(file_bytes: Any, row_group_bytes: Any) -> None:
    """Raise InvalidOptionError unless sizes are whole numbers above 0, or None."""
    for name, value in (("file_bytes", file_bytes), ("row_group_bytes", row_group_bytes)):
        if value is not None and (type(value) is not int or value < 1):
            raise InvalidOptionError(
                f"{name}={value!r:.80} is not a number of bytes above 0; leave it out for the usual one"
            )
