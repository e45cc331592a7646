"""Columns added, dropped and renamed: the table's columns and the files that have them change in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import (
    named,
    new_stored_name,
    stored_name,
    unique_name,
    with_stored_names,
)
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.parts_writer import PartsWriter
from tensorlake_spark.datasets.apart.pinning import Written, pins
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.changes.link_copying import LinkCopying, copy_links
from tensorlake_spark.datasets.changes.new_values import as_given, is_many, picked
from tensorlake_spark.datasets.changes.rewriting import (
    Columns,
    change_of,
    check_files,
    committed,
    rewritten,
)
from tensorlake_spark.datasets.changes.workers import run_of
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.base import Type
from tensorlake_spark.datasets.types.nested import check_links, target_of
from tensorlake_spark.datasets.types.schema import SampleSchema, check_columns
from tensorlake_spark.delta.log.commit import Change
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.samples_table import column_properties, table_schema
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidSampleError,
    did_you_mean,
)

Array = np.ndarray[Any, Any]
_RUN = 1024  # samples whose parts are written at a time

Edit = Callable[[Columns, Array], tuple[Columns, Array]]
Write = Callable[
    [StoredSamples, SampleSchema, Mapping[str, str]], tuple[list[DataFile], Sequence[Written]]
]
"""Writes all samples of a version for other columns, and returns the files, and what lies in tables of its own."""


def add_column(base: StoredSamples, name: str, kind: Type, values: Any) -> Snapshot:
    """Add a column, in one commit, and return the version that has it.

    Parameters
    ----------
    base : StoredSamples
        The version whose samples get the values; samples that others have added since get none.
    name : str
        Its name, with ``/`` between groups.
    kind : Type
        What it holds.
    values : object
        One value a sample, or one for all. Without any only the log is written.

    Raises
    ------
    InvalidOptionError
        If the name is taken or impossible, or the column takes no null and has no values.
    InvalidSampleError
        If a value does not fit.
    """
    SampleSchema([(name, kind)])  # refuses a name that none can have
    check_links({name: kind})
    if values is None and len(base) and not kind.nullable:
        raise InvalidOptionError(
            f"column {name!r} takes no null ({kind}), and there are {len(base)} samples; give values for them"
        )
    many = values is not None and is_many(values, kind)
    if many and len(values) != len(base):
        raise InvalidSampleError(
            f"column {name!r} has {len(values)} values for {len(base)} samples; give one for each"
        )
    given: Any = as_given(values) if many else None
    stored_as = new_stored_name(base.snapshot, name)
    written: list[Written] = []
    if values is not None and (kind.apart or is_tileable(kind)):
        found, written = _beside(base, name, kind, given if many else [values], stored_as)
        if kind.apart:
            values, many = None, False
        else:
            given, many = found, True
    one = None if many or values is None else kind.encode([values], name)

    def edit(columns: Columns, here: Array) -> tuple[Columns, Array]:
        if one is not None:
            return {**columns, name: one.take(pa.array(np.zeros(len(here), np.int64)))}, here
        place = base.positions_of(here)
        if place[0] >= 0 and bool((np.diff(place) == 1).all()):
            start = int(place[0])  # as they were given, without a copy
            return {
                **columns,
                name: kind.encode(given[start : start + len(here)], name, start),
            }, here
        return {**columns, name: kind.encode(picked(given, place), name)}, here

    def check(newest: StoredSamples) -> None:
        if one is not None or kind.nullable:  # then no numbers are read
            return
        added = newest.sids[base.positions_of(newest.sids) < 0]
        if len(added):
            raise ConcurrentWriteError(
                f"another writer added sample {int(added[0])} after version {base.snapshot.version}, and column "
                f"{name!r} takes no null ({kind}); nothing was committed, refresh() and give that sample a value too"
            )

    def changed(schema: SampleSchema) -> SampleSchema:
        if name in schema:
            raise InvalidOptionError(
                f"the dataset at {base.snapshot.storage.uri} has a column {name!r} already: {schema[name]}; "
                "drop_column it first, or update its values"
            )
        return SampleSchema({**schema, name: kind})

    return _alter(
        base, "add_column", name, changed, None if values is None else _edited(edit),
        lambda newest: {name: stored_as}, written, check,
    )  # fmt: skip


def _beside(
    base: StoredSamples, name: str, kind: Type, values: Any, stored_as: str
) -> tuple[list[Any], list[Written]]:
    """Write what does not lie in the samples' table; return values that are left for it, and what was written."""
    sids = base.sids
    storage, schema = base.snapshot.storage, SampleSchema({name: kind})
    left: list[Any] = []
    with PartsWriter(storage, base.snapshot, schema, names={name: stored_as}) as parts:
        for start in range(0, len(sids), _RUN):
            part = sids[start : start + _RUN].tolist()
            some = (
                values[start : start + len(part)]
                if len(values) == len(sids)
                else [*values] * len(part)
            )
            columns = parts.take(parts.opened({name: some}, start), part, start)
            left += [*columns.get(name, [])]
        return left, parts.finish()


