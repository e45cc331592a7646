"""A commit to a log on a local disk, without deltalake, whose own commits take as long as the table has files.

deltalake makes all live files known to itself before and after each commit. What it then does on a local disk is
done here: the commit is written beside the log, and a hard link gives it its name, which fails if it is taken.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import logging
import os
import time
import uuid
from contextlib import suppress
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from tensorlake_spark.delta.log.actions import LOG, commit_name
from tensorlake_spark.delta.log.properties import CHECKPOINT_INTERVAL, commits_between
from tensorlake_spark.delta.log.requirements import WRITABLE
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.paths import is_plain
from tensorlake_spark.delta.store.storage import Storage, reaching

logger = logging.getLogger("tensorlake_spark")

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
# A clean-up looks at every commit of the log, so a large table has one for so many checkpoints.
_CLEANUPS = 8

_LEGACY_WRITER = 2  # of tables without features

_UNFINISHED, _ENDING = "_commit_", ".json.tmp"  # a commit that has no name yet


def can_commit(snapshot: Snapshot, paths: list[str], has_vectors: bool = False) -> bool:
    """Whether a commit of these files may be made here: the table is local, and has the least protocol.

    With `has_vectors`, files leave that have deletion vectors, which deltalake cannot write. Then it is made here if
    the table has only features that ask no more of such a commit.
    """
    is_least = snapshot.writer_version <= _LEGACY_WRITER and not snapshot.writer_features
    return (
        snapshot.storage.is_local
        and (is_least or (has_vectors and snapshot.writer_features <= WRITABLE))
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
    unfinished = f"{storage.uri}/{LOG}/{_UNFINISHED}{uuid.uuid4()}{_ENDING}"
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


def tidy(snapshot: Snapshot) -> None:
    """Write a checkpoint, and drop commits that the log need not keep, if it is time at this version.

    With the interval that a new table has, the time between checkpoints grows with the table, so that their cost
    for each commit does not. An interval that a user has set is kept.
    """
    said = snapshot.configuration.get("delta.checkpointInterval", "")
    interval = int(said) if said.isdecimal() and int(said) else CHECKPOINT_INTERVAL
    if interval == CHECKPOINT_INTERVAL:
        interval = commits_between(len(snapshot.files.path), share=50)
    made = snapshot.version + 1
    if made % interval:
        return
    try:
        table = DeltaTable(snapshot.storage.uri, snapshot.version)
        table.create_checkpoint()
        cleans = (
            snapshot.configuration.get("delta.enableExpiredLogCleanup", "true").lower() != "false"
        )
        if cleans and (interval <= CHECKPOINT_INTERVAL or not made % (_CLEANUPS * interval)):
            table.cleanup_metadata()
    except (DeltaError, OSError) as error:  # the commit is there
        logger.warning("no checkpoint of %s was written: %s", snapshot.storage.uri, error)
