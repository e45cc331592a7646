"""Data files -> digests of their rows: of those that are new; what is kept of the others is taken as it is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tensorlake_spark.audit.digest import Digest
from tensorlake_spark.delta.files import catalog, digest_file
from tensorlake_spark.delta.files.digest_file import LEAVES
from tensorlake_spark.delta.files.footer import Footer, footer_at, plain_types, reading
from tensorlake_spark.delta.files.runner import Run, parcels, run_here
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.ranges import Part, PartFile
from tensorlake_spark.delta.store.storage import Storage, open_here
from tensorlake_spark.rows.binary_views import payloads
from tensorlake_spark.rows.row import PAYLOAD
from tensorlake_spark.rows.row_digest import (
    CORNERS,
    META_COLUMNS,
    corner_values,
    heads,
    keeps_order,
    leaf_columns,
    meta_digest,
    row_digest,
)
from tensorlake_spark.threads import THREADS

_READ_BYTES = 32 << 20  # that a thread holds of a file of a store
_LEAST_BYTES = 8 << 20  # of a task of this process
_USUAL_BYTES = 64 << 20  # of a task where each thread has one: it costs as much as SHA-256 of 5 MB
_ROUNDS = 4  # tasks that each thread has, where they are large
_SMALL_CHUNK = 64  # bytes
_FILES = 64  # from which on a task is a whole file
_KEEP = 4

_BLOCKS = (
    ("id",), ("seq",), ("nnz",), ("layout", "params", "dtype", "codec"),
    *((names[0],) for names in (CORNERS[:8], CORNERS[8:])),
    *(names[1:] for names in (CORNERS[:8], CORNERS[8:])),
)  # fmt: skip
"""Leaf columns, those together that mostly are alike in all row groups of a file."""

_ALIKE = 8  # row groups for each that is decoded, at least

_known: OrderedDict[str, tuple[str, pa.Table]] = OrderedDict()
"""For tables of this process their id, and the digests of rows of their newest version."""

_Task = tuple[str, tuple[int, int] | None]


def digest_of(
    snapshot: Snapshot, tensor_id: str | None = None, keep: bool = True, run: Run = run_here
) -> Digest:
    """Return the digest of a table's version, or of one tensor; files that are known are not read.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    tensor_id : str, optional
        Which tensor; by default all.
    keep : bool
        Whether to keep what is new beside the table.
    run : callable
        Who reads files.

    Raises
    ------
    TensorNotFoundError
        If there is no such tensor.
    CorruptDataError
        If a file cannot be read.
    """
    if tensor_id is not None:
        catalog.get(snapshot, tensor_id)  # raises, with the nearest names
    known = _known_leaves(snapshot)
    have = set(known["path"].unique().to_pylist())
    files = snapshot.files
    wanted = range(len(files.path)) if tensor_id is None else files.places_of(tensor_id).tolist()
    new = [place for place in wanted if files.path[place] not in have]
    tables = _read(snapshot, new, run)
    leaves = pa.concat_tables([known, *tables]).combine_chunks()
    if sum(table.num_rows for table in tables):
        remember(snapshot, leaves)
        if keep:
            digest_file.save(snapshot, leaves)
            if snapshot.has_successor():  # perhaps a purge, which saw an older file
                forget(Snapshot.open(snapshot.storage))
    hashed = int(files.size[new].sum())
    return Digest.of(_there(snapshot, leaves), snapshot, tensor_id, hashed)


def remember(snapshot: Snapshot, leaves: pa.Table) -> None:
    """Keep digests in this process, and forget all others of the table."""
    _known[snapshot.storage.uri] = snapshot.table_id, leaves
    while len(_known) > _KEEP:
        _known.popitem(last=False)


def forget(snapshot: Snapshot) -> None:
    """Forget digests of files that a version does not have, here and beside the table."""
    known = _known.pop(snapshot.storage.uri, None)
    digest_file.forget(snapshot)
    if known is not None and known[0] == snapshot.table_id:
        remember(snapshot, digest_file.live(snapshot, known[1]))


def distrust(snapshot: Snapshot, leaves: pa.Table) -> None:
    """Forget digests of files that have others, such as those that were made while a file was damaged.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    leaves : pyarrow.Table
        Digests of all live rows of some sound files, just made.
    """
    _known.pop(snapshot.storage.uri, None)
    kept = digest_file.load(snapshot)
    have = _by_file(_there(snapshot, kept))
    wrong = [path for path, said in _by_file(leaves).items() if have.get(path, said) != said]
    if wrong:
        is_wrong = pc.is_in(kept["path"], pa.array(wrong))
        digest_file.save(snapshot, kept.filter(pc.invert(is_wrong)))
        if snapshot.has_successor():
            forget(Snapshot.open(snapshot.storage))


def _by_file(leaves: pa.Table) -> dict[str, list[bytes]]:
    """Return the digests of rows by file, in their order."""
    out: dict[str, list[bytes]] = {}
    for path, digest in zip(leaves["path"].to_pylist(), leaves["digest"].to_pylist(), strict=True):
        out.setdefault(path, []).append(digest)
    return out


def _known_leaves(snapshot: Snapshot) -> pa.Table:
    """Return the digests of a version's files as far as they are known."""
    table_id, leaves = _known.get(snapshot.storage.uri, ("", LEAVES.empty_table()))
    if table_id == snapshot.table_id:
        leaves = digest_file.live(snapshot, leaves)
        if set(leaves["path"].unique().to_pylist()) >= set(snapshot.files.path):
            return leaves
    kept = digest_file.load(snapshot)
    if table_id != snapshot.table_id or kept.num_rows >= leaves.num_rows:
        if kept.num_rows:
            remember(snapshot, kept)
        return kept
    return leaves


