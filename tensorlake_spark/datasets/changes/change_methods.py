"""The methods of a dataset that change samples which are there, and its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.changes import column_changes, sample_changes
from tensorlake_spark.datasets.changes.new_values import (
    NewValues,
    as_given,
    is_many,
    new_values,
    picked,
    spread,
    written_values,
)
from tensorlake_spark.datasets.changes.target_samples import only_once, positions_past, sids_of
from tensorlake_spark.datasets.samples.appending import reserve
from tensorlake_spark.datasets.samples.dataset_table import DatasetTable
from tensorlake_spark.datasets.samples.sample_selection import select_samples
from tensorlake_spark.datasets.types.base import Type, as_type
from tensorlake_spark.datasets.types.nested import link_in
from tensorlake_spark.datasets.types.schema import SampleSchema, check_columns
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidKeyError, InvalidKeyTypeError, InvalidOptionError


class ChangeMethods(DatasetTable):
    """Changes of a dataset. Each is one commit, computed from the version that is shown.

    Attributes
    ----------
    strict : bool
        Whether an assignment to a sample past the end is an error. Otherwise the dataset grows up to it, with nulls.
    """

    strict: bool = True

    def update(self, samples: Any, values: Mapping[str, Any]) -> int:
        """Give samples other values in some columns.

        Only the data files that hold them are written again, with the same sids; media of other samples are copied
        as they are.

        Parameters
        ----------
        samples : int, sequence or array of int, or str
            Sids, or a condition such as ``"label = 'cat' AND image.height > 512"``.
        values : mapping of str to object
            For each column, a list or an array with one value for each sample, or one value for all samples. An array
            that is itself a value of the column is one value for all.

        Returns
        -------
        int
            How many samples were changed.

        Raises
        ------
        SampleNotFoundError
            If there is no sample of a sid.
        InvalidSampleError
            If a value does not fit, or there are too few or too many.
        ConcurrentWriteError
            If another writer changed one of these samples since the version that is shown.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
        >>> ds.extend({"label": ["dog", "cat", "dog"], "size": [3, 4, 5]})
        >>> ds.update("label = 'dog'", {"size": [30, 50]}), ds.update(1, {"label": "dog"})
        (2, 1)
        >>> ds["size"][:].tolist(), ds["label"][:].tolist()
        ([30, 4, 50], [1, 1, 1])
        """
        self._check_writable()
        if not isinstance(values, Mapping) or not values:
            raise InvalidOptionError(
                f"values={values!r:.80} names no columns; give a mapping such as {{'label': 'cat'}}"
            )
        for name in values:
            self._check_column(name)
        sids, is_one = sids_of(self, samples)
        only_once(sids, "update")
        first = int(sids[0]) if is_one else 0
        given = {
            name: self._with_targets(name, self.type_of(name), value, is_one, first)
            for name, value in values.items()
        }
        self._show_update(sids, given, None if is_one else len(sids), "update", first)
        return len(sids)

    def delete(self, samples: Any) -> int:
        """Remove samples from the new version. Their sids are not used again; older versions still have the samples.

        Parameters
        ----------
        samples : int, sequence or array of int, or str
            Sids, or a condition.

        Returns
        -------
        int
            How many samples were deleted.

        Raises
        ------
        SampleNotFoundError
            If there is no sample of a sid.
        ConcurrentWriteError
            If another writer changed one of these samples since the version that is shown.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
        >>> ds.extend({"label": ["dog", "cat", "dog"], "size": [3, 4, 5]})
        >>> ds.delete("label = 'dog'"), ds.sids.tolist()
        (2, [1])
        """
        self._check_writable()
        sids = np.unique(sids_of(self, samples)[0])
        if len(sids):
            self._show(sample_changes.delete(self.stored, sids))
        return len(sids)

    def add_column(self, name: str, type: Any, values: Any = None) -> None:  # noqa: A002
        """Add a column.

        Parameters
        ----------
        name : str
            Its name, with ``/`` between groups.
        type : Type or dtype
            What it holds.
        values : sequence, array, or object, optional
            One value for each sample, or one value for all. Links are looked up, as `extend` does it. If they are left
            out, the new column is null, and only the log is written.

        Raises
        ------
        InvalidOptionError
            If there is such a column already, or the name or the type is not valid.
        InvalidSampleError
            If a value does not fit, or there are too few or too many.
        MissingLinkError
            If nothing is at the address of a link.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.add_column("checked", "bool", False)
        >>> ds[0]
        {'size': 3, 'checked': False}
        """
        self._check_writable()
        kind = as_type(type)
        if self._stored is None:
            if values is not None:
                raise InvalidOptionError(
                    f"the dataset at {self.uri} has no samples that could have values; extend it first"
                )
            self._created(SampleSchema({name: kind}))
            return
        if values is not None:
            values = self._with_targets(name, kind, values, is_one=False)
        self._show(column_changes.add_column(self.stored, name, kind, values))

    def drop_column(self, name: str) -> None:
        """Remove a column. All data files are written again, so its bytes are gone as soon as the old versions are.

        Raises
        ------
        UnknownLabelError
            If there is no such column; it is a KeyError.
        InvalidOptionError
            If it is the only one.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"label": tl.types.ClassLabel(["cat", "dog"]), "size": "int32"})
        >>> ds.extend({"label": ["dog", "cat", "dog"], "size": [3, 4, 5]})
        >>> ds.drop_column("label")
        >>> list(ds.schema)
        ['size']
        """
        self._check_writable()
        self._check_column(name)
        self._show(column_changes.drop_column(self.stored, name))

    def rename_column(self, old: str, new: str) -> None:
        """Give a column another name, which may be in another group. All data files are written again.

        Raises
        ------
        UnknownLabelError
            If there is no such column; it is a KeyError.
        InvalidOptionError
            If the new name is taken, or impossible.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"size": "int32"})
        >>> ds.extend({"size": [3, 4, 5]})
        >>> ds.rename_column("size", "facts/size")
        >>> list(ds.schema)
        ['facts/size']
        """
        self._check_writable()
        self._check_column(old)
        check_columns([new])
        if old != new:
            self._show(column_changes.rename_column(self.stored, old, new))

    def materialize(self, columns: Sequence[str], *, workers: Any = None) -> None:
        """Copy the files that links lead to into the dataset. A column of ``Link(Image())`` becomes one of ``Image()``.

        A column of ``Sequence(Link(Image()))`` becomes one of ``Sequence(Image())``. All data files are written again,
        in one commit. The values of a column with ``apart=True`` get a new table of their own.

        Parameters
        ----------
        columns : sequence of str
            Columns of links.
        workers : int or SparkSession, optional
            A number of threads, or a Spark session whose executors fetch the files and write; a few threads by
            default.

        Raises
        ------
        InvalidOptionError
            If a column has no links, or `workers` is neither.
        ChangedLinkError
            If a file has changed since its link was stored; the message names the sample.
        ForbiddenLinkError
            If the rules of the dataset, such as `allow_http`, do not allow a link.
        InvalidSampleError
            If a target is not of the type.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np, tensorlake_spark as tl
        >>> photo, file = tl.types.Image("png"), pathlib.Path(tempfile.mkdtemp()) / "photo.png"
        >>> _ = file.write_bytes(photo.encode([np.zeros((2, 3, 3), "u1")], "photo")[0]["data"].as_py())
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"photo": tl.types.Link(photo)})
        >>> ds.append({"photo": file})
        >>> ds.materialize(["photo"])
        >>> file.unlink()
        >>> ds["photo"][0].shape
        (2, 3, 3)
        """
        self._check_writable()
        if columns is None:
            raise InvalidOptionError("columns=None is not a list of names")
        columns = self._names(columns)
        for name in columns:
            self._check_column(name)
            if link_in(self.type_of(name)) is None:
                raise InvalidOptionError(
                    f"column {name!r} has no links: it is {self.type_of(name)}"
                )
        if columns:
            self._show(
                column_changes.materialize(
                    self.stored, list(dict.fromkeys(columns)), self._rules, workers
                )
            )

    def _with_targets(self, name: str, kind: Type, value: Any, is_one: bool, first: int = 0) -> Any:
        """Return values for a column, or with `is_one` that of one sample; links are looked up."""
        if link_in(kind) is None:
            return value
        if not is_one and is_many(value, kind):
            return self._looked_up(name, kind, value, first)
        return self._looked_up(name, kind, [value], first)[0]

    def _assign(self, name: str, key: Any, value: Any) -> None:
        """Give samples at some positions other values in a column, as NumPy assigns to an axis."""
        self._check_writable()
        kind, count, what = self.type_of(name), len(self), f"column {name!r}"
        if isinstance(key, tuple):
            raise InvalidKeyTypeError(
                f"{what} takes whole samples; read {name!r}[{key[:1]!r:.40}], change it, and assign it back"
            )
        chosen, total = self._within(key, what) if self.strict else positions_past(key, count, what)
        is_one = isinstance(chosen, int)
        positions = np.array([chosen], np.int64) if isinstance(chosen, int) else chosen
        # A slice gives values to samples side by side, which a message names by their places.
        first = int(positions[0]) if len(positions) and (np.diff(positions) == 1).all() else 0
        value = self._with_targets(name, kind, value, is_one, first)
        # Where a position is there twice the last value stays, as in NumPy.
        last = dict(zip(positions.tolist(), range(len(positions)), strict=True))
        if total == count:
            if len(last) < len(positions) and is_many(value, kind) and len(value) == len(positions):
                value = picked(as_given(value), np.array([*last.values()]))
                positions = np.array([*last])
            elif len(last) < len(positions):
                positions = np.array([*last])
            sids = self._sids_of(positions)
            given = None if is_one else len(sids)
            self._show_update(sids, {name: value}, given, "assignment", first)
            return
        new = new_values(value, kind, name, None if is_one else len(positions), first)
        there = [position for position in last if position < count]
        places = np.array([last.get(k, -1) for k in [*there, *range(count, total)]], np.int64)
        new = spread(new, kind, name, places)
        self._show(self._grown(name, self._sids_of(np.array(there, np.int64)), new, total - count))

    def _within(self, key: Any, what: str) -> tuple[int | np.ndarray[Any, Any], int]:
        """Return positions of samples that are there, and how many there are."""
        try:
            return select_samples(key, len(self), what), len(self)
        except InvalidKeyTypeError:
            raise
        except InvalidKeyError as error:
            raise InvalidKeyError(
                f"{error}; ds.strict = False lets an assignment past the end make the dataset grow"
            ) from error

    def _grown(self, name: str, sids: Any, new: NewValues, grown: int) -> Snapshot:
        """Commit values of samples that are there, and of others after them."""
        base, kind = self.stored, self.type_of(name)
        if not (kind.apart or is_tileable(kind)):
            return sample_changes.update(base, sids, {name: new}, grown, "assignment")
        first = reserve(self._storage, base.snapshot, grown)[1]
        numbers = np.concatenate([sids, np.arange(first, first + grown)])
        left: dict[str, NewValues] = {name: new}
        with self._parts_writer() as parts:
            if kind.apart or parts.has_large({name: new.array}):
                found = parts.take({name: new.at(np.arange(len(numbers)))}, numbers.tolist(), 0)
                left = {n: NewValues(kind.encode(v, n), False) for n, v in found.items()}
            written = parts.finish()
        return sample_changes.update(base, sids, left, grown, "assignment", written, first, [name])

    def _show_update(
        self,
        sids: Any,
        values: Mapping[str, Any],
        count: int | None,
        operation: str,
        first: int = 0,
    ) -> None:
        """Write and commit values of samples that are there; tiles and apart columns first."""
        base = self.stored
        with self._parts_writer() as parts:
            new = written_values(parts, values, sids, count, first)
            written = parts.finish() if len(sids) else []
        if len(sids):
            self._show(
                sample_changes.update(
                    base, sids, new, operation=operation, written=written, columns=[*values]
                )
            )

    def _parts_writer(self) -> PartsWriter:
        return PartsWriter(self._storage, self.stored.snapshot, self.schema, replaces=True)

    def _check_column(self, name: Any) -> None:
        """Raise if a name is not that of a column."""
        column_changes.check_column(self.schema, name, self.uri)
        self.type_of(name)
