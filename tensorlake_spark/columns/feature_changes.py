"""Changes of a table of features: each of them changes the tensors of all dtypes, in one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.columns.elsewhere.feature_parts import whole
from tensorlake_spark.columns.feature_cut import cut, unchanged
from tensorlake_spark.columns.feature_set import (
    AXES,
    BLOCK,
    MARK,
    FeatureGroup,
    FeatureSet,
    mark_of,
    null_id,
    tensor_id,
)
from tensorlake_spark.columns.feature_types import dtype_of_type, meaning_of
from tensorlake_spark.columns.feature_values import Columns, Nulls, StoredColumns
from tensorlake_spark.errors import InvalidTensorError, TensorExistsError, did_you_mean
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding.chain import TRANSPOSE
from tensorlake_spark.layouts.coding.codec import codec_of, encode
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.label_input import labels_of
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing import write
from tensorlake_spark.writing.options import WriteOptions, check_codec_dtype, named_codec
from tensorlake_spark.writing.source import ArraySource
from tensorlake_spark.writing.uncommitted import Uncommitted

logger = logging.getLogger("tensorlake_spark")

Array = np.ndarray[Any, Any]

SAVING = 0.2
"""What a codec must save of the bytes of new features."""

NULL_CODEC = "transpose+zstd"
NULL_MARK = {MARK: {"null": True}}
"""How the tensor of what is null is coded, and its attributes."""


def name_taken(name: str, uri: str) -> TensorExistsError:
    """Return the error for a tensor that has the name of one of features, and is not."""
    return TensorExistsError(
        f"tensor {name!r} exists in {uri} and is not one of features; choose another name for the features, or delete "
        "the tensor"
    )


@dataclass(frozen=True, eq=False)
class FeatureChange:
    """A change of a table of features that is not committed yet.

    Attributes
    ----------
    changes : Uncommitted
        What a commit will have.
    table : str
        Name of the table.
    found : FeatureSet or None
        What the table is before the change; None where there is none.
    verify : bool
        Whether lost rows are an error where stored values are read.
    done : callable
        Takes the bytes of every region that is written.
    """

    changes: Uncommitted
    table: str
    found: FeatureSet | None
    verify: bool
    done: Callable[[int], None]

    def clear(self, schema: pa.Schema) -> None:
        """Delete what is there, before a table of a schema is written.

        Raises
        ------
        TensorExistsError
            If a tensor that is not one of features has the name of one of the table's.
        """
        for dtype in self.found.groups if self.found else ():
            self._delete(dtype)
        self.check_free(split(schema.empty_table()))

    def check_free(self, dtypes: Collection[str]) -> None:
        """Raise TensorExistsError if a tensor has the name of a new one of the table's, and is not one of features."""
        for dtype in dtypes:
            for name in (tensor_id(self.table, dtype), null_id(self.table, dtype)):
                if self.changes.find(name) is not None:
                    raise name_taken(name, self.changes.storage.uri)

    def write(self, table: pa.Table, codec: str) -> None:
        """Write a table anew; what was there is gone."""
        self.clear(table.schema)
        for dtype, places in split(table).items():
            self._write_group(table, dtype, places, 0, codec)

    def append(self, table: pa.Table) -> None:
        """Add rows to all features; those that are deprecated and not in the table are null there."""
        assert self.found is not None  # nosec B101 # for mypy
        table = fitted(table, self.found)
        for group in self.found.groups.values():
            columns = [whole(table.column(name)) for name in group.names]
            self._put(tensor_id(self.table, group.dtype), Columns(columns, group.dtype), 0)
            self._put_nulls(group, columns, (self.found.rows, 0), 0)

    def add(self, table: pa.Table, codec: str) -> None:
        """Add features to all rows."""
        found = self.found
        assert found is not None  # nosec B101 # for mypy
        check_rows(found, table.num_rows)
        check_new(found, table.column_names)
        self.check_free(split(table).keys() - found.groups.keys())
        for dtype, places in split(table).items():
            group = found.groups.get(dtype)
            if group is None:
                self._write_group(table, dtype, places, found.next_place, codec)
                continue
            columns, names = _columns(table, places)
            mark = mark_with(found, table, dtype, places)
            data = Columns(columns, dtype)
            self._put(tensor_id(self.table, dtype), data, 1, attrs=mark, labels={AXES[1]: names})
            self._put_nulls(group, columns, (0, len(group.names)), 1)

    def next(self) -> FeatureChange:
        """Return a further change, of what this one has made of the table."""
        return replace(self, found=FeatureSet.find(self.changes.find, self.table))

    def deprecate(self, names: Collection[str], hidden: bool) -> None:
        """Hide features, or show them again."""
        for group, chosen in self._groups_of(names):
            deprecated = group.deprecated | chosen if hidden else group.deprecated - chosen
            mark = mark_of(group.places.tolist(), group.meanings, deprecated)
            self._describe(group.meta, mark)

    def drop(self, names: Collection[str]) -> None:
        """Take features out of the tensors that have them."""
        for group, chosen in self._groups_of(names):
            keep = np.array([k for k, n in enumerate(group.names) if n not in chosen], np.int64)
            self._keep(group, keep)

    def reorder(self, order: Sequence[str]) -> None:
        """Lay features beside each other in an order; those that are not in it follow."""
        assert self.found is not None  # nosec B101 # for mypy
        for group in self.found.groups.values():
            places = group.labels.places(order)
            first = places[places >= 0]
            rest = np.setdiff1d(np.arange(len(group.names)), first)
            chosen = np.concatenate([first, rest])
            if (chosen != np.arange(len(chosen))).any():
                self._keep(group, chosen)

    def _groups_of(self, names: Collection[str]) -> list[tuple[FeatureGroup, frozenset[str]]]:
        assert self.found is not None  # nosec B101 # for mypy
        names = [*names]
        return [
            (pick.group, frozenset(names[k] for k in pick.to.tolist()))
            for pick in self.found.pick(names)
        ]

    def _keep(self, group: FeatureGroup, columns: Array) -> None:
        """Give the tensor of a dtype some of its features; the blocks before the first that moves stay as they are."""
        if not len(columns):
            self._delete(group.dtype)
            return
        assert self.found is not None  # nosec B101 # for mypy
        self.found.check_chunks()
        names = [group.names[k] for k in columns.tolist()]
        kept = {*names}
        meanings = {name: text for name, text in group.meanings.items() if name in kept}
        mark = mark_of(group.places[columns].tolist(), meanings, group.deprecated & kept)
        for meta in (group.meta, group.nulls):
            if meta is None:
                continue
            assert self.changes.base is not None  # nosec B101 # for mypy
            attrs = {**meta.spec.attrs, **(mark if meta is group.meta else {})}

            def labels(some: Sequence[str], is_values: bool = meta is group.meta) -> dict[str, Any]:
                return {AXES[1]: some} if is_values else {}

            stay = unchanged(meta.spec, columns)
            if stay:
                listed = {axis: labels_of(some) for axis, some in labels(names[:stay]).items()}
                cut(self.changes, meta, stay, attrs=attrs, labels=listed)
            else:
                self._delete_tensor(meta.spec.id)
            if stay < len(columns):
                data = StoredColumns(self.changes.base, meta, columns[stay:], self.verify)
                codec = "auto" if stay else meta.spec.codec
                self._put(meta.spec.id, data, int(stay > 0), codec, attrs, labels(names[stay:]))

    def _write_group(
        self, table: pa.Table, dtype: str, places: list[int], first: int, codec: str = "auto"
    ) -> None:
        """Write the tensor of a dtype that the table has not had."""
        columns, names = _columns(table, places)
        mark = mark_of((first + k for k in places), meanings_of(table, places), ())
        data = Columns(columns, dtype)
        self._put(tensor_id(self.table, dtype), data, 0, codec, mark, {AXES[1]: names})
        if any(column.null_count for column in columns):
            self._put(null_id(self.table, dtype), Nulls(columns), 0, NULL_CODEC, NULL_MARK)

    def _put_nulls(
        self, group: FeatureGroup, columns: list[pa.Array], before: tuple[int, int], axis: int
    ) -> None:
        """Continue the tensor that says what is null, or begin it where it is needed now."""
        name = null_id(self.table, group.dtype)
        if group.nulls is not None:
            self._put(name, Nulls(columns), axis)
        elif any(column.null_count for column in columns):
            self._put(name, Nulls(columns, before), axis, NULL_CODEC, NULL_MARK)

    def _put(
        self,
        name: str,
        data: Columns | Nulls | StoredColumns,
        axis: int,
        codec: str = "auto",
        attrs: dict[str, Any] | None = None,
        labels: dict[str, Any] | None = None,
    ) -> None:
        """Write a tensor, or continue it along an axis where it is there."""
        old = self.changes.find(name)
        options = WriteOptions(
            layout="ftsf", block_shape=BLOCK if old is None else None, codec=codec, attrs=attrs or {},
            axes=AXES if old is None else None, labels=labels or {},
        )  # fmt: skip
        view = self.changes.changing(old, name)
        source = ArraySource(data, data.shape, data.dtype)
        if old is None and codec in BY_TRYING:
            options = replace(options, codec=choose_codec(source.sample(BLOCK), codec))
        write.write_to(view, name, old, source, "append", axis, options, self.done)

    def _describe(self, meta: Meta, mark: dict[str, Any]) -> None:
        def marked(spec: TensorSpec) -> TensorSpec:
            return replace(spec, attrs={**spec.attrs, **mark})

        write.describe_in(self.changes.changing(meta, meta.spec.id), meta, marked)

    def _delete(self, dtype: str) -> None:
        for name in (tensor_id(self.table, dtype), null_id(self.table, dtype)):
            self._delete_tensor(name)

    def _delete_tensor(self, name: str) -> None:
        if self.changes.find(name) is not None:
            write.delete_from(self.changes.changing(None, name), name)


