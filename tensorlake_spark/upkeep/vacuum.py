"""Housekeeping of a table."""

from __future__ import annotations

import logging
import math
import re

from tensorlake_spark.delta.files import catalog_file
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.table_folder import inner_tables
from tensorlake_spark.delta.log.tags import tags
from tensorlake_spark.delta.store import staging
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.threads import threads

logger = logging.getLogger("tensorlake_spark")

MOST_HOURS = 24 * 365 * 1000
"""The longest retention that a call may ask for, a thousand years: dates do not go much further."""

_VECTOR = re.compile(r"deletion_vector_.*\.bin")


def check_retention(hours: float | None) -> None:
    """Raise InvalidOptionError if a retention is not a number of hours, None for the table's own."""
    if hours is None:
        return
    try:
        sensible = 0 <= hours <= MOST_HOURS
    except TypeError:
        sensible = False
    if not sensible:
        raise InvalidOptionError(
            f"retention_hours is {hours!r}; it is a number of hours from 0 to {MOST_HOURS}, or None for the "
            "table's own retention"
        )


def vacuum(snapshot: Snapshot, retention_hours: float | None, dry_run: bool) -> list[str]:
    """Delete files that no version within the retention needs, orphans of crashed writers included.

    Files of tagged versions stay, those of deletion vectors, which Spark's VACUUM takes, and those of other
    tables in the folder. What an ingestion left to be resumed goes when it is older, a week where
    `retention_hours` is None.

    Parameters
    ----------
    snapshot : Snapshot
        The newest version.
    retention_hours : float, optional
        Files that left the table, or were never committed, are deleted when they are older; the table's
        own retention (a week) where None. 0 also takes files of writers that are at work now. Whole hours, so a
        part of one counts as one.
    dry_run : bool
        Only name them.

    Returns
    -------
    list of str
        Paths of the files.

    Raises
    ------
    InvalidOptionError
        If `retention_hours` is negative, or no number.
    """
    check_retention(retention_hours)
    inner = inner_tables(snapshot.storage)
    vectors = "deletionVectors" in snapshot.reader_features
    with reaching(snapshot.storage):
        gone = list(
            snapshot.table.vacuum(
                retention_hours=None if retention_hours is None else math.ceil(retention_hours),
                dry_run=dry_run or vectors or bool(inner),
                enforce_retention_duration=False,
                full=True,
                keep_versions=_tagged(snapshot) or None,
            )
        )
        if vectors or inner:
            # deltalake takes the files of deletion vectors for orphans, even of those that are in use, and so
            # it does those of another table.
            gone = [name for name in gone if not _is_kept(name, inner)]
            if not dry_run:
                list(threads().map(snapshot.storage.delete, gone))
    notes = staging.expire(snapshot.storage, retention_hours, dry_run)
    return gone + notes + catalog_file.expire(snapshot.storage, dry_run)


def _is_kept(name: str, inner: tuple[str, ...]) -> bool:
    if _VECTOR.fullmatch(name.rsplit("/", 1)[-1]):
        return True
    place = f"{name}/"  # S3 may list a folder as an object
    return any(place.startswith(folder) or folder.startswith(place) for folder in inner)


def _tagged(snapshot: Snapshot) -> list[int]:
    """Return the versions that have a tag; one that the log does not have any more is logged and left out."""
    out = []
    for name, version in tags(snapshot).items():
        try:
            out.append(Snapshot.open(snapshot.storage, version).version)
        except InvalidOptionError as error:
            logger.warning("files of tag %r cannot be kept: %s", name, error)
    return out
