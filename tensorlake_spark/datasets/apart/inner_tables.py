"""The tables inside a dataset's folder: where each lies, and which version of it belongs to a version of the samples.

``_tensors`` is a lake with the tiles of large samples, ``_columns/NAME`` a table with one column that is kept apart.
VACUUM of Delta and of delta-rs leaves folders alone that begin with an underscore. The samples' commit pins versions
of these tables by application transactions, so one commit makes all parts of a sample visible.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Any

import pyarrow as pa

from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching

TENSORS_FOLDER = "_tensors"
"""Where the lake with the tiles lies."""

COLUMNS_FOLDER = "_columns"
"""In which the tables of apart columns lie."""

PART = "dataset/part/"
"""How application transactions begin whose numbers are the versions of inner tables."""

STORED_NAME = b"tensorlake.stored"
"""Under which a field of Delta keeps the name of its parts; without it, that is the column's."""

_PLAIN = re.compile(r"[\w-]")
_MOST_BYTES = 255  # of a folder's name on a disk
_MOST_CHARACTERS = 512  # of a tensor's id


def part_of(folder: str) -> str:
    """Return the application transaction that has the version of an inner table.

    Examples
    --------
    >>> part_of("_tensors")
    'dataset/part/_tensors'
    """
    return f"{PART}{folder}"


def inner_storage(storage: Storage, folder: str) -> Storage:
    """Return where an inner table lies."""
    return Storage(f"{storage.uri}/{folder}", storage.options)


def stored_name(schema: pa.Schema, column: str) -> str:
    """Return the name by which the parts of a column are stored: its own, or what it was before it was renamed.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the samples' table.
    column : str
        Its name, with ``/`` between groups.

    Examples
    --------
    >>> field = pa.field("photo", pa.int32(), metadata={STORED_NAME: b"image"})
    >>> stored_name(pa.schema([field]), "photo"), stored_name(pa.schema([("x", pa.int32())]), "x")
    ('image', 'x')
    """
    found = _field(schema, column)
    name = None if found is None else (found.metadata or {}).get(STORED_NAME)
    return column if name is None else name.decode()


def named(schema: pa.Schema, names: dict[str, str]) -> pa.Schema:
    """Return a schema of which some columns say by which names their parts are stored.

    A column that is renamed keeps its parts so, and one that takes the name of a dropped column gets parts of its
    own.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the samples' table.
    names : dict of str to str
        For columns the names of their parts.

    Examples
    --------
    >>> stored_name(named(pa.schema([("photo", pa.int32())]), {"photo": "image"}), "photo")
    'image'
    """

    def put(field: pa.Field, name: str) -> pa.Field:
        if name in names:
            said = {**(field.metadata or {}), STORED_NAME: names[name].encode()}
            return field.with_metadata(said)
        if pa.types.is_struct(field.type) and any(n.startswith(f"{name}/") for n in names):
            inner = [put(one, f"{name}/{one.name}") for one in field.type]
            return field.with_type(pa.struct(inner))
        return field

    return pa.schema([put(field, field.name) for field in schema], schema.metadata)


def with_stored_names(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a dataset's table, of which each column that may have parts says by which name.

    Another program may give a column another name. Its parts are found then all the same, and no vacuum deletes them.

    Examples
    --------
    >>> from tensorlake_spark import types
    >>> schema = SampleSchema({"label": "int32", "text": types.Text(apart=True)}).to_arrow()
    >>> [field.name for field in with_stored_names(schema) if STORED_NAME in (field.metadata or {})]
    ['text']
    """
    kinds = SampleSchema.from_arrow(schema).items()
    may_have = (name for name, kind in kinds if kind.apart or is_tileable(kind))
    return named(schema, {name: stored_name(schema, name) for name in may_have})


def stored_names(schema: pa.Schema) -> dict[str, str]:
    """Return for every column the name by which its parts are stored."""
    return {name: stored_name(schema, name) for name in SampleSchema.from_arrow(schema)}


def new_stored_name(snapshot: Snapshot, column: str) -> str:
    """Return the name for the parts of a column that is added: no other column has, or had, parts of that name.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the dataset that gets the column.
    column : str
        Its name.
    """
    taken = {*stored_names(snapshot.schema).values()}
    name = column
    if _is_used(snapshot, TENSORS_FOLDER):
        # A dropped column may have left tiles: whether it did is in the lake, so take a name that none has had.
        name = unique_name(column)
    while name in taken or _is_used(snapshot, folder_of(name)):
        name = unique_name(column)
    return name


def unique_name(column: str) -> str:
    """Return a name for the parts of a column that no column has had, and no writer who was killed has used."""
    return f"{column}~{uuid.uuid4().hex[:8]}"


def _is_used(snapshot: Snapshot, folder: str) -> bool:
    """Whether there is, or was, an inner table: one that no version names was left by a writer who was killed."""
    if snapshot.transaction(part_of(folder)) is not None:
        return True
    with reaching(snapshot.storage):
        return bool(snapshot.storage.files_in(f"{folder}/_delta_log"))


def folder_of(name: str) -> str:
    """Return the folder of an apart column, by the name of its parts.

    No such folder lies in another one: it would be a table in a table, whose VACUUM would delete it.

    Examples
    --------
    >>> folder_of("image"), folder_of("training/image"), folder_of("100%")
    ('_columns/image', '_columns/training.image', '_columns/100~25~')
    """
    plain = (c if _PLAIN.match(c) else "." if c == "/" else f"~{ord(c):x}~" for c in name)
    folder = "".join(plain)
    if len(folder.encode()) > _MOST_BYTES:
        folder = f"{folder.encode()[:200].decode(errors='ignore')}{_mark(name)}"
    return f"{COLUMNS_FOLDER}/{folder}"


def tensor_id(name: str, sid: int) -> str:
    """Return the id of the tensor with the tiles of a sample.

    Examples
    --------
    >>> tensor_id("training/scan", 7)
    'training/scan/7'
    """
    found = f"{name}/{sid}"
    return found if len(found) <= _MOST_CHARACTERS else f"{name[:400]}{_mark(name)}/{sid}"


def _mark(name: str) -> str:
    """Return what stands for the rest of a name that is too long."""
    return f"~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def inner_tables(snapshot: Snapshot) -> dict[str, int]:
    """Return the folders of the inner tables that a version of a dataset needs, and the version of each.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the dataset.
    """
    kinds = SampleSchema.from_arrow(snapshot.schema)
    folders = [TENSORS_FOLDER]
    for name, kind in kinds.items():
        if kind.apart:
            folders.append(folder_of(stored_name(snapshot.schema, name)))
    found = snapshot.transactions([part_of(folder) for folder in folders])
    versions = {folder: found[part_of(folder)] for folder in folders}
    return {folder: version for folder, version in versions.items() if version is not None}


def pinned(snapshot: Snapshot, folder: str) -> int | None:
    """Return the version of an inner table that belongs to a version of the samples, None where it has none."""
    return snapshot.transaction(part_of(folder))


def _field(schema: pa.Schema, column: str) -> pa.Field | None:
    """Return the field of a column, None where there is none."""
    fields: Any = schema
    found = None
    for part in column.split("/"):
        place = fields.get_field_index(part)
        if place < 0:
            return None
        found = fields.field(place)
        fields = found.type
        if not pa.types.is_struct(fields):
            fields = pa.schema([])
    return found
