"""Plan and read: files by the log's statistics, then row groups by their footers, then batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, groupby
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer import Footer, footer_at, footer_of, plain_types, reading
from tensorlake_spark.delta.files.payload import over
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.memory_maps.mapped_pages import give_back_pages
from tensorlake_spark.delta.store.ranges import Part, PartFile, overlapped
from tensorlake_spark.delta.store.storage import Storage, open_here
from tensorlake_spark.indexing import AnySelection, FilePlan, Predicate, ReadPlan
from tensorlake_spark.rows.row import PAYLOAD, bools, is_text, numbers
from tensorlake_spark.tensor.spec import STORED_AXES
from tensorlake_spark.threads import IO_THREADS, THREADS, in_order, io_threads

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")

JOB_BYTES = 8 << 20
"""What a thread reads at a time, where the work ends with each piece."""

BATCH_BYTES = 8 << 20
"""Stored bytes of the rows that are decoded together."""

_REQUEST_BYTES = 1 << 20  # of one request, at least: it takes as long to answer as to transfer this
_GAP = 256 << 10  # bytes that are read and not needed rather than asking twice


@dataclass(frozen=True, slots=True)
class ScanPiece:
    """Some row groups of one data file: what one thread, or one Spark partition, reads at a time.

    Attributes
    ----------
    path : str
        Path in the table.
    row_groups : tuple of int
        Which row groups.
    nbytes : int
        Their size.
    records : int
        Rows of the whole file by the log, -1 where it does not say.
    """

    path: str
    row_groups: tuple[int, ...]
    nbytes: int
    records: int = -1


def plan(
    snapshot: Snapshot,
    tensor_id: str,
    selection: AnySelection,
    columns: Sequence[str] | None = None,
) -> ReadPlan:
    """Return which files and row groups hold the rows that a selection needs.

    Only files that the log cannot rule out are opened, and of these only the footer. Bytes are those of all
    columns, or of some that are given where a payload is not among them.
    """
    shape = selection.shape
    files = snapshot.files
    ours = files.places_of(tensor_id, data=True)
    wanted = ours
    if len(ours):
        wanted = ours[selection.hits(*files.boxes(shape, ours))]
    axes = tuple(axis for axis, _, _ in selection.ranges())
    plans = []
    for i, footer in footers(snapshot, wanted.tolist()):
        if files.first_id[i] == files.last_id[i] == tensor_id and files.least_nnz[i] > 0:
            groups = footer.rows > 0
        else:
            groups = footer.may_hold(tensor_id, data=True)
        if axes:
            groups = groups & selection.hits(*footer.boxes(axes, shape))
        chosen = np.flatnonzero(groups).tolist()
        if chosen:
            plans.append(
                FilePlan(
                    path=files.path[i],
                    row_groups=tuple(chosen),
                    rows=int(footer.rows[chosen].sum()),
                    bytes=footer.size_of(chosen, columns),
                    total_row_groups=len(groups),
                    total_rows=footer.num_rows,
                    total_bytes=int(files.size[i]),
                )
            )
    return ReadPlan(
        predicate=Predicate.of(tensor_id, selection),
        selection=selection,
        files=tuple(plans),
        total_files=len(ours),
        total_bytes=int(files.size[ours].sum()),
        version=snapshot.version,
    )


def footers(snapshot: Snapshot, places: list[int]) -> Iterator[tuple[int, Footer]]:
    """Yield files with their footers; a store is asked for all footers at once."""
    read = partial(footer_at, snapshot)
    many = snapshot.remote is not None and len(places) > 1
    yield from zip(places, (io_threads().map if many else map)(read, places))


def pieces(
    snapshot: Snapshot, read: ReadPlan, target: int = JOB_BYTES, adjacent: bool = False
) -> list[ScanPiece]:
    """Cut a plan into pieces of about `target` bytes, in storage order.

    With `adjacent` the row groups of a piece lie beside each other, so that one request reads them.
    """
    out = []
    for file in read.files:
        if len(file.row_groups) == 1:  # needs no footer: of many files not all are in memory
            out.append(ScanPiece(file.path, file.row_groups, file.bytes, file.total_rows))
            continue
        footer = footer_of(snapshot.storage, file.path, remote=snapshot.remote)
        groups: list[int] = []
        size = 0
        for group in file.row_groups:
            nbytes = int(footer.nbytes[group])
            apart = adjacent and groups and footer.gap(groups[-1], group) > _GAP
            if groups and (size + nbytes > target or apart):
                out.append(ScanPiece(file.path, tuple(groups), size, footer.num_rows))
                groups, size = [], 0
            groups.append(group)
            size += nbytes
        out.append(ScanPiece(file.path, tuple(groups), size, footer.num_rows))
    return out


def joined(some: Sequence[ScanPiece]) -> tuple[ScanPiece, ...]:
    """Merge neighbouring pieces of one file: a piece costs Python as much time as a batch."""
    return tuple(
        ScanPiece(
            path, tuple(g for p in same for g in p.row_groups), sum(p.nbytes for p in same), records
        )
        for (path, records), same in (
            (key, list(group)) for key, group in groupby(some, lambda p: (p.path, p.records))
        )
    )


def leaves(columns: Sequence[str], ndim: int) -> list[str]:
    """Return the Parquet columns to read for `columns`: corners only for the axes that the tensor has."""
    axes = range(min(ndim, STORED_AXES))
    each = ([f"{name}.d{k}" for k in axes] if name in ("lo", "hi") else [name] for name in columns)
    return [*chain(*each)]


def read_piece(
    storage: Storage,
    piece: ScanPiece,
    tensor_id: str,
    columns: Sequence[str],
    keep: Array | None = None,
    mapped: pa.Buffer | Part | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the data rows of one tensor in a piece, with `columns` (Parquet leaves), in batches.

    Parameters
    ----------
    storage : Storage
        The table.
    piece : ScanPiece
        What to read.
    tensor_id : str
        Rows of other tensors, and metadata rows, are left out.
    columns : sequence of str
        As `leaves` returns them.
    keep : bool ndarray, optional
        For each row of the file whether a deletion vector leaves it there.
    mapped : pyarrow.Buffer or Part, optional
        The file, if the caller has mapped it already, or what was fetched of it.
    batch_bytes : int
        Of a batch, about.
    """
    with reading(storage, piece.path):
        footer = footer_of(storage, piece.path, piece.records if piece.records >= 0 else None)
        mapped = storage.map_file(piece.path) if mapped is None else mapped
        for groups in _batches(footer, piece.row_groups, batch_bytes):
            batch = _read_groups(
                storage, piece.path, footer, mapped, groups, columns, tensor_id, keep
            )
            if batch.num_rows:
                yield batch


