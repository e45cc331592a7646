"""Metadata rows of many data files in one file beside the table, so that a listing need not open each of them.

It lies in ``_tensorlake/catalog``, which readers of Delta and its VACUUM leave alone. It holds nothing of its
own: data files never change, so the rows of one follow from its path. Which files are live, the log says. A
file that is damaged, of a later format or not there costs time and nothing else.
"""

from __future__ import annotations

import datetime as dt
import logging
import re

import pyarrow as pa

from tensorlake_spark.delta.store import checksummed_table
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.rows.metadata import META_COLUMNS
from tensorlake_spark.rows.row import SCHEMA

logger = logging.getLogger("tensorlake_spark")

ROOT = "_tensorlake/catalog"

CATALOG = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("size", pa.int64()),
        *(SCHEMA.field(name) for name in META_COLUMNS),
        pa.field("row", pa.int64()),
    ]
)
"""Columns: the data file and its bytes, the metadata row, and its number in the file."""

_NAME = re.compile(r"(\d{20})\.rows")
_UNFINISHED = re.compile(r"\.[0-9a-f-]{36}")
_ALL = dt.timedelta(0)
_KIND = b"tensorlake rows "


def name_of(version: int) -> str:
    """Return the path in the table of what the commit of a version left."""
    return f"{ROOT}/{version:020}.rows"


def load(storage: Storage) -> pa.Table:
    """Return the rows of the newest catalog file, no rows where there is none that can be used."""
    for path in reversed(paths(storage)):
        with reaching(storage):
            whole = storage.find_whole(path)
        if whole is None:  # a later one took its place
            continue
        try:
            return checksummed_table.unpack(_KIND, CATALOG, whole)
        except checksummed_table.LaterFormat:
            continue
        except (ValueError, pa.ArrowException) as error:
            logger.warning(
                "%s is damaged and left out; a later commit writes it anew: %s",
                storage.file_uri(path), error,
            )  # fmt: skip
    return CATALOG.empty_table()


def save(storage: Storage, version: int, rows: pa.Table) -> bool:
    """Write the rows, and delete all but the newest file.

    Returns
    -------
    bool
        Whether this one stays: else there was one of a later version.
    """
    with reaching(storage):
        storage.put_whole(name_of(version), checksummed_table.pack(_KIND, rows))
    found = paths(storage)
    delete(storage, found[:-1])
    return not found or found[-1] <= name_of(version)


def paths(storage: Storage) -> list[str]:
    """Return the paths of all catalog files, by version."""
    with reaching(storage):
        found = storage.files_in(ROOT)
    return sorted(f"{ROOT}/{i.base_name}" for i in found if _NAME.fullmatch(i.base_name))


def unfinished(storage: Storage, kept: dt.timedelta = _ALL) -> list[str]:
    """Return the paths of files that writers did not finish, older than `kept`; an object store has none."""
    if not storage.is_local:
        return []
    until = dt.datetime.now(dt.timezone.utc) - kept
    with reaching(storage):
        found = storage.files_in(ROOT)
    return sorted(
        f"{ROOT}/{i.base_name}"
        for i in found
        if _UNFINISHED.fullmatch(i.base_name) and i.mtime <= until
    )


def expire(storage: Storage, kept: dt.timedelta, dry_run: bool) -> list[str]:
    """Delete catalog files that a later one has superseded, or only name them; returns their paths.

    So it does with those that killed writers left unfinished longer ago than `kept`.
    """
    old = [*paths(storage)[:-1], *unfinished(storage, kept)]
    if not dry_run:
        delete(storage, old)
    return old


def delete(storage: Storage, names: list[str]) -> None:
    """Delete catalog files; one that is gone already is fine."""
    with reaching(storage):
        for name in names:
            storage.delete(name)