def choose_codec(sample: Array, how: str = "auto") -> str:
    """Return the codec of a new tensor of features, each of which lies in one piece.

    A read of one feature decompresses all sixteen of a block. So for ``"auto"`` a codec that saves less than `SAVING`
    is not worth its time: values that lie in the file as they are can be picked out of it.

    Parameters
    ----------
    sample : ndarray, shape (rows, features)
        Some of them.
    how : str
        One of `BY_TRYING`.

    Examples
    --------
    >>> choose_codec(np.random.default_rng(0).standard_normal((512, 16), np.float32))
    'transpose+raw'
    >>> choose_codec(np.zeros((512, 16), np.float32))
    'transpose+zstd'
    """
    if not sample.size:
        return f"{TRANSPOSE}zstd"
    block = np.ascontiguousarray(sample.T)
    if how == "smallest":
        return TRANSPOSE + layout_of("ftsf").smallest_codec(block)
    name = layout_of("ftsf").choose_codec(block)
    saves = len(encode(block, codec_of(name))[1]) <= (1 - SAVING) * block.nbytes
    return TRANSPOSE + (name if saves else "raw")


def check_codec(codec: str, schema: pa.Schema) -> None:
    """Raise an error, before anything is encoded, if features of a schema cannot have a codec.

    Raises
    ------
    InvalidOptionError
        If there is no such codec, or it has no form for the dtype of a feature.
    MissingDependencyError
        If it needs a package that is not installed.
    """
    if WriteOptions(codec=codec).codec in BY_TRYING:
        return
    named = named_codec(layout_of("ftsf"), codec)
    for field in schema:
        dtype = np.dtype(dtype_of_type(field.name, field.type))
        check_codec_dtype(named, dtype, f"feature {field.name!r}")