def _there(snapshot: Snapshot, leaves: pa.Table) -> pa.Table:
    """Return the digests of rows that no deletion vector hides."""
    if not snapshot.deletions:
        return leaves
    paths = leaves["path"].combine_chunks().dictionary_encode()
    codes = paths.indices.to_numpy()
    there = np.ones(len(codes), bool)
    for code, path in enumerate(paths.dictionary.to_pylist()):
        keep = snapshot.kept(path)
        if keep is not None:
            there[codes == code] = keep
    return leaves.filter(pa.array(there))


def _read(snapshot: Snapshot, places: Sequence[int], run: Run) -> list[pa.Table]:
    """Return the digests of the rows of some files, read by several threads or executors."""
    files = snapshot.files
    total = int(files.size[list(places)].sum())
    usual = min(_USUAL_BYTES, -(-total // THREADS))
    share = max(_LEAST_BYTES, usual, total // (THREADS * _ROUNDS))
    tasks: list[_Task] = []
    sizes: list[int] = []
    for place in places:
        path, size = files.path[place], int(files.size[place])
        if run is not run_here or len(places) > _FILES:
            tasks.append((path, None))
            sizes.append(size)
            continue
        footer = footer_at(snapshot, place)
        for first, stop in parcels(footer.nbytes.tolist(), share, 0):
            tasks.append((path, (first, stop)))
            sizes.append(int(footer.nbytes[first:stop].sum()))
    return [table for _, table in run(partial(_hashed, snapshot), tasks, sizes)]


def _hashed(snapshot: Snapshot, task: _Task) -> pa.Table:
    """Return the digests of the rows of a file, or of some of its row groups, deleted ones included."""
    path, span = task
    storage, size = snapshot.storage, int(snapshot.files.size[snapshot.places[path]])
    with reading(storage, path):
        footer = footer_at(snapshot, snapshot.places[path])
        begin, end = span or (0, len(footer.rows))
        mapped = storage.map_file(path)
        most = int(footer.nbytes.sum()) if mapped is not None else _READ_BYTES
        tables = []
        for first, stop in parcels(footer.nbytes[begin:end].tolist(), most, 0):
            groups = range(begin + first, begin + stop)
            data = mapped if mapped is not None else _fetched(storage, path, footer, groups)
            tables.append(_of_groups(storage, path, size, footer, groups, data))
        return pa.concat_tables([LEAVES.empty_table(), *tables])


def _fetched(storage: Storage, path: str, footer: Footer, groups: Sequence[int]) -> Part:
    """Return the bytes of some row groups that follow one another, read from a store at once."""
    every = tuple(footer.columns)
    start, stop = footer.span(groups[0], every)[0], footer.span(groups[-1], every)[1]
    with storage.open_input(path) as file:
        return Part(pa.py_buffer(file.read_at(stop - start, start)), start)


def _of_groups(
    storage: Storage,
    path: str,
    size: int,
    footer: Footer,
    groups: Sequence[int],
    data: pa.Buffer | Part,
) -> pa.Table:
    """Return the digests of the rows of some row groups, whose payload is hashed where it lies."""

    def opened() -> pq.ParquetFile:
        if isinstance(data, Part):
            return open_here(PartFile(data), footer.metadata)
        return storage.open_parquet(path, footer.metadata)

    with opened() as file:
        columns = _decoded(footer, groups, data, file)
        payload = {name: _payload(footer, groups, data, file, name) for name in PAYLOAD}
        numbers = np.repeat(np.array(groups, np.int32), footer.rows[list(groups)])
        metas: list[dict[str, Any]] = []
        is_meta = columns["nnz"].to_numpy(False) == 0
        for group in np.unique(numbers[is_meta]).tolist():
            rows = plain_types(
                file.read_row_group(group, columns=[*META_COLUMNS, "nnz"], use_threads=False)
            )
            metas += [row for row in rows.to_pylist() if row["nnz"] == 0]
    return leaves_of(path, size, numbers, columns, payload, metas)


def leaves_of(
    path: str,
    size: int,
    groups: Any,
    columns: Mapping[str, Any],
    payload: Mapping[str, Sequence[Any]],
    metas: Sequence[Mapping[str, Any]],
) -> pa.Table:
    """Return the digests of rows of one file, in the columns `LEAVES`.

    Parameters
    ----------
    path, size : str, int
        The file.
    groups : int32 ndarray
        For each row its row group.
    columns : mapping of str to pyarrow.Array
        `DATA_COLUMNS` and ``seq``.
    payload : mapping of str to sequence
        ``index`` and ``values`` of the rows.
    metas : sequence of mapping
        The metadata rows among them, in their order.
    """
    count = len(groups)
    columns = {
        **columns,
        **{name: _sure(columns[name], other) for name, other in _REQUIRED.items()},
    }
    kinds = np.zeros(count, np.int8)
    digests = [
        row_digest(head, index, values)
        for head, index, values in zip(
            heads(columns), payload["index"], payload["values"], strict=True
        )
    ]
    places = np.flatnonzero(columns["nnz"].to_numpy(False) == 0).tolist()
    for place, row in zip(places, metas, strict=True):
        digests[place] = meta_digest(row)
        kinds[place] = digest_file.ORDERED if keeps_order(row) else digest_file.METADATA
    values, given = corner_values(columns)
    half = len(CORNERS) // 2
    arrays = [
        pa.repeat(path, count),
        pa.repeat(pa.scalar(size, pa.int64()), count),
        pa.array(groups, pa.int32()),
        pa.array(kinds),
        columns["id"],
        columns["seq"],
        _lists(values[:, :half], given[:, :half]),
        _lists(values[:, half:], given[:, half:]),
        pa.array(digests, LEAVES.field("digest").type),
    ]
    return pa.Table.from_arrays(arrays, schema=LEAVES)


_REQUIRED = {"id": "", "seq": -1, "nnz": -1}


def _sure(column: pa.Array, other: Any) -> pa.Array:
    """Return a column without nulls, which only another program could have written."""
    return column.fill_null(other) if column.null_count else column


def leaves_of_rows(path: str, size: int, group: int, rows: pa.RecordBatch) -> pa.Table:
    """Return `leaves_of` rows of one row group with all their columns."""
    every = range(rows.num_rows)
    payload = {name: payloads(rows.column(name), every) for name in PAYLOAD}
    nnz = _sure(rows.column("nnz"), -1).to_numpy()
    metas = rows.filter(pa.array(nnz == 0)).select(list(META_COLUMNS)).to_pylist()
    groups = np.full(rows.num_rows, group, np.int32)
    return leaves_of(path, size, groups, leaf_columns(rows), payload, metas)


def _lists(values: Any, given: Any) -> pa.ListArray:
    ends = np.concatenate([[0], np.cumsum(given.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values[given]))


def _decoded(
    footer: Footer, groups: Sequence[int], data: pa.Buffer | Part, file: pq.ParquetFile
) -> dict[str, pa.Array]:
    """Return small columns of some row groups.

    Arrow takes as long for a column of a row group as SHA-256 for 50 KB, whatever is in it. Mostly the same bytes are
    stored in all row groups: those are decoded once.
    """
    alike: dict[tuple[int, ...], list[str]] = {}
    blocks = [*_BLOCKS]
    while blocks:
        block = blocks.pop()
        first: dict[bytes, int] = {}
        stored = footer.raw(data, groups, block)
        chosen = tuple(first.setdefault(raw, g) for raw, g in zip(stored, groups, strict=True))
        if len(block) > 1 and len(first) > 1 + len(groups) // _ALIKE:
            blocks += [block[:1], block[1:]]
        else:
            alike.setdefault(chosen, []).extend(block)
    out: dict[str, pa.Array] = {}
    for chosen, names in alike.items():
        distinct = [*dict.fromkeys(chosen)]
        rows = plain_types(file.read_row_groups(distinct, columns=names, use_threads=False))
        found = leaf_columns(rows)
        if len(distinct) < len(chosen):
            counts = footer.rows[distinct]
            starts = dict(zip(distinct, np.cumsum(counts) - counts, strict=True))
            at = pa.array(
                np.concatenate([np.arange(starts[g], starts[g] + footer.rows[g]) for g in chosen])
            )
            found = {name: column.take(at) for name, column in found.items()}
        out |= found
    return out


def _payload(
    footer: Footer, groups: Sequence[int], data: pa.Buffer | Part, file: pq.ParquetFile, name: str
) -> list[Any]:
    """Return a payload column of some row groups as bytes-like objects, where they lie if that can be."""
    out: list[Any] = []
    known: dict[
        bytes, list[Any]
    ] = {}  # of small ones: a column that is null looks alike in all row groups
    for group in groups:
        start, stop = footer.span(group, (name,))
        raw = footer.raw(data, (group,), (name,))[0] if stop - start <= _SMALL_CHUNK else b""
        found: list[Any] | None = known.get(raw)
        if found is None:
            found = footer.values(data, group, name)
            if found is None:
                rows = plain_types(file.read_row_group(group, columns=[name], use_threads=False))
                found = payloads(rows.column(0).combine_chunks(), range(rows.num_rows))
            if raw:
                known[raw] = found
        out += found
    return out
