"""The live data files of a version, and what the log says is in them."""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, overload

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.log.requirements import SAMPLES, SID, TENSORS
from tensorlake_spark.delta.store.paths import live_path
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.tensor.spec import STORED_AXES

Array = np.ndarray[Any, Any]

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Bounds where the log says none."""

_READ = {TENSORS: ("id", "seq", "nnz", "lo", "hi"), SAMPLES: (SID,)}
"""The columns whose bounds `Files` has, by what a table is."""

_NO_PLACES: Array = np.zeros(0, np.int64)
_NO_PLACES.flags.writeable = False


class IdIndex:
    """The files of a version, looked up by the bounds of ``id`` that the log has for them.

    It is made when it is asked first. A version that only adds files to this one takes it over, see `later`.

    Examples
    --------
    >>> first = last = np.array(["a", "b", "b", None], object)
    >>> IdIndex().places("b", first, last).tolist()
    [1, 2, 3]
    """

    __slots__ = ("_alone", "_count", "_lock", "_ranges")

    def __init__(self) -> None:
        self._alone: defaultdict[str, list[int]] = defaultdict(list)  # files of one tensor
        self._ranges: list[int] = []  # files of several, or of nobody knows which
        self._count = 0
        self._lock = threading.Lock()

    def places(self, tensor_id: str, first: Array, last: Array) -> Array:
        """Return the places of a version's files whose bounds hold an id, in order.

        Parameters
        ----------
        tensor_id : str
            The id.
        first, last : object arrays
            The bounds of the version's files, None where unknown.
        """
        with self._lock:
            if not self._count:
                self._take_in(first, last)
            if not self._ranges and tensor_id not in self._alone:
                return _NO_PLACES
            alone, ranges = list(self._alone.get(tensor_id, ())), np.array(self._ranges, np.int64)
        alone = [place for place in alone if place < len(first)]  # a later version may have asked
        if not len(ranges):
            return np.array(alone, np.int64)
        ranges = ranges[: np.searchsorted(ranges, len(first))]
        lower, upper = first[ranges], last[ranges]
        lower = np.where(lower == None, tensor_id, lower)  # noqa: E711 - elementwise
        upper = np.where(upper == None, tensor_id, upper)  # noqa: E711 - elementwise
        near = np.asarray(lower <= tensor_id, bool) & np.asarray(upper >= tensor_id, bool)
        return np.sort(np.concatenate([np.array(alone, np.int64), ranges[near]]))

    def later(self, count: int, first: Array, last: Array) -> IdIndex:
        """Return the index of a version that has the first `count` files of this one, and others after them.

        Parameters
        ----------
        count : int
            How many files the version before it has.
        first, last : object arrays
            The bounds of those that come after.
        """
        with self._lock:
            if (
                not count or self._count != count
            ):  # nobody asked yet, or another version took it over
                return IdIndex()
            self._take_in(first, last)
        return self

    def _take_in(self, first: Array, last: Array) -> None:
        for place, (least, most) in enumerate(
            zip(first.tolist(), last.tolist(), strict=True), self._count
        ):
            if least is not None and least == most:
                self._alone[least].append(place)
            else:
                self._ranges.append(place)
        self._count += len(first)


class Paths(Sequence[str]):
    """The paths of a version's files: the first `count` of a list to which later versions add theirs.

    Examples
    --------
    >>> paths = Paths(["a", "b", "c"], 2)
    >>> paths[-1], paths[:1], paths == ["a", "b"]
    ('b', ['a'], True)
    """

    __slots__ = ("_all", "_count")

    def __init__(self, paths: list[str], count: int) -> None:
        self._all, self._count = paths, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return islice(self._all, self._count)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._all[k] for k in range(self._count)[place]]
        return self._all[range(self._count)[place]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Paths, list)) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr([*self])


class SharedFiles:
    """What the log says of files, in arrays with room at their end: versions that only add files share them.

    So a version costs what it adds, not what the table has.

    Parameters
    ----------
    files : Files
        The files of the first version.
    """

    __slots__ = ("_arrays", "_count", "_lock", "_paths", "_places")

    def __init__(self, files: Files) -> None:
        self._count = len(files.path)
        self._paths = [*files.path]
        self._places = {path: place for place, path in enumerate(files.path)}
        self._arrays: dict[str, Array] = {name: getattr(files, name) for name in ARRAYS}
        self._lock = threading.Lock()

    def has_any(self, paths: Iterable[str], count: int) -> bool:
        """Return whether one of these paths is among the first `count`."""
        return any(self._places.get(path, count) < count for path in paths)

    def add(self, count: int, more: Files) -> tuple[Paths, dict[str, Array]] | None:
        """Put more files behind the first `count`, and return the paths and arrays of all of them.

        Returns
        -------
        (Paths, dict of str to array), or None
            None if another version has put its files there.
        """
        with self._lock:
            if self._count != count:
                return None
            total = count + len(more.path)
            for name, array in self._arrays.items():
                if len(array) < total:
                    roomy = np.empty((total + total // 2, *array.shape[1:]), array.dtype)
                    roomy[:count] = array[:count]
                    self._arrays[name] = array = roomy
                array[count:total] = getattr(more, name)
            self._paths += more.path
            for place, path in enumerate(more.path, count):
                self._places.setdefault(path, place)
            self._count = total
            return Paths(self._paths, total), {n: a[:total] for n, a in self._arrays.items()}


@dataclass(frozen=True, slots=True)
class Files:
    """The live data files of a version, one entry of every array for each.

    Attributes
    ----------
    path : sequence of str
        Path in the table.
    size, rows : int64 arrays
        Bytes of the file, and its rows (-1 where the log does not say).
    first_id, last_id : object arrays
        Bounds of ``id``, None where unknown.
    least_nnz, most_nnz, last_seq : int64 arrays
        Bounds of ``nnz`` and the greatest ``seq``.
    lo, hi : int64 arrays of shape (files, 8)
        Least lower and greatest upper corner of the rows' boxes.
    first_sid, last_sid : int64 arrays
        Bounds of ``sid``, in a table of samples; the columns above are those of tensors.
    kind : str
        What the table is, `requirements.TENSORS` or `requirements.SAMPLES`.
    """

    path: Sequence[str]
    size: Array
    rows: Array
    first_id: Array
    last_id: Array
    least_nnz: Array
    most_nnz: Array
    last_seq: Array
    lo: Array
    hi: Array
    first_sid: Array
    last_sid: Array
    kind: str = TENSORS
    _index: IdIndex = field(default_factory=IdIndex, compare=False, repr=False)
    _shared: SharedFiles | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, actions: pa.Table | dict[str, list[Any]], uri: str, kind: str = TENSORS) -> Files:
        """Return what the log of the table at `uri` says, in a row for each file."""
        if not isinstance(actions, dict):  # a sample's columns may have the names of a tensor's
            actions = actions.select([n for n in actions.column_names if _is_read(n, kind)])
        paths = _listed(actions, "path") or []
        count = len(paths)
        said = {*(actions if isinstance(actions, dict) else actions.column_names)}

        def text(name: str) -> Array:
            out = np.empty(count, object)
            found = _listed(actions, name)
            if found is not None:
                out[:] = found
            return out

        def corner(name: str, unknown: int) -> Array:
            out = np.full((count, STORED_AXES), unknown, np.int64)
            for k in range(STORED_AXES):
                if f"{name}.d{k}" in said:
                    out[:, k] = numbers(actions, f"{name}.d{k}", unknown)
            return out

        return cls(
            path=[live_path(path, uri) for path in paths],
            size=numbers(actions, "size_bytes", 0),
            rows=numbers(actions, "num_records", -1),
            first_id=text("min.id"),
            last_id=text("max.id"),
            least_nnz=numbers(actions, "min.nnz", 0),
            most_nnz=numbers(actions, "max.nnz", MOST),
            last_seq=numbers(actions, "max.seq", MOST),
            lo=corner("min.lo", LEAST),
            hi=corner("max.hi", MOST),
            first_sid=numbers(actions, "min.sid", LEAST),
            last_sid=numbers(actions, "max.sid", MOST),
            kind=kind,
        )

    @classmethod
    def added(cls, added: list[dict[str, Any]], uri: str, kind: str = TENSORS) -> Files:
        """Return the files of some ``add`` actions, as the log of the table at `uri` has them."""
        return cls.of(_actions(added, kind), uri, kind)

    def grown(self, added: list[dict[str, Any]], removed: set[str], uri: str) -> Files:
        """Return the files after a commit, which share arrays with these if none of these is removed.

        Parameters
        ----------
        added : list of dict
            The ``add`` actions as the log has them.
        removed : set of str
            Paths of files that left the table.
        uri : str
            Where the table is, for messages.
        """
        gone = removed | {action["path"] for action in added}
        kept = self
        if self._has_any(gone):  # statistics that are computed anew add a file again
            kept = self.chosen([name not in gone for name in self.path])
        return kept._followed(Files.added(added, uri, self.kind))

    def _has_any(self, paths: set[str]) -> bool:
        if self._shared is None:
            return not paths.isdisjoint(self.path)
        return self._shared.has_any(paths, len(self.path))

    def _followed(self, new: Files) -> Files:
        count, shared = len(self.path), self._shared
        found = None if shared is None else shared.add(count, new)
        while found is None:
            shared = SharedFiles(self)
            found = shared.add(count, new)
        path, arrays = found
        index = self._index.later(count, new.first_id, new.last_id)
        return Files(path, **arrays, kind=self.kind, _index=index, _shared=shared)

    def chosen(self, mask: Array | list[bool]) -> Files:
        """Return some of the files."""
        places = np.flatnonzero(mask)
        arrays: dict[str, Any] = {name: getattr(self, name)[places] for name in ARRAYS}
        return Files([self.path[place] for place in places.tolist()], **arrays, kind=self.kind)

    def joined(self, more: Files) -> Files:
        """Return these files, and others after them."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in ARRAYS
        }
        return Files([*self.path, *more.path], **arrays, kind=self.kind)

    def places_of(self, tensor_id: str, data: bool | None = None) -> Array:
        """Return the places of the files that may hold data (or metadata, or any) rows of a tensor, in order."""
        near = self._index.places(tensor_id, self.first_id, self.last_id)
        if data is None or not len(near):
            return near
        return near[self.most_nnz[near] > 0 if data else self.least_nnz[near] == 0]

    def may_hold(self, tensor_id: str, data: bool | None = None) -> Array:
        """Return for each file whether it may hold data (or metadata, or any) rows of a tensor."""
        out = np.zeros(len(self.path), bool)
        out[self.places_of(tensor_id, data)] = True
        return out

    def may_hold_any(self, ids: Iterable[str]) -> Array:
        """Return for each file whether it may hold rows of one of some tensors."""
        names = sorted(ids)

        def holds(first: Any, last: Any) -> bool:
            if first is None or last is None:
                return bool(names)
            place = bisect_left(names, first)
            return place < len(names) and names[place] <= last

        found = map(holds, self.first_id, self.last_id)
        return np.fromiter(found, bool, len(self.path))

    def boxes(self, shape: tuple[int, ...], places: Array) -> tuple[Array, Array]:
        """Return for each of some files a box that covers its rows, as far as the log says."""
        lo = np.zeros((len(places), len(shape)), np.int64)
        hi = np.full(lo.shape, shape, np.int64)
        stored = min(len(shape), STORED_AXES)
        np.maximum(lo[:, :stored], self.lo[places, :stored], out=lo[:, :stored])
        np.minimum(hi[:, :stored], self.hi[places, :stored], out=hi[:, :stored])
        return lo, hi


