"""Rows that are put aside: files of Arrow in the table's folder, which no commit names, until the rows are encoded."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from tensorlake_spark.columns.elsewhere.feature_parts import part_rows
from tensorlake_spark.columns.feature_input import cast_to
from tensorlake_spark.columns.feature_set import BLOCK
from tensorlake_spark.delta.log.data_file import PART
from tensorlake_spark.delta.store.storage import Storage, reaching

_PART_BYTES = 64 << 20  # that are encoded at a time


@dataclass(frozen=True)
class AsideFile:
    """A file of rows.

    Attributes
    ----------
    partition : int
        Which part of all rows it has.
    path : str
        Its place in the table.
    rows : tuple of int
        The rows of its batches.
    nulls : tuple of str
        The columns with a null.
    """

    partition: int
    path: str
    rows: tuple[int, ...]
    nulls: tuple[str, ...]

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> AsideFile:
        """Return what a text says."""
        told = json.loads(text)
        return cls(told["partition"], told["path"], tuple(told["rows"]), tuple(told["nulls"]))


@dataclass(frozen=True)
class Span:
    """Rows of one batch of a file."""

    path: str
    batch: int
    first: int
    count: int


def put_aside(
    storage: Storage,
    batches: Iterable[pa.RecordBatch],
    given: pa.Schema,
    wanted: pa.Schema,
    mark: str,
    partition: int,
) -> AsideFile:
    """Write rows to a file, in the columns and types that are encoded.

    Parameters
    ----------
    storage : Storage
        The table.
    batches : iterable of pyarrow.RecordBatch
        The rows.
    given, wanted : pyarrow.Schema
        Their columns, and those of the file; one that they have not is null.
    mark : str
        What the name of the file begins with.
    partition : int
        Which part of all rows it is.

    Raises
    ------
    InvalidTensorError
        If a value does not fit the type of its feature.
    """
    path = f"{PART}{mark}{uuid.uuid4()}.arrow"
    rows: list[int] = []
    nulls: set[str] = set()
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        reaching(storage),
        storage.open_output(path) as sink,
        pa.ipc.new_file(sink, wanted, options=packed) as file,
    ):
        for batch in batches:
            typed = _typed(batch.cast(given), wanted)
            file.write_batch(typed)
            rows.append(typed.num_rows)
            nulls.update(f.name for f, c in zip(wanted, typed.columns) if c.null_count)
    return AsideFile(partition, path, tuple(rows), tuple(sorted(nulls)))


def _typed(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    types = {field.name: field.type for field in wanted}
    table = cast_to(pa.Table.from_batches([batch]), types)
    have = {*table.column_names}
    columns = [
        table.column(field.name).combine_chunks()
        if field.name in have
        else pa.nulls(table.num_rows, field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def spans_in(files: Iterable[AsideFile], start: int, stop: int) -> list[Span]:
    """Return where some of the rows are, which lie in files one after the other.

    Examples
    --------
    >>> spans_in([AsideFile(0, "a", (3, 2), ()), AsideFile(1, "b", (4,), ())], 4, 7)
    [Span(path='a', batch=1, first=1, count=1), Span(path='b', batch=0, first=0, count=2)]
    """
    every = (Span(file.path, k, 0, n) for file in files for k, n in enumerate(file.rows))
    return cut_spans(every, start, stop)


def cut_spans(spans: Iterable[Span], start: int, stop: int) -> list[Span]:
    """Return where some of the rows of spans are, counted from the first of these."""
    out = []
    before = 0
    for span in spans:
        first, last = max(start - before, 0), min(stop - before, span.count)
        if first < last:
            out.append(Span(span.path, span.batch, span.first + first, last - first))
        before += span.count
    return out


def read_span(storage: Storage, span: Span, places: Sequence[int] | None = None) -> pa.RecordBatch:
    """Return rows of a batch, by default with all columns."""
    some = pa.ipc.IpcReadOptions(included_fields=None if places is None else [*places])
    with (
        reaching(storage),
        storage.open_input(span.path) as source,
        pa.ipc.open_file(source, options=some) as file,
    ):
        return file.get_batch(span.batch).slice(span.first, span.count)


def read_spans(storage: Storage, spans: Iterable[Span], schema: pa.Schema) -> pa.Table:
    """Return rows with all columns, each in one piece."""
    batches = [read_span(storage, span) for span in spans]
    return pa.Table.from_batches(batches, schema).combine_chunks()


def sample_of(
    storage: Storage, spans: Sequence[Span], schema: pa.Schema, names: Sequence[str]
) -> pa.Table:
    """Return some columns of the first rows of the span in the middle, a block at the most."""
    places = [schema.get_field_index(name) for name in names]
    kept = pa.schema([schema.field(place) for place in places])
    some = spans[len(spans) // 2 :][:1]
    read = [read_span(storage, span, places).select(names) for span in some]
    return pa.Table.from_batches(read, kept).slice(0, BLOCK[0]).combine_chunks()


def parts_between(start: int, stop: int, schema: pa.Schema) -> Iterator[tuple[int, int]]:
    """Yield where parts begin and end that are encoded at a time, if the first begins with a block."""
    width = sum(max(1, field.type.bit_width // 8) for field in schema)
    step = part_rows(width, _PART_BYTES)
    for first in range(start, stop, step):
        yield first, min(first + step, stop)
