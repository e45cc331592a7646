"""Fewer and larger data files of samples, whose rows stay in their order or get the one that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.datasets.samples.appending import kept_counter
from tensorlake_spark.delta.log.commit import Change, StaleChange, check_removable, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.direct_commit import can_remove_marked
from tensorlake_spark.delta.log.properties import ROW_GROUP_BYTES
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import InvalidOptionError, outrun

Array = np.ndarray[Any, Any]

ATTEMPTS = 5

_FULL = 0.75  # of the target: a file that is as large stays
_RUN_BYTES = 16 << 20  # that are moved at a time, about


@dataclass(frozen=True, slots=True)
class Plan:
    """Files that are written anew together.

    Attributes
    ----------
    files : tuple of int
        Numbers of files, see `StoredSamples.files`.
    positions : int64 ndarray
        Their samples, in the order in which they are written.
    in_order : bool
        Whether that is the order of their numbers.
    """

    files: tuple[int, ...]
    positions: Array
    in_order: bool


def plan(stored: StoredSamples, file_bytes: int, order: Array | None) -> list[Plan]:
    """Return which files of a version are written anew, and how.

    Parameters
    ----------
    stored : StoredSamples
        The version.
    file_bytes : int
        Target size of a file.
    order : int64 ndarray, optional
        The numbers of all samples in the order in which they are read; all files are written anew then.

    Raises
    ------
    InvalidOptionError
        If `order` does not name each sample once.
    """
    everything = tuple(range(len(stored.files)))
    if order is not None:
        positions = stored.positions_of(order)
        if len(order) != len(stored) or (np.sort(positions) != np.arange(len(stored))).any():
            raise InvalidOptionError(
                f"order has {len(order)} numbers; it has to name each of the {len(stored)} samples once, as ds.sids "
                "does"
            )
        return [Plan(everything, positions, _rises(positions))] if everything else []
    sizes = stored.file_sizes
    # Where nobody can write what Delta asks for a vector to be removed, such a file stays.
    may_remove = can_remove_marked(stored.snapshot.storage)
    runs, run, nbytes = list[list[int]](), list[int](), 0
    for number in everything:
        stays = not may_remove and stored.is_marked(number)
        is_small = sizes[number] < _FULL * file_bytes and not stays
        if run and (not is_small or nbytes + sizes[number] > file_bytes):
            runs.append(run)
            run, nbytes = [], 0
        if is_small:
            run.append(number)
            nbytes += sizes[number]
    runs.append(run)
    out = []
    for one in runs:
        if len(one) > 1:
            positions = stored.positions_within(one)
            out.append(Plan(tuple(one), positions, _rises(positions)))
    return out


def compact(
    newest: Callable[[], Snapshot],
    file_bytes: int | None = None,
    order: Callable[[Array], Array] | None = None,
    row_group_bytes: int = ROW_GROUP_BYTES,
    operation: str = "optimize",
) -> Snapshot:
    """Write small files together, and return the version that has them.

    Parameters
    ----------
    newest : callable
        Returns the version whose files may be moved; asked again when another writer was faster.
    file_bytes : int, optional
        Target size of a file; by default the table's.
    order : callable, optional
        Takes the numbers of all samples, and returns them in the order in which they are written.
    row_group_bytes : int
        Target size of a row group.
    operation : str
        What it is, for the history.

    Raises
    ------
    InvalidOptionError
        If the order does not name each sample once.
    ConcurrentWriteError
        If other writers won every attempt.
    """
    now = newest()
    storage = now.storage
    for _ in range(ATTEMPTS):
        now.check_writable()
        stored = StoredSamples(now)
        target = now.file_bytes if file_bytes is None else file_bytes
        plans = plan(stored, target, None if order is None else order(stored.sids))
        if not plans:
            return now
        removes = [stored.files[number].path for one in plans for number in one.files]
        check_removable(now, removes)
        adds: list[DataFile] = []
        try:
            for one in plans:
                adds += _written(stored, one, target, row_group_bytes)
            change = Change(
                {}, adds, removes, operation,
                data_change=False, counters=kept_counter(now), kind=SAMPLES, vectors=now.vectors(removes),
            )  # fmt: skip
            return commit(storage, change)
        except StaleChange:
            discard(storage, [file.path for file in adds])
            now = newest()
        except BaseException:
            discard(storage, [file.path for file in adds])
            raise
    raise outrun(storage.uri, ATTEMPTS)


def _rises(positions: Array) -> bool:
    return bool((positions[:-1] < positions[1:]).all())


def _written(
    stored: StoredSamples, one: Plan, file_bytes: int, row_group_bytes: int
) -> list[DataFile]:
    nbytes = sum(stored.file_sizes[number] for number in one.files)
    step = max(1, _RUN_BYTES * len(one.positions) // max(1, nbytes))
    with SampleWriter(
        stored.snapshot.storage, stored.schema, file_bytes, row_group_bytes, in_order=one.in_order
    ) as writer:
        for start in range(0, len(one.positions), step):
            writer.add(stored.rows(None, one.positions[start : start + step], views=True))
        return writer.finish()
