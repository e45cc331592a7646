"""One data file held against the log: is it there, is it whole, and do the statistics tell the truth of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer import Footer, plain_types, reading
from tensorlake_spark.delta.files.footer_checksum import read_footer, read_indexed
from tensorlake_spark.delta.files.statistics import BOUNDED, Statistics, flat
from tensorlake_spark.delta.files.writer import widen
from tensorlake_spark.delta.log.replaying.live_files import Array
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.ranges import Part, PartFile
from tensorlake_spark.delta.store.storage import Storage, open_here, reaching
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.binary_views import without_views
from tensorlake_spark.rows.row import PAYLOAD

MISSING, DAMAGED, SIZE, RECORDS, STATISTICS = "missing", "file", "size", "records", "statistics"
"""Kinds of faults of a file."""

_SHOWN = 4  # columns that a message names


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file: a kind, and a sentence."""

    kind: str
    text: str


@dataclass(slots=True)
class Inspection:
    """What was found in a file.

    Attributes
    ----------
    path : str
        Path in the table.
    rows, nbytes : int
        Rows that are live, and bytes of the file.
    faults : list of Fault
        What is wrong; nothing of that kind can be in rows that were handed on.
    """

    path: str
    rows: int = 0
    nbytes: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def is_read(self) -> bool:
        """Whether all of its rows were read."""
        return not any(fault.kind in (MISSING, DAMAGED) for fault in self.faults)


def inspect_file(
    snapshot: Snapshot, path: str, visit: Callable[[int, pa.RecordBatch], None]
) -> Inspection:
    """Read one data file, row group by row group, and hold it against what the log says of it.

    Nothing is taken from memory, and no statistics are trusted.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    path : str
        Which of its files.
    visit : callable
        Takes the number of each row group that can be read, and its live rows, with all columns.
    """
    out = Inspection(path)
    file = open_inspected(snapshot, out)
    if file is None:
        return out
    with file:
        try:
            with reading(snapshot.storage, path):
                footer = Footer(file.metadata)
                _check_index(Footer(read_indexed(snapshot.storage, path)), footer)
        except CorruptDataError as error:
            out.faults.append(Fault(DAMAGED, str(error)))
            return out
        _hold(snapshot, snapshot.places[path], footer, file, visit, out)
    return out


def _check_index(found: Footer, footer: Footer) -> None:
    """Raise CorruptDataError if the index of a footer, where there is one, says anything else than the footer."""
    both = [
        (one.rows.tolist(), one.nbytes.tolist(), [one.bounds(name) for name in BOUNDED])
        for one in (found, footer)
    ]
    if both[0] != both[1]:
        raise CorruptDataError("the index of the footer says something else than the footer")


def open_inspected(snapshot: Snapshot, out: Inspection) -> pq.ParquetFile | None:
    """Open a data file of any kind, and put what is wrong with it as a whole into `out`; None if it cannot be read."""
    storage, path = snapshot.storage, out.path
    place = snapshot.places[path]
    with reaching(storage):
        (info,) = storage.infos([path])
    if not info.is_file:
        out.faults.append(Fault(MISSING, "the log names the file, and it is not there"))
        return None
    out.nbytes = int(info.size)
    size = int(snapshot.files.size[place])
    if info.size != size:
        text = f"the file has {info.size} bytes, the log says {size}: it is not the one that was committed"
        out.faults.append(Fault(SIZE, f"{text}; restore the file from a backup"))
    try:
        with reading(storage, path):
            return storage.open_parquet(path, read_footer(storage, path))
    except CorruptDataError as error:
        out.faults.append(Fault(DAMAGED, str(error)))
        return None


