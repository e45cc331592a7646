"""The features of a table at one version of the lake, as the metadata of its tensors names them.

The tensors of the table ``ctr`` are ``ctr/float32``, ``ctr/int64`` and so on, with the axes ``row`` and ``feature``.
The labels of the axis ``feature`` are the names. The attribute `MARK` says what the names do not: the place of each
feature in the table, what integers mean, and which features are deprecated. Beside a dtype some of whose values are
null stands a bool tensor, such as ``ctr/float32/null``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.columns.feature_types import DTYPES, type_of
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    UnknownLabelError,
    did_you_mean,
)
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.labels import Listed
from tensorlake_spark.writing.options import FEATURES

Array = np.ndarray[Any, Any]

MARK = FEATURES
"""The attribute by which a tensor is known as part of a table of features."""

AXES = ("row", "feature")

LAYOUT = "ftsf"
"""Layout of the tensors."""

BLOCK = (4096, 16)
"""Rows and features of a block: a feature is few blocks of many rows, and a block has little of others."""


def tensor_id(table: str, dtype: str) -> str:
    """Return the id of the tensor with the features of a dtype."""
    return f"{table}/{dtype}"


def null_id(table: str, dtype: str) -> str:
    """Return the id of the tensor that says which of these are null."""
    return f"{table}/{dtype}/null"


@dataclass(frozen=True, eq=False)
class FeatureGroup:
    """The features of one dtype.

    Attributes
    ----------
    dtype : str
        The dtype.
    meta : Meta
        Their tensor.
    nulls : Meta or None
        The tensor that says which values are null; None where none is.
    labels : Listed
        Their names, in the order of the tensor.
    runs : list of (int, int)
        Their places in the table: runs, each the first place and how many follow.
    meanings : dict of str to str
        By name, the Arrow type of integers with a meaning.
    deprecated : frozenset of str
        The names that are hidden.
    """

    dtype: str
    meta: Meta
    nulls: Meta | None
    labels: Listed
    runs: list[tuple[int, int]]
    meanings: dict[str, str]
    deprecated: frozenset[str]

    @classmethod
    def of(cls, dtype: str, meta: Meta, nulls: Meta | None) -> FeatureGroup:
        """Return what the metadata of a tensor says.

        Raises
        ------
        CorruptDataError
            If the tensor was changed by other means, so that names, places and values do not fit.
        """
        spec, mark = meta.spec, meta.spec.attrs[MARK]
        labels = spec.labels.get(AXES[1])
        try:
            runs = [(int(first), int(count)) for first, count in mark["places"]]
            meanings, deprecated = dict(mark["types"]), frozenset(mark["deprecated"])
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise _changed(spec.id, f"its attribute {MARK!r} is not readable") from error
        if spec.axes != AXES or not isinstance(labels, Listed):
            raise _changed(spec.id, "it has no names of features")
        count = spec.shape[1]
        if sum(n for _, n in runs) != count or min((n for _, n in runs), default=1) < 1:
            raise _changed(
                spec.id, f"it has {count} features, and places for another number of them"
            )
        if nulls is not None and nulls.spec.shape != spec.shape:
            raise _changed(nulls.spec.id, f"its shape {nulls.spec.shape} is not {spec.shape}")
        return cls(dtype, meta, nulls, labels, runs, meanings, deprecated)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order of the tensor."""
        return self.labels.values

    @cached_property
    def places(self) -> Array:
        """For each feature of the tensor its place in the table."""
        return np.concatenate([np.arange(first, first + n) for first, n in self.runs])


def mark_of(
    places: Iterable[int], meanings: dict[str, str], deprecated: Collection[str]
) -> dict[str, Any]:
    """Return the attributes that mark a tensor of features.

    Examples
    --------
    >>> mark_of([0, 1, 2, 7], {}, ())["tensorlake.features"]["places"]
    [[0, 3], [7, 1]]
    """
    found = [*places]
    starts = [0, *(k for k, (a, b) in enumerate(pairwise(found), 1) if b != a + 1), len(found)]
    runs = [[int(found[a]), b - a] for a, b in pairwise(starts) if b > a]
    return {MARK: {"places": runs, "types": meanings, "deprecated": sorted(deprecated)}}


