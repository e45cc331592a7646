"""Payloads and numbers of rows that lie far from each other, read again and again: what is known of files is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.samples.leaf_columns import LeafColumn
from tensorlake_spark.delta.samples.scattered.payload_places import PayloadPlaces
from tensorlake_spark.delta.samples.scattered.payload_spans import PayloadSpans
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.own_memory import empty_bytes

Array = np.ndarray[Any, Any]

_NUMBER_BYTES = 64 << 20
"""Bytes of numbers of whole files that are kept."""

_FILE_BYTES = 16 << 20
"""Bytes of the numbers of one file above which it is not read as a whole."""


_SPAN_BYTES = 32 << 20
"""Bytes of the places of payloads that are kept."""


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
    new : callable, optional
        Returns so many bytes, uint8, for copies of payloads.
    """

    def __init__(
        self, stored: StoredSamples, most: int, new: Callable[[int], Array] = empty_bytes
    ) -> None:
        self._stored = stored
        self._most = most
        self._new = new
        self._is_remote = stored.snapshot.remote is not None
        self._spans: OrderedDict[tuple[int, str], PayloadSpans] = OrderedDict()
        self._span_bytes = 0
        self._region_bytes = 0
        self._turn = 0
        self._numbers: OrderedDict[tuple[int, str], tuple[Array, Array]] = OrderedDict()
        self._number_bytes = 0
        self._lock = threading.Lock()
        self._reading = threading.Lock()

    # ------------------------------------------------------------------ payloads

    @property
    def _copies(self) -> bool:
        """Whether payloads are copied: a whole row group that is forgotten would stay for a few of its values."""
        remote = self._stored.snapshot.remote
        return remote is not None and not remote.stays

    @property
    def _is_mapped(self) -> bool:
        """Whether payloads lie in mapped files."""
        remote = self._stored.snapshot.remote
        return remote is None or remote.is_mapped

    def payloads(self, leaf: LeafColumn, positions: Array) -> list[Any] | None:
        """Return payloads where they lie, None for nulls, in the order of `positions`.

        Returns
        -------
        list of (memoryview or None), or None
            None if a row group has them in another form, as other writers leave them.
        """
        numbers, rows = self._stored.locate(positions)
        out: list[Any] = [None] * len(positions)
        with reaching(self._stored.snapshot.storage):
            for number, here in _by_file(numbers):
                some = rows[here]
                found = self._known(number, leaf, some, True)
                if found is None:
                    return None
                spans, groups = found
                regions = self._regions((number, leaf.path), spans, groups)
                places = zip(
                    here.tolist(),
                    groups.tolist(),
                    spans.starts[some].tolist(),
                    spans.lengths[some].tolist(),
                )
                for place, group, start, length in places:
                    if length >= 0:
                        out[place] = regions[group][start : start + length]
        return self._copied(out) if self._copies else out

    def _copied(self, values: list[Any]) -> list[Any]:
        """Return copies of payloads, which lie one after the other in one piece of memory."""
        ends = [0, *accumulate(0 if value is None else len(value) for value in values)]
        memory = self._new(ends[-1]).data
        out: list[Any] = [None] * len(values)
        for place, value in enumerate(values):
            if value is not None:
                out[place] = memory[ends[place] : ends[place + 1]]
                out[place][:] = value
        return out

    def places(self, leaf: LeafColumn, positions: Array) -> PayloadPlaces | None:
        """Return where payloads lie in local files, in the order of `positions`; nothing stays mapped for it.

        Returns
        -------
        PayloadPlaces, or None
            None if one is a null, if the table is remote, or if a row group has them in another form.
        """
        if self._is_remote:
            return None
        numbers, rows = self._stored.locate(positions)
        starts, lengths = np.empty((2, len(positions)), np.int64)
        paths: dict[int, str] = {}
        with reaching(self._stored.snapshot.storage):
            for number, here in _by_file(numbers):
                found = self._known(number, leaf, rows[here], False)
                if found is None:
                    return None
                spans, groups = found
                starts[here] = spans.firsts[groups] + spans.starts[rows[here]]
                lengths[here] = spans.lengths[rows[here]]
                paths[number] = self._stored.files.paths[number]
        if (lengths < 0).any():
            return None
        storage = self._stored.snapshot.storage
        return PayloadPlaces(storage, paths, numbers, starts.tolist(), lengths.tolist())

    def _known(
        self, number: int, leaf: LeafColumn, rows: Array, keeps_pages: bool
    ) -> tuple[PayloadSpans, Array] | None:
        """Return what is known of a file with the places of some rows, and the row group of each of them."""
        key = (number, leaf.path)
        with self._lock:
            spans = self._spans.get(key)
            if spans is not None:
                self._spans.move_to_end(key)
        if spans is None:
            spans = self._kept_spans(key, PayloadSpans(self._stored.files[number], leaf))
        groups = spans.file.groups_of(rows)
        return (spans, groups) if spans.learn(groups, keeps_pages) else None

    def _kept_spans(self, key: tuple[int, str], spans: PayloadSpans) -> PayloadSpans:
        """Keep what is known of a file, or return what another thread has kept meanwhile."""
        with self._lock:
            if key in self._spans:
                return self._spans[key]
            self._spans[key] = spans
            self._span_bytes += spans.nbytes
            while self._span_bytes > _SPAN_BYTES and len(self._spans) > 1:
                gone = self._spans.popitem(last=False)[1]
                self._span_bytes -= gone.nbytes
                for group in np.flatnonzero(gone.used).tolist():
                    self._region_bytes -= gone.give_back(group)
        return spans

    def _regions(
        self, key: tuple[int, str], spans: PayloadSpans, groups: Array
    ) -> dict[int, memoryview]:
        """Return the bytes of row groups by their numbers; those that are mapped stay in use within `most`."""
        out = {group: spans.regions[group] for group in dict.fromkeys(groups.tolist())}
        new = {group: spans.region(group) for group, region in out.items() if region is None}
        found = {group: new[group] if region is None else region for group, region in out.items()}
        if not self._is_mapped:  # what is in memory is kept, and counted, where it is fetched
            return found
        with self._lock:
            if self._spans.get(key) is not spans:  # forgotten meanwhile
                return found
            for group, region in new.items():
                if spans.regions[group] is None:
                    spans.regions[group] = region
                    self._region_bytes += len(region)
            self._turn += 1
            spans.used[[*found]] = self._turn
            if self._region_bytes > self._most:
                self._give_back()
        return found

    def _give_back(self) -> None:
        """Give back the regions that were asked for longest ago; those of the last call stay."""
        old = [
            (turn, spans, group)
            for spans in self._spans.values()
            for group, turn in zip(
                np.flatnonzero(spans.used).tolist(), spans.used[spans.used > 0].tolist()
            )
            if turn < self._turn
        ]
        for _, spans, group in sorted(old, key=lambda one: one[0]):
            if self._region_bytes <= self._most - self._most // 8:
                return
            self._region_bytes -= spans.give_back(group)

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
            for number, here in _by_file(numbers):
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


def _by_file(numbers: Array) -> list[tuple[int, Array]]:
    """Return the numbers of files, each once, with the places that it has among them."""
    met = dict.fromkeys(numbers.tolist())
    if len(met) == 1:
        return [(number, np.arange(len(numbers))) for number in met]
    return [(number, np.flatnonzero(numbers == number)) for number in met]


def _flat(table: pa.Table, leaf: LeafColumn, null: int) -> Array:
    """Return a leaf column of a table as numbers."""
    column = table.column(leaf.parts[0]).combine_chunks()
    for part in leaf.parts[1:]:
        column = column.flatten()[column.type.get_field_index(part)]
    if column.null_count:  # a narrower type need not have the number
        column = column.cast(pa.int64()).fill_null(null)
    found: Array = np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
    return found
