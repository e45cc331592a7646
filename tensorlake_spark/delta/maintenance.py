"""Housekeeping of a table."""

from __future__ import annotations

from tensorlake_spark.delta import staging
from tensorlake_spark.delta.snapshot import Snapshot
from tensorlake_spark.delta.storage import reaching


def vacuum(snapshot: Snapshot, retention_hours: float | None, dry_run: bool) -> list[str]:
    """Delete files that no version within the retention needs, orphans of crashed writers included.

    What an ingestion left to be resumed goes when it is older, a week where `retention_hours` is None.

    Parameters
    ----------
    snapshot : Snapshot
        The newest version.
    retention_hours : float, optional
        Files that left the table, or were never committed, are deleted when they are older; the table's
        own retention (a week) where None. 0 also takes files of writers that are at work now.
    dry_run : bool
        Only name them.

    Returns
    -------
    list of str
        Paths of the files.
    """
    with reaching(snapshot.storage):
        gone = list(
            snapshot.table.vacuum(
                retention_hours=None if retention_hours is None else int(retention_hours),
                dry_run=dry_run,
                enforce_retention_duration=False,
                full=True,
            )
        )
    return gone + staging.expire(snapshot.storage, retention_hours, dry_run)