ARRAYS = [f.name for f in fields(Files) if f.name not in ("path", "kind", "_index", "_shared")]
"""Names of the arrays of `Files`."""


def _is_read(name: str, kind: str) -> bool:
    """Whether a column that deltalake gives says what `Files` has of a table of this kind."""
    _, _, column = name.partition(".")
    return not column or column.partition(".")[0] in _READ[kind]


def _actions(added: list[dict[str, Any]], kind: str) -> dict[str, list[Any]]:
    """Return ``add`` actions in the columns that deltalake gives them, those alone in which something is said.

    Raises ValueError or TypeError if their statistics are not of our columns' types.
    """
    columns: dict[str, list[Any]] = {"path": [None] * len(added)}

    def put(place: int, name: str, value: Any, wanted: type = int) -> None:
        if value is None:
            return
        if type(value) is not wanted:
            raise TypeError(f"{name} of {added[place]['path']} is {value!r:.100}")
        columns.setdefault(name, [None] * len(added))[place] = value

    for place, action in enumerate(added):
        said = json.loads(action.get("stats") or "{}") or {}
        put(place, "path", action["path"], str)
        put(place, "size_bytes", action["size"])
        put(place, "num_records", said.get("numRecords"))
        for side, prefix in (("minValues", "min"), ("maxValues", "max")):
            values = said.get(side) or {}
            for column in _READ[kind]:
                value = values.get(column)
                if isinstance(value, dict):
                    for leaf, one in value.items():
                        put(place, f"{prefix}.{column}.{leaf}", one)
                else:
                    put(place, f"{prefix}.{column}", value, str if column == "id" else int)
    return columns


