"""Parts of features that tasks have encoded before anybody knew all rows, and how the driver takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tensorlake_spark.columns.elsewhere.feature_parts import Encoded, PartEncoding
from tensorlake_spark.columns.elsewhere.rows_aside import (
    AsideFile,
    Span,
    cut_spans,
    parts_between,
    read_spans,
    sample_of,
    spans_in,
)
from tensorlake_spark.columns.feature_encoding import longer_tensors, new_tensors
from tensorlake_spark.columns.feature_set import FeatureSet
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import ConcurrentWriteError
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.source.feature_relay import Baton


@dataclass(frozen=True)
class WrittenPart:
    """Rows that a task has encoded.

    Attributes
    ----------
    start : int
        How many rows come before.
    spans : tuple of Span
        Where the rows were.
    encoded : Encoded
        What came of them.
    prints : tuple of str
        `Continued.print` of its tensors.
    """

    start: int
    spans: tuple[Span, ...]
    encoded: Encoded
    prints: tuple[str, ...]

    @property
    def stop(self) -> int:
        """Where the next rows begin."""
        return self.start + sum(span.count for span in self.spans)

    def totals_of(self, prints: Sequence[str]) -> tuple[Totals, ...] | None:
        """Return what the rows of tensors add up to, None where these are not among those that were encoded."""
        known = dict(zip(self.prints, self.encoded.totals, strict=True))
        return tuple(known[p] for p in prints) if known.keys() >= {*prints} else None


@dataclass(frozen=True)
class TaskEncoding:
    """What a task has to know to encode rows.

    Attributes
    ----------
    storage : Storage
        The table.
    mark : str
        What the names of all files of the write begin with.
    table : str
        Name of the features.
    found : FeatureSet or None
        The features that get more rows; None for a new table.
    codec : str
        How values of a new one are coded.
    schema : pyarrow.Schema
        Columns of the rows.
    file_bytes, file_schema
        Of data files, as `PartEncoding` has them.
    """

    storage: Storage
    mark: str
    table: str
    found: FeatureSet | None
    codec: str
    schema: pa.Schema
    file_bytes: int
    file_schema: pa.Schema

    def encode(self, before: Baton, file: AsideFile) -> Iterator[WrittenPart]:
        """Encode the blocks that a file completes."""
        after, spans = before.after(file), before.spans_with(file)
        if after.whole == before.whole:
            return
        # Whether any value is null will be known at the end; a tensor that says so has no rows where none is.
        every = frozenset(self.schema.names)
        rows = _RowsSoFar(self.storage, self.schema, after.whole, every, after.sampled)
        if self.found is None:
            tensors = new_tensors(self.table, rows, self.codec)
        else:
            tensors = longer_tensors(self.found, rows)
        made = PartEncoding(self.storage, self.file_bytes, self.file_schema, tuple(tensors))
        encoding, prints = made.without_names(), tuple(t.print for t in tensors)
        for start, stop in parts_between(before.whole, after.whole, self.schema):
            some = cut_spans(spans, start - before.whole, stop - before.whole)
            table = read_spans(self.storage, some, self.schema)
            yield WrittenPart(start, tuple(some), encoding.encode(table, start, self.mark), prints)


@dataclass
class _RowsSoFar:
    """Rows as they are known before all are there; see `RowsElsewhere`."""

    storage: Storage
    schema: pa.Schema
    rows: int
    with_nulls: frozenset[str]
    sampled: AsideFile | None

    def prepare(self, types: pa.Schema | None) -> None:
        """Raise ConcurrentWriteError if other columns or types are asked for than the rows have."""
        if types is not None and types != self.schema:
            raise ConcurrentWriteError(
                "another writer has changed the types of the features while the rows were written; write them again"
            )

    def sample(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of rows of the first file that has any."""
        file = self.sampled
        spans = [] if file is None else spans_in([file], 0, sum(file.rows))
        return sample_of(self.storage, spans, self.schema, names)

    def encode(self, encoding: PartEncoding) -> Iterator[Encoded]:
        """Do nothing: only some rows are here."""
        return iter(())


class WrittenRows(_RowsSoFar):
    """All rows of a write, most of which tasks have encoded; see `RowsElsewhere`.

    Parameters
    ----------
    storage : Storage
        The table.
    schema : pyarrow.Schema
        Columns of the rows.
    mark : str
        What the names of all files of the write begin with.
    files : iterable of AsideFile
        The rows.
    parts : iterable of WrittenPart
        What tasks have encoded.
    """

    def __init__(
        self,
        storage: Storage,
        schema: pa.Schema,
        mark: str,
        files: Iterable[AsideFile],
        parts: Iterable[WrittenPart],
    ) -> None:
        self._files = sorted(files, key=lambda file: file.partition)
        self._parts = {part.start: part for part in parts}
        self._mark = mark
        rows = sum(sum(file.rows) for file in self._files)
        nulls = frozenset(name for file in self._files for name in file.nulls)
        sampled = next((file for file in self._files if sum(file.rows)), None)
        super().__init__(storage, schema, rows, nulls, sampled)

    def encode(self, encoding: PartEncoding) -> Iterator[Encoded]:
        """Take the parts of tasks that fit, and encode what is missing.

        A part fits if it was made of the rows that are there now: a task that was tried twice may have two. If the
        table has changed meanwhile, no part fits. A part is taken once, for a change that fails deletes it.
        """
        prints = [tensor.print for tensor in encoding.tensors]
        parts, self._parts = self._parts, {}
        at = 0
        while at < self.rows:
            part = parts.pop(at, None)
            totals = None if part is None else part.totals_of(prints)
            if part is not None and totals is not None and self._is_of(part):
                yield Encoded(part.encoded.files, totals)
                at = part.stop
                continue
            _, stop = next(parts_between(at, self.rows, self.schema))
            stop = min([stop, *(start for start in parts if start > at)])
            table = read_spans(self.storage, spans_in(self._files, at, stop), self.schema)
            yield encoding.encode(table, at, self._mark)
            at = stop

    def _is_of(self, part: WrittenPart) -> bool:
        return [*part.spans] == spans_in(self._files, part.start, part.stop)
