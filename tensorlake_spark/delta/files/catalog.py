"""The tensors of a version: their metadata rows, found through the log and read from the files."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files import catalog_file
from tensorlake_spark.delta.files.footer import Array, Footer, footer_at, plain_types, reading
from tensorlake_spark.delta.log.properties import commits_between
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.ranges import PartFile
from tensorlake_spark.delta.store.storage import open_here
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidTensorError,
    TensorLakeError,
    TensorNotFoundError,
    did_you_mean,
)
from tensorlake_spark.rows.metadata import META_COLUMNS, Meta, read_meta
from tensorlake_spark.rows.row import bools, is_text
from tensorlake_spark.tensor.spec import check_id
from tensorlake_spark.threads import io_threads

logger = logging.getLogger("tensorlake_spark")

_KEEP = 256
_AT_ONCE = 256  # files of a store
_FEW = 32  # files that are opened one by one rather than looked up in the catalog file
_KEPT_FROM = 64  # files of a table that has a catalog file
_KEPT_ROWS = 16  # of a data file with more, or larger ones, opening it is worth while
_KEPT_BYTES = 8 << 10
_KEPT_NEW = 512  # files that one commit opens for the catalog file
_ROWS = pa.schema([field for field in catalog_file.CATALOG if field.name not in ("path", "size")])
_ROW_COLUMNS = [*META_COLUMNS, "row"]
_cache: OrderedDict[tuple[str, str], pa.Table] = OrderedDict()


def _meta_rows(snapshot: Snapshot, place: int) -> pa.Table:
    """Return the metadata rows of one file that are still there."""
    table = _rows_of_file(snapshot, place)
    keep = snapshot.kept(snapshot.files.path[place])
    if keep is not None:
        table = table.filter(bools(keep[table["row"].to_numpy()]))
    return table


def _rows_of_file(snapshot: Snapshot, place: int) -> pa.Table:
    """Return the metadata rows of one file, deleted or not; files never change, so they are kept."""
    name = snapshot.files.path[place]
    key = (snapshot.storage.uri, name)
    table = _cache.get(key)
    if table is None:
        footer = footer_at(snapshot, place)
        least, most = footer.bounds("nnz")
        groups = [g for g, value in enumerate(least) if value in (0, None)]
        with reading(snapshot.storage, name):
            metadata, places = footer.part(groups)
            with _opened(snapshot, name, footer, groups, metadata) as file:
                table = plain_types(
                    file.read_row_groups(places, columns=list(META_COLUMNS), use_threads=False)
                )
            numbers = np.concatenate(
                [np.arange(footer.rows[g]) + footer.first_row[g] for g in groups] or [np.zeros(0)]
            ).astype(np.int64)
            # Of its buffer: `pyarrow.array` of an array of NumPy imports pandas first.
            kept = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
            table = table.append_column("row", kept)
            if any(most[g] != 0 for g in groups):  # data rows beside them, or nobody knows
                table = table.filter(pa.array(table["nnz"].to_numpy() == 0))
        _cache[key] = table
        while len(_cache) > _KEEP:
            _cache.popitem(last=False)
    return table


def _opened(
    snapshot: Snapshot, name: str, footer: Footer, groups: list[int], metadata: pq.FileMetaData
) -> pq.ParquetFile:
    """Open a file to read the metadata columns of some row groups: of an object, mostly all at once."""
    remote = snapshot.remote
    if remote is not None and groups and groups[-1] - groups[0] == len(groups) - 1:
        return open_here(PartFile(footer.fetch(remote, name, groups, META_COLUMNS)), metadata)
    return snapshot.storage.open_parquet(name, metadata)


def find(snapshot: Snapshot, tensor_id: str) -> Meta | None:
    """Return the metadata of one tensor, None if there is no such tensor.

    The row with the greatest ``seq`` holds. Files are visited from the greatest ``seq`` of the log
    downwards, so that mostly one is opened.
    """
    files = snapshot.files
    places = files.places_of(tensor_id, data=False)
    if not len(places):
        return None
    best: dict[str, Any] | None = None
    for place in places[np.argsort(-files.last_seq[places], kind="stable")].tolist():
        if best is not None and best["seq"] >= files.last_seq[place]:
            break
        rows = _meta_rows(snapshot, place)
        if rows.num_rows > 1:
            rows = rows.filter(is_text(rows["id"], tensor_id)).sort_by([("seq", "descending")])
        if rows.num_rows and (best is None or rows["seq"][0].as_py() > best["seq"]):
            try:
                row = rows.slice(0, 1).to_pylist()[0]
                best = row if row["id"] == tensor_id else best
            except UnicodeDecodeError as error:
                raise CorruptDataError(
                    f"the metadata row of tensor {tensor_id!r} in {files.path[place]} is damaged: {error}"
                ) from error
    return None if best is None else read_meta(best)


def get(snapshot: Snapshot, tensor_id: str) -> Meta:
    """Return the metadata of one tensor.

    Raises
    ------
    TensorNotFoundError
        If there is no such tensor; the message offers the nearest names.
    """
    meta = find(snapshot, tensor_id) if isinstance(tensor_id, str) else None
    if meta is None:
        known = ids(snapshot)
        hint = did_you_mean(str(tensor_id), known)
        if not hint:
            hint = f"; it has {', '.join(map(repr, known[:5]))}" if known else "; it has no tensor"
        raise TensorNotFoundError(
            f"there is no tensor {tensor_id!r} in version {snapshot.version} of "
            f"{snapshot.storage.uri}{hint}"
        )
    return meta


def _look_up(snapshot: Snapshot, places: Array) -> tuple[pa.Table, Array]:
    """Return the metadata rows of files that the catalog file has, and the places of all others.

    A row is taken if the log has a file of its path and size, and its id is within the log's bounds. Files with a
    deletion vector are left to be opened.
    """
    nothing = catalog_file.CATALOG.empty_table().select(_ROW_COLUMNS)
    if len(places) <= _FEW:
        return nothing, places
    rows = catalog_file.load(snapshot.storage)
    files = snapshot.files
    paths = [*files.path]
    live = {paths[place]: place for place in places.tolist()}
    for path in snapshot.deletions:
        live.pop(path, None)
    found = np.array([live.get(path, -1) for path in rows["path"].to_pylist()], np.int64)
    names = rows["id"].to_numpy()
    first, last = files.first_id[found], files.last_id[found]
    fits = (found >= 0) & (rows["size"].to_numpy() == files.size[found])
    fits &= np.array(
        [
            name is not None and (a is None or a <= name) and (b is None or name <= b)
            for name, a, b in zip(names, first, last, strict=True)
        ],
        bool,
    )
    fits &= rows["nnz"].to_numpy() == 0
    fits &= ~np.isin(found, found[~fits])  # a file with a row that does not fit is opened
    return (
        rows.filter(pa.array(fits)).select(_ROW_COLUMNS),
        places[~np.isin(places, found[fits])],
    )


def keep(snapshot: Snapshot, added: int) -> None:
    """Write the catalog file of a table with many files, every so many commits, for later listings.

    Parameters
    ----------
    snapshot : Snapshot
        The version that a commit has made.
    added : int
        How many files that commit added.
    """
    count = len(snapshot.files.path)
    pace = commits_between(count)
    if count < _KEPT_FROM or not (added >= pace or (snapshot.version + 1) % pace == 0):
        return
    try:
        _write(snapshot)
    except (TensorLakeError, OSError, pa.ArrowException) as error:  # the change itself is there
        logger.warning("the catalog file of %s was not written: %s", snapshot.storage.uri, error)


def forget(snapshot: Snapshot) -> None:
    """Rewrite the catalog file, if there is one, with rows of a version's files alone, and delete all others.

    A writer that works meanwhile may save an older one afterwards. It sees then that there is a later version,
    and mends it, as `_save` does.
    """
    storage = snapshot.storage
    before = catalog_file.paths(storage)
    rows = _rows_to_keep(snapshot) if before else None
    catalog_file.delete(storage, [*before, *catalog_file.unfinished(storage)])
    if rows is not None:
        _save(snapshot, rows)


def _write(snapshot: Snapshot) -> None:
    _save(snapshot, _rows_to_keep(snapshot))


def _save(snapshot: Snapshot, rows: pa.Table) -> None:
    """Save the catalog file of a version, and take out again what another writer removed meanwhile.

    Rows of removed files would do no harm, but a purge has to get rid of them. It removes files by a commit,
    and deletes catalog files after it. So one that it has not seen was saved after that commit, and whoever
    saved it finds the commit here.
    """
    storage = snapshot.storage
    while catalog_file.save(storage, snapshot.version, rows):
        if not snapshot.has_successor():
            return
        snapshot = Snapshot.newest(storage)
        live = _of_files(rows, set(snapshot.files.path))
        if live.num_rows == rows.num_rows:
            return
        rows = live


def _of_files(rows: pa.Table, paths: set[str]) -> pa.Table:
    return rows.filter(pa.array([path in paths for path in rows["path"].to_pylist()], pa.bool_()))


def _rows_to_keep(snapshot: Snapshot) -> pa.Table:
    """Return the rows of the catalog file whose data files are live, and those of the newest other files."""
    files = snapshot.files
    places = np.flatnonzero(files.least_nnz == 0)
    live = [*files.path]
    old = _of_files(catalog_file.load(snapshot.storage), set(live))
    have = set(old["path"].to_pylist())
    new = [place for place in places.tolist() if live[place] not in have][-_KEPT_NEW:]
    load: Any = map if snapshot.remote is None else io_threads().map
    tables, paths, sizes = [], [], []
    for place, rows in zip(new, load(partial(_rows_of_file, snapshot), new), strict=True):
        if 0 < rows.num_rows <= _KEPT_ROWS and rows.nbytes <= _KEPT_BYTES:
            tables.append(
                rows if rows.schema.equals(_ROWS) else rows.select(_ROWS.names).cast(_ROWS)
            )
            paths += [files.path[place]] * rows.num_rows
            sizes += [int(files.size[place])] * rows.num_rows
    if not tables:
        return old
    rows = pa.concat_tables(tables)
    rows = rows.add_column(0, "size", pa.array(sizes, pa.int64()))
    rows = rows.add_column(0, "path", pa.array(paths, pa.string()))
    return pa.concat_tables(
        [old, rows.select(catalog_file.CATALOG.names).cast(catalog_file.CATALOG)]
    )


def _newest(snapshot: Snapshot) -> Iterator[pa.Table]:
    """Yield the metadata rows of all tensors, those that hold among them.

    Files are visited as `find` does it, so that of a tensor's own files only the newest is opened. A store
    is asked for many of them at once.
    """
    files = snapshot.files
    places = np.flatnonzero(files.least_nnz == 0)
    known, places = _look_up(snapshot, places)
    waiting = deque(places[np.argsort(-files.last_seq[places], kind="stable")].tolist())
    newest: dict[str, int] = {}
    if known.num_rows:
        yield known
        for name, seq in zip(known["id"].to_pylist(), known["seq"].to_pylist(), strict=True):
            newest[name] = max(seq, newest.get(name, -1))
    load: Any = map if snapshot.remote is None else io_threads().map
    most = 1 if snapshot.remote is None else _AT_ONCE
    while waiting:
        wave: list[int] = []
        older: list[int] = []
        names = set()
        while waiting and len(wave) < most:
            place = waiting.popleft()
            name, seq = files.first_id[place], files.last_seq[place]
            if name is not None and name == files.last_id[place]:
                if newest.get(name, -1) >= seq:
                    continue
                if name in names:
                    older.append(place)
                    continue
                names.add(name)
            wave.append(place)
        waiting.extendleft(reversed(older))
        for rows in load(partial(_meta_rows, snapshot), wave):
            if rows.num_rows:
                yield rows
                for name, seq in zip(rows["id"].to_pylist(), rows["seq"].to_pylist(), strict=True):
                    newest[name] = max(seq, newest.get(name, -1))


def _latest(snapshot: Snapshot) -> pa.Table:
    """The metadata row that holds, for every tensor, ordered by id."""
    tables = list(_newest(snapshot))
    if not tables:
        return pa.table({"id": pa.array([], pa.string())})
    # Files of other writers may have columns that take nulls, or longer lists.
    rows = pa.concat_tables(tables, promote_options="permissive")
    rows = rows.sort_by([("id", "ascending"), ("seq", "descending")])
    names = rows["id"].to_pylist()
    first = [i for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
    return rows.take(pa.array(first, pa.int64()))


def ids(snapshot: Snapshot) -> list[str]:
    """Return the ids of all tensors, sorted. What the log says of a file with one tensor is enough."""
    files = snapshot.files
    found: set[str] = set()
    unsure = []
    known = files.most_nnz < np.iinfo(np.int64).max  # and so the least is
    for place in np.flatnonzero(files.least_nnz == 0).tolist():
        first, last = files.first_id[place], files.last_id[place]
        marked = files.path[place] in snapshot.deletions
        if first is not None and first == last and known[place] and not marked:
            found.add(first)
        else:
            unsure.append(place)
    rows, others = _look_up(snapshot, np.array(unsure, np.int64))
    found.update(rows["id"].to_pylist())
    for place in others.tolist():
        found.update(_meta_rows(snapshot, place)["id"].to_pylist())
    for name in found:
        try:
            check_id(name)
        except InvalidTensorError as error:
            raise CorruptDataError(
                f"the table at {snapshot.storage.uri} holds a tensor whose name is none: {error}; do not trust "
                "this table"
            ) from error
    return sorted(found)


def metas(snapshot: Snapshot, most: int | None = None) -> Iterator[Meta]:
    """Yield the metadata of all tensors, by id; of the first `most`, if given."""
    for batch in _latest(snapshot).slice(0, most).to_batches(1024):
        yield from map(read_meta, batch.to_pylist())