def _batches(footer: Footer, groups: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Split row groups into runs that become one batch each: a batch costs Python as much time as a row."""
    first = size = 0
    for place, group in enumerate(groups):
        nbytes = int(footer.nbytes[group])
        if place > first and size + nbytes > most:
            yield groups[first:place]
            first, size = place, 0
        size += nbytes
    yield groups[first:]


def _needed(
    footer: Footer,
    groups: Sequence[int],
    columns: Sequence[str],
    tensor_id: str,
    keep: Array | None,
) -> tuple[list[str], bool]:
    """Return which columns to read of row groups, and whether all their rows belong to the tensor.

    If they do not, the columns include ``id`` and ``nnz``, by which the tensor's rows are found.
    """
    clean = keep is None and all(footer.holds_only(tensor_id, g) for g in groups)
    return [*columns, *(n for n in ("id", "nnz") if not clean and n not in columns)], clean


def _read_groups(
    storage: Storage,
    path: str,
    footer: Footer,
    mapped: pa.Buffer | Part | None,
    groups: Sequence[int],
    columns: Sequence[str],
    tensor_id: str,
    keep: Array | None,
) -> pa.RecordBatch:
    """Read a tensor's rows of some row groups; where possible, payloads are views into the file's bytes."""
    views = {}
    if mapped is not None:
        for name in PAYLOAD:
            parts = [footer.payload(mapped, g, name) for g in groups if name in columns]
            plain = [part for part in parts if part is not None]
            if plain and len(plain) == len(groups):
                views[name] = plain
    needed, clean = _needed(footer, groups, columns, tensor_id, keep)
    rest = [n for n in needed if n not in views]

    def open_file(metadata: pq.FileMetaData) -> pq.ParquetFile:
        if isinstance(mapped, Part):
            return open_here(PartFile(mapped), metadata)
        if mapped is not None:
            return open_here(pa.BufferReader(mapped), metadata)
        return storage.open_parquet(path, metadata)

    if views:
        batch = footer.small(open_file, groups, tuple(rest))
    else:
        metadata, numbers_in_it = footer.part(groups)
        with open_file(metadata) as file:
            table = file.read_row_groups(numbers_in_it, columns=rest, use_threads=False)
        batch = plain_types(table).combine_chunks().to_batches()[0]
    mask = None
    if not clean and batch.num_rows:
        ours = is_text(batch.column("id"), tensor_id)
        bits = np.frombuffer(ours.buffers()[1], np.uint8)
        mask = np.unpackbits(bits, bitorder="little")[ours.offset :][: len(ours)].astype(bool)
        mask &= numbers(batch.column("nnz")) > 0
        if keep is not None:
            spans = [
                slice(footer.first_row[g], footer.first_row[g] + footer.rows[g]) for g in groups
            ]
            mask = mask & np.concatenate([keep[span] for span in spans])
        batch = batch.filter(bools(mask))
    for name, plain in views.items():
        batch = batch.append_column(name, over(mapped, plain, mask))
    return batch


def read(
    snapshot: Snapshot,
    read_plan: ReadPlan,
    columns: Sequence[str],
    visit: Callable[[pa.RecordBatch], Any],
    progress: Callable[[int], None] | None = None,
    one_by_one: bool = False,
    job_bytes: int = JOB_BYTES,
) -> list[Any]:
    """Read all that a plan names and call `visit` with every batch, from several threads.

    Parameters
    ----------
    snapshot, read_plan
        What to read.
    columns : sequence of str
        Columns of the row that `visit` needs.
    visit : callable
        Takes a RecordBatch; what it returns is collected, in any order.
    progress : callable, optional
        Called with the bytes of every piece that is done.
    one_by_one, job_bytes
        See `each_piece`. A piece is one batch: a caller who wants few rows of it takes more at a time.

    Raises
    ------
    CorruptDataError
        If a file or a row is not what was written; names the file.
    """

    def each(batches: Iterator[pa.RecordBatch], of_file: reading) -> list[Any]:
        with of_file:
            return [visit(batch) for batch in batches]

    out = each_piece(snapshot, read_plan, columns, each, progress, job_bytes, False, one_by_one, job_bytes)  # fmt: skip
    return [*chain(*out)]


def each_piece(
    snapshot: Snapshot,
    read_plan: ReadPlan,
    columns: Sequence[str],
    visit: Callable[[Iterator[pa.RecordBatch], reading], Result],
    progress: Callable[[int], None] | None = None,
    job_bytes: int = JOB_BYTES,
    gives_back: bool = False,
    one_by_one: bool = False,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[Result]:
    """Yield what `visit` makes of the batches of every piece of a plan, in several threads; see `read`.

    Only some results wait to be taken: memory does not grow with the plan. They come in storage order, but from an
    object store as they arrive.

    Parameters
    ----------
    snapshot, read_plan, columns, visit, progress
        As for `read`; `visit` takes the batches of a piece, and a context for what it decodes: errors in it become
        those of a damaged file. What it computes with that belongs outside, where errors stay what they are.
    job_bytes, batch_bytes : int
        Of a piece and of a batch, about, where the table is in a file system: of fewer pieces come fewer results.
    gives_back : bool
        Whether the pages of mapped files no longer count as memory of the process once they were visited.
    one_by_one : bool
        Whether pieces are visited one after the other. From an object store, others are fetched meanwhile.
    """
    storage = snapshot.storage
    keeps = {file.path: snapshot.kept(file.path) for file in read_plan.files}  # before threads ask
    names = leaves(columns, len(read_plan.selection.shape))

    def batches(
        some: Sequence[ScanPiece], data: pa.Buffer | Part | None
    ) -> Iterator[pa.RecordBatch]:
        for piece in some:
            keep = keeps[piece.path]
            yield from read_piece(
                storage, piece, read_plan.predicate.id, names, keep, data, piece.nbytes
            )
            if gives_back and isinstance(data, pa.Buffer):
                footer, columns = footer_of(storage, piece.path), tuple(names)
                start, _ = footer.span(piece.row_groups[0], columns)
                _, stop = footer.span(piece.row_groups[-1], columns)
                give_back_pages(data.address + start, stop - start)
            if progress is not None:
                progress(piece.nbytes)

    def work(some: Sequence[ScanPiece], data: pa.Buffer | Part | None) -> Result:
        return visit(batches(some, data), reading(storage, some[0].path))

    if snapshot.remote is not None:
        yield from _fetched(snapshot, read_plan, names, keeps, work, one_by_one)
    else:
        yield from _mapped(snapshot, read_plan, job_bytes, batch_bytes, work, one_by_one)


def _fetched(
    snapshot: Snapshot,
    read_plan: ReadPlan,
    names: Sequence[str],
    keeps: Mapping[str, Array | None],
    work: Callable[[Sequence[ScanPiece], Part], Result],
    one_by_one: bool,
) -> Iterator[Result]:
    """Yield the results of pieces of an object store as they arrive; others are fetched meanwhile."""
    storage, remote = snapshot.storage, snapshot.remote
    assert remote is not None  # nosec B101 # for mypy
    target = max(_REQUEST_BYTES, min(JOB_BYTES, read_plan.n_bytes // IO_THREADS))
    jobs = pieces(snapshot, read_plan, target, adjacent=True)

    def fetch(piece: ScanPiece) -> Part:
        with reading(storage, piece.path):
            footer, groups = footer_of(storage, piece.path, remote=remote), piece.row_groups
            keep = keeps[piece.path]
            needed, _ = _needed(footer, groups, names, read_plan.predicate.id, keep)
            return footer.fetch(remote, piece.path, groups, tuple(needed))

    turn = Lock() if one_by_one else nullcontext()

    def work_in_turn(piece: ScanPiece, data: Part) -> Result:
        with turn:
            return work((piece,), data)

    yield from overlapped(jobs, fetch, work_in_turn)


def _mapped(
    snapshot: Snapshot,
    read_plan: ReadPlan,
    job_bytes: int,
    batch_bytes: int,
    work: Callable[[Sequence[ScanPiece], pa.Buffer | None], Result],
    one_by_one: bool,
) -> Iterator[Result]:
    """Yield the results of pieces of files that are mapped into memory, in storage order."""
    maps: dict[str, pa.Buffer | None] = {}
    for file in read_plan.files:
        with reading(snapshot.storage, file.path):
            maps[file.path] = snapshot.maps.map(snapshot.storage, file.path)
    target = job_bytes if one_by_one else _job_bytes(read_plan.n_bytes, job_bytes)
    count = max(1, round(read_plan.n_bytes / target))
    batches = max(1, -(-(target - 1) // batch_bytes))
    runs = _runs(pieces(snapshot, read_plan, 0), count, batches)
    if len(runs) == 1 or one_by_one:  # another thread would only be waited for
        for run in runs:
            yield work(run, maps[run[0].path])
        return
    yield from in_order(lambda some: work(some, maps[some[0].path]), runs)


def _runs(groups: Sequence[ScanPiece], count: int, batches: int) -> list[list[ScanPiece]]:
    """Cut row groups into so many runs of about the same bytes, each of some batches, so that no thread ends late."""
    ends = [*accumulate(group.nbytes for group in groups)]
    share = count * batches / max([1, *ends[-1:]])
    middles = [end - group.nbytes / 2 for group, end in zip(groups, ends, strict=True)]
    places = [(group.path, int(at * share)) for group, at in zip(groups, middles, strict=True)]
    out: dict[tuple[str, int], list[ScanPiece]] = {}
    for (path, place), same in groupby(range(len(groups)), places.__getitem__):
        (piece,) = joined([groups[n] for n in same])
        out.setdefault((path, place // batches), []).append(piece)
    return [*out.values()]


def _job_bytes(total: int, job_bytes: int = JOB_BYTES) -> int:
    """Return how much one thread reads at a time: just enough to keep all threads busy, as each piece costs time."""
    rounds = -(-total // (THREADS * job_bytes))
    return max(64 << 10, total // (THREADS * max(1, rounds)) + 1)
