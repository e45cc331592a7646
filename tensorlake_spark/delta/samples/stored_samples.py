"""The samples of a version: found by position or number, read by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from tensorlake_spark.delta.log.replaying.live_files import LEAST, MOST
from tensorlake_spark.delta.log.requirements import SID
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.bounds import files_left, groups_left, guarantees_of
from tensorlake_spark.delta.samples.column_assembly import assembled, pruned
from tensorlake_spark.delta.samples.known_snapshot import known_snapshot
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn, beginnings, leaf_columns
from tensorlake_spark.delta.samples.sample_files import AHEAD, SampleFiles
from tensorlake_spark.delta.samples.sample_numbers import SampleNumbers
from tensorlake_spark.delta.samples.sample_values import SampleFile
from tensorlake_spark.delta.samples.sample_writer import SORTED
from tensorlake_spark.delta.store.ranges import Remote
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.errors import CorruptDataError

Array = np.ndarray[Any, Any]
Parts = tuple[str, ...]


class StoredSamples:
    """The samples of one version of a dataset's table, in the order of their numbers.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    sids : int64 ndarray, optional
        The numbers of its samples, file by file, where they were read already.

    Attributes
    ----------
    schema : pyarrow.Schema
        Its columns.
    """

    def __init__(self, snapshot: Snapshot, sids: Array | None = None) -> None:
        self.snapshot = snapshot
        self._given = snapshot, sids
        if sids is not None:
            self._stored_sids = sids
        self.schema: pa.Schema = snapshot.schema
        self.leaves = leaf_columns(self.schema)
        self._leaf = {leaf.parts: leaf for leaf in self.leaves}
        self._questions: dict[tuple[Parts, ...] | None, tuple[list[LeafColumn], pa.Schema]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredSamples, self._given

    @property
    def _sids_read(self) -> Array | None:
        """The number of every sample, file by file; None while they were not read."""
        return self.__dict__.get("_stored_sids")

    def reading_by(self, make: Callable[[Remote], Remote]) -> StoredSamples:
        """Return the same, with another way of reading data files in an object store; see `Snapshot.reading_by`."""
        return StoredSamples(self.snapshot.reading_by(make), self._sids_read)

    def known(self, columns: Sequence[str]) -> StoredSamples:
        """Return the same for processes that read some columns: it pickles with what they need to find samples.

        That is what the log says, and the numbers of the samples where these do not lie in their order.
        """
        sids = None if self.is_sorted else self._stored_sids
        return StoredSamples(known_snapshot(self.snapshot, columns), sids)

    @cached_property
    def _log_order(self) -> Array:
        """For each of `files` its place in what the log says of all files."""
        firsts = self.snapshot.files.first_sid
        order = np.argsort(firsts, kind="stable")
        if not (np.diff(firsts[order]) > 0).all():  # objects are slow to sort
            order = np.lexsort([np.array(self.snapshot.files.path, object), firsts])
        return order

    @cached_property
    def files(self) -> SampleFiles:
        """The data files, in the order of their first numbers."""
        paths = self.snapshot.files.path
        return SampleFiles(self.snapshot, [paths[place] for place in self._log_order.tolist()])

    @cached_property
    def _kept(self) -> list[Array | None]:
        """For each file the rows that are still there, None for all."""
        if not self.snapshot.deletions:
            return [None] * len(self.files)
        masks = map(self.snapshot.kept, self.files.paths)
        return [None if mask is None else np.flatnonzero(mask) for mask in masks]

    @cached_property
    def _starts(self) -> Array:
        """The place of each file's first sample among those that are still there, and after the last all of them."""
        counts = np.array(self.snapshot.files.rows[self._log_order], np.int64)
        if self.snapshot.deletions:
            for number, kept in enumerate(self._kept):
                counts[number] = counts[number] if kept is None else len(kept)
        for number in np.flatnonzero(counts < 0).tolist():  # of which the log does not say it
            counts[number] = self.files[number].starts[-1]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def is_sorted(self) -> bool:
        """Whether files and their rows are known to be in the order of their numbers."""
        first, last = np.sort(self.snapshot.files.first_sid), np.sort(self.snapshot.files.last_sid)
        apart = bool((first[1:] > last[:-1]).all()) and LEAST not in first and MOST not in last
        return apart and all(path.startswith(SORTED) for path in self.files.paths)

    @property
    def file_counts(self) -> Array:
        """The samples of each file that are still there."""
        return np.diff(self._starts)

    @property
    def lying(self) -> Array | None:
        """The positions of all samples in the order in which they lie; None where that is their order."""
        return None if self._order is None else self._back

    def only_value(self, name: str) -> Any:
        """Return the one value that a column has by the log, None where it says no such thing.

        Parameters
        ----------
        name : str
            The column, with dots between the structs around it and its own name.
        """
        actions = self.snapshot.file_actions
        if not {f"min.{name}", f"max.{name}"} <= {*actions.column_names}:
            return None
        found = {*actions[f"min.{name}"].to_pylist(), *actions[f"max.{name}"].to_pylist()}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def file_sizes(self) -> list[int]:
        """The bytes of each file."""
        sizes: list[int] = self.snapshot.files.size[self._log_order].tolist()
        return sizes

    def is_marked(self, number: int) -> bool:
        """Whether a file has rows that are deleted, by a deletion vector."""
        return self._kept[number] is not None

    @cached_property
    def _numbers(self) -> SampleNumbers:
        files, order = self.snapshot.files, self._log_order
        return SampleNumbers(
            self.snapshot,
            self.files,
            self.leaf((SID,)),
            files.first_sid[order],
            files.last_sid[order],
            files.rows[order],
            self._kept,
            self._starts,
        )

    @cached_property
    def _stored_sids(self) -> Array:
        """The number of every sample, file by file."""
        return self._numbers.all()

    @cached_property
    def _order(self) -> Array | None:
        """For each position the place of the sample file by file; None where both are the same."""
        if self.is_sorted:
            return None
        sids = self._stored_sids
        if bool((sids[:-1] < sids[1:]).all()):
            return None
        order = np.argsort(sids, kind="stable")
        found = sids[order]
        twice = found[:-1][found[:-1] == found[1:]]
        if len(twice):
            count = int(
                np.searchsorted(found, twice[0], "right") - np.searchsorted(found, twice[0])
            )
            raise CorruptDataError(
                f"{SID} {twice[0]} is there {count} times in version {self.snapshot.version} of "
                f"{self.snapshot.storage.uri}, and a sample has a number of its own; another writer added rows: delete "
                "or renumber them by Delta's SQL, or restore an earlier version"
            )
        return order

    @cached_property
    def sids(self) -> Array:
        """The numbers of all samples, in order; read-only."""
        found = self._stored_sids if self._order is None else self._stored_sids[self._order]
        found.flags.writeable = False
        return found

    def sids_of(self, positions: Array) -> Array:
        """Return the numbers of some samples; only files that have them are looked at where these lie in order."""
        if self._sids_read is not None or not self.is_sorted:
            return self.sids[positions]
        return self._numbers.at(positions)

    def positions_of(self, sids: Array) -> Array:
        """Return the positions of samples by their numbers, -1 where there is none."""
        if not len(self):
            return np.full(len(sids), -1, np.int64)
        if self._sids_read is None and self.is_sorted:
            return self._numbers.places_of(sids)
        found = np.minimum(np.searchsorted(self.sids, sids), len(self) - 1)
        return np.where(self.sids[found] == sids, found, -1)

    def locate(self, positions: Array) -> tuple[Array, Array]:
        """Return the number of the file of each sample, and its row there."""
        places = positions if self._order is None else self._order[positions]
        files = np.searchsorted(self._starts, places, side="right") - 1
        rows = places - self._starts[files]
        for number in np.unique(files).tolist() if self.snapshot.deletions else ():
            kept = self._kept[number]
            if kept is not None:
                here = files == number
                rows[here] = kept[rows[here]]
        return files, rows

    def positions_in(self, number: int) -> Array:
        """Return the positions of the samples in one of `files`, in order."""
        places = np.arange(self._starts[number], self._starts[number + 1])
        return places if self._order is None else np.sort(self._back[places])

    def positions_at(self, number: int, rows: Array) -> Array:
        """Return the positions of the samples in some rows of one of `files`, -1 for those that are deleted."""
        kept = self._kept[number]
        places = rows if kept is None else np.searchsorted(kept, rows)
        out: Array = places + self._starts[number]
        if self._order is not None:
            out = self._back[np.minimum(out, len(self) - 1)]
        return out if kept is None else np.where(np.append(kept, -1)[places] == rows, out, -1)

    def positions_within(self, numbers: Sequence[int]) -> Array:
        """Return the positions of the samples in some of `files`, in the order in which they lie there."""
        spans = [np.arange(*self._starts[number : number + 2]) for number in numbers]
        out: Array = self._back[np.concatenate([np.zeros(0, np.int64), *spans])]
        return out

    @cached_property
    def _back(self) -> Array:
        """For each place of a sample file by file its position, where the two are not the same."""
        order = np.arange(len(self)) if self._order is None else self._order
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return back

    def leaf(self, parts: tuple[str, ...]) -> LeafColumn:
        """Return a leaf column by the names of the structs around it and its own."""
        return self._leaf[parts]

    def value(self, position: int, leaf: LeafColumn) -> memoryview | None:
        """Return one payload where it lies, None for a null."""
        if self._order is None:
            number = int(np.searchsorted(self._starts, position, side="right")) - 1
            row, kept = position - int(self._starts[number]), self._kept[number]
            if kept is not None:
                row = int(kept[row])
        else:
            numbers_, rows = self.locate(np.array([position], np.int64))
            number, row = int(numbers_[0]), int(rows[0])
        return self.files[number].value(row, leaf)

    def _row_of(self, position: int) -> tuple[SampleFile, int]:
        """Return the file of a sample, and its row there."""
        numbers_, rows = self.locate(np.array([position], np.int64))
        return self.files[int(numbers_[0])], int(rows[0])

    def payload_size(self, position: int, leaf: LeafColumn) -> int:
        """Return the bytes of one payload, -1 for a null; a large one is not read for it."""
        file, row = self._row_of(position)
        with reaching(self.snapshot.storage):
            found = file.place(row, leaf)
            if found is not None:
                return found[1]
            value = file.value(row, leaf)
        return -1 if value is None else len(value)

    def payload_range(self, position: int, leaf: LeafColumn, start: int, stop: int) -> bytes:
        """Return a part of one payload; no more is read where it lies in the file as it is."""
        file, row = self._row_of(position)
        with reaching(self.snapshot.storage):
            found = file.place(row, leaf)
            if found is not None:
                return bytes(file.read(found[0] + start, min(stop, found[1]) - start))
            value = file.value(row, leaf)
        return b"" if value is None else bytes(value[start:stop])

    def under(self, columns: Sequence[Parts] | None) -> list[LeafColumn]:
        """Return the leaf columns of some columns, or of parts of them; all where None."""
        if columns is None:
            return self.leaves
        wanted = {tuple(parts) for parts in columns}
        return [leaf for leaf in self.leaves if not wanted.isdisjoint(beginnings(leaf.parts))]

    def _asked(self, columns: Sequence[Parts] | None) -> tuple[list[LeafColumn], pa.Schema]:
        """Return the leaf columns of some columns, and the part of the schema that has them."""
        key = None if columns is None else tuple(map(tuple, columns))
        found = self._questions.get(key)
        if found is None:
            leaves = self.under(columns)
            found = self._questions[key] = leaves, pruned(self.schema, leaves)
        return found

    def rows(
        self, columns: Sequence[Parts] | None, positions: Array, views: bool = False
    ) -> pa.Table:
        """Return columns of some samples, in the order of `positions`.

        Parameters
        ----------
        columns : sequence of tuple of str, or None
            For each the names of the structs around it and its own; None for all.
        positions : int64 ndarray
            Which samples.
        views : bool
            Whether payloads may be of type ``binary_view``, which point into the files and are not copied.
        """
        leaves, wanted = self._asked(columns)
        files, rows = self.locate(positions)
        tables = []
        # In the order of the files, each met once; put in the order of the caller at the end.
        steps = np.diff(files)
        by_file = np.argsort(files, kind="stable") if steps.any() else np.arange(len(files))
        is_sorted = not (steps < 0).any()
        views = views and is_sorted  # Arrow cannot take views in another order
        parts = [by_file]
        if steps.any():
            parts = np.split(by_file, np.flatnonzero(np.diff(files[by_file])) + 1)
        met = [int(files[part[0]]) for part in parts if len(part)]
        for number, part in enumerate(parts):
            if len(part):
                with reaching(self.snapshot.storage):
                    if not number % AHEAD:
                        self.files.prepare(met[number : number + AHEAD], leaves)
                    file = self.files[met[number]]
                    tables.append(assembled(file, wanted, leaves, rows[part], views))
        if not tables:
            return assembled(None, wanted, leaves, np.zeros(0, np.int64), views)
        whole = pa.concat_tables(tables)
        if not is_sorted:
            back = np.empty(len(by_file), np.int64)
            back[by_file] = np.arange(len(by_file))
            whole = whole.take(back)
        return whole

    def ranges(
        self, columns: Sequence[Parts] | None, positions: Array
    ) -> list[tuple[str, int, int]]:
        """Return what `SampleFiles.ranges` does of columns of some samples, in any order."""
        with reaching(self.snapshot.storage):
            return self.files.ranges(*self.locate(positions), self._asked(columns)[0])

    def select(
        self,
        where: pads.Expression,
        needed: Sequence[Parts],
        near: tuple[pads.Expression, pads.Expression] | None = None,
    ) -> Array:
        """Return the positions of the samples for which an expression is true, in order.

        Parameters
        ----------
        where : pyarrow.dataset.Expression
            On columns of the table.
        needed : sequence of tuple of str
            The columns that it asks: for each the names of the structs around it and its own.
        near : (pyarrow.dataset.Expression, pyarrow.dataset.Expression), optional
            What bounds are compared with, as `near` takes it; without it `where` itself.
        """
        found = [np.zeros(0, np.int64)]
        leaves = self.under(needed) or self.under([(SID,)])
        wanted = pruned(self.schema, leaves)
        met = [*self.near(near[0] if near else where, needed, near[1] if near else None)]
        for count, (number, groups) in enumerate(met):
            file = self.files[number]
            with reaching(self.snapshot.storage):
                if not count % AHEAD:
                    self.files.prepare([n for n, _ in met[count : count + AHEAD]], leaves)
                rows = np.concatenate([np.arange(*file.starts[g : g + 2]) for g in groups])
                table = assembled(file, wanted, leaves, rows, False)
            hit = table.append_column("__row", pa.array(rows)).filter(where)["__row"].to_numpy()
            place = self.positions_at(number, hit)
            found.append(place[place >= 0])
        places = np.concatenate(found)
        return places if self._order is None else np.sort(places)

    def near(
        self,
        where: pads.Expression,
        needed: Sequence[Parts] | None = None,
        ordered: pads.Expression | None = None,
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield the numbers of files that may have samples for which an expression is true, and their row groups.

        Parameters
        ----------
        where : pyarrow.dataset.Expression
            On columns of the table.
        needed : sequence of tuple of str, optional
            The columns that it asks; without it all are looked at.
        ordered : pyarrow.dataset.Expression, optional
            The same for files that are known to have no NaN, of which bounds say nothing.
        """
        asked = self.files_near(where, needed, ordered)
        for count, number in enumerate(asked):
            with reaching(self.snapshot.storage):
                if not count % AHEAD:
                    self.files.footers([*asked][count : count + AHEAD])
                footer = self.files[number].metadata
            if groups := groups_left(self.schema, footer, asked[number]):
                yield number, groups

    def files_near(
        self,
        where: pads.Expression,
        needed: Sequence[Parts] | None = None,
        ordered: pads.Expression | None = None,
    ) -> dict[int, pads.Expression]:
        """Return what `near` asks of each file that the log does not rule out; no file is opened."""
        leaves = self.under(needed)
        guarantees = guarantees_of(self.snapshot.file_actions, self._log_order.tolist(), leaves)
        known = self.without_nan(leaves)
        asked = [where if ordered is None or not one else ordered for one in known]
        return {n: asked[n] for n in files_left(self.schema, guarantees, asked)}

    def without_nan(self, leaves: Sequence[LeafColumn]) -> Array:
        """Return for each file whether the log says that its columns have no NaN: ours have bounds only then."""
        actions = self.snapshot.file_actions
        said = {*actions.column_names}  # a list that pyarrow makes anew each time
        ours = np.array([path.startswith(SORTED) for path in self.files.paths], bool)
        for leaf in leaves:
            if not pa.types.is_floating(leaf.type):
                continue
            name = f"max.{'.'.join(leaf.parts)}"
            if leaf.repeated or name not in said:
                return np.zeros(len(self.files), bool)
            ours &= actions[name].is_valid().to_numpy()[self._log_order]
        return ours
