"""Compaction: small data files become few, in the order (``id``, ``seq``); no tensor changes.

Rows move as they are: no payload is decoded. What a row group held together stays together, so a slice
that found its rows in one row group still does. Every new file is a commit of its own, so what is done
stays done, and other writers are in the way of one file only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.commit import Change, StaleChange, commit
from tensorlake_spark.delta.footer import footer_of
from tensorlake_spark.delta.rewrite import live_batches
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.delta.write import DataFile, FileWriter
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.row import PAYLOAD

T = TypeVar("T")
Bounds = tuple[tuple[Any, ...], tuple[Any, ...]]

logger = logging.getLogger("tensorlake_spark")

MOST_BYTES = 1 << 30
"""The largest file that compaction aims at: what it sorts at once stays below Arrow's 2 GiB."""

_ROWS = 1024  # what is brought together has no more rows: the table's parquet.block.row.count.limit
_SHARED_BYTES = 64 << 10  # a row group that several small tensors share


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What a compaction did, or would do.

    Attributes
    ----------
    files_before, bytes_before : int
        Data files that were rewritten, and their size.
    files_after, bytes_after : int
        The files in their place. A dry run takes the size for what it was; mostly it is less.
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


def compact(
    storage: Storage,
    ids: Sequence[str] | None,
    row_group_bytes: Callable[[str], int],
    *,
    min_files: int = 2,
    target_bytes: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> OptimizeReport:
    """Rewrite small data files into files near a target size; see `TensorLake.optimize`.

    Parameters
    ----------
    storage : Storage
        The table.
    ids : sequence of str, optional
        Only files that may hold rows of these tensors.
    row_group_bytes : callable
        Takes the name of a layout, returns how large its row groups become.
    min_files, target_bytes, max_bytes, dry_run
        As for `TensorLake.optimize`.
    """
    snapshot = Snapshot.open(storage)
    snapshot.check_writable()
    target = min(snapshot.file_bytes, MOST_BYTES) if target_bytes is None else target_bytes
    _check_options(min_files, target, max_bytes)
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
        files = snapshot.files
        paths = [files.path[i] for i in groups[0]]
        # What becomes one file is chosen already.
        writer = FileWriter(storage, 2 * MOST_BYTES, schema=snapshot.schema)
        try:
            _merge(snapshot, groups[0], writer, row_group_bytes)
            adds = writer.finish()
            change = Change({}, adds, paths, "optimize", data_change=False)
            after = commit(storage, change)
        except StaleChange as stale:  # somebody removed one of the files: again, without it
            writer.abort()
            snapshot = stale.snapshot
            continue
        except BaseException:
            writer.abort()
            raise
        for i, path in zip(groups[0], paths, strict=True):
            if left is not None:
                left -= int(files.size[i])
            if made.pop(path, None) is None:
                gone[path] = int(files.size[i])
        made |= {file.path: file for file in adds}
        snapshot = after
    return OptimizeReport(
        files_before=len(gone),
        files_after=len(made),
        bytes_before=sum(gone.values()),
        bytes_after=sum(file.size for file in made.values()),
        rows=sum(file.rows for file in made.values()),
        version=snapshot.version,
    )


def _check_options(min_files: int, target_bytes: int, max_bytes: int | None) -> None:
    if min_files < 2:
        raise InvalidOptionError(f"min_files is {min_files}; fewer than 2 files are never too many")
    if not 1 <= target_bytes <= MOST_BYTES:
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
        held = [files.may_hold(i, data) for i in ids for data in (True, False)]
        small &= np.any(held, axis=0) if held else False
    places = [
        i
        for i in np.flatnonzero(small).tolist()
        if files.path[i] in known and files.path[i].rsplit("/", 1)[-1] not in snapshot.deletions
    ]
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


def _merge(
    snapshot: Snapshot,
    places: Sequence[int],
    writer: FileWriter,
    row_group_bytes: Callable[[str], int],
) -> None:
    """Write the rows of some files in the order (``id``, ``seq``), then the metadata that holds."""
    files, first_seq = snapshot.files, snapshot.first_seq

    def of_file(i: int) -> Bounds:
        low, high = files.first_id[i], files.last_id[i]
        return _bounds(low, int(first_seq[i]), high, int(files.last_seq[i]))

    def of_group(place: tuple[str, int]) -> Bounds:
        footer = footer_of(snapshot.storage, place[0])
        (low, high), (first, last) = footer.bounds("id"), footer.bounds("seq")
        return _bounds(low[place[1]], first[place[1]], high[place[1]], last[place[1]])

    metas: list[pa.RecordBatch] = []
    packer = _Packer(writer, row_group_bytes)
    for near in _runs(places, of_file):
        groups: list[tuple[str, int]] = []
        descriptions: list[tuple[str, int]] = []
        for i in near:
            footer = footer_of(snapshot.storage, files.path[i])
            _, most = footer.bounds("nnz")
            for g, nnz in enumerate(most):
                (descriptions if nnz == 0 else groups).append((files.path[i], g))
        runs = [*([place] for place in descriptions), *_runs(groups, of_group)]
        for batch, whole in _read(snapshot, runs):
            meta = pc.equal(batch.column("nnz"), 0)
            if pc.any(meta).as_py():
                metas.append(batch.filter(meta))
                metas = [_newest(metas)] if len(metas) > _ROWS else metas
                batch = batch.filter(pc.invert(meta))
            packer.add(batch, whole)
    packer.flush()
    if metas:
        writer.add_batch(_newest(metas))


def _read(
    snapshot: Snapshot, runs: Sequence[Sequence[tuple[str, int]]]
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Yield the sorted rows of runs of row groups, and whether these were one row group."""
    for path, same in groupby(runs, lambda run: run[0][0] if len(run) == 1 else None):
        if path is not None:
            for batch in live_batches(snapshot, path, [run[0][1] for run in same]):
                yield _sorted(batch), True
            continue
        for run in same:
            parts = [b for name, group in run for b in live_batches(snapshot, name, [group])]
            if parts:
                yield _sorted(pa.concat_batches(parts)), False


def _newest(metas: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return of metadata rows the one that holds for each tensor; versions before keep their own files."""
    rows = _sorted(pa.concat_batches(metas))
    names = rows.column("id").to_pylist()
    last = [i for i, name in enumerate(names) if names[i + 1 : i + 2] != [name]]
    return rows.take(pa.array(last, pa.int64()))


def _bounds(first_id: Any, first_seq: Any, last_id: Any, last_seq: Any) -> Bounds:
    """Return what all rows lie between as (``id``, ``seq``); the widest where a bound is not known."""
    low = (0,) if first_id is None or first_seq is None else (1, first_id, first_seq)
    high = (2,) if last_id is None or last_seq is None else (1, last_id, last_seq)
    return low, high


def _runs(items: Sequence[T], bounds: Callable[[T], Bounds]) -> Iterator[list[T]]:
    """Yield items by their bounds, together where these overlap: what has to be sorted at once."""
    run: list[T] = []
    top: tuple[Any, ...] = ()
    for (low, high), item in sorted(((bounds(item), item) for item in items), key=lambda x: x[0]):
        if run and low > top:
            yield run
            run = []
        top = max(top, high) if run else high
        run.append(item)
    if run:
        yield run


def _sorted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in the order (``id``, ``seq``); without a copy where they are."""
    order = pc.sort_indices(batch, sort_keys=[("id", "ascending"), ("seq", "ascending")])
    if np.array_equal(order.to_numpy(), np.arange(batch.num_rows)):
        return batch
    return batch.take(order)


class _Packer:
    """Brings small row groups of a tensor together, until they are as large as its layout wants them.

    The rule is that of `FileWriter`; only tensors that are small altogether share a row group, for a
    footer takes 2 KiB for each of them.
    """

    def __init__(self, writer: FileWriter, row_group_bytes: Callable[[str], int]) -> None:
        self._writer = writer
        self._row_group_bytes = row_group_bytes
        self._parts: list[pa.RecordBatch] = []
        self._size = self._rows = 0

    def add(self, batch: pa.RecordBatch, whole: bool) -> None:
        """Add sorted data rows; `whole` where they were one row group, which is not cut if it fits."""
        names = batch.column("id").to_pylist()
        ends = [i + 1 for i, name in enumerate(names) if names[i + 1 : i + 2] != [name]]
        for start, end in zip([0, *ends], ends):
            rows = batch.slice(start, end - start)
            limit = self._row_group_bytes(rows.column("layout")[0].as_py())
            if whole and _payload(rows) <= 2 * limit:
                self._take(rows, limit)
            else:
                for i in range(rows.num_rows):
                    self._take(rows.slice(i, 1), limit)

    def _take(self, rows: pa.RecordBatch, limit: int) -> None:
        size = _payload(rows)
        if self._parts:
            last = self._parts[-1].slice(self._parts[-1].num_rows - 1)
            first = self._parts[0]
            if not first.column("id")[0].equals(rows.column("id")[0]):
                limit = _SHARED_BYTES
            elif _start(last) != _start(rows):
                limit //= 2
            if self._size + size > limit or self._rows + rows.num_rows > _ROWS:
                self.flush()
        self._parts.append(rows)
        self._size, self._rows = self._size + size, self._rows + rows.num_rows

    def flush(self) -> None:
        """Write what is there as a row group."""
        if self._parts:
            self._writer.add_batch(pa.concat_batches(self._parts))
        self._parts, self._size, self._rows = [], 0, 0


def _payload(rows: pa.RecordBatch) -> int:
    """Return the bytes of the payload of some rows."""
    return sum(pc.sum(pc.binary_length(rows.column(name))).as_py() or 0 for name in PAYLOAD)


def _start(rows: pa.RecordBatch) -> Any:
    """Return where the first row begins on the first axis."""
    return pc.struct_field(rows.column("lo").slice(0, 1), "d0")[0].as_py()