def tell_codec_kept(codec: str, found: FeatureSet) -> None:
    """Log a warning if rows are appended with another codec than features have."""
    for group in found.groups.values():
        spec = group.meta.spec
        if codec not in BY_TRYING and codec != spec.codec:
            logger.warning(
                "features %r of dtype %s have codec %s, and an append keeps it, whatever codec=%r says; write them "
                "anew to change it",
                found.table, group.dtype, spec.codec, codec,
            )  # fmt: skip
            return


def split(table: pa.Table) -> dict[str, list[int]]:
    """Return by dtype which columns of a table its tensor holds."""
    out: dict[str, list[int]] = {}
    for place, column in enumerate(table.schema):
        out.setdefault(dtype_of_type(column.name, column.type), []).append(place)
    return out


def _columns(table: pa.Table, places: Sequence[int]) -> tuple[list[pa.Array], list[str]]:
    """Return some columns of a table whose columns are in one piece, and their names."""
    names = table.column_names  # a list that pyarrow makes anew each time
    return [whole(table.column(k)) for k in places], [names[k] for k in places]


def meanings_of(table: pa.Table, places: Sequence[int]) -> dict[str, str]:
    """Return for some columns of a table what integers mean, by name."""
    fields = [*table.schema]
    found = {fields[k].name: meaning_of(fields[k].type) for k in places}
    return {name: text for name, text in found.items() if text is not None}


