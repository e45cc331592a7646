"""One data file of samples held against the log: is it there, is it whole, do the statistics tell the truth of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.files.inspection import (
    DAMAGED,
    RECORDS,
    STATISTICS,
    Fault,
    Inspection,
    few,
    open_inspected,
)
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.bounds import Bounds, later, leaf_of
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn, leaf_columns, places_in
from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.rows.binary_views import without_views

_CUT = dt.timedelta(milliseconds=1)  # Delta cuts times of statistics to milliseconds


def inspect_samples(snapshot: Snapshot, path: str, visit: Callable[[pa.Table], None]) -> Inspection:
    """Read one data file, row group by row group, and hold it against what the log says of it.

    Nothing is taken from memory, and no statistics are trusted.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    path : str
        Which of its files.
    visit : callable
        Takes the live rows of each row group that can be read, in the table's columns.
    """
    out = Inspection(path)
    file = open_inspected(snapshot, out)
    if file is not None:
        with file:
            _hold(snapshot, file, visit, out)
    return out


def _hold(
    snapshot: Snapshot,
    file: pq.ParquetFile,
    visit: Callable[[pa.Table], None],
    out: Inspection,
) -> None:
    said = _said(snapshot, out.path)
    records = said.get("num_records")
    metadata = file.metadata
    if records is not None and records != metadata.num_rows:
        text = f"the file has {metadata.num_rows} rows, the log says {records}"
        out.faults.append(Fault(RECORDS, text))
    keep = snapshot.kept(out.path)
    places = places_in(schema_of(metadata))
    leaves = [x for x in leaf_columns(snapshot.schema) if x.is_bounded and x.path in places]
    whole: dict[LeafColumn, Bounds] = {}
    start = stop = 0
    for group in range(metadata.num_row_groups):
        start, stop = stop, stop + metadata.row_group(group).num_rows
        try:
            with reading(snapshot.storage, out.path):
                table = without_views(file.read_row_group(group, use_threads=False))
                table.validate(full=True)
                rows = conformed(table, snapshot.schema)
                live = rows
                if keep is not None:
                    live = rows.filter(pa.array(keep[start : start + rows.num_rows]))
                visit(live)
        except CorruptDataError as error:
            out.faults.append(Fault(DAMAGED, f"row group {group}: {error}"))
            continue
        out.rows += live.num_rows
        wrong: list[str] = []
        for leaf in leaves:
            own = Bounds.of(leaf_of(rows, leaf))
            chunk = metadata.row_group(group).column(places[leaf.path])
            if chunk.is_stats_set and chunk.statistics.has_min_max:
                wrong += _passed(leaf, own, chunk.statistics.min, chunk.statistics.max)
            whole[leaf] = own.joined(whole.get(leaf))
        if wrong:
            out.faults.append(Fault(STATISTICS, f"footer, row group {group}: {few(wrong)}"))
    if out.is_read:
        wrong = []
        for leaf, own in whole.items():
            name = ".".join(leaf.parts)
            wrong += _passed(leaf, own, said.get(f"min.{name}"), said.get(f"max.{name}"))
            nulls = said.get(f"null_count.{name}")
            if keep is None and nulls is not None and nulls != own.nulls:
                wrong.append(f"nullCount of {name} is {nulls}, and {own.nulls} rows have null")
        if wrong:
            out.faults.append(Fault(STATISTICS, f"log: {few(wrong)}"))


def _said(snapshot: Snapshot, path: str) -> dict[str, Any]:
    """Return what the log says of a file, by the names that deltalake gives it."""
    actions = snapshot.file_actions
    place = actions["path"].to_pylist().index(path)
    return {k: v for k, v in actions.slice(place, 1).to_pylist()[0].items() if v is not None}


def _passed(leaf: LeafColumn, own: Bounds, least: Any, most: Any) -> list[str]:
    """Return what lies outside of the bounds that are said; those may be wider, or missing."""
    name = ".".join(leaf.parts)
    out = []
    try:
        if own.least is not None and least is not None and own.least < least:
            out.append(f"min of {name} is {least!r:.60}, and a row has {own.least!r:.60}")
        if own.most is not None and most is not None:
            room = later(most, _CUT) if isinstance(most, dt.datetime) else most
            if room is not None and own.most > room:
                out.append(f"max of {name} is {most!r:.60}, and a row has {own.most!r:.60}")
    except TypeError:  # times with a zone and without one, as others write them
        return []
    return out


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of a file in a table's columns, null where the file has none.

    Raises
    ------
    CorruptDataError
        If a column of the file cannot be what the table says.
    """
    columns = []
    for field in schema:
        place = table.schema.get_field_index(field.name)
        found = table.column(place).combine_chunks() if place >= 0 else None
        if isinstance(found, pa.ChunkedArray):  # of no rows
            found = pa.concat_arrays(found.chunks) if found.num_chunks else None
        columns.append(_conformed(found, field, table.num_rows))
    fields = [pa.field(f.name, f.type, True, f.metadata) for f in schema]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _conformed(array: pa.Array | None, field: pa.Field, count: int) -> pa.Array:
    if array is None:
        return pa.nulls(count, field.type)
    if pa.types.is_struct(field.type) and pa.types.is_struct(array.type):
        parts = dict(zip([f.name for f in array.type], array.flatten(), strict=True))
        inner = [_conformed(parts.get(f.name), f, count) for f in field.type]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(inner, fields=[*field.type], mask=mask)
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowException as error:
        raise CorruptDataError(
            f"column {field.name} is {array.type} in the file, and {field.type} in the table"
        ) from error
