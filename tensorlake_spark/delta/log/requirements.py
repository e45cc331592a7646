"""What a table has to be, so that this package can read it, and write to it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, Schema
from deltalake.schema import ArrayType, PrimitiveType, StructType

from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import FormatError, UnsupportedFeatureError
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.tensor.spec import STORED_AXES

TENSORS, SAMPLES = "tensors", "samples"
"""What a table can be: rows of tensors, or samples of a dataset."""

DATASET = "tensorlake.dataset"
"""The property of a table of samples; its value is the version of their format."""

DATASET_FORMAT = 1
"""The newest format of samples that this package reads, and the one that it writes."""

SID = "sid"
"""The column of a table of samples that has their numbers."""

VACUUM_CHECK = "vacuumProtocolCheck"
"""The feature under which a vacuum asks for all that a write asks for."""

READABLE = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", VACUUM_CHECK})
"""Reader features of Delta that this package honours."""

WRITABLE = READABLE - {VACUUM_CHECK} | frozenset(
    {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
)
"""Writer features under which deltalake commits for us."""

# No program can drop these.
_LASTING = re.compile("allowColumnDefaults|clustering|identityColumns|icebergCompat.*|variant.*")

_TYPE = "tensorlake.type"
FIELDS = {f"d{axis}" for axis in range(STORED_AXES)}.union(
    ("dtype", "shape", "data", "scale", "format", "height", "width", "channels", "crc", "frames"),
    ("fps", "index", "rate", "length", "modality", "url", "size", "etag"),
)
"""The fields of columns of tensors and of samples, whatever these are."""

_CONSTRAINT = "delta.constraints."
_COMPUTED = {"delta.invariants", "delta.generationExpression"}

_TENSOR_SCHEMA = Schema.from_arrow(SCHEMA)
_TENSOR_TEXT = _TENSOR_SCHEMA.to_json()
_TYPES = {f.name: f.type for f in _TENSOR_SCHEMA.fields if isinstance(f.type, PrimitiveType)}


def schema_of(said: str) -> Schema:
    """Return the columns that a log tells of; of a lake of tensors mostly just those that this package gives it."""
    return _TENSOR_SCHEMA if said == _TENSOR_TEXT else Schema.from_json(said)


def kind_of(configuration: Mapping[str, str]) -> str:
    """Return what a table is, by its properties.

    Examples
    --------
    >>> kind_of({"tensorlake.dataset": "1"}), kind_of({})
    ('samples', 'tensors')
    """
    return SAMPLES if DATASET in configuration else TENSORS


def asked_of_readers(protocol: Any, configuration: Mapping[str, str]) -> set[str]:
    """Return the features that readers of a table have to know.

    Parameters
    ----------
    protocol : deltalake.table.ProtocolVersions
        The table's. Version 2 for readers is column mapping, in a protocol that lists no features.
    configuration : mapping
        The table's properties: without a mode of mapping, columns have their own names, whatever the protocol says.
    """
    asked = {*(protocol.reader_features or ())}
    if protocol.min_reader_version == 2:
        asked.add("columnMapping")
    if configuration.get("delta.columnMapping.mode", "none") == "none":
        asked.discard("columnMapping")
    return asked


def check_readable(uri: str, features: Collection[str]) -> None:
    """Raise UnsupportedFeatureError if a table needs readers to know a feature that this package does not."""
    unknown = {*features} - READABLE
    if {"deletionVectors", VACUUM_CHECK} <= {*features}:  # deltalake then reads no vectors
        unknown.add(VACUUM_CHECK)
    if unknown:
        drop = "write its rows to another table with Spark"
        if not _is_lasting(unknown):
            drop = "drop the feature with ALTER TABLE ... DROP FEATURE"
        raise UnsupportedFeatureError(
            f"the table at {uri} uses the Delta feature {', '.join(sorted(unknown))}, "
            f"which tensorlake_spark does not read; spark.read.format('delta') does, or {drop}"
        )


def check_whole(uri: str, partition_columns: Collection[str]) -> None:
    """Raise UnsupportedFeatureError if a table is partitioned: values of these columns are in the log, not in files."""
    if partition_columns:
        names = ", ".join(sorted(partition_columns))
        raise UnsupportedFeatureError(
            f"the table at {uri} is partitioned by {names}, and tensorlake_spark reads no values out of the log; "
            "spark.read.format('delta') does; to use it here, save its rows over it by Spark without partitions, in "
            "the mode 'overwrite', with the option overwriteSchema='true'"
        )


def check_kind(
    uri: str, wanted: str | None, schema: Schema, configuration: Mapping[str, str]
) -> None:
    """Raise FormatError if a table is not of the kind that is wanted, or not what such a table has to be.

    Parameters
    ----------
    uri : str
        Where the table is, for messages.
    wanted : str, or None
        `TENSORS` or `SAMPLES`; None for any of them.
    schema : deltalake.Schema
        The table's.
    configuration : mapping
        Its properties.
    """
    if kind_of(configuration) == SAMPLES:
        if wanted == TENSORS:
            raise FormatError(
                f"the table at {uri} is a dataset of samples, not a lake of tensors; tl.dataset(uri) opens it"
            )
        _check_samples(uri, schema, configuration[DATASET])
        return
    if schema is _TENSOR_SCHEMA and wanted != SAMPLES:
        return
    have = {f.name: f.type for f in schema.fields}
    if wanted == SAMPLES:
        raise FormatError(
            f"the table at {uri} is a lake of tensors, not a dataset of samples; tl.open(uri) opens it"
            if set(SCHEMA.names) <= have.keys()
            else f"the Delta table at {uri} is not a dataset of samples: it has no property {DATASET}; "
            "read it with Delta, and extend a new dataset by its rows"
        )
    missing = [name for name in SCHEMA.names if name not in have]
    if missing:
        raise FormatError(
            f"the Delta table at {uri} is not a tensor table: it has no column "
            f"{', '.join(missing)}; spark.read.format('delta') reads it as what it is"
        )
    for name, right in _TYPES.items():
        if have[name] != right:
            raise FormatError(
                f"the Delta table at {uri} is not a tensor table: its column {name!r} is of type "
                f"{have[name]}, not {right}; spark.read.format('delta') reads it as what it is"
            )


def _check_samples(uri: str, schema: Schema, written: str) -> None:
    if not written.isdecimal() or int(written) > DATASET_FORMAT:
        raise FormatError(
            f"the dataset at {uri} has format {written!r}, and this version of tensorlake_spark reads formats up "
            f"to {DATASET_FORMAT}; install a newer one"
        )
    if {f.name: f.type for f in schema.fields}.get(SID) != PrimitiveType("long"):
        raise FormatError(
            f"the dataset at {uri} has no column {SID} of type bigint, by which its samples are known; RESTORE a "
            "version that has it"
        )


def check_writable(
    uri: str, kind: str, table: DeltaTable, features: Collection[str], properties: Mapping[str, str]
) -> None:
    """Raise UnsupportedFeatureError if deltalake cannot commit to a table.

    Parameters
    ----------
    uri : str
        Where the table is, for messages.
    kind : str
        `TENSORS` or `SAMPLES`.
    table : deltalake.DeltaTable
        The table.
    features : collection of str
        The features that its writers have to know.
    properties : mapping
        Its properties.
    """
    unknown = {*features} - WRITABLE
    if unknown:
        # It comes when another feature is dropped, and Spark drops it in no other way.
        is_late = "checkpointProtection" in unknown
        later = " ... TRUNCATE HISTORY, which Spark does a day after it came" if is_late else ""
        drop = f"drop it with ALTER TABLE ... DROP FEATURE{later}, or write to another table"
        if _is_lasting(unknown):
            drop = "no program can drop it, so write to another table"
        raise UnsupportedFeatureError(
            f"the table at {uri} uses the Delta feature {', '.join(sorted(unknown))}, "
            f"which tensorlake_spark cannot write; {drop}"
        )
    rules = _rules(kind, table.schema(), properties)
    if rules:
        raise UnsupportedFeatureError(
            f"the table at {uri} has {', '.join(rules)}, which tensorlake_spark cannot hold new "
            "rows against; drop that with ALTER TABLE, or write to another table"
        )


def _added(field: Any, above: str, is_ours: bool) -> Iterator[str]:
    """Yield the names of fields that somebody added inside a column of this package."""
    name, kind = f"{above}{field.name}", field.type
    told = field.metadata.get(_TYPE)
    if told is not None:
        is_ours = json.loads(told)["kind"] != "plain" if isinstance(told, str) else True
    while isinstance(kind, ArrayType):
        kind = kind.element_type
    for inner in kind.fields if isinstance(kind, StructType) else ():
        if is_ours and inner.name not in FIELDS:
            yield f"{name}.{inner.name}"
        else:
            yield from _added(inner, f"{name}.", is_ours)


def _is_lasting(features: Collection[str]) -> bool:
    """Whether one of these features stays with a table for ever."""
    return any(_LASTING.fullmatch(name) for name in features)


def _rules(kind: str, schema: Schema, properties: Mapping[str, str]) -> list[str]:
    """Return what Delta asks of new rows beyond their types: we cannot evaluate SQL, and give users' columns nulls."""
    found = [
        f"the constraint {name[len(_CONSTRAINT) :]!r}"
        for name in properties
        if name.startswith(_CONSTRAINT)
    ]
    for field in schema.fields:
        is_ours = kind == TENSORS and field.name in SCHEMA.names
        # Rows that are written anew have only our fields.
        found += [f"a field {name!r} of another program" for name in _added(field, "", is_ours)]
        if is_ours:
            continue
        if kind == TENSORS and not field.nullable:
            found.append(f"a column {field.name!r} that must not be null")
        if not _COMPUTED.isdisjoint(field.metadata):
            found.append(f"a column {field.name!r} with an expression")
    return found


def check_folders(storage: Storage) -> None:
    """Raise FormatError if a local table would be a file, or lie below one, where no folder can be made."""
    if not storage.is_local:
        return
    if Path(storage.uri).is_file():
        raise FormatError(f"{storage.uri} is a file; a table is a folder with a Delta log in it")
    for above in Path(storage.uri).parents:
        if above.is_file():
            raise FormatError(
                f"no table can lie at {storage.uri}, because {above} is a file and not a folder; give a path "
                "below a folder"
            )