def check_rows(found: FeatureSet, rows: int) -> None:
    """Raise InvalidTensorError if a table has another number of rows than new features."""
    if rows != found.rows:
        raise InvalidTensorError(
            f"{rows} rows of new features do not fit {found.table!r}, which has {found.rows}; give a value for each "
            "row, or null"
        )


def check_new(found: FeatureSet, names: Collection[str]) -> None:
    """Raise an error if a table has one of some features already, or its tensors take none."""
    found.check_chunks()
    taken = {*found.every_name}.intersection(names)
    if taken:
        name = min(taken)
        hidden = " (it is deprecated)" if name in found.deprecated else ""
        others = f", as are {len(taken) - 1} others of these" if len(taken) > 1 else ""
        raise InvalidTensorError(
            f"feature {name!r} is in {found.table!r} already{hidden}{others}; drop it first, or give the new one "
            "another name"
        )


def mark_with(
    found: FeatureSet, table: pa.Table, dtype: str, places: Sequence[int]
) -> dict[str, Any]:
    """Return the attributes of the tensor of a dtype when some columns of a table are added to it."""
    added = [found.next_place + k for k in places]
    meanings = meanings_of(table, places)
    group = found.groups.get(dtype)
    if group is None:
        return mark_of(added, meanings, ())
    return mark_of(
        [*group.places.tolist(), *added], {**group.meanings, **meanings}, group.deprecated
    )


def fitted(table: pa.Table, found: FeatureSet) -> pa.Table:
    """Return the columns of a table for all features, in any order.

    Raises
    ------
    InvalidTensorError
        If a feature is missing, one is not in the table, or the type of one is another.
    InvalidOptionError
        If a tensor of the table has another layout than features are written in.
    """
    found.check_chunks()
    want = found.types
    have = {*table.column_names}
    new = [name for name in table.column_names if name not in want]
    if new:
        raise InvalidTensorError(
            f"column {new[0]!r} is not a feature of {found.table!r}{did_you_mean(new[0], want)}; .add(table) adds "
            f"features, and .append(table) rows ({len(new)} columns of the table are new)"
        )
    missing = [name for name in found.names if name not in have]
    if missing:
        raise InvalidTensorError(
            f"the table has no column for feature {missing[0]!r} of {found.table!r} ({len(missing)} are missing); "
            "rows are appended to all features, with nulls where a value is not known"
        )
    for column in table.schema:
        if column.type != want[column.name]:
            raise InvalidTensorError(
                f"column {column.name!r} has the type {column.type}, and the feature of {found.table!r} has "
                f"{want[column.name]}; cast it: table.cast(features.schema) does so for all"
                + _in_pandas(column, want[column.name])
            )
    columns = {name: table.column(name) for name in table.column_names}
    for name in want.keys() - have:
        columns[name] = pa.chunked_array([pa.nulls(table.num_rows, want[name])])
    return pa.table({name: whole(columns[name]) for name in want})


def _in_pandas(column: pa.Field, want: pa.DataType) -> str:
    """Return what casts a column of pandas, where NumPy's dtypes make floats of integers with a null."""
    if not pa.types.is_floating(column.type) or not pa.types.is_integer(want):
        return ""
    name = str(want).replace("uint", "UInt").replace("int", "Int")
    return f", and frame.astype({{{column.name!r}: {name!r}}}) does so in pandas, with its nulls"
