"""A dataset held against what it says of its sources: are these there, have they changed, are the samples the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.audit.check import Finding
from tensorlake_spark.datasets.derived.column_digests import RowDigest, digests
from tensorlake_spark.datasets.derived.lineage import Lineage, Source, lineage_of, source_sids
from tensorlake_spark.datasets.derived.sample_copying import Origin
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.maintenance.value_check import tiled_samples
from tensorlake_spark.datasets.samples.sample_reading import (
    BATCH_BYTES,
    read_table,
    runs_of,
    whole,
)
from tensorlake_spark.datasets.types.schema import column_of
from tensorlake_spark.delta.log.history import history
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError, TensorLakeError
from tensorlake_spark.lake.ref import TensorRef

Array = np.ndarray[Any, Any]

_MOST = 10  # samples of one column that are told


def check_lineage(snapshot: Snapshot, options: dict[str, str]) -> list[Finding]:
    """Return what does not agree with the lineage of a version of a dataset.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    options : dict of str to str
        Of the store, for the sources too.
    """
    try:
        lineage = lineage_of(snapshot)
    except CorruptDataError as error:
        return [Finding("lineage", "the lineage", str(error))]
    if lineage is None:
        text = "the dataset says nothing of sources; it was not made by copy or materialize"
        return [Finding("source", "the lineage", text)]
    own = Origin(snapshot, {}, LinkRules())
    out: list[Finding] = []
    try:
        numbers = source_sids(snapshot.storage, lineage)
    except CorruptDataError as error:
        return [Finding("lineage", "the lineage", str(error))]
    compared: set[str] = set()
    for number, source in enumerate(lineage.sources):
        place = f"source {source.name!r}"
        try:
            there = _opened(source, options)
        except TensorLakeError as error:
            text = f"version {source.version} of {source.uri} cannot be read any more: {error}"
            out.append(Finding("source", place, text))
            continue
        if there is None:
            continue
        out += _changed(source, there, place)
        if number < len(numbers):
            out += _compared(own, source, there, numbers[number])
            compared |= {*source.columns}
    return [*out, *_digests(own, lineage, compared)]


def _opened(source: Source, options: dict[str, str]) -> Snapshot | None:
    """Return the version of a source that was read; None of what is no dataset."""
    if source.version is None or not (source.columns or source.fetched):
        return None
    return Snapshot.open(Storage(source.uri, options), source.version, kind=SAMPLES)


def _changed(source: Source, there: Snapshot, place: str) -> Iterator[Finding]:
    """Yield a notice where a source has later versions with other samples."""
    if source.table_id and there.table_id != source.table_id:
        text = f"the table at {source.uri} was made anew since; its version {source.version} is another one"
        yield Finding("lineage", place, text)
        return
    newest = Snapshot.open(there.storage, kind=SAMPLES)
    later = newest.version - there.version
    if later:
        found = history(newest, None, later)
        changes = int(found["data_change"].sum())
        text = (
            f"{source.uri} has changed since: version {source.version} was read, version {newest.version} is the "
            f"newest, {changes} of the {later} between change data; materialise again if these matter"
        )
        if changes:
            yield Finding("source", place, text)


def _compared(own: Origin, source: Source, there: Snapshot, sids: Array) -> Iterator[Finding]:
    """Yield the columns and samples that are not what they are in the source."""
    other = Origin(there, source.columns, LinkRules())
    mine = own.parts
    pairs = {new: old for new, old in source.columns.items() if new in mine.schema}
    if not pairs:
        return
    here = mine.stored.sids
    here = here[here < len(sids)]
    here = here[sids[here] >= 0]
    found: dict[str, list[int]] = {}
    for at in runs_of(mine, [*pairs], mine.stored.positions_of(here)):
        numbers = mine.stored.sids[at]
        positions = other.parts.stored.positions_of(sids[numbers])
        gone = positions < 0
        if gone.any():
            first = int(numbers[gone][0])
            text = f"{int(gone.sum())} samples that it came from are not in {source.uri}"
            yield Finding("lineage", f"source {source.name!r}, sample {first}", text)
            at, positions = at[~gone], positions[~gone]
        ours = read_table(mine, [*pairs], at)
        theirs = read_table(other.parts, [*{*pairs.values()}], positions)
        for new, old in pairs.items():
            one, two = whole(column_of(ours, new)), whole(column_of(theirs, old))
            unlike = {*_unequal(one, two)}
            for row, tiled in tiled_samples(mine.schema[new], one):
                if row not in unlike and not _same_tiles(
                    mine.tensor(new, int(at[row]), tiled),
                    other.parts.tensor(old, int(positions[row]), tiled),
                ):
                    unlike.add(row)
            for row in sorted(unlike):
                found.setdefault(new, []).append(int(mine.stored.sids[at[row]]))
    for name, wrong in found.items():
        for sid in wrong[:_MOST]:
            text = (
                f"it is not what sample {int(sids[sid])} has in column {pairs[name]!r} of {source.uri} at version "
                f"{source.version}; {len(wrong)} samples of the column differ"
            )
            yield Finding("lineage", f"column {name!r}, sample {sid}", text)


def _unequal(one: pa.Array, two: pa.Array) -> Sequence[int]:
    """Return the rows in which two columns differ; bits count, so NaN is NaN."""
    if one.type != two.type:
        return range(len(one))
    if _digest(one) == _digest(two):
        return ()
    return [
        row for row in range(len(one)) if _digest(one.slice(row, 1)) != _digest(two.slice(row, 1))
    ]


def _same_tiles(one: TensorRef, two: TensorRef) -> bool:
    """Whether two large samples of one shape and dtype have the same bits: a part of both is read at a time."""
    if not one.shape or 0 in one.shape:
        return True
    step = max(1, BATCH_BYTES * one.shape[0] // (one.dtype.itemsize * math.prod(one.shape)))
    return all(
        one[start : start + step].tobytes() == two[start : start + step].tobytes()
        for start in range(0, one.shape[0], step)
    )


def _digest(array: pa.Array) -> dict[str, bytes]:
    digest = RowDigest()
    digest.add({"": array})
    return digest.finish()


def _digests(own: Origin, lineage: Lineage, compared: set[str]) -> Iterator[Finding]:
    """Yield the columns that have no source to be held against, and are not what was written."""
    parts = own.parts
    names = [n for n in parts.schema if n in lineage.digests and n not in compared]
    here = parts.stored.sids
    if not names or lineage.samples < 0:
        return
    here = here[here < lineage.samples]
    if len(here) < lineage.samples:
        text = (
            f"{lineage.samples - len(here)} of the {lineage.samples} samples that were made are gone, or have other "
            f"numbers; columns {', '.join(names)} have nothing to be held against"
        )
        yield Finding("source", "the digests", text)
        return
    digest = RowDigest()
    for at in runs_of(parts, names, parts.stored.positions_of(here)):
        table = read_table(parts, names, at)
        digest.add({name: whole(column_of(table, name)) for name in names})
    for name, found in digests([digest.finish()]).items():
        if found != lineage.digests[name]:
            text = f"its samples have another digest than when they were made: {found}, not {lineage.digests[name]}"
            yield Finding("lineage", f"column {name!r}", text)
