"""A commit to a log without deltalake: to save time, and to remove files with deletion vectors.

deltalake makes all live files known to itself before and after each commit, which on S3 takes a dozen round trips.
What it then does on a local disk is done here: the commit is written beside the log, and a hard link gives it its
name, which fails if it is taken. On S3 one request makes the object of the commit unless there is one.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import logging
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import deltalake
from deltalake import CommitProperties, DeltaTable, Schema, TableFeatures
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Field, StructType

from tensorlake_spark.delta.log.actions import LOG, commit_name
from tensorlake_spark.delta.log.properties import CHECKPOINT_INTERVAL, commits_between
from tensorlake_spark.delta.log.requirements import WRITABLE
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store import s3_objects
from tensorlake_spark.delta.store.paths import is_plain
from tensorlake_spark.delta.store.redaction import cleanse
from tensorlake_spark.delta.store.storage import Storage, listed, reaching
from tensorlake_spark.delta.store.store_options import get_or_env

logger = logging.getLogger("tensorlake_spark")

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
# A clean-up looks at every commit of the log, so a large table has one for so many checkpoints.
_CLEANUPS = 8

_LEGACY_WRITER = 2  # of tables without features

_NTZ = "timestampNtz"

_READER, _WRITER = 3, 7
"""The versions from which a protocol lists its features."""

_IMPLIED = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
}
"""The features that a writer's version stands for, and the lower ones."""

_FEATURES = {
    "appendOnly": TableFeatures.AppendOnly,
    "invariants": TableFeatures.Invariants,
    "checkConstraints": TableFeatures.CheckConstraints,
    "changeDataFeed": TableFeatures.ChangeDataFeed,
    "generatedColumns": TableFeatures.GeneratedColumns,
    _NTZ: TableFeatures.TimestampWithoutTimezone,
}
"""What deltalake calls them."""

ENGINE = f"tensorlake-spark delta-rs:py-{deltalake.__version__}"
"""Who makes a commit, for the table's history."""

LEAST_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
"""The protocol of a new table that needs no feature."""

_LOCK = ("aws_s3_locking_provider",)
# With these deltalake makes a commit in another way than by one request that fails where there is one.
_OTHER_WAY = (
    "aws_conditional_put", "conditional_put", "aws_copy_if_not_exists", "copy_if_not_exists",
    "aws_s3_allow_unsafe_rename", "allow_unsafe_rename",
)  # fmt: skip

_UNFINISHED, _ENDING = "_commit_", ".json.tmp"  # a commit that has no name yet


def can_commit(snapshot: Snapshot, paths: list[str], is_needed: bool = False) -> bool:
    """Whether a commit of these files may be made here: the table has the least protocol, and is local or on S3.

    With `is_needed`, deltalake cannot write it: files with deletion vectors leave, or former columns come back. Then
    it is made here if the table has only features that ask no more of such a commit, and also on S3.
    """
    is_least = snapshot.writer_version <= _LEGACY_WRITER and not snapshot.writer_features
    if is_needed:
        may = may_commit(snapshot.storage) and snapshot.writer_features <= WRITABLE
    else:
        may = is_least and may_save(snapshot.storage)
    return may and all(is_plain(path) for path in paths)


def may_commit(storage: Storage) -> bool:
    """Whether a commit that deltalake cannot write may be made there, on S3 with boto3.

    Not where writers agree by a lock that a commit from here would not ask for.
    """
    if storage.is_local:
        return True
    return storage.uri.startswith("s3://") and get_or_env(storage.options, _LOCK) is None


def may_save(storage: Storage) -> bool:
    """Whether a commit that deltalake could make may be made here, to save time."""
    if storage.is_local:
        return True
    is_usual = get_or_env(storage.options, _OTHER_WAY) is None
    return is_usual and may_commit(storage) and s3_objects.has_client()


def can_remove_marked(storage: Storage) -> bool:
    """Whether files with deletion vectors can be removed here and now."""
    return may_commit(storage) and (storage.is_local or s3_objects.has_client())


def has_all(after: Schema | StructType, before: Schema | StructType) -> bool:
    """Whether columns are former ones as they were, and others beside them.

    deltalake adds columns, also to a struct. It does not take any away or give them another type or other metadata.

    Examples
    --------
    >>> old, new = Field("a", "integer"), Field("b", "string")
    >>> has_all(Schema([new, old]), Schema([old])), has_all(Schema([new]), Schema([old]))
    (True, False)
    """
    found = {field.name: field for field in after.fields}
    return all(old.name in found and _is_grown(found[old.name], old) for old in before.fields)


def _is_grown(after: Field, before: Field) -> bool:
    """Whether a column is what it was, or a struct that has more fields."""
    if after.nullable != before.nullable or not before.metadata.items() <= after.metadata.items():
        return False
    if isinstance(after.type, StructType) and isinstance(before.type, StructType):
        return has_all(after.type, before.type)
    return bool(after.type == before.type)


def put_commit(storage: Storage, version: int, actions: list[dict[str, Any]]) -> bool:
    """Make the commit of a version, unless somebody else has made it.

    Returns
    -------
    bool
        False where the file system has no hard links, or the store no such request: nothing was done.

    Raises
    ------
    deltalake.exceptions.CommitFailedError
        If the version is there.
    StorageError
        If S3 refuses, or does not answer: then the commit may be there, or come later.
    """
    text = "\n".join(json.dumps(a, separators=(",", ":")) for a in actions)
    if not storage.is_local:
        made = s3_objects.put_new(storage, commit_name(version), text.encode())
        if made is False:
            raise CommitFailedError(f"version {version} of {storage.uri} is there already")
        return made is not None
    unfinished = f"{storage.uri}/{LOG}/{_UNFINISHED}{uuid.uuid4()}{_ENDING}"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.link(unfinished, f"{storage.uri}/{commit_name(version)}")
    except FileExistsError as error:
        raise CommitFailedError(f"version {version} of {storage.uri} is there already") from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    finally:
        with suppress(OSError):
            os.unlink(unfinished)
    return True


