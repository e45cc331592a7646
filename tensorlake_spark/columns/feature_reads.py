"""What a table of features shows of one version of the lake: names, types, and the features that a read names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from tensorlake_spark.columns.access_log import AccessLog, accessed
from tensorlake_spark.columns.feature_input import check_once
from tensorlake_spark.columns.feature_set import FeatureSet, Pick
from tensorlake_spark.columns.feature_types import DTYPES
from tensorlake_spark.columns.feature_values import arrow_columns, values_of
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    InvalidKeyTypeError,
    InvalidOptionError,
    TensorNotFoundError,
    did_you_mean,
    is_iterable,
)
from tensorlake_spark.indexing import select_simple
from tensorlake_spark.tensor.spec import check_id

Reads = TypeVar("Reads", bound="FeatureReads")

_LONGEST_ID = len("/float32/null") + 1


class FeatureReads:
    """A table of features as it is read."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        snapshot: Snapshot | None,
        verify: bool = True,
        check_writable: Callable[[], None] = lambda: None,
        show: Callable[[Snapshot], Any] = lambda _: None,
    ) -> None:
        check_id(name)
        check_id(f"{name}/{'x' * (_LONGEST_ID - 2)}")  # the longest id of a tensor of it
        self._storage = storage
        self._name = name
        self._snapshot = snapshot
        self._set = None if snapshot is None else set_of(snapshot, name)
        self._verify = verify
        self._check_writable = check_writable
        self._show = show
        self._log: AccessLog | None = None

    @property
    def name(self) -> str:
        """Name of the table; its tensors have ids such as ``NAME/float32``."""
        return self._name

    @property
    def version(self) -> int | None:
        """The version of the lake that is shown; None while there is no lake."""
        return None if self._snapshot is None else self._snapshot.version

    @property
    def exists(self) -> bool:
        """Whether the table is there; `write` makes it."""
        return self._set is not None

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a feature, deprecated or not.

        Raises
        ------
        UnknownLabelError
            If there is no such feature.
        """
        found = self._found()
        found.pick([name])
        return found.types[name]

    @property
    def names(self) -> list[str]:
        """Names of the features in their order, without the deprecated ones."""
        return [*self._found().names]

    @property
    def deprecated(self) -> list[str]:
        """Names of the deprecated features."""
        return [*self._found().deprecated]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the features, without the deprecated ones."""
        return self._found().schema

    def __len__(self) -> int:
        return self._found().rows

    def __contains__(self, name: object) -> bool:
        found = self._set
        return (
            found is not None
            and isinstance(name, str)
            and any(group.labels.places([name])[0] >= 0 for group in found.groups.values())
        )

    def read(self, columns: Sequence[str] | None = None, rows: slice | None = None) -> pa.Table:
        """Return features as an Arrow table, in the order of `columns`.

        Only the blocks that hold these features and rows are read.

        Parameters
        ----------
        columns : sequence of str, optional
            Names, each of them once. By default all features that are not deprecated.
        rows : slice, optional
            Which rows, as a slice of a list takes them. By default all.

        Raises
        ------
        UnknownLabelError
            If there is no feature of a name; the message offers the nearest.
        InvalidOptionError
            If a name is there twice, or `columns` is not a list of names.
        InvalidKeyTypeError
            If `rows` is no slice.
        TensorNotFoundError
            If there is no such table.

        Warns
        -----
        FutureWarning
            If a feature is deprecated.
        """
        found, rows = self._found(), _checked_rows(rows)
        assert self._snapshot is not None  # nosec B101 # for mypy
        names = found.names if columns is None else checked_names(columns)
        arrays: list[Any] = [None] * len(names)
        for pick in found.pick(names):
            self._warn(pick, names)
            for place, array in zip(pick.to.tolist(), self._arrays(pick, names, rows), strict=True):
                arrays[place] = array
        if self._log is not None and columns is not None:
            self._log.count(names)
        if not names:
            (count,) = select_simple((rows,), (found.rows,)).storage_shape
            return pa.table({"": pa.nulls(count)}).select([])
        return pa.Table.from_arrays(arrays, names=names)

    def _arrays(self, pick: Pick, names: Sequence[str], rows: slice) -> list[pa.Array]:
        """Return the features of one dtype."""
        group, snapshot = pick.group, self._snapshot
        assert snapshot is not None  # nosec B101 # for mypy
        values = values_of(snapshot, group.meta, rows, pick.columns, self._verify)
        nulls = None
        if group.nulls is not None and group.nulls.totals.nnz:
            nulls = values_of(snapshot, group.nulls, rows, pick.columns, self._verify)
        meanings: list[str | None] = [None] * len(pick.to)
        if group.meanings:
            meanings = [group.meanings.get(names[k]) for k in pick.to.tolist()]
        return arrow_columns(values, nulls, group.dtype, meanings)

    def _warn(self, pick: Pick, names: Sequence[str]) -> None:
        hidden = pick.group.deprecated.intersection(names) if pick.group.deprecated else ()
        if hidden:
            warnings.warn(
                f"feature {min(hidden)!r} of {self._name!r} is deprecated and will be dropped"
                f"{f', as are {len(hidden) - 1} others of these' if len(hidden) > 1 else ''}",
                FutureWarning,
                stacklevel=3,
            )

    def record(self: Reads, on: bool = True) -> Reads:
        """Count from now on which features are read together, or stop; return this table.

        The counts go to a small file beside the table, from another thread. No read waits for it, and none fails
        because of it. A read of all features does not count.
        """
        if self._log is not None:
            self._log.flush()
        self._log = AccessLog(self._storage, self._name) if on else None
        return self

    @property
    def accessed(self) -> dict[tuple[str, ...], int]:
        """How often each set of features was read together, the most frequent first; names are sorted."""
        log = self._log
        counts = accessed(self._storage, self._name) if log is None else log.accessed()
        return dict(counts.most_common())

    def _found(self) -> FeatureSet:
        if self._set is None:
            raise self._absent(self._snapshot)
        return self._set

    def _absent(self, snapshot: Snapshot | None) -> TensorNotFoundError:
        known = () if snapshot is None else table_names(catalog.ids(snapshot))
        where = "" if snapshot is None else f"version {snapshot.version} of "
        return TensorNotFoundError(
            f"there are no features {self._name!r} in {where}{self._storage.uri}"
            f"{did_you_mean(self._name, known)}; .write(table) makes them"
        )

    def __repr__(self) -> str:
        found = self._set
        if found is None:
            return f"{type(self).__name__}({self._name!r}, not written yet)"
        return (
            f"{type(self).__name__}({self._name!r}, rows={found.rows}, features={len(found.names)}, "
            f"version={self.version})"
        )


