"""The footer of a data file as arrays: what lies in which row group. Files never change, so it is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer_checksum import read_indexed
from tensorlake_spark.delta.files.payload import PayloadViews, plain_column, stored_values
from tensorlake_spark.delta.files.statistics import BOUNDED, places_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import FILES_KEPT
from tensorlake_spark.delta.store.footer_index import IndexedFooter, schema_of
from tensorlake_spark.delta.store.ranges import Part, Remote, joined
from tensorlake_spark.delta.store.storage import Storage, is_refusal, refusal
from tensorlake_spark.errors import CorruptDataError, MissingDataError, TensorLakeError
from tensorlake_spark.rows.row import PAYLOAD, SCHEMA, joined_rows
from tensorlake_spark.tensor.spec import STORED_AXES

Array = np.ndarray[Any, Any]
Opened = Callable[[pq.FileMetaData], pq.ParquetFile]

_KEEP, _KEEP_ALL = 512, 2048  # large files, and any: a tensor may have many small ones
_FEW, _FEW_ROWS = 4, 1 << 10  # row groups and rows of a small file, whose footer takes 50 KB
_SMALL_ROWS = 1 << 16  # rows of a file whose small columns are kept
_METAS = 64 << 10  # bytes of metadata rows that are kept
_GAP = 256 << 10  # bytes that are read and not needed rather than asking twice


class Footer:
    """Row groups of one data file, with the bounds that pruning needs.

    Attributes
    ----------
    rows, first_row, nbytes : int64 arrays of shape (row groups,)
        Rows of each group, the number of its first row in the file, its bytes.
    num_rows : int
        Rows of the file.
    """

    def __init__(self, found: pq.FileMetaData | IndexedFooter) -> None:
        self._found = found
        self._groups: dict[int, pq.RowGroupMetaData] = {}
        self._bounds: dict[str, tuple[list[Any], list[Any]]] = {}
        if isinstance(found, IndexedFooter):
            rows, nbytes = found.index.rows, found.index.nbytes
            unknown: tuple[list[Any], list[Any]] = [None] * len(rows), [None] * len(rows)
            self._bounds = dict.fromkeys(BOUNDED, unknown) | found.index.bounds
        else:
            self._groups = {g: found.row_group(g) for g in range(found.num_row_groups)}
            rows = [group.num_rows for group in self._groups.values()]
            nbytes = [group.total_byte_size for group in self._groups.values()]
            _ = self._column  # raises where one is missing
        self.rows = np.array(rows, np.int64)
        self.first_row = np.cumsum(self.rows) - self.rows
        self.nbytes = np.array(nbytes, np.int64)
        self.num_rows = found.num_rows
        self._side: dict[int, tuple[Array, Array, Array]] = {}
        self._held: tuple[tuple[str, bool] | None, Array] = None, np.zeros(0, bool)
        # Of row groups the rows that were read together, and which of these are theirs.
        self._small: dict[tuple[int, tuple[str, ...]], tuple[pa.RecordBatch, int, int]] = {}
        self._small_rows = 0
        self._payload: dict[tuple[int, str], PayloadViews | None] = {}
        self._metas: Part | None = None
        self._reach: dict[tuple[str, ...], tuple[int, int]] = {}

    @property
    def metadata(self) -> pq.FileMetaData:
        """The whole footer; a file opened with it reads it no second time."""
        return self._found.metadata if isinstance(self._found, IndexedFooter) else self._found

    def part(self, groups: Sequence[int]) -> tuple[pq.FileMetaData, list[int]]:
        """Return a footer that has some row groups, and their numbers in it."""
        found = self._found
        return found.part(groups) if isinstance(found, IndexedFooter) else (found, [*groups])

    def _group(self, number: int) -> pq.RowGroupMetaData:
        if number not in self._groups:
            metadata, (place,) = self.part([number])
            self._groups[number] = metadata.row_group(place)
        return self._groups[number]

    @cached_property
    def _column(self) -> dict[str, int]:
        """Where each leaf column stands, by its path."""
        return places_of(schema_of(self._found))

    @property
    def columns(self) -> frozenset[str]:
        """Paths of the leaf columns, such as ``lo.d0``."""
        return frozenset(self._column)

    def small(
        self, file: Opened, groups: Sequence[int], columns: tuple[str, ...]
    ) -> pa.RecordBatch:
        """Return the columns of some row groups that are no payload; read once, then kept.

        Parameters
        ----------
        file : callable
            Opens the file with a footer, if it has to be read.
        groups : sequence of int
            Which row groups, at least one.
        columns : tuple of str
            Leaf columns.
        """
        found: dict[int, Any] = {g: self._small.get((g, columns)) for g in groups}
        absent = [g for g, held in found.items() if held is None]
        if absent:
            metadata, numbers = self.part(absent)
            with file(metadata) as opened:
                table = opened.read_row_groups(numbers, columns=list(columns), use_threads=False)
            read = plain_types(table).combine_chunks().to_batches()[0]
            first = 0
            for g in absent:
                held = found[g] = read, first, first + int(self.rows[g])
                first = held[2]
                if self._small_rows < _SMALL_ROWS:
                    self._small[g, columns] = held
                    self._small_rows += held[2] - held[1]
        return joined_rows([found[g] for g in groups])

    def span(self, group: int, columns: tuple[str, ...]) -> tuple[int, int]:
        """Return where in the file some columns of a row group lie, and whatever is between them."""
        reach = self._reach.get(columns)
        if reach is None:
            places = self._places(columns)
            reach = self._reach[columns] = min(places), max(places)
        first, last = map(self._group(group).column, reach)
        return _start(first), _start(last) + int(last.total_compressed_size)

    def _places(self, columns: tuple[str, ...]) -> list[int]:
        wanted = {*columns}
        return [i for path, i in self._column.items() if not wanted.isdisjoint(_prefixes(path))]

    def size_of(self, groups: Sequence[int], columns: Sequence[str] | None = None) -> int:
        """Return the bytes of row groups, without the payloads that are not among `columns`."""
        size = int(self.nbytes[list(groups)].sum())
        self.part(groups)  # all at once
        for name in PAYLOAD if columns is not None else ():
            place = self._column.get(name)
            if name not in (columns or ()) and place is not None:
                size -= sum(int(self._group(g).column(place).total_compressed_size) for g in groups)
        return size

    def gap(self, group: int, later: int) -> int:
        """Return how many bytes lie between two row groups."""
        ends = self._group(group).column(len(self._column) - 1)
        begins = self._group(later).column(0)
        return _start(begins) - _start(ends) - int(ends.total_compressed_size)

    def keep_metas(self, tail: Part) -> None:
        """Keep the row groups of metadata that end the file, if they are in its last bytes, for `fetch`."""
        _, most = self.bounds("nnz")
        group = len(self.rows)
        while group and most[group - 1] == 0:
            group -= 1
        if group < len(self.rows):
            every = tuple(self._column)
            start, stop = self.span(group, every)[0], self.span(len(self.rows) - 1, every)[1]
            if stop - start <= _METAS and tail.has(start, stop):
                data = tail.slice(start, stop - start).to_pybytes()  # or all of it would stay
                self._metas = Part(pa.py_buffer(data), start)

    def fetch(
        self, remote: Remote, name: str, groups: Sequence[int], columns: tuple[str, ...]
    ) -> Part:
        """Return the bytes of some columns of row groups that follow one another, with one request.

        Where a large column `index` is not among them, requests go around it.
        """
        start, stop = self.span(groups[0], columns)[0], self.span(groups[-1], columns)[1]
        if self._metas is not None and self._metas.has(start, stop):
            return self._metas
        spans = [(start, stop)]
        if "values" in columns and "index" not in columns:
            spans = self._apart(groups, columns)
        return joined([Part(remote.read(name, a, b - a), a) for a, b in spans])

    def _apart(self, groups: Sequence[int], columns: tuple[str, ...]) -> list[tuple[int, int]]:
        """Return where in the file the columns of row groups lie, without the large gaps between them."""
        places = self._places(columns)
        chunks = [self._group(g).column(i) for g in groups for i in places]
        out: list[tuple[int, int]] = []
        for start, chunk in sorted((_start(c), c.total_compressed_size) for c in chunks):
            if out and start - out[-1][1] <= _GAP:
                out[-1] = out[-1][0], start + chunk
            else:
                out.append((start, start + chunk))
        return out

    def payload(self, file: pa.Buffer | Part, group: int, column: str) -> PayloadViews | None:
        """Return where the payloads of a row group lie in a file, None if Arrow has to read them."""
        key = (group, column)
        if key not in self._payload:
            chunk = plain_column(self._group(group), self._column[column])
            self._payload[key] = None if chunk is None else PayloadViews(file, chunk)
        return self._payload[key]

    def values(
        self, file: pa.Buffer | Part, group: int, column: str
    ) -> list[memoryview | None] | None:
        """Return the payloads of a row group where they lie in a file, None if Arrow has to read them."""
        chunk = plain_column(self._group(group), self._column[column])
        return None if chunk is None else stored_values(file, chunk)

    def raw(
        self, file: pa.Buffer | Part, groups: Sequence[int], columns: tuple[str, ...]
    ) -> list[bytes]:
        """Return of row groups the bytes of some leaf columns, and what is between: equal ones hold equal values."""
        spans = [self.span(group, columns) for group in groups]
        if max((stop for _, stop in spans), default=0) > file.size:
            raise CorruptDataError(f"the file has {file.size} bytes, a column ends after them")
        first = file.start if isinstance(file, Part) else 0
        data = memoryview(file.data if isinstance(file, Part) else file)
        return [data[start - first : stop - first].tobytes() for start, stop in spans]

    def bounds(self, column: str) -> tuple[list[Any], list[Any]]:
        """Return the least and the greatest value of a column in each row group, None if unknown."""
        known = self._bounds.get(column)
        if known is None:
            found = [self._bounds_of(column, g) for g in range(len(self.rows))]
            known = self._bounds[column] = ([a for a, _ in found], [b for _, b in found])
        return known

    def boxes(self, axes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Return for each row group a box that covers its rows, exact on `axes` only.

        Returns
        -------
        lo, hi : int64 ndarray, shape (row groups, len(shape))
            Axes that are not asked for, or not known, span the whole tensor.
        """
        count = len(self.rows)
        lo = np.zeros((count, len(shape)), np.int64)
        hi = np.full(lo.shape, shape, np.int64)
        for k in axes:
            if k < STORED_AXES:
                known, least, most = self._sides(k)
                np.copyto(lo[:, k], least, where=known)
                np.copyto(hi[:, k], most, where=known)
        return lo, hi

    def _sides(self, axis: int) -> tuple[Array, Array, Array]:
        """Return for each row group whether bounds of an axis are known, and these."""
        sides = self._side.get(axis)
        if sides is None:
            least, most = self.bounds(f"lo.d{axis}")[0], self.bounds(f"hi.d{axis}")[1]
            pairs = zip(least, most, strict=True)
            known = np.array([None not in pair for pair in pairs], bool)
            both = np.array([[a or 0 for a in least], [b or 0 for b in most]], np.int64)
            sides = self._side[axis] = known, both[0], both[1]
        return sides

    def may_hold(self, tensor_id: str, data: bool) -> Array:
        """Return for each row group whether it may hold data (or metadata) rows of a tensor; not for writing."""
        asked, held = self._held
        if asked == (tensor_id, data):
            return held
        first, last = self.bounds("id")
        least, most = self.bounds("nnz")
        out = self.rows > 0  # others write row groups without rows
        for g in range(len(out)):
            if first[g] is not None and not first[g] <= tensor_id <= last[g]:
                out[g] = False
            if least[g] is not None and (most[g] == 0 if data else least[g] > 0):
                out[g] = False
        self._held = (tensor_id, data), out
        return out

    def holds_only(self, tensor_id: str, group: int) -> bool:
        """Whether a row group is known to hold data rows of this tensor and nothing else."""
        first, last = self._bounds_of("id", group)
        least, _ = self._bounds_of("nnz", group)
        return bool(first == last == tensor_id and (least or 0) > 0)

    def _bounds_of(self, column: str, group: int) -> tuple[Any, Any]:
        """Return the least and the greatest value of a column in one row group, None if unknown."""
        known = self._bounds.get(column)
        if known is not None:
            return known[0][group], known[1][group]
        place = self._column.get(column)
        statistics = None if place is None else self._group(group).column(place).statistics
        if statistics is None or not statistics.has_min_max:
            return None, None
        if column in BOUNDED and column != "id":  # as they are stored: a third of the time
            return statistics.min_raw, statistics.max_raw
        return statistics.min, statistics.max


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Return where in the file a column chunk begins."""
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


def _prefixes(path: str) -> list[str]:
    """Return the names of a leaf column and of all that it is in: ``a.b.c``, ``a.b``, ``a``."""
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


_cache: OrderedDict[tuple[str, str], Footer] = OrderedDict()
_large: OrderedDict[tuple[str, str], None] = OrderedDict()
_lock = threading.Lock()


def footer_of(
    storage: Storage, name: str, records: int | None = None, remote: Remote | None = None
) -> Footer:
    """Return the footer of a data file, from memory where it was read before.

    Parameters
    ----------
    storage : Storage
        The table.
    name : str
        The file's path in the table.
    records : int, optional
        How many rows the Delta log says it has.
    remote : Remote, optional
        Reads it with one request, where the store is one that takes requests.

    Raises
    ------
    MissingDataError
        If the file is not there.
    StorageError
        If the store refuses, or does not answer.
    CorruptDataError
        If it is no Parquet file, was cut short, or has another number of rows.
    """
    key = (storage.uri, name)
    footer = _cache.get(key)
    if footer is None:
        with reading(storage, name):
            footer = _read(storage, name, remote)
    _keep(key, footer)
    if records is not None and footer.num_rows != records:
        raise CorruptDataError(
            f"data file {storage.file_uri(name)} has {footer.num_rows} rows, but the Delta log "
            f"says {records}: the file was changed after it was committed"
        )
    return footer


def _keep(key: tuple[str, str], footer: Footer) -> None:
    with _lock:
        _cache[key] = footer
        _cache.move_to_end(key)
        if len(footer.rows) > _FEW or footer.num_rows > _FEW_ROWS:
            _large[key] = None
            _large.move_to_end(key)
        while len(_large) > _KEEP:
            _cache.pop(_large.popitem(last=False)[0], None)
        while len(_cache) > _KEEP_ALL:
            _large.pop(_cache.popitem(last=False)[0], None)


def learn_footers(storage: Storage, footers: Mapping[str, pq.FileMetaData]) -> None:
    """Keep footers of a table's files, by path, that another process has read."""
    for name, metadata in footers.items():
        with reading(storage, name):
            _keep((storage.uri, name), Footer(metadata))


