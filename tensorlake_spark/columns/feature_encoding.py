"""Changes of a table of features whose rows others encode: what the tensors become, and where all parts end up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.columns.elsewhere.feature_parts import (
    Continued,
    PartEncoding,
    RowsElsewhere,
    whole,
)
from tensorlake_spark.columns.feature_changes import (
    NULL_CODEC,
    NULL_MARK,
    FeatureChange,
    check_new,
    check_rows,
    choose_codec,
    fitted,
    mark_with,
    meanings_of,
    split,
)
from tensorlake_spark.columns.feature_set import (
    AXES,
    BLOCK,
    FeatureSet,
    mark_of,
    null_id,
    tensor_id,
)
from tensorlake_spark.columns.feature_values import Columns
from tensorlake_spark.layouts import grid_of
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.append import longer_labels
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.pipeline import commit_change, writer_of

Array = np.ndarray[Any, Any]


def write_elsewhere(change: FeatureChange, rows: RowsElsewhere, codec: str) -> None:
    """Write a table anew from rows that others encode; what was there is gone."""
    rows.prepare(None)
    change.clear(rows.schema)
    _encode(change, rows, new_tensors(change.table, rows, codec))


def new_tensors(table: str, rows: RowsElsewhere, codec: str) -> list[Continued]:
    """Return the tensors of a new table that has some rows."""
    empty, every = rows.schema.empty_table(), rows.schema.names
    tensors = []
    for dtype, places in split(empty).items():
        names = [every[k] for k in places]
        mark = mark_of(places, meanings_of(empty, places), ())
        tensors.append(_new(rows, tensor_id(table, dtype), dtype, names, codec, mark))
        if rows.with_nulls.intersection(names):
            tensors.append(_new_nulls(table, rows, dtype, names))
    return tensors


def append_elsewhere(change: FeatureChange, rows: RowsElsewhere) -> None:
    """Add rows that others encode to all features, with the types that these have."""
    found = change.found
    assert found is not None  # nosec B101 # for mypy
    rows.prepare(appended(rows.schema, found))
    _encode(change, rows, longer_tensors(found, rows))


def appended(schema: pa.Schema, found: FeatureSet) -> pa.Schema:
    """Return the columns and types that are written of rows for all features.

    Raises
    ------
    InvalidTensorError
        If a feature is missing, or one is not in the table.
    """
    typed = pa.schema([(f.name, found.types.get(f.name, f.type)) for f in schema])
    return fitted(typed.empty_table(), found).schema


def longer_tensors(found: FeatureSet, rows: RowsElsewhere) -> list[Continued]:
    """Return the tensors of a table that gets some rows more."""
    tensors = []
    for group in found.groups.values():
        tensors.append(_longer(group.meta, group.names, rows.rows, False))
        if group.nulls is not None:
            tensors.append(_longer(group.nulls, group.names, rows.rows, True))
        elif rows.with_nulls.intersection(group.names):
            before = (found.rows, 0)
            tensors.append(_new_nulls(found.table, rows, group.dtype, group.names, before))
    return tensors


def add_elsewhere(change: FeatureChange, rows: RowsElsewhere, codec: str) -> None:
    """Add features, whose values others encode, to all rows."""
    found = change.found
    assert found is not None  # nosec B101 # for mypy
    table, every = rows.schema.empty_table(), rows.schema.names
    check_new(found, every)
    change.check_free(split(table).keys() - found.groups.keys())
    rows.prepare(None)
    check_rows(found, rows.rows)
    tensors = []
    for dtype, places in split(table).items():
        names = [every[k] for k in places]
        mark = mark_with(found, table, dtype, places)
        group = found.groups.get(dtype)
        if group is None:
            tensors.append(_new(rows, tensor_id(change.table, dtype), dtype, names, codec, mark))
        else:
            tensors.append(_wider(group.meta, names, mark))
        if group is not None and group.nulls is not None:
            tensors.append(_wider(group.nulls, names, None))
        elif rows.with_nulls.intersection(names):
            before = (0, 0 if group is None else len(group.names))
            tensors.append(_new_nulls(change.table, rows, dtype, names, before))
    _encode(change, rows, tensors)


@dataclass(frozen=True, eq=False)
class _Sampled:
    """An array of which only a sample is here."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    values: Array
    nbytes: None = None

    def density(self) -> float:
        """Return what is not asked of dense chunks."""
        return 1.0

    def sample(self, block: Sequence[int]) -> Array:
        """Return the sample."""
        return self.values

    def regions(self, block: Sequence[int]) -> Any:
        """Return nothing: the values are elsewhere."""
        return iter(())