@dataclass(frozen=True)
class Pick:
    """Features of one dtype that somebody asked for.

    Attributes
    ----------
    group : FeatureGroup
        Their dtype.
    columns : int64 ndarray
        Their indices in the tensor.
    to : int64 ndarray
        Where they stand among all that were asked for.
    """

    group: FeatureGroup
    columns: Array
    to: Array


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """All features of a table at one version.

    Attributes
    ----------
    table : str
        Name of the table.
    groups : dict of str to FeatureGroup
        By dtype.
    rows : int
        Rows of the table.
    """

    table: str
    groups: dict[str, FeatureGroup]
    rows: int = field(default=0)

    @classmethod
    def find(cls, look_up: Callable[[str], Meta | None], table: str) -> FeatureSet | None:
        """Return the features of a table, None if there is no such table.

        Parameters
        ----------
        look_up : callable
            Returns the metadata of the tensor of an id, or None.
        table : str
            Name of the table.

        Raises
        ------
        CorruptDataError
            If a tensor of it was changed by other means.
        """
        groups = {}
        for dtype in DTYPES:
            meta = look_up(tensor_id(table, dtype))
            if meta is not None and MARK in meta.spec.attrs:
                nulls = look_up(null_id(table, dtype))
                groups[dtype] = FeatureGroup.of(dtype, meta, nulls)
        if not groups:
            return None
        return cls.of(table, groups)

    @classmethod
    def of(cls, table: str, groups: dict[str, FeatureGroup]) -> FeatureSet:
        """Return the set of some groups, which have the same rows.

        Raises
        ------
        CorruptDataError
            If they have not.
        """
        rows = {group.meta.spec.shape[0]: group.meta.spec.id for group in groups.values()}
        if len(rows) > 1:
            (one, first), (other, second) = list(rows.items())[:2]
            raise _changed(second, f"it has {other} rows, and {first!r} has {one}")
        return cls(table, groups, *rows)

    @property
    def ids(self) -> list[str]:
        """Ids of the tensors."""
        metas = (meta for group in self.groups.values() for meta in (group.meta, group.nulls))
        return [meta.spec.id for meta in metas if meta is not None]

    @cached_property
    def _all(self) -> list[tuple[str, str, str | None, bool]]:
        """Name, dtype, meaning and whether it is deprecated, of all features in the order of the table."""
        found = [
            (place, name, group.dtype, group.meanings.get(name), name in group.deprecated)
            for group in self.groups.values()
            for place, name in zip(group.places.tolist(), group.names, strict=True)
        ]
        return [entry[1:] for entry in sorted(found)]

    @cached_property
    def names(self) -> list[str]:
        """Names in the order of the table, without the deprecated ones."""
        return [name for name, _, _, hidden in self._all if not hidden]

    @cached_property
    def every_name(self) -> list[str]:
        """All names in the order of the table."""
        return [name for name, *_ in self._all]

    @cached_property
    def deprecated(self) -> list[str]:
        """The deprecated names in the order of the table."""
        return [name for name, _, _, hidden in self._all if hidden]

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """The type of every feature, in the order of the table."""
        return {name: type_of(dtype, meaning) for name, dtype, meaning, _ in self._all}

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types in the order of the table, without the deprecated ones."""
        return pa.schema([(name, self.types[name]) for name in self.names])

    @property
    def next_place(self) -> int:
        """The place of the next feature that is added."""
        return 1 + max(first + n - 1 for group in self.groups.values() for first, n in group.runs)

    def check_chunks(self) -> None:
        """Raise InvalidOptionError if a tensor has another layout than features are written in; reads take any."""
        for group in self.groups.values():
            for meta in (group.meta, group.nulls):
                if meta is not None and meta.spec.layout != LAYOUT:
                    name = meta.spec.id
                    raise InvalidOptionError(
                        f"tensor {name!r} of the features {self.table!r} has layout {meta.spec.layout!r}, and features "
                        f"are changed in layout {LAYOUT!r} alone; call lake.convert({name!r}, layout={LAYOUT!r}, "
                        f"block_shape={BLOCK}) first"
                    )

    def pick(self, names: Sequence[str]) -> list[Pick]:
        """Return where features are, by their names; each of these is there once.

        Raises
        ------
        UnknownLabelError
            If there is no feature of a name; the message offers the nearest.
        """
        missing = np.ones(len(names), bool)
        out = []
        for group in self.groups.values():
            columns = group.labels.places(names)
            to = np.flatnonzero(columns >= 0)
            if len(to):
                missing[to] = False
                out.append(Pick(group, columns[to], to))
        if missing.any():
            raise self._unknown([names[k] for k in np.flatnonzero(missing).tolist()])
        return out

    def _unknown(self, names: Sequence[str]) -> UnknownLabelError:
        known = self.every_name
        near = did_you_mean(str(names[0])[:200], known)
        more = f", nor {len(names) - 1} others of these names" if len(names) > 1 else ""
        return UnknownLabelError(
            f"there is no feature {names[0]!r:.200} in {self.table!r}{more}{near}; the table has {len(known)} features"
        )


def _changed(name: str, why: str) -> CorruptDataError:
    return CorruptDataError(
        f"tensor {name!r} belongs to a table of features and was changed alone: {why}; restore all "
        "tensors of the table by one lake.restore(ids, version), and change them through lake.features"
    )
