"""What lies in a table's folder, and which versions of its log name it."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pyarrow.fs as pafs
from deltalake.exceptions import CommitFailedError

from tensorlake_spark.delta.log import actions
from tensorlake_spark.delta.log.data_file import PART
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.paths import path_of
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import ConcurrentWriteError

LOG = f"{actions.LOG}/"

_CHECKPOINT = re.compile(rf"{LOG}(\d{{20}})\.checkpoint\.(?:.*\.)?(?:parquet|json)")
_ASIDE = re.compile(rf"{PART}[^/]+\.arrow")
_RELAY = re.compile(rf"{PART}[^/]+\.(?:next|left)")  # what tasks of such a write tell each other
_NAMING = ("add.path", "remove.path", "remove.deletionTimestamp", "cdc.path")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the folder of a table.

    Attributes
    ----------
    path : str
        Path in the table.
    size : int
        Bytes.
    modified : datetime.datetime
        When it was written, in UTC.
    """

    path: str
    size: int
    modified: dt.datetime

    @property
    def may_have_rows(self) -> bool:
        """Whether it may be a data file, one of the change data feed included."""
        return self.path.endswith(".parquet") and not self.path.startswith(LOG)

    @property
    def is_aside(self) -> bool:
        """Whether a write of features by Spark has put rows aside in it; see `columns.elsewhere.rows_aside`."""
        return bool(_ASIDE.fullmatch(self.path))

    @property
    def is_left(self) -> bool:
        """Whether a writer leaves it only when it is interrupted, unless a version names it."""
        return self.may_have_rows or self.is_aside or bool(_RELAY.fullmatch(self.path))


@dataclass(slots=True)
class Naming:
    """In which versions the log names a data file.

    Attributes
    ----------
    spans : list of [int, int or None]
        First version that has it, and the first one after that has not; None while it is live.
    removed_at : int or None
        When it last left the table, in milliseconds since 1970, None where the log does not say.
    """

    spans: list[list[int | None]] = field(default_factory=list)
    removed_at: int | None = None

    def versions(self, newest: int) -> set[int]:
        """Return the versions that need the file."""
        return {
            version
            for first, stop in self.spans
            for version in range(first or 0, newest + 1 if stop is None else stop)
        }

    def _add(self, version: int) -> None:
        if not self.spans or self.spans[-1][1] is not None:
            self.spans.append([version, None])
        self.removed_at = None

    def _remove(self, version: int, when: int | None) -> None:
        if self.spans and self.spans[-1][1] is None:
            self.spans[-1][1] = version
        self.removed_at = when


def listing(storage: Storage) -> list[StoredFile]:
    """Return all files in a table's folder, its log and hidden folders included, by path.

    A folder in it that has a log of its own is another table, whose files are left out.
    """
    files = everything(storage)
    inner = inner_tables(files)
    return [file for file in files if not file.path.startswith(inner)]


def inner_tables(files: list[StoredFile]) -> tuple[str, ...]:
    """Return the folders of other tables among all files of a folder: what the paths of their files begin with."""
    parts = (file.path.partition(f"/{LOG}") for file in files if not file.path.startswith(LOG))
    return tuple(sorted({f"{folder}/" for folder, found, _ in parts if found}))


def linked_folders(storage: Storage, files: list[StoredFile]) -> tuple[str, ...]:
    """Return the folders in a table's folder that are symbolic links: what the paths of files behind them begin with.

    What lies there need not be the table's, and others may use it by its own name.
    """
    if not storage.is_local:
        return ()
    direct = {file.path.rpartition("/")[0] for file in files} - {""}
    folders = {
        f"{part}/" for one in direct for part in [one, *map(str, PurePosixPath(one).parents)]
    }
    return tuple(sorted(one for one in folders if os.path.islink(f"{storage.uri}/{one}"[:-1])))


def linked_place(storage: Storage, path: str) -> str | None:
    """Return where a file lies that a symbolic link puts into a table's folder, None of one that lies there itself."""
    if not storage.is_local:
        return None
    found = os.path.realpath(f"{storage.uri}/{path}")
    return None if found == f"{os.path.realpath(storage.uri)}/{path}" else found


