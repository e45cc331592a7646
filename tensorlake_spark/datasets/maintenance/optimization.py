"""Fewer and larger files: of the samples, of apart columns, and of tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.inner_tables import TENSORS_FOLDER, inner_storage, inner_tables
from tensorlake_spark.datasets.apart.pinning import Written, settled
from tensorlake_spark.datasets.maintenance.sample_compaction import compact
from tensorlake_spark.datasets.samples.appending import commit_files
from tensorlake_spark.datasets.samples.sample_selection import whole_numbers
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.lake.lake import TensorLake

Array = np.ndarray[Any, Any]


def optimize(storage: Storage, order: Any, file_bytes: int | None) -> Snapshot:
    """Write small files together, and return the version that has them; see `MaintenanceMethods.optimize`."""
    if file_bytes is not None and (type(file_bytes) is not int or file_bytes < 1):
        raise InvalidOptionError(
            f"file_bytes={file_bytes!r:.80} is not a number of bytes above 0; leave it out for the table's own"
        )
    wanted = None if order is None else _checked(order)
    now = compact(
        partial(Snapshot.newest, storage, SAMPLES),
        file_bytes,
        None if wanted is None else lambda sids: wanted,
    )
    written = []
    for folder in inner_tables(now):
        base = settled(storage, folder)  # files with what has to be undone may not be moved
        if folder == TENSORS_FOLDER:
            inner = inner_storage(storage, folder)
            TensorLake(inner).optimize(target_bytes=file_bytes)
            after = Snapshot.newest(inner)
        else:
            after = compact(partial(settled, storage, folder), file_bytes, _within(wanted))
        if after.version > base.version:
            written.append(Written(folder, after.version))
    return commit_files(storage, [], "optimize", written) if written else now


def _checked(order: Any) -> Array:
    found = whole_numbers(order)
    if found.ndim != 1 or (len(found) and found.dtype != np.int64):
        raise InvalidOptionError(
            f"order is {found.dtype} of shape {found.shape}; it is a list of sids, each sample once"
        )
    return found.astype(np.int64)


def _within(order: Array | None) -> Callable[[Array], Array] | None:
    """Return the order of the samples that have a row in a table; those of no sample come last."""
    if order is None:
        return None

    def ordered(sids: Array) -> Array:
        return np.concatenate([order[np.isin(order, sids)], sids[~np.isin(sids, order)]])

    return ordered