def footer_at(snapshot: Snapshot, place: int) -> Footer:
    """Return `footer_of` one of a version's files."""
    files = snapshot.files
    records = int(files.rows[place])
    known = records if records >= 0 else None
    return footer_of(snapshot.storage, files.path[place], known, snapshot.remote)


def _read(storage: Storage, name: str, remote: Remote | None) -> Footer:
    """Read a footer, of a store with its file's last bytes, in which metadata rows often are."""
    if remote is None:
        return Footer(read_indexed(storage, name))
    tails: list[pa.Buffer] = []

    def read_tail(nbytes: int) -> pa.Buffer:
        before = _METAS if tails else 0  # of a long footer: what is before it
        tails.append(remote.tail(name, nbytes + before))
        return tails[-1]

    footer = Footer(read_indexed(storage, name, read_tail))
    footer.keep_metas(Part(tails[-1], remote.sizes[name] - tails[-1].size))
    return footer


_REMEDY = "restore the file from a backup, or read an earlier version of the table"

# What Arrow, NumPy and the standard library raise when the bytes of a file make no sense.
_DAMAGE = (
    pa.ArrowException, OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError,
    MemoryError,
)  # fmt: skip


_TEXTS = {field.name: field.type for field in SCHEMA if field.type in (pa.string(), pa.binary())}