def everything(storage: Storage, under: str = "") -> list[StoredFile]:
    """Return all files in a table's folder, or under a folder in it, by path, those of other tables in it, too."""
    filesystem, base = storage.place
    with reaching(storage):
        found = filesystem.get_file_info(
            pafs.FileSelector(f"{base}/{under}".rstrip("/"), allow_not_found=True, recursive=True)
        )
    files = [
        StoredFile(str(info.path)[len(base) :].lstrip("/"), int(info.size), info.mtime)
        for info in found
        if info.is_file
    ]
    return sorted(files, key=lambda file: file.path)


def empty_commits(files: list[StoredFile]) -> dict[str, str]:
    """Return the paths of commits without a byte, such as a power failure leaves, each with what is wrong and helps.

    No writer commits nothing at all. Readers of Delta pass such a commit by: what it added is not seen, and looks as if
    nobody needed it.

    Parameters
    ----------
    files : list of StoredFile
        As `listing` or `everything` returned them, those under ``_delta_log/`` at least.

    Examples
    --------
    >>> now = dt.datetime.now(dt.timezone.utc)
    >>> [*empty_commits([StoredFile("_delta_log/00000000000000000007.json", 0, now)])]
    ['_delta_log/00000000000000000007.json']
    """
    text = (
        "it has no bytes, as after a power failure, so that what it said is not seen; bring it back from a backup, or "
        'give up what it said, by writing the line {"commitInfo":{}} into it'
    )
    return {f.path: text for f in files if not f.size and actions.COMMIT.fullmatch(f.path)}


def named(storage: Storage, files: list[StoredFile]) -> dict[str, Naming]:
    """Return every data file that a version in the log names, and when.

    Parameters
    ----------
    storage : Storage
        The table.
    files : list of StoredFile
        As `listing` returned them.
    """
    out: dict[str, Naming] = {}
    commits = {int(m[1]): f.path for f in files if (m := actions.COMMIT.fullmatch(f.path))}
    start = -1
    if 0 not in commits:  # what the log has forgotten, its oldest checkpoint still knows
        checkpoints = [(int(m[1]), f.path) for f in files if (m := _CHECKPOINT.fullmatch(f.path))]
        start = min((version for version, _ in checkpoints), default=-1)
        sidecars = [f.path for f in files if f.path.startswith(f"{LOG}_sidecars/")]
        for path in [path for version, path in checkpoints if version == start] + sidecars:
            with reaching(storage), suppress(FileNotFoundError):
                _replay(out, start, actions.read_actions(storage, path, _NAMING))
    for version, path in sorted(commits.items()):
        if version > start:
            with reaching(storage), suppress(FileNotFoundError):  # the log was tidied up meanwhile
                _replay(out, version, actions.read_actions(storage, path, _NAMING))
    return out


def _replay(
    out: dict[str, Naming], version: int, actions: Iterator[tuple[str, dict[str, Any]]]
) -> None:
    """Take in one commit: removals first, for a file may leave and come back with other deletions."""
    added = []
    for kind, said in actions:
        path = path_of(said)
        if kind == "add":
            added.append(path)
            continue
        # Of a file of the change data feed no version is named.
        naming = out.setdefault(path, Naming())
        if kind == "remove":
            naming._remove(version, said.get("deletionTimestamp"))
    for path in added:
        out.setdefault(path, Naming())._add(version)


def vacuumed(
    snapshot: Snapshot, hours: int | None, dry_run: bool, keep_versions: Sequence[int]
) -> list[str]:
    """Have deltalake delete what no version within some hours needs, or only name it.

    Raises
    ------
    ConcurrentWriteError
        If another writer replaced files meanwhile. Some may be deleted.
    """
    try:
        named: list[str] = snapshot.table.vacuum(
            retention_hours=hours,
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,
            keep_versions=[*keep_versions] or None,
        )
    except CommitFailedError as error:
        raise ConcurrentWriteError(
            f"another writer replaced files of {snapshot.storage.uri} during a vacuum, of which a part may be done; "
            f"run it again: {error}"
        ) from error
    return named
