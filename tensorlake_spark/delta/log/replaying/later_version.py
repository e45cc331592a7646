"""The newest version of a table, from one that is known and the commits after it."""

from __future__ import annotations

from contextlib import suppress

from deltalake import DeltaTable

from tensorlake_spark.delta.log.actions import all_transactions
from tensorlake_spark.delta.log.replaying import remote_log, replay
from tensorlake_spark.delta.log.replaying.live_files import Files
from tensorlake_spark.delta.log.replaying.remote_log import Mirror
from tensorlake_spark.delta.log.replaying.replay import Replayed, Transactions
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import FormatError


def as_replayed(
    storage: Storage, opened: DeltaTable | Mirror, version: int, files: Files
) -> Replayed | None:
    """Return a version as one on which later commits can be replayed, None where they cannot.

    Parameters
    ----------
    storage : Storage
        The table.
    opened : deltalake.DeltaTable or Mirror
        The version.
    version : int
        Its number.
    files : Files
        Its live files.
    """
    if isinstance(opened, Mirror):
        mark, numbers, table = opened.mark, opened.transactions, opened.table
    elif not storage.is_local:  # deltalake had a reason to read this log itself
        return None
    else:
        mark, numbers, table = replay.commit_mark(storage, version), None, opened
        with suppress(FormatError):  # deltalake makes do without them
            numbers = all_transactions(storage, version)
    if mark is None or numbers is None:
        return None
    return Replayed(table, version, files, Transactions(numbers), mark)


def read_on(storage: Storage, known: Replayed, pid: int) -> Replayed | None:
    """Return the newest version, itself if it is that; None where the table has to be opened instead.

    Parameters
    ----------
    storage : Storage
        The table.
    known : Replayed
        A version of it.
    pid : int
        The process that uses deltalake, see `ranges.Remote`.
    """
    if storage.is_local:
        commits = replay.commits_after(storage, known.version, known.mark)
    else:
        commits = remote_log.commits_after(storage, known.version, known.mark, pid)
    return None if commits is None else replay.replay(storage.uri, known, commits)