def plain_types(table: pa.Table) -> pa.Table:
    """Return a table with plain strings and binaries: deltalake's own files ask for views of them."""
    for place, field in enumerate(table.schema):
        want = _TEXTS.get(field.name)
        if want is not None and field.type != want:
            table = table.set_column(place, field.name, table.column(place).cast(want))
    return table


class reading:  # noqa: N801 - reads as a statement: with reading(storage, name):
    """Context manager that turns what goes wrong while a data file is read into our errors."""

    def __init__(self, storage: Storage, name: str) -> None:
        self.storage, self.name = storage, name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: Any
    ) -> None:
        if error is None:
            return
        where = self.storage.file_uri(self.name)
        if isinstance(error, CorruptDataError):
            if where not in str(error):
                remedy = "" if "restore" in str(error) else f"; {_REMEDY}"
                raise type(error)(f"{error} (data file {where}){remedy}") from error
        elif isinstance(error, FileNotFoundError):
            raise MissingDataError(
                f"data file {where} is in the Delta log but not there; open a version that does not need it, or see "
                f"what check() of the newest one says. {FILES_KEPT}"
            ) from error
        elif isinstance(error, TensorLakeError):
            return
        elif isinstance(error, OSError) and is_refusal(error):
            raise refusal(self.storage, error) from error
        elif isinstance(error, _DAMAGE):
            raise CorruptDataError(
                f"data file {where} cannot be read: {error}; {_REMEDY}"
            ) from error
