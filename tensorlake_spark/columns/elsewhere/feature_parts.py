"""Rows of features that are encoded part by part, elsewhere: what encodes a part has to know, and what it tells.

Parts are encoded in any order, by whom it may be, for each of them knows where its rows lie in the tensors and which
places of their storage order are its own. Then one commit names the files of all parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tensorlake_spark.columns.feature_set import BLOCK
from tensorlake_spark.columns.feature_values import Columns, Nulls
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts import grid_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.pipeline import put
from tensorlake_spark.writing.source import ArraySource

_NOTHING = Totals()
_PLACES = 2  # for a row of a block: the edge of a region may cut the block between two features


@dataclass(frozen=True)
class Continued:
    """A tensor whose last rows, or last features, are written part by part.

    Attributes
    ----------
    spec : TensorSpec
        As it is with all rows.
    names : tuple of str
        The features that are written, in its order.
    is_null : bool
        Whether it says which values are null.
    first : (int, int)
        The row and the feature where they begin.
    seq : int
        The first place in its storage order that is free.
    before : Totals
        What it had before.
    """

    spec: TensorSpec
    names: tuple[str, ...]
    is_null: bool
    first: tuple[int, int]
    seq: int
    before: Totals = _NOTHING

    def place(self, rows: int) -> int:
        """Return the place in the storage order after so many of the rows.

        A block may be cut where a part ends, and each piece of it has a row of the tensor at least. So there are places
        for every row.
        """
        first = Box(self.first, (self.first[0] + 1, self.spec.shape[1]))
        return self.seq + _PLACES * grid_of(self.spec).count(first) * rows

    @property
    def print(self) -> str:
        """A text that is the same for tensors whose rows are encoded alike, however many there are."""
        spec = replace(self.spec, shape=(0, self.spec.shape[1]), labels={}, attrs={})
        return sha256(repr(replace(self, spec=spec, before=_NOTHING)).encode()).hexdigest()

    def after(self, totals: Iterable[Totals]) -> Meta:
        """Return its metadata when all parts are written, which add up to some totals."""
        rows = self.spec.shape[0] - self.first[0]
        return Meta(self.spec, sum(totals, self.before), self.place(rows))


@dataclass(frozen=True)
class Encoded:
    """What came of a part: its files, and for each tensor what its rows add up to."""

    files: tuple[DataFile, ...]
    totals: tuple[Totals, ...]


@dataclass(frozen=True)
class PartEncoding:
    """Encodes parts: all that it has to know beside the rows. It can be sent to another process.

    Attributes
    ----------
    storage : Storage
        The table.
    file_bytes : int
        Target size of its data files.
    schema : pyarrow.Schema
        Columns of these.
    tensors : tuple of Continued
        Sorted by id.
    """

    storage: Storage
    file_bytes: int
    schema: pa.Schema
    tensors: tuple[Continued, ...]

    def without_names(self) -> PartEncoding:
        """Return the same without what encoding has no use for, and may be long."""
        bare = (replace(t, spec=replace(t.spec, labels={}, attrs={})) for t in self.tensors)
        return replace(self, tensors=tuple(bare))

    def encode(self, table: pa.Table, start: int, mark: str) -> Encoded:
        """Write some of the rows to data files that no commit names yet.

        Parameters
        ----------
        table : pyarrow.Table
            The rows, each column in one piece; without a remainder of a block, but for the last ones.
        start : int
            How many of the rows come before; a multiple of the rows of a block.
        mark : str
            What the names of the files begin with.
        """
        totals = []
        with FileWriter(self.storage, self.file_bytes, schema=self.schema, mark=mark) as writer:
            for tensor in self.tensors:
                columns = [whole(table.column(name)) for name in tensor.names]
                data = (
                    Nulls(columns) if tensor.is_null else Columns(columns, tensor.spec.dtype.name)
                )
                source = ArraySource(data, data.shape, data.dtype)
                row, feature = tensor.first
                offset, places = (row + start, feature), count(tensor.place(start))
                totals.append(put(writer, tensor.spec, source, offset, places, lambda _: None))
            return Encoded(tuple(writer.finish()), tuple(totals))


@runtime_checkable
class RowsElsewhere(Protocol):
    """Rows of a table that are not in this process, and that others encode."""

    def prepare(self, types: pa.Schema | None) -> None:
        """Get the rows ready, in the columns and types of a schema or else their own; a second call does nothing."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""

    @property
    def rows(self) -> int:
        """How many there are, once they are ready."""

    @property
    def with_nulls(self) -> frozenset[str]:
        """The columns that have a null, once they are ready."""

    def sample(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of some of the rows, a block at the most."""

    def encode(self, encoding: PartEncoding) -> Iterator[Encoded]:
        """Have all rows encoded, in parts."""


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column that is in one piece."""
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def part_rows(row_bytes: int, target: int) -> int:
    """Return how many rows a part has: whole blocks of about a number of bytes.

    Examples
    --------
    >>> part_rows(40_000, 64 << 20), part_rows(100, 64 << 20)
    (4096, 667648)
    """
    return max(1, target // max(1, row_bytes) // BLOCK[0]) * BLOCK[0]
