"""Later commits replayed on a version that is known, so that the log of a local table is not read from its beginning."""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace

from deltalake import DeltaTable

from tensorlake_spark.delta.log.actions import LAST_CHECKPOINT, added_removed, commit_name
from tensorlake_spark.delta.log.live_files import Files
from tensorlake_spark.delta.store.storage import Storage

_MOST = 100  # commits that are replayed; with more deltalake begins from a checkpoint
_BEGINNING = 4 << 10  # bytes that tell one commit from another: they have names and times


@dataclass(frozen=True, eq=False, slots=True)
class Replayed:
    """A version of a local table that is known by its commits.

    Attributes
    ----------
    table : deltalake.DeltaTable
        An earlier version, for schema, protocol and properties, which the commits since do not change.
    version : int
        The version.
    files : Files
        Its live files.
    transactions : dict of str to int
        The last number of every application transaction.
    mark : int
        The `commit_mark` of the version: of a table that was made anew it is another one.
    """

    table: DeltaTable
    version: int
    files: Files
    transactions: dict[str, int]
    mark: int


def commit_mark(storage: Storage, version: int) -> int | None:
    """Return what tells the commit of a version from any other, None if it is not there.

    Times alone do not: a backup that was put in the table's place may have them from an archive, by the second.
    """
    found = _read(storage, version, _BEGINNING)
    return None if found is None else found[0]


def replay(storage: Storage, known: Replayed) -> Replayed | None:
    """Return the newest version; None where the table has to be opened instead.

    That is so if the commit of the known version is another one than it was, or gone, if a later one does more
    than to add and remove files and to count transactions, or if it is not all there.
    """
    if commit_mark(storage, known.version) != known.mark:
        return None
    files, transactions = known.files, dict(known.transactions)
    version, mark = known.version, known.mark
    while (found := _read(storage, version + 1)) is not None:
        # Who writes a commit in its place, such as a copy of a table, may not be done with it.
        change = added_removed(found[1]) if found[1].strip() else None
        if change is None or version - known.version >= _MOST:
            return None
        try:
            files = files.grown(change.added, change.removed, storage.uri)
        except (
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
        ):  # statistics of another kind than ours
            return None
        transactions |= change.transactions
        version, mark = version + 1, found[0]
    if _last_checkpoint(storage) > version:  # a commit is missing, and this is not the newest
        return None
    if version == known.version:
        return known
    if commit_mark(storage, known.version) != known.mark:  # replaced while it was read
        return None
    return replace(known, version=version, files=files, transactions=transactions, mark=mark)


def _read(storage: Storage, version: int, nbytes: int = -1) -> tuple[int, bytes] | None:
    """Return the mark and the first bytes of a commit, by default all; None if it is not there."""
    try:
        with open(f"{storage.uri}/{commit_name(version)}", "rb") as file:
            # What is added while it is read makes another mark later.
            info, said = os.fstat(file.fileno()), file.read(nbytes)
    except FileNotFoundError:
        return None
    return hash((info.st_mtime_ns, info.st_size, zlib.crc32(said[:_BEGINNING]))), said


def _last_checkpoint(storage: Storage) -> int:
    """Return the version of the last checkpoint, -1 where nobody says that there is one."""
    with suppress(FileNotFoundError, ValueError, LookupError, TypeError):
        return int(json.loads(storage.read_whole(LAST_CHECKPOINT))["version"])
    return -1
