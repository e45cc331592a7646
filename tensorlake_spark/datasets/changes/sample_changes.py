"""Samples updated and deleted: copy on write, and only of the data files that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import stored_name
from tensorlake_spark.datasets.apart.pinning import Written, pins
from tensorlake_spark.datasets.changes.new_values import NewValues
from tensorlake_spark.datasets.changes.rewriting import (
    Columns,
    change_of,
    check_files,
    committed,
    rewritten,
)
from tensorlake_spark.datasets.changes.row_conflicts import check_unchanged
from tensorlake_spark.datasets.samples.appending import COUNTER, check_free, next_sid
from tensorlake_spark.datasets.samples.sample_encoding import numbered
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import Change
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import ConcurrentWriteError

Array = np.ndarray[Any, Any]


def update(
    base: StoredSamples,
    sids: Array,
    new: Mapping[str, NewValues],
    grown: int = 0,
    operation: str = "update",
    written: Sequence[Written] = (),
    reserved: int | None = None,
    columns: Sequence[str] = (),
) -> Snapshot:
    """Give samples other values in some columns, in one commit, and return the version that has them.

    Parameters
    ----------
    base : StoredSamples
        The version that it is computed from.
    sids : int64 ndarray
        Samples of it, each once.
    new : mapping of str to NewValues
        For each column the values of these samples, and after them those of the samples that are added.
    grown : int
        How many samples are added.
    operation : str
        What it is, for the history and messages.
    written : sequence of Written
        What belongs to the values and lies in inner tables.
    reserved : int, optional
        The first number of the samples that are added, if it is taken already.
    columns : sequence of str
        The columns that get values, if those of some are all in `written`.

    Raises
    ------
    InvalidSampleError
        If an added sample has no value where a column takes no null.
    ConcurrentWriteError
        If a sample is not what it was in the newest version.
    """
    storage = base.snapshot.storage

    def compute(newest: Snapshot) -> Change:
        stored = base if newest.version == base.snapshot.version else StoredSamples(newest)
        now = _still(base, stored, [*(columns or new)], operation)
        check_unchanged(base, stored, sids, operation)
        counters = pins(storage, newest, written)
        first = next_sid(newest) if reserved is None else reserved
        with SampleWriter(storage, now.to_arrow(), newest.file_bytes) as writer:
            if grown:
                if reserved is None:
                    counters[COUNTER] = newest.transaction(COUNTER), first + grown
                writer.add(numbered(_added(now, new, len(sids), grown), now, first))
            more = writer.finish()
            adds, removes = _replaced(
                stored, sids if new else sids[:0], now, _updating(sids, new), operation
            )
        # Where no file with the samples leaves, nothing else tells that another writer took them out, nor that a plain
        # writer gave the numbers of those that are added.
        follows = newest.version if grown or (len(sids) and not removes) else None
        return change_of(
            newest, [*adds, *more], removes, operation,
            counters=counters, follows=follows, check=partial(check_free, more),
        )  # fmt: skip

    return committed(storage, Snapshot.newest(storage, SAMPLES), compute)


def delete(base: StoredSamples, sids: Array) -> Snapshot:
    """Take samples out, in one commit, and return the version without them; their numbers are not given again.

    Parameters
    ----------
    base : StoredSamples
        The version that it is computed from.
    sids : int64 ndarray
        Samples of it.

    Raises
    ------
    ConcurrentWriteError
        If a sample is not what it was in the newest version.
    """
    storage = base.snapshot.storage
    gone = np.unique(sids)

    def edit(columns: Columns, here: Array) -> tuple[Columns, Array]:
        kept = ~np.isin(here, gone)
        mask = pa.array(kept)
        return {name: array.filter(mask) for name, array in columns.items()}, here[kept]

    def compute(newest: Snapshot) -> Change:
        stored = base if newest.version == base.snapshot.version else StoredSamples(newest)
        check_unchanged(base, stored, gone, "delete")
        now = SampleSchema.from_arrow(stored.schema)
        return change_of(newest, *_replaced(stored, gone, now, edit, "delete"), "delete")

    return committed(storage, Snapshot.newest(storage, SAMPLES), compute)


def _added(schema: SampleSchema, new: Mapping[str, NewValues], start: int, count: int) -> Columns:
    """Return the columns of samples that are added: null where they get no value."""
    places = np.arange(start, start + count)
    return {
        name: new[name].at(places) if name in new else kind.encode([None] * count, name)
        for name, kind in schema.items()
    }


def _updating(sids: Array, new: Mapping[str, NewValues]) -> Callable[[Columns, Array], Any]:
    """Return what puts new values in the place of old ones."""
    order = np.argsort(sids, kind="stable")
    ordered = sids[order]

    def edit(columns: Columns, here: Array) -> tuple[Columns, Array]:
        found = np.minimum(np.searchsorted(ordered, here), max(0, len(ordered) - 1))
        hit = ordered[found] == here
        if not hit.any():
            return columns, here
        # The old values, then the new ones: each sample takes one of them.
        takes = np.arange(len(here))
        takes[hit] = len(here) + np.arange(int(hit.sum()))
        out = dict(columns)
        for name, values in new.items():
            old = columns[name]
            fresh = values.at(order[found[hit]])
            both = pa.concat_arrays(
                [old, fresh.cast(old.type) if fresh.type != old.type else fresh]
            )
            out[name] = both.take(pa.array(takes))
        return out, here

    return edit


def _replaced(
    stored: StoredSamples,
    sids: Array,
    schema: SampleSchema,
    edit: Callable[[Columns, Array], Any],
    operation: str,
) -> tuple[list[DataFile], list[str]]:
    """Return new files in the place of those that hold some samples, and the paths of these."""
    if not len(sids):
        return [], []
    numbers = np.unique(stored.locate(stored.positions_of(sids))[0]).tolist()
    removes = [stored.files[number].path for number in numbers]
    check_files(stored.snapshot, removes, operation)
    return rewritten(stored, numbers, schema, edit), removes


def _still(
    base: StoredSamples, stored: StoredSamples, names: list[str], operation: str
) -> SampleSchema:
    """Return the columns of a later version, in which those that are written have to be what they were."""
    schema, now = (SampleSchema.from_arrow(one.schema) for one in (base, stored))
    for name in names:
        # Parts of a column that was dropped and added again have another name.
        is_same = stored_name(base.schema, name) == stored_name(stored.schema, name)
        if now.get(name) != schema[name] or not is_same:
            raise ConcurrentWriteError(
                f"another writer changed column {name!r} between version {base.snapshot.version}, from which this "
                f"{operation} was computed, and version {stored.snapshot.version}; nothing was committed, "
                "refresh() and do it again"
            )
    return now