def _listed(actions: pa.Table | dict[str, list[Any]], name: str) -> list[Any] | None:
    """Return a column of the log's, None where there is none."""
    if isinstance(actions, dict):
        return actions.get(name)
    return None if name not in actions.column_names else actions[name].to_pylist()


def numbers(actions: pa.Table | dict[str, list[Any]], name: str, unknown: int) -> Array:
    """Return a column of the log's as int64, `unknown` where it says nothing."""
    if isinstance(actions, dict):
        if name not in actions:
            return np.full(len(actions["path"]), unknown, np.int64)
        return np.array([unknown if v is None else v for v in actions[name]], np.int64)
    if name not in actions.column_names:
        return np.full(actions.num_rows, unknown, np.int64)
    column = actions[name]
    if column.null_count:
        column = column.cast(pa.int64()).fill_null(unknown)
    return np.asarray(column.to_numpy(), np.int64)


def statistics_of(actions: pa.Table, place: int) -> dict[str, Any]:
    """Return what the log says of our columns in one file, in the form of the log."""
    row = actions.slice(place, 1).to_pylist()[0]
    out: dict[str, Any] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    if row["num_records"] is not None:
        out["numRecords"] = row["num_records"]
    kinds = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
    for name, value in row.items():
        kind, *column = name.split(".")
        if kind in kinds and column[0] in SCHEMA.names and value is not None:
            inner = out[kinds[kind]]
            for part in column[:-1]:
                inner = inner.setdefault(part, {})
            inner[column[-1]] = value
    return out
