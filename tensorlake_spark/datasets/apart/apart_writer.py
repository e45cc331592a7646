"""A column that is kept apart -> rows of its own table, beside the samples."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import folder_of, inner_storage
from tensorlake_spark.datasets.apart.pinning import ATTEMPTS, CHANGES, Written, changes_in, settled
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.commit import Change, StaleChange, commit
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.properties import FILE_BYTES
from tensorlake_spark.delta.log.requirements import SAMPLES, SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.column_assembly import assembled
from tensorlake_spark.delta.samples.sample_writer import SORTED, SampleWriter
from tensorlake_spark.delta.samples.samples_table import create_samples_table
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidSampleError,
    TensorLakeError,
    outrun,
)

Array = np.ndarray[Any, Any]

_RUN = 1024  # rows that are compared, or copied, at a time at most
_RUN_BYTES = 16 << 20  # and their bytes, about


class ApartWriter:
    """Writes values of one apart column to its table: a row a sample, with the sample's number.

    Parameters
    ----------
    storage : Storage
        The dataset.
    name : str
        By which the column's parts are stored.
    kind : Type
        What it holds.
    replaces : bool
        Whether samples that have a value get another one. Otherwise all numbers are new.
    known : int, optional
        The version of the table from which the new values were computed.
    mark : str
        What the names of its files begin with, so that others find them.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        kind: Type,
        replaces: bool = False,
        known: int | None = None,
        mark: str = "",
    ) -> None:
        self.folder = folder_of(name)
        self._storage = storage
        self._inner = inner_storage(storage, self.folder)
        inside = dataclasses.replace(kind, apart=False)
        last = name.rsplit("/", 1)[-1]
        # A column of a group may be called as the numbers are, which the inner table has too.
        self._schema = SampleSchema({"value" if last.casefold() == SID else last: inside})
        self._column = next(iter(self._schema))
        self._replaces = replaces
        self._known = known
        self._mark = mark
        self._writers: list[SampleWriter] = []
        self._sids: list[Array] = []
        self._last = -1

    def take(self, array: pa.Array, sids: Sequence[int]) -> None:
        """Write encoded values.

        Parameters
        ----------
        array : pyarrow.Array
            As `Type.encode` returned it.
        sids : sequence of int
            The numbers of the samples.
        """
        numbers = np.asarray(sids, np.int64)
        if not len(numbers):
            return
        if not (numbers[:-1] < numbers[1:]).all():
            order = np.argsort(numbers, kind="stable")
            numbers, array = numbers[order], array.take(pa.array(order))
        if not self._writers or numbers[0] <= self._last:  # rows of a file are in order
            schema = self._schema.to_arrow()
            self._writers.append(SampleWriter(self._inner, schema, FILE_BYTES, mark=self._mark))
        batch = self._schema.to_batch({self._column: array}, pa.array(numbers))
        self._writers[-1].add(pa.Table.from_batches([batch]))
        self._last = int(numbers[-1])
        if self._replaces:
            self._sids.append(numbers)

    def finish(self) -> list[Written]:
        """Commit the rows to the column's table, which is created if there is none."""
        return self.committed(self.files())

    def files(self) -> list[DataFile]:
        """Return the files with all rows, which no commit names; another process may commit them."""
        return [file for writer in self._writers for file in writer.finish()]

    def committed(self, files: list[DataFile], again: bool = False) -> list[Written]:
        """Commit files with rows to the column's table, which is created if there is none.

        With `again` an earlier attempt may have committed some of them: their rows are not added twice.
        """
        if not files:
            return []
        newest = create_samples_table(self._inner, self._schema.to_arrow())
        if again:
            files = self._missing(files, newest)
            if not files:
                return [Written(self.folder, newest.version)]
        if self._replaces:
            return [self._replaced(files)]
        after = commit(self._inner, Change({}, files, (), "extend", kind=SAMPLES))
        return [Written(self.folder, after.version)]

    def _missing(self, files: list[DataFile], newest: Snapshot) -> list[DataFile]:
        """Return files whose rows the column's table has not, by the first number of each."""
        first = np.array([json.loads(file.stats)["minValues"][SID] for file in files], np.int64)
        there = StoredSamples(newest).positions_of(first) >= 0
        return [file for file, known in zip(files, there.tolist(), strict=True) if not known]

    def abort(self) -> None:
        """Delete what was written and is not committed."""
        for writer in self._writers:
            writer.abort()

    def _replaced(self, files: list[DataFile]) -> Written:
        """Commit new rows in the place of those that have the same numbers."""
        sids = np.concatenate(self._sids)
        found, counts = np.unique(sids, return_counts=True)
        if len(found) < len(sids):
            raise InvalidSampleError(
                f"sample {int(found[counts > 1][0])} is given twice in an update of column {self._column!r}; give "
                "each sample one value"
            )
        seen: Snapshot | None = None
        if self._known is not None:
            seen = Snapshot.open(self._inner, self._known, kind=SAMPLES)
        for _ in range(ATTEMPTS):
            base = settled(self._storage, self.folder)
            if seen is not None:
                self._check_same(seen, base, sids)
            seen = base
            stored = StoredSamples(base)
            there = stored.positions_of(sids)
            numbers, rows = stored.locate(there[there >= 0])
            touched = np.unique(numbers).tolist()
            removes = [stored.files[number].path for number in touched]
            kept: list[DataFile] = []
            try:
                for number in touched:
                    kept += self._without(stored, number, rows[numbers == number])
                change = Change(
                    {},
                    [*files, *kept],
                    removes,
                    "update",
                    counters={CHANGES: (base.transaction(CHANGES), changes_in(base) + 1)},
                    kind=SAMPLES,
                    vectors=base.vectors(removes),
                )
                return Written(self.folder, commit(self._inner, change).version, True)
            except StaleChange:
                discard(self._inner, [file.path for file in kept])
            except TensorLakeError:
                discard(self._inner, [file.path for file in kept])
                raise
        raise outrun(self._inner.uri, ATTEMPTS)

    def _without(self, stored: StoredSamples, number: int, replaced: Array) -> list[DataFile]:
        """Write a file again without some rows, and return what has the others."""
        file = stored.files[number]
        mask = np.ones(int(file.starts[-1]), bool)
        mask[replaced] = False
        live = stored.snapshot.kept(file.path)
        if live is not None:
            mask &= live
        size = file.size_of([leaf.path for leaf in stored.leaves if file.has(leaf)])
        step = max(1, min(_RUN, _RUN_BYTES * len(mask) // max(1, size)))
        in_order = file.path.startswith(SORTED)  # a compaction moves rows as they lie
        with SampleWriter(self._inner, stored.schema, FILE_BYTES, in_order=in_order) as writer:
            for start in range(0, len(mask), step):
                rows = start + np.flatnonzero(mask[start : start + step])
                if len(rows):
                    with reaching(self._inner):
                        writer.add(assembled(file, stored.schema, stored.leaves, rows, True))
            return writer.finish()

    def _check_same(self, before: Snapshot, after: Snapshot, sids: Array) -> None:
        """Raise ConcurrentWriteError if another writer changed one of the samples between two versions."""
        if changes_in(before) == changes_in(after):
            return
        old, new = StoredSamples(before), StoredSamples(after)
        for start in range(0, len(sids), _RUN):
            part = sids[start : start + _RUN]
            was, now = old.positions_of(part), new.positions_of(part)
            same = ((was >= 0) == (now >= 0)).all() and old.rows(None, was[was >= 0]).equals(
                new.rows(None, now[now >= 0])
            )
            if not same:
                raise ConcurrentWriteError(
                    f"another writer changed samples of column {self._column!r} of {self._storage.uri} that this "
                    f"update changes too, some of them from sid {int(part[0])} to {int(part[-1])}; nothing of this "
                    "update is visible, run it again if you still want it"
                )