def _new(
    rows: RowsElsewhere,
    name: str,
    dtype: str,
    names: Sequence[str],
    codec: str,
    attrs: dict[str, Any],
) -> Continued:
    """Return a new tensor of values."""
    middle = max(0, (len(names) - BLOCK[1]) // 2)
    some = rows.sample(names[middle : middle + BLOCK[1]])
    sample = Columns([whole(column) for column in some.columns], dtype)[:, :]
    source = _Sampled((rows.rows, len(names)), np.dtype(dtype), sample)
    options = WriteOptions(
        layout="ftsf", block_shape=BLOCK, codec=choose_codec(sample, codec) if codec in BY_TRYING else codec,
        attrs=attrs, axes=AXES, labels={AXES[1]: names},
    )  # fmt: skip
    return Continued(new_spec(name, source, options), tuple(names), False, (0, 0), 0)


def _new_nulls(
    table: str,
    rows: RowsElsewhere,
    dtype: str,
    names: Sequence[str],
    before: tuple[int, int] = (0, 0),
) -> Continued:
    """Return a new tensor of what is null; rows or features that are there before have no null."""
    shape = (before[0] + rows.rows, before[1] + len(names))
    source = _Sampled(shape, np.dtype(bool), np.zeros((0, 0), bool))
    options = WriteOptions(
        layout="ftsf", block_shape=BLOCK, codec=NULL_CODEC, attrs=NULL_MARK, axes=AXES
    )
    spec = new_spec(null_id(table, dtype), source, options)
    starts = tuple((0, n) if n % side else (0,) for n, side in zip(before, BLOCK, strict=True))
    return Continued(replace(spec, segments=starts), tuple(names), True, before, 0)


def _longer(meta: Meta, names: Sequence[str], rows: int, is_null: bool) -> Continued:
    """Return a tensor that gets so many rows more."""
    first = (meta.spec.shape[0], 0)
    return Continued(
        _extended(meta.spec, 0, rows), tuple(names), is_null, first, meta.seq + 1, meta.totals
    )


def _wider(meta: Meta, names: Sequence[str], mark: dict[str, Any] | None) -> Continued:
    """Return a tensor that gets so many features more; without a mark it is the one of what is null."""
    first = (0, meta.spec.shape[1])
    spec = _extended(meta.spec, 1, len(names))
    if mark is not None:
        labels = longer_labels(spec, spec.shape, {AXES[1]: names})
        spec = replace(spec, labels=labels, attrs={**spec.attrs, **mark})
    return Continued(spec, tuple(names), mark is None, first, meta.seq + 1, meta.totals)


def _extended(spec: TensorSpec, axis: int, size: int) -> TensorSpec:
    grid = grid_of(spec).extend(axis, size)
    return replace(spec, shape=grid.shape, segments=grid.segments)


def _encode(change: FeatureChange, rows: RowsElsewhere, tensors: Sequence[Continued]) -> None:
    """Have the rows encoded, and let the change have what came of it."""
    changes = change.changes
    tensors = sorted(tensors, key=lambda tensor: tensor.spec.id)
    encoding = PartEncoding(changes.storage, changes.file_bytes, changes.schema, tuple(tensors))
    parts = [*rows.encode(encoding.without_names())]
    files = [file for part in parts for file in part.files]
    for place, tensor in enumerate(tensors):
        meta = tensor.after(part.totals[place] for part in parts)
        view = changes.changing(None, meta.spec.id)
        with writer_of(view, meta.spec) as writer:
            writer.add_meta([meta.spec], [meta.seq], [meta.totals])
            commit_change(view, meta.spec.id, writer, [], "append", None, adds=files)
        files = []  # the first tensor's change brought the files of all
        change.done(sum(part.totals[place].nbytes for part in parts))
