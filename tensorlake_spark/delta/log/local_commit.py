"""A commit to a log on a local disk, without deltalake, whose own commits take as long as the table has files.

deltalake makes all live files known to itself before and after each commit. What it then does on a local disk is
done here: the commit is written beside the log, and a hard link gives it its name, which fails if it is taken.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import uuid
from contextlib import suppress
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from tensorlake_spark.delta.log.actions import LOG, commit_name
from tensorlake_spark.delta.log.properties import CHECKPOINT_INTERVAL, commits_between
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.paths import is_plain
from tensorlake_spark.delta.store.storage import Storage

logger = logging.getLogger("tensorlake_spark")

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_LEGACY_WRITER = 2  # of tables without features


def can_commit(snapshot: Snapshot, paths: list[str]) -> bool:
    """Whether a commit of these files may be made here: the table is local, and has the least protocol."""
    return (
        snapshot.storage.is_local
        and snapshot.writer_version <= _LEGACY_WRITER
        and not snapshot.writer_features
        and all(is_plain(path) for path in paths)
    )


def put_commit(storage: Storage, version: int, actions: list[dict[str, Any]]) -> bool:
    """Make the commit of a version, unless somebody else has made it.

    Returns
    -------
    bool
        False where the file system has no hard links: nothing was done.

    Raises
    ------
    deltalake.exceptions.CommitFailedError
        If the version is there.
    """
    unfinished = f"{storage.uri}/{LOG}/_commit_{uuid.uuid4()}.json.tmp"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write("\n".join(json.dumps(a, separators=(",", ":")) for a in actions))
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


def tidy(snapshot: Snapshot) -> None:
    """Write a checkpoint, and drop commits that the log need not keep, if it is time at this version.

    With the interval that a new table has, the time between checkpoints grows with the table, so that their cost
    for each commit does not. An interval that a user has set is kept.
    """
    said = snapshot.configuration.get("delta.checkpointInterval", "")
    interval = int(said) if said.isdecimal() and int(said) else CHECKPOINT_INTERVAL
    if interval == CHECKPOINT_INTERVAL:
        interval = commits_between(len(snapshot.files.path))
    if (snapshot.version + 1) % interval:
        return
    try:
        table = DeltaTable(snapshot.storage.uri, snapshot.version)
        table.create_checkpoint()
        if snapshot.configuration.get("delta.enableExpiredLogCleanup", "true").lower() != "false":
            table.cleanup_metadata()
    except (DeltaError, OSError) as error:  # the commit is there
        logger.warning("no checkpoint of %s was written: %s", snapshot.storage.uri, error)