def drop_column(base: StoredSamples, name: str) -> Snapshot:
    """Take a column out of the table and its files, in one commit, and return the version without it.

    Raises
    ------
    InvalidOptionError
        If it is the last one.
    """

    def changed(schema: SampleSchema) -> SampleSchema:
        left = {other: kind for other, kind in schema.items() if other != name}
        if not left:
            raise InvalidOptionError(f"{name!r} is the only column; a dataset has at least one")
        return SampleSchema(left)

    def edit(columns: Columns, here: Array) -> tuple[Columns, Array]:
        return {other: array for other, array in columns.items() if other != name}, here

    return _alter(base, "drop_column", name, changed, _edited(edit))


def rename_column(base: StoredSamples, old: str, new: str) -> Snapshot:
    """Give a column another name in the table and its files, in one commit, and return the version that has it.

    Raises
    ------
    InvalidOptionError
        If the new name is taken or impossible.
    """

    def changed(schema: SampleSchema) -> SampleSchema:
        if new in schema:
            raise InvalidOptionError(
                f"the dataset at {base.snapshot.storage.uri} has a column {new!r} already: {schema[new]}; give "
                f"{old!r} another name"
            )
        return SampleSchema({new if name == old else name: kind for name, kind in schema.items()})

    def edit(columns: Columns, here: Array) -> tuple[Columns, Array]:
        return {new if name == old else name: array for name, array in columns.items()}, here

    return _alter(
        base, "rename_column", old, changed, _edited(edit),
        lambda newest: {new: stored_name(newest.schema, old)},
    )  # fmt: skip


def materialize(
    base: StoredSamples, names: list[str], rules: LinkRules, workers: Any = None
) -> Snapshot:
    """Copy what links point to into their columns, in one commit, and return the version that has it.

    Parameters
    ----------
    base : StoredSamples
        The version that is shown.
    names : list of str
        Columns of links.
    rules : LinkRules
        What links may do.
    workers : int, SparkSession, or None
        How many threads fetch and write, or whose executors; a few threads by default.
    """
    run_of(workers)  # raises
    before = SampleSchema.from_arrow(base.schema)

    def changed(schema: SampleSchema) -> SampleSchema:
        for name in names:
            if schema.get(name) != before[name]:
                raise _changed_by_another(base, name, "materialize")
        inner = {name: target_of(before[name]) for name in names}
        return SampleSchema({name: inner.get(name, kind) for name, kind in schema.items()})

    def stored_as(newest: Snapshot) -> dict[str, str]:
        # Anew for each attempt: an earlier one has rows of the same samples there.
        return {name: unique_name(name) for name in names if before[name].apart}

    def write(
        stored: StoredSamples, schema: SampleSchema, stored_names: Mapping[str, str]
    ) -> tuple[list[DataFile], Sequence[Written]]:
        parts = StoredParts(stored, SampleSchema.from_arrow(stored.schema), rules)
        mark = f"{uuid.uuid4().hex[:16]}-"
        return copy_links(LinkCopying(parts, schema, tuple(names), stored_names, mark), workers)

    return _alter(base, "materialize", names[0], changed, write, stored_as)


