"""Compaction: small data files become few, in the order (``id``, ``seq``); no tensor changes.

Every new file is a commit of its own, so what is done stays done, and other writers are in the way of one
file only. `merge` says how rows move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial

import numpy as np

from tensorlake_spark.delta.files.compacting.merge import merge
from tensorlake_spark.delta.files.compacting.rewrite import held_in
from tensorlake_spark.delta.files.runner import Output, Run, run_here
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, StaleChange, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError

MOST_BYTES = 1 << 30
"""The largest file that compaction aims at: what it sorts at once stays below Arrow's 2 GiB."""


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What `TensorLake.optimize` did, or would do.

    Attributes
    ----------
    files_before, bytes_before : int
        Data files that were rewritten, and their size.
    files_after, bytes_after : int
        The files in their place, and their size. A dry run gives the old size; the new one is mostly smaller.
    rows : int
        Rows in these files.
    version : int
        Version of the table afterwards.
    """

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    rows: int
    version: int

    def __add__(self, later: OptimizeReport) -> OptimizeReport:
        return OptimizeReport(
            self.files_before + later.files_before,
            self.files_after + later.files_after,
            self.bytes_before + later.bytes_before,
            self.bytes_after + later.bytes_after,
            self.rows + later.rows,
            later.version,
        )


def compact(
    storage: Storage,
    ids: Sequence[str] | None,
    row_group_bytes: Callable[[str], int],
    *,
    min_files: int = 2,
    target_bytes: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
    run: Run = run_here,
) -> OptimizeReport:
    """Rewrite small data files into files near a target size; see `TensorLake.optimize`.

    Parameters
    ----------
    storage : Storage
        The table.
    ids : sequence of str, optional
        Only files that hold rows of these tensors.
    row_group_bytes : callable
        Takes the name of a layout, returns how large its row groups become.
    min_files, target_bytes, max_bytes, dry_run
        As for `TensorLake.optimize`.
    run : callable
        Who merges files; commits are made here.
    """
    snapshot = Snapshot.open(storage)
    snapshot.check_writable()
    target = target_of(snapshot, target_bytes)
    known = set(snapshot.files.path)  # what others add meanwhile is left to the next call
    gone: dict[str, int] = {}
    made: dict[str, DataFile] = {}
    left = max_bytes
    while True:
        groups = _choose(snapshot, known | made.keys(), ids, min_files, target, left)
        if dry_run:
            return _foreseen(snapshot, groups)
        if not groups:
            break
        paths, sizes = snapshot.files.path, snapshot.files.size.tolist()
        size_of = dict(zip(paths, sizes, strict=True))
        tasks = [tuple(paths[i] for i in group) for group in groups]
        for task, output in run(partial(_merged, snapshot, row_group_bytes), tasks):
            change = Change({}, output.files, task, "optimize", data_change=False)
            try:
                snapshot = commit(storage, change)
            except StaleChange as stale:  # somebody removed one of the files: again, without it
                discard(storage, [file.path for file in output.files])
                snapshot = stale.snapshot
                continue
            except BaseException:
                discard(storage, [file.path for file in output.files])
                raise
            for path in task:
                if left is not None:
                    left -= size_of[path]
                if made.pop(path, None) is None:
                    gone[path] = size_of[path]
            made |= {file.path: file for file in output.files}
    return OptimizeReport(
        files_before=len(gone),
        files_after=len(made),
        bytes_before=sum(gone.values()),
        bytes_after=sum(file.size for file in made.values()),
        rows=sum(file.rows for file in made.values()),
        version=snapshot.version,
    )


def target_of(snapshot: Snapshot, target_bytes: int | None) -> int:
    """Return the size of the files to make; a table may ask for larger ones than can be sorted at once."""
    return min(snapshot.file_bytes, MOST_BYTES) if target_bytes is None else target_bytes


def check_options(min_files: int, target_bytes: int | None, max_bytes: int | None) -> None:
    """Raise InvalidOptionError if a number makes no sense."""
    given = {"min_files": min_files, "target_bytes": target_bytes, "max_bytes": max_bytes}
    for name, number in given.items():
        may_miss = name != "min_files"
        if not (isinstance(number, (int, np.integer)) or (number is None and may_miss)):
            raise InvalidOptionError(
                f"{name}={number!r} is not a whole number{' of bytes' if may_miss else ''}"
            )
    if min_files < 2:
        raise InvalidOptionError(f"min_files is {min_files}; fewer than 2 files are never too many")
    if target_bytes is not None and not 1 <= target_bytes <= MOST_BYTES:
        raise InvalidOptionError(
            f"target_bytes is {target_bytes}; it lies between 1 and {MOST_BYTES} (1 GiB)"
        )
    if max_bytes is not None and max_bytes < 1:
        raise InvalidOptionError(
            f"max_bytes is {max_bytes}; it is at least 1, or None for no bound"
        )


def _foreseen(snapshot: Snapshot, groups: Sequence[Sequence[int]]) -> OptimizeReport:
    files = snapshot.files
    places = [i for group in groups for i in group]
    size, rows = int(files.size[places].sum()), int(np.maximum(files.rows[places], 0).sum())
    return OptimizeReport(len(places), len(groups), size, size, rows, snapshot.version)


def _choose(
    snapshot: Snapshot,
    known: Set[str],
    ids: Sequence[str] | None,
    min_files: int,
    target_bytes: int,
    max_bytes: int | None,
) -> list[list[int]]:
    """Return groups of at least two small files, by (``id``, ``seq``), each to become one file.

    Of the files that are `known`, one that is half as large as the target, or larger, stays as it is; so
    does one with a deletion vector, for `commit` cannot remove it.
    """
    files = snapshot.files
    small = files.size < target_bytes // 2
    if ids is not None:
        small &= files.may_hold_any(ids)
    places = [
        i
        for i in np.flatnonzero(small).tolist()
        if files.path[i] in known and snapshot.kept(files.path[i]) is None
    ]
    if ids is not None:
        places = held_in(snapshot, places, ids)
    if len(places) < min_files:
        return []
    places.sort(key=lambda i: (files.first_id[i] or "", int(files.last_seq[i]), files.path[i]))
    left = int(files.size[places].sum()) if max_bytes is None else max_bytes
    groups: list[list[int]] = [[]]
    total = 0
    for i in places:
        size = int(files.size[i])
        if size > left:
            continue
        if total + size > target_bytes:
            groups.append([])
            total = 0
        groups[-1].append(i)
        total, left = total + size, left - size
    return [group for group in groups if len(group) > 1]


def _merged(
    snapshot: Snapshot, row_group_bytes: Callable[[str], int], paths: Sequence[str]
) -> Output:
    """Write the rows of some files into one, whose size was chosen already."""
    with FileWriter(snapshot.storage, 2 * MOST_BYTES, schema=snapshot.schema) as writer:
        merge(snapshot, paths, writer, row_group_bytes)
        return Output(tuple(writer.finish()))