def _hold(
    snapshot: Snapshot,
    place: int,
    footer: Footer,
    file: pq.ParquetFile,
    visit: Callable[[int, pa.RecordBatch], None],
    out: Inspection,
) -> None:
    """Read the rows of a file, and put what is wrong with its counts and statistics into `out`."""
    path = out.path
    said = snapshot.statistics(place)
    records = said.get("numRecords")
    if records is not None and records != footer.num_rows:
        text = f"the file has {footer.num_rows} rows, the log says {records}"
        out.faults.append(Fault(RECORDS, text))
    keep = snapshot.kept(path)
    whole = Statistics()
    both = _Both(snapshot.storage, path, footer, file)
    for group in range(len(footer.rows)):
        try:
            rows = both.read(group)
            live = rows if keep is None else rows.filter(pa.array(_part(keep, footer, group)))
            with reading(snapshot.storage, path):
                visit(group, live)
        except CorruptDataError as error:
            out.faults.append(Fault(DAMAGED, f"row group {group}: {error}"))
            continue
        out.rows += live.num_rows
        own = Statistics.of(rows)
        bounds = {name: footer.bounds(name) for name in BOUNDED}
        least = {name: low[group] for name, (low, _) in bounds.items()}
        most = {name: high[group] for name, (_, high) in bounds.items()}
        if wrong := own.passed(least, most):
            out.faults.append(Fault(STATISTICS, f"footer, row group {group}: {few(wrong)}"))
        whole.add(own if live is rows else replace(Statistics.of(live), nulls=own.nulls))
    if out.is_read:
        wrong = whole.passed(flat(said["minValues"]), flat(said["maxValues"]))
        if keep is None:  # under a deletion vector Delta lets counts be those of before
            wrong += [
                f"nullCount of {name} is {count}, and {whole.nulls[name]} rows have null"
                for name, count in flat(said["nullCount"]).items()
                if name in whole.nulls and count != whole.nulls[name]
            ]
        if wrong:
            out.faults.append(Fault(STATISTICS, f"log: {few(wrong)}"))


def stored_batches(snapshot: Snapshot, path: str) -> Iterator[pa.RecordBatch]:
    """Yield all live rows of a file in the table's schema, whatever the log says of their number."""
    with reading(snapshot.storage, path):
        footer = Footer(read_footer(snapshot.storage, path))
        file = snapshot.storage.open_parquet(path, footer.metadata)
    keep = snapshot.kept(path)
    with file:
        for group in range(len(footer.rows)):
            rows = _read(snapshot.storage, path, file, group)
            if keep is not None:
                rows = rows.filter(pa.array(_part(keep, footer, group)))
            if rows.num_rows:
                yield widen(rows, snapshot.schema)


class _Both:
    """Row groups as Arrow reads them, of which our own reader finds the payloads, too: Arrow lets more pass."""

    def __init__(self, storage: Storage, path: str, footer: Footer, file: pq.ParquetFile) -> None:
        self._storage, self._path, self._footer, self._file = storage, path, footer, file
        self._columns = tuple(footer.columns)
        with reading(storage, path):
            self._mapped: pa.Buffer | Part | None = storage.map_file(path)

    @cached_property
    def _source(self) -> pa.NativeFile:
        return self._storage.open_input(self._path)

    def read(self, group: int) -> pa.RecordBatch:
        """Return a row group."""
        with reading(self._storage, self._path):
            data, file = self._mapped, self._file
            if data is None:  # fetched once for both
                start, stop = self._footer.span(group, self._columns)
                data = Part(pa.py_buffer(self._source.read_at(stop - start, start)), start)
                file = open_here(PartFile(data), self._footer.metadata)
            rows = _read(self._storage, self._path, file, group)
            for name in PAYLOAD:
                self._footer.payload(data, group, name)
        return rows


def _read(storage: Storage, path: str, file: pq.ParquetFile, group: int) -> pa.RecordBatch:
    """Return one row group, its texts found to be UTF-8."""
    with reading(storage, path):
        table = without_views(plain_types(file.read_row_group(group, use_threads=False)))
        table.validate(full=True)
        (rows,) = table.combine_chunks().to_batches() or (
            pa.RecordBatch.from_pylist([], table.schema),
        )
    return rows


def _part(keep: Array, footer: Footer, group: int) -> Array:
    start = int(footer.first_row[group])
    return np.asarray(keep[start : start + int(footer.rows[group])])


def few(texts: list[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    rest = f", and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + rest