def _alter(
    base: StoredSamples,
    operation: str,
    name: str,
    changed: Callable[[SampleSchema], SampleSchema],
    write: Write | None,
    names: Callable[[Snapshot], dict[str, str]] = lambda newest: {},
    written: Sequence[Written] = (),
    check: Callable[[StoredSamples], None] = lambda newest: None,
) -> Snapshot:
    """Commit other columns, and with `write` all files written again for them.

    `names` says by which names the parts of columns are stored that do not lie in the table. `written` is what has been
    written of them already. `check` raises where the newest version does not allow it.

    Files keep no trace of what a column was called: one that stayed would come back with a new column of its name.
    """
    storage = base.snapshot.storage
    before = SampleSchema.from_arrow(base.schema)
    changed(before)  # what is wrong with it is wrong with the version that is shown

    def compute(newest: Snapshot) -> Change:
        stored = base if newest.version == base.snapshot.version else StoredSamples(newest)
        now = SampleSchema.from_arrow(stored.schema)
        if now.get(name) != before.get(name):
            raise _changed_by_another(base, name, operation)
        if stored is not base:
            check(stored)
        schema = changed(now)
        arrow = _kept_fields(schema.to_arrow(), newest.schema)
        stored_names = names(newest)
        others = {column: name for column, name in stored_names.items() if column != name}
        arrow = with_stored_names(named(arrow, others))
        properties = column_properties(newest.configuration, newest.schema, arrow)
        removes = [file.path for file in stored.files] if write is not None else []
        adds: list[DataFile] = []
        more: Sequence[Written] = ()
        if write is not None:
            check_files(newest, removes, operation)
            adds, more = write(stored, schema, stored_names)
        return change_of(
            newest, adds, removes, operation,
            schema=table_schema(arrow), properties=properties, is_whole=write is not None,
            counters=pins(storage, newest, [*written, *more]),
        )  # fmt: skip

    return committed(storage, Snapshot.newest(storage, SAMPLES), compute)


def _edited(edit: Edit) -> Write:
    """Return what writes each file again with an edit."""

    def write(
        stored: StoredSamples, schema: SampleSchema, stored_names: Mapping[str, str]
    ) -> tuple[list[DataFile], Sequence[Written]]:
        return rewritten(stored, range(len(stored.files)), schema, edit), ()

    return write


def _changed_by_another(base: StoredSamples, name: str, operation: str) -> ConcurrentWriteError:
    return ConcurrentWriteError(
        f"another writer changed column {name!r} after version {base.snapshot.version}, from which this {operation} "
        "was computed; nothing was committed, refresh() and do it again"
    )


def _kept_fields(schema: pa.Schema, before: pa.Schema) -> pa.Schema:
    """Return a schema whose old fields say what they said before: others may have written more into them."""

    def kept(field: pa.Field, old: pa.Field | None) -> pa.Field:
        if old is None or old.equals(field, check_metadata=True):
            return field
        if pa.types.is_struct(field.type) and pa.types.is_struct(old.type):
            inner = {one.name: one for one in old.type}
            fields = [kept(one, inner.get(one.name)) for one in field.type]
            field = field.with_type(pa.struct(fields))
            said = {**(old.metadata or {}), **(field.metadata or {})} or None
            return field.with_metadata(said).with_nullable(old.nullable)
        return old if old.type.equals(field.type) else field

    there = {field.name: field for field in before}
    return pa.schema([kept(field, there.get(field.name)) for field in schema])


def check_column(schema: SampleSchema, name: str, uri: str) -> None:
    """Raise InvalidOptionError if a name is no text, or that of a group or of the sids, which are no columns."""
    if not isinstance(name, str):
        check_columns([name])  # raises
    if name == "sid":
        raise InvalidOptionError(
            "sid is the number that the dataset gives a sample; it is not one of your columns"
        )
    if name in schema.groups():
        raise InvalidOptionError(
            f"{name!r} is a group of the dataset at {uri}; name its columns"
            f"{did_you_mean(name, [column for column in schema if column.startswith(name)])}"
        )
