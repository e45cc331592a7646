"""Tags: names of versions, in the log itself.

A tag is the application transaction ``tag/<name>``, whose number is the version that it names, -1 when it
was removed. So it needs no change of metadata, is in the way of no writer, and checkpoints keep it.
"""

from __future__ import annotations

import time

from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from tensorlake_spark.delta.log.actions import all_transactions
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import TAG, tags_in
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    InvalidTensorError,
    UnsupportedFeatureError,
    check_text,
    did_you_mean,
)
from tensorlake_spark.tensor.spec import check_id

_REMOVED = -1
_ATTEMPTS = 5
_COMMITS = 60  # as a writer tries


def check_tag(name: str) -> str:
    """Return `name` if it may name a version: what an id may be, but no number.

    Raises
    ------
    InvalidOptionError
        If it may not; the message says why.

    Examples
    --------
    >>> check_tag("release/2026-01")
    'release/2026-01'
    """
    try:
        check_id(name)
    except InvalidTensorError as error:
        raise InvalidOptionError(str(error).replace("tensor id", "tag")) from None
    if name.isdecimal():
        raise InvalidOptionError(f"tag {name!r} is a number, which means a version; add a letter")
    return name


def tags(snapshot: Snapshot) -> dict[str, int]:
    """Return all tags and the versions that they name, by name.

    Raises
    ------
    UnsupportedFeatureError
        If the log lacks files that follow from its last checkpoint.
    """
    found = all_transactions(snapshot.storage, snapshot.version)
    for _ in range(_ATTEMPTS):
        if found is not None:
            break
        # The last checkpoint is later than the snapshot: another writer was faster, tags of now will do.
        snapshot = Snapshot.open(snapshot.storage, kind=None)
        found = all_transactions(snapshot.storage, snapshot.version)
    if found is None:
        raise UnsupportedFeatureError(
            f"the tags of {snapshot.storage.uri} cannot be listed: its log has no checkpoint of a kind that "
            "is read here, and not all commits since the first; open a tag by its name"
        )
    return tags_in(found)


def tag(storage: Storage, name: str, version: int | str | None, replace: bool) -> int:
    """Name a version, the newest where None, and return it; see `TensorLake.tag`."""
    check_tag(name)
    snapshot = Snapshot.open(storage, kind=None)
    snapshot.check_writable()
    named = (
        snapshot.version if version is None else Snapshot.open(storage, version, kind=None).version
    )
    now = snapshot.transaction(TAG + name)
    if now == named:
        return named
    if now not in (None, _REMOVED) and not replace:
        raise InvalidOptionError(
            f"tag {name!r} of {storage.uri} names version {now} already; replace=True moves it to version {named}"
        )
    _commit(snapshot, name, named, "tag")
    return named


def untag(storage: Storage, name: str) -> None:
    """Remove a tag; see `TensorLake.untag`."""
    if not isinstance(name, str):
        raise InvalidOptionError(f"a tag is a string, not {type(name).__name__}: {name!r:.100}")
    check_text(name, "tag")
    snapshot = Snapshot.open(storage, kind=None)
    snapshot.check_writable()
    if snapshot.transaction(TAG + name) in (None, _REMOVED):
        known = tags(snapshot)
        raise InvalidOptionError(
            f"there is no tag {name!r} of {storage.uri}{did_you_mean(name, known)}"
        )
    _commit(snapshot, name, _REMOVED, "untag")


def _commit(snapshot: Snapshot, name: str, version: int, operation: str) -> None:
    """Commit a tag's number, unless it changed since `snapshot`; commits of others are no hindrance.

    deltalake takes files that another writer removed, and other properties of the table, for a conflict.
    """
    storage, was = snapshot.storage, snapshot.transaction(TAG + name)
    with reaching(storage):
        for _ in range(_COMMITS):
            try:
                _write(snapshot, name, version, operation)
                return
            except (CommitFailedError, DeltaError, OSError) as failed:
                # Ours may have landed though its answer was lost; another writer's that says the same will do.
                snapshot = Snapshot.open(storage, kind=None)
                now = snapshot.transaction(TAG + name)
                if now == version:
                    return
                if isinstance(failed, OSError):
                    raise
                error: Exception = failed
                if now != was:
                    raise ConcurrentWriteError(
                        f"another writer changed tag {name!r} of {storage.uri}; nothing was committed, look at tags() "
                        f"and {operation} it again if that still holds"
                    ) from error
                if not isinstance(failed, CommitFailedError):
                    break
        raise ConcurrentWriteError(
            f"other writers were faster than the {operation} of {name!r} of {storage.uri}; nothing was committed, try "
            f"again later: {error}"
        ) from error


def _write(snapshot: Snapshot, name: str, version: int, operation: str) -> None:
    snapshot.table.create_write_transaction(
        [],
        "append",
        snapshot.table.schema(),
        commit_properties=CommitProperties(
            custom_metadata={"tensorlake.operation": operation},
            # Where transactions expire, one without a time does so at once.
            app_transactions=[Transaction(TAG + name, version, int(time.time() * 1000))],
        ),
    )
