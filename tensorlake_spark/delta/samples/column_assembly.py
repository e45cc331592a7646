"""Columns of some rows of a data file: payloads from where they lie, the rest as Arrow reads it, put together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.samples.leaf_columns import LeafColumn, beginnings
from tensorlake_spark.delta.samples.sample_values import SampleFile
from tensorlake_spark.rows.binary_views import INLINE, VIEW
from tensorlake_spark.threads import beside

Array = np.ndarray[Any, Any]

_KEPT = 4 << 20  # bytes of small columns of a file that are kept

# Payloads of a file by the parts of their leaf: an array, and the definition level of each value.
Payloads = dict[tuple[str, ...], tuple[pa.Array, Array]]


def assembled(
    file: SampleFile | None,
    wanted: pa.Schema,
    leaves: Sequence[LeafColumn],
    rows: Array,
    views: bool,
) -> pa.Table:
    """Return leaf columns of some rows of a data file, as the structs of a schema.

    Parameters
    ----------
    file : SampleFile, or None
        The file; None for no rows.
    wanted : pyarrow.Schema
        What `pruned` returned for the leaf columns.
    leaves : sequence of LeafColumn
        Those that are wanted, in the order of the schema.
    rows : int64 ndarray
        Rows of the file, in any order.
    views : bool
        Whether payloads may be of type ``binary_view``.
    """
    if file is None or not len(rows):
        return wanted.empty_table()
    groups = inverse = np.zeros(0, np.int64)  # small columns alone are kept of the whole file
    if any(leaf.is_payload for leaf in leaves) or not _is_kept(file, leaves):
        groups, inverse = _runs(file.groups_of(rows))
    plain: list[tuple[LeafColumn, list[Any]]] = []
    others = []
    for leaf in leaves:
        chunks = [file.chunk(int(group), leaf) for group in groups] if leaf.is_payload else [None]
        if all(chunk is not None for chunk in chunks):
            plain.append((leaf, chunks))
        elif file.has(leaf):
            others.append(leaf)
    paths = tuple(leaf.path for leaf in others)

    def read_payloads() -> Payloads:
        return {leaf.parts: _payload(file, leaf, c, groups, inverse, rows) for leaf, c in plain}

    def read_small() -> pa.Table:
        return _small(file, paths, groups, inverse, rows)

    if plain and paths and file.is_far and not file.has_small(paths):
        payloads, small = beside(lambda read: read(), (read_payloads, read_small), "samples")
    else:
        payloads, small = read_payloads(), read_small()
    columns = []
    there = {*small.column_names}  # a list that pyarrow makes anew each time
    for field in wanted:
        read = small.column(field.name).combine_chunks() if field.name in there else None
        columns.append(_column(field, read, (), 0, payloads, len(rows), views))
    fields = [
        pa.field(f.name, c.type, f.nullable, f.metadata)
        for f, c in zip(wanted, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _is_kept(file: SampleFile, leaves: Sequence[LeafColumn]) -> bool:
    """Whether leaf columns of the whole file are kept when some of their rows are asked for."""
    paths = [leaf.path for leaf in leaves if file.has(leaf)]
    return not file.is_read_by_groups and file.size_of(paths) <= _KEPT


def _runs(values: Array) -> tuple[Array, Array]:
    """Return the different ones of some numbers, in order, and for each number which it is."""
    steps = np.diff(values)
    if (steps < 0).any():
        found, inverse = np.unique(values, return_inverse=True)
        return found, inverse
    firsts = np.concatenate([[True], steps > 0])
    return values[firsts], np.cumsum(firsts) - 1


def pruned(schema: pa.Schema, leaves: Sequence[LeafColumn]) -> pa.Schema:
    """Return the fields of a schema with only some leaves in them."""
    kept = {leaf.parts for leaf in leaves}
    around = {part for leaf in leaves for part in beginnings(leaf.parts)}

    def prune(field: pa.Field, above: tuple[str, ...]) -> pa.Field | None:
        parts = (*above, field.name)
        if parts in kept:
            return field
        if not pa.types.is_struct(field.type):
            # A list of structs is read whole.
            return field if parts in around else None
        inner = [found for one in field.type if (found := prune(one, parts)) is not None]
        return field.with_type(pa.struct(inner)) if inner else None

    return pa.schema([found for field in schema if (found := prune(field, ())) is not None])


def _small(
    file: SampleFile, paths: tuple[str, ...], groups: Array, inverse: Array, rows: Array
) -> pa.Table:
    """Return columns of rows as Arrow reads them: from what is kept of the file, or from their row groups."""
    if not paths:
        return pa.table({})
    if not file.is_read_by_groups and file.size_of(paths) <= _KEPT:
        table, places = file.small(paths), rows
    else:
        table = file.table(groups.tolist(), paths)
        counts = file.starts[groups + 1] - file.starts[groups]
        before = np.cumsum(counts) - counts
        places = rows - file.starts[groups][inverse] + before[inverse]
    if len(places) == 1:
        return table.slice(int(places[0]), 1)
    if places[-1] - places[0] == len(places) - 1 and bool((np.diff(places) == 1).all()):
        return table.slice(int(places[0]), len(places))
    return table.take(places)


def _by_group(count: int, inverse: Array) -> list[Array | slice]:
    """Return for each of `count` row groups the places of its rows; `inverse` says which group each row is in.

    Examples
    --------
    >>> _by_group(2, np.array([0, 0, 1])), _by_group(2, np.array([1, 0, 1]))
    ([slice(0, 2, None), slice(2, 3, None)], [array([1]), array([0, 2])])
    """
    if (np.diff(inverse) >= 0).all():
        ends = np.searchsorted(inverse, np.arange(count + 1)).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]
    order = np.argsort(inverse, kind="stable")
    return [*np.split(order, np.searchsorted(inverse[order], np.arange(1, count)))]


def _are_null(
    file: SampleFile, leaf: LeafColumn, groups: Array, places: Sequence[Array | slice], rows: Array
) -> bool:
    """Whether payloads of rows are known to have no bytes, so that none need be read."""
    for group, here in zip(groups.tolist(), places, strict=True):
        known = file.known_spans(group, leaf)
        if known is None or (known[1][rows[here] - int(file.starts[group])] > 0).any():
            return False
    return True


def _payload(
    file: SampleFile,
    leaf: LeafColumn,
    chunks: list[Any],
    groups: Array,
    inverse: Array,
    rows: Array,
) -> tuple[pa.Array, Array]:
    """Return payloads of rows as views into the file, and the definition level of each."""
    few = file.few(leaf, chunks, groups, rows)
    places = _by_group(len(groups), inverse)
    if few is not None:
        lengths = np.array([len(value) for value in few], np.int64)
        starts, levels = np.cumsum(lengths) - lengths, np.full(len(rows), leaf.depth, np.int8)
        regions, places = [pa.py_buffer(b"".join(few))], [slice(None)]
    else:
        regions = [] if _are_null(file, leaf, groups, places, rows) else file.regions(chunks)
        starts, lengths = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        levels = np.zeros(len(rows), np.int8)
        for number, (group, chunk) in enumerate(zip(groups.tolist(), chunks, strict=True)):
            here = places[number]
            at = rows[here] - int(file.starts[group])
            found = file.known_spans(group, leaf) if not regions else None
            found = found or file.spans(group, leaf, chunk, regions[number])
            starts[here], lengths[here], levels[here] = (part[at] for part in found)
    views = np.zeros(len(rows), VIEW)
    valid = lengths >= 0
    views["length"] = np.where(valid, lengths, 0)
    for number, (region, here) in enumerate(zip(regions, places)):
        views[here] = _views(
            np.frombuffer(region, np.uint8), starts[here], views["length"][here], number
        )
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    array = pa.Array.from_buffers(
        pa.binary_view(), len(rows), [bitmap, pa.py_buffer(views), *regions]
    )
    return array, levels


def _views(data: Array, starts: Array, lengths: Array, number: int) -> Array:
    """Return the views of payloads in one buffer, which has this number; short ones are in their view."""
    out = np.zeros(len(starts), VIEW)
    out["length"] = lengths
    raw = out.view(np.uint8).reshape(-1, 16)
    is_long = lengths > INLINE
    long = slice(None) if is_long.all() else np.flatnonzero(is_long)
    raw[long, 4:8] = data[starts[long, None] + np.arange(4)]
    out["buffer"][long], out["offset"][long] = number, starts[long]
    if isinstance(long, slice):
        return out
    for length in np.unique(lengths[~is_long]).tolist():  # at most INLINE
        some = np.flatnonzero(lengths == length)
        raw[some, 4 : 4 + length] = data[starts[some, None] + np.arange(length)]
    return out


def _column(
    field: pa.Field,
    read: pa.Array | None,
    above: tuple[str, ...],
    depth: int,
    payloads: Payloads,
    count: int,
    views: bool,
) -> pa.Array:
    """Return one field of the rows; `read` is what Arrow has read of it, without payloads."""
    parts = (*above, field.name)
    depth += field.nullable
    if parts in payloads:
        found = payloads[parts][0]
        return found if views else found.cast(field.type)
    wanted = _viewed(field.type) if views else field.type
    if read is not None and not pa.types.is_struct(field.type):
        # Other writers choose other types for the same values, such as INT96 for times.
        return read if read.type == wanted else read.cast(wanted)
    if not pa.types.is_struct(field.type):  # a column that was added after the file was written
        return pa.nulls(count, wanted)
    have = {} if read is None else {inner.name: read.field(inner.name) for inner in read.type}
    inner = [
        _column(one, have.get(one.name), parts, depth, payloads, count, views) for one in field.type
    ]
    missing = None
    if read is not None:
        missing = None if not read.null_count else read.is_null()
    else:
        level = next(
            (found[1] for leaf, found in payloads.items() if leaf[: len(parts)] == parts), None
        )
        if level is None:
            return pa.nulls(count, wanted)
        absent = level < depth
        missing = pa.array(absent) if absent.any() else None
    fields = [one.with_type(part.type) for one, part in zip(field.type, inner, strict=True)]
    return pa.StructArray.from_arrays(inner, fields=fields, mask=missing)


@lru_cache(maxsize=256)
def _viewed(kind: pa.DataType) -> pa.DataType:
    """Return a type whose payloads are views: of all files the same, whether or not a file has them."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_viewed(field.type)) for field in kind])
    is_payload = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return pa.binary_view() if is_payload else kind
