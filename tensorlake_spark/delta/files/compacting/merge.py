"""Rows of several data files brought together, in the order (``id``, ``seq``); none is decoded.

What a row group held together stays together, so a slice that found its rows in one row group still does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.compacting.rewrite import live_batches
from tensorlake_spark.delta.files.footer import footer_of
from tensorlake_spark.delta.files.writer import SHARED_BYTES, SHARED_ROWS, FileWriter
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.rows.row import in_order, payload_sizes

T = TypeVar("T")
Bounds = tuple[tuple[Any, ...], tuple[Any, ...]]


def merge(
    snapshot: Snapshot,
    paths: Sequence[str],
    writer: FileWriter,
    row_group_bytes: Callable[[str], int],
) -> None:
    """Write the rows of some files in the order (``id``, ``seq``), then the metadata that holds.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    paths : sequence of str
        Data files, none of which has a deletion vector.
    writer : FileWriter
        Where the rows go.
    row_group_bytes : callable
        Takes the name of a layout, returns how large its row groups become.
    """
    files, first_seq = snapshot.files, snapshot.first_seq
    places = sorted(snapshot.places[path] for path in paths)

    def of_file(i: int) -> Bounds:
        low, high = files.first_id[i], files.last_id[i]
        return _bounds(low, int(first_seq[i]), high, int(files.last_seq[i]))

    def of_group(place: tuple[str, int]) -> Bounds:
        footer = footer_of(snapshot.storage, place[0])
        (low, high), (first, last) = footer.bounds("id"), footer.bounds("seq")
        return _bounds(low[place[1]], first[place[1]], high[place[1]], last[place[1]])

    metas: list[pa.RecordBatch] = []
    packer = Packer(writer, row_group_bytes)
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
                metas = [_newest(metas)] if len(metas) > SHARED_ROWS else metas
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
                yield in_order(batch), True
            continue
        for run in same:
            parts = [b for name, group in run for b in live_batches(snapshot, name, [group])]
            if parts:
                yield in_order(pa.concat_batches(parts)), False


def _newest(metas: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return of metadata rows the one that holds for each tensor; versions before keep their own files."""
    rows = in_order(pa.concat_batches(metas))
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


class Packer:
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
        of_rows = payload_sizes(batch)  # at once: a batch may have a tensor in each row
        for start, end in zip([0, *ends], ends):
            rows = batch.slice(start, end - start)
            limit = self._row_group_bytes(rows.column("layout")[0].as_py())
            sizes = of_rows[start:end]
            if whole and int(sizes.sum()) <= 2 * limit:
                self._take(rows, int(sizes.sum()), limit)
            else:
                for i, size in enumerate(sizes.tolist()):
                    self._take(rows.slice(i, 1), size, limit)

    def _take(self, rows: pa.RecordBatch, size: int, limit: int) -> None:
        if self._parts:
            last = self._parts[-1].slice(self._parts[-1].num_rows - 1)
            first = self._parts[0]
            if not first.column("id")[0].equals(rows.column("id")[0]):
                limit = SHARED_BYTES
            elif _start(last) != _start(rows):
                limit //= 2
            if self._size + size > limit or self._rows + rows.num_rows > SHARED_ROWS:
                self.flush()
        self._parts.append(rows)
        self._size, self._rows = self._size + size, self._rows + rows.num_rows

    def flush(self) -> None:
        """Write what is there as a row group."""
        if self._parts:
            self._writer.add_batch(pa.concat_batches(self._parts))
        self._parts, self._size, self._rows = [], 0, 0


def _start(rows: pa.RecordBatch) -> Any:
    """Return where the first row begins on the first axis."""
    return pc.struct_field(rows.column("lo").slice(0, 1), "d0")[0].as_py()