def set_of(snapshot: Snapshot, name: str) -> FeatureSet | None:
    return FeatureSet.find(partial(catalog.find, snapshot), name)


def table_names(ids: Iterable[str]) -> list[str]:
    """Return what may be tables of features, by the ids of tensors.

    Examples
    --------
    >>> table_names(["ctr/float32", "ctr/float32/null", "ctr/int64", "photos"])
    ['ctr']
    """
    split = (name.rpartition("/") for name in ids)
    return sorted({table for table, _, dtype in split if dtype in DTYPES and table})


def checked_names(names: Any) -> list[str]:
    """Return names of features as a list, each of them there once.

    Raises
    ------
    InvalidOptionError
        If they are no list of strings, or one is there twice.

    Examples
    --------
    >>> checked_names(("a", "b"))
    ['a', 'b']
    """
    if isinstance(names, (str, bytes)) or not is_iterable(names):
        raise InvalidOptionError(
            f"{names!r:.100} is not a list of names of features; give one, such as [{names!r:.100}]"
        )
    found = [*names]
    if {*map(type, found)} - {str}:
        for name in found:
            if not isinstance(name, str):
                raise InvalidOptionError(
                    f"{name!r:.100} is not a name of a feature, which is a string"
                )
        found = [*map(str, found)]  # NumPy's strings would show their type in messages
    check_once(found, "feature", InvalidOptionError)
    return found


def _checked_rows(rows: Any) -> slice:
    if rows is None:
        return slice(None)
    if not isinstance(rows, slice):
        raise InvalidKeyTypeError(
            f"rows={rows!r:.100} is not a slice; give one, such as slice(0, 100), and take single rows of the result"
        )
    return rows
