"""Payloads and numbers of rows that lie far from each other, read again and again: what is known of files is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.sample_values import SampleFile
from tensorlake_spark.delta.samples.scattered.payload_places import PayloadPlaces
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import reaching

Array = np.ndarray[Any, Any]

_NUMBER_BYTES = 64 << 20
"""Bytes of numbers of whole files that are kept."""

_FILE_BYTES = 16 << 20
"""Bytes of the numbers of one file above which it is not read as a whole."""


_SPAN_BYTES = 32 << 20
"""Bytes of the places of payloads that are kept."""


class _Span(NamedTuple):
    """Where a column chunk lies in its file, and where each value begins in it, with its length."""

    start: int
    nbytes: int
    starts: Array
    lengths: Array


class ScatteredRows:
    """Rows of one version of samples, by position and in any order.

    `StoredSamples.rows` puts a table together, which takes a while for each file and row group that it meets. This
    hands out single columns, and keeps where their values lie.

    Parameters
    ----------
    stored : StoredSamples
        The version.
    most : int
        Bytes of mapped column chunks that may be in use at a time. Those that were not asked for lately are
        given back, so that they do not count as memory of the process.
    """

    def __init__(self, stored: StoredSamples, most: int) -> None:
        self._stored = stored
        self._most = most
        self._is_remote = stored.snapshot.remote is not None
        self._chunks: OrderedDict[tuple[int, int, str], tuple[Any, Array, Array]] = OrderedDict()
        self._chunk_bytes = 0
        self._spans: OrderedDict[tuple[int, int, str], _Span] = OrderedDict()
        self._span_bytes = 0
        self._numbers: OrderedDict[tuple[int, str], tuple[Array, Array]] = OrderedDict()
        self._number_bytes = 0
        self._lock = threading.Lock()
        self._reading = threading.Lock()

    # ------------------------------------------------------------------ payloads

    def payloads(self, leaf: LeafColumn, positions: Array) -> list[Any] | None:
        """Return payloads where they lie, None for nulls, in the order of `positions`.

        Returns
        -------
        list of (memoryview or None), or None
            None if a row group has them in another form, as other writers leave them.
        """
        out: list[Any] = []
        met: dict[tuple[int, int], tuple[Any, Array, Array] | None] = {}
        numbers, rows = (part.tolist() for part in self._stored.locate(positions))
        files = {number: self._stored.files[number] for number in dict.fromkeys(numbers)}
        with reaching(self._stored.snapshot.storage):
            for number, row in zip(numbers, rows):
                file = files[number]
                group, place = file.place_of(row)
                if (number, group) not in met:
                    met[number, group] = self._chunk(number, file, group, leaf)
                known = met[number, group]
                if known is None:
                    return None
                data, starts, lengths = known
                start, length = int(starts[place]), int(lengths[place])
                value = None if length < 0 else data[start : start + length]
                # Of what is remote a copy, or a whole row group would stay in memory for a few of its values.
                out.append(bytes(value) if self._is_remote and value is not None else value)
        return out

    def _chunk(
        self, number: int, file: SampleFile, group: int, leaf: LeafColumn
    ) -> tuple[Any, Array, Array] | None:
        """Return the bytes of a column chunk, and where each value lies in them."""
        if self._is_remote:  # what is remote is kept, and counted, where it is fetched
            span = self._span(number, file, group, leaf)
            return span and (file.read(span.start, span.nbytes), span.starts, span.lengths)
        key = (number, group, leaf.path)
        with self._lock:
            found = self._chunks.get(key)
            if found is not None:
                self._chunks.move_to_end(key)
                return found
        chunk = file.chunk(group, leaf)
        if chunk is None:
            return None
        region = file.region(chunk)
        starts, lengths, _ = file.spans(group, leaf, chunk, region)
        found = memoryview(region).cast("B"), starts, lengths
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[int, int, str], found: tuple[Any, Array, Array]) -> None:
        with self._lock:
            if key in self._chunks:
                return
            self._chunks[key] = found
            self._chunk_bytes += len(found[0])
            gone = []
            while self._chunk_bytes > self._most and len(self._chunks) > 1:
                gone.append(self._chunks.popitem(last=False))
                self._chunk_bytes -= len(gone[-1][1][0])
        for (number, group, path), (data, _, _) in gone:
            file = self._stored.files[number]
            file.give_back(file.start_of(group, path), len(data))

    def places(self, leaf: LeafColumn, positions: Array) -> PayloadPlaces | None:
        """Return where payloads lie in local files, in the order of `positions`; nothing stays mapped for it.

        Returns
        -------
        PayloadPlaces, or None
            None if one is a null, if the table is remote, or if a row group has them in another form.
        """
        if self._is_remote:
            return None
        starts, lengths = [], []
        numbers, rows = self._stored.locate(positions)
        files = {number: self._stored.files[number] for number in dict.fromkeys(numbers.tolist())}
        with reaching(self._stored.snapshot.storage):
            for number, row in zip(numbers.tolist(), rows.tolist()):
                file = files[number]
                group, place = file.place_of(row)
                known = self._span(number, file, group, leaf)
                if known is None or known.lengths[place] < 0:
                    return None
                starts.append(known.start + int(known.starts[place]))
                lengths.append(int(known.lengths[place]))
        paths = self._stored.files.paths
        chosen = {number: paths[number] for number in dict.fromkeys(numbers.tolist())}
        return PayloadPlaces(self._stored.snapshot.storage, chosen, numbers, starts, lengths)

    def _span(self, number: int, file: SampleFile, group: int, leaf: LeafColumn) -> _Span | None:
        """Return where a column chunk lies, and each value in it; None if Arrow has to read it."""
        key = (number, group, leaf.path)
        with self._lock:
            found = self._spans.get(key)
            if found is not None:
                self._spans.move_to_end(key)
                return found
        chunk = file.chunk(group, leaf)
        if chunk is None:
            return None
        region = file.region(chunk)
        starts, lengths, _ = file.spans(group, leaf, chunk, region)
        found = _Span(int(chunk.data_page_offset), len(region), starts, lengths)
        if not self._is_remote:
            file.give_back(found.start, found.nbytes)
        with self._lock:
            if key not in self._spans:
                self._spans[key] = found
                self._span_bytes += starts.nbytes + lengths.nbytes
                while self._span_bytes > _SPAN_BYTES and len(self._spans) > 1:
                    gone = self._spans.popitem(last=False)[1]
                    self._span_bytes -= gone.starts.nbytes + gone.lengths.nbytes
        return found

    # ------------------------------------------------------------------ numbers

    def numbers(self, leaf: LeafColumn, positions: Array, null: int = 0) -> Array | None:
        """Return numbers in the order of `positions`, with another number in the place of nulls.

        Returns
        -------
        int64 ndarray, or None
            None if a file has too many of them to keep, or none of this column.
        """
        numbers, rows = self._stored.locate(positions)
        out = np.empty(len(positions), np.int64)
        with reaching(self._stored.snapshot.storage):
            for number in dict.fromkeys(numbers.tolist()):
                here = np.flatnonzero(numbers == number)
                column = self._column(number, rows[here], leaf, null)
                if column is None:
                    return None
                out[here] = column[rows[here]]
        return out

    def _column(self, number: int, rows: Array, leaf: LeafColumn, null: int) -> Array | None:
        """Return the numbers of a file: all of them, or of a remote one those of the row groups that rows lie in."""
        key = (number, leaf.path)
        file = self._stored.files[number]
        with self._lock:
            found = self._numbers.get(key)
            if found is not None:
                self._numbers.move_to_end(key)
        if found is None:
            if leaf.repeated or not file.has(leaf) or file.size_of([leaf.path]) > _FILE_BYTES:
                return None
            groups = len(file.starts) - 1
            if self._is_remote:
                found = np.empty(int(file.starts[-1]), np.int64), np.zeros(groups, bool)
            else:
                found = _flat(file.small((leaf.path,)), leaf, null), np.ones(groups, bool)
            found = self._kept_numbers(key, found)
        values, known = found
        if not known.all():
            groups_of = np.unique(file.groups_of(rows))
            for group in groups_of[~known[groups_of]].tolist():
                with (
                    self._reading
                ):  # the first batches want the same row groups, each in a thread of its own
                    if not known[group]:
                        start, stop = file.starts[group : group + 2].tolist()
                        values[start:stop] = _flat(file.table([group], [leaf.path]), leaf, null)
                        known[group] = True
        return values

    def _kept_numbers(
        self, key: tuple[int, str], found: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Keep the numbers of a file, or return those that another thread has kept meanwhile."""
        with self._lock:
            if key in self._numbers:
                return self._numbers[key]
            self._numbers[key] = found
            self._number_bytes += found[0].nbytes
            while self._number_bytes > _NUMBER_BYTES and len(self._numbers) > 1:
                self._number_bytes -= self._numbers.popitem(last=False)[1][0].nbytes
        return found


def _flat(table: pa.Table, leaf: LeafColumn, null: int) -> Array:
    """Return a leaf column of a table as numbers."""
    column = table.column(leaf.parts[0]).combine_chunks()
    for part in leaf.parts[1:]:
        column = column.flatten()[column.type.get_field_index(part)]
    if column.null_count:
        column = column.fill_null(null)
    found: Array = np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
    return found