def asked_protocol(snapshot: Snapshot, schema: Schema) -> dict[str, Any] | None:
    """Return the protocol that a table needs for its new columns, None if the one that it has will do.

    Delta refuses to read a table with a ``timestamp_ntz`` whose protocol does not say so.

    Parameters
    ----------
    snapshot : Snapshot
        The table before.
    schema : deltalake.Schema
        Its columns after.
    """
    if _NTZ in snapshot.writer_features or not has_local_times(schema):
        return None
    return protocol_of_times(
        snapshot.writer_version, snapshot.reader_features, snapshot.writer_features
    )


def protocol_of_times(
    version: int, readers: Iterable[str] = (), writers: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the protocol of a table with times without a zone.

    It names the features that the writer's version stands for. Without `invariants`, Spark opens no table that has a
    column which takes no null.

    Parameters
    ----------
    version : int
        The writer's version of the protocol before.
    readers, writers : iterable of str
        The features before.

    Examples
    --------
    >>> protocol_of_times(2)["writerFeatures"]
    ['appendOnly', 'invariants', 'timestampNtz']
    """
    implied = {
        name for least, names in _IMPLIED.items() if least <= version < _WRITER for name in names
    }
    return {
        "minReaderVersion": _READER,
        "minWriterVersion": _WRITER,
        "readerFeatures": sorted({*readers, _NTZ}),
        "writerFeatures": sorted({*writers, *implied, _NTZ}),
    }


def name_features(table: DeltaTable, names: Iterable[str]) -> None:
    """Commit by deltalake that a table has features; it names too few of them with columns of times without a zone."""
    there = {*(table.protocol().writer_features or ())}
    missing = [_FEATURES[name] for name in names if name in _FEATURES and name not in there]
    if missing:
        table.alter.add_feature(
            missing,
            allow_protocol_versions_increase=True,
            commit_properties=CommitProperties(max_commit_retries=0),
        )


def has_local_times(schema: Schema) -> bool:
    """Whether columns have times without a zone, for which the least protocol will not do."""
    return "timestamp_ntz" in {*_types(schema)}


def _types(schema: Schema) -> Iterator[str]:
    """Yield the names of the types of all columns, also inside others."""
    waiting = [json.loads(schema.to_json())]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += [field["type"] for field in one.get("fields", ())]
            waiting += [one[key] for key in ("elementType", "keyType", "valueType") if key in one]


def expire(storage: Storage, kept: dt.timedelta, dry_run: bool) -> list[str]:
    """Delete commits that a killed writer never gave a name, or only name them; returns paths in the table.

    Those in an object store are left alone: there a name may be pending in a database.

    Parameters
    ----------
    storage : Storage
        The table.
    kept : datetime.timedelta
        Younger ones stay: their writer may be at work.
    dry_run : bool
        Whether to delete nothing.
    """
    if not storage.is_local:
        return []
    until = time.time() - kept.total_seconds()
    out = []
    with reaching(storage), os.scandir(f"{storage.uri}/{LOG}") as entries:
        for entry in entries:
            is_one = entry.name.startswith(_UNFINISHED) and entry.name.endswith(_ENDING)
            with suppress(FileNotFoundError):  # its writer was faster
                if is_one and entry.stat().st_mtime <= until:
                    if not dry_run:
                        os.unlink(entry.path)
                    out.append(f"{LOG}/{entry.name}")
    return sorted(out)


def tidy(snapshot: Snapshot, version: int) -> None:
    """Write a checkpoint, and drop commits that the log need not keep, if it is time at a version.

    With the interval that a new table has, the time between the checkpoints of a local one grows with the table, so
    that their cost for each commit does not. An interval that a user has set is kept.

    Parameters
    ----------
    snapshot : Snapshot
        The newest version.
    version : int
        The one that was committed: nobody else makes its checkpoint.
    """
    said = snapshot.configuration.get("delta.checkpointInterval", "")
    interval = int(said) if said.isdecimal() and int(said) else CHECKPOINT_INTERVAL
    # Whoever opens a table in an object store waits for every commit since the last checkpoint.
    if interval == CHECKPOINT_INTERVAL and snapshot.storage.is_local:
        interval = commits_between(len(snapshot.files.path), share=50)
    made = version + 1
    if made % interval:
        return
    storage = snapshot.storage
    try:
        table = listed(
            lambda: DeltaTable(storage.uri, version, storage_options=storage.log_options), True
        )
        table.create_checkpoint()
        cleans = (
            snapshot.configuration.get("delta.enableExpiredLogCleanup", "true").lower() != "false"
        )
        if cleans and (interval <= CHECKPOINT_INTERVAL or not made % (_CLEANUPS * interval)):
            table.cleanup_metadata()
    except (DeltaError, OSError) as error:  # the commit is there
        cleanse(error, storage.options)  # a store may repeat what it was asked with
        logger.warning("no checkpoint of %s was written: %s", snapshot.storage.uri, error)
